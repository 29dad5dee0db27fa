"""Random studies with their truth: effects, propensities, and how narrow an interval could be without privacy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit

from discreet.data.bounds import Bounds
from discreet.datasets.study import Study
from evidence.population.covariates import Dependence, Rows, drawn_rows
from evidence.population.outcomes import KINDS, Kind, Outcome, random_outcome
from evidence.population.real import COLUMNS, is_there, real_rows
from evidence.population.surfaces import SHAPES, Shape, random_surface

Float = NDArray[np.float64]
Design = Literal["observational", "trial", "stratified trial"]
# Studies from this number on are for reporting, those below it for choosing.
REPORTING = 1_000_000
# Where covariates of nobody in particular come from.
DRAWN = "drawn"
_COVARIATES = (0, 1, 2, 3, 5, 8, 12, 20, 40, 100)
# Of studies that have a number of covariates that some data set has.
_REAL = 1 / 3
# Values of covariates in a study: larger tables are cut, because of memory.
_CELLS = 30_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What kind of study it is: groups in which coverage is counted."""

    number: int
    covariates: str
    """the data set that they come from, or the word for drawn ones"""
    n: int
    p: int
    epsilon: float
    delta: float
    outcome: Kind
    surface: Shape
    effect: Shape
    design: Design
    dependence: Dependence
    explained: float
    """share of the outcome's variance, before links and clips, that covariates explain"""
    overlap: float
    confounding: float
    """correlation of what moves treatment with what moves the outcome"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomStudy:
    """Records with their truth.

    Parameters
    ----------
    facts
        What kind of study it is.
    study
        Records and bounds; ``ate`` is the average effect on the clipped outcome in the population, ``effects`` and
        ``propensity`` are each record's.
    known
        Probability of treatment where it is known by design: a number, or one for each record.
    efficiency
        Standard error of the doubly robust score with the true models: no regular estimator has a smaller one.
    averages
        The same two numbers, effect and smallest standard error, of averages over some of the population, by name.
    means
        Mean outcome of everybody without and with treatment.
    """

    facts: Facts
    study: Study
    known: Any
    efficiency: float
    averages: dict[str, tuple[float, float]]
    means: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """What moves treatment and outcome, for every row of the population."""

    rows: Rows
    propensity: Float
    control: Float
    treated: Float
    outcome: Outcome
    overlap: float
    confounding: float


def random_study(number: int, *, largest: int = 3_000_000) -> RandomStudy:
    """The study of this number; longer ones than ``largest`` are cut to it, and say so by their ``n``.

    Raises `discreet.InvalidInput` where its covariates are those of a data set that is not on this machine: such a
    study is never replaced by another one. `available` says which numbers can be drawn.
    """
    rng, facts = _facts(number, largest)
    rows = drawn_rows(rng, facts.p) if facts.covariates == DRAWN else real_rows(rng, facts.covariates, facts.p)
    world = _world(rng, facts, rows)
    facts = replace(facts, dependence=rows.dependence, overlap=world.overlap, confounding=world.confounding)
    return _drawn(rng, facts, world)


def available(numbers: Iterable[int]) -> list[int]:
    """Those of the numbers whose studies can be drawn here; the others need a data set that is absent."""
    there = {DRAWN: True} | {source: is_there(source) for source in COLUMNS}
    return [number for number in numbers if there[source_of(number)]]


def source_of(number: int) -> str:
    """Where the covariates of a study come from: a data set, or "drawn"."""
    return _facts(number, 1_000)[1].covariates


def _facts(number: int, largest: int) -> tuple[Generator, Facts]:
    """What is drawn first, without any data; the generator goes on from there."""
    rng = np.random.default_rng([number, 20_261_118])
    n = int(np.exp(rng.uniform(np.log(200.0), np.log(3_000_000.0))))
    p = _COVARIATES[int(rng.integers(len(_COVARIATES)))]
    fitting = [source for source, columns in COLUMNS.items() if 0 < p <= columns]
    real, which = bool(rng.random() < _REAL), int(rng.integers(60))
    shape, effect = (SHAPES[int(rng.integers(len(SHAPES)))] for _ in range(2))
    facts = Facts(
        number=number,
        covariates=fitting[which % len(fitting)] if real and fitting else DRAWN,
        n=min(n, largest, _CELLS // max(p, 1)),
        p=p,
        epsilon=float(np.exp(rng.uniform(np.log(0.1), np.log(10.0)))),
        delta=min(1e-5, 0.1 / n),
        outcome=KINDS[int(rng.integers(len(KINDS)))],
        surface=shape,
        effect=effect,
        design=("observational", "observational", "trial", "stratified trial")[int(rng.integers(4))],
        dependence="independent",
        explained=float(rng.uniform(0.05, 0.95)),
        overlap=0.0,
        confounding=0.0,
    )
    return rng, facts


def _world(rng: Generator, facts: Facts, rows: Rows) -> _World:
    v, p, design = rows.scores, facts.p, facts.design
    treatment, prognosis = (random_surface(rng, facts.surface, v) for _ in range(2))
    modifier = random_surface(rng, facts.effect, v)
    share = float(rng.uniform(0.1, 0.9) if design == "observational" else rng.uniform(0.05, 0.95))
    pull = 0.0 if design == "trial" or not p else float(rng.uniform(0.2, 2.5))
    overlap = float(rng.choice([0.01, 0.03, 0.1, 0.2])) if pull else min(share, 1.0 - share, 0.05)
    moved = treatment(v)
    level = float(np.log(share / (1.0 - share)))
    e = np.clip(expit(level + pull * moved), overlap, 1.0 - overlap)
    # Of both signs, and now and then all there is.
    confounding = float(rng.choice([0.0, -0.9, -0.5, 0.5, 0.9, 1.0])) if p else 0.0
    control = confounding * moved + np.sqrt(1.0 - confounding**2) * prognosis(v)
    effect = float(rng.choice([0.0, 0.2, 0.5, 1.0]) * rng.choice([-1.0, 1.0]))
    varies = float(rng.choice([0.0, 0.1, 0.3, 1.0])) if p else 0.0
    treated = control + effect + varies * modifier(v)
    etas = np.where(rng.random(len(v)) < e, treated, control)
    spread = float(control.std())
    outcome = random_outcome(rng, facts.outcome, facts.explained, etas, spread if spread > 1e-9 else 1.0)
    return _World(
        rows=rows,
        propensity=e,
        control=control,
        treated=treated,
        outcome=outcome,
        overlap=overlap,
        confounding=confounding,
    )


def _drawn(rng: Generator, facts: Facts, world: _World) -> RandomStudy:
    outcome, rows = world.outcome, world.rows
    (mean0, var0), (mean1, var1) = outcome.moments(world.control), outcome.moments(world.treated)
    effects, e = mean1 - mean0, world.propensity
    variance = effects.var() + (var1 / e + var0 / (1.0 - e)).mean()
    of = rng.integers(len(e), size=facts.n)
    t = (rng.random(facts.n) < e[of]).astype(np.float64)
    # Both arms in every study: an effect needs them.
    t[:2] = (0.0, 1.0)
    y = outcome.draw(rng, np.where(t > 0.5, world.treated[of], world.control[of]))
    low, high = outcome.declared.low, outcome.declared.high
    names = [f"x{j}" for j in range(facts.p)]
    study = Study(
        name=f"study {facts.number}",
        X=rows.values[of] if facts.p else None,
        T=t,
        Y=y,
        bounds=Bounds(
            outcome=(low, high),
            covariates=dict(zip(names, rows.specs, strict=True)),
            propensity=(world.overlap, 1.0 - world.overlap),
        ),
        ate=float(effects.mean()),
        effects=effects[of],
        propensity=e[of],
    )
    known = None if facts.design == "observational" else float(e[0]) if facts.design == "trial" else e[of]
    efficiency = float(np.sqrt(variance / facts.n))
    return RandomStudy(
        facts=facts,
        study=study,
        known=known,
        efficiency=efficiency,
        averages=_averages(e, effects, var0, var1, facts.n),
        means=(float(mean0.mean()), float(mean1.mean())),
    )


def _averages(e: Float, effects: Float, var0: Float, var1: Float, n: int) -> dict[str, tuple[float, float]]:
    """Effects on the treated, on the untreated and in the overlap, with their efficiency bounds.

    The bounds are those of unknown probabilities of treatment: weights, and the mean square of what counts a record.
    """
    weights = {
        "ATT": (e, e),
        "ATC": (1.0 - e, 1.0 - e),
        "ATO": (e * (1.0 - e), e * (1.0 - e) * ((1.0 - e) ** 3 + e**3)),
    }
    found = {}
    for name, (h, square) in weights.items():
        average = float(h @ effects / h.sum())
        variance = (h**2 * (var1 / e + var0 / (1.0 - e)) + square * (effects - average) ** 2).mean() / h.mean() ** 2
        found[name] = average, float(np.sqrt(variance / n))
    return found
