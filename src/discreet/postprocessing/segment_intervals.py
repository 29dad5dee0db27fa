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

# Numerical: bisections of brackets, enough for all digits of a float64.
_STEPS = 60
# Numerical: a part of the variance that is smaller than this, and of Laplace noise, changes no quantile that anybody
# prints.
_LEAST_PEAKED = 1e-3
# Numerical: other segments are never surer than this part of a segment's own variance, and no precision that is left is
# smaller than this part of the own one.
_SUREST = 1e-6


class Own(NamedTuple):
    """What each segment says by itself. Errors of different segments are independent.

    Parameters
    ----------
    value
        The segment's effect, not smoothed.
    variance
        That of its error.
    peaked
        How much of the variance is one Laplace variable's, if all Laplace noise is written as one such variable and a
        normal one, with its variance and its kurtosis.
    unseen
        What one event more, at the rarer end of the outcome, would add to the variance.
    """

    value: Float
    variance: Float
    peaked: Float
    unseen: Float


def assisted(own: Own, mean: Float, variance: Float, alpha: float) -> tuple[Float, Float]:
    """An interval at level ``1 - alpha`` for each segment, by its own effect and what all others say of it."""
    normal = -float(ndtri(alpha / 2))
    # As many events more as Agresti and Coull (1998) add at this level.
    sd = np.sqrt(own.variance + normal**2 / 2 * own.unseen) * quantile(own, alpha) / normal
    # In units of the standard deviation: how sure the others are, and how strongly they pull.
    weight = sd**2 / np.maximum(variance, _SUREST * own.variance)
    pull = weight * (mean - own.value) / sd
    return own.value - sd * _reach(-pull, weight, alpha), own.value + sd * _reach(pull, weight, alpha)


def without_own(value: Float, variance: Float, means: Float, variances: Float, evidence: Float) -> tuple[Float, Float]:
    """Mean and variance of each segment's effect if its own observation is left out.

    Parameters
    ----------
    value, variance
        The segments' own effects.
    means, variances
        Of the effects given all observations, a row for each process.
    evidence
        Logarithm of each process's weight. A segment must not choose among processes by which it is judged.
    """
    # Numerical: no division by zero.
    precision = np.maximum(1.0 / np.maximum(variances, 1e-300) - 1.0 / variance, _SUREST / variance)
    away = (means - value) / variances / precision
    predicted = 1.0 / precision + variance
    logs = evidence[:, None] + (np.log(predicted) + away**2 / predicted) / 2
    share = np.exp(logs - logs.max(axis=0))
    share /= share.sum(axis=0)
    mean = (share * away).sum(axis=0)
    return value + mean, (share * (1.0 / precision + (away - mean) ** 2)).sum(axis=0)


def each_level(alpha: float, segments: int) -> float:
    """Which alpha makes independent intervals cover all at once with probability ``1 - alpha`` (Sidak 1967)."""
    return float(-np.expm1(np.log1p(-alpha) / segments))


def quantile(own: Own, alpha: float) -> Float:
    """What errors exceed with probability ``alpha / 2``, in standard deviations: a normal plus a Laplace variable."""
    part = np.clip(own.peaked / own.variance, 0.0, 1.0 - _SUREST)
    normal, rate = np.sqrt(1.0 - part), np.sqrt(2.0 / np.maximum(part, _LEAST_PEAKED))
    low, high = np.zeros_like(part), np.full_like(part, 2.0 - np.log(alpha))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        more = _beyond(middle, normal, rate) > alpha / 2
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.asarray(np.where(part > _LEAST_PEAKED, high, -ndtri(alpha / 2)))


def _reach(pull: Float, weight: Float, alpha: float) -> Float:
    """How far an interval extends above the own effect: where the upper end's test is about to refuse that effect.

    A test of the value w above accepts errors between -w and the number that leaves the rest of alpha above it. Its
    middle is the lean that makes intervals shortest on average under the prior: weight * w - pull.
    """
    low = np.full_like(pull, -ndtri(alpha))
    # Numerical: above every end, from where bisection starts.
    high = np.abs(low) + 2 * np.abs(pull) + 10.0
    for _ in range(_STEPS):
        w = (low + high) / 2
        middle = (-w - ndtri(np.maximum(alpha - ndtr(-w), 0.0))) / 2
        more = middle > weight * w - pull
        low, high = np.where(more, w, low), np.where(more, high, w)
    return np.asarray(high)


def _beyond(x: Float, normal: Float, rate: Float) -> Float:
    """Probability that a normal variable of this standard deviation plus a Laplace one of this rate exceeds x."""
    shift, swing = (rate * normal) ** 2 / 2, rate * x
    above = np.exp(shift - swing + log_ndtr(x / normal - rate * normal))
    below = np.exp(shift + swing + log_ndtr(-x / normal - rate * normal))
    return np.asarray(ndtr(-x / normal) + (above - below) / 2)
