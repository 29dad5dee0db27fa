"""DP-CATE's equations, one function each; numbers in brackets are the paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.papers.common.nuisances import Nuisances

_GRID = 1_001


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight function lambda(pi) of an orthogonal loss (3), with its derivative.

    Parameters
    ----------
    name
        For people.
    value, slope
        lambda and its derivative, at arrays of propensities.

    Examples
    --------
    >>> import numpy as np
    >>> overlap = Weight("overlap", value=lambda pi: pi * (1 - pi), slope=lambda pi: 1 - 2 * pi)
    >>> overlap.value(np.array([0.5, 0.1])).round(2)
    array([0.25, 0.09])
    """

    name: str
    value: Callable[[Float], Float]
    slope: Callable[[Float], Float]


R_LEARNER = Weight("R", lambda pi: pi * (1.0 - pi), lambda pi: 1.0 - 2.0 * pi)
DR_LEARNER = Weight("DR", np.ones_like, np.zeros_like)


def weight_of(learner: str | Weight) -> Weight:
    """The weight function of a learner, by name or as it is."""
    if isinstance(learner, Weight):
        return learner
    named = {"R": R_LEARNER, "DR": DR_LEARNER}
    if not isinstance(learner, str) or learner not in named:
        raise InvalidInput("learner must be 'R', 'DR' or a Weight with value and slope: choose one.")
    return named[learner]


def rho(a: Float, pi: Float, weight: Weight) -> Float:
    """Weight of one record in the loss, (4); (a - pi)^2 for the R-learner and 1 for the DR-learner."""
    if weight is R_LEARNER:
        # The same number, and never beyond its bound by a rounding error.
        return (a - pi) ** 2
    return np.asarray((a - pi) * weight.slope(pi) + weight.value(pi))


def weighted_pseudo_outcome(y: Float, a: Float, parts: tuple[Float, Float, Float], weight: Weight) -> Float:
    """rho phi: the pseudo-outcome (5) times its weight, which is defined where rho vanishes, too."""
    pi, mu0, mu1 = parts
    residual = y - np.where(a > 0.0, mu1, mu0)
    if weight is R_LEARNER:
        # (a - pi)(y - m) with m = pi mu_1 + (1 - pi) mu_0: (5) without cancellation.
        return np.asarray((a - pi) * (y - pi * mu1 - (1.0 - pi) * mu0))
    return np.asarray(weight.value(pi) * (a - pi) / (pi * (1.0 - pi)) * residual + rho(a, pi, weight) * (mu1 - mu0))


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """rho (phi - g), what Theorems 1 and 2 are about, as a function of a record.

    Parameters
    ----------
    nuisances
        First stage.
    weight
        lambda(pi).
    effect
        Second stage g: from encoded covariates to effects.
    """

    nuisances: Nuisances
    weight: Weight
    effect: Callable[[Float], Float]

    def __call__(self, y: Float, a: Float, x: Float) -> Float:
        parts = self.nuisances.parts(x)
        return weighted_pseudo_outcome(y, a, parts, self.weight) - rho(a, parts[0], self.weight) * self.effect(x)


class Extent(NamedTuple):
    """What the declared overlap allows: sup |rho phi| over the outcome's width, sup rho, and inf lambda."""

    pseudo: float
    rho: float
    least_weight: float


def extent(weight: Weight, bounds: Bounds, known: float | None = None) -> Extent:
    """Extremes over all records whose predicted outcomes lie in the outcome's range.

    rho phi is linear in y, mu_0 and mu_1 with coefficients that add up to zero, so that its supremum is the width of
    their range times the positive coefficients. Those of the R- and DR-learner are monotone in the propensity, and the
    ends of the overlap are on the grid: docs/proofs/dp_cate.md, lemma 1.
    """
    low, high = bounds.propensity if known is None else (known, known)
    pi = np.linspace(low, high, _GRID)
    pseudo, heaviest = 0.0, 0.0
    for arm in (0.0, 1.0):
        own = weight.value(pi) * (arm - pi) / (pi * (1.0 - pi))
        heavy = rho(np.full_like(pi, arm), pi, weight)
        # rho phi = own (y - mu_a) + heavy (mu_1 - mu_0)
        others = (heavy - own, -heavy) if arm else (heavy, -heavy - own)
        positive = np.maximum(own, 0.0) + sum(np.maximum(other, 0.0) for other in others)
        pseudo, heaviest = max(pseudo, float(positive.max())), max(heaviest, float(np.abs(heavy).max()))
    return Extent(pseudo, heaviest, float(np.min(weight.value(pi))))


def check_weight(weight: Weight, bounds: Bounds, known: float | None) -> None:
    """Refuse a weight function that is not positive, or that gives records negative weights, on the overlap."""
    low, high = bounds.propensity if known is None else (known, known)
    pi = np.linspace(low, high, _GRID)
    values = [weight.value(pi), *(rho(np.full_like(pi, arm), pi, weight) for arm in (0.0, 1.0))]
    if not all(np.shape(value) == pi.shape and np.all(np.isfinite(value)) for value in values):
        raise InvalidInput("learner: value and slope must return one finite number for each propensity; check them.")
    if not (np.all(values[0] > 0.0) and np.all(values[1] >= 0.0) and np.all(values[2] >= 0.0)):
        raise InvalidInput(
            "learner gives some records a weight below zero inside the declared overlap: choose another lambda."
        )


def weighted_fit(model: Any, features: Float, targets: Float, weights: Float) -> Any:
    """Fit a regressor with weights; equal ones are left out, for models that know none."""
    if np.ptp(weights) == 0.0:
        return model.fit(features, targets)
    return model.fit(features, targets, sample_weight=weights / weights.mean())
