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
# Released moments may be wrong by this many standard deviations of their noise, in the direction that widens intervals.
_ALLOWED = 1.0
# Events that are counted in where variances are worked out, as Agresti and Coull (1998) do for 95 % intervals: z^2 / 2.
_UNSEEN = 2.0


class OutcomeMoments(NamedTuple):
    """Moments of the outcome: number of records, mean and mean square, and the noise of the latter."""

    n: float
    mean: float
    square: float
    noise: float

    @property
    def variance(self) -> float:
        """Variance of all outcomes; never less than the noise leaves open."""
        return float(np.clip(self.square - self.mean**2, max(self.noise, 1e-6), 1.0))


class Means(NamedTuple):
    """Means of arms, or effects, by segment (rows) with their variances, and numbers of records.

    ``peaked`` is the part of each segment's variance that is one Laplace variable's, if all noise that is Laplace noise
    is written as one such variable and a normal one with the same variance and kurtosis.
    """

    value: Float
    variance: Float
    counts: Float
    peaked: Float


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
    def ends(self) -> Float:
        """How far the means are from the nearer end of the outcome's range: 1 in its middle, 0 at its ends."""
        return np.asarray(1.0 - np.abs(self.means))

    @property
    def _least(self) -> float:
        return max(1.0, 2 * self.count_sd)


def arm_means(table: Table, moments: OutcomeMoments, bounds: Bounds, weighted: bool, pure: bool) -> Means:
    """Means of both arms."""
    value = table.means
    # Weights are at most one, so that their squares add up to no more than they do.
    variance = table.variance + _outcome_variance(table, moments) / table.known
    low, high = bounds.propensity
    counts = (table.known / [1 - high, low]).mean(axis=1) if weighted else table.known.sum(axis=1)
    # Of the two numbers of a pair, one moves a mean by (1 - mean) / count, the other by (1 + mean) / count.
    each = (1.0 + np.stack([value, -value])) ** 2 * table.count_sd**2 / 2 / table.known**2
    peaked = pure * np.sqrt((each**2).sum(axis=(0, 2)))
    return Means(value, np.where(table.lost, np.maximum(variance, 1.0), variance), counts, peaked)


def signed_effects(table: Table, moments: OutcomeMoments, propensity: float, pure: bool) -> Means:
    """Effects of segments whose arms share a sum."""
    scale = min(propensity, 1 - propensity)
    square = min(moments.square + _ALLOWED * moments.noise, 1.0)
    variance = table.variance / scale**2 + square / (propensity * (1 - propensity) * table.known)
    each = np.stack([np.full_like(table.means, table.sum_sd), table.means * table.count_sd]) / table.known / scale
    peaked = pure * np.sqrt((each**4).sum(axis=(0, 2)))
    return Means(table.means / scale, np.where(table.lost, np.maximum(variance, 4.0), variance), table.known[:, 0], peaked)


def _outcome_variance(table: Table, moments: OutcomeMoments) -> Float:
    """Variance of the outcome in each segment and arm: no less than that of all, and larger where its mean makes it so.

    A mean m of outcomes between -1 and 1 allows a variance of 1 - m^2, which those at the ends have. The share of it
    that all records have is taken for that of each segment, as quasi-likelihoods do: with events that are ten times
    as frequent, a segment has about ten times the variance.
    """
    weight = table.known / table.known.sum()
    # Noise and sampling make squares of means larger than they are; of the latter, no more is subtracted than is sure.
    squares = float((weight * np.maximum(table.means**2 - table.variance, 0.0)).sum())
    unsure = 2 * float(np.sqrt((weight**2 * table.means**2 * table.variance).sum()))
    squares = max(squares - _ALLOWED * unsure, 0.0)
    all_ = float(np.clip(moments.square + _ALLOWED * moments.noise - squares, 1e-6, 1.0 - squares))
    share = all_ / (1.0 - squares)
    # In numbers of events: as many as noise leaves, and a few that nobody has seen.
    unseen = 2 * share * _UNSEEN / table.known
    end = np.minimum(table.ends + unseen, 1.0)
    most = end * (2.0 - end)
    return np.asarray(np.minimum(np.maximum(all_, share * most), most))
