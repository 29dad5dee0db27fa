"""How large a quantity is, from a noisy histogram of its magnitude; and where to clip it.

Post-processing: everything here is computed from released counts and public numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, stdtr

from discreet.data._arrays import Float, IntArray

# Half octaves below a public ceiling: sixteen factors of two are enough for any sensible declaration of bounds.
BINS = 32
# Shapes that a magnitude may have: |Student t| with these degrees of freedom, the heavier ones only on evidence.
_SHAPES = ((np.inf, 0.0), (6.0, 2.0), (3.0, 4.0), (1.8, 6.0))
# Scales and weights are distinguished to an eighth of an octave.
_STEPS = 8
_SCALES = np.arange(-_STEPS * BINS // 2 + _STEPS, _STEPS // 2)
# Counts are believed over the fitted shape where they stand this many noise standard deviations clear; out in the tail,
# where a single false alarm would move the clip by octaves, they have to stand out further.
_CLEAR, _CLEAR_TAIL = 3.0, 4.5
# There is no use in a clip that hardly anything exceeds.
_ENOUGH = 0.98
# Clips that are tried, in scales: weighted residuals are small in the large arm and large in the small one, so that the
# best may lie far above the common size.
_TRIES = np.geomspace(1.0, 400.0, 120)
# Part of the excess over a clip that counts as bias of a model's moments: excesses on both sides cancel, and what is
# left is no function of the features. Of .2 and 1, and of clips at a fixed part of the excess, on studies 3000 to 3239
# of evidence/population.
_HIDDEN = 0.2


# Values, and the mass of each.
Factors = tuple[Float, Float]


def arm_factors(e: Float, of: Callable[[Float, Float], Float]) -> Factors:
    """Values of a weight ``of(t, e)`` in either arm, each with its probability."""
    return np.concatenate([of(np.ones_like(e), e), of(np.zeros_like(e), e)]), np.concatenate([e, 1.0 - e])


def bin_numbers(values: Float, ceiling: float) -> IntArray:
    """Bin of each magnitude, up to and with its upper edge; what exceeds the ceiling goes into the last one.

    Logarithms find the bin or, rarely, the one below, which takes far less time than to search for it.
    """
    edges = _edges(ceiling)
    # NaN goes into the last bin.
    size = np.fmax(np.fmin(np.abs(values), ceiling), edges[0])
    place = np.log2(size / ceiling)
    place *= 2.0
    place += BINS - 1.0 - 1e-9
    bins: IntArray = np.ceil(place, out=place).astype(np.int64)
    bins += size > edges.take(bins)
    return bins


def _edges(ceiling: float) -> Float:
    return np.asarray(ceiling * 2.0 ** (-0.5 * np.arange(BINS - 1, -1, -1.0)))


# Where the edges lie above each scale, in steps; and P(|t| < 2 ** (steps / 8)) for every shape.
_ABOVE = -_STEPS // 2 * np.arange(BINS - 1, -1, -1)[None, :] - _SCALES[:, None]
_REACH = int(np.max(np.abs(_ABOVE))) + 16 * _STEPS
_GRID = 2.0 ** (np.arange(-_REACH, _REACH + 1) / _STEPS)
_BELOW = np.stack([2.0 * (ndtr(_GRID) if np.isinf(df) else stdtr(df, _GRID)) - 1.0 for df, _ in _SHAPES])


def _shape_cells(factors: Factors | None) -> Float:
    """Mass of every shape at every scale in every bin, for magnitudes multiplied by known factors."""
    shifts, share = np.array([0]), np.array([1.0])
    if factors is not None:
        values, mass = factors
        steps = np.clip(np.rint(_STEPS * np.log2(values)), -8 * _STEPS, 8 * _STEPS).astype(int)
        shifts, which = np.unique(steps, return_inverse=True)
        share = np.bincount(which, weights=mass) / mass.sum()
    below = np.zeros((len(_SHAPES), *_ABOVE.shape))
    for shift, part in zip(shifts, share, strict=True):
        below += part * _BELOW[:, np.clip(_ABOVE - shift + _REACH, 0, 2 * _REACH)]
    mass = np.diff(below, axis=2, prepend=0.0)
    # What lies beyond the last edge; rounding must not make it negative.
    mass[:, :, -1] = np.maximum(mass[:, :, -1] + 1.0 - mass.sum(axis=2), 0.0)
    return np.asarray(mass)


_CELLS = _shape_cells(None)


@dataclass(frozen=True, slots=True, eq=False)
class MagnitudeHistogram:
    """Denoised distribution of a magnitude over half octaves."""

    edges: Float
    mass: Float
    net: Float | None = None

    @classmethod
    def fit(cls, fractions: Float, sd: float, ceiling: float, factors: Factors | None = None) -> MagnitudeHistogram:
        """Fit a shape by least squares (all bins have equal noise), then believe what stands clear of the noise.

        ``factors`` are public weights that the magnitude is known to carry, and how common each is: the shape is then
        that of a simple magnitude times these weights.
        """
        cells = _CELLS if factors is None else _shape_cells(factors)
        loss = np.sum((fractions - cells) ** 2, axis=2) / sd**2 + np.array([penalty for _, penalty in _SHAPES])[:, None]
        likely = np.exp((loss.min() - loss) / 2.0)
        shape = np.tensordot(likely / likely.sum(), cells, axes=2)
        needed = np.where(shape > sd, _CLEAR, _CLEAR_TAIL) * sd
        believe = np.abs(fractions - shape) > needed
        mass = np.where(believe, np.maximum(fractions, 0.0), shape)
        return cls(_edges(ceiling), mass / mass.sum())

    @property
    def scale(self) -> float:
        """The magnitude that about two thirds stay below: one standard deviation, were it normal."""
        below = np.cumsum(self.mass)
        i = int(np.searchsorted(below, 0.683))
        low = self.edges[i - 1] if i else self.edges[0] / 2.0
        part = (0.683 - (below[i - 1] if i else 0.0)) / max(float(self.mass[i]), 1e-9)
        return float(low * (self.edges[i] / low) ** min(max(part, 0.0), 1.0))

    def below(self, level: float) -> float:
        """Share of magnitudes below a level."""
        return float(self.below_each(np.array([level]))[0])

    def below_each(self, levels: Float) -> Float:
        """Share of magnitudes below each of several levels."""
        low = np.concatenate([[self.edges[0] / 16.0], self.edges[:-1]])
        part = np.log(np.maximum(levels, 1e-300)[:, None] / low) / np.log(self.edges / low)
        return np.asarray(np.clip(part, 0.0, 1.0) @ self.mass)

    @property
    def _points(self) -> Float:
        """Magnitudes that stand for those of each bin."""
        low = np.concatenate([[self.edges[0] / 16.0], self.edges[:-1]])
        return np.asarray(low[:, None] * (self.edges / low)[:, None] ** ((np.arange(8) + 0.5) / 8.0))

    def excess(self, levels: Float) -> Float:
        """Mean of what exceeds each level."""
        over = np.maximum(self._points[None] - levels[:, None, None], 0.0).mean(axis=2)
        return np.asarray(over @ self.mass)

    def with_sides(self, net: Float, sd: float) -> MagnitudeHistogram:
        """Knowing by how much one sign is more common than the other in each bin, where that is clear of the noise."""
        return replace(self, net=np.where(np.abs(net) > _CLEAR_TAIL * sd, net, 0.0))

    def lopsided(self, levels: Float) -> Float:
        """Mean of what exceeds each level on one side, less that on the other, were a bin's magnitudes at its end."""
        if self.net is None:
            return np.zeros(len(levels))
        return np.asarray(np.abs(np.maximum(self.edges[None] - levels[:, None], 0.0) @ self.net))

    def clipped_square(self, level: float) -> float:
        """Mean square of the magnitude clipped at a level."""
        return float((np.minimum(self._points, level) ** 2).mean(axis=1) @ self.mass)

    @property
    def mean(self) -> float:
        """Mean magnitude."""
        return float(self.excess(np.zeros(1))[0])

    def clip_at_scales(self, scales: float, hidden: float) -> float:
        """So many scales, less where hardly anything lies beyond, and more where that would hide too much.

        ``hidden`` is the largest part of the mean magnitude that may lie beyond on one side alone.
        """
        usual = self.scale * np.linspace(0.5, scales, 32)
        further = np.geomspace(usual[-1], max(usual[-1], float(self.edges[-1])), 32)[1:]
        levels = np.concatenate([usual, further])
        enough = (self.below_each(levels) >= _ENOUGH) | (levels >= usual[-1])
        little = self.lopsided(levels) <= hidden * self.mean
        found = np.flatnonzero(enough & little)
        return float(levels[found[0]] if found.size else levels[-1])

    def clip(self, noise: float) -> float:
        """Level that balances noise (``noise`` times it) and what clipping may hide (a part of the excess over it)."""
        levels = self.scale * _TRIES
        best = int(np.argmin((noise * levels) ** 2 + (_HIDDEN * self.excess(levels)) ** 2))
        return float(levels[best])
