"""Intervals of segments that cover whatever effects the other segments have, and are narrower where those help.

As Yu and Hoff, "Adaptive multigroup confidence intervals with constant coverage" (Biometrika 2018): a segment's own
difference of arms decides whether a value is kept, and the other segments decide which way its test leans. So smoothing
costs no coverage where an effect jumps, and saves up to a sixth of the width where it does not. Post-processing:
everything here is computed from released and public numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from discreet.data._arrays import Float

# Bisections of brackets: enough for all digits of a float64.
_STEPS = 60
# A part of the variance that is smaller than this, and of Laplace noise, changes no quantile that anybody prints.
_LEAST_PEAKED = 1e-3
# What other segments say is never taken to be surer than this, in own standard deviations: ends of intervals would
# stretch further towards it than narrower ones are worth.
_SUREST = 0.25


class Own(NamedTuple):
    """What each segment says by itself: its effect, the variance of that, and which part of it is a Laplace variable's.

    Errors of different segments are independent.
    """

    value: Float
    variance: Float
    peaked: Float


def assisted(own: Own, mean: Float, variance: Float, alpha: float) -> tuple[Float, Float]:
    """An interval at level ``1 - alpha`` for each segment.

    Parameters
    ----------
    own
        Effects that are not smoothed.
    mean, variance
        Of the same effects, given the whole table.
    alpha
        Probability not to cover.
    """
    # What is left of the posterior when the segment itself is taken out: exact for one Gaussian process.
    precision = np.maximum(1.0 / variance - 1.0 / own.variance, 0.0)
    lean = np.where(precision > 0, (mean - own.value) / variance, 0.0)
    limit = 1.0 / (_SUREST**2 * own.variance)
    shrunk = np.minimum(1.0, limit / np.maximum(precision, 1e-300))
    sd = np.sqrt(own.variance) * quantile(own, alpha) / -ndtri(alpha / 2)
    # In units of the standard deviation: how strongly the prior pulls, and its precision.
    pull, weight = lean * shrunk * sd, precision * shrunk * sd**2
    return own.value - sd * _reach(-pull, weight, alpha), own.value + sd * _reach(pull, weight, alpha)


def each_level(alpha: float, segments: int) -> float:
    """Which alpha makes independent intervals cover all at once with probability ``1 - alpha`` (Sidak 1967)."""
    return float(-np.expm1(np.log1p(-alpha) / segments))


def quantile(own: Own, alpha: float) -> Float:
    """What errors exceed with probability ``alpha / 2``, in standard deviations: a normal plus a Laplace variable."""
    part = np.clip(own.peaked / own.variance, 0.0, 1.0 - 1e-6)
    normal, rate = np.sqrt(1.0 - part), np.sqrt(2.0 / np.maximum(part, _LEAST_PEAKED))
    low, high = np.zeros_like(part), np.full_like(part, 2.0 - np.log(alpha))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        more = _beyond(middle, normal, rate) > alpha / 2
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.where(part > _LEAST_PEAKED, high, -ndtri(alpha / 2))


def _reach(pull: Float, weight: Float, alpha: float) -> Float:
    """How far an interval extends above the own effect: where the upper end's test is about to refuse that effect.

    A test of the value w above accepts errors between -w and the number that leaves the rest of alpha above it. Its
    middle is the lean that makes intervals shortest on average under the prior: weight * w - pull.
    """
    low = np.full_like(pull, -ndtri(alpha))
    high = np.abs(low) + 2 * np.abs(pull) + 10.0
    for _ in range(_STEPS):
        w = (low + high) / 2
        middle = (-w - ndtri(np.maximum(alpha - ndtr(-w), 0.0))) / 2
        more = middle > weight * w - pull
        low, high = np.where(more, w, low), np.where(more, high, w)
    return high


def _beyond(x: Float, normal: Float, rate: Float) -> Float:
    """Probability that a normal variable of this standard deviation plus a Laplace one of this rate exceeds x."""
    shift, swing = (rate * normal) ** 2 / 2, rate * x
    above = np.exp(shift - swing + log_ndtr(x / normal - rate * normal))
    below = np.exp(shift + swing + log_ndtr(-x / normal - rate * normal))
    return np.asarray(ndtr(-x / normal) + (above - below) / 2)
