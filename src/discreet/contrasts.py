"""What one record adds to its segment's pairs, the public rules that decide it, and what noisy pairs say.

Outcomes are in halves of their range (`Chunk.y`, from -1 to 1). Proof of what a record can move: docs/proofs/uplift.md.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from discreet.bounds import Bounds
from discreet.columns import Float
from discreet.records import Chunk

Kind = Literal["arms", "signed"]

# "auto" cuts a range into as many parts as have effects with noise of at most this, in halves of the outcome's range.
_NOISE = 0.01
FEWEST, MOST = 4, 16


class Look(NamedTuple):
    """A first look at the outcome: number of records, mean and mean square, and the noise of the latter."""

    n: float
    mean: float
    square: float
    noise: float

    @property
    def variance(self) -> float:
        """Variance of the outcome; never less than the noise leaves open."""
        return float(np.clip(self.square - self.mean**2, max(self.noise, 1e-6), 1.0))


class Means(NamedTuple):
    """Means of arms, or effects, by segment (rows) with their variances, and numbers of records."""

    value: Float
    variance: Float
    counts: Float


def parts_for(n: float, noise_sd: float) -> int:
    """How many parts "auto" cuts a range into: a public rule. ``noise_sd`` is that of one number of a pair."""
    return int(np.clip(_NOISE * n / (2 * np.sqrt(2) * noise_sd), FEWEST, MOST))


def kind_for(look: Look, segments: int, noise_sd: float, propensity: float | None) -> Kind:
    """Whether arms share a pair, where the probability of treatment is known: a rule of released and public numbers.

    A pair of signed outcomes has less noise than two pairs, but its sampling error feels the outcome's level.
    """
    if propensity is None:
        return "arms"
    e, each = propensity, look.n / segments
    saved = 2 * noise_sd**2 / (max(e, 1 - e) * each) ** 2
    lost = (look.mean**2 + look.variance / 2) / (e * (1 - e) * each)
    return "signed" if saved > lost else "arms"


def arm_rows(cell: Float, chunk: Chunk, bounds: Bounds, weighted: bool) -> Float:
    """Cell and arm as one number, the outcome, and a weight: 1, or inverse to a known probability of the own arm."""
    weight = np.ones(len(chunk.t))
    if weighted and chunk.e is not None:
        low, high = bounds.propensity
        weight = np.where(chunk.t == 1, low / chunk.e, (1 - high) / (1 - chunk.e))
    return np.column_stack([2 * cell + chunk.t, chunk.y, weight])


def signed_rows(cell: Float, chunk: Chunk, propensity: float) -> Float:
    """Cell, and the outcome with its arm's sign, weighed such that its mean is a multiple of the effect."""
    sign = np.where(chunk.t == 1, 1 / propensity, -1 / (1 - propensity)) * min(propensity, 1 - propensity)
    return np.column_stack([cell, chunk.y * sign, np.ones(len(chunk.t))])


def arm_means(pairs: Float, noise_sd: float, look: Look, bounds: Bounds, weighted: bool) -> Means:
    """Means of both arms from pairs of shape (segments, 2, 2)."""
    value, variance = _ratio(pairs, noise_sd)
    weight = _at_least(pairs.sum(axis=2), noise_sd)
    # Weights are at most one, so that their squares add up to no more than they do.
    variance = variance + np.minimum(look.variance, 1.0 - np.minimum(value**2, 0.99)) / weight
    low, high = bounds.propensity
    counts = (weight / [1 - high, low]).mean(axis=1) if weighted else weight.sum(axis=1)
    return Means(value, np.where(_unknown(pairs, noise_sd), np.maximum(variance, 1.0), variance), counts)


def signed_effects(pairs: Float, noise_sd: float, look: Look, propensity: float) -> Means:
    """Effects from pairs of shape (segments, 1, 2)."""
    scale = min(propensity, 1 - propensity)
    value, variance = _ratio(pairs, noise_sd)
    counts = _at_least(pairs.sum(axis=2), noise_sd)
    sampling = max(look.square, look.variance) / (propensity * (1 - propensity) * counts)
    total = variance / scale**2 + sampling
    return Means(value / scale, np.where(_unknown(pairs, noise_sd), np.maximum(total, 4.0), total), counts[:, 0])


def _ratio(pairs: Float, noise_sd: float) -> tuple[Float, Float]:
    """Mean of every pair, and the variance that noise gives it."""
    weight = _at_least(pairs.sum(axis=2), noise_sd)
    value = np.clip((pairs[..., 0] - pairs[..., 1]) / weight, -1.0, 1.0)
    return value, 2 * noise_sd**2 * (1 + value**2) / weight**2


def _at_least(weight: Float, noise_sd: float) -> Float:
    # Below two standard deviations of its noise a count says nothing, and dividing by it would say anything.
    return np.maximum(weight, max(1.0, 2 * np.sqrt(2) * noise_sd))


def _unknown(pairs: Float, noise_sd: float) -> Float:
    return np.asarray(pairs.sum(axis=2) < 2 * np.sqrt(2) * noise_sd)
