"""Effects of many segments from noisy ones: Gaussian processes over ordered segments, shrinkage over unordered ones.

Post-processing: everything here is computed from released and public numbers. Hyper-parameters lie on a public grid,
and every point of it counts by the marginal likelihood of the released table, so that intervals know how little a short
table says about them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.segment_intervals import without_own

# Files hold tables and not what follows from them: other choices would change effects that have been published.
# Choice: the longest of the length scales of smooth kernels, in lengths of the range, and their number, each half of
# the one before. Chosen, as the next three, among some twenty variants on ADUM's generator (docs/evidence/uplift.md).
_LENGTHS = 1.4 / 2.0 ** np.arange(3)
# Choice: length scale of the kernel with kinks; the share of their variation that unordered segments have in common,
# beside other factors; and how much less likely it is at first that effects jump or have kinks. Chosen as those above.
_KINKED, _COMMON, _ROUGH_PENALTY = 0.5, 0.5, math.log(8.0)
# Theory: standard deviations of outcomes in [-1, 1], half of their range, are one at most (Popoviciu): that of effects
# around their mean, and of this mean around zero.
_MEAN = 1.0
# Choice: halvings of that of effects. Chosen by hand; errors were 5 % larger with 8 and 2 % smaller with 12 on trials
# 500,000 to 500,699 of evidence.uplift.population, at the same coverage.
_HALVINGS = 10.0
# Numerical: half steps. Quarter steps move effects by 0.01 of their posterior standard deviations (median).
SIZES = _MEAN * 2.0 ** -np.arange(0.0, _HALVINGS + 0.5, 0.5)
# Memory: beyond this many combinations of kernels, one factor is searched after the other, this many times.
_MOST, _SWEEPS = 200, 2
# Memory: points of the grid that count for less than this, beside the best, are dropped, and how many are kept at most.
# To keep all takes thirty times as long and moves effects as quarter steps do.
_LEAST, _MANY = 1e-3, 120
# Choice: the same of outcomes without treatment. Chosen by hand; errors were 1 % smaller with as many as of effects.
_LEAST_LEVEL, _FEW = 1e-2, 8
# Numerical: how well variances of segments, which are about one, are known; and at about how many points in all kernels
# are averaged over the parts of a range.
_ROUNDING, _PLACES = 1e-15, 128


class Kernel(NamedTuple):
    """How alike effects are: in all pairs of segments, at all nodes and in all segments, and at each node itself."""

    segments: Float
    across: Float
    nodes: Float
    smooth: bool


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """One way in which records are divided.

    Parameters
    ----------
    count
        Number of parts.
    edges
        Where the parts of a range begin and end, the range being from 0 to 1; None where parts have no order.
    """

    count: int
    edges: Float | None = None

    @property
    def nodes(self) -> Float:
        """Where effects are computed: the edges and the middles of a range's parts, or the parts themselves."""
        if self.edges is None:
            return np.arange(float(self.count))
        return np.sort(np.concatenate([self.edges, (self.edges[1:] + self.edges[:-1]) / 2]))

    @property
    def parts(self) -> IntArray:
        """The part that each node is in; an edge belongs to the part that it begins."""
        if self.edges is None:
            return np.arange(self.count)
        return np.minimum(np.arange(2 * self.count + 1) // 2, self.count - 1)

    def kernels(self, alone: bool) -> list[Kernel]:
        """Candidates, from the tamest to the wildest; ``alone`` where no other factor could vary."""
        each, same = np.eye(self.count), np.eye(self.count)[self.parts]
        one = np.ones(len(same))
        found = [] if alone else [Kernel(np.ones_like(each), np.ones_like(same), one, True)]
        if self.edges is None:
            shares = [0.0] if alone else [_COMMON, 0.0]
            return found + [Kernel(c + (1 - c) * each, c + (1 - c) * same, one, True) for c in shares]
        if self.count == 1:
            return [Kernel(each, same, one, True)]
        inner = (np.arange(many := max(1, _PLACES // self.count)) + 0.5) / many
        places = (self.edges[:-1, None] + np.diff(self.edges)[:, None] * inner).ravel()

        def averaged(apart: Float) -> Float:
            return np.asarray(apart.reshape(len(apart), self.count, many).mean(axis=2))

        within, across = np.abs(places[:, None] - places), np.abs(self.nodes[:, None] - places)
        bells = [(0.5 * (within / length) ** 2, 0.5 * (across / length) ** 2, True) for length in _LENGTHS]
        for inside, beside, smooth in [*bells, (within / _KINKED, across / _KINKED, False)]:
            found.append(Kernel(averaged(averaged(np.exp(-inside)).T), averaged(np.exp(-beside)), one, smooth))
        return [*found, Kernel(each, same, one, False)]


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """What a table says about effects, in units of half the outcome's range.

    Parameters
    ----------
    smooth
        Over nodes, one axis per factor: the part of the effect that varies smoothly and may be interpolated.
    rough
        Over segments, one axis per factor: the part that may jump between them.
    variance
        Over nodes.
    mean, covariance
        Of the segments' effects, in a row.
    others_mean, others_variance
        Of each segment's effect by all other segments, without its own.
    varies
        Standard deviation of effects around their mean that the table speaks for.
    """

    smooth: Float
    rough: Float
    variance: Float
    mean: Float
    covariance: Float
    others_mean: Float
    others_variance: Float
    varies: float


def posterior(factors: tuple[Factor, ...], means: Float, variances: Float) -> Posterior:
    """Average of Gaussian processes over a public grid, weighted by the marginal likelihood of the released table.

    Outcomes without treatment are one process and effects another, so that a level that is the same everywhere is
    learnt from all segments at once.

    Parameters
    ----------
    factors
        What segments are crossed by, the last one running fastest.
    means, variances
        Of each segment (rows) in the control and in the treated arm, or of its effect: noise and sampling error
        together, in units of half the outcome's range.
    """
    shape = tuple(factor.count for factor in factors)
    node_shape = tuple(len(factor.nodes) for factor in factors)
    cell = np.ravel_multi_index(np.ix_(*(factor.parts for factor in factors)), shape).ravel()
    fits = _fits(factors, means, variances)
    weight = np.exp(np.array([fit.evidence for fit in fits]) - max(fit.evidence for fit in fits))
    smooth, rough, second = np.zeros(len(cell)), np.zeros(len(means)), np.zeros(len(cell))
    mean, square, varies = np.zeros(len(means)), np.zeros((len(means), len(means))), 0.0
    every: tuple[list[Float], list[Float]] = [], []
    for share, fit in zip(weight / weight.sum(), fits, strict=True):
        found, covariance, at_nodes, node_variance = fit.everywhere()
        if fit.kernel.smooth:
            smooth += share * at_nodes
        else:
            rough += share * found
            at_nodes = found[cell]
        second += share * (node_variance + at_nodes**2)
        mean += share * found
        square += share * (covariance + np.outer(found, found))
        varies += share * fit.size
        every[0].append(found)
        every[1].append(np.diag(covariance))
    own = means[:, -1] - (means[:, 0] if means.shape[1] == 2 else 0.0), variances.sum(axis=1)
    others_mean, others_variance = without_own(*own, np.stack(every[0]), np.stack(every[1]), np.log(weight))
    return Posterior(
        smooth=smooth.reshape(node_shape),
        rough=rough.reshape(shape),
        variance=np.maximum(second - (smooth + rough[cell]) ** 2, 0.0).reshape(node_shape),
        mean=mean,
        covariance=square - np.outer(mean, mean),
        others_mean=others_mean,
        others_variance=others_variance,
        varies=varies,
    )


def interpolated(factors: tuple[Factor, ...], places: Sequence[Float], nodes: Float) -> Float:
    """Values between nodes, linear along every range, at these places on each factor."""
    corners: list[list[tuple[Any, Any]]] = []
    for factor, place in zip(factors, places, strict=True):
        at = factor.nodes
        if factor.edges is None:
            corners.append([(place.astype(np.int64), 1.0)])
            continue
        below = np.clip(np.searchsorted(at, place, side="right") - 1, 0, len(at) - 2)
        part = np.clip((place - at[below]) / (at[below + 1] - at[below]), 0.0, 1.0)
        corners.append([(below, 1.0 - part), (below + 1, part)])
    value = np.zeros(len(places[0]))
    for corner in product(*corners):
        value += math.prod([part for _, part in corner]) * nodes[tuple(index for index, _ in corner)]
    return value


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """One Gaussian process: a mean with a wide prior, a kernel of a given size, and errors of known covariance."""

    kernel: _Crossed
    size: float
    values: Float
    errors: Float
    evidence: float

    def segments(self) -> tuple[Float, Float]:
        """Mean and covariance in the segments."""
        prior = self._segments()
        white, gain = self._solved(prior)
        return white @ gain, prior - gain.T @ gain

    def everywhere(self) -> tuple[Float, Float, Float, Float]:
        """Mean and covariance in the segments, mean and variance at all nodes."""
        prior, n = self._segments(), len(self.values)
        white, gain = self._solved(np.column_stack([prior, _MEAN**2 + self.size**2 * self.kernel.across.T]))
        mean, left = white @ gain, _MEAN**2 + self.size**2 * self.kernel.nodes - (gain[:, n:] ** 2).sum(axis=0)
        return mean[:n], prior - gain[:, :n].T @ gain[:, :n], mean[n:], np.maximum(left, 0.0)

    def _segments(self) -> Float:
        return np.asarray(_MEAN**2 + self.size**2 * self.kernel.segments)

    def _solved(self, across: Float) -> tuple[Float, Float]:
        root = np.linalg.cholesky(self._segments() + self.errors)
        both = solve_triangular(root, np.column_stack([self.values, across]), lower=True, check_finite=False)
        return both[:, 0], both[:, 1:]


def _fits(factors: tuple[Factor, ...], means: Float, variances: Float) -> list[_Fit]:
    """Processes of effects that the table speaks for, each after a process of outcomes without treatment."""
    choices = [factor.kernels(len(factors) == 1) for factor in factors]
    every = _products(choices)
    if means.shape[1] == 1:
        effect, errors = means[:, 0], np.diag(variances[:, 0])
        return _best([_weighed(every or _candidates(choices, effect, errors), effect, errors)], _MANY, _LEAST)
    (control, treated), (noise, more) = means.T, variances.T
    found: list[_Grid] = []
    kernels = every or _candidates(choices, treated - control, np.diag(noise + more))
    levels = _weighed(every or _candidates(choices, control, np.diag(noise)), control, np.diag(noise))
    for level in _best([levels], _FEW, _LEAST_LEVEL):
        untreated, unsure = level.segments()
        found.append(_weighed(kernels, treated - untreated, unsure + np.diag(more), level.evidence))
    return _best(found, _MANY, _LEAST)


class _Grid(NamedTuple):
    """Evidence for processes of the same values: a row for each kernel, a column for each size."""

    kernels: list[_Crossed]
    values: Float
    errors: Float
    evidence: Float


def _weighed(kernels: list[_Crossed], values: Float, errors: Float, before: float = 0.0) -> _Grid:
    """Marginal likelihoods of all kernels and sizes, by one reduction to three diagonals per kernel."""
    root = np.linalg.cholesky(_MEAN**2 + errors)
    # Inverted once: products with it take a fraction of the time that solving for every kernel would.
    unroot = np.linalg.inv(root)
    before -= float(np.log(np.diag(root)).sum())
    evidence = before + _likelihoods([unroot @ kernel.root for kernel in kernels], unroot @ values)
    penalty = _ROUGH_PENALTY * np.array([not kernel.smooth for kernel in kernels])
    return _Grid(kernels, values, errors, evidence - penalty[:, None])


def _likelihoods(roots: list[Float], white: Float) -> Float:
    """Of white values whose covariance is 1 + size^2 times root times its transpose: a row for each root.

    Roots have few columns where effects are smooth, and what is left to be reduced is as small as that.
    """
    diagonal, beside, turned = np.zeros((3, max(root.shape[1] for root in roots), len(roots), 1))
    for j, root in enumerate(roots):
        if many := root.shape[1]:
            bands = _three_diagonals(root.T @ root, root.T @ white)
            diagonal[:many, j, 0], beside[: many - 1, j, 0], turned[:many, j, 0] = bands
    square = SIZES**2
    pivot, (rest, explained, volume) = np.ones((len(roots), len(square))), np.zeros((3, len(roots), len(square)))
    for k in range(len(diagonal)):
        step = square * beside[k - 1] if k else 0.0 * pivot
        lower = step / pivot
        # No pivot of 1 + (a positive semi-definite matrix) is below one, but for rounding.
        pivot, rest = np.maximum(1.0 + square * diagonal[k] - lower * step, 1.0), turned[k] - lower * rest
        explained += rest**2 / pivot
        volume += np.log(pivot)
    return np.asarray(-0.5 * (white @ white - square * explained + volume))


def _three_diagonals(matrix: Float, white: Float) -> tuple[Float, Float, Float]:
    """A symmetric matrix turned so that it has three diagonals: its own, the one beside it, and values turned alike."""
    # Memory: LAPACK's working space.
    reflectors, diagonal, beside, scales, _ = lapack.dsytrd(matrix, lower=1, lwork=64 * len(white))
    turned = white.copy()
    if len(white) > 1:
        # Memory: the same.
        rest = lapack.dormqr("L", "T", reflectors[1:, :-1], scales, white[1:, None], 64 * len(white))[0]
        turned[1:] = rest[:, 0]
    return diagonal, beside, turned


def _best(grids: list[_Grid], most: int, least: float) -> list[_Fit]:
    """The processes with the most evidence, of grids that have the same kernels."""
    every = np.stack([grid.evidence for grid in grids])
    ranked = np.argsort(-every, axis=None, kind="stable")[:most]
    ranked = ranked[every.flat[ranked] > every.flat[ranked[0]] + math.log(least)]
    places = zip(*np.unravel_index(ranked, every.shape), strict=True)
    found = [(grids[at[0]], float(SIZES[at[2]]), float(every[at]), at[1]) for at in places]
    return [_Fit(grid.kernels[k], size, grid.values, grid.errors, evidence) for grid, size, evidence, k in found]


def _products(choices: list[list[Kernel]]) -> list[_Crossed]:
    """All products of the factors' kernels; none where there are too many."""
    if math.prod(map(len, choices)) > _MOST:
        return []
    return [_Crossed(kernels) for kernels in product(*choices)]


def _candidates(choices: list[list[Kernel]], values: Float, errors: Float) -> list[_Crossed]:
    """Products of the factors' kernels near the best, where there are too many of them."""
    best, visited = (1,) * len(choices), dict[tuple[int, ...], tuple[float, _Crossed]]()
    for _ in range(_SWEEPS):
        for place, kernels in enumerate(choices):
            tried = [(*best[:place], k, *best[place + 1 :]) for k in range(len(kernels))]
            for index in tried:
                if index not in visited:
                    kernel = _Crossed(tuple(many[k] for many, k in zip(choices, index, strict=True)))
                    visited[index] = float(_weighed([kernel], values, errors).evidence.max()), kernel
            best = max(tried, key=lambda index: visited[index][0])
    ranked = sorted(visited.values(), key=lambda each: -each[0])[:_MOST]
    return [kernel for evidence, kernel in ranked if evidence > ranked[0][0] + math.log(_LEAST)]


@dataclass(frozen=True, eq=False)
class _Crossed:
    """A product of factors' kernels, of deviations from the segments' mean, which have a variance of one on average.

    What only processes that are kept need is worked out when they ask for it.
    """

    kernels: tuple[Kernel, ...]

    @property
    def smooth(self) -> bool:
        return all(kernel.smooth for kernel in self.kernels)

    @cached_property
    def segments(self) -> Float:
        whole = reduce(_kron, [kernel.segments for kernel in self.kernels])
        return np.asarray((whole - self._rows[:, None] - self._rows + self._rows.mean()) * self._scale)

    @cached_property
    def root(self) -> Float:
        """A matrix that is ``segments`` when multiplied with its transpose, of as few columns as rounding allows."""
        found, order, rank, _ = lapack.dpstrf(self.segments, tol=_ROUNDING, lower=1)
        root = np.zeros((len(found), rank))
        root[order - 1] = np.tril(found)[:, :rank]
        return root

    @cached_property
    def across(self) -> Float:
        whole = reduce(_kron, [kernel.across for kernel in self.kernels])
        return np.asarray((whole - self._at_nodes[:, None] - self._rows + self._rows.mean()) * self._scale)

    @cached_property
    def nodes(self) -> Float:
        whole = reduce(_kron, [kernel.nodes for kernel in self.kernels])
        return np.asarray((whole - 2 * self._at_nodes + self._rows.mean()) * self._scale)

    @cached_property
    def _rows(self) -> Float:
        return reduce(_kron, [kernel.segments.mean(axis=1) for kernel in self.kernels])

    @cached_property
    def _at_nodes(self) -> Float:
        return reduce(_kron, [kernel.across.mean(axis=1) for kernel in self.kernels])

    @cached_property
    def _scale(self) -> float:
        """Zero where nothing varies."""
        each = reduce(_kron, [np.diag(kernel.segments) for kernel in self.kernels])
        unit = float((each - self._rows).mean())
        # Numerical: rounding.
        return 1 / unit if unit > 1e-12 else 0.0


def _kron(first: Float, second: Float) -> Float:
    # What np.kron does, without its checks, which take longer than the products.
    if first.ndim == 1:
        return np.outer(first, second).ravel()
    (a, b), (c, d) = first.shape, second.shape
    return np.asarray(first[:, None, :, None] * second[None, :, None, :]).reshape(a * c, b * d)
