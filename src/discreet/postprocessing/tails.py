"""How far residuals reach on either side, from a noisy histogram, and where to clip them.

Post-processing: everything here is computed from released counts and public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.magnitude import BINS, MagnitudeHistogram, bin_numbers

SIDES = 2 * BINS
# Part of what lies beyond a clip that can be of one arm alone: residuals of both arms are clipped alike, so that the
# rest cancels.
_ONE_ARM = 0.35
# Mass that noise may hide in one bin, in standard deviations of the bin's noise: where most outcomes have one value and
# say nothing about how far the others lie, and where their shape does.
_UNSEEN_ATOM, _UNSEEN_SHAPE = 1.5, 0.1
# Clips that are tried on each side.
_TRIES = 48


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
class Overlap:
    """How likely records are to be in the arm that is less likely for them: lowest, highest, and a distribution.

    Residuals are clipped to [-low m, high m], where m is that probability, and then weighted by the inverse probability
    of the arm that a record is in: in the less likely arm the score reaches from -low to high, in the other one less
    far.

    Parameters
    ----------
    low, high
        Lowest and highest probability of treatment.
    smaller, mass
        Values of m, and how common each is.
    """

    low: float
    high: float
    smaller: Float
    mass: Float

    @classmethod
    def of(cls, e: Float, mass: Float, low: float, high: float) -> Overlap:
        """From propensities and how common each is."""
        return cls(low, high, np.minimum(e, 1.0 - e), mass / mass.sum())

    @classmethod
    def from_bins(cls, fractions: Float, sd: float, low: float, high: float) -> Overlap:
        """From noisy shares of the bins of min(e, 1 - e) below one half."""
        middles = 0.5 * 2.0 ** (-0.5 * (np.arange(BINS - 1, -1, -1) + 0.5))
        middles = np.clip(middles, min(low, 1.0 - high), 0.5)
        mass = np.where(fractions > 2.0 * sd, fractions, 0.0)
        if not mass.sum() > 0.0:
            mass[int(np.argmax(fractions))] = 1.0
        return cls(low, high, middles, mass / mass.sum())

    @property
    def least(self) -> float:
        """The lowest probability of either arm."""
        return min(self.low, 1.0 - self.high)

    @property
    def mean(self) -> float:
        """Mean probability of the less likely arm."""
        return float(self.mass @ self.smaller)

    def ends(self, low: Float, high: Float) -> tuple[Float, Float]:
        """Lowest and highest score for residuals clipped to [-low m, high m]. Proof: docs/proofs/ate.md, equation 2."""
        treated = 1.0 if self.low <= 0.5 else (1.0 - self.low) / self.low
        control = 1.0 if self.high >= 0.5 else self.high / (1.0 - self.high)
        return -np.maximum(low * treated, high * control), np.maximum(high * treated, low * control)


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Distribution of residuals over half octaves on either side of zero.

    Parameters
    ----------
    magnitude
        Denoised distribution of their magnitude.
    above
        Part of each bin that lies above zero.
    unseen
        Mass that noise may hide.
    """

    magnitude: MagnitudeHistogram
    above: Float
    unseen: float

    @classmethod
    def fit(cls, fractions: Float, sd: float, ceiling: float, *, atomic: bool) -> Tails:
        """From the fractions of `signed_bins`, each with noise ``sd``; ``atomic`` where most outcomes have one value."""
        below, above = np.split(fractions, 2)
        both = 2.0**0.5 * sd
        magnitude = MagnitudeHistogram.fit(below + above, both, ceiling)
        clear = below + above > 4.0 * both
        part = np.where(clear, np.clip(above / np.where(clear, below + above, 1.0), 0.0, 1.0), 0.5)
        return cls(magnitude, part, (_UNSEEN_ATOM if atomic else _UNSEEN_SHAPE) * sd)

    def clip(self, noise: float, overlap: Overlap, reach: tuple[float, float]) -> Clip:
        """Levels that balance noise (``noise`` times half the score's range) and what clipping may hide.

        ``reach`` is how far residuals can go at most, below and above.
        """
        points = self.magnitude._points.ravel()
        mass = np.repeat(self.magnitude.mass * np.stack([1.0 - self.above, self.above]), 8, axis=1) / 8.0
        sides = []
        for own, far in zip(mass, reach, strict=True):
            at = np.minimum(points, far)
            far = max(far, 1e-9)
            start = min(max(self.magnitude.scale / 2.0, far / 1e5), far)
            levels = np.geomspace(start, far / overlap.least, _TRIES)
            # Residuals beyond the clip of a record depend on how likely it was to be in its arm.
            clips = levels[:, None] * overlap.smaller
            excess = _interpolate(at, own, clips) @ overlap.mass
            unseen = np.maximum(far - clips, 0.0) @ overlap.mass / overlap.mean
            beyond = _interpolate_share(at, own, clips) @ overlap.mass
            sides.append((levels, 2.0 * _ONE_ARM * excess + self.unseen * unseen, beyond))
        (low, hidden_low, lost_low), (high, hidden_high, lost_high) = sides
        bottom, top = overlap.ends(low[:, None], high[None, :])
        bias = hidden_low[:, None] + hidden_high[None, :]
        loss = (noise * (top - bottom) / 2.0) ** 2 + bias**2
        i, j = np.unravel_index(int(np.argmin(loss)), loss.shape)
        return Clip(float(low[i]), float(high[j]), float(bias[i, j]), float(lost_low[i] + lost_high[j]))


def _interpolate(at: Float, mass: Float, levels: Float) -> Float:
    """Mean excess over each level."""
    beyond = np.concatenate([np.cumsum((mass * at)[::-1])[::-1], [0.0]])
    count = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    place = np.searchsorted(at, levels, side="right")
    return beyond[place] - levels * count[place]


def _interpolate_share(at: Float, mass: Float, levels: Float) -> Float:
    """Share beyond each level."""
    count = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    return count[np.searchsorted(at, levels, side="right")]
