"""From mu or rho to (epsilon, delta) and back, and the mu that a gate may spend.

Gaussian DP is exact for Gaussian noise; zCDP holds for discrete Gaussian noise without any correction. Whatever is
rounded is rounded towards privacy.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import erfcx, ndtr

from discreet.exceptions import InvalidBudget

# Total variation that all discrete draws of one release may be away from rounded Gaussians; the gate checks it.
SLACK = 1e-18
# Share of delta that is left unspent, so that no rounding error in scales or in this file can exceed it.
RESERVE = 1e-6

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
