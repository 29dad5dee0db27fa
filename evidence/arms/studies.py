"""Made-up studies of several arms, drawn at random: designs, outcomes, overlap, effects that differ between people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import ATE, Bounds, DifferenceInMeans
from discreet.testing import seeded_noise

# Seeds below the first may choose something; those from the second on report.
CHOOSING, REPORTING = 0, 1_000_000
_TRUTH = 200_000
KINDS = ("normal", "skewed", "binary", "rare")
DESIGNS = ("means", "trial", "observational")


@dataclass(frozen=True)
class ArmStudy:
    """Records of several arms, with the arms' true means."""

    design: str
    kind: str
    epsilon: float
    Y: Any
    T: Any
    X: Any
    bounds: Bounds
    probabilities: tuple[float, ...]
    means: Any


def draw(seed: int) -> ArmStudy:
    """A study: everything about it follows from its seed."""
    rng = np.random.default_rng([19, seed])
    design, kind = DESIGNS[seed % len(DESIGNS)], KINDS[seed // len(DESIGNS) % len(KINDS)]
    arms, p = int(rng.integers(3, 6)), int(rng.integers(1, 7))
    n = int(np.exp(rng.uniform(np.log(2_000 if design != "observational" else 5_000), np.log(40_000))))
    slopes, tilt = rng.normal(0.0, 0.6, p), rng.normal(0.0, 0.5, (p, arms))
    effects, differs = np.append(0.0, rng.normal(0.0, 0.3, arms - 1)), rng.normal(0.0, 0.3, (p, arms))
    shares = rng.dirichlet(np.full(arms, 8.0))
    probabilities = 0.3 / arms + 0.7 * shares

    def expected(x: Any) -> Any:
        """Mean outcome of each person in each arm, on a scale of its own."""
        return (x @ slopes + 0.4 * (x[:, 0] ** 2 - 0.33))[:, None] + effects + x @ differs

    def outcome(mean: Any) -> Any:
        if kind == "binary":
            return (rng.random(mean.shape) < _expit(mean)).astype(float)
        if kind == "rare":
            return (rng.random(mean.shape) < _expit(mean - 3.5)).astype(float)
        noise = rng.normal(0.0, 1.0, mean.shape) if kind == "normal" else rng.exponential(1.5, mean.shape) - 1.5
        return np.clip(mean + noise, -6.0, 9.0)

    x, far = rng.uniform(-1.0, 1.0, (n, p)), rng.uniform(-1.0, 1.0, (_TRUTH, p))
    chance = np.tile(probabilities, (n, 1))
    if design == "observational":
        linear = np.exp(x @ tilt) * probabilities
        chance = 0.15 / arms + 0.85 * linear / linear.sum(axis=1, keepdims=True)
    t = (rng.random(n)[:, None] > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1)
    means = np.array([np.mean(_on_scale(kind, expected(far)[:, arm])) for arm in range(arms)])
    binary = kind in ("binary", "rare")
    bounds = Bounds(
        outcome=[0, 1] if binary else (-6.0, 9.0),
        covariates=[(-1.0, 1.0)] * p,
        treatment=list(range(arms)),
        propensity=(0.03, 0.9),
    )
    y = outcome(expected(x)[np.arange(n), t])
    return ArmStudy(
        design, kind, float(rng.choice([0.5, 1.0, 2.0])), y, t, x, bounds, tuple(probabilities.tolist()), means
    )


def _expit(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _on_scale(kind: str, mean: Any) -> Any:
    # Clipping at the ends of the range matters to hardly anybody: less than the error of this mean.
    return _expit(mean) if kind == "binary" else _expit(mean - 3.5) if kind == "rare" else mean


def fit(study: ArmStudy, seed: int) -> Any:
    """The release of a study's own estimator."""
    known = None if study.design == "observational" else list(study.probabilities)
    which = DifferenceInMeans if study.design == "means" else ATE
    made = which(epsilon=study.epsilon, delta=1e-6, bounds=study.bounds, propensity=known)
    with seeded_noise(seed):
        return made.fit(study.Y, study.T, X=study.X).release_


@dataclass(frozen=True)
class Line:
    """How the intervals of one study did."""

    seed: int
    design: str
    kind: str
    arms: int
    n: int
    epsilon: float
    covered: float
    at_once: bool
    means: float
    width: float


def measure(seed: int) -> Line:
    """Shares of the contrasts and means whose 95 % intervals hold the truth, whether all do at once, and widths.

    Widths are in those of intervals of the arms' plain means without privacy.
    """
    study = draw(seed)
    release = fit(study, seed)
    truth = dict(zip(study.bounds.arms.levels, study.means, strict=True))
    held = [row.low <= truth[row.arm] - truth[row.against] <= row.high for row in release.contrasts()]
    rows = release.contrasts(simultaneous=True)
    at_once = all(row.low <= truth[row.arm] - truth[row.against] <= row.high for row in rows)
    of_means = [low <= truth[arm] <= high for arm, (_, low, high) in release.means().items()]
    error = {arm: float(np.var(study.Y[arm == study.T]) / np.sum(arm == study.T)) for arm in truth}
    wide = [
        (row.high - row.low) / (2 * 1.96 * np.sqrt(error[row.arm] + error[row.against])) for row in release.contrasts()
    ]
    return Line(
        seed,
        study.design,
        study.kind,
        len(truth),
        len(study.Y),
        study.epsilon,
        float(np.mean(held)),
        bool(at_once),
        float(np.mean(of_means)),
        float(np.median(wide)),
    )
