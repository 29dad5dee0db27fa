"""What one record adds to its segment, the rules that decide it, and what noisy sums say.

Outcomes are in units of half their range (`Chunk.y`, -1 to 1). Proof of what a record can move: docs/proofs/uplift.md.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.expressions import E, Formula, Y, by_arm, number

Kind = Literal["arms", "signed"]

# "auto" cuts a range until the noise of a part's effect, times their number, is this part of half the outcome's range;
# and the fewest and the most parts that it makes.
_NOISE = 0.04
FEWEST, MOST = 3, 12


class OutcomeMoments(NamedTuple):
    """Moments of the outcome: number of records, mean and mean square, and the noise of the latter."""

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
    """How many parts "auto" cuts a range into: a rule of public numbers and the number of records.

    ``noise_sd`` is that of one number of a pair.
    """
    return int(np.clip(np.sqrt(_NOISE * n / (2 * np.sqrt(2) * noise_sd)), FEWEST, MOST))


def kind_for(moments: OutcomeMoments, segments: int, pair_sd: float, sum_sd: float, propensity: float | None) -> Kind:
    """Whether arms share a sum, where the probability of treatment is known: a rule of released and public numbers.

    A sum of signed outcomes has less noise (``sum_sd``) than the pairs of two arms (``pair_sd`` each), but its sampling
    error feels the outcome's level, and nothing is learnt of outcomes without treatment.
    """
    if propensity is None:
        return "arms"
    e, each = propensity, moments.n / segments
    apart = 2 * pair_sd**2 * (e**-2 + (1 - e) ** -2) / each**2
    together = (sum_sd / (min(e, 1 - e) * each)) ** 2
    lost = (moments.mean**2 + moments.variance / 2) / (e * (1 - e) * each)
    return "signed" if apart > together + lost else "arms"


def arm_numbers(bounds: Bounds, weighted: bool) -> tuple[Formula, Formula]:
    """The outcome, and a weight: 1, or inverse to a known probability of the own arm."""
    if not weighted:
        return Y, number(1.0)
    low, high = bounds.propensity
    return Y, by_arm(number(1 - high) / (number(1.0) - E), number(low) / E)


def signed_number(propensity: float) -> Formula:
    """The outcome with its arm's sign, weighed such that its mean is a multiple of the effect."""
    smaller = min(propensity, 1 - propensity)
    return Y * by_arm(number(-1 / (1 - propensity) * smaller), number(1 / propensity * smaller))


class Table(NamedTuple):
    """Noisy numbers of records (or weights) and sums of outcomes by segment (rows) and arm, and their noise."""

    counts: Float
    sums: Float
    count_sd: float
    sum_sd: float

    @property
    def known(self) -> Float:
        """Counts that noise cannot have made; dividing by smaller ones would say anything."""
        return np.maximum(self.counts, self._least)

    @property
    def lost(self) -> Float:
        """Which counts are too small to be distinguished from noise."""
        return np.asarray(self.counts < self._least)

    @property
    def means(self) -> Float:
        """Sums over counts."""
        return np.clip(self.sums / self.known, -1.0, 1.0)

    @property
    def variance(self) -> Float:
        """What noise gives the means, to first order."""
        return np.asarray((self.sum_sd**2 + (self.means * self.count_sd) ** 2) / self.known**2)

    @property
    def _least(self) -> float:
        return max(1.0, 2 * self.count_sd)


def arm_means(table: Table, moments: OutcomeMoments, bounds: Bounds, weighted: bool) -> Means:
    """Means of both arms."""
    value = table.means
    # Weights are at most one, so that their squares add up to no more than they do.
    variance = table.variance + np.minimum(moments.variance, 1.0 - np.minimum(value**2, 0.99)) / table.known
    low, high = bounds.propensity
    counts = (table.known / [1 - high, low]).mean(axis=1) if weighted else table.known.sum(axis=1)
    return Means(value, np.where(table.lost, np.maximum(variance, 1.0), variance), counts)


def signed_effects(table: Table, moments: OutcomeMoments, propensity: float) -> Means:
    """Effects of segments whose arms share a sum."""
    scale = min(propensity, 1 - propensity)
    sampling = max(moments.square, moments.variance) / (propensity * (1 - propensity) * table.known)
    variance = table.variance / scale**2 + sampling
    return Means(table.means / scale, np.where(table.lost, np.maximum(variance, 4.0), variance), table.known[:, 0])
