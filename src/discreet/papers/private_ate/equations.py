"""PrivATE's equations, one function each; numbers in brackets are the paper's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.papers.common.influence import Climb, noise_factor, searched
from discreet.papers.common.nuisances import Models, Surfaces
from discreet.privacy.noise import published_gaussian


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
    sd = exact.variance_noise(parts.epsilon2, parts.delta2)
    sigma2 = max(0.0, exact.sigma2 + float(published_gaussian(1, sd)[0]))  # (11)
    return Published(tau, sigma2, r)


def aipw_score(y: Float, t: Float, propensity: Float, prognosis: Float) -> Float:
    """Augmented inverse-propensity score, (t - e)(y - f) / (e (1 - e)).

    With f = (1 - e) mu_1 + e mu_0 this is the usual doubly robust score; its mean is the average effect if either e
    or f is right, and otherwise misses by E[(pi - e)(f* - f) / (e (1 - e))]: docs/proofs/ate.md.
    """
    return (t - propensity) / (propensity * (1.0 - propensity)) * (y - prognosis)


def aipw_score_bound(outcome_width: float, min_propensity: float) -> float:
    """Largest |score| of one record when outcome and prognosis are clipped: docs/proofs/private_ci.md, lemma 1."""
    return outcome_width / min_propensity


def influence(y: Float, a: Float, x: Float, surfaces: Surfaces) -> Float:
    """The score Gamma of section 4.3; less its mean it is the influence function (6)."""
    pi, prognosis = surfaces(x)
    return aipw_score(y, a, pi, prognosis)


def searched_sensitivity(surfaces: Surfaces, tau: float, bounds: Bounds, *, starts: int, rng: Any) -> float:
    """The supremum of |Gamma - tau| over all records that the bounds allow (5), as the paper searches for it.

    L-BFGS-B can only miss the supremum: what it returns is a lower bound.
    """

    def deviation(y: Float, a: Float, pi: Float, mu0: Float, mu1: Float) -> Float:
        return aipw_score(y, a, pi, (1.0 - pi) * mu1 + pi * mu0) - tau

    local = surfaces.local() if isinstance(surfaces, Models) else None
    climb = None if local is None else Climb(influence=deviation, predictions=local)
    return searched(lambda y, a, x: influence(y, a, x, surfaces) - tau, bounds, starts=starts, rng=rng, climb=climb)


def closed_sensitivity(tau: float, bounds: Bounds, known: float | None = None) -> float:
    """A bound on |Gamma - tau| when predicted outcomes are clipped to their range: R_y / kappa + |tau|."""
    return score_bound(bounds, known) + abs(tau)


def score_bound(bounds: Bounds, known: float | None = None) -> float:
    """Largest |Gamma| of one record when predicted outcomes are clipped. Proof: docs/proofs/private_ci.md, lemma 1."""
    low, high = bounds.propensity if known is None else (known, known)
    return aipw_score_bound(bounds.outcome_width, min(low, 1.0 - high))
