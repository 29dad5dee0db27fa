"""Bounded feature maps: polynomials orthonormal to a released marginal, contrasts of levels, and their products.

Everything here is a function of public numbers (bounds, released marginals) and of one record at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.columns import Range
from discreet.postprocessing.kernel_basis import NORM_CAP
from discreet.postprocessing.marginals import (
    Column,
    Line,
    Ranks,
    Window,
    cells,
    into_windows,
    median_step,
    normal_scores,
    polynomials,
    recurrence,
    unroll,
)

# Pairs of covariates enter through the products of their first terms (of all contrasts, for levels), while there are
# no more of these than this.
MOST_PAIRS = 66
# Products of a first and a second term (x z^2) are added for all pairs while they are this few.
MOST_CURVED_PAIRS = 21
# Weights of the constant, of products and of curved products, beside one of a first term; and the power of its order by
# which the weight of a range's later curves falls.
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
        parts = ["linear" if self.degree == 1 else f"polynomials of degree {self.degree}"]
        parts += ["a step and a kink at each median"] * self.steps
        parts += [f"jumps at {self.jumps} ranks"] * (self.jumps > 0)
        parts += ["products of all pairs"] * self.pairs + ["curved products"] * self.curved
        return ", ".join(parts)


def size_for(information: float, p: int, products: int | None = None) -> Size:
    """Public rule for the size of the basis, from n mu (``information``) and the number of covariates alone.

    ``products`` is the number of products of first terms, where covariates with more than two levels raise it.

    Interactions are what confounding hides in most easily, so they come before a step and a kink; beyond a dozen
    covariates there are too many of them, and the basis is additive.
    """
    pairs = p * (p - 1) // 2
    products = pairs if products is None else products
    information_per_covariate = information / math.sqrt(max(p, 2) / 6.0)
    if information_per_covariate < 200.0 or (products > MOST_PAIRS and information / p < 100.0):
        return Size(degree=1, pairs=False, curved=False)
    return Size(
        degree=2,
        steps=information_per_covariate >= 3000.0,
        pairs=0 < products <= MOST_PAIRS,
        curved=0 < pairs <= MOST_CURVED_PAIRS and products <= MOST_PAIRS,
    )


def choose_size(information: float, n: float, columns: tuple[Column, ...]) -> Size:
    """Public rule for the size of the basis: as `size_for` says, or plainer while there is no record to spare for it.

    There are to be ten records to a feature.
    """
    terms = [1 if isinstance(column, Range) else len(column.levels) - 1 for column in columns]
    products = (sum(terms) ** 2 - sum(k * k for k in terms)) // 2
    plainer = (Size(degree=2, pairs=False, curved=False), Size(degree=1, pairs=False, curved=False))
    richest = size_for(information, len(columns), products)
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
    unrolled: tuple[Line | None, ...] = field(init=False, repr=False)
    own: tuple[Float, ...] = field(init=False, repr=False)
    ranks: tuple[Ranks | None, ...] = field(init=False, repr=False)
    products: tuple[tuple[int, int], ...] = field(init=False, repr=False)
    weight: Float = field(init=False, repr=False)
    group: IntArray = field(init=False, repr=False)
    first: tuple[tuple[int, ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own: list[Float] = []
        unrolled: list[Line | None] = []
        ranks: list[Ranks | None] = []
        first: list[tuple[int, ...]] = []
        weight, group = [_INTERCEPT], [0]
        for column, marginal in zip(self.columns, self.marginals, strict=True):
            start = len(weight)
            if isinstance(column, Range):
                unrolled.append(normal_scores(marginal))
                own.append(recurrence(marginal, unrolled[-1], self.size.degree))
                ranked = self.size.curves > self.size.degree
                steps, jumps = self.size.steps, self.size.jumps
                ranks.append(Ranks.of(marginal, unrolled[-1], own[-1], steps=steps, jumps=jumps) if ranked else None)
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
        """The basis of covariates whose cells are equally common: what is known before any release."""
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
        for row, projection in zip(
            rows, ranks.projections[-self.size.jumps :] if ranks and len(rows) else (), strict=True
        ):
            row[: len(projection) - 1] = projection[1:]
        return rows

    @property
    def m(self) -> int:
        """Number of features, the constant included."""
        return len(self.weight)

    @property
    def radius(self) -> float:
        """Norm to which a record's features are held."""
        return float(np.sqrt(NORM_CAP * np.sum(self.weight**2)))

    def __call__(self, x: Float) -> tuple[Float, Float]:
        """Weighted features (m, features) and each record's weight: (radius / norm) squared, at most one."""
        return self.within(into_windows(x, self.windows))

    def within(self, x: Float) -> tuple[Float, Float]:
        """The same for covariates that are counted from -1 to 1 inside their windows."""
        features = self._features(x, None)
        return features, self.held(features)

    def features(self, x: Float, out: Float | None = None) -> Float:
        """Weighted features alone; in ``out``, whose columns lie one after the other, if it is given.

        Only elementwise arithmetic in a fixed order, so that a record's features do not depend on its neighbours in
        memory (docs/proofs/gate.md asks this of a map).
        """
        return self._features(into_windows(x, self.windows), out)

    def held(self, features: Float) -> Float:
        """Each record's weight, for its features to stay within the radius."""
        square, term = np.zeros(len(features)), np.empty(len(features))
        for feature in features.T:
            square += np.multiply(feature, feature, out=term)
        return np.minimum(1.0, self.radius**2 / square)

    def _features(self, x: Float, out: Float | None) -> Float:
        # One feature after the other lies in memory.
        rows = np.empty((self.m, len(x))) if out is None else out.T
        rows[0] = 1.0
        at = 1
        for j, (column, own) in enumerate(zip(self.columns, self.own, strict=True)):
            if isinstance(column, Range):
                curves = polynomials(unroll(x[:, j], self.unrolled[j]), own, rows[at:])
                if (ranks := self.ranks[j]) is not None:
                    ranks(x[:, j], curves, rows[at + len(curves) :])
                at += self.size.curves
            else:
                codes = x[:, j].astype(np.intp)
                for contrast in own.T:
                    rows[at] = contrast[codes]
                    at += 1
        # Products are of features without their weights.
        for row, (a, b), weight in zip(rows[at:], self.products, self.weight[at:], strict=True):
            np.multiply(rows[a], rows[b], out=row)
            row *= weight
        for row, weight in zip(rows[:at], self.weight, strict=False):
            row *= weight
        return rows.T


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
        index = basis.covariate_features(j)
        if basis._is_range(j):
            part, curves = _along(basis, j, x[:, j], plain[index.start : index.stop])
            values |= {k: curves[k - index.start] for k in needed if k in index}
        else:
            codes = x[:, j].astype(np.intp)
            part = (own @ plain[index.start : index.stop])[codes]
            values |= {k: own[codes, k - index.start] for k in needed if k in index}
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
    curves = polynomials(unroll(x, basis.unrolled[j]), basis.own[j])
    total = np.zeros(len(x))
    if ranks is not None:
        # Curves of ranks were made orthonormal one after the other: undo it from the last to the first.
        raw = np.zeros(len(ranks.projections))
        for i in range(len(raw) - 1, -1, -1):
            raw[i] = left[degree + i] / ranks.projections[i][-1]
            left[: degree + i] -= raw[i] * ranks.projections[i][1:-1]
            total -= raw[i] * ranks.projections[i][0]
        rank = ranks.below(x)
        if basis.size.steps:
            curves += ranks(x, curves)[:1]
            step = median_step(rank)
            total += raw[0] * step + raw[1] * np.abs(step)
        jumps = raw[2 * basis.size.steps :]
        levels = np.concatenate([[-jumps.sum()], -jumps.sum() + 2.0 * np.cumsum(jumps)])
        total += levels[np.searchsorted(ranks.thresholds, rank)]
    for coefficient, curve in zip(left[:degree], curves, strict=False):
        total += coefficient * curve
    return total, curves


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
