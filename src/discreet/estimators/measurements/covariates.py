"""Rounds through the gate about covariates: how each is distributed, and the second moments of their features.

Each turns a share of the budget into public numbers. Diameters: docs/proofs/ate.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import sqrt
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.data._arrays import Float, IntArray
from discreet.data.columns import ScratchBuffer
from discreet.data.records import CHUNK_ROWS, Chunk
from discreet.estimators._allocation import WINDOWS
from discreet.estimators.measurements.location import Location
from discreet.postprocessing.coding import CellFinder, Coding, Column, code_numbers, coding, finer_edges, first_edges
from discreet.postprocessing.feature_selection import FeatureSelection, screened
from discreet.postprocessing.kernel_basis import NORM_CAP, CodedBasis, CodedTables, Curves
from discreet.postprocessing.reference_population import Reference, SteadyGram, latent_correlation, weighted_gram
from discreet.privacy.compiled.products import MOST_CODES, Layout, Products, SmallCodes, TableSums, trusted
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram

# What is kept from pass to pass has up to this many numbers (128 MB).
_KEPT_NUMBERS = 16_000_000
# Functions whose values are kept of each chunk: both models, and one of them as it was.
_KEPT_FUNCTIONS = 3
KeptT = TypeVar("KeptT")
KeyT = TypeVar("KeyT", bound=Hashable)
# Functions of each covariate that screening looks at: so many for the root of n mu, at least and at most, and so many
# of all covariates, which bounds memory. By hand, of this and fewer, on the same studies of evidence/population as the
# weight of what it finds.
_SCREENED_RATE, _SCREENED, _SCREENED_IN_ALL = 0.1, (2, 24), 1_200


class ChunkCache(Generic[KeptT]):
    """What was made of chunks: of all of them, or of long tables, and where passes make their own, of one at a time.

    ``n`` is the number of records, ``numbers`` how many are kept for each. A chunk is held with what was made of it, so
    that no other can be taken for it.
    """

    def __init__(self, n: float, numbers: int) -> None:
        self._kept: list[tuple[Chunk, KeptT]] = []
        self._place = 0
        # More chunks than the records make are those of another pass: then no chunk is seen twice.
        rows = _KEPT_NUMBERS / numbers
        self._most = min(rows, 1.5 * n + 2.0 * CHUNK_ROWS) / CHUNK_ROWS if n <= rows else 0.0

    def __call__(self, chunk: Chunk, make: Callable[[bool], KeptT]) -> KeptT:
        """What was made of this chunk, or is now: ``make`` is told whether it will stay."""
        # A pass asks for one chunk several times, and then for the next one: the search rarely goes further.
        for place in chain(range(self._place, len(self._kept)), range(self._place)):
            if self._kept[place][0] is chunk:
                self._place = place
                return self._kept[place][1]
        stays = len(self._kept) < self._most
        if not stays:
            self._most = 0.0
            self._kept.clear()
        self._place = len(self._kept)
        self._kept.append((chunk, make(stays)))
        return self._kept[-1][1]


class CodedFeatures:
    """Weighted features of a chunk. Codes are kept, and the last few functions' values; features of one chunk only.

    Functions and norms are looked up in tables over codes: most maps need no more features than they sum. Only the
    basis and ``n``, the number of records, are sent to other processes. What a map makes of features has a ``scratch``
    buffer of its own, since it is added up before the next map is asked.
    """

    def __init__(self, basis: CodedBasis, n: float) -> None:
        self.basis = basis
        self.n = n
        self.scratch = ScratchBuffer()
        self._own = ScratchBuffer()
        # As many records as are kept in memory, encoded, from pass to pass.
        self._cache: ChunkCache[_Coded] = ChunkCache(n, 2 * (len(basis.codings) + 3))
        self._tables: dict[tuple[bytes, int], _Function] = {}
        self._wide: tuple[_Coded, Float] | None = None
        self._layouts: dict[FeatureSelection | int, Layout] = {}

    def __reduce__(self) -> tuple[type[CodedFeatures], tuple[CodedBasis, float]]:
        return type(self), (self.basis, self.n)

    def __call__(self, chunk: Chunk) -> Float:
        """Weighted features; they are not to be changed, and last until the next chunk."""
        coded = self._of(chunk)
        if self._wide is None or self._wide[0] is not coded:
            out = self._own(len(chunk.t), self.basis.m)
            self._wide = coded, self.basis.from_codes(coded.codes, len(chunk.t), out)
        return self._wide[1]

    def times(self, chunk: Chunk, *factors: Float) -> Float | Products:
        """Features times one number to each record; with several, one after the other. In ``scratch``, once made."""

        def rows() -> Float:
            made, m = self.scratch(len(chunk.t), len(factors) * self.basis.m), self.basis.m
            for k, factor in enumerate(factors):
                np.multiply(self(chunk), factor[:, None], out=made[:, k * m : (k + 1) * m])
            return made

        return self._products(chunk, len(factors), lambda: self._whole_layout(len(factors)), np.array(factors), rows)

    def weights(self, chunk: Chunk) -> Float:
        """Each record's weight, for its features to stay within the radius."""
        return np.minimum(1.0, self.basis.radius**2 / self._value(chunk, np.ones(self.basis.m), 2))

    def combine(self, chunk: Chunk, coefficients: Float) -> Float:
        """Features times coefficients."""
        return self._value(chunk, coefficients, 1)

    def selected(self, chunk: Chunk, selection: FeatureSelection, factor: Float) -> Float | Products:
        """Selected features, weighted to stay within their norm, times one number to each record; as `times`."""
        square = self._value(chunk, selection.squares(self.basis.m), 2)
        ahead = []
        for direction in selection.directions:
            plain = self.combine(chunk, direction.function) - direction.function[0] * self.basis.weight[0]
            ahead.append(plain * direction.scale)
            square = square + ahead[-1] * ahead[-1]
        weighted = factor * selection.weights(square)
        few, scale = len(selection.kept), selection.scale * self.basis.weight[selection.kept]

        def rows() -> Float:
            made = self.scratch(len(chunk.t), selection.m)
            self.basis.from_codes(self._of(chunk).codes, len(chunk.t), made[:, :few], selection.kept, scale, weighted)
            for k, value in enumerate(ahead, few):
                np.multiply(value, weighted, out=made[:, k])
            return made

        def layout() -> Layout:
            return _layout(self.basis, selection.kept.tolist(), scale, values=len(ahead), first=True)

        return self._products(chunk, selection, layout, weighted, rows, *ahead)

    def _products(
        self,
        chunk: Chunk,
        key: FeatureSelection | int,
        layout: Callable[[], Layout],
        factors: Float,
        rows: Callable[[], Float],
        *values: Float,
    ) -> Float | Products:
        """Rows that compiled loops may add up; from NumPy where there are none."""
        small = self._of(chunk).small
        if small is None or trusted() is None:
            return rows()
        return Products(_recent(self._layouts, key, layout), small, factors, rows, values)

    def _whole_layout(self, times: int) -> Layout:
        every, factor = list(range(self.basis.m)) * times, np.repeat(np.arange(times), self.basis.m)
        return _layout(self.basis, every, np.tile(self.basis.weight, times), factor=factor)

    def _value(self, chunk: Chunk, coefficients: Float, power: int) -> Float:
        coded, key = self._of(chunk), (coefficients.tobytes(), power)

        def value() -> Float:
            return _recent(self._tables, key, lambda: _Function(self.basis, coefficients, power))(coded)

        return _recent(coded.values, key, value)

    def _of(self, chunk: Chunk) -> _Coded:
        return self._cache(chunk, lambda _: _Coded(self.basis, chunk.x))


class _Coded:
    """Codes of one chunk as small integers, and the values of functions of them."""

    def __init__(self, basis: CodedBasis, x: Float) -> None:
        counts, codes = [coding.count for coding in basis.codings], basis.codes(x)
        self._kept: list[npt.NDArray[Any]] = []
        self.small: SmallCodes | None = None
        """the same for compiled loops, which look them up unchecked"""
        if max(counts, default=1) <= MOST_CODES:
            self.small = np.empty((len(codes), len(x)), dtype=np.uint16)
            for row, own, count in zip(self.small, codes, counts, strict=True):
                if own.size and not 0 <= own.min() <= own.max() < count:
                    raise ValueError("a code is not one of its covariate's.")
                row[:] = own
        else:
            self._kept = [own.astype(np.min_scalar_type(count)) for own, count in zip(codes, counts, strict=True)]
        self.values: dict[tuple[bytes, int], Float] = {}

    @property
    def codes(self) -> list[IntArray]:
        """Codes of each covariate."""
        return [codes.astype(np.int64) for codes in (self._kept if self.small is None else self.small)]


class _Function:
    """A function of codes by tables, from compiled loops where there are any."""

    def __init__(self, basis: CodedBasis, coefficients: Float, power: int) -> None:
        self._tables = CodedTables(basis, coefficients, power)
        self._sums = TableSums(self._tables.constant, self._tables.groups)

    def __call__(self, coded: _Coded) -> Float:
        if coded.small is not None and trusted() is not None:
            return self._sums(coded.small)
        codes = coded.codes
        return self._tables.from_codes(codes, len(codes[0]))


def _layout(basis: CodedBasis, kept: list[int], size: Float, **more: Any) -> Layout:
    """Some features of a basis as products of functions."""
    places: dict[tuple[int, int], int] = {}
    members = [[places.setdefault(each, len(places)) for each in basis.members[k]] for k in kept]
    return Layout([(j, basis.curves[j].table[:, curve]) for j, curve in places], members, size, **more)


def _recent(kept: dict[KeyT, KeptT], key: KeyT, make: Callable[[], KeptT]) -> KeptT:
    """What belongs to a key, made where it is missing; the few that were used last are kept."""
    found = kept.pop(key) if key in kept else make()
    kept[key] = found
    if len(kept) > _KEPT_FUNCTIONS:
        del kept[next(iter(kept))]
    return found


@dataclass(frozen=True, eq=False)
class Setting:
    """What all later rounds share: the features and what is known of their distribution."""

    features: CodedFeatures
    reference: Reference
    gram: SteadyGram

    @property
    def basis(self) -> CodedBasis:
        """What the features are."""
        return self.features.basis

    @property
    def size(self) -> Float:
        """Mean square of each feature."""
        return np.diag(self.second)

    def slope(self, selection: FeatureSelection, varies: Float) -> Float:
        """Derivative of selected moments by the coefficients of all features; ``varies`` weighs the reference's points.

        Where the records' second moments are known to differ from the reference's, it is moved.
        """
        return self._slope(selection, varies, *selection(self.reference.features))

    def slope_and_square(self, selection: FeatureSelection, varies: Float) -> tuple[Float, Float]:
        """The same, and second moments of selected and weighted features."""
        psi, weight = selection(self.reference.features)
        return self._slope(selection, varies, psi, weight), weighted_gram(psi, weight**2 * varies) / len(psi)

    def _slope(self, selection: FeatureSelection, varies: Float, psi: Float, weight: Float) -> Float:
        features, linear = self.reference.features, selection.linear(self.basis.m)
        if 2 * selection.m > self.basis.m:
            # A matrix by itself takes half the time of one by another.
            slope = linear.T @ weighted_gram(features, weight * varies) / len(psi)
        else:
            slope = (psi * (weight * varies)[:, None]).T @ features / len(psi)
        return np.asarray(slope + float(np.mean(varies)) * linear.T @ self.gram.apart)

    @cached_property
    def second(self) -> Float:
        """Second moments of the features on the reference, no point weighted down."""
        return np.asarray(self.reference.features.T @ self.reference.features / len(self.reference.weight))


def measure_gram(gate: Gate, share: float, features: CodedFeatures, correlation: Float, *beside: Query) -> Setting:
    """Second moments of the features, and a public sample whose correlations are known beside them.

    The same pass prepares what is asked ``beside`` them later.
    """

    def rows(c: Chunk) -> Float | Products:
        return features.times(c, np.sqrt(features.weights(c)))

    question = Query("second moments", share, Gram(features.basis.radius, features.basis.m), rows)
    gate.prepare(question, *beside)
    (gram,) = gate.ask(question)
    reference = Reference.of_codes(features.basis, correlation)
    steady = SteadyGram.of(gram.value / gate.n, float(gram.sd) / gate.n, reference, features.basis)
    return Setting(features, reference, steady)


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


def measure_curves(
    gate: Gate, share: float, codings: tuple[Coding, ...], location: Location
) -> tuple[Float, tuple[Curves, ...]]:
    """How much each covariate seems to say about treatment and outcome, and functions that follow what it says.

    By moments of every covariate's first functions: the more of them, the more information there is.
    """
    low, high = _SCREENED
    enough = min(_SCREENED_RATE * sqrt(gate.n * gate.mu), high, _SCREENED_IN_ALL / len(codings))
    most = int(max(enough, low))
    features = CodedFeatures(CodedBasis.of_singles(codings, most), gate.n)
    basis, scale = features.basis, location.scale
    clip, treated = min(max(2.5 * scale, location.least_clip), location.farthest), location.treated
    reach = max(treated, 1.0 - treated)

    def rows(c: Chunk) -> Float | Products:
        weight = features.weights(c)
        outcome = np.clip(c.y - location.centre, -clip, clip) / clip
        return features.times(c, (c.t - treated) / reach * weight, outcome * weight)

    query = Query("screening moments", share, Ball(2.0**0.5 * basis.radius, 2 * basis.m), rows)
    (moments,) = gate.ask(query)
    varies = np.array([[treated * (1.0 - treated) / reach**2], [(scale / clip) ** 2]])
    noise = (float(moments.sd) / gate.n / basis.weight) ** 2 + varies / gate.n
    return screened(basis, moments.value.reshape(2, basis.m) / gate.n / basis.weight, noise)


def measure_correlation(gate: Gate, share: float, codings: tuple[Coding, ...]) -> Float:
    """Correlations behind the codes, by second moments of each covariate's first function."""
    p = len(codings)
    if p < 2:
        return np.eye(p)
    basis = CodedBasis.of_singles(codings, 1)
    radius = float(np.sqrt(NORM_CAP * max(p, 2)))

    def rows(c: Chunk) -> Float:
        own, square = np.zeros((len(c.t), p), order="F"), np.zeros(len(c.t))
        for j, (codes, curves) in enumerate(zip(basis.codes(c.x), basis.curves, strict=True)):
            if len(curves.variance):
                own[:, j] = curves.table[:, 0].take(codes)
                square += own[:, j] * own[:, j]
        own *= np.minimum(1.0, radius / np.sqrt(np.maximum(square, 1e-12)))[:, None]
        return own

    (gram,) = gate.ask(Query("correlations", share, Gram(radius, p), rows))
    return latent_correlation(basis, gram.value / gate.n, float(gram.sd) / gate.n)
