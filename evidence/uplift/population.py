"""Random trials by segment with their truth, and what intervals of `Uplift` do on them.

Trials below `REPORTING` are for choosing, those from it on for reporting. One fit each; a segment's truth is its effect
on the clipped outcome in the population.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from discreet import Bounds, Uplift, UpliftRelease
from discreet.data._arrays import Float
from discreet.privacy.guarantee import Neighbours
from discreet.testing import seeded_noise
from evidence.population.outcomes import KINDS, Kind, Outcome, random_outcome
from evidence.population.studies import REPORTING
from evidence.reproduce.private_ate.noise_runs import noise_seed

__all__ = ["REPORTING", "Facts", "Measured", "RandomTrial", "fitted", "measured", "random_trial"]

NOISE_SEED = 91_000_000
LEVEL = 0.05
Cut = Literal["range", "levels", "crossed"]
Effect = Literal["zero", "constant", "smooth", "jumps"]
Design = Literal["known", "unknown", "by segment", "weighted"]
# Segments that vary less without treatment are taken to be alike: their scale is then one.
_LEVEL_GROUND = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What kind of trial it is: groups in which coverage is counted."""

    number: int
    n: int
    segments: int
    cut: Cut
    outcome: Kind
    events: float
    """mean of the clipped outcome in its declared range, from 0 to 1: the share of events where it is binary"""
    effect: Effect
    design: Design
    treated: float
    epsilon: float
    delta: float | None
    neighbours: Neighbours


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomTrial:
    """Records with the truth of their segments.

    Parameters
    ----------
    facts
        What kind of trial it is.
    given
        What `Uplift` is made with.
    y, t, x
        Records.
    truth
        Effect in each segment, in the order of the released table.
    open_sd
        Standard error of each segment's difference of means, without privacy and by the true variances.
    """

    facts: Facts
    given: dict[str, Any]
    y: Float
    t: Float
    x: pa.Table
    truth: Float
    open_sd: Float


class Measured(NamedTuple):
    """What intervals do on one trial."""

    held: float
    """share of segments that their interval covers"""
    all_held: float
    """1 where all simultaneous intervals cover, or else 0"""
    average_held: float
    farthest_held: float
    """whether the interval covers the segment whose effect is farthest from the others', by its own standard error"""
    width: float
    """mean width of intervals, in widths of those without privacy and smoothing"""
    error: float
    """root mean square of the smoothed effects' errors, in such standard errors"""


def random_trial(number: int) -> RandomTrial:
    """One of the population; a number is a trial for ever."""
    rng = np.random.default_rng([7_300_000, number])
    n = int(np.exp(rng.uniform(np.log(500), np.log(300_000))))
    cut: Cut = rng.choice(get_args(Cut))
    rows, columns = _parts(rng, cut)
    segments = rows * columns
    effect: Effect = rng.choice(get_args(Effect))
    control, gain = _levels(rng, effect, cut, rows, columns)
    share = rng.dirichlet(np.full(segments, rng.choice([1.5, 5.0, 50.0])))
    kind, explained = rng.choice(KINDS), float(rng.uniform(0.1, 0.7))
    etas, spread = np.tile(np.concatenate([control, control + gain]), 200), float(control.std())
    outcome = random_outcome(rng, kind, explained, etas, spread if spread > _LEVEL_GROUND else 1.0)
    design: Design = rng.choice(get_args(Design), p=[0.4, 0.3, 0.2, 0.1])
    overall = float(rng.uniform(0.1, 0.9))
    chance = np.full(segments, overall)
    if design in ("by segment", "weighted"):
        chance = np.clip(overall + rng.uniform(-0.15, 0.15, segments), 0.08, 0.92)
    segment = rng.choice(segments, n, p=share)
    t = (rng.random(n) < chance[segment]).astype(np.float64)
    y = outcome.draw(rng, control[segment] + t * gain[segment])
    means, variances = zip(*(outcome.moments(eta) for eta in (control, control + gain)), strict=True)
    numbers = np.maximum(np.stack([np.bincount(segment[t == arm], minlength=segments) for arm in (0, 1)]), 1)
    low, high = _ends(outcome)
    facts = Facts(
        number=number,
        n=n,
        segments=segments,
        cut=cut,
        outcome=outcome.kind,
        events=float(share @ (means[0] + means[1]) / 2 - low) / (high - low),
        effect=effect,
        design=design,
        treated=overall,
        epsilon=float(np.exp(rng.uniform(np.log(0.1), np.log(10)))),
        delta=None if rng.random() < 0.5 else 1e-6,
        neighbours="add-remove" if rng.random() < 0.25 and design != "weighted" else "replace-one",
    )
    propensity = {"known": overall, "weighted": chance[segment]}.get(design)
    return RandomTrial(
        facts=facts,
        given=_given(facts, outcome, rows, columns) | {"propensity": propensity},
        y=y,
        t=t,
        x=_covariates(rng, segment, rows, columns),
        truth=means[1] - means[0],
        open_sd=np.sqrt((np.stack(variances) / numbers).sum(axis=0)),
    )


def fitted(trial: RandomTrial) -> UpliftRelease:
    """The release of one fit, its noise drawn from the trial's own seed."""
    with seeded_noise(noise_seed(NOISE_SEED, "uplift population", trial.facts.number)):
        release = Uplift(**trial.given).fit(trial.y, trial.t, X=trial.x).release_
    assert isinstance(release, UpliftRelease)
    return release


def measured(release: UpliftRelease, truth: Float, open_sd: Float) -> Measured:
    """Whether intervals hold the truth, and how wide they are."""
    (low, high), (lowest, highest) = release.interval(LEVEL), release.interval(LEVEL, simultaneous=True)
    held = (low <= truth) & (truth <= high)
    effects, share = release.effects, release.counts / release.counts.sum()
    first, last = release.ate_interval(LEVEL)
    unit = np.maximum(open_sd, 1e-6 * release.bounds.outcome_width)
    farthest = int(np.argmax(np.abs(truth - np.median(truth)) / unit))
    return Measured(
        held=float(held.mean()),
        all_held=float(np.all((lowest <= truth) & (truth <= highest))),
        average_held=float(first <= share @ truth <= last),
        farthest_held=float(held[farthest]),
        width=float(np.mean((high - low) / (2 * 1.96 * unit))),
        error=float(np.sqrt(np.mean(((effects - truth) / unit) ** 2))),
    )


def _ends(outcome: Outcome) -> tuple[float, float]:
    return outcome.declared.low, outcome.declared.high


def _parts(rng: Generator, cut: Cut) -> tuple[int, int]:
    """Parts of the range, and levels: 1 to 32 segments."""
    if cut == "crossed":
        rows = int(rng.integers(2, 9))
        return rows, int(rng.integers(2, max(3, 32 // rows + 1)))
    many = int(np.exp(rng.uniform(0.0, np.log(32.99))))
    return (many, 1) if cut == "range" else (1, max(many, 2))


def _levels(rng: Generator, effect: Effect, cut: Cut, rows: int, columns: int) -> tuple[Float, Float]:
    """Places of the segments' outcomes on their scale without treatment, and what treatment adds."""
    control = rng.uniform(0.0, 1.0) * _surface(rng, rows, columns, rough=rng.random() < 0.5)
    size, mean = float(rng.uniform(0.1, 1.0)), float(rng.normal(0.0, 0.5))
    if effect == "zero":
        return control, np.zeros(rows * columns)
    if effect == "constant":
        return control, np.full(rows * columns, mean)
    if effect == "smooth":
        return control, mean + size * _surface(rng, rows, columns, rough=False)
    jumps = rng.random(rows * columns) < rng.choice([0.1, 0.3, 0.5])
    return control, mean + size * rng.choice([-2.0, 2.0]) * jumps


def _surface(rng: Generator, rows: int, columns: int, rough: bool) -> Float:
    """A wave along the range with a level of its own for each column; or no order at all."""
    if rough:
        return rng.normal(size=rows * columns)
    place = np.linspace(-1.0, 1.0, rows)[:, None]
    wave = np.sin(rng.uniform(0.5, 4.0) * place + rng.uniform(0, 2 * np.pi))
    return np.asarray((wave + (columns > 1) * rng.normal(size=columns)).ravel())


def _given(facts: Facts, outcome: Outcome, rows: int, columns: int) -> dict[str, Any]:
    by: dict[str, Any] = {"range": {"r": rows}, "levels": {"l": "levels"}, "crossed": {"r": rows, "l": "levels"}}
    bounds = Bounds(
        outcome=_ends(outcome),
        covariates={"r": (0.0, 1.0), "l": [f"l{k}" for k in range(max(columns, 2))]},
        propensity=(0.05, 0.95),
    )
    budget = {"epsilon": facts.epsilon, "delta": facts.delta, "neighbours": facts.neighbours}
    return {"bounds": bounds, "by": by[facts.cut]} | budget


def _covariates(rng: Generator, segment: Any, rows: int, columns: int) -> pa.Table:
    row, column = np.divmod(segment, columns)
    place = (row + rng.random(len(segment))) / rows
    levels = np.array([f"l{k}" for k in range(columns)])
    return pa.table({"r": np.minimum(place, 1.0 - 1e-12), "l": levels[column]})
