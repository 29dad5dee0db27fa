"""Bounded feature maps: polynomials orthonormal to a released marginal, contrasts of levels, and their products.

Everything here is a function of public numbers (bounds, released marginals) and of one record at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from discreet.columns import Float, IntArray, Range
from discreet.marginals import Column, Window, cells, into_windows

# Pairs of covariates enter through the products of their first terms (of all contrasts, for levels), while there are
# no more of these than this.
MOST_PAIRS = 66
# Products of a first and a second term (x z^2) are added for all pairs while they are this few.
MOST_CURVED_PAIRS = 21
# A record whose squared norm exceeds this part of the expected one is weighted down: noise falls with it.
ROOM = 0.75
# A marginal more skewed than this is unrolled to normal scores first: products of long tails are all noise.
_SKEWED = 1.0
_INTERCEPT, _PAIR, _CURVED, _DECAY = 1.5, 0.6, 0.5, 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How rich a basis is: highest power of one covariate, a step and a kink at its median, sudden jumps at so many of
    its ranks, products of two covariates, and products in which one of them is squared (or, with steps, its step).
    """

    degree: int
    pairs: bool
    curved: bool
    steps: bool = False
    jumps: int = 0

    @property
    def curves(self) -> int:
        """Features of one range."""
        return self.degree + 2 * self.steps + self.jumps

    def __str__(self) -> str:
        words = ["linear" if self.degree == 1 else f"polynomials of degree {self.degree}"]
        words += ["a step and a kink at each median"] * self.steps
        words += [f"jumps at {self.jumps} ranks"] * (self.jumps > 0)
        words += ["products of all pairs"] * self.pairs + ["curved products"] * self.curved
        return ", ".join(words)


def size_for(strength: float, p: int, products: int | None = None) -> Size:
    """Public rule for the size of the basis, from n mu (``strength``) and the number of covariates alone.

    ``products`` is the number of products of first terms, where covariates with more than two levels raise it.

    Interactions are what confounding hides in most easily, so they come before a step and a kink; beyond a dozen
    covariates there are too many of them, and the basis is additive.
    """
    pairs = p * (p - 1) // 2
    products = pairs if products is None else products
    scaled = strength / math.sqrt(max(p, 2) / 6.0)
    if scaled < 200.0 or (products > MOST_PAIRS and strength / p < 100.0):
        return Size(degree=1, pairs=False, curved=False)
    return Size(
        degree=2,
        steps=scaled >= 3000.0,
        pairs=0 < products <= MOST_PAIRS,
        curved=0 < pairs <= MOST_CURVED_PAIRS and products <= MOST_PAIRS,
    )


def choose_size(strength: float, n: float, columns: tuple[Column, ...]) -> Size:
    """Public rule for the size of the basis: as `size_for` says, or plainer while there is no record to spare for it.

    There are to be ten records to a feature.
    """
    terms = [1 if isinstance(column, Range) else len(column.levels) - 1 for column in columns]
    products = (sum(terms) ** 2 - sum(k * k for k in terms)) // 2
    plainer = (Size(degree=2, pairs=False, curved=False), Size(degree=1, pairs=False, curved=False))
    richest = size_for(strength, len(columns), products)
    sizes = [richest, *(size for size in plainer if size.degree <= richest.degree)]
    return next((size for size in sizes if 10 * Basis.flat(columns, size).m <= n), sizes[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Feature map of a record's covariates.

    The first feature is a constant. A Range contributes polynomials orthonormal to its marginal, then a step and a kink
    if wanted; Levels contribute orthonormal contrasts; products of two features follow. ``weight`` says how much of
    the norm each may use.

    Parameters
    ----------
    columns
        What was declared about the covariates.
    marginals
        Released (or assumed) distribution of each column over its cells.
    size
        How rich the basis is.
    windows
        Middle and half width of the part of each range that its marginal is about, where that is not all of it; what
        lies outside counts as its ends.
    """

    columns: tuple[Column, ...]
    marginals: tuple[Float, ...]
    size: Size
    windows: tuple[Window | None, ...] = ()
    unrolled: tuple[Float | None, ...] = field(init=False, repr=False)
    own: tuple[Float, ...] = field(init=False, repr=False)
    ranks: tuple[_Ranks | None, ...] = field(init=False, repr=False)
    products: tuple[tuple[int, int], ...] = field(init=False, repr=False)
    weight: Float = field(init=False, repr=False)
    group: IntArray = field(init=False, repr=False)
    first: tuple[tuple[int, ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own: list[Float] = []
        unrolled: list[Float | None] = []
        ranks: list[_Ranks | None] = []
        first: list[tuple[int, ...]] = []
        weight, group = [_INTERCEPT], [0]
        for column, marginal in zip(self.columns, self.marginals, strict=True):
            start = len(weight)
            if isinstance(column, Range):
                unrolled.append(_normal_scores(marginal))
                own.append(_recurrence(marginal, unrolled[-1], self.size.degree))
                ranked = self.size.curves > self.size.degree
                ranks.append(_Ranks.of(marginal, unrolled[-1], own[-1], self.size) if ranked else None)
                orders = np.arange(1, self.size.curves + 1)
                weight += list(orders**-_DECAY)
                group += [1 if order == 1 else 2 for order in orders]
                first.append((start,))
            else:
                unrolled.append(None)
                ranks.append(None)
                own.append(_contrasts(marginal))
                weight += [1.0] * own[-1].shape[1]
                group += [1] * own[-1].shape[1]
                first.append(tuple(range(start, len(weight))))
        products, pairs = [], list(combinations(range(len(self.columns)), 2))
        if self.size.pairs:
            products += [(a, b) for j, k in pairs for a in first[j] for b in first[k]]
            weight += [_PAIR] * len(products)
            group += [3] * len(products)
        if self.size.curved:
            both = [(first[j][0], first[k][0]) for j, k in pairs if self._is_range(j) and self._is_range(k)]
            later = (1, 2) if self.size.steps else (1,)
            curved = [pair for d in later for a, b in both for pair in ((a + d, b), (a, b + d))]
            products += curved
            weight += [_CURVED] * len(curved)
            group += [4] * len(curved)
        set_ = object.__setattr__  # a frozen fact that works out its own parts
        set_(self, "unrolled", tuple(unrolled))
        set_(self, "own", tuple(own))
        set_(self, "ranks", tuple(ranks))
        set_(self, "first", tuple(first))
        set_(self, "products", tuple(products))
        set_(self, "weight", np.array(weight))
        set_(self, "group", _merge_small(np.array(group)))

    @classmethod
    def flat(cls, columns: tuple[Column, ...], size: Size) -> Basis:
        """The basis of covariates whose cells are equally common: what can be said before anything is released."""
        return cls(columns, tuple(np.full(cells(column), 1.0 / cells(column)) for column in columns), size)

    def _is_range(self, j: int) -> bool:
        return isinstance(self.columns[j], Range)

    def covariate_features(self, j: int) -> range:
        """Where the features of a covariate alone are."""
        start = self.first[j][0]
        return range(start, start + (self.size.curves if self._is_range(j) else len(self.first[j])))

    def jump_shapes(self, j: int) -> Float:
        """Coefficients of a range's own (unweighted) features that make a pure jump, a row for each of its jumps."""
        ranks = self.ranks[j]
        rows = np.zeros((self.size.jumps, self.size.curves))
        for row, lean in zip(rows, ranks.lean[-self.size.jumps :] if ranks and len(rows) else (), strict=True):
            row[: len(lean) - 1] = lean[1:]
        return rows

    @property
    def m(self) -> int:
        """Number of features, the constant included."""
        return len(self.weight)

    @property
    def radius(self) -> float:
        """Norm to which a record's features are held."""
        return float(np.sqrt(ROOM * np.sum(self.weight**2)))

    def __call__(self, x: Float) -> tuple[Float, Float]:
        """Weighted features (m, features) and each record's weight: (radius / norm) squared, at most one.

        Only elementwise arithmetic in a fixed order, so that a record's features do not depend on its neighbours in
        memory (docs/proofs/gate.md asks this of a map).
        """
        return self.within(into_windows(x, self.windows))

    def within(self, x: Float) -> tuple[Float, Float]:
        """The same for covariates that are counted from -1 to 1 inside their windows."""
        features = np.empty((len(x), self.m), order="F")
        features[:, 0] = 1.0
        at = 1
        for j, (column, own) in enumerate(zip(self.columns, self.own, strict=True)):
            if isinstance(column, Range):
                curves = _polynomials(_unroll(x[:, j], self.unrolled[j]), own)
                if (ranks := self.ranks[j]) is not None:
                    curves += ranks(x[:, j], curves)
                for curve in curves:
                    features[:, at] = curve
                    at += 1
            else:
                codes = x[:, j].astype(np.intp)
                for contrast in own.T:
                    features[:, at] = contrast[codes]
                    at += 1
        for a, b in self.products:
            np.multiply(features[:, a], features[:, b], out=features[:, at])
            at += 1
        square, term = np.zeros(len(x)), np.empty(len(x))
        for k, weight in enumerate(self.weight):
            feature = features[:, k]
            feature *= weight
            square += np.multiply(feature, feature, out=term)
        return features, np.minimum(1.0, self.radius**2 / square)


def evaluate(basis: Basis, x: Float, coefficients: Float) -> Float:
    """Features times coefficients without the features: for functions that are public, and asked about many rows."""
    x = into_windows(x, basis.windows)
    plain = coefficients * basis.weight
    start = basis.m - len(basis.products)
    partners: dict[int, list[tuple[int, float]]] = {}
    for (a, b), coefficient in zip(basis.products, plain[start:], strict=True):
        if coefficient:
            partners.setdefault(a, []).append((b, float(coefficient)))
    needed = set(partners) | {b for pairs in partners.values() for b, _ in pairs}
    values: dict[int, Float] = {}
    total = np.full(len(x), plain[0])
    for j, own in enumerate(basis.own):
        where = basis.covariate_features(j)
        if basis._is_range(j):
            part, curves = _along(basis, j, x[:, j], plain[where.start : where.stop])
            values |= {k: curves[k - where.start] for k in needed if k in where}
        else:
            codes = x[:, j].astype(np.intp)
            part = (own @ plain[where.start : where.stop])[codes]
            values |= {k: own[codes, k - where.start] for k in needed if k in where}
        total += part
    for a, pairs in partners.items():
        inner = np.zeros(len(x))
        for b, coefficient in pairs:
            inner += coefficient * values[b]
        total += values[a] * inner
    return total


def _along(basis: Basis, j: int, x: Float, coefficients: Float) -> tuple[Float, list[Float]]:
    """A range's own part of a function, and its curves up to those that products may use."""
    degree, ranks, left = basis.size.degree, basis.ranks[j], coefficients.copy()
    curves = _polynomials(_unroll(x, basis.unrolled[j]), basis.own[j])
    total = np.zeros(len(x))
    if ranks is not None:
        # Curves of ranks were made orthonormal one after the other: undo it from the last to the first.
        raw = np.zeros(len(ranks.lean))
        for i in range(len(raw) - 1, -1, -1):
            raw[i] = left[degree + i] / ranks.lean[i][-1]
            left[: degree + i] -= raw[i] * ranks.lean[i][1:-1]
            total -= raw[i] * ranks.lean[i][0]
        rank = _ranks(x, ranks.below)
        if basis.size.steps:
            curves += ranks(x, curves)[:1]
            step = _middle(rank)
            total += raw[0] * step + raw[1] * np.abs(step)
        jumps = raw[2 * basis.size.steps :]
        levels = np.concatenate([[-jumps.sum()], -jumps.sum() + 2.0 * np.cumsum(jumps)])
        total += levels[np.searchsorted(_thresholds(basis.size), rank)]
    for coefficient, curve in zip(left[:degree], curves, strict=False):
        total += coefficient * curve
    return total, curves


def combine(features: Float, coefficients: Float) -> Float:
    """Features times coefficients, added up in a fixed order (BLAS would round differently by position)."""
    total, term = np.zeros(len(features)), np.empty(len(features))
    for k in np.flatnonzero(coefficients):
        total += np.multiply(features[:, k], coefficients[k], out=term)
    return total


def _normal_scores(marginal: Float) -> Float | None:
    """Normal scores of the bins of a skewed marginal, at the middle of their ranks; None where it is not."""
    centres = (2.0 * np.arange(len(marginal)) + 1.0) / len(marginal) - 1.0
    apart = centres - marginal @ centres
    variance = float(marginal @ apart**2)
    if abs(float(marginal @ apart**3)) < _SKEWED * variance**1.5:
        return None
    middle = np.cumsum(marginal) - marginal / 2.0
    return np.asarray(ndtri(np.clip(middle, 0.005, 0.995)))


def _unroll(u: Float, scores: Float | None) -> Float:
    # Between the bins' centres, and level at both ends, where a spike would otherwise be torn apart.
    if scores is None:
        return u
    half = 1.0 / len(scores)
    return np.interp(u, np.linspace(-1.0 + half, 1.0 - half, len(scores)), scores)


def _quadrature(marginal: Float) -> tuple[Float, Float]:
    """Points of [-1, 1] and their masses, which integrate over a histogram."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = 1.0 / len(marginal)
    centres = -1.0 + half * (2.0 * np.arange(len(marginal)) + 1.0)
    return (centres[:, None] + half * nodes).ravel(), (marginal[:, None] * weights / 2.0).ravel()


def _recurrence(marginal: Float, scores: Float | None, degree: int) -> Float:
    """Three-term recurrence of the polynomials orthonormal to a histogram on [-1, 1] (Stieltjes), a row a degree."""
    points, mass = _quadrature(marginal)
    points = _unroll(points, scores)
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


def _polynomials(u: Float, recurrence: Float) -> list[Float]:
    before, now = np.zeros_like(u), np.ones_like(u)
    curves = []
    term = np.empty_like(u)
    for shift, back, scale in recurrence:
        after = u - shift
        after *= now
        after -= np.multiply(back, before, out=term)
        after /= scale
        before, now = now, after
        curves.append(now)
    return curves


@dataclass(frozen=True, slots=True, eq=False)
class _Ranks:
    """Curves of the ranks, made orthonormal to the polynomials: bounded, where cubes would run away."""

    below: Float
    size: Size
    lean: tuple[Float, ...]

    @classmethod
    def of(cls, marginal: Float, scores: Float | None, recurrence: Float, size: Size) -> _Ranks:
        points, mass = _quadrature(marginal)
        curves = [np.ones_like(points), *_polynomials(_unroll(points, scores), recurrence)]
        below = np.concatenate([[0.0], np.cumsum(marginal)])
        lean = []
        for curve in _of_ranks(points, below, size):
            parts = np.array([mass @ (curve * other) for other in curves])
            rest = curve - combine(np.column_stack(curves), parts)
            length = max(float(np.sqrt(mass @ rest**2)), 1e-2)
            curves.append(rest / length)
            lean.append(np.append(parts, length))
        return cls(below, size, tuple(lean))

    def __call__(self, x: Float, polynomials: list[Float]) -> list[Float]:
        curves, term = list(polynomials), np.empty(len(x))
        for rest, lean in zip(_of_ranks(x, self.below, self.size), self.lean, strict=True):
            rest -= lean[0]
            for part, other in zip(lean[1:-1], curves, strict=True):
                rest -= np.multiply(part, other, out=term)
            rest /= lean[-1]
            curves.append(rest)
        return curves[len(polynomials) :]


def _of_ranks(x: Float, below: Float, size: Size) -> list[Float]:
    """From -1 to 1 over the middle half of the ranks, and its magnitude; jumps from -1 to 1 at equal distances."""
    rank = _ranks(x, below)
    step = _middle(rank)
    return [step, np.abs(step)] * size.steps + [np.where(rank > at, 1.0, -1.0) for at in _thresholds(size)]


def _ranks(x: Float, below: Float) -> Float:
    return np.interp(x, np.linspace(-1.0, 1.0, len(below)), below)


def _middle(rank: Float) -> Float:
    return np.clip(4.0 * rank - 2.0, -1.0, 1.0)


def _thresholds(size: Size) -> Float:
    return np.asarray((np.arange(size.jumps) + 1.0) / (size.jumps + 1.0))


def _contrasts(marginal: Float) -> Float:
    """Orthonormal contrasts between levels under their (slightly evened out) frequencies, a column each."""
    levels = len(marginal)
    frequency = np.maximum(marginal, 0.25 / levels)
    root = np.sqrt(frequency / frequency.sum())[:, None]
    plain = np.column_stack([np.ones(levels), np.eye(levels)[:, :-1]])
    orthonormal, _ = np.linalg.qr(root * plain)
    return np.asarray(orthonormal[:, 1:] / root)


def _merge_small(group: IntArray) -> IntArray:
    """Groups share a prior scale, which takes several members to estimate: join small ones to the rest."""
    sizes = {k: int(np.sum(group == k)) for k in (2, 3, 4)}
    if min(sizes[2], sizes[3] + sizes[4]) < 6:
        return np.where(group > 1, 2, group)
    return np.where((group == 4) & (sizes[4] < 6), 3, group)
