"""How each covariate is distributed: cells, denoised counts, and curves along a range that are orthonormal to them.

Post-processing, but for `cell_numbers`, `into_windows` and the curves (polynomials, a step and a kink at the median,
jumps at ranks), which are functions of one record at a time: elementwise, in a fixed order. Records pass by in every
round, so that curves are written where they are wanted, and nothing is searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.data._arrays import Float, IntArray
from discreet.data.columns import Levels, Range

# Equal bins over a declared range; polynomials of low degree need no more.
BINS = 24
# Half the width of the narrowest window: one cell of a second histogram inside one cell of the first.
NARROWEST = 1.0 / BINS**2
# Prior probability that a range is evenly filled (otherwise any bell is equally likely), and that it has the shape that
# most ranges have.
_EVEN, _COMMON = 0.5, 0.8

# A window leaves out at most this part of the records on either side, and is not worth it unless it narrows a range to
# less than this part; counts are believed over the likely shape where they stand so many standard deviations clear.
_OUTSIDE, _NARROWER, _CLEAR = 0.002, 0.75, 3.5

# Least mass of a cell, in units of an even one's: so little is never known to be nothing, nor is this part of the
# noise's standard deviation, up to a limit. Ends with less than the last are cut off in a second histogram, and a shape
# with less than a tenth of an even cell is believed unless counts stand clear.
_LEAST, _LEAST_WINDOWED, _BARELY, _LEAST_UNSEEN, _EMPTY, _NEARLY_EMPTY = 0.02, 0.004, 0.1, 0.25, 0.01, 0.1

# A marginal whose skewness exceeds this is mapped to normal scores first: products of long tails are all noise.
_SKEWED = 1.0

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
    """The same for histograms that are released again inside their windows: they may also be skewed, or filled in part.

    The first histogram has wide cells: ends that the second one finds empty are cut off.
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
    median, width = np.meshgrid(np.geomspace(0.02, 0.7, 40), np.geomspace(0.2, 1.4, 16))
    below = ndtr(np.log(edges[None, :] / median.reshape(-1, 1)) / width.reshape(-1, 1))
    mass = np.maximum(np.diff(below, axis=1, prepend=0.0), 1e-12)
    mass /= mass.sum(axis=1, keepdims=True)
    return np.vstack([mass, mass[:, ::-1]])


# Where a window is sought, bells may be much narrower, and there are others. Widths lie close together: ranges that
# share a shape find it to within a step, and slopes that rest on a wrong one bend every curve at its ends.
_SHAPES = _Shapes.of((1.0 - _EVEN, _bells(15, 0.1, 14)))
_MORE_SHAPES = _Shapes.of((0.35, _bells(57, 0.02, 40)), (0.1, _plateaus()), (0.05, _skewed()))


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Linear between equally distant knots, from the first to the last of them: to the bit what `np.interp` gives.

    That one searches for the knots, which takes several times as long as to work out where they are.
    """

    low: float
    high: float
    values: Float
    _knots: Float = field(init=False, repr=False)
    _following: Float = field(init=False, repr=False)
    _slopes: Float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        knots = np.linspace(self.low, self.high, len(self.values))
        set_ = object.__setattr__  # a frozen fact that works out its own parts
        set_(self, "_knots", knots)
        set_(self, "_following", np.append(knots[1:], np.inf))
        set_(self, "_slopes", np.append(np.diff(self.values) / np.diff(knots), 0.0))

    def __call__(self, x: Float) -> Float:
        found = x - self.low
        # Rounding must not find a knot that lies ahead; the right one may then be the next.
        found *= (len(self._knots) - 1) / (self.high - self.low) * (1.0 - 1e-12)
        knot = found.astype(np.intp)
        knot += x >= self._following.take(knot, out=found, mode="clip")
        line = x - self._knots.take(knot, out=found, mode="clip")
        line *= self._slopes.take(knot, out=found, mode="clip")
        line += self.values.take(knot, out=found, mode="clip")
        return line


def normal_scores(marginal: Float) -> Line | None:
    """Normal scores of a skewed marginal, at the middle of the ranks of its bins; None where it is not skewed."""
    centres = (2.0 * np.arange(len(marginal)) + 1.0) / len(marginal) - 1.0
    apart = centres - marginal @ centres
    variance = float(marginal @ apart**2)
    if abs(float(marginal @ apart**3)) < _SKEWED * variance**1.5:
        return None
    middle = np.cumsum(marginal) - marginal / 2.0
    half = 1.0 / len(marginal)
    return Line(-1.0 + half, 1.0 - half, np.asarray(ndtri(np.clip(middle, 0.005, 0.995))))


def unroll(u: Float, scores: Line | None) -> Float:
    """Normal scores where a range has them: level at both ends, where a spike would otherwise be torn apart."""
    return u if scores is None else scores(np.clip(u, scores.low, scores.high))


def recurrence(marginal: Float, scores: Line | None, degree: int) -> Float:
    """Three-term recurrence of the polynomials orthonormal to a histogram on [-1, 1] (Stieltjes), a row a degree."""
    points, mass = _quadrature(marginal)
    points = unroll(points, scores)
    rows, back = [], 0.0
    before, now = np.zeros_like(points), np.ones_like(points)
    for _ in range(degree):
        shift = float(mass @ (points * now * now))
        after = (points - shift) * now - back * before
        # A marginal on a few points has few polynomials: a floor keeps the others finite, and the Gram sorts them out.
        scale = max(float(np.sqrt(mass @ after**2)), 1e-3)
        rows.append((shift, back, scale))
        before, now, back = now, after / scale, scale
    return np.array(rows)


def polynomials(u: Float, rows: Float, out: Float | None = None) -> list[Float]:
    """The polynomials of a recurrence, in the first rows of ``out`` if it is given."""
    curves = list(np.empty((len(rows), len(u))) if out is None else out[: len(rows)])
    before: Float | float = 0.0
    now: Float | float = 1.0
    for (shift, back, scale), after in zip(rows, curves, strict=True):
        np.subtract(u, shift, out=after)
        after *= now
        after -= back * before
        after /= scale
        before, now = now, after
    return curves


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Curves of the ranks, made orthonormal to the polynomials: bounded, where cubes would run away.

    ``projections`` are the Gram-Schmidt coefficients of each curve: its parts along those before it, and its length.
    """

    below: Line
    steps: bool
    thresholds: Float
    projections: tuple[Float, ...] = ()

    @classmethod
    def of(cls, marginal: Float, scores: Line | None, rows: Float, *, steps: bool, jumps: int) -> Ranks:
        """A step and a kink at the median if wanted, and so many jumps, beside the polynomials of a recurrence."""
        below = Line(-1.0, 1.0, np.concatenate([[0.0], np.cumsum(marginal)]))
        plain = cls(below, steps, np.asarray((np.arange(jumps) + 1.0) / (jumps + 1.0), dtype=np.float64))
        points, mass = _quadrature(marginal)
        curves = [np.ones_like(points), *polynomials(unroll(points, scores), rows)]
        projections = []
        for curve in plain._of(points, np.empty((plain.number, len(points)))):
            parts = np.array([mass @ (curve * other) for other in curves])
            rest = curve - sum(part * other for part, other in zip(parts, curves, strict=True))
            length = max(float(np.sqrt(mass @ rest**2)), 1e-2)
            curves.append(rest / length)
            projections.append(np.append(parts, length))
        return cls(below, steps, plain.thresholds, tuple(projections))

    @property
    def number(self) -> int:
        """How many curves there are."""
        return 2 * self.steps + len(self.thresholds)

    def __call__(self, x: Float, beside: list[Float], out: Float | None = None) -> list[Float]:
        """The curves beside the polynomials, in the first rows of ``out`` if it is given."""
        curves, term = list(beside), np.empty(len(x))
        plain = self._of(x, np.empty((self.number, len(x))) if out is None else out[: self.number])
        for rest, projection in zip(plain, self.projections, strict=True):
            rest -= projection[0]
            for part, other in zip(projection[1:-1], curves, strict=True):
                rest -= np.multiply(part, other, out=term)
            rest /= projection[-1]
            curves.append(rest)
        return curves[len(beside) :]

    def _of(self, x: Float, out: Float) -> Float:
        """From -1 to 1 over the middle half of the ranks, and its magnitude; jumps from -1 to 1 at equal distances."""
        rank = self.below(x)
        if self.steps:
            np.abs(median_step(rank, out[0]), out=out[1])
        for at, jump in zip(self.thresholds, out[2 * self.steps :], strict=True):
            np.greater(rank, at, out=jump)
            jump *= 2.0
            jump -= 1.0
        return out


def median_step(rank: Float, out: Float | None = None) -> Float:
    """From -1 to 1 over the middle half of the ranks."""
    step = np.multiply(4.0, rank, out=out)
    step -= 2.0
    np.maximum(step, -1.0, out=step)
    return np.minimum(step, 1.0, out=step)


def _quadrature(marginal: Float) -> tuple[Float, Float]:
    """Points of [-1, 1] and their masses, which integrate over a histogram."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = 1.0 / len(marginal)
    centres = -1.0 + half * (2.0 * np.arange(len(marginal)) + 1.0)
    return (centres[:, None] + half * nodes).ravel(), (marginal[:, None] * weights / 2.0).ravel()
