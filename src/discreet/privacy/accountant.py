"""From events to (epsilon, delta), in sequence and on disjoint parts; and from a budget to the mu that may be spent.

Every number is an upper bound: whatever is rounded is rounded towards privacy. Gaussian DP is exact for Gaussian noise,
and adds up exactly; zCDP holds for discrete Gaussian noise without any correction; a mixture goes through privacy loss
distributions.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from discreet.data._arrays import Float
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.budget import ClaimedEvent, Event, GaussianEvent, LaplaceEvent
from discreet.privacy.loss_distributions import composed

# Total variation that all discrete draws of one release may be away from rounded Gaussians; the gate checks it.
SLACK = 1e-18
# Share of delta that is left unspent, so that no rounding error in scales or in this file can exceed it.
RESERVE = 1e-6

# Mass of a Gaussian's privacy loss that is counted as infinite.
_TAIL = 1e-25
_TINY = math.ulp(0.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def gdp_delta(mu: float, epsilon: float) -> float:
    """Smallest delta for which mu-GDP implies (epsilon, delta)-DP."""
    if mu == 0:
        return 0.0
    # A Gaussian release is never pure: what is too small for a float is still not zero.
    return max(_TINY, math.exp(_log_gdp_delta(mu, epsilon)))


def gdp_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon, rounded up, for which mu-GDP implies (epsilon, delta)-DP."""
    _check_delta(delta)
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    target = math.log(delta)
    return bracket(lambda epsilon: _log_gdp_delta(mu, epsilon) > target, mu)[1]


def gdp_mu(epsilon: float, delta: float) -> float:
    """Largest mu, rounded down, for which mu-GDP implies (epsilon, delta)-DP."""
    _check_epsilon(epsilon)
    _check_delta(delta)
    target = math.log(delta)
    return bracket(lambda mu: _log_gdp_delta(mu, epsilon) <= target, math.sqrt(epsilon))[0]


def _log_gdp_delta(mu: float, epsilon: float) -> float:
    # Phi(-a) - e^epsilon Phi(-b) with b = a + mu. As e^epsilon = phi(a) / phi(b), this is phi(a) (R(a) - R(b)) with
    # Mills' ratio R(t) = Phi(-t) / phi(t): no overflow at large epsilon, no cancellation of huge logarithms at small.
    a = epsilon / mu - mu / 2
    log_density = -a * a / 2 - math.log(2 * math.pi) / 2
    if a > 40:
        # Beyond the smallest float. An upper bound does: 0 < -R'(t) <= 1 / (1 + t^2) and R(t) <= 1 / t.
        return log_density + math.log(min(mu / (1 + a * a), 1 / a))
    if mu < 0.1:
        t = a + mu * (_NODES + 1) / 2
        return log_density + math.log(mu * float(_WEIGHTS @ (1 - t * _mills(t))) / 2)
    if a >= 0:
        return log_density + math.log(float(_mills(a) - _mills(a + mu)))
    return math.log(float(ndtr(-a)) - math.exp(log_density) * float(_mills(a + mu)))


def _mills(t: Any) -> Any:
    return math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))


def lattice_slack(sigma: float, dimension: int) -> float:
    """Bound on the total variation between ``dimension`` discrete and rounded Gaussians of scale sigma grid steps."""
    return min(1.0, dimension / (24 * sigma * sigma))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """A delta for which rho-zCDP implies (epsilon, delta)-DP (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    return 0.0 if rho == 0 else max(_TINY, math.exp(_log_zcdp_delta(rho, epsilon)))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Smallest epsilon, rounded up, whose ``zcdp_delta`` is at most delta."""
    _check_delta(delta)
    if zcdp_delta(rho, 0.0) <= delta:
        return 0.0
    target = math.log(delta)
    return bracket(lambda epsilon: _log_zcdp_delta(rho, epsilon) > target, math.sqrt(rho))[1]


def zcdp_mu(epsilon: float, delta: float) -> float:
    """Largest mu, rounded down, for which mu^2/2-zCDP implies (epsilon, delta)-DP."""
    _check_epsilon(epsilon)
    _check_delta(delta)
    target = math.log(delta)
    return bracket(lambda mu: _log_zcdp_delta(mu * mu / 2, epsilon) <= target, math.sqrt(epsilon))[0]


def _log_zcdp_delta(rho: float, epsilon: float) -> float:
    # Every order alpha = 1 + x > 1 gives a valid bound; the derivative in x is increasing, so one root is the best one.
    x = max(1e-300, bracket(lambda x: (2 * x + 1) * rho - epsilon - math.log1p(1 / x) < 0, 1.0)[0])
    return min(0.0, x * ((1 + x) * rho - epsilon - math.log1p(1 / x)) - math.log1p(x))


@lru_cache(maxsize=256)
def calibrate_mu(epsilon: float, delta: float, slack: float = SLACK) -> float:
    """Largest mu that discrete Gaussian releases may add up to under a budget of (epsilon, delta).

    Two routes are proved, and the one that allows more is taken: Gaussian DP with (1 + e^epsilon) * slack set aside for
    the lattice, and zCDP, which needs nothing set aside and takes over where e^epsilon is huge.

    Parameters
    ----------
    epsilon, delta
        The budget.
    slack
        What the ``lattice_slack`` of all releases may add up to.
    """
    _check_epsilon(epsilon)
    _check_delta(delta)
    usable = delta * (1 - RESERVE)
    mu = zcdp_mu(epsilon, usable)
    lattice = lattice_delta(slack, epsilon)
    return max(mu, gdp_mu(epsilon, usable - lattice)) if lattice < usable else mu


@lru_cache(maxsize=256)
def sets_slack_aside(epsilon: float, delta: float) -> bool:
    """Whether ``calibrate_mu`` takes the route that sets something aside for the lattice, not that of zCDP."""
    return calibrate_mu(epsilon, delta) > zcdp_mu(epsilon, delta * (1 - RESERVE))


def lattice_delta(slack: float, epsilon: float) -> float:
    # Two distributions within slack of an (epsilon, delta)-indistinguishable pair cost (1 + e^epsilon) slack in delta.
    if slack == 0:
        return 0.0
    return slack * (1 + math.exp(epsilon)) if epsilon < 700 else math.inf


def bracket(below: Callable[[float], bool], start: float) -> tuple[float, float]:
    """Neighbouring floats (low, high) such that ``below`` holds at low and not at high; it must switch once."""
    low = high = start
    while low > 0 and not below(low):
        low, high = low / 4, low
    while below(high):
        low, high = high, high * 4
    while True:
        middle = math.sqrt(low) * math.sqrt(high) if high > 2 * low else (low + high) / 2
        if not low < middle < high:
            return low, high
        low, high = (middle, high) if below(middle) else (low, middle)


def _check_epsilon(epsilon: float) -> None:
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise InvalidBudget("epsilon must be a positive finite number; typical values lie between 0.1 and 10.")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InvalidBudget("delta must lie between 0 and 1 for Gaussian noise; typical values lie below 1/n.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Upper bounds on delta as a function of epsilon.

    Parameters
    ----------
    ideal
        The profile with continuous noise, convex in exp(epsilon), at arrays of epsilon >= 0.
    reach
        Epsilon beyond which ``ideal`` no longer falls by anything that counts.
    mu
        Set when the profile is that of mu-GDP.
    slack
        Total variation between the events and their continuous counterparts, rounded to the grid.
    epsilon, delta
        The events' own claims added up; infinite epsilon when a Gaussian is among them.
    rho
        zCDP of the events; infinite when there is none.
    """

    ideal: Callable[[Float], Float]
    reach: float
    mu: float | None = None
    slack: float = 0.0
    epsilon: float = math.inf
    delta: float = 0.0
    rho: float = math.inf

    def delta_at(self, epsilon: float) -> float:
        """A delta for which (epsilon, delta)-DP holds."""
        if not epsilon >= 0:
            raise InvalidInput("epsilon must not be negative; ask for the delta at 0 or above.")
        bounds = [1.0, self._ideal(epsilon) + lattice_delta(self.slack, epsilon)]
        if epsilon >= self.epsilon:
            bounds.append(self.delta)
        if self.rho < math.inf:
            bounds.append(zcdp_delta(self.rho, epsilon))
        return min(bounds)

    def epsilon_at(self, delta: float) -> float:
        """An epsilon for which (epsilon, delta)-DP holds; infinite when there is none."""
        if not 0 <= delta < 1:
            raise InvalidInput("delta must lie in [0, 1); ask for the epsilon of a small delta.")
        bounds = [self._ideal_epsilon(delta)]
        if delta >= self.delta:
            bounds.append(self.epsilon)
        if delta > 0 and self.rho < math.inf:
            bounds.append(zcdp_epsilon(self.rho, delta))
        return min(bounds)

    def _ideal(self, epsilon: float) -> float:
        return gdp_delta(self.mu, epsilon) if self.mu is not None else float(self.ideal(np.array([epsilon]))[0])

    def _ideal_epsilon(self, delta: float) -> float:
        first = self._ideal_inverse(delta)
        # The lattice's cost grows with epsilon. Set it aside at the first answer and see whether that was enough.
        for spare in (1 + 1e-9, 1.01, 2.0):
            aside = spare * lattice_delta(self.slack, first)
            if aside >= delta > 0:
                break
            epsilon = self._ideal_inverse(delta - aside)
            if lattice_delta(self.slack, epsilon) <= aside:
                return epsilon
        return math.inf

    def _ideal_inverse(self, delta: float) -> float:
        if self.mu is not None:
            return gdp_epsilon(self.mu, delta) if delta > 0 else (math.inf if self.mu else 0.0)
        if self._ideal(0.0) <= delta:
            return 0.0
        if delta <= 0 or self._ideal(2 * self.reach) > delta:
            return math.inf
        # A composed profile takes milliseconds to evaluate, so a handful of steps instead of fifty halvings.
        from scipy.optimize import brentq

        def excess(epsilon: float) -> float:
            return math.log(max(self._ideal(epsilon), 1e-300)) - math.log(delta)

        epsilon, step = float(brentq(excess, 0.0, 2 * self.reach, xtol=1e-13 * self.reach)), 1e-13 * self.reach
        while self._ideal(epsilon) > delta:
            epsilon, step = epsilon + step, 2 * step
        return epsilon


def profile_of(events: Iterable[Event]) -> Profile:
    """Profile of events on the same records, each chosen freely after the ones before it."""
    return _profile_of(tuple(events))


# Composing distributions takes a tenth of a second, and a guarantee is asked more than once.
@lru_cache(maxsize=64)
def _profile_of(events: tuple[Event, ...]) -> Profile:
    return sequential_profile([_event_profile(event) for event in events])


def sequential_profile(profiles: Sequence[Profile]) -> Profile:
    """Profile of mechanisms on the same records, adaptive or not."""
    others = [profile for profile in profiles if profile.mu is None]
    mu = math.hypot(*(profile.mu for profile in profiles if profile.mu is not None))
    parts = [*others, _gaussian(mu)] if mu or not others else others
    pairs = [(part.ideal, part.reach) for part in parts]
    ideal, reach = pairs[0] if len(pairs) == 1 else composed(pairs)
    return Profile(
        ideal=ideal,
        reach=reach,
        mu=None if others else mu,
        slack=math.fsum(profile.slack for profile in profiles),
        epsilon=math.fsum(profile.epsilon for profile in profiles),
        delta=min(1.0, math.fsum(profile.delta for profile in profiles)),
        rho=math.fsum(profile.rho for profile in profiles),
    )


def parallel_profile(profiles: Sequence[Profile]) -> Profile:
    """Profile of mechanisms on disjoint parts of the records: the largest delta at every epsilon.

    Which part a record belongs to must not depend on its content.
    """
    if not profiles:
        raise InvalidInput("profiles must hold at least one profile; there is nothing to compose.")
    mus = [profile.mu for profile in profiles if profile.mu is not None]
    gaussian = len(mus) == len(profiles)
    ideals = [profile.ideal for profile in profiles]
    return Profile(
        ideal=_gaussian(max(mus)).ideal if gaussian else lambda at: np.max([ideal(at) for ideal in ideals], axis=0),
        reach=max(profile.reach for profile in profiles),
        mu=max(mus) if gaussian else None,
        slack=max(profile.slack for profile in profiles),
        epsilon=max(profile.epsilon for profile in profiles),
        delta=max(profile.delta for profile in profiles),
        rho=max(profile.rho for profile in profiles),
    )


def _event_profile(event: Event) -> Profile:
    if isinstance(event, GaussianEvent):
        return _gaussian(event.mu, lattice_slack(event.sigma, event.dimension) if event.lattice else 0.0)
    if isinstance(event, LaplaceEvent):
        return _laplace(event)
    if isinstance(event, ClaimedEvent):
        return _claimed(event)
    return parallel_profile([profile_of(part) for part in event.parts])


# Hundreds of rounds may have one mu.
@lru_cache(maxsize=256)
def _gaussian_reach(mu: float) -> float:
    return gdp_epsilon(mu, _TAIL)


def _gaussian(mu: float, slack: float = 0.0) -> Profile:
    def ideal(at: Float) -> Float:
        deltas: Float = ndtr(mu / 2 - at / mu) - np.exp(at + log_ndtr(-mu / 2 - at / mu))
        return np.maximum(deltas, 0.0)

    return Profile(
        ideal=ideal if mu else np.zeros_like,
        reach=_gaussian_reach(mu) if mu else 0.0,
        mu=mu,
        slack=slack,
        epsilon=math.inf if mu else 0.0,
        rho=mu * mu / 2,
    )


def _laplace(event: LaplaceEvent) -> Profile:
    # One coordinate that moves by the whole L1 diameter is the worst case, whatever the dimension: along
    # (a + t, b - t) with a >= b the divergence never falls in t. So the one-dimensional profile holds for all.
    def ideal(at: Float) -> Float:
        return -np.expm1(np.minimum((at - event.epsilon) / 2, 0.0))

    # A discrete Laplace differs from a rounded one by tanh(u) - 1 + exp(-u) <= u^2 / 2 a coordinate, u = 1 / (2 scale).
    slack = min(1.0, event.dimension / (8 * event.scale**2)) if event.lattice else 0.0
    return Profile(ideal=ideal, reach=event.epsilon, slack=slack, epsilon=event.epsilon, rho=event.epsilon**2 / 2)


def _claimed(event: ClaimedEvent) -> Profile:
    # The worst mechanism with this claim: fails openly with probability delta, else randomised response.
    def ideal(at: Float) -> Float:
        response = -np.expm1(np.minimum(at - event.epsilon, 0.0)) / (1 + math.exp(-event.epsilon))
        return np.asarray(event.delta + (1 - event.delta) * response)

    rho = math.inf if event.delta else event.epsilon**2 / 2
    return Profile(ideal=ideal, reach=event.epsilon, epsilon=event.epsilon, delta=event.delta, rho=rho)
