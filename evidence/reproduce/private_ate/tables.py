"""Tables of the PrivATE paper, beside what comes out here and beside `discreet.ATE` at the same epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from discreet.papers.common.influence import noise_factor
from discreet.papers.private_ate import baselines
from discreet.papers.private_ate.equations import Published
from discreet.releases.plots import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE
from evidence.reproduce.pages import Aim, Page, axes, nominal, share
from evidence.reproduce.private_ate import runs
from evidence.reproduce.private_ate.catheter import OWN_UNITS, STANDARDISED
from evidence.reproduce.private_ate.runs import ALPHAS, DELTA, DIFFERENCE, EPSILON, NOISE_SEED, OURS, STUDY_SEED
from evidence.reproduce.targets import Results, Row

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
# Table 2: level, epsilon, private estimate, then the valid naive interval and PrivATE's.
TABLE2 = (
    (0.20, 0.10, 0.2398, (-1.1619, 1.6416), (-1.1620, 1.6417)),
    (0.20, 0.25, 0.0796, (-0.4871, 0.6462), (-0.4871, 0.6463)),
    (0.20, 0.50, 0.0541, (-0.2361, 0.3442), (-0.2361, 0.3442)),
    (0.10, 0.10, 0.2397, (-1.5597, 2.0391), (-1.5599, 2.0393)),
    (0.10, 0.25, 0.1059, (-0.5885, 0.8003), (-0.5887, 0.8005)),
    (0.10, 0.50, 0.0534, (-0.3143, 0.4211), (-0.3143, 0.4210)),
    (0.05, 0.10, 0.2517, (-1.8680, 2.3715), (-1.8686, 2.3719)),
    (0.05, 0.25, 0.0965, (-0.7888, 0.9819), (-0.7891, 0.9822)),
    (0.05, 0.50, 0.0468, (-0.3856, 0.4792), (-0.3858, 0.4793)),
)
# Table 3: coverage of the difference of means, PrivATE (Kernel) and PrivATE (NN) at 80, 90 and 95 %.
TABLE3 = ((0.820, 0.780, 0.880), (0.920, 0.900, 0.890), (0.950, 0.940, 0.970))
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
    # Real studies have no known truth.
    truths = [float("nan") if row["truth"] is None else row["truth"] for row in rows]
    return [Ends(*_interval(row, method, epsilon, alpha), truth=t) for row, t in zip(rows, truths, strict=True)]


def _interval(row: Row, method: str, epsilon: float, alpha: float) -> tuple[float, float]:
    if method in (OURS, DIFFERENCE):
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
    lines, points, checked, naives = [], [], [], []
    for cell, published in TABLE1.items():
        which, learner = cell.split()
        for alpha, (standard, naive, private) in zip(ALPHAS, published, strict=True):
            line = [which, NAMES[learner], LEVELS[alpha]]
            for method, number in ((STANDARD, standard), (NAIVE, naive), (PRIVATE, private)):
                found = intervals(results[cell], method, EPSILON, alpha)
                hits = [interval.covers for interval in found]
                line += [f"{number:.3f}", share(hits)]
                points.append((method, 1 - alpha, np.mean(hits)))
                if method == NAIVE:
                    naives.append(float(np.mean(hits)))
                else:
                    checked.append((f"{method} ({which}, {NAMES[learner]})", 1 - alpha, hits))
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
        aims=[
            nominal(checked),
            Aim("naive intervals cover less than 0.10", max(naives) < 0.1, f"at most {max(naives):.3f}"),
        ],
        seeds=SEEDS,
        replications=n,
        figure=figure,
    )


_SHARED_DRAWS = (
    "At each ε the three published estimates agree far better than independent noise of the published widths "
    "would let them: they seem to share their draws."
)


def _sensitivities(rows: Sequence[Row]) -> dict[str, float]:
    """The mean gross-error sensitivity, by the domain of its supremum."""
    # What the supremum may have been taken over, and how large it is then.
    domains = {
        "the declared ranges": [row["exact"][3] for row in rows],
        "the ranges that the records fill": [row["observed"] for row in rows],
        "the records themselves": [row["largest"] for row in rows],
        "the unit cube, covariates standardised": [row["cube"][STANDARDISED] for row in rows],
        "the unit cube, covariates in their own units": [row["cube"][OWN_UNITS] for row in rows],
    }
    return {name: float(np.mean(found)) for name, found in domains.items()}


def _widths(published: list[float], here: Sequence[tuple[float, ...]]) -> Any:
    figure, (ax,) = axes(width=6.4, height=4.2)
    for k, name in enumerate(("PrivATE, declared domain", "PrivATE, unit cube", OURS)):
        ax.plot(published, [widths[k] for widths in here], "o", label=name, color=(ORANGE, PURPLE, BLUE)[k])
    ends = [min(published), max(published)]
    ax.plot(ends, ends, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    ax.set(xscale="log", yscale="log", xlabel="published width of PrivATE's interval", ylabel="width here")
    ax.legend(frameon=False)
    return figure


_UNIT_CUBE = (
    "The unit cube is the domain of the paper's synthetic data; a search that stays in it sees a corner of this study, "
    "or none of it, and misses the records whose propensities are extreme. That this is what happened is inferred from "
    "the widths: the paper names three of its eight confounders, and its code was not at hand."
)
_SAME_RECORDS = ("Replications draw starting points and noise anew; the records are always the same.",)


def _width_aims(declared: int, likely: list[str]) -> list[Aim]:
    return [
        Aim("PrivATE's widths within 25 % of the published", declared == len(TABLE2), f"{declared} of {len(TABLE2)}"),
        Aim(
            "a reason found for widths that are further away: a domain of the supremum that reproduces them",
            bool(likely),
            ", and ".join(likely) or "none",
        ),
    ]


def _finding_aims(positive: list[bool], inside: list[bool]) -> list[Aim]:
    """What the paper says of its Table 2."""
    held = sum(low <= a and b <= high for *_, (a, b), (low, high) in TABLE2)
    return [
        Aim(
            "PrivATE's intervals mainly include the valid naive ones (in most rows and runs)",
            sum(inside) > len(inside) / 2,
            f"{sum(inside)} of {len(inside)} rows and runs; {held} of {len(TABLE2)} published rows",
        ),
        Aim(
            "the private effect is always positive",
            all(positive),
            f"in {sum(positive)} of {len(positive)} rows and runs: noise of the widths above flips signs, as that of "
            "the published widths would, too, unless draws are shared",
        ),
    ]


def table2(results: Results) -> Page:
    """Widths on the right heart catheter study."""
    rows, lines = results["kernel"], []
    exact = runs.exact_of(rows[0])
    standard = exact.sigma2 / exact.n
    gammas = _sensitivities(rows)
    published_widths, here, needed, positive, inside = [], [], [], [], []
    close = dict.fromkeys(gammas, 0)
    for alpha, epsilon, estimate, valid, private in TABLE2:
        found = {name: intervals(rows, name, epsilon, alpha) for name in (VALID, PRIVATE)}
        critical = intervals(rows[:1], STANDARD, epsilon, alpha)[0].width / (2 * np.sqrt(standard))
        factor = noise_factor(exact.n, epsilon * runs.DEFAULT_SHARE, DELTA * runs.DEFAULT_SHARE)
        there = private[1] - private[0]
        implied = np.sqrt((there / (2 * critical)) ** 2 - standard) / factor
        by_domain = {name: 2 * critical * np.hypot(np.sqrt(standard), g * factor) for name, g in gammas.items()}
        for name, width in by_domain.items():
            close[name] += abs(width / there - 1) <= 0.25
        centres = [(interval.low + interval.high) / 2 for interval in found[PRIVATE]]
        centre = np.mean(centres)
        positive += [middle > 0 for middle in centres]
        inside += [b.low <= a.low and a.high <= b.high for a, b in zip(found[VALID], found[PRIVATE], strict=True)]
        ours = mean_width(intervals(results[OURS], OURS, epsilon, alpha))
        cube = by_domain["the unit cube, covariates in their own units"]
        widths = mean_width(found[PRIVATE]), cube, ours
        numbers = [estimate, centre, valid[1] - valid[0], mean_width(found[VALID]), there, *widths, implied]
        lines.append([LEVELS[alpha], f"{epsilon:g}", *(f"{number:.3g}" for number in numbers)])
        published_widths.append(there)
        here.append(widths)
        needed.append(float(implied))
    likely = [name for name, count in close.items() if count == len(TABLE2)]
    declared = close["the declared ranges"]
    return Page(
        lead=f"Right heart catheter and death within 180 days, {exact.n:,} patients, eight confounders, kernel "
        f"learner, δ = {DELTA:g}, ε₁ = ε/2. Private estimates and mean widths of intervals; published numbers come "
        "first. *Unit cube*: PrivATE's width with the supremum over [0, 1] for every covariate, in its own unit. "
        "*Implied γ* is the gross-error sensitivity that the published width needs at this split.",
        head=[
            *("level", "ε", "estimate, paper", "estimate", "valid naive, paper", "valid naive", "PrivATE, paper"),
            *("PrivATE", "PrivATE, unit cube", "discreet", "implied γ"),
        ],
        lines=lines,
        remarks=[
            f"The published widths need a γ between {min(needed):.3g} and {max(needed):.3g}. The paper does not say "
            "over which domain it takes the supremum. Over "
            + "; over ".join(
                f"{name} γ is {g:.3g} ({close[name]} of {len(TABLE2)} widths within 25 %)" for name, g in gammas.items()
            )
            + ".",
            f"What reproduces all published widths: {', and '.join(likely) or 'none of these'}. {_UNIT_CUBE}",
            _SHARED_DRAWS,
            "The text's non-private effect of 1.17 cannot be a difference of probabilities; here it is "
            f"{exact.tau:.3f} (standard error {np.sqrt(standard):.3f}).",
            *_SAME_RECORDS,
        ],
        aims=[*_width_aims(declared, likely), *_finding_aims(positive, inside)],
        seeds=f"noise from {NOISE_SEED}",
        replications=len(rows),
        figure=_widths(published_widths, here),
    )


def table3(results: Results) -> Page:
    """Coverage on a randomised trial."""
    methods = {DIFFERENCE: DIFFERENCE, "kernel": PRIVATE, "nn": PRIVATE, OURS: OURS}
    lines, widths, checked, narrower, narrowest = [], {}, [], [], []
    for alpha, published in zip(ALPHAS, TABLE3, strict=True):
        line = [LEVELS[alpha]]
        for cell, method in methods.items():
            found = intervals(results[cell], method, EPSILON, alpha)
            widths[cell] = mean_width(found)
            checked.append((cell, 1 - alpha, [interval.covers for interval in found]))
            line += [f"{published[len(line) // 3]:.3f}"] if cell != OURS else []
            line += [share([interval.covers for interval in found]), f"{widths[cell]:.3g}"]
        line += [f"{widths[cell] / widths[OURS]:.3g}" for cell in methods if cell != OURS]
        narrower.append(max(widths["kernel"], widths["nn"]) / widths[DIFFERENCE])
        narrowest.append(widths[OURS] / min(width for cell, width in widths.items() if cell != OURS))
        lines.append(line)
    figure, (ax,) = axes(width=6.4, height=3.2)
    ax.barh(range(len(widths)), list(widths.values()), color=[ORANGE if cell != OURS else BLUE for cell in widths])
    ax.set_yticks(range(len(widths)), list(widths))
    ax.invert_yaxis()
    ax.set_xlabel("mean width of 95 % intervals")
    names = {DIFFERENCE: "difference", "kernel": "PrivATE (Kernel)", "nn": "PrivATE (NN)"}
    return Page(
        lead=f"Randomised trial, n = {runs.TRIAL_N:,}, ε = {EPSILON:g}, δ = {DELTA:g}, propensity 0.5 known: coverage "
        "(published, then ours ± one standard error) and mean widths, and widths as multiples of `discreet.ATE`'s.",
        head=[
            "level",
            *(f"{name}{what}" for name in names.values() for what in (", paper", "", ", width")),
            *("discreet", "discreet, width"),
            *(f"{name} / discreet" for name in names.values()),
        ],
        lines=lines,
        remarks=[
            "The paper says ten runs; its standard errors are those of a hundred.",
            "Guha and Reiter's difference of means was written for binary outcomes, and the paper does not say how it "
            "was run on these: `SubsampledDifference` (25 groups) stands in for it.",
            "ε₁ = ε/2, the paper's default.",
        ],
        aims=[
            nominal(checked),
            Aim(
                "PrivATE's intervals are narrower than those of the private difference of means",
                max(narrower) < 1,
                f"at most {max(narrower):.3g} times as wide",
            ),
            Aim(
                "those of `discreet.ATE` are narrower than all others",
                max(narrowest) < 1,
                f"at most {max(narrowest):.3g} times as wide",
            ),
        ],
        seeds=SEEDS,
        replications=len(results["kernel"]),
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
            "The paper has no such table. Its noise is only as large as its search is thorough: on average the search "
            f"found {', '.join(f'{line[-2]} of the grid for {line[0]}' for line in lines)}. (Gradients of a forest are "
            "zero almost everywhere.)",
            "The forest is none of the paper's learners, but its framework is offered for any.",
        ],
        seeds=f"studies from {STUDY_SEED}; no noise is drawn",
        replications=len(results["kernel"]),
        figure=figure,
    )


def _percent(*values: float) -> list[str]:
    return [f"{100 * value:.0f} %" for value in values]
