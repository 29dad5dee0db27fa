"""What can be reproduced of the epsilon-ADUM paper: Figures 1 and 2 here, Figure 3 and Corollary 1 beside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.datasets.marketing import HILLSTROM_FILE, adum
from discreet.papers.adum.error_bound import Smooth, best_cells
from discreet.papers.adum.estimator import largest_outcome
from discreet.releases.plots import BLUE, GREEN, MUTED, ORANGE, PURPLE
from evidence.reproduce.adum import runs
from evidence.reproduce.adum.corollary import corollary1
from evidence.reproduce.adum.ranking import fig3
from evidence.reproduce.adum.runs import EPSILONS, FIG2_CELLS, FIG2_EPSILONS, SHAPES
from evidence.reproduce.pages import Aim, Page, axes
from evidence.reproduce.targets import Results, Row, Target

SEEDS = f"studies from {runs.STUDY_SEED}, noise from {runs.NOISE_SEED}, one stream for each cell"
# Up to here the paper finds ADUM ahead.
STRICT = 5.0
# From here on the paper finds a further degree profitable.
DEGREE_FROM = 2.0
# A step of this size back up is no step: two and four cells of sin(pi x) have the same means.
_FLAT = 0.01
_FIGURE_ONLY = (
    "The paper shows a figure only; no number of it is printed in its text, so that there is none to compare."
)
_SINE = (
    "The text has the effect sin(x) on (−1, 1) and calls it non-monotonic, which it is not: it is nearly a straight "
    "line. sin(πx) is non-monotonic; both are shown."
)
_RANGE = "Outcomes are clipped to ±(1 + 4σ), which is declared; the paper does not say how it knows D_y."


class Tuned(NamedTuple):
    """The setting with the least mean PEHE at one epsilon, and its PEHE in every replication."""

    setting: str
    values: Float

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def error(self) -> float:
        return float(self.values.std(ddof=1) / np.sqrt(len(self.values))) if len(self.values) > 1 else float("nan")


def tuned(rows: Sequence[Row], epsilon: float) -> Tuned:
    """As the paper does: the best setting for each epsilon, judged on test data."""
    key = f"{epsilon:g}"
    curves = {setting: np.array([row[key][setting] for row in rows]) for setting in rows[0][key]}
    best = min(curves, key=lambda setting: float(curves[setting].mean()))
    return Tuned(best, curves[best])


def fig1(results: Results) -> Page:
    """PEHE of both methods by epsilon."""
    lines, aims = [], []
    figure, panels = axes(len(SHAPES))
    for ax, shape in zip(panels, SHAPES, strict=True):
        cells, models, own = (
            [tuned(results[f"{shape}/{method}"], epsilon) for epsilon in EPSILONS] for method in runs.FIG1_SETTINGS
        )
        for epsilon, a, b, c in zip(EPSILONS, cells, models, own, strict=True):
            lines.append(
                [
                    *(shape, f"{epsilon:g}", f"{a.mean:.5f} ± {a.error:.5f}", a.setting),
                    *(f"{b.mean:.5f} ± {b.error:.5f}", b.setting, "ADUM" if a.mean < b.mean else "two-model"),
                    f"{c.mean:.5f} ± {c.error:.5f}",
                ]
            )
        for found, colour, label in ((cells, BLUE, "ε-ADUM"), (models, ORANGE, "ε-TM"), (own, GREEN, "Uplift")):
            ax.errorbar(
                EPSILONS, [t.mean for t in found], [t.values.std() for t in found], fmt="o-", color=colour, label=label
            )
        ax.set(xscale="log", yscale="log", xlabel="ε", title=shape.replace("pi ", "π"))
        aims += [*_crossing(shape, cells, models), *_tuning(shape, cells, models)]
    panels[0].set_ylabel("PEHE (bars: standard deviation)")
    panels[0].legend(frameon=False)
    return Page(
        lead=f"PEHE, the mean squared error of the effect, of ε-ADUM on a regular cut and of ε-TM, two polynomial "
        f"regressions by the functional mechanism, with the best number of cells and the best degree at each ε. "
        f"{runs.N:,} records, σ = {runs.FIG1_SIGMA:g}; means ± one standard error over replications.",
        head=["effect", "ε", "ADUM", "cells", "two-model", "degree", "ahead", "discreet.Uplift, proved"],
        lines=lines,
        remarks=[
            _FIGURE_ONLY,
            _SINE,
            "Both methods have the paper's relation (one record more or less) and its noise; both are proved there.",
            "As in the paper, cells and degree are tuned on test data, which would cost privacy: real users have to "
            f"choose them in advance. Candidates: {_list(runs.FIG1_CELLS)} cells; degrees {_list(runs.DEGREES)}.",
            '`Uplift` has the same relation and cuts by its own public rule, `by={0: "auto"}`: nothing of it is tuned.',
            "The PEHE is taken over a fine grid of x in place of a test split, for the same expectation.",
            _RANGE,
        ],
        aims=aims,
        seeds=SEEDS,
        replications=len(results[f"{next(iter(SHAPES))}/adum"]),
        figure=figure,
    )


def _crossing(shape: str, cells: Sequence[Tuned], models: Sequence[Tuned]) -> list[Aim]:
    ahead = [(epsilon, a.mean < b.mean) for epsilon, a, b in zip(EPSILONS, cells, models, strict=True)]
    strict = [(epsilon, won) for epsilon, won in ahead if epsilon <= STRICT]
    loose = [(epsilon, won) for epsilon, won in ahead if epsilon > STRICT]
    behind = [epsilon for epsilon, won in strict if not won]
    reason = f"; behind at ε = {_list(behind)}: {_why_behind(shape, behind, cells, models)}" if behind else ""
    return [
        Aim(
            f"ADUM ahead of the two-model method for all ε ≤ {STRICT:g}, effect {shape}",
            not behind,
            f"at {len(strict) - len(behind)} of {len(strict)} budgets{reason}",
        ),
        Aim(
            f"the two-model method ahead for all ε > {STRICT:g}, effect {shape}",
            not any(won for _, won in loose),
            f"at {sum(not won for _, won in loose)} of {len(loose)} budgets",
        ),
    ]


def _tuning(shape: str, cells: Sequence[Tuned], models: Sequence[Tuned]) -> list[Aim]:
    """What else the paper says of its Figure 1: cells grow with the budget, and a further degree pays from 2 on."""
    numbers, degrees = ([int(one.setting) for one in found] for found in (cells, models))
    grows = all(later >= earlier for earlier, later in pairwise(numbers)) and numbers[-1] > numbers[0]
    raised = [
        epsilon for epsilon, earlier, later in zip(EPSILONS[1:], degrees, degrees[1:], strict=False) if later > earlier
    ]
    first = raised[0] if raised else None
    place = EPSILONS.index(first) if first is not None else 0
    drop = models[place - 1].mean / models[place].mean if place else 1.0
    return [
        Aim(f"the best number of cells grows with ε, effect {shape}", grows, _list(numbers)),
        Aim(
            f"a further degree becomes profitable at an ε of 2 or more and drops the two-model method's PEHE "
            f"significantly (by half), effect {shape}",
            first is not None and first >= DEGREE_FROM and drop >= 2.0,
            f"from ε = {first:g} on, PEHE {drop:.3g} times smaller than one step before" if first else "at no ε",
        ),
    ]


def _why_behind(shape: str, behind: Sequence[float], cells: Sequence[Tuned], models: Sequence[Tuned]) -> str:
    """What each method errs by without any noise, and how little of the budget would do for the one ahead."""
    last = max(behind)
    steps = int(cells[EPSILONS.index(last)].setting)
    least = [
        min(
            (other for other, b in zip(EPSILONS, models, strict=True) if other <= epsilon and b.mean < a.mean),
            # Who is level is not ahead, and has no smaller budget with which the other would be.
            default=epsilon,
        )
        for epsilon, a in zip(EPSILONS, cells, strict=True)
        if epsilon in behind
    ]
    shares = [f"{small:g} against {epsilon:g}" for small, epsilon in zip(least, behind, strict=True) if small < epsilon]
    enough = f", and is ahead with less of the budget, too (ε = {', '.join(shares)})" if shares else ""
    return (
        f"even without noise {steps} steps, the best number at ε = {last:g}, miss this effect by "
        f"{best_steps(shape, steps):.5f}, and one straight line by {best_line(shape):.5f}; the two-model method needs "
        f"two weights an arm for it where ADUM needs {steps} counts and sums{enough}"
    )


def best_steps(shape: str, cells: int) -> float:
    """PEHE of the best step function on a regular cut."""
    values = np.sin(SHAPES[shape] * runs.GRID[:, 0])
    place = (np.arange(values.size) * cells) // values.size
    means = np.bincount(place, values) / np.bincount(place)
    return float(np.mean((values - means[place]) ** 2))


def best_line(shape: str) -> float:
    """PEHE of the best straight line."""
    x = runs.GRID[:, 0]
    values = np.sin(SHAPES[shape] * x)
    return float(np.mean((values - np.polyval(np.polyfit(x, values, 1), x)) ** 2))


def fig2(results: Results) -> Page:
    """PEHE by the number of cells."""
    lines, u_shaped = [], []
    best: dict[str, list[int]] = {}
    figure, panels = axes(len(SHAPES))
    colours = (PURPLE, ORANGE, GREEN, BLUE, MUTED)
    for ax, shape in zip(panels, SHAPES, strict=True):
        best[shape] = []
        for epsilon, colour in zip(FIG2_EPSILONS, colours, strict=True):
            table = np.array([[row[f"{epsilon:g}"][f"{p}"] for p in FIG2_CELLS] for row in results[shape]])
            middle = np.median(table, axis=0)
            lowest = int(middle.argmin())
            best[shape].append(FIG2_CELLS[lowest])
            u_shaped.append((shape, epsilon, is_u(middle)))
            ax.plot(FIG2_CELLS, middle, "o-", color=colour, label=f"ε = {epsilon:g}", markersize=4)
            theory = best_cells(smooth(shape), runs.N, epsilon)
            numbers = [f"{value:.5f}" if value < 10 else f"{value:.3g}" for value in middle]
            lines.append([shape, f"{epsilon:g}", *numbers, f"{FIG2_CELLS[lowest]}", f"{theory}"])
        ax.set(xscale="log", yscale="log", xlabel="cells", title=shape.replace("pi ", "π"))
    panels[0].set_ylabel("PEHE, median")
    panels[1].legend(frameon=False)
    moved = {shape: found == sorted(found) and found[0] < found[-1] for shape, found in best.items()}
    merged = {shape: _merged(results[shape]) for shape in SHAPES}
    return Page(
        lead=f"PEHE of ε-ADUM by the number of cells of a regular cut; {runs.N:,} records, σ = {runs.FIG2_SIGMA:g}; "
        "medians over replications, the number of cells with the least, and the one that minimises the bound of "
        "Corollary 1.",
        head=["effect", "ε", *(f"p = {p}" for p in FIG2_CELLS), "best p", "p of (7)"],
        lines=lines,
        remarks=[
            _FIGURE_ONLY,
            _SINE,
            "Medians, where the paper shows means: a noisy count near zero makes a mean over runs meaningless.",
            f"The paper names two of its five ε, 50 and 100; the others here are {_list(FIG2_EPSILONS[:3])}.",
            _RANGE,
        ],
        aims=[
            Aim(
                f"PEHE falls and then rises with the number of cells (steps of less than {_FLAT:.0%} aside)",
                all(found for *_, found in u_shaped),
                f"{sum(found for *_, found in u_shaped)} of {len(u_shaped)} curves",
            ),
            Aim(
                "the best number of cells never falls as ε grows, and grows in all",
                all(moved.values()),
                "; ".join(f"{shape}: {_list(found)}" for shape, found in best.items()),
            ),
            Aim(
                "ε = 50 and ε = 100 are one curve at its minimum (within 5 %)",
                all(gap < 0.05 for gap in merged.values()),
                "; ".join(f"{shape}: {gap:.1%}" for shape, gap in merged.items()),
            ),
        ],
        seeds=SEEDS,
        replications=len(results[next(iter(SHAPES))]),
        figure=figure,
    )


def is_u(curve: Float) -> bool:
    """Whether a curve falls to a minimum that is at neither end, and rises after it; tiny steps back do not count."""
    lowest = int(curve.argmin())
    down, up = curve[: lowest + 1], curve[lowest:][::-1]
    steps = [*pairwise(down), *pairwise(up)]
    return 0 < lowest < len(curve) - 1 and all(later <= earlier * (1 + _FLAT) for earlier, later in steps)


def smooth(shape: str, sigma: float = runs.FIG2_SIGMA) -> Smooth:
    """What Corollary 1 knows about the synthetic data: the control surface is 0, the effect's slope its frequency."""
    bounds = adum(1, 0, sigma=sigma).bounds
    return Smooth(0.0, SHAPES[shape], bounds.columns[0].width, sigma, largest_outcome(bounds))  # type: ignore[union-attr]


def _merged(rows: Sequence[Row]) -> float:
    low, high = (
        min(float(np.median([row[f"{epsilon:g}"][f"{p}"] for row in rows])) for p in FIG2_CELLS)
        for epsilon in FIG2_EPSILONS[-2:]
    )
    return abs(high / low - 1)


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


TARGETS = (
    Target(
        name="fig1",
        title="ADUM, Figure 1: error by ε on synthetic data",
        experiment="synthetic",
        run=runs.synthetic,
        cells=lambda full: tuple(f"{shape}/{method}" for shape in SHAPES for method in runs.FIG1_SETTINGS),
        replications=lambda full: 30 if full else 10,
        page=fig1,
    ),
    Target(
        name="fig2",
        title="ADUM, Figure 2: error by the number of cells",
        experiment="trade-off",
        run=runs.trade_off,
        cells=lambda full: tuple(SHAPES),
        replications=lambda full: 30 if full else 15,
        page=fig2,
    ),
    Target(
        name="fig3",
        title="ADUM, Figure 3: ranking by uplift",
        experiment="ranking",
        run=runs.ranking,
        cells=lambda full: tuple(f"{data}/{method}" for data in runs.RANKED for method in runs.TUNING),
        replications=lambda full: 20 if full else 2,
        page=fig3,
        files=(HILLSTROM_FILE,),
    ),
    Target(
        name="corollary1",
        title="ADUM, Corollary 1: a bound on the error",
        experiment="corollary",
        run=runs.corollary,
        cells=lambda full: tuple(f"{p} {epsilon:g}" for p, epsilon in runs.SETTINGS),
        replications=lambda full: runs.COROLLARY_RUNS // runs.RUNS_A_ROW if full else 2,
        page=corollary1,
    ),
)
