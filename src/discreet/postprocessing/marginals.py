"""How each covariate is distributed: cells, released counts without their noise, and points that stand in for records.

Post-processing, but for `cell_numbers`, which is a function of one record at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.data._arrays import Float, IntArray
from discreet.data.columns import Levels, Range

# Equal bins over a declared range; polynomials of low degree need no more.
BINS = 24
# Half the width of the narrowest window: one cell of a second look inside one cell of the first.
NARROWEST = 1.0 / BINS**2
# Before anything is seen a range is evenly filled with this probability, and otherwise any bell is equally likely; and
# the probability that a range has the shape that most of them have.
_EVEN, _COMMON = 0.5, 0.8

# A window leaves out at most this part of the records on either side, and is not worth it unless it narrows a range to
# less than this part; counts are believed over the likely shape where they stand so many standard deviations clear.
_OUTSIDE, _NARROWER, _CLEAR = 0.002, 0.75, 3.5

# Least mass of a cell, in units of an even one's: so little is never known to be nothing, nor is this part of the
# noise's standard deviation, up to a limit. Ends with less than the last are cut off in a second look, and a shape with
# less than a tenth of an even cell is believed unless counts stand clear.
_LEAST, _LEAST_WINDOWED, _BARELY, _LEAST_UNSEEN, _EMPTY, _NEARLY_EMPTY = 0.02, 0.004, 0.1, 0.25, 0.01, 0.1

Column = Range | Levels
# Middle and half width of a part of [-1, 1].
Window = tuple[float, float]


def cells(column: Column) -> int:
    """Number of cells of a column's marginal: its levels, or equal bins of its range."""
    return len(column.levels) if isinstance(column, Levels) else BINS


def cell_numbers(x: Float, columns: tuple[Column, ...]) -> IntArray:
    """Cell of each record in each column."""
    numbers = np.empty(x.shape, dtype=np.int64, order="F")
    for j, column in enumerate(columns):
        if isinstance(column, Levels):
            numbers[:, j] = x[:, j]
        else:
            numbers[:, j] = np.minimum((x[:, j] + 1.0) * (BINS / 2.0), BINS - 1)
    return numbers


def into_windows(x: Float, windows: Sequence[Window | None]) -> Float:
    """Covariates counted from -1 to 1 inside their windows; what lies outside counts as its ends."""
    if not any(windows):
        return x
    out = x.copy()
    for j, window in enumerate(windows):
        if window is not None:
            out[:, j] = np.clip((x[:, j] - window[0]) / window[1], -1.0, 1.0)
    return out


def find_windows(columns: Sequence[Column], fractions: Sequence[Float], sd: float) -> tuple[Window | None, ...]:
    """Where nearly all records of each range are, from released histograms; None where that is most of the range."""
    ranges = [part for column, part in zip(columns, fractions, strict=True) if isinstance(column, Range)]
    shapes = iter(_likely_shapes(ranges, sd, _MORE_SHAPES))
    return tuple(
        _window(part, next(shapes), sd) if isinstance(column, Range) else None
        for column, part in zip(columns, fractions, strict=True)
    )


def _window(fractions: Float, shape: Float, sd: float) -> Window | None:
    # Bin by bin: what is all noise would add up over the empty ones.
    mass = np.where(np.abs(fractions - shape) > _CLEAR * sd, np.maximum(fractions, 0.0), shape)
    mass /= mass.sum()
    low = int(np.searchsorted(np.cumsum(mass), _OUTSIDE))
    high = BINS - int(np.searchsorted(np.cumsum(mass[::-1]), _OUTSIDE))
    if high - low > _NARROWER * BINS:
        return None
    return (low + high) / BINS - 1.0, (high - low) / BINS


def clean_marginals(columns: Sequence[Column], fractions: Sequence[Float], sd: float) -> tuple[Float, ...]:
    """Denoise released histograms: towards what a bell (for levels, equal cells) would give, by James and Stein.

    Bells are normal curves cut off at the ends of the range. A range's shape is the average of all bells and of even
    cells, weighted by how likely each is; how likely they are beforehand is learnt from all ranges together, because
    bounds that were declared by the same people tend to be generous to the same degree. Where the noise is small, the
    histograms are returned as they are.
    """
    ordered_parts = [part for column, part in zip(columns, fractions, strict=True) if isinstance(column, Range)]
    bells = iter(_likely_shapes(ordered_parts, sd, _SHAPES))
    shapes = [
        next(bells) if isinstance(column, Range) else np.full(len(part), 1.0 / len(part))
        for column, part in zip(columns, fractions, strict=True)
    ]
    return tuple(_at_least(_kept(part, shape, sd), _LEAST) for part, shape in zip(fractions, shapes, strict=True))


def clean_windows(
    windows: Sequence[Window | None], fractions: Sequence[Float], sd: float
) -> tuple[list[Window | None], list[Float]]:
    """The same for ranges that are looked at again inside their windows: they may also be skewed, or filled in part.

    A first look has wide cells: ends that the second one finds empty are cut off.
    """
    least = max(_LEAST_WINDOWED, min(_LEAST_UNSEEN, _BARELY * sd * BINS))
    found: list[Window | None] = []
    marginals = []
    for window, part, shape in zip(windows, fractions, _likely_shapes(fractions, sd, _MORE_SHAPES), strict=True):
        kept = _kept(part, shape, sd)
        believed = (shape < _NEARLY_EMPTY / BINS) & (np.abs(part - shape) < _CLEAR * sd)
        closer, inside = _without_empty_ends(window, np.maximum(np.where(believed, shape, kept), 0.0))
        found.append(closer)
        marginals.append(_at_least(inside, least))
    return found, marginals


def _without_empty_ends(window: Window | None, mass: Float) -> tuple[Window | None, Float]:
    filled = np.flatnonzero(mass > _EMPTY / BINS)
    if not filled.size or filled[-1] + 1 - filled[0] > _NARROWER * BINS:
        return window, mass
    low, high = int(filled[0]), int(filled[-1]) + 1
    below = np.cumsum(np.concatenate([[0.0], mass[low:high]]))
    inside = np.diff(np.interp(np.linspace(0.0, high - low, BINS + 1), np.arange(high - low + 1), below))
    middle, half = window or (0.0, 1.0)
    return (middle + half * ((low + high) / BINS - 1.0), half * (high - low) / BINS), inside


class _Shapes(NamedTuple):
    """Shapes that a range may have, and how likely each is before anything is seen."""

    mass: Float
    expected: Float

    @classmethod
    def of(cls, *families: tuple[float, Float]) -> _Shapes:
        """Families of shapes, each with a probability that all of them share alike; even cells come first."""
        even = np.full((1, BINS), 1.0 / BINS)
        expected = [np.full(len(mass), share / len(mass)) for share, mass in families]
        return cls(np.vstack([even, *(mass for _, mass in families)]), np.concatenate([[_EVEN], *expected]))


def _likely_shapes(fractions: Sequence[Float], sd: float, shapes: _Shapes) -> list[Float]:
    """Posterior mean of each range's shape, under a prior over shapes that is common to all of them."""
    if not fractions:
        return []
    mass, expected = shapes
    loss = np.stack([np.sum((part - mass) ** 2, axis=1) for part in fractions])
    evidence = np.exp(-(loss - loss.min(axis=1, keepdims=True)) / (2.0 * max(sd, 1e-12) ** 2))
    # How likely each shape is to be what most ranges have: others count only as far as they fit it.
    fit = np.log(_COMMON * evidence / (evidence @ expected)[:, None] + 1.0 - _COMMON).sum(axis=0)
    common = expected * np.exp(fit - fit.max())
    likely = evidence * (_COMMON * common / common.sum() + (1.0 - _COMMON) * expected)
    likely /= likely.sum(axis=1, keepdims=True)
    return list(likely @ mass)


def _at_least(mass: Float, least: float) -> Float:
    values = np.maximum(mass, least / len(mass))
    return np.asarray(values / values.sum())


def _kept(fractions: Float, shape: Float, sd: float) -> Float:
    apart, size = fractions - shape, len(fractions)
    # Noise alone exceeds its expectation now and then: only what is clearly more than noise is kept.
    noise = size * sd**2 * (1.0 + 2.0 * np.sqrt(2.0 / size))
    keep = max(0.0, 1.0 - noise / max(float(apart @ apart), 1e-300))
    return np.asarray(shape + keep * apart)


def _bells(centres: int, narrowest: float, widths: int) -> Float:
    """Normal curves cut off at the ends of the range."""
    edges = np.linspace(-1.0, 1.0, BINS + 1)
    centre, width = np.meshgrid(np.linspace(-1.4, 1.4, centres), np.geomspace(narrowest, 1.5, widths))
    below = ndtr((edges[None, :] - centre.reshape(-1, 1)) / width.reshape(-1, 1))
    mass = np.maximum(np.diff(below, axis=1), 1e-12)
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _plateaus() -> Float:
    """Even cells between any two edges, somewhat less at either end."""
    parts = []
    for low in range(BINS):
        for high in range(low + 3, BINS + 1):
            mass = np.full(BINS, 1e-12)
            mass[low:high] = 1.0
            mass[[low, high - 1]] = 0.6
            parts.append(mass / mass.sum())
    return np.stack(parts)


def _skewed() -> Float:
    """Log-normal curves that start at either end of the range."""
    edges = np.linspace(0.0, 1.0, BINS + 1)[1:]
    median, spread = np.meshgrid(np.geomspace(0.02, 0.7, 40), np.geomspace(0.2, 1.4, 16))
    below = ndtr(np.log(edges[None, :] / median.reshape(-1, 1)) / spread.reshape(-1, 1))
    mass = np.maximum(np.diff(below, axis=1, prepend=0.0), 1e-12)
    mass /= mass.sum(axis=1, keepdims=True)
    return np.vstack([mass, mass[:, ::-1]])


# Where a window is looked for, bells may be much narrower, and there are others. Widths lie close together: ranges that
# share a shape find it to within a step, and slopes that rest on a wrong one bend every curve at its ends.
_SHAPES = _Shapes.of((1.0 - _EVEN, _bells(15, 0.1, 14)))
_MORE_SHAPES = _Shapes.of((0.35, _bells(57, 0.02, 40)), (0.1, _plateaus()), (0.05, _skewed()))


def reference_points(columns: tuple[Column, ...], marginals: tuple[Float, ...], correlation: Float, size: int) -> Float:
    """Deterministic sample of a Gaussian copula with the released marginals: a public stand-in for the covariates."""
    values, vectors = np.linalg.eigh(correlation)
    factor = vectors * np.sqrt(np.maximum(values, 0.02))
    factor /= np.sqrt(np.sum(factor**2, axis=1, keepdims=True))
    even: Float = ndtr(ndtri(_kronecker(size, len(columns))) @ factor.T)
    points = np.empty(even.shape)
    for j, (column, marginal) in enumerate(zip(columns, marginals, strict=True)):
        below = np.concatenate([[0.0], np.cumsum(marginal)])
        below[-1] = 1.0
        if isinstance(column, Levels):
            points[:, j] = np.clip(np.searchsorted(below, even[:, j], side="right") - 1, 0, len(marginal) - 1)
        else:
            points[:, j] = np.interp(even[:, j], below, np.linspace(-1.0, 1.0, len(below)))
    return points


def _kronecker(size: int, dimension: int) -> Float:
    """Evenly spread points in the unit cube: multiples of square roots of primes, modulo one."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < dimension:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    steps = np.sqrt(np.array(primes, dtype=np.float64))
    return np.asarray(np.clip((0.5 + np.arange(1, size + 1)[:, None] * steps) % 1.0, 1e-6, 1.0 - 1e-6))
