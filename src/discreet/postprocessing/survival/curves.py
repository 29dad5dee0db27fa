"""Survival curves of one arm, with bands, from a noisy table of how many had the event or were lost in each interval.

Within an interval of the grid both hazards are taken as constant, so that the numbers who leave give them in closed
form: of those who leave, the share with an event is the share of its hazard. Everything here is computed from released
and public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float

# Choice: of those at risk no more than this part leaves within an interval, and no fewer are at risk than noise lets
# one see: hazards stay finite. By hand.
_MOST_LEAVE = 0.95
# Choice: weights of censored records stay below the inverse of this. By hand; what lies below it is in the interval.
LEAST_FOLLOWED = 0.05


class Band(NamedTuple):
    """A survival curve at the times of the grid, with its band."""

    time: Float
    survival: Float
    low: Float
    high: Float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arm:
    """Hazards of one arm on a grid of times.

    Parameters
    ----------
    times
        Ends of the grid's intervals, the last is the horizon; the first interval begins at zero.
    at_risk
        About how many are at risk at the beginning of each interval.
    events, lost
        Cumulative hazard that each interval adds, of the event and of censoring.
    event_covariance, lost_covariance
        Of the errors of these, sampling and noise together.
    """

    times: Float
    at_risk: Float
    events: Float
    lost: Float
    event_covariance: Float
    lost_covariance: Float

    @classmethod
    def of(cls, times: Float, counts: Float, sd: float, alike: int = 1) -> Arm:
        """From noisy numbers of records: with the event in each interval, censored in each, and followed beyond.

        So many records of one unit may be ``alike``: docs/proofs/units.md, lemma 4.
        """
        k = len(times)
        with_event, lost = _nonnegative(counts[:k]), _nonnegative(counts[k:-1])
        leave = with_event + lost
        after = np.append(np.cumsum(leave[::-1])[::-1], 0.0) + max(float(counts[-1]), 0.0)
        at_risk = np.maximum(after[:-1], max(sd, 1.0))
        part = np.minimum(leave / at_risk, _MOST_LEAVE)
        # What leaves, as a cumulative hazard; to which the event and censoring contribute as they do to the numbers.
        hazard = -np.log1p(-part)
        each = np.divide(hazard, leave, out=np.zeros(k), where=leave > 0.0)
        variance = alike * np.concatenate([with_event, lost, [max(float(counts[-1]), 0.0)]]) + sd**2
        return cls(
            times=times,
            at_risk=at_risk,
            events=with_event * each,
            lost=lost * each,
            event_covariance=_covariance(with_event, leave, at_risk, variance, 0),
            lost_covariance=_covariance(lost, leave, at_risk, variance, k),
        )

    @property
    def survival(self) -> Float:
        """Probability of no event up to each time of the grid."""
        return np.asarray(np.exp(-np.cumsum(self.events)))

    @property
    def followed(self) -> Float:
        """Probability of not having been censored up to each time of the grid, no less than its floor."""
        return np.maximum(np.exp(-np.cumsum(self.lost)), LEAST_FOLLOWED)

    def band(self, alpha: float) -> Band:
        """The curve from time zero on, and a band that covers each of its points with probability ``1 - alpha``."""
        sd = _cumulative_sd(self.event_covariance)
        hazard, reach = np.cumsum(self.events), -float(ndtri(alpha / 2.0)) * sd
        # A curve falls: an end of its band that an earlier or later point rules out is not kept.
        low = np.minimum.accumulate(np.exp(-(hazard + reach)))
        high = np.minimum(np.exp(-(hazard - reach)), 1.0)
        high = np.maximum(np.minimum.accumulate(high), self.survival)
        ends = (np.append(1.0, part) for part in (self.survival, low, high))
        return Band(np.append(0.0, self.times), *ends)

    @property
    def followed_sd(self) -> Float:
        """Relative error of the probability of being followed, in the middle of each interval."""
        after = _cumulative_sd(self.lost_covariance)
        return np.asarray((np.append(0.0, after[:-1]) + after) / 2.0)


def same_level(alpha: float, times: int) -> float:
    """The level of each point at which the points of two curves are covered at once (Bonferroni)."""
    return alpha / (2 * times)


def _cumulative_sd(covariance: Float) -> Float:
    return np.sqrt(np.maximum(np.diag(np.cumsum(np.cumsum(covariance, axis=0), axis=1)), 0.0))


def _nonnegative(counts: Float) -> Float:
    """The nearest counts that are not negative and have the same total, if that is not negative.

    Setting negative ones to zero alone would add all of their noise to the total.
    """
    total = max(float(counts.sum()), 0.0)
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    last = int(np.flatnonzero(ordered - excess >= 0.0)[-1]) if np.any(ordered - excess >= 0.0) else 0
    return np.asarray(np.maximum(counts - excess[last], 0.0))


def _covariance(own: Float, leave: Float, at_risk: Float, variance: Float, first: int) -> Float:
    """Of the errors of hazards, to first order in those of the counts, whose variances are given.

    A hazard is about the number who leave for its reason, over those at risk less half of those who leave.
    """
    k = len(own)
    exposed = np.maximum(at_risk - leave / 2.0, at_risk * (1.0 - _MOST_LEAVE))
    slopes = np.zeros((k, 2 * k + 1))
    # Everybody who leaves later, for either reason or none, is at risk now; of those who leave now half of the time.
    pull = -own / exposed**2
    later = np.triu(np.ones((k, k)), 1) + np.eye(k) / 2.0
    slopes[:, :k] = slopes[:, k:-1] = pull[:, None] * later
    slopes[:, -1] = pull
    slopes[np.arange(k), first + np.arange(k)] += 1.0 / exposed
    return np.asarray((slopes * variance) @ slopes.T)
