"""Figures of the PrivATE paper, as tables and figures: the paper prints no numbers for them."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import NamedTuple

import numpy as np

from discreet.releases.plots import GREEN, MUTED
from evidence.reproduce.pages import Aim, Page, axes, falls
from evidence.reproduce.private_ate import runs
from evidence.reproduce.private_ate.runs import ALPHAS, BUDGETS, DELTA, DIFFERENCE, EPSILON, LEARNERS, OURS, N
from evidence.reproduce.private_ate.tables import COLOURS, NAIVE, NAMES, PRIVATE, SEEDS, STANDARD, intervals, mean_width
from evidence.reproduce.targets import Results

ALPHA = ALPHAS[-1]
SIZES = (500, 1_000, 3_000, 5_000, 10_000)
QUICK_SIZES = (500, 1_000, 3_000)
WEIGHTS = (0.25, 0.5, 0.75)
# How wide, in standard intervals, an interval may be that has approached them.
CLOSE = 1.25
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
        aims=_width_aims(results, sizes, curves),
        seeds=SEEDS,
        replications=len(results[f"{N} kernel"]),
        figure=figure,
    )


def _width_aims(results: Results, sizes: list[int], curves: dict[tuple[int, float], dict[str, float]]) -> list[Aim]:
    """Widths fall with the budget and with n, approach the standard ones, and do not depend on the learner."""
    aims = []
    for name in LEARNERS:
        for what, settings in (
            ("ε", [(N, epsilon) for epsilon in BUDGETS]),
            ("n", [(n, EPSILON) for n in sizes]),
        ):
            found = [intervals(results[f"{n} {name}"], PRIVATE, epsilon, ALPHA) for n, epsilon in settings]
            errors = [float(np.std([one.width for one in each]) / np.sqrt(len(each))) for each in found]
            means = [mean_width(each) for each in found]
            ends = f"{means[0]:.3g} at {settings[0][what == 'ε']:g}, {means[-1]:.3g} at {settings[-1][what == 'ε']:g}"
            aims.append(Aim(f"widths of PrivATE ({NAMES[name]}) fall with {what}", falls(means, errors), ends))
    ratio = max(abs(np.log(widths[LEARNERS[0]] / widths[LEARNERS[1]])) for widths in curves.values())
    aims.append(
        Aim(
            "both base learners lead to similar widths (within 25 %)",
            bool(ratio <= np.log(1.25)),
            f"{np.exp(ratio):.3g} times",
        )
    )
    last = curves[N, BUDGETS[-1]]
    aims.append(
        Aim(
            f"with a larger budget intervals approach standard ones (within {CLOSE:g} times at ε = {BUDGETS[-1]:g})",
            last["kernel"] <= CLOSE * last[STANDARD],
            f"{_ratio(last, 'kernel')} times",
        )
    )
    return aims


def _ratio(widths: dict[str, float], name: str) -> str:
    return f"{widths[name] / widths[STANDARD]:.3g}"


def utility(weight: float, epsilon: float, width: float, private: bool) -> float:
    """Weighted sum of privacy, exp(-epsilon) or nothing, and of the interval's width, which counts against it."""
    return weight * (exp(-epsilon) if private else 0.0) - (1.0 - weight) * width


class Score(NamedTuple):
    """A way to read the paper's sentence: what privacy is worth, and in which unit widths are measured."""

    words: str
    privacy: Callable[[float], float]
    unit: Callable[[dict[str, float], float], float]


# The first is the one of the page's table.
SCORES = (
    Score("privacy exp(-ε), widths in the outcome's unit", lambda e: exp(-e), lambda widths, widest: 1.0),
    Score("privacy 1/ε, widths in the outcome's unit", lambda e: 1.0 / e, lambda widths, widest: 1.0),
    Score(
        "privacy exp(-ε), widths as shares of the widest at the same ε",
        lambda e: exp(-e),
        lambda widths, widest: max(widths.values()),
    ),
    Score("privacy exp(-ε), widths as shares of the widest of all", lambda e: exp(-e), lambda widths, widest: widest),
)


def ahead(score: Score, widths: dict[float, dict[str, float]], rival: str) -> int:
    """In how many rows (weights and budgets) PrivATE is ahead of a rival."""
    widest = max(width for found in widths.values() for width in found.values())
    count = 0
    for weight in WEIGHTS:
        for epsilon, found in widths.items():
            unit = score.unit(found, widest)
            own, other = (
                weight * (0.0 if name == NAIVE else score.privacy(epsilon)) - (1.0 - weight) * found[name] / unit
                for name in (PRIVATE, rival)
            )
            count += own > other
    return count


def fig5(results: Results) -> Page:
    """Privacy and width in one number."""
    rows, lines = results["kernel"], []
    curves: dict[tuple[float, str], list[float]] = {}
    widths: dict[float, dict[str, float]] = {}
    for epsilon in BUDGETS:
        found = {name: mean_width(intervals(rows, name, epsilon, ALPHA)) for name in (PRIVATE, NAIVE)}
        ends = np.array([row["bootstrap"][f"{epsilon:g}"] for row in rows])
        found["bootstrap"] = float(np.mean(ends[:, 1] - ends[:, 0]))
        widths[epsilon] = found
    for weight in WEIGHTS:
        for epsilon in BUDGETS:
            own = mean_width(intervals(results[OURS], OURS, epsilon, ALPHA))
            utilities = {
                name: utility(weight, epsilon, width, name != NAIVE)
                for name, width in (widths[epsilon] | {OURS: own}).items()
            }
            lines.append([f"{weight:g}", f"{epsilon:g}", *(f"{value:.3f}" for value in utilities.values())])
            for name, value in utilities.items():
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
            "The paper defines utility as a weighted sum of privacy and width and gives no formula; this one is ours.",
            _why_naive_is_ahead(widths),
            "The bootstrap is that of `papers.baselines`: a hundred private estimates share the budget.",
            _NO_NUMBERS,
        ],
        aims=_utility_aims(widths, curves),
        seeds=SEEDS,
        replications=len(rows),
        figure=figure,
    )


def _utility_aims(widths: dict[float, dict[str, float]], curves: dict[tuple[float, str], list[float]]) -> list[Aim]:
    rows = len(WEIGHTS) * len(BUDGETS)
    naive, bootstrap = (ahead(SCORES[0], widths, rival) for rival in (NAIVE, "bootstrap"))
    by_score = {score.words: ahead(score, widths, NAIVE) for score in SCORES[1:]}
    grows = all(low < high for low, high in zip(curves[WEIGHTS[0], PRIVATE], curves[WEIGHTS[-1], PRIVATE], strict=True))
    return [
        Aim("PrivATE outperforms the naive intervals for all weights, at every ε", naive == rows, f"{naive} of {rows}"),
        Aim(
            "PrivATE outperforms the bootstrap for all weights, at every ε", bootstrap == rows, f"{bootstrap} of {rows}"
        ),
        Aim("PrivATE's utility increases with the weight of privacy", grows, f"from {WEIGHTS[0]:g} to {WEIGHTS[-1]:g}"),
        Aim(
            "a reason found: another reading of the paper's sentence under which PrivATE is ahead of the naive "
            "intervals in every row",
            rows in by_score.values(),
            "; ".join(f"{words}: {count} of {rows}" for words, count in by_score.items()),
        ),
    ]


def _why_naive_is_ahead(widths: dict[float, dict[str, float]]) -> str:
    excess = {epsilon: found[PRIVATE] - found[NAIVE] for epsilon, found in widths.items()}
    low, high = (f"{value:.3g}" for value in (min(excess.values()), max(excess.values())))
    products = [epsilon * value for epsilon, value in excess.items()]
    return (
        "Why naive intervals are ahead here: they have the width of intervals without privacy, and PrivATE's are "
        f"wider by {low} to {high} (by {min(products):.3g} to {max(products):.3g}, divided by ε). With widths in the "
        "outcome's unit that is more than privacy is worth on a scale from 0 to 1, for the weights of the figure. "
        "Where widths are measured against the widest method's, the bootstrap's, hardly anything of them is left, and "
        "privacy decides. The paper says neither in which unit it measures widths nor how much privacy is worth."
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
            f"The interval of `discreet.ATE` is narrower than both in {sum(b for _, b in orders)} of {shown} runs.",
        ],
        aims=[
            Aim(
                "PrivATE's interval is narrower than that of the difference of means in every run",
                all(a for a, _ in orders),
                f"{sum(a for a, _ in orders)} of {shown}",
            )
        ],
        seeds=SEEDS,
        replications=shown,
        figure=figure,
    )
