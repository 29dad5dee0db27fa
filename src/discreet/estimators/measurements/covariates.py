"""Rounds through the gate about covariates: how each is distributed, and the second moments of their features.

Each turns a share of the budget into public numbers. Diameters: docs/proofs/ate.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from discreet.data._arrays import Float
from discreet.data.columns import Range, ScratchBuffer
from discreet.data.records import CHUNK_ROWS, Chunk
from discreet.estimators._allocation import WINDOWS
from discreet.estimators.measurements.location import Location, RowMap
from discreet.postprocessing.basis import Basis, Size
from discreet.postprocessing.coding import CellFinder, Coding, code_numbers, coding, finer_edges, first_edges
from discreet.postprocessing.feature_selection import FeatureSelection
from discreet.postprocessing.kernel_basis import NORM_CAP, CodedBasis, combine
from discreet.postprocessing.marginals import (
    Column,
    cell_numbers,
    cells,
    clean_marginals,
    clean_windows,
    find_windows,
    into_windows,
)
from discreet.postprocessing.reference_population import Reference, SteadyGram, latent_correlation
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram

# Features of up to this many numbers (128 MB) are kept from pass to pass.
_KEPT_NUMBERS = 16_000_000
BasisT = TypeVar("BasisT", Basis, CodedBasis)
# Functions of each covariate that screening looks at.
_SCREENED = 2


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


class _Features(Generic[BasisT]):
    """Weighted features of a chunk, kept for the queries of a pass and, where memory allows, for later passes.

    ``n`` is the number of records. Of long tables, and where every pass makes its own chunks, one chunk at a time is
    kept, always in the same memory. A chunk is held while its features are, so that no other can be taken for it;
    coefficients are recognised by their values. What a map makes of features has a ``scratch`` buffer of its own, since
    it is added up before the next map is asked. Only the basis is sent to other processes.
    """

    def __init__(self, basis: BasisT, n: float) -> None:
        self.basis: BasisT = basis
        self.n = n
        self._kept: list[_Kept] = []
        self._place = 0
        self.scratch = ScratchBuffer()
        self._own = ScratchBuffer()
        # More chunks than the records make are those of another pass: then no chunk is seen twice.
        rows = _KEPT_NUMBERS / basis.m
        self._most = min(rows, 1.5 * n + 2.0 * CHUNK_ROWS) / CHUNK_ROWS if n <= rows else 0.0

    def __reduce__(self) -> tuple[type[_Features[BasisT]], tuple[BasisT, float]]:
        return type(self), (self.basis, self.n)

    def __call__(self, chunk: Chunk) -> Float:
        """Weighted features; they are not to be changed, and last until the next chunk."""
        return self._of(chunk).features

    def weights(self, chunk: Chunk) -> Float:
        """Each record's weight, for its features to stay within the radius."""
        kept = self._of(chunk)
        if kept.weights is None:
            kept.weights = self.basis.held(kept.features)
        return kept.weights

    def times(self, chunk: Chunk, factor: Float) -> Float:
        """Features times one number to each record, in the scratch buffer for what is made of features."""
        return np.multiply(self(chunk), factor[:, None], out=self.scratch(len(factor), self.basis.m))

    def selected(self, chunk: Chunk, selection: FeatureSelection) -> tuple[Float, Float]:
        """Selected features, in the same buffer, and each record's weight."""
        return selection(self(chunk), self.scratch(len(chunk.t), selection.m))

    def combine(self, chunk: Chunk, coefficients: Float) -> Float:
        """Features times coefficients."""
        kept, key = self._of(chunk), coefficients.tobytes()
        if key not in kept.sums:
            kept.sums[key] = combine(kept.features, coefficients)
        return kept.sums[key]

    def _of(self, chunk: Chunk) -> _Kept:
        # A pass asks for one chunk several times, and then for the next one: the search rarely goes further.
        for place in chain(range(self._place, len(self._kept)), range(self._place)):
            if self._kept[place].chunk is chunk:
                self._place = place
                return self._kept[place]
        out = None
        if len(self._kept) >= self._most:
            self._most = 0.0
            self._kept.clear()
            out = self._own(len(chunk.t), self.basis.m)
        self._place = len(self._kept)
        self._kept.append(_Kept(chunk, self.basis.features(chunk.x, out)))
        return self._kept[-1]


@dataclass(slots=True, eq=False)
class _Kept:
    chunk: Chunk
    features: Float
    weights: Float | None = None
    sums: dict[bytes, Float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Setting(Generic[BasisT]):
    """What all later rounds share: the features and what is known of their distribution."""

    features: _Features[BasisT]
    reference: Reference
    gram: SteadyGram

    @property
    def basis(self) -> BasisT:
        return self.features.basis

    @property
    def size(self) -> Float:
        """Mean square of each feature."""
        return np.diag(self.second)

    def slope(self, selection: FeatureSelection, varies: Float) -> Float:
        """Derivative of selected moments by the coefficients of all features; ``varies`` weighs the reference's points.

        Where the records' second moments are known to differ from the reference's, it is moved.
        """
        psi, weight = selection(self.reference.features)
        slope = (psi * (weight * varies)[:, None]).T @ self.reference.features / len(psi)
        return slope + float(np.mean(varies)) * selection.linear(self.basis.m).T @ self.gram.apart

    def square(self, selection: FeatureSelection, varies: Float) -> Float:
        """Second moments of selected and weighted features."""
        psi, weight = selection(self.reference.features)
        return np.asarray((psi * (weight**2 * varies)[:, None]).T @ psi / len(psi))

    @cached_property
    def second(self) -> Float:
        """Second moments of the features on the reference, no point weighted down."""
        return np.asarray(self.reference.features.T @ self.reference.features / len(self.reference.weight))


# Of polynomials and contrasts, and of codes.
Features: TypeAlias = _Features[Basis]
CodedFeatures: TypeAlias = _Features[CodedBasis]
Setting: TypeAlias = _Setting[Basis]
CodedSetting: TypeAlias = _Setting[CodedBasis]
AnySetting: TypeAlias = _Setting[Any]


def measure_gram(gate: Gate, share: float, features: Features, *beside: Query) -> Setting:
    """Second moments of the features; the same pass prepares what is asked ``beside`` it later."""
    basis = features.basis

    def rows(c: Chunk) -> Float:
        return features.times(c, np.sqrt(features.weights(c)))

    question = Query("second moments", share, Gram(basis.radius, basis.m), rows)
    gate.prepare(question, *beside)
    (gram,) = gate.ask(question)
    released, sd = gram.value / gate.n, float(gram.sd) / gate.n
    reference = Reference.draw(basis, released, sd)
    return Setting(features, reference, SteadyGram.of(released, sd, reference, basis))


def coding_questions(columns: tuple[Column, ...], share: float) -> tuple[Query, ...]:
    """What `measure_codings` asks first: it depends on no release, and can be prepared in the first pass."""
    return (_histograms("marginals", share, [first_edges(column) for column in columns]),) if columns else ()


def measure_codings(gate: Gate, questions: tuple[Query, ...], share: float) -> tuple[Coding, ...]:
    """Marginals in equal cells, then in cells that follow the records, and the codes that these give."""
    columns = gate.bounds.columns
    edges = [first_edges(column) for column in columns]
    fractions, sd = _shares(gate, edges, *questions)
    finer = [finer_edges(*each, sd) for each in zip(columns, edges, fractions, strict=True)]
    again, noise = _shares(gate, finer, _histograms("marginals within windows", share, finer))
    return tuple(coding(*each, noise) for each in zip(columns, finer, again, strict=True))


def _histograms(name: str, share: float, edges: list[Float]) -> Query:
    sizes = tuple(len(own) + 1 for own in edges)
    finders = [CellFinder(own) for own in edges]
    return Query(name, WINDOWS[name] * share, Cells(sizes), lambda c: code_numbers(c.x, finders))


def _shares(gate: Gate, edges: list[Float], question: Query) -> tuple[list[Float], float]:
    (counts,) = gate.ask(question)
    ends = np.cumsum([len(own) + 1 for own in edges])[:-1]
    return np.split(counts.value / gate.n, ends), float(counts.sd) / gate.n


def measure_importance(gate: Gate, share: float, codings: tuple[Coding, ...], location: Location) -> Float:
    """How much each covariate seems to say about treatment and outcome, from moments of its first functions."""
    p = len(codings)
    basis = CodedBasis.build(codings, np.full(p, 1.0 / p), 2 * p + 1)
    basis = basis.singles(_SCREENED)
    clip = 2.5 * location.magnitude.scale
    treated, reach = location.treated, max(location.treated, 1.0 - location.treated)
    features = CodedFeatures(basis, gate.n)

    def rows(c: Chunk) -> Float:
        weight = features.weights(c)
        both = np.concatenate(
            [
                features(c) * ((c.t - treated) / reach * weight)[:, None],
                features(c) * (np.clip(c.y - location.centre, -clip, clip) / clip * weight)[:, None],
            ],
            axis=1,
        )
        return both

    radius = 2.0**0.5 * basis.radius
    (moments,) = gate.ask(Query("screening moments", share, Ball(radius, 2 * basis.m), rows))
    values = moments.value.reshape(2, basis.m) / gate.n / basis.weight
    noise = float(moments.sd) / gate.n / basis.weight
    signal = np.maximum(values**2 - noise**2 - 1.0 / gate.n, 0.0)
    found = np.zeros((2, p))
    for k, member in enumerate(basis.members[1:], 1):
        found[:, member[0][0]] += signal[:, k]
    found /= np.maximum(found.sum(axis=1, keepdims=True), float(np.mean(noise**2)))
    importance = np.sqrt(found[0] * found[1]) + 0.5 * (found[0] + found[1]) + 0.5 / p
    return np.asarray(importance / importance.sum())


def measure_correlation(gate: Gate, share: float, codings: tuple[Coding, ...]) -> Float:
    """Correlations behind the codes, by second moments of each covariate's first function."""
    p = len(codings)
    if p < 2:
        return np.eye(p)
    basis = CodedBasis.build(codings, np.full(p, 1.0 / p), p + 1).singles(1)
    radius = float(np.sqrt(NORM_CAP * max(p, 2)))
    first = np.array(basis.first)
    shown = np.flatnonzero(first >= 0)

    def rows(c: Chunk) -> Float:
        own = np.zeros((len(c.t), p))
        own[:, shown] = basis.features(c.x)[:, first[shown]] / basis.weight[first[shown]]
        square = np.sum(own**2, axis=1)
        return np.asarray(own * np.minimum(1.0, radius / np.sqrt(np.maximum(square, 1e-12)))[:, None])

    (gram,) = gate.ask(Query("correlations", share, Gram(radius, p), rows))
    return latent_correlation(basis, gram.value / gate.n, float(gram.sd) / gate.n)


def measure_coded_gram(
    gate: Gate, share: float, features: CodedFeatures, correlation: Float, *beside: Query
) -> CodedSetting:
    """Second moments of the features; the same pass prepares what is asked ``beside`` it later."""
    basis = features.basis

    def rows(c: Chunk) -> Float:
        return features.times(c, np.sqrt(features.weights(c)))

    question = Query("second moments", share, Gram(basis.radius, basis.m), rows)
    gate.prepare(question, *beside)
    (gram,) = gate.ask(question)
    released, sd = gram.value / gate.n, float(gram.sd) / gate.n
    reference = Reference.of_codes(basis, correlation)
    return CodedSetting(features, reference, SteadyGram.of(released, sd, reference, basis))
