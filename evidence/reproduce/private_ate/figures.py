"""Figures of the PrivATE paper, as tables and figures: the paper prints no numbers for them."""

from __future__ import annotations

from math import exp

import numpy as np

from discreet.releases.plots import GREEN, MUTED
from evidence.reproduce.pages import Page, axes
from evidence.reproduce.private_ate import runs
from evidence.reproduce.private_ate.runs import ALPHAS, BUDGETS, DELTA, DIFFERENCE, EPSILON, LEARNERS, OURS, N
from evidence.reproduce.private_ate.tables import COLOURS, NAIVE, NAMES, PRIVATE, SEEDS, STANDARD, intervals, mean_width
from evidence.reproduce.targets import Results

ALPHA = ALPHAS[-1]
SIZES = (500, 1_000, 3_000, 5_000, 10_000)
QUICK_SIZES = (500, 1_000, 3_000)
WEIGHTS = (0.25, 0.5, 0.75)
_NO_NUMBERS = "The paper shows a figure only: shapes can be compared, numbers cannot."


def fig4(results: Results) -> Page:
    """Widths over budgets and over sizes."""
    sizes = sorted({int(cell.split()[0]) for cell in results})
    settings = [(N, epsilon) for epsilon in BUDGETS] + [(n, EPSILON) for n in sizes if n != N]
    lines, curves = [], {}
    for n, epsilon in settings:
        widths = {STANDARD: mean_width(intervals(results[f"{n} kernel"], STANDARD, epsilon, ALPHA))}
        widths |= {name: mean_width(intervals(results[f"{n} {name}"], PRIVATE, epsilon, ALPHA)) for name in LEARNERS}
        widths[OURS] = mean_width(intervals(results[f"{n} {OURS}"], OURS, epsilon, ALPHA))
        lines.append([f"{n:,}", f"{epsilon:g}", *(f"{width:.3g}" for width in widths.values())])
        curves[n, epsilon] = widths
    figure, (left, right) = axes(2)
    for name in (STANDARD, *LEARNERS, OURS):
        label = f"PrivATE ({NAMES[name]})" if name in NAMES else name
        left.plot(BUDGETS, [curves[N, e][name] for e in BUDGETS], "o-", color=COLOURS[name], label=label)
        right.plot(sizes, [curves[n, EPSILON][name] for n in sizes], "o-", color=COLOURS[name])
    left.set(xscale="log", yscale="log", xlabel=f"ε (n = {N:,})", ylabel="mean width of 95 % intervals")
    right.set(xscale="log", yscale="log", xlabel=f"n (ε = {EPSILON:g})")
    left.legend(frameon=False)
    return Page(
        lead=f"Mean widths of 95 % intervals on Dataset 1, δ = {DELTA:g}, ε₁ = ε/2; the paper ran ten studies.",
        head=["n", "ε", "standard", "PrivATE (Kernel)", "PrivATE (NN)", "discreet"],
        lines=lines,
        remarks=[
            _NO_NUMBERS,
            *(
                f"At ε = {epsilon:g} PrivATE's intervals (Kernel) are {_ratio(curves[N, epsilon], 'kernel')} times as "
                f"wide as the standard ones, and those of `discreet.ATE` {_ratio(curves[N, epsilon], OURS)} times."
                for epsilon in (EPSILON, BUDGETS[-1])
            ),
        ],
        seeds=SEEDS,
        replications=len(results[f"{N} kernel"]),
        figure=figure,
    )


def _ratio(widths: dict[str, float], name: str) -> str:
    return f"{widths[name] / widths[STANDARD]:.3g}"


def utility(weight: float, epsilon: float, width: float, private: bool) -> float:
    """Weighted sum of privacy, exp(-epsilon) or nothing, and of the interval's width, which counts against it."""
    return weight * (exp(-epsilon) if private else 0.0) - (1.0 - weight) * width


def fig5(results: Results) -> Page:
    """Privacy and width in one number."""
    rows, lines = results["kernel"], []
    curves: dict[tuple[float, str], list[float]] = {}
    for weight in WEIGHTS:
        for epsilon in BUDGETS:
            widths = {name: mean_width(intervals(rows, name, epsilon, ALPHA)) for name in (PRIVATE, NAIVE)}
            ends = np.array([row["bootstrap"][f"{epsilon:g}"] for row in rows])
            widths["bootstrap"] = float(np.mean(ends[:, 1] - ends[:, 0]))
            widths[OURS] = mean_width(intervals(results[OURS], OURS, epsilon, ALPHA))
            found = {name: utility(weight, epsilon, width, name != NAIVE) for name, width in widths.items()}
            lines.append([f"{weight:g}", f"{epsilon:g}", *(f"{value:.3f}" for value in found.values())])
            for name, value in found.items():
                curves.setdefault((weight, name), []).append(value)
    figure, panels = axes(len(WEIGHTS), width=10.0)
    for ax, weight in zip(panels, WEIGHTS, strict=True):
        for name in (PRIVATE, NAIVE, "bootstrap", OURS):
            ax.plot(BUDGETS, curves[weight, name], "o-", color=COLOURS.get(name, GREEN), label=name, markersize=4)
        ax.axhline(0.0, color=MUTED, linewidth=0.8)
        ax.set(xscale="log", ylim=(-1.5, 1.0), xlabel="ε", title=f"weight of privacy {weight:g}")
    panels[0].set_ylabel("utility")
    panels[-1].legend(frameon=False)
    return Page(
        lead="Utility w·p - (1 - w)·width of 95 % intervals on Dataset 1 (kernel learner), where p is exp(-ε) for "
        "methods with a privacy claim and 0 for naive intervals.",
        head=["w", "ε", "PrivATE", "naive", "bootstrap", "discreet"],
        lines=lines,
        remarks=[
            "The paper defines utility as a weighted sum of privacy and width and gives no formula; this one is ours, "
            "so that where curves cross means nothing.",
            "The bootstrap is that of `papers.baselines`: a hundred private estimates share the budget.",
            _NO_NUMBERS,
        ],
        seeds=SEEDS,
        replications=len(rows),
        figure=figure,
    )


def fig6(results: Results) -> Page:
    """Intervals on single trials."""
    shown = min(len(results["nn"]), 10)
    lines, orders = [], []
    figure, (ax,) = axes(width=7.0, height=4.4)
    for place in range(shown):
        line, widths = [str(place + 1)], []
        for shift, (cell, method) in enumerate(((DIFFERENCE, DIFFERENCE), ("nn", PRIVATE), (OURS, OURS))):
            (found,) = intervals(results[cell][place : place + 1], method, EPSILON, ALPHA)
            line += [f"{found.low:.3g} to {found.high:.3g}", f"{found.width:.3g}"]
            widths.append(found.width)
            colour, label = COLOURS.get(method, GREEN), method if place == 0 else None
            ax.plot(
                [found.low, found.high], [place + 1 + 0.25 * (shift - 1)] * 2, color=colour, linewidth=3, label=label
            )
        lines.append(line)
        orders.append((widths[1] < widths[0], widths[2] < min(widths[:2])))
    ax.axvline(1.0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    ax.set(xlabel="95 % interval (dashed: the true effect)", ylabel="run", yticks=range(1, shown + 1))
    ax.legend(frameon=False)
    return Page(
        lead=f"95 % intervals on the first trials of Table 3 (n = {runs.TRIAL_N:,}, ε = {EPSILON:g}, NN learner).",
        head=["run", "difference", "width", "PrivATE (NN)", "width", "discreet", "width"],
        lines=lines,
        remarks=[
            _NO_NUMBERS,
            f"PrivATE's interval is narrower than that of the difference of means in {sum(a for a, _ in orders)} of "
            f"{shown} runs; that of `discreet.ATE` is narrower than both in {sum(b for _, b in orders)}.",
        ],
        seeds=SEEDS,
        replications=shown,
        figure=figure,
    )
