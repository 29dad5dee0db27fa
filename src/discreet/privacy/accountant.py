"""From events to (epsilon, delta): what they add up to in sequence, and on disjoint parts.

Every number is an upper bound. Gaussian events add up exactly; a mixture goes through privacy loss distributions on a
grid that rounds towards privacy (dp-accounting's connect-the-dots).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from discreet.exceptions import InvalidInput
from discreet.privacy.conversions import (
    RESERVE,
    SLACK,
    calibrate_mu,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    lattice_delta,
    lattice_slack,
    sets_slack_aside,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_mu,
)
from discreet.privacy.events import ClaimedEvent, Event, GaussianEvent, LaplaceEvent, ParallelEvent, event_from_dict

# One place to import accounting from, whichever file a piece lives in.
__all__ = [
    "RESERVE",
    "SLACK",
    "ClaimedEvent",
    "Event",
    "GaussianEvent",
    "LaplaceEvent",
    "ParallelEvent",
    "Profile",
    "calibrate_mu",
    "event_from_dict",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "lattice_slack",
    "parallel_profile",
    "profile_of",
    "sequential_profile",
    "sets_slack_aside",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_mu",
]

Float = NDArray[np.float64]

_POINTS = 50_000
# Mass of a Gaussian's privacy loss that is counted as infinite.
_TAIL = 1e-25
# The Fourier transforms that compose distributions are off by less than this (tests measure it), in either direction.
_FOURIER = 1e-13


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
    ideal, reach = (parts[0].ideal, parts[0].reach) if len(parts) == 1 else _composed(parts)
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


def _gaussian(mu: float, slack: float = 0.0) -> Profile:
    def ideal(at: Float) -> Float:
        deltas: Float = ndtr(mu / 2 - at / mu) - np.exp(at + log_ndtr(-mu / 2 - at / mu))
        return np.maximum(deltas, 0.0)

    reach = gdp_epsilon(mu, _TAIL) if mu else 0.0
    return Profile(
        ideal=ideal if mu else np.zeros_like,
        reach=reach,
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


def _composed(parts: Sequence[Profile]) -> tuple[Callable[[Float], Float], float]:
    # Imported when first used: it takes two seconds.
    from dp_accounting.pld import pld_pmf

    reach = math.fsum(part.reach for part in parts)
    step = reach / _POINTS

    def distribution(part: Profile) -> Any:
        last = math.ceil(part.reach / step)
        at: Float = step * np.arange(last + 1, dtype=np.float64)
        above = np.clip(part.ideal(at), 0.0, 1.0)
        # Neighbours are symmetric, and so are these profiles: the other side follows.
        below = -np.expm1(-at) + np.exp(-at) * above
        deltas = np.concatenate([below[:0:-1], above])
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -last, last, deltas)

    composed = distribution(parts[0])
    for part in parts[1:]:
        composed = pld_pmf.compose_pmfs(composed, distribution(part))
    rounding = _FOURIER * len(parts)

    def ideal(at: Float) -> Float:
        # A single number takes the library's fast path.
        deltas = composed.get_delta_for_epsilon(float(at[0]) if at.size == 1 else list(at))
        return np.minimum(np.atleast_1d(deltas) + rounding, 1.0)

    return ideal, reach
