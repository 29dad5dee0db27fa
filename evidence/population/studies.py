"""Random studies with their truth: effects, propensities, and how narrow an interval could be without privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit

from discreet.data.bounds import Bounds
from discreet.datasets.study import Study
from evidence.population.covariates import Covariates, Dependence, random_covariates
from evidence.population.outcomes import KINDS, Kind, Outcome, random_outcome
from evidence.population.surfaces import REFERENCE, SHAPES, Shape, Surface, random_surface

Float = NDArray[np.float64]
Design = Literal["observational", "trial", "stratified trial"]
# Studies from this number on are for reporting, those below it for choosing.
REPORTING = 1_000_000
_COVARIATES = (0, 1, 2, 3, 5, 8, 12, 20, 40, 100)
_TRUTH = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What kind of study it is: groups in which coverage is counted."""

    number: int
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
    truth_error
        Standard error of ``study.ate``, which is a mean over very many draws.
    """

    facts: Facts
    study: Study
    known: Any
    efficiency: float
    truth_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """Everything but the records."""

    covariates: Covariates
    treatment: Surface
    prognosis: Surface
    modifier: Surface
    level: float
    pull: float
    confounding: float
    effect: float
    varies: float
    overlap: float
    outcome: Outcome | None = None

    def propensity(self, v: Float) -> Float:
        return np.clip(expit(self.level + self.pull * self.treatment(v)), self.overlap, 1.0 - self.overlap)

    def etas(self, v: Float) -> tuple[Float, Float]:
        shared = self.confounding * self.treatment(v)
        control = shared + np.sqrt(1.0 - self.confounding**2) * self.prognosis(v)
        return control, control + self.effect + self.varies * self.modifier(v)


def random_study(number: int, *, largest: int = 3_000_000) -> RandomStudy:
    """The study of this number; longer ones than ``largest`` are cut to it, and say so by their ``n``."""
    rng = np.random.default_rng([number, 20_261_117])
    n = min(int(np.exp(rng.uniform(np.log(200.0), np.log(3_000_000.0)))), largest)
    p = _COVARIATES[int(rng.integers(len(_COVARIATES)))]
    design: Design = ("observational", "observational", "trial", "stratified trial")[int(rng.integers(4))]
    shape, effect = (SHAPES[int(rng.integers(len(SHAPES)))] for _ in range(2))
    kind, explained = KINDS[int(rng.integers(len(KINDS)))], float(rng.uniform(0.05, 0.95))
    world = _world(rng, p, design, shape, effect, kind, explained)
    facts = Facts(
        number=number,
        n=n,
        p=p,
        epsilon=float(np.exp(rng.uniform(np.log(0.1), np.log(10.0)))),
        delta=min(1e-5, 0.1 / n),
        outcome=kind,
        surface=shape,
        effect=effect,
        design=design,
        dependence=world.covariates.dependence,
        explained=explained,
        overlap=world.overlap,
        confounding=world.confounding,
    )
    return _drawn(rng, facts, world)


def _world(rng: Generator, p: int, design: Design, shape: Shape, effect: Shape, kind: Kind, explained: float) -> _World:
    covariates = random_covariates(rng, p)
    _, reference = covariates.draw(rng, REFERENCE)
    treatment, prognosis = (random_surface(rng, shape, reference) for _ in range(2))
    observed = design == "observational"
    share = float(rng.uniform(0.05, 0.95)) if not observed else float(rng.uniform(0.1, 0.9))
    pull = 0.0 if design == "trial" or not p else float(rng.uniform(0.2, 2.5))
    world = _World(
        covariates=covariates,
        treatment=treatment,
        prognosis=prognosis,
        modifier=random_surface(rng, effect, reference),
        level=float(np.log(share / (1.0 - share))),
        pull=pull,
        # Of both signs, and now and then all there is.
        confounding=float(rng.choice([0.0, -0.9, -0.5, 0.5, 0.9, 1.0])) if p else 0.0,
        effect=float(rng.choice([0.0, 0.2, 0.5, 1.0]) * rng.choice([-1.0, 1.0])),
        varies=float(rng.choice([0.0, 0.1, 0.3, 1.0])) if p else 0.0,
        overlap=float(rng.choice([0.01, 0.03, 0.1, 0.2])) if pull else min(share, 1.0 - share, 0.05),
    )
    control, treated = world.etas(reference)
    etas = np.where(rng.random(REFERENCE) < world.propensity(reference), treated, control)
    outcome = random_outcome(rng, kind, explained, etas)
    return _World(**{name: getattr(world, name) for name in world.__slots__} | {"outcome": outcome})


def _drawn(rng: Generator, facts: Facts, world: _World) -> RandomStudy:
    outcome = world.outcome
    assert outcome is not None
    frame, v = world.covariates.draw(rng, facts.n)
    e = world.propensity(v)
    t = (rng.random(facts.n) < e).astype(np.float64)
    # Both arms in every study: an effect needs them.
    t[:2] = (0.0, 1.0)
    control, treated = world.etas(v)
    y = outcome.draw(rng, np.where(t > 0.5, treated, control))
    (mean0, _), (mean1, _) = outcome.moments(control), outcome.moments(treated)
    ate, truth_error, efficiency = _truth(rng, world, outcome, facts.n)
    columns = {name: column.spec for name, column in zip(frame.columns, world.covariates.columns, strict=True)}
    low, high = outcome.declared.low, outcome.declared.high
    bounds = Bounds(outcome=(low, high), covariates=columns, propensity=(world.overlap, 1.0 - world.overlap))
    study = Study(
        name=f"study {facts.number}",
        X=frame if facts.p else None,
        T=t,
        Y=y,
        bounds=bounds,
        ate=ate,
        effects=mean1 - mean0,
        propensity=e,
    )
    known = None if facts.design == "observational" else float(e[0]) if facts.design == "trial" else e
    return RandomStudy(facts=facts, study=study, known=known, efficiency=efficiency, truth_error=truth_error)


def _truth(rng: Generator, world: _World, outcome: Outcome, n: int) -> tuple[float, float, float]:
    """Average effect, its Monte Carlo error, and the efficiency bound at n."""
    _, v = world.covariates.draw(rng, _TRUTH)
    e, (control, treated) = world.propensity(v), world.etas(v)
    (mean0, var0), (mean1, var1) = outcome.moments(control), outcome.moments(treated)
    effects = mean1 - mean0
    variance = effects.var() + (var1 / e + var0 / (1.0 - e)).mean()
    return float(effects.mean()), float(effects.std() / np.sqrt(_TRUTH)), float(np.sqrt(variance / n))
