"""What one record adds to its segment, the rules that decide it, and what noisy sums say.

Outcomes are in units of half their range (`Chunk.y`, -1 to 1). Proof of what a record can move: docs/proofs/uplift.md.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.expressions import E, Formula, Y, by_arm, number
from discreet.postprocessing.segment_intervals import Own

Kind = Literal["arms", "signed"]

# Choice: "auto" cuts a range until the noise of a part's effect, times their number, is this part of half the outcome's
# range. Chosen among some twenty variants on ADUM's generator with other seeds (docs/evidence/uplift.md).
_NOISE = 0.04
# Choice: the most parts that it makes. Chosen as the number before.
MOST = 12
# Theory: fewer parts are no cut. With three of them at least, errors were up to a half larger on ADUM's generator at an
# epsilon of .02 and .05 (seeds 97,000,000 to 97,000,059), and elsewhere the same.
FEWEST = 2


class OutcomeMoments(NamedTuple):
    """Moments of the outcome: number of records, mean and mean square, and the noise of the latter.

    ``rows`` is the most that one unit has. They may all be alike: a mean's sampling variance is up to so many times
    that of independent rows.
    """

    n: float
    mean: float
    square: float
    noise: float
    # Unit: one row a unit.
    rows: float = 1.0

    @property
    def variance(self) -> float:
        """Variance of all outcomes; never less than the noise leaves open."""
        # Numerical: no division by a variance of zero.
        return float(np.clip(self.square - self.mean**2, max(self.noise, 1e-6), 1.0))

    def to_dict(self) -> dict[str, float]:
        """As plain JSON, with rows only where there are several."""
        return {name: value for name, value in self._asdict().items() if name != "rows" or value > 1.0}


class Means(NamedTuple):
    """Means of arms, or effects, by segment (rows) with their variances for smoothing, and numbers of records.

    ``own`` is what intervals rest on. Its variances are not those of smoothing, which decide effects that stand in
    published files.
    """

    value: Float
    variance: Float
    counts: Float
    own: Own


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


def arm_means(table: Table, moments: OutcomeMoments, bounds: Bounds, weighted: bool, pure: bool) -> Means:
    """Means of both arms; ``pure`` where noise is Laplace noise."""
    value = table.means
    # Weights are at most one, so that their squares add up to no more than they do.
    # Numerical: means at an end of the range leave no variance at all.
    outcome = moments.rows * np.minimum(moments.variance, 1.0 - np.minimum(value**2, 0.99))
    pooled = table.variance + outcome / table.known
    low, high = bounds.propensity
    counts = (table.known / [1 - high, low]).mean(axis=1) if weighted else table.known.sum(axis=1)
    sampling, unseen = _outcome_variance(table, moments)
    variance = table.variance + moments.rows * sampling / table.known
    # Of the two numbers of a pair, one moves a mean by (1 - mean) / count, the other by (1 + mean) / count.
    each = (1.0 + np.stack([value, -value])) ** 2 * table.count_sd**2 / 2 / table.known**2
    peaked = pure * np.sqrt((each**2).sum(axis=(0, 2)))
    return _means(table, value, (pooled, variance), 1.0, counts, (peaked, unseen.sum(axis=1)))


def signed_effects(table: Table, moments: OutcomeMoments, propensity: float, pure: bool) -> Means:
    """Effects of segments whose arms share a sum; ``pure`` where noise is Laplace noise."""
    scale = min(propensity, 1 - propensity)
    value, noise = table.means / scale, table.variance / scale**2
    records = propensity * (1 - propensity) * table.known / moments.rows
    variance = noise + max(moments.square, moments.variance) / records
    each = np.stack([np.full_like(value, table.sum_sd), table.means * table.count_sd]) / (table.known * scale)
    # Theory: kurtosis is a mean of fourth powers.
    peaked = pure * np.sqrt((each**4).sum(axis=(0, 2)))
    # Theory: no effect is further than two from zero.
    return _means(table, value, (variance, variance), 4.0, table.known[:, 0], (peaked, np.zeros_like(peaked)))


def _means(
    table: Table,
    value: Float,
    variances: tuple[Float, Float],
    least: float,
    counts: Float,
    parts: tuple[Float, Float],
) -> Means:
    """With variances for smoothing and for intervals, no less than ``least`` where counts may be nothing but noise."""
    smoothing, own = (np.where(table.lost, np.maximum(each, least), each) for each in variances)
    effect = value[:, -1] - (value[:, 0] if value.shape[1] == 2 else 0.0)
    return Means(value, smoothing, counts, Own(effect, own.sum(axis=1), *parts))


def _outcome_variance(table: Table, moments: OutcomeMoments) -> tuple[Float, Float]:
    """Variance of the outcome in each segment and arm, and what one more event would add to that of the mean.

    A mean m of outcomes between -1 and 1 allows a variance of 1 - m^2, which those at the ends have. The share of it
    that all records have is taken for that of each segment, as quasi-likelihoods do: with events that are ten times
    as frequent, a segment has about ten times the variance. It is never taken to have less than all records have.
    """
    weight = table.known / table.known.sum()
    # Noise makes squares of means larger than they are.
    squares = float((weight * np.maximum(table.means**2 - table.variance, 0.0)).sum())
    # Numerical: no division by a variance of zero.
    pooled = float(np.clip(moments.square - squares, max(moments.noise, 1e-6), 1.0 - squares))
    share = pooled / (1.0 - squares)
    most = 1.0 - table.means**2
    unseen = np.abs(table.means) * (2 * moments.rows * share / table.known) ** 2
    return np.minimum(np.maximum(pooled, share * most), most), unseen
