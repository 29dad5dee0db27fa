"""What an attacker proves who sees a release with Gaussian noise: lower bounds on epsilon and delta, in closed form."""

from __future__ import annotations

from math import floor, isfinite, log10
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp

from discreet.columns import Float

_THRESHOLDS = 4_001


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


def least_epsilon(one: Law, other: Law, delta: float) -> float:
    """An epsilon below which the two laws are not (epsilon, delta)-indistinguishable, whatever was claimed.

    From (epsilon, delta)-DP follows P(E) <= exp(epsilon) P'(E) + delta for every event E. Events here are half-lines,
    which for two normal laws of one spread are the best there are; whichever is tried, the bound holds.
    """
    reach = 10 * max(one.sds.max(), other.sds.max())
    ends = min(one.means.min(), other.means.min()) - reach, max(one.means.max(), other.means.max()) + reach
    levels = np.linspace(*ends, _THRESHOLDS)
    best = 0.0
    for first, second in ((one, other), (other, one)):
        for sign in (1.0, -1.0):
            p, log_q = np.exp(first.log_above(levels, sign)), second.log_above(levels, sign)
            # Twice delta at least, so that the difference keeps its digits.
            told = p > 2 * delta
            best = max(best, float(np.max(np.log(p[told] - delta) - log_q[told], initial=0.0)))
    return best


def rounded_down(bound: float) -> str:
    """A lower bound in two digits, that are one still; nothing if it says nothing."""
    if not (isfinite(bound) and bound > 0):
        return "nothing"
    step = 10.0 ** (floor(log10(bound)) - 1)
    return f"{floor(bound / step) * step:.2g}"
