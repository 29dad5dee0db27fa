"""Functions of release files of versions 1 and 2: polynomials, jumps and contrasts of covariates, and their products.

Files say how rich such a function is and how each covariate is distributed; its features follow. Everything here is a
function of public numbers and of one row at a time: elementwise, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float
from discreet.data.columns import Levels, Range
from discreet.exceptions import InvalidInput
from discreet.postprocessing.coding import Column

# Nothing is fitted with these functions any more: every number of theirs is part of what a written file says.

# Unit: equal bins over a range, in files of versions 1 and 2.
_BINS = 24
# Unit: half the width of the narrowest window, one cell of a second histogram inside one cell of the first.
NARROWEST = 1.0 / _BINS**2
# Unit: a marginal whose skewness exceeds this is mapped to normal scores first, in files of versions 1 and 2.
_SKEWED = 1.0
# Unit: weights of the constant, of products and of curved products, beside one of a first term, and the power of its
# order by which the weight of a range's later curves falls, in files of versions 1 and 2.
_INTERCEPT, _PAIR, _CURVED, _DECAY = 1.5, 0.6, 0.5, 0.3
# Memory: sizes that a file may ask for, far above what any release has.
_MOST_CURVES = 64

# Middle and half width of a part of [-1, 1].
Window = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How rich a function is: highest power of one covariate, a step and a kink at its median, sudden jumps at so many
    of its ranks, products of two covariates, and products in which one of them is squared (or, with steps, its step).
    """

    degree: int
    pairs: bool
    curved: bool
    steps: bool = False
    # Unit: files that do not name jumps have none.
    jumps: int = 0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            counts = name in {"degree", "jumps"}
            if type(value) is not (int if counts else bool):
                raise InvalidInput("size has a field of the wrong type; check the file.")
            if counts and not 0 <= value <= _MOST_CURVES:
                raise InvalidInput(f"size has a {name} that no release has; check the file.")

    @property
    def curves(self) -> int:
        """Features of one range."""
        return self.degree + 2 * self.steps + self.jumps

    def __str__(self) -> str:
        parts = ["linear" if self.degree == 1 else f"polynomials of degree {self.degree}"]
        parts += ["a step and a kink at each median"] * self.steps
        parts += [f"jumps at {self.jumps} ranks"] * (self.jumps > 0)
        parts += ["products of all pairs"] * self.pairs + ["curved products"] * self.curved
        return ", ".join(parts)


def cells(column: Column) -> int:
    """Number of cells of a column's marginal: its levels, or equal bins of its range."""
    return len(column.levels) if isinstance(column, Levels) else _BINS


@dataclass(frozen=True, slots=True, eq=False)
class PolynomialTerms:
    """Features of covariates.

    The first feature is a constant. A Range contributes polynomials orthonormal to its marginal, then a step and a kink
    and jumps if wanted; Levels contribute orthonormal contrasts; products of two features follow. ``weight`` is that of
    each feature.

    Parameters
    ----------
    columns
        What was declared about the covariates.
    marginals
        Released distribution of each column over its cells.
    size
        How rich the function is.
    windows
        Middle and half width of the part of each range that its marginal is about, where that is not all of it; what
        lies outside counts as its ends.
    """

    columns: tuple[Column, ...]
    marginals: tuple[Float, ...]
    size: Size
    windows: tuple[Window | None, ...] = ()
    weight: Float = field(init=False, repr=False)
    _parts: tuple[_RangeCurves | Float, ...] = field(init=False, repr=False)
    _places: tuple[range, ...] = field(init=False, repr=False)
    _products: tuple[tuple[int, int], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        weight, places = [_INTERCEPT], []
        parts: list[_RangeCurves | Float] = []
        for column, marginal in zip(self.columns, self.marginals, strict=True):
            start = len(weight)
            if isinstance(column, Range):
                parts.append(_RangeCurves.of(marginal, self.size))
                weight += list(np.arange(1, self.size.curves + 1) ** -_DECAY)
            else:
                parts.append(_contrasts(marginal))
                weight += [1.0] * (len(marginal) - 1)
            places.append(range(start, len(weight)))
        products, curved = self._pairs(places)
        start = len(weight)
        # Each is made of features before it.
        if any(max(pair) >= place for place, pair in enumerate(products + curved, start)):
            raise InvalidInput("size has a degree that no release has; check the file.")
        weight += [_PAIR] * len(products) + [_CURVED] * len(curved)
        set_ = object.__setattr__  # a frozen fact that works out its own parts
        set_(self, "weight", np.array(weight))
        set_(self, "_parts", tuple(parts))
        set_(self, "_places", tuple(places))
        set_(self, "_products", (*products, *curved))
        for array in (*self.marginals, self.weight):
            array.flags.writeable = False

    def _check(self) -> None:
        if [marginal.shape for marginal in self.marginals] != [(cells(column),) for column in self.columns]:
            raise InvalidInput("marginals must have one number for each cell of each covariate; check the file.")
        fit = all(map(_fits, self.windows, self.columns))
        if len(self.windows) not in (0, len(self.columns)) or not fit:
            raise InvalidInput("windows must lie inside the ranges, one for each covariate or none; check the file.")
        if not all(np.all(np.isfinite(marginal)) for marginal in self.marginals):
            raise InvalidInput("every released number must be finite; check how it was computed.")

    def _pairs(self, places: list[range]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Products of first terms (of all contrasts, for levels), and those of a range's first and a later term."""
        ranges = [isinstance(column, Range) for column in self.columns]
        first = [range(own.start, own.start + 1) if whole else own for own, whole in zip(places, ranges, strict=True)]
        pairs = list(combinations(range(len(places)), 2))
        both = [(first[j][0], first[k][0]) for j, k in pairs if ranges[j] and ranges[k]]
        later = (1, 2) if self.size.steps else (1,)
        products = [(a, b) for j, k in pairs for a in first[j] for b in first[k]]
        curved = [pair for d in later for a, b in both for pair in ((a + d, b), (a, b + d))]
        return products if self.size.pairs else [], curved if self.size.curved else []

    @property
    def m(self) -> int:
        """Number of features, the constant included."""
        return len(self.weight)

    def features(self, x: Float) -> Float:
        """Weighted features of encoded covariates, a row for each of theirs."""
        # One feature after the other lies in memory.
        rows = np.empty((self.m, len(x)))
        rows[0] = 1.0
        for j, (part, own) in enumerate(zip(self._parts, self._places, strict=True)):
            if isinstance(part, _RangeCurves):
                rows[own.start : own.stop] = part(_into_window(x[:, j], self.windows[j] if self.windows else None))
            else:
                rows[own.start : own.stop] = part[x[:, j].astype(np.intp)].T
        start = self.m - len(self._products)
        # Products are of features without their weights.
        for row, (a, b), weight in zip(rows[start:], self._products, self.weight[start:], strict=True):
            row[:] = rows[a] * rows[b] * weight
        rows[:start] *= self.weight[:start, None]
        return rows.T

    def along(self, j: int, values: Float, average: Float) -> Float:
        """Weighted features, a row for each encoded value of one covariate; the others' are as they are on average."""
        x = np.zeros((len(values), len(self.columns)))
        x[:, j] = values
        own, weight = self._places[j], self.weight
        there, usual = self.features(x) / weight, average / weight
        rows = np.tile(average, (len(values), 1))
        for k in own:
            rows[:, k] = there[:, k] * weight[k]
        for k, pair in enumerate(self._products, self.m - len(self._products)):
            if any(i in own for i in pair):
                first, second = (there[:, i] if i in own else usual[i] for i in pair)
                rows[:, k] = first * second * weight[k]
        return rows

    def __str__(self) -> str:
        return str(self.size)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "kind": "polynomials",
            "size": asdict(self.size),
            "marginals": [marginal.tolist() for marginal in self.marginals],
            "windows": [window and list(window) for window in self.windows],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], columns: tuple[Column, ...]) -> PolynomialTerms:
        """Read it back, for the declared covariates."""
        marginals = tuple(np.array(marginal, dtype=np.float64) for marginal in plain["marginals"])
        windows = tuple(None if window is None else _window(*window) for window in plain["windows"])
        return cls(columns, marginals, Size(**plain["size"]), windows)


def _window(middle: Any, half: Any) -> Window:
    return float(middle), float(half)


def _fits(window: Window | None, column: Column) -> bool:
    """Whether there is no window, or one of a range: inside it, and no narrower than two rounds made it."""
    if window is None:
        return True
    middle, half = window
    # Numerical: rounding of files.
    return isinstance(column, Range) and half >= NARROWEST - 1e-9 and abs(middle) + half <= 1.0 + 1e-9


def _into_window(u: Float, window: Window | None) -> Float:
    """A covariate counted from -1 to 1 inside its window; what lies outside counts as its ends."""
    return u if window is None else np.clip((u - window[0]) / window[1], -1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _RangeCurves:
    """Curves along a range that are orthonormal to its marginal: polynomials, then bounded functions of the ranks.

    ``scores`` are normal scores in the middle of bins, where the marginal is skewed; ``recurrence`` has the three
    numbers of each polynomial in a row; ``below`` is the rank at the edges of bins. ``projections`` are the
    Gram-Schmidt coefficients of each further curve: its parts along those before it, and its length.
    """

    scores: Float | None
    recurrence: Float
    below: Float
    steps: bool
    thresholds: Float
    projections: tuple[Float, ...] = ()

    @classmethod
    def of(cls, marginal: Float, size: Size) -> _RangeCurves:
        """Those of a marginal."""
        points, mass = _quadrature(marginal)
        scores = _normal_scores(marginal)
        thresholds = np.asarray((np.arange(size.jumps) + 1.0) / (size.jumps + 1.0), dtype=np.float64)
        below = np.concatenate([[0.0], np.cumsum(marginal)])
        plain = cls(scores, _recurrence(_unroll(points, scores), mass, size.degree), below, size.steps, thresholds)
        curves, projections = [np.ones_like(points), *plain._polynomials(points)], []
        for curve in plain._of_ranks(points):
            parts = np.array([mass @ (curve * other) for other in curves])
            rest = curve - sum(part * other for part, other in zip(parts, curves, strict=True))
            # Unit: where a marginal has no place for a curve, in files of versions 1 and 2.
            length = max(float(np.sqrt(mass @ rest**2)), 1e-2)
            curves.append(rest / length)
            projections.append(np.append(parts, length))
        for array in (plain.recurrence, below, thresholds, *projections):
            array.flags.writeable = False
        return cls(scores, plain.recurrence, below, size.steps, thresholds, tuple(projections))

    def __call__(self, u: Float) -> Float:
        """A row for each curve."""
        curves = self._polynomials(u)
        for curve, projection in zip(self._of_ranks(u), self.projections, strict=True):
            rest = curve - projection[0]
            for part, other in zip(projection[1:-1], curves, strict=True):
                rest -= part * other
            curves.append(rest / projection[-1])
        return np.array(curves).reshape(len(curves), len(u))

    def _polynomials(self, u: Float) -> list[Float]:
        u = _unroll(u, self.scores)
        curves: list[Float] = []
        before, now = np.zeros_like(u), np.ones_like(u)
        for shift, back, scale in self.recurrence:
            before, now = now, ((u - shift) * now - back * before) / scale
            curves.append(now)
        return curves

    def _of_ranks(self, u: Float) -> Iterator[Float]:
        """From -1 to 1 over the middle half of the ranks, and its magnitude; jumps from -1 to 1 at equal distances."""
        rank = np.interp(u, np.linspace(-1.0, 1.0, len(self.below)), self.below)
        if self.steps:
            # Unit: the middle half of the ranks, from -1 to 1.
            step = np.clip(4.0 * rank - 2.0, -1.0, 1.0)
            yield step
            yield np.abs(step)
        for threshold in self.thresholds:
            yield np.where(rank > threshold, 1.0, -1.0)


def _contrasts(marginal: Float) -> Float:
    """Orthonormal contrasts between levels under their (slightly evened out) frequencies, a column each."""
    levels = len(marginal)
    # Unit: rare levels count as a quarter of an even share, in files of versions 1 and 2.
    frequency = np.maximum(marginal, 0.25 / levels)
    root = np.sqrt(frequency / frequency.sum())[:, None]
    plain = np.column_stack([np.ones(levels), np.eye(levels)[:, :-1]])
    orthonormal, _ = np.linalg.qr(root * plain)
    contrasts = np.asarray(orthonormal[:, 1:] / root)
    contrasts.flags.writeable = False
    return contrasts


def _normal_scores(marginal: Float) -> Float | None:
    """Normal scores of a skewed marginal, at the middle of the ranks of its bins; None where it is not skewed."""
    centres = (2.0 * np.arange(len(marginal)) + 1.0) / len(marginal) - 1.0
    apart = centres - marginal @ centres
    variance = float(marginal @ apart**2)
    # Theory: what the skewness is, a third moment over the variance to the power 3/2.
    if abs(float(marginal @ apart**3)) < _SKEWED * variance**1.5:
        return None
    # Unit: ranks that have scores, in files of versions 1 and 2.
    scores = np.asarray(ndtri(np.clip(np.cumsum(marginal) - marginal / 2.0, 0.005, 0.995)))
    scores.flags.writeable = False
    return scores


def _unroll(u: Float, scores: Float | None) -> Float:
    """Normal scores where a range has them: level at both ends, where a spike would otherwise be torn apart."""
    if scores is None:
        return u
    half = 1.0 / len(scores)
    return np.interp(u, np.linspace(-1.0 + half, 1.0 - half, len(scores)), scores)


def _recurrence(points: Float, mass: Float, degree: int) -> Float:
    """Three-term recurrence of the polynomials orthonormal to masses at points (Stieltjes), a row a degree."""
    rows, back = [], 0.0
    before, now = np.zeros_like(points), np.ones_like(points)
    for _ in range(degree):
        shift = float(mass @ (points * now * now))
        after = (points - shift) * now - back * before
        # Unit: a marginal on a few points has few polynomials; in files of versions 1 and 2 a floor keeps the others
        # finite.
        scale = max(float(np.sqrt(mass @ after**2)), 1e-3)
        rows.append((shift, back, scale))
        before, now, back = now, after / scale, scale
    return np.array(rows)


def _quadrature(marginal: Float) -> tuple[Float, Float]:
    """Points of [-1, 1] and their masses, which integrate over a histogram."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = 1.0 / len(marginal)
    centres = -1.0 + half * (2.0 * np.arange(len(marginal)) + 1.0)
    return (centres[:, None] + half * nodes).ravel(), (marginal[:, None] * weights / 2.0).ravel()
