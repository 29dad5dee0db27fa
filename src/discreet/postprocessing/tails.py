"""How far residuals reach on either side, from a noisy histogram, and where to clip them.

Post-processing: everything here is computed from released counts and public numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.magnitude import BINS, MagnitudeHistogram, bin_numbers

SIDES = 2 * BINS
# Bias that clipping is taken to cause in a randomised trial, in mean excesses of all records: both arms are clipped
# alike, so that what they lose in common cancels, but one arm alone could cause several. Of .24, .36, .5 and 1 the one
# by which intervals hold in about .955 of the trials among 40,000 to 40,699 of evidence/population. Where most outcomes
# have one value, the effect is in the others, and it is one; and where people chose, arms may lose what they like.
_BIAS_OF_EXCESS = 0.5
# Mass that noise may hide in one bin, in standard deviations of the bin's noise: where most outcomes have one value and
# say nothing about how far the others lie, and where their shape does. By hand, on studies 2000 to 2239 of
# evidence/population.
_UNSEEN_ATOM, _UNSEEN_SHAPE = 1.5, 0.1
# Edges of strata of overlap.
_STRATA = np.array([0.016, 0.04, 0.1, 0.25])
# A stratum has a distribution of its own from this many standard deviations of a bin's noise on.
_OWN = 50.0
# Choice: a measured excess is believed where it lies so many standard deviations of its noise above what is expected.
# By hand.
_CLEAR = 2.0
# Steps from the clip that a histogram suggests to none.
_LADDER = 4
# Clips that are tried on each side.
_TRIES = 48


def _rarer(e: Float) -> Float:
    return np.minimum(e, 1.0 - e)


def signed_bins(values: Float, ceiling: float) -> IntArray:
    """Bin of each value: magnitudes of half octaves below the ceiling, first those of one sign and then the other's."""
    return bin_numbers(values, ceiling) + BINS * (values > 0.0)


class Clip(NamedTuple):
    """Levels below and above zero, the bias that they may cause, and the part of the records that they touch."""

    low: float
    high: float
    hidden: float
    lost: float


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Records by the unit m in which their residuals are clipped: for an average of all, the smaller of e and 1 - e.

    Residuals are clipped to [-low m, high m], and then weighted by h(e) and the inverse probability of the arm that a
    record is in, where m is min(e, 1 - e)/h(e): in the less likely arm the score reaches from -low to high, in the
    other one less far.

    Parameters
    ----------
    low, high
        Lowest and highest probability of treatment.
    least, most
        Smallest and largest unit.
    edges
        Where one stratum ends and the next begins.
    """

    low: float
    high: float
    least: float
    most: float
    edges: Float

    @classmethod
    def between(cls, low: float, high: float, unit: Callable[[Float], Float] = _rarer, largest: float = 0.5) -> Strata:
        """For probabilities of treatment from ``low`` to ``high``, and units that rise or fall on either side of 1/2.

        ``largest`` is the unit's largest value at any probability.
        """
        units = unit(np.array([low, high, 0.5] if low <= 0.5 <= high else [low, high]))
        least, most, edges = float(units.min()), float(units.max()), 2.0 * largest * _STRATA
        return cls(low, high, least, most, edges[(1.2 * least < edges) & (most / 1.2 > edges)])

    def divided(self, least: float, most: float) -> Strata:
        """The same where each unit is divided by a record's weight, between ``least`` and ``most``."""
        low, high = self.least / most, self.most / least
        return replace(self, least=low, most=high, edges=_STRATA[(1.2 * low < _STRATA) & (high / 1.2 > _STRATA)])

    @property
    def count(self) -> int:
        """Number of strata."""
        return len(self.edges) + 1

    @property
    def middles(self) -> Float:
        """A unit for every stratum."""
        ends = np.concatenate([[self.least], self.edges, [self.most]])
        return np.asarray(np.sqrt(ends[:-1] * ends[1:]))

    def numbers(self, units: Float) -> IntArray:
        """Stratum of each record."""
        return np.searchsorted(self.edges, units, side="right")

    def ends(self, low: Float, high: Float) -> tuple[Float, Float]:
        """Lowest and highest score for residuals clipped to [-low m, high m]. Proof: docs/proofs/ate.md, equation 2."""
        treated = 1.0 if self.low <= 0.5 else (1.0 - self.low) / self.low
        control = 1.0 if self.high >= 0.5 else self.high / (1.0 - self.high)
        return -np.maximum(low * treated, high * control), np.maximum(high * treated, low * control)


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Distribution of residuals over half octaves on either side of zero, in every stratum.

    Parameters
    ----------
    strata
        Records by their overlap.
    share
        Share of the records in each stratum.
    magnitudes
        Denoised distribution of the magnitude in each.
    above
        Part of each bin that lies above zero, in each.
    unseen
        Mass that noise may hide in a bin.
    bias_of_excess
        Bias that clipping is taken to cause, in mean excesses of all records.
    weight
        Mean of the weights h that excesses count with: those of large and of small ones are taken to be alike.
    """

    strata: Strata
    share: Float
    magnitudes: tuple[MagnitudeHistogram, ...]
    above: tuple[Float, ...]
    unseen: float
    bias_of_excess: float
    weight: float = 1.0

    @classmethod
    def fit(
        cls,
        fractions: Float,
        sd: float,
        ceiling: float,
        strata: Strata,
        *,
        atomic: bool,
        randomised: bool,
        weight: float = 1.0,
    ) -> Tails:
        """From fractions by stratum and signed bin, each with noise ``sd``; ``atomic`` where most have one value."""
        table = fractions.reshape(strata.count, SIDES)
        noise = sd * SIDES**0.5
        share = table.sum(axis=1)
        share = np.where(share > 2.0 * noise, share, np.maximum(share, 0.0) / 2.0 + 1e-6)
        share = share / share.sum()
        pooled = _fitted(table.sum(axis=0), sd * strata.count**0.5, ceiling)
        own = [
            # What is drowned by noise is taken to be like the others.
            _fitted(row / part, sd / part, ceiling) if part > _OWN * sd else pooled
            for row, part in zip(table, share, strict=True)
        ]
        return cls(
            strata,
            share,
            tuple(magnitude for magnitude, _ in own),
            tuple(above for _, above in own),
            (_UNSEEN_ATOM if atomic else _UNSEEN_SHAPE) * sd,
            _BIAS_OF_EXCESS if randomised and not atomic else 1.0,
            weight,
        )

    @property
    def scale(self) -> float:
        """Mean scale of the strata."""
        return float(self.share @ np.array([magnitude.scale for magnitude in self.magnitudes]))

    def ladder(self, noise: float, reach: tuple[float, float]) -> list[Clip]:
        """The clip of `clip`, and wider ones up to none, with the excess that the histogram expects of each."""
        first = self.clip(noise, reach)
        wide = [far / self.strata.least for far in reach]
        found = []
        for step in np.arange(_LADDER + 1) / _LADDER:
            low, high = (
                own * (most / own) ** step if own < most else most
                for own, most in zip((first.low, first.high), wide, strict=True)
            )
            both = [
                self._side(side, np.array([own]), far)
                for side, (own, far) in enumerate(zip((low, high), reach, strict=True))
            ]
            hidden, lost = (both[0][k] + both[1][k] for k in (0, 1))
            found.append(Clip(low, high, float(hidden[0]), float(lost[0])))
        return found

    def settle(self, ladder: list[Clip], excess: Float, sd: float, noise: float) -> Clip:
        """Which clip of a ladder to take, given measured excesses of all but the last, with noise ``sd`` each."""
        best, least = ladder[-1], np.inf
        for clip, measured in zip(ladder, [*excess, 0.0], strict=True):
            bottom, top = self.strata.ends(np.array(clip.low), np.array(clip.high))
            expected = clip.hidden / self.bias_of_excess
            # The histogram's word has an error as large as itself, unless the measured one stands clear of it: units
            # differ within a stratum, and records may lie together at its end.
            weight = expected**2 / (expected**2 + sd**2) if expected > 0.0 else 0.0
            weight = 1.0 if measured - expected > _CLEAR * sd else weight
            found = max(expected + weight * (measured - expected), 0.0) + sd * weight**0.5
            hidden = self.bias_of_excess * found
            loss = (noise * float(top - bottom) / 2.0) ** 2 + hidden**2
            if loss < least:
                best, least = clip._replace(hidden=hidden), loss
        return best

    def _side(self, side: int, levels: Float, far: float) -> tuple[Float, Float]:
        """What clips may hide on one side, and the share of the records beyond."""
        middles = self.strata.middles
        mean = float(self.share @ middles)
        hidden, lost = np.zeros(len(levels)), np.zeros(len(levels))
        for share, m, magnitude, above in zip(self.share, middles, self.magnitudes, self.above, strict=True):
            mass = np.repeat(magnitude.mass * (above if side else 1.0 - above), 8) / 8.0
            excess, beyond = _beyond(np.minimum(magnitude._points.ravel(), far), mass, levels * m)
            # All that is hidden may be records of the less likely arm.
            unseen = self.unseen * np.maximum(far - levels * m, 0.0) / mean
            hidden += share * (self.weight * self.bias_of_excess * excess + unseen)
            lost += share * beyond
        return hidden, lost

    def clip(self, noise: float, reach: tuple[float, float]) -> Clip:
        """Levels that balance noise (``noise`` times half the score's range) and what clipping may hide.

        ``reach`` is how far residuals can go at most, below and above.
        """
        sides = []
        for side, far in enumerate(reach):
            far = max(far, 1e-9)
            levels = np.geomspace(min(max(self.scale / 2.0, far / 1e5), far), far / self.strata.least, _TRIES)
            sides.append((levels, *self._side(side, levels, far)))
        (low, hidden_low, lost_low), (high, hidden_high, lost_high) = sides
        bottom, top = self.strata.ends(low[:, None], high[None, :])
        bias = hidden_low[:, None] + hidden_high[None, :]
        loss = (noise * (top - bottom) / 2.0) ** 2 + bias**2
        i, j = np.unravel_index(int(np.argmin(loss)), loss.shape)
        return Clip(float(low[i]), float(high[j]), float(bias[i, j]), float(lost_low[i] + lost_high[j]))


def _fitted(fractions: Float, sd: float, ceiling: float) -> tuple[MagnitudeHistogram, Float]:
    """Denoised magnitudes, and the part of each bin above zero."""
    below, above = np.split(fractions, 2)
    both = 2.0**0.5 * sd
    clear = below + above > 4.0 * both
    part = np.where(clear, np.clip(above / np.where(clear, below + above, 1.0), 0.0, 1.0), 0.5)
    return MagnitudeHistogram.fit(below + above, both, ceiling), part


def _beyond(at: Float, mass: Float, levels: Float) -> tuple[Float, Float]:
    """Mean excess over each level, and the share beyond it."""
    amount = np.concatenate([np.cumsum((mass * at)[::-1])[::-1], [0.0]])
    share = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    place = np.searchsorted(at, levels, side="right")
    return amount[place] - levels * share[place], share[place]
