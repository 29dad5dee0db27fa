"""What an attacker proves who knows the laws of two releases: lower bounds on epsilon and delta, without simulation.

Laws are Gaussian, as mechanisms with Gaussian noise have them: shifted, of different variance (where the scale of the
noise depends on the records), mixtures (where starting points or seeds are drawn), and censored (where a variance is
truncated at zero, so that a width has an atom).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import log_ndtr, logsumexp

from discreet.data._arrays import Float
from discreet.privacy.accountant import gdp_epsilon

_THRESHOLDS = 4_001


class Tails(Protocol):
    """A law on the line, known by its tails."""

    def log_above(self, levels: Float, sign: float = 1.0) -> Float:
        """Logarithm of the probability above each level; below it if ``sign`` is -1."""
        ...

    def ends(self) -> tuple[float, float]:
        """Where there is hardly any probability beyond."""
        ...


class Law(NamedTuple):
    """A mixture of normal distributions: what is released on one data set."""

    weights: Float
    means: Float
    sds: Float

    @classmethod
    def normal(cls, mean: float, sd: float) -> Law:
        """One normal distribution."""
        return cls(np.ones(1), np.array([mean]), np.array([sd]))

    @classmethod
    def evenly(cls, mean: float, sds: Float) -> Law:
        """Normal distributions around one mean, each as likely as the others."""
        return cls(np.full(len(sds), 1 / len(sds)), np.full(len(sds), mean), sds)

    def log_above(self, levels: Float, sign: float = 1.0) -> Float:
        """Logarithm of the probability above each level; below it if ``sign`` is -1."""
        z = sign * (self.means[:, None] - levels) / self.sds[:, None]
        return np.asarray(logsumexp(log_ndtr(z), axis=0, b=self.weights[:, None]))

    def ends(self) -> tuple[float, float]:
        """Where there is hardly any probability beyond."""
        reach = 10 * float(self.sds.max())
        return float(self.means.min()) - reach, float(self.means.max()) + reach


@dataclass(frozen=True, slots=True)
class Censored:
    """A number that grows with max(0, N): ``least`` where the normal N is not positive, which makes an atom there.

    Parameters
    ----------
    mean, sd
        Of N.
    least
        The number at N = 0, which nothing can fall below.
    inverse
        From a number of at least ``least`` to the N that gives it.
    most
        Where there is hardly any probability beyond.
    """

    mean: float
    sd: float
    least: float
    inverse: Callable[[Float], Float]
    most: float

    def log_above(self, levels: Float, sign: float = 1.0) -> Float:
        """Logarithm of the probability above each level; at it or below if ``sign`` is -1."""
        levels = np.asarray(levels, dtype=np.float64)
        inside = levels >= self.least
        at = self.inverse(np.where(inside, levels, self.least))
        outside = 0.0 if sign > 0 else -np.inf
        return np.where(inside, log_ndtr(sign * (self.mean - at) / self.sd), outside)

    def ends(self) -> tuple[float, float]:
        """Where there is hardly any probability beyond."""
        return self.least, self.most


def least_epsilon(one: Tails, other: Tails, delta: float, levels: Float | None = None) -> float:
    """An epsilon below which the two laws are not (epsilon, delta)-indistinguishable, whatever was claimed.

    From (epsilon, delta)-DP follows P(E) <= exp(epsilon) P'(E) + delta for every event E. Events here are half-lines,
    which for two normal laws of one variance are the best there are, and what lies outside an interval, which is for
    two of different variance; whichever is tried, the bound holds.
    """
    levels = _levels(one, other) if levels is None else levels
    best = 0.0
    for first, second in ((one, other), (other, one)):
        for log_p, log_q in _events(first, second, levels):
            p = np.exp(log_p)
            # Twice delta at least, so that the difference keeps its digits.
            enough = p > 2 * delta
            with np.errstate(invalid="ignore"):
                best = max(best, float(np.max(np.log(p[enough] - delta) - log_q[enough], initial=0.0)))
    return best


def least_delta(one: Tails, other: Tails, epsilon: float, levels: Float | None = None) -> float:
    """A delta below which the two laws are not (epsilon, delta)-indistinguishable, by the same events."""
    levels = _levels(one, other) if levels is None else levels
    best = 0.0
    for first, second in ((one, other), (other, one)):
        for log_p, log_q in _events(first, second, levels):
            # Beyond one the second term says nothing, and must not overflow.
            worth = np.exp(log_p) - np.exp(np.minimum(epsilon + log_q, 1.0))
            best = max(best, float(np.max(worth, initial=0.0)))
    return best


def shift_epsilon(shift: Float | float, sd: float, delta: float) -> tuple[float, float]:
    """Exact mu and epsilon(delta) of Gaussian noise of one scale on a vector that moved by ``shift``."""
    mu = float(np.linalg.norm(np.atleast_1d(shift))) / sd
    return mu, gdp_epsilon(mu, delta) if mu > 0 else 0.0


def _events(one: Tails, other: Tails, levels: Float) -> list[tuple[Float, Float]]:
    above = one.log_above(levels), other.log_above(levels)
    below = one.log_above(levels, -1.0), other.log_above(levels, -1.0)
    outside = tuple(np.logaddexp(up, down[::-1]) for up, down in zip(above, below, strict=True))
    # Levels that mirror each other at the middle enclose an interval.
    beyond = [part[len(levels) // 2 + 1 :] for part in outside]
    with np.errstate(divide="ignore"):
        within = [np.log(-np.expm1(np.minimum(part, 0.0))) for part in beyond]
    return [above, below, (beyond[0], beyond[1]), (within[0], within[1])]


def _levels(one: Tails, other: Tails) -> Float:
    ends = one.ends(), other.ends()
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return np.linspace(low, high, _THRESHOLDS)


def worst_shift(contributions: Float, sd: float) -> tuple[float, int, int]:
    """Largest distance between any two rows in units of noise, and which they are."""
    squares = np.einsum("ij,ij->i", contributions, contributions)
    apart = squares[:, None] + squares[None, :] - 2.0 * contributions @ contributions.T
    first, second = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return math.sqrt(max(0.0, float(apart[first, second]))) / sd, int(first), int(second)
