"""Several sites as one: ``python -m evidence.sites`` writes docs/evidence/sites.md, in a few minutes.

Three questions: whether random effects cover the mean over sites where effects really differ, whether three sites with
one effect are about as good as their records in one place, and what happens where people are at several sites.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

import discreet as dc
from discreet.datasets import Design, draw
from discreet.releases.combined.weighing import People, degrees_of
from evidence.cache import ROOT

SEED = 57_000_000
DELTA, ALPHA = 1e-6, 0.05
COVER, WIDER = 0.93, 1.1
_HOME = ROOT / "docs" / "evidence"
EQUAL, UNEQUAL = (2_000,) * 5, (500, 1_000, 2_000, 4_000, 8_000)
Estimator = Callable[..., Any]


class Line(NamedTuple):
    """What was measured in one cell; the last two where they were asked for."""

    part: str
    design: str
    estimator: str
    sites: str
    epsilon: float
    tau: float
    runs: int
    covered: float
    width: float
    over_pooled: float = math.nan


@dataclass(frozen=True)
class World:
    """A law of sites whose effects differ: how a site with a given effect is drawn, and the mean effect."""

    name: str
    effect: float
    site: Callable[[float], Design]


def _trial(effect: float) -> Design:
    return Design(
        name="numbers",
        bounds=dc.Bounds(outcome=(-8.0, 8.0), covariates=[(-1.0, 1.0)] * 2, propensity=(0.4, 0.6)),
        covariates=lambda n, rng: rng.uniform(-1.0, 1.0, (n, 2)),
        surface=lambda x: (np.full(len(x), 0.5), x[:, 0] + x[:, 1], np.full(len(x), effect)),
        known_ate=effect,
    )


def _events(effect: float) -> Design:
    return Design(
        name="events",
        bounds=dc.Bounds(outcome=(0.0, 1.0), covariates=[(-1.0, 1.0)], propensity=(0.4, 0.6)),
        covariates=lambda n, rng: rng.uniform(-1.0, 1.0, (n, 1)),
        surface=lambda x: (np.full(len(x), 0.5), np.full(len(x), 0.4), np.full(len(x), effect)),
        noise=None,
        known_ate=effect,
    )


def _confounded(effect: float) -> Design:
    return Design(
        name="confounded",
        bounds=dc.Bounds(outcome=(-8.0, 8.0), covariates=[(-1.0, 1.0)] * 3, propensity=(0.1, 0.9)),
        covariates=lambda n, rng: rng.uniform(-1.0, 1.0, (n, 3)),
        surface=lambda x: (
            1.0 / (1.0 + np.exp(-x[:, 0] - x[:, 1])),
            x[:, 0] + x[:, 1] ** 2 + (x[:, 2] > 0),
            np.full(len(x), effect),
        ),
        known_ate=effect,
    )


NUMBERS = World("numbers", 1.0, _trial)
EVENTS = World("events", 0.1, _events)
CONFOUNDED = World("confounded", 1.0, _confounded)
TRIALS = {world.name: world for world in (NUMBERS, EVENTS)}
# World, estimator, standard deviations between sites (about none, one and several standard errors of a site), runs.
RANDOM: tuple[tuple[World, Estimator, tuple[float, ...], int], ...] = (
    (NUMBERS, dc.DifferenceInMeans, (0.0, 0.1, 0.5), 200),
    (EVENTS, dc.DifferenceInMeans, (0.0, 0.02, 0.1), 200),
    (CONFOUNDED, dc.ATE, (0.1, 0.5), 24),
)
# Trial above or published design, estimator, records of each of three sites, runs.
POOLED: tuple[tuple[str, Estimator, int, int], ...] = (
    ("events", dc.DifferenceInMeans, 10_000, 40),
    ("numbers", dc.DifferenceInMeans, 10_000, 40),
    ("numbers", dc.DifferenceInMeans, 50_000, 10),
    ("binary-outcome", dc.ATE, 10_000, 6),
    ("private-ci-1", dc.ATE, 10_000, 6),
    ("clinic", dc.ATE, 10_000, 6),
    ("private-ci-1", dc.ATE, 50_000, 2),
)
EPSILONS = (1.0, 4.0)
# Standard errors of sites, in units of the smallest.
ERRORS = {
    "five alike": (1.0,) * 5,
    "five, 16 times as large as one": (16.0, 8.0, 4.0, 2.0, 1.0),
    "one large of five": (5.0,) * 4 + (1.0,),
    "three, 4 times as large as one": (4.0, 2.0, 1.0),
    "ten, 23 times as large as one": tuple(2.0 ** (k / 2.0) for k in range(10)),
    "one large of ten": (5.0,) * 9 + (1.0,),
}
TAUS, FORMULA_RUNS = (0.0, 1.0, 2.0, 4.0, 16.0), 4_000
SHARED, OVERLAP_RUNS = (0.0, 0.5, 1.0), 100


def _fit(estimator: Estimator, y: Any, t: Any, x: Any, bounds: dc.Bounds, epsilon: float) -> Any:
    return estimator(epsilon=epsilon, delta=DELTA, bounds=bounds).fit(y, t, X=x).release_


def _study(design: str, n: int, seed: int) -> Any:
    trial = TRIALS.get(design)
    return draw(design, n=n, seed=seed) if trial is None else trial.site(trial.effect).draw(n, seed)


def random_effects(world: World, estimator: Estimator, sizes: Sequence[int], tau: float, runs: int) -> Line:
    """Five sites whose effects are normal about a mean: how often the interval of random effects holds it."""
    covered, widths = [], []
    for run in range(runs):
        # Cells have effects of their own, so that they are independent evidence.
        rng = np.random.default_rng([SEED + run, round(1_000 * tau), sum(sizes), len(world.name)])
        effects = world.effect + tau * rng.standard_normal(len(sizes))
        releases = []
        with dc.testing.seeded_noise(SEED + run):
            for place, (effect, n) in enumerate(zip(effects, sizes, strict=True)):
                study = world.site(float(effect)).draw(n, SEED + 100 * run + place)
                releases.append(_fit(estimator, study.Y, study.T, study.X, study.bounds, 1.0))
        low, high = dc.combine(releases, model="random", people="disjoint").interval(ALPHA)
        covered.append(low <= world.effect <= high)
        widths.append(high - low)
    kind = "equal" if len(set(sizes)) == 1 else "unequal"
    sites = f"{len(sizes)}, {kind}"
    return Line("random", world.name, estimator.__name__, sites, 1.0, tau, runs, *_mean(covered, widths))


def by_formula(name: str, errors: Sequence[float], tau: float, seed: int, runs: int = FORMULA_RUNS) -> Line:
    """Sites whose estimates are normal with known errors: how often random effects hold the mean, with two kinds of t.

    Computed here once more, and for all runs at once. The last number is the width over that of one degree of freedom
    less than there are sites, and ``width`` the coverage of that.
    """
    rng, se = np.random.default_rng(seed), np.array(errors)
    values = tau * rng.standard_normal((runs, len(se))) + se * rng.standard_normal((runs, len(se)))

    def squares(between: Any) -> Any:
        weights = 1.0 / (se**2 + between[:, None])
        mean = (weights * values).sum(axis=1) / weights.sum(axis=1)
        return (weights * (values - mean[:, None]) ** 2).sum(axis=1)

    low = np.zeros(runs)
    high = values.var(axis=1, ddof=1)
    none = squares(low) <= len(se) - 1
    for _ in range(60):
        middle = (low + high) / 2.0
        above = squares(middle) > len(se) - 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    weights = 1.0 / (se**2 + np.where(none, 0.0, high)[:, None])
    error = weights.sum(axis=1) ** -0.5
    weights /= weights.sum(axis=1)[:, None]
    off = np.abs((weights * values).sum(axis=1))
    plain = stdtrit(len(se) - 1.0, 1.0 - ALPHA / 2.0) * error
    ours = stdtrit([degrees_of(row) for row in weights], 1.0 - ALPHA / 2.0) * error
    covered, before = float(np.mean(off <= ours)), float(np.mean(off <= plain))
    return Line(
        "formula", name, "known errors", str(len(se)), 1.0, tau, runs, covered, before, float(np.mean(ours / plain))
    )


def beside_pooled(design: str, estimator: Estimator, n: int, epsilon: float, runs: int) -> Line:
    """Three sites with one effect, and the same records in one place with the same budget."""
    covered, widths, over = [], [], []
    for run in range(runs):
        study = _study(design, 3 * n, SEED + run)
        x = np.asarray(study.X)
        with dc.testing.seeded_noise(SEED + run):
            whole = _fit(estimator, study.Y, study.T, x, study.bounds, epsilon)
            parts = [slice(k * n, (k + 1) * n) for k in range(3)]
            sites = [_fit(estimator, study.Y[p], study.T[p], x[p], study.bounds, epsilon) for p in parts]
        low, high = dc.combine(sites, model="fixed", people="disjoint").interval(ALPHA)
        assert study.ate is not None
        covered.append(low <= study.ate <= high)
        widths.append(high - low)
        over.append((high - low) / np.subtract(*whole.interval(ALPHA)[::-1]))
    found = _mean(covered, widths)
    return Line("fixed", design, estimator.__name__, f"3 of {n:,}", epsilon, 0.0, runs, *found, float(np.median(over)))


def overlapping(shared: float, people: People, runs: int) -> Line:
    """Three sites of 2,000 that share a part of their people, with noise of their own: how often the interval holds."""
    covered, widths = [], []
    for run in range(runs):
        n, same = 2_000, round(2_000 * shared)
        study = NUMBERS.site(1.0).draw(3 * n, SEED + run)
        with dc.testing.seeded_noise(SEED + run):
            parts = [np.r_[0:same, same + k * (n - same) : same + (k + 1) * (n - same)] for k in range(3)]
            means = dc.DifferenceInMeans
            sites = [_fit(means, study.Y[p], study.T[p], study.X[p], study.bounds, 1.0) for p in parts]
        low, high = dc.combine(sites, model="fixed", people=people).interval(ALPHA)
        covered.append(low <= 1.0 <= high)
        widths.append(high - low)
    name = f"{100 * shared:.0f} % shared, {people}"
    return Line("overlap", name, "DifferenceInMeans", "3, equal", 1.0, 0.0, runs, *_mean(covered, widths))


def _mean(covered: list[bool], widths: list[float]) -> tuple[float, float]:
    return float(np.mean(covered)), float(np.mean(widths))


def lines(part: float = 1.0) -> Iterator[Line]:
    """All cells, with a part of their runs."""

    def some(runs: int) -> int:
        return max(round(part * runs), 2)

    for place, (name, errors) in enumerate(ERRORS.items()):
        for tau in TAUS:
            yield by_formula(name, errors, tau, SEED + 1_000 * place + round(10 * tau), some(FORMULA_RUNS))
    for world, estimator, taus, runs in RANDOM:
        for sizes in (EQUAL, UNEQUAL):
            yield from (random_effects(world, estimator, sizes, tau, some(runs)) for tau in taus)
    for design, estimator, n, runs in POOLED:
        yield from (beside_pooled(design, estimator, n, epsilon, some(runs)) for epsilon in EPSILONS)
    for shared in SHARED:
        yield from (overlapping(shared, people, some(OVERLAP_RUNS)) for people in ("disjoint", "overlapping"))


def page(found: Sequence[Line], command: str) -> str:
    """The page: what was to be reached, and every cell."""
    kinds = ("random", "fixed", "overlap", "formula")
    random, fixed, overlap, formula = ([line for line in found if line.part == part] for part in kinds)
    differing = [line for line in random if line.tau > 0.0]
    runs = sum(line.runs for line in differing)
    held = sum(line.covered * line.runs for line in differing) / runs
    reached = [line for line in fixed if line.over_pooled <= WIDER]
    lowest = min((line.covered for line in formula), default=1.0)
    worst = min(line.covered for line in differing)
    text = [
        "# Several sites",
        "",
        f"Written by `{command}` on {date.today()}: seeds from {SEED:,} on, δ = {DELTA:g}, 95 % intervals, seeded noise "
        "of the scale of real noise. What unequal weights do to degrees of freedom was chosen by the cells of the first table with another seed, after an earlier run of the cells below (with other effects) had covered in .915 at the least; nothing else was chosen.",
        "",
        "| target | wanted | figure | |",
        "|---|---|---|---|",
        f"| random effects, five sites whose effects differ: coverage | at least {COVER:.2f} | {held:.3f} over {runs:,} "
        f"runs | {_word(held >= COVER)} |",
        f"| the same in the worst of {len(differing)} cells | at least {COVER:.2f} | {worst:.3f} | "
        f"{_word(worst >= COVER)} |",
        f"| fixed effects, three equal sites: width over that of the same records in one place | at most {WIDER:g} | in "
        f"{len(reached)} of {len(fixed)} cells | {_word(len(reached) == len(fixed))} |",
        "",
        "## Sites of unequal weight",
        "",
        f"Estimates that are normal with known errors: coverage of random effects with degrees of freedom by the weights, which `combine` takes, and with one less than "
        f"there are sites, which is the textbook's. The lowest of the former is {lowest:.3f}. Errors are in units of the smallest, and so is tau.",
        "",
        *_table(
            formula,
            ("design", "tau", "runs", "covered", "width", "over_pooled"),
            {"width": "covered with one less", "over_pooled": "times as wide"},
        ),
        "",
        "## Effects that differ",
        "",
        "Effects of sites are normal about the mean that the interval is to hold; tau is their standard deviation. There "
        f"are sites of {EQUAL[0]:,} records each, or of {', '.join(f'{n:,}' for n in UNEQUAL)}; ε = 1.",
        "",
        *_table(random, ("design", "estimator", "sites", "tau", "runs", "covered", "width")),
        "",
        "## One effect, three places",
        "",
        "The same records in three places and in one, with the same ε in each. Sampling errors are the same. But noise is "
        "drawn three times, so that it is √3 times as large in the mean, and what clipping may have shifted, which grows "
        "with the noise of a place, adds up without any root. Three places are as good as one where sampling is most of "
        "the width, and they are not where privacy is.",
        "",
        *_table(fixed, ("design", "estimator", "sites", "epsilon", "runs", "covered", "width", "over_pooled")),
        "",
        "## People at several sites",
        "",
        "Three sites of a trial that share a part of their people. To call them `disjoint` is then a false statement: the guarantee is void, and "
        "the interval does not allow for what errors have in common. `overlapping` holds whatever is shared, and is wider.",
        "",
        *_table(overlap, ("design", "runs", "covered", "width")),
    ]
    return "\n".join(text) + "\n"


def _word(reached: bool) -> str:
    return "reached" if reached else "**not reached**"


def _table(found: Sequence[Line], columns: Sequence[str], called: dict[str, str] | None = None) -> list[str]:
    heads = {"over_pooled": "width over one place", "epsilon": "ε"} | (called or {})
    rows = [[_cell(line._asdict()[column]) for column in columns] for line in found]
    head = [heads.get(column, column) for column in columns]
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(columns), *rows]]


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, and write the page and its table."""
    parser = argparse.ArgumentParser(prog="python -m evidence.sites", description="Coverage and widths of combine.")
    parser.add_argument("--part", type=float, default=1.0, help="part of the runs, for a quick look")
    parser.add_argument("--out", type=Path, default=_HOME, help="folder of the page")
    options = parser.parse_args(arguments)
    if options.part != 1.0 and options.out == _HOME:
        parser.error("a part of the runs is no evidence: name another folder by --out")
    found = list(lines(options.part))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "sites.md").write_text(page(found, "python -m evidence.sites"))
    with (options.out / "sites.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Line._fields)
        writer.writerows([_cell(value) for value in line] for line in found)
    print(f"Written: sites.md and sites.csv in {options.out}")


if __name__ == "__main__":
    main()
