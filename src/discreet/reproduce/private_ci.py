"""Pages of the PrivATE paper: its tables and figures, beside what comes out here and beside `discreet.ATE`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from discreet.papers import baselines
from discreet.papers.private_ci_formulas import Published
from discreet.plots import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE
from discreet.reproduce import private_ci_runs as runs
from discreet.reproduce.pages import Page, axes, share
from discreet.reproduce.private_ci_runs import ALPHAS, DELTA, EPSILON, LEARNERS, NOISE_SEED, OURS, STUDY_SEED
from discreet.reproduce.targets import Results, Row, Target

SEEDS = f"studies from {STUDY_SEED}, noise from {NOISE_SEED}, one each"
STANDARD, NAIVE, VALID, PRIVATE = "standard", "naive", "valid naive", "PrivATE"
NAMES = {"kernel": "Kernel", "nn": "NN"}
COLOURS = {STANDARD: INK, NAIVE: MUTED, PRIVATE: ORANGE, OURS: BLUE, "kernel": ORANGE, "nn": PURPLE, "forest": GREEN}

# Table 1 of the paper: coverage of standard, naive and PrivATE intervals at 80, 90 and 95 %.
TABLE1 = {
    "1 kernel": ((0.792, 0.008, 0.784), (0.902, 0.036, 0.912), (0.960, 0.038, 0.964)),
    "1 nn": ((0.762, 0.024, 0.824), (0.868, 0.028, 0.894), (0.950, 0.020, 0.962)),
    "2 kernel": ((0.770, 0.004, 0.848), (0.904, 0.008, 0.910), (0.950, 0.010, 0.958)),
    "2 nn": ((0.800, 0.012, 0.832), (0.912, 0.008, 0.904), (0.952, 0.016, 0.954)),
}
LEVELS = {alpha: f"{1 - alpha:.2f}" for alpha in ALPHAS}


class Ends(NamedTuple):
    """An interval, and the truth that it should contain."""

    low: float
    high: float
    truth: float

    @property
    def covers(self) -> bool:
        """Whether it does."""
        return self.low <= self.truth <= self.high

    @property
    def width(self) -> float:
        """Its length."""
        return self.high - self.low


def intervals(rows: Sequence[Row], method: str, epsilon: float, alpha: float) -> list[Ends]:
    """Intervals of one method, one for each row."""
    return [Ends(*_interval(row, method, epsilon, alpha), truth=row["truth"]) for row in rows]


def _interval(row: Row, method: str, epsilon: float, alpha: float) -> tuple[float, float]:
    if method == OURS:
        low, high = row["intervals"][f"{epsilon:g}"][ALPHAS.index(alpha)]
        return low, high
    exact, published = runs.exact_of(row), Published(*row["published"][f"{epsilon:g}"])
    if method == STANDARD:
        return baselines.standard(exact, alpha)
    if method == NAIVE:
        return baselines.naive(exact, published.tau, alpha)
    half = (baselines.standard(exact, alpha).high - exact.tau) / np.sqrt(exact.sigma2 / exact.n)
    variance = exact.sigma2 if method == VALID else published.sigma2
    half *= float(np.hypot(np.sqrt(variance / exact.n), published.r))
    return published.tau - half, published.tau + half


def mean_width(ends: Sequence[Ends]) -> float:
    """Average length of intervals."""
    return float(np.mean([interval.width for interval in ends]))


def table1(results: Results) -> Page:
    """Coverage on both synthetic data sets."""
    lines, points = [], []
    for cell, published in TABLE1.items():
        which, learner = cell.split()
        for alpha, (standard, naive, private) in zip(ALPHAS, published, strict=True):
            line = [which, NAMES[learner], LEVELS[alpha]]
            for method, number in ((STANDARD, standard), (NAIVE, naive), (PRIVATE, private)):
                found = intervals(results[cell], method, EPSILON, alpha)
                line += [f"{number:.3f}", share([interval.covers for interval in found])]
                points.append((method, 1 - alpha, np.mean([interval.covers for interval in found])))
            ours = intervals(results[f"{which} {OURS}"], OURS, EPSILON, alpha)
            points.append((OURS, 1 - alpha, np.mean([interval.covers for interval in ours])))
            widths = mean_width(intervals(results[cell], PRIVATE, EPSILON, alpha)), mean_width(ours)
            line += [share([interval.covers for interval in ours]), *(f"{width:.3g}" for width in widths)]
            lines.append(line)
    figure, (ax,) = axes(width=6.4, height=4.2)
    ax.plot([0.78, 0.97], [0.78, 0.97], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    for shift, method in enumerate((STANDARD, NAIVE, PRIVATE, OURS)):
        xs, ys = zip(*[(x + 0.003 * (shift - 1.5), y) for name, x, y in points if name == method], strict=True)
        ax.plot(xs, ys, "o", color=COLOURS[method], label=method, markersize=5)
    ax.set(xlabel="nominal coverage", ylabel="coverage", ylim=(-0.03, 1.03))
    ax.legend(frameon=False)
    n = len(results["1 kernel"])
    return Page(
        lead=f"Share of intervals that contain the true effect, ε = {EPSILON:g}, δ = {DELTA:g}, n = {runs.N:,}, with "
        "the published number in front of ours (± one standard error). The last three columns: coverage of "
        "`discreet.ATE` at the same ε on the same studies, and mean widths of PrivATE's and of its intervals.",
        head=[
            *("data", "learner", "level"),
            *("standard, paper", "standard", "naive, paper", "naive", "PrivATE, paper", "PrivATE"),
            *("discreet", "width, PrivATE", "width, discreet"),
        ],
        lines=lines,
        remarks=[
            "The paper does not give n for this table; 3,000 is what it says of Figure 4.",
            "One set of studies serves all three levels; the paper's coverages are not ordered, as if each had its "
            "own.",
            "The supremum runs over the declared bounds of the outcome (-1 to 4 and -1 to 8), which no study fills. "
            "The paper does not say which domain it takes; over the observed one the intervals would be narrower, and "
            "the domain would be read off the data.",
            "At 500 replications one standard error is 0.018, 0.013 and 0.010 at the three levels.",
        ],
        seeds=SEEDS,
        replications=n,
        figure=figure,
    )


def supremum(results: Results) -> Page:
    """The searched supremum, against a grid."""
    lines = []
    figure, (ax,) = axes(width=6.4, height=3.6)
    for place, name in enumerate(runs.SUPREMUM_MODELS):
        searched, grid, closed = (
            np.array([row[key] for row in results[name]]) for key in ("searched", "grid", "closed")
        )
        found = searched / grid
        lines.append(
            [name, *(f"{v.mean():.3g}" for v in (searched, grid, closed)), *_percent(found.mean(), found.min())]
        )
        ax.plot(found, np.full(len(found), place), "o", color=COLOURS[name], alpha=0.6)
    ax.axvline(1.0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    ax.set(xlabel="supremum that L-BFGS-B finds, as a share of the grid's", xlim=(0, 1.1))
    ax.set_yticks(range(len(runs.SUPREMUM_MODELS)), list(runs.SUPREMUM_MODELS))
    return Page(
        lead="The gross-error sensitivity of the estimate (5) on Dataset 1: as L-BFGS-B finds it from ten random "
        "points for each arm, as a grid of 201 × 201 points over the covariates finds it (both ends of the outcome, "
        "both arms), and the closed form R_y/κ + |τ|, which holds when predicted outcomes are clipped. Averages over "
        "studies.",
        head=["nuisances", "L-BFGS-B", "grid", "closed form", "found, mean", "found, least"],
        lines=lines,
        remarks=[
            "The paper has no such table. Its noise is only as large as its search is thorough: forests are flat "
            "almost everywhere, so that a gradient method stops where it starts.",
            "The forest is none of the paper's learners, but its framework is offered for any.",
        ],
        seeds=f"studies from {STUDY_SEED}; no noise is drawn",
        replications=len(results["kernel"]),
        figure=figure,
    )


def _percent(*values: float) -> list[str]:
    return [f"{100 * value:.0f} %" for value in values]


def _methods(*prefixes: object) -> tuple[str, ...]:
    return tuple(f"{prefix} {method}" for prefix in prefixes for method in (*LEARNERS, OURS))


TARGETS = (
    Target(
        name="table1",
        title="PrivATE, Table 1: coverage on synthetic data",
        experiment="synthetic",
        run=runs.synthetic,
        cells=lambda full: _methods(1, 2),
        replications=lambda full: 500 if full else 8,
        page=table1,
    ),
    Target(
        name="supremum",
        title="PrivATE: the searched supremum against a grid",
        experiment="supremum",
        run=runs.supremum,
        cells=lambda full: runs.SUPREMUM_MODELS,
        replications=lambda full: 50 if full else 5,
        page=supremum,
    ),
)
