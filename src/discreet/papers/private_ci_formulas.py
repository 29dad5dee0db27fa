"""PrivATE's equations, one function each; numbers in brackets are the paper's."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from discreet.bounds import Bounds, Levels
from discreet.columns import Float
from discreet.noise import published_gaussian
from discreet.papers.private_ci_nuisances import Surfaces
from discreet.papers.rows import in_own_unit
from discreet.scores import aipw_score, aipw_score_bound

# SciPy's own step for the gradients that it takes by differences; here all coordinates are evaluated in one call.
_STEP = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """What PrivATE computes before it draws noise. Not private: never part of a release.

    Parameters
    ----------
    n
        Number of records that were averaged over.
    tau, sigma2
        The AIPW estimate (3) and its variance times n (8).
    gamma
        Gross-error sensitivity (5) of the estimate, at the influence function (6).
    scores
        Gamma of each record, for those who resample them.
    """

    n: int
    tau: float
    sigma2: float
    gamma: float
    scores: Float | None = field(default=None, repr=False, compare=False)

    @property
    def gamma_sigma(self) -> float:
        """Gross-error sensitivity (5) of the variance, at its influence function (9).

        The squared deviation lies between 0 and gamma squared, so no second search is needed.
        """
        return max(self.gamma**2 - self.sigma2, self.sigma2)

    def estimate_noise(self, epsilon: float, delta: float) -> float:
        """Standard deviation r of the noise in Theorem 4.3 (7), (13)."""
        return self.gamma * noise_factor(self.n, epsilon, delta)

    def variance_noise(self, epsilon: float, delta: float) -> float:
        """Standard deviation of the noise in Theorem 4.5 (11), before truncation."""
        return self.gamma_sigma * noise_factor(self.n, epsilon, delta)


class Parts(NamedTuple):
    """What the estimate (1) and the variance (2) spend: epsilon_1 + epsilon_2 is epsilon, and so for delta."""

    epsilon1: float
    delta1: float
    epsilon2: float
    delta2: float


class Published(NamedTuple):
    """What PrivATE publishes: the noisy estimate, the noisy variance, and r, which the width contains."""

    tau: float
    sigma2: float
    r: float


def publish(exact: Exact, parts: Parts) -> Published:
    """Draw the noise of Theorems 4.3 and 4.5."""
    r = exact.estimate_noise(parts.epsilon1, parts.delta1)
    tau = exact.tau + float(published_gaussian(1, r)[0])  # (7)
    spread = exact.variance_noise(parts.epsilon2, parts.delta2)
    sigma2 = max(0.0, exact.sigma2 + float(published_gaussian(1, spread)[0]))  # (11)
    return Published(tau, sigma2, r)


def noise_factor(n: int, epsilon: float, delta: float) -> float:
    """What Theorems 4.3 and 4.5 multiply a gross-error sensitivity by, to get the standard deviation of the noise."""
    return 5.0 * sqrt(2.0 * log(n) * log(2.0 / delta)) / (epsilon * n)


def influence(y: Float, a: Float, x: Float, surfaces: Surfaces) -> Float:
    """The score Gamma of section 4.3; less its mean it is the influence function (6)."""
    pi, prognosis = surfaces(x)
    return aipw_score(y, a, pi, prognosis)


def searched_sensitivity(surfaces: Surfaces, tau: float, bounds: Bounds, *, starts: int, rng: Any) -> float:
    """The supremum of |Gamma - tau| over all records that the bounds allow (5), as the paper looks for it.

    L-BFGS-B runs from random points, so many for each arm, over ranges and outcome; levels stay where a point has them.
    A local search can only miss the supremum: what it returns is a lower bound.
    """
    from scipy.optimize import minimize
    from sklearn import config_context

    levels = [len(spec.levels) if isinstance(spec, Levels) else 0 for spec in bounds.columns]
    moves = np.array([not count for count in levels])
    box = [(-1.0, 1.0)] * (int(moves.sum()) + 1)
    best = 0.0
    for arm in (0.0, 1.0):
        for _ in range(starts):
            x = np.array([rng.randint(count) if count else rng.uniform(-1.0, 1.0) for count in levels])
            start = np.append(x[moves], rng.uniform(-1.0, 1.0))

            def objective(z: Float, arm: float = arm, x: Float = x) -> tuple[float, Float]:
                points, steps = _with_neighbours(z)
                rows = np.tile(x, (len(points), 1))
                rows[:, moves] = points[:, :-1]
                y = in_own_unit(points[:, -1], bounds)
                size = np.abs(influence(y, np.full(len(points), arm), rows, surfaces) - tau)
                return -float(size[0]), -(size[1:] - size[0]) / steps

            # Thousands of predictions for a few points each: scikit-learn would spend most of the time on checks.
            with config_context(assume_finite=True, skip_parameter_validation=True):
                found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=box)
            best = max(best, -float(found.fun))
    return best


def closed_sensitivity(tau: float, bounds: Bounds, known: float | None = None) -> float:
    """A bound on |Gamma - tau| when predicted outcomes are clipped to their range: R_y / kappa + |tau|."""
    return score_bound(bounds, known) + abs(tau)


def score_bound(bounds: Bounds, known: float | None = None) -> float:
    """Largest |Gamma| of one record when predicted outcomes are clipped. Proof: docs/proofs/private_ci.md, lemma 1."""
    low, high = bounds.propensity if known is None else (known, known)
    return aipw_score_bound(bounds.outcome_width, min(low, 1.0 - high))


def _with_neighbours(z: Float) -> tuple[Float, Float]:
    """A point, then one step from it along each coordinate, always inside the box; and the steps."""
    steps = np.where(z + _STEP > 1.0, -_STEP, _STEP)
    return np.vstack([z, z + np.diag(steps)]), steps
