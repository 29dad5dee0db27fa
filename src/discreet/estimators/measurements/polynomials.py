"""Rounds through the gate about the covariates of an effect function: marginals, and polynomials and contrasts of them.

Diameters: docs/proofs/cate.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from discreet.data._arrays import Float
from discreet.data.columns import Range
from discreet.data.records import Chunk
from discreet.estimators._allocation import WINDOWS
from discreet.estimators.measurements.covariates import ChunkCache, FeatureMap, Setting, second_moments
from discreet.estimators.measurements.location import RowMap
from discreet.postprocessing.basis import Basis, Size
from discreet.postprocessing.feature_selection import FeatureSelection
from discreet.postprocessing.kernel_basis import combine
from discreet.postprocessing.marginals import (
    Column,
    cell_numbers,
    cells,
    clean_marginals,
    clean_windows,
    find_windows,
    into_windows,
)
from discreet.postprocessing.reference_population import Reference, SteadyGram
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Cells


def marginal_questions(columns: tuple[Column, ...], share: float) -> tuple[Query, ...]:
    """What `build_basis` asks: it depends on no release, and can be prepared in the first pass."""
    return (_marginals("marginals", share, columns, lambda c: c.x),) if columns else ()


def build_basis(gate: Gate, questions: tuple[Query, ...], size: Size) -> Basis:
    """Marginals of all covariates in one release, and the basis orthonormal to them."""
    columns = gate.bounds.columns
    if not columns:
        return Basis((), (), size)
    return Basis(columns, clean_marginals(columns, *_fractions(gate, columns, *questions)), size)


def closer_questions(columns: tuple[Column, ...], share: float) -> tuple[Query, ...]:
    """What `build_closer_basis` asks first."""
    if not _ranges(columns):
        return marginal_questions(columns, share)
    return marginal_questions(columns, WINDOWS["marginals"] * share)


def build_closer_basis(gate: Gate, questions: tuple[Query, ...], share: float, size: Size) -> Basis:
    """The same in two releases: ranges that were declared far too wide are narrowed to where the records are first."""
    columns = gate.bounds.columns
    ranges = _ranges(columns)
    if not ranges:
        return build_basis(gate, questions, size)
    first = _fractions(gate, columns, *questions)
    windows = find_windows(columns, *first)
    some = tuple(columns[j] for j in ranges)

    def inside(c: Chunk) -> Float:
        return into_windows(c.x, windows)[:, ranges].copy(order="F")

    name = "marginals within windows"
    again = _fractions(gate, some, _marginals(name, WINDOWS[name] * share, some, inside))
    marginals, closer = list(clean_marginals(columns, *first)), list(windows)
    for j, window, marginal in zip(ranges, *clean_windows([windows[j] for j in ranges], *again), strict=True):
        closer[j], marginals[j] = window, marginal
    return Basis(columns, tuple(marginals), size, tuple(closer))


def _ranges(columns: tuple[Column, ...]) -> list[int]:
    return [j for j, column in enumerate(columns) if isinstance(column, Range)]


def _marginals(name: str, share: float, columns: tuple[Column, ...], rows: RowMap) -> Query:
    return Query(name, share, Cells(tuple(map(cells, columns))), lambda c: cell_numbers(rows(c), columns))


def _fractions(gate: Gate, columns: tuple[Column, ...], question: Query) -> tuple[list[Float], float]:
    """Noisy share of the records in each cell of each column, and its noise."""
    (counts,) = gate.ask(question)
    sizes = [cells(column) for column in columns]
    return np.split(counts.value / gate.n, np.cumsum(sizes)[:-1]), float(counts.sd) / gate.n


class Features(FeatureMap[Basis]):
    """Features of polynomials and contrasts; coefficients are recognised by their values."""

    def __init__(self, basis: Basis, n: float) -> None:
        super().__init__(basis, n)
        self._cache: ChunkCache[_Kept] = ChunkCache(n, basis.m)

    def __call__(self, chunk: Chunk) -> Float:
        """Weighted features; they are not to be changed, and last until the next chunk."""
        return self._of(chunk).features

    def weights(self, chunk: Chunk) -> Float:
        """Each record's weight, for its features to stay within the radius."""
        kept = self._of(chunk)
        if kept.weights is None:
            kept.weights = self.basis.held(kept.features)
        return kept.weights

    def combine(self, chunk: Chunk, coefficients: Float) -> Float:
        """Features times coefficients."""
        kept, key = self._of(chunk), coefficients.tobytes()
        if key not in kept.sums:
            kept.sums[key] = combine(kept.features, coefficients)
        return kept.sums[key]

    def selected(self, chunk: Chunk, selection: FeatureSelection, factor: Float) -> Float:
        """Selected features, weighted to stay within their norm, times one number to each record; in ``scratch``."""
        psi, weight = selection(self(chunk), self.scratch(len(chunk.t), selection.m))
        psi *= (factor * weight)[:, None]
        return psi

    def _of(self, chunk: Chunk) -> _Kept:
        def make(stays: bool) -> _Kept:
            # One that does not stay is always in the same memory.
            out = None if stays else self._own(len(chunk.t), self.basis.m)
            return _Kept(self.basis.features(chunk.x, out))

        return self._cache(chunk, make)


@dataclass(slots=True, eq=False)
class _Kept:
    features: Float
    weights: Float | None = None
    sums: dict[bytes, Float] = field(default_factory=dict)


def measure_gram(gate: Gate, share: float, features: Features, *beside: Query) -> Setting:
    """Second moments of the features; the same pass prepares what is asked ``beside`` it later."""
    released, sd = second_moments(gate, share, features, *beside)
    reference = Reference.draw(features.basis, released, sd)
    return Setting(features, reference, SteadyGram.of(released, sd, reference, features.basis))
