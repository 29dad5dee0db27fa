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
        self._tables: dict[tuple[bytes, int], CodedTables] = {}
        self._wide: tuple[_Coded, Float] | None = None

    def __reduce__(self) -> tuple[type[CodedFeatures], tuple[CodedBasis, float]]:
        return type(self), (self.basis, self.n)

    def __call__(self, chunk: Chunk) -> Float:
        """Weighted features; they are not to be changed, and last until the next chunk."""
        coded = self._of(chunk)
        if self._wide is None or self._wide[0] is not coded:
            out = self._own(len(chunk.t), self.basis.m)
            self._wide = coded, self.basis.from_codes(coded.codes, len(chunk.t), out)
        return self._wide[1]

    def times(self, chunk: Chunk, factor: Float) -> Float:
        """Features times one number to each record, in ``scratch``."""
        return np.multiply(self(chunk), factor[:, None], out=self.scratch(len(factor), self.basis.m))

    def weights(self, chunk: Chunk) -> Float:
        """Each record's weight, for its features to stay within the radius."""
        return np.minimum(1.0, self.basis.radius**2 / self._value(chunk, np.ones(self.basis.m), 2))

    def combine(self, chunk: Chunk, coefficients: Float) -> Float:
        """Features times coefficients."""
        return self._value(chunk, coefficients, 1)

    def selected(self, chunk: Chunk, selection: FeatureSelection, factor: Float) -> Float:
        """Selected features, weighted to stay within their norm, times one number to each record; in ``scratch``."""
        square = self._value(chunk, selection.squares(self.basis.m), 2)
        ahead = []
        for direction in selection.directions:
            plain = self.combine(chunk, direction.function) - direction.function[0] * self.basis.weight[0]
            ahead.append(plain * direction.scale)
            square = square + ahead[-1] * ahead[-1]
        weighted = factor * selection.weights(square)
        rows = self.scratch(len(chunk.t), selection.m)
        few, scale = len(selection.kept), selection.scale * self.basis.weight[selection.kept]
        self.basis.from_codes(self._of(chunk).codes, len(chunk.t), rows[:, :few], selection.kept, scale, weighted)
        for k, value in enumerate(ahead, few):
            np.multiply(value, weighted, out=rows[:, k])
        return rows

    def _value(self, chunk: Chunk, coefficients: Float, power: int) -> Float:
        coded, key = self._of(chunk), (coefficients.tobytes(), power)

        def value() -> Float:
            tables = _recent(self._tables, key, lambda: CodedTables(self.basis, coefficients, power))
            return tables.from_codes(coded.codes, len(chunk.t))

        return _recent(coded.values, key, value)

    def _of(self, chunk: Chunk) -> _Coded:
        return self._cache(chunk, lambda _: _Coded(self.basis, chunk.x))


class _Coded:
    """Codes of one chunk as small integers, and the values of functions of them."""

    def __init__(self, basis: CodedBasis, x: Float) -> None:
        self._small: list[npt.NDArray[Any]] = [
            codes.astype(np.min_scalar_type(coding.count))
            for codes, coding in zip(basis.codes(x), basis.codings, strict=True)
        ]
        self.values: dict[tuple[bytes, int], Float] = {}

    @property
    def codes(self) -> list[IntArray]:
        """Codes of each covariate."""
        return [codes.astype(np.int64) for codes in self._small]


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

    def with_features(self, basis: CodedBasis) -> Setting:
        """The same points with other features of their codes, whose second moments nobody released."""
        reference = self.reference.with_features(basis)
        return Setting(CodedFeatures(basis, self.features.n), reference, SteadyGram.implied(reference))

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
        psi, weight = on_reference = selection(self.reference.features)
        return self._slope(selection, varies, *on_reference), weighted_gram(psi, weight**2 * varies) / len(psi)

    def _slope(self, selection: FeatureSelection, varies: Float, psi: Float, weight: Float) -> Float:
        slope = (psi * (weight * varies)[:, None]).T @ self.reference.features / len(psi)
        return np.asarray(slope + float(np.mean(varies)) * selection.linear(self.basis.m).T @ self.gram.apart)

    @cached_property
    def second(self) -> Float:
        """Second moments of the features on the reference, no point weighted down."""
        return np.asarray(self.reference.features.T @ self.reference.features / len(self.reference.weight))


def measure_gram(gate: Gate, share: float, features: CodedFeatures, correlation: Float, *beside: Query) -> Setting:
    """Second moments of the features, and a public sample whose correlations are known beside them.

    The same pass prepares what is asked ``beside`` them later.
    """

    def rows(c: Chunk) -> Float:
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


def screened_functions(gate: Gate, p: int) -> int:
    """How many functions of each of so many covariates are looked at first: the more, the more information there is."""
    low, high = _SCREENED
    return int(max(min(_SCREENED_RATE * sqrt(gate.n * gate.mu), high, _SCREENED_IN_ALL / p), low))


def measure_curves(
    gate: Gate, share: float, codings: tuple[Coding, ...], location: Location
) -> tuple[Float, tuple[Curves, ...]]:
    """How much each covariate seems to say about treatment and outcome, and functions that follow what it says.

    By moments of every covariate's first functions: the more of them, the more information there is.
    """
    features = CodedFeatures(CodedBasis.of_singles(codings, screened_functions(gate, len(codings))), gate.n)
    basis, scale = features.basis, location.scale
    clip, treated = min(max(2.5 * scale, location.least_clip), location.farthest), location.treated
    reach = max(treated, 1.0 - treated)

    def rows(c: Chunk) -> Float:
        weight = features.weights(c)
        return np.concatenate(
            [
                features(c) * ((c.t - treated) / reach * weight)[:, None],
                features(c) * (np.clip(c.y - location.centre, -clip, clip) / clip * weight)[:, None],
            ],
            axis=1,
        )

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
