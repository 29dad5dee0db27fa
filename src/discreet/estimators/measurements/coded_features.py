"""Features of records by their codes: what maps of single records look up, and what is kept from pass to pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.data._arrays import Float, IntArray, ScratchBuffer
from discreet.data.records import CHUNK_ROWS, Chunk
from discreet.postprocessing.coding import Coding
from discreet.postprocessing.feature_selection import FeatureSelection
from discreet.postprocessing.kernel_basis import CodedBasis, CodedTables
from discreet.privacy.compiled.products import MOST_CODES, Layout, Products, SmallCodes, TableSums, trusted

# What is kept from pass to pass has up to this many numbers (128 MB).
_KEPT_NUMBERS = 16_000_000
# Functions whose values are kept of each chunk: both models, and one of them as it was.
_KEPT_FUNCTIONS = 3
KeptT = TypeVar("KeptT")
KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class CodesOf:
    """Codes of encoded covariates, one covariate after the other; equal to any other by the very same codings."""

    codings: tuple[Coding, ...]

    def __call__(self, x: Float) -> npt.NDArray[np.unsignedinteger[Any]]:
        """As small whole numbers."""
        kind = np.min_scalar_type(max((coding.count for coding in self.codings), default=1) - 1)
        found = np.empty((len(self.codings), len(x)), dtype=kind)
        for j, coding in enumerate(self.codings):
            found[j] = coding.codes(x[:, j])
        return found


class ChunkCache(Generic[KeptT]):
    """What was made of chunks: of all of them, or of long tables, and where passes make their own, of one at a time.

    ``n`` is the number of records, ``p`` that of covariates. Covariates (or their codes) are held with what was made of
    them, so that no others can be taken for them.
    """

    def __init__(self, n: float, p: int) -> None:
        self._kept: dict[int, tuple[npt.NDArray[Any], KeptT]] = {}
        # What is kept beside records that are kept anyway, as codes; and beside those that are not.
        self._most = {True: _most_chunks(n, _KEPT_FUNCTIONS + p / 4.0), False: _most_chunks(n, 2.0 * (p + 3.0))}

    def __call__(self, chunk: Chunk, make: Callable[[], KeptT]) -> KeptT:
        """What was made of this chunk, or is now."""
        of = chunk.x if chunk.c is None else chunk.c
        if id(of) in self._kept:
            return self._kept[id(of)][1]
        coded = chunk.c is not None
        if len(self._kept) >= self._most[coded]:
            self._most[coded] = 0.0
            self._kept.clear()
        self._kept[id(of)] = of, make()
        return self._kept[id(of)][1]


def _most_chunks(n: float, numbers: float) -> float:
    """How many chunks are kept of so many records, with so many numbers each."""
    rows = _KEPT_NUMBERS / numbers
    # More chunks than the records make are those of another pass: then no chunk is seen twice.
    return min(rows, 1.5 * n + 2.0 * CHUNK_ROWS) / CHUNK_ROWS if n <= rows else 0.0


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
        self._cache: ChunkCache[_Coded] = ChunkCache(n, len(basis.codings))
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
        if small is None:
            return rows()
        return Products(_recent(self._layouts, key, layout), small, factors, rows, values)

    def _whole_layout(self, times: int) -> Layout:
        every, factor = list(range(self.basis.m)) * times, np.repeat(np.arange(times), self.basis.m)
        return _layout(self.basis, every, np.tile(self.basis.weight, times), factor=factor)

    def _value(self, chunk: Chunk, coefficients: Float, power: int) -> Float:
        coded, key = self._of(chunk), (coefficients.tobytes(), power)

        def value() -> Float:
            return _recent(self._tables, key, lambda: _Function(self.basis, coefficients, power))(coded, len(chunk.t))

        return _recent(coded.values, key, value)

    def _of(self, chunk: Chunk) -> _Coded:
        return self._cache(chunk, lambda: _Coded(self.basis, chunk))


class _Coded:
    """Codes of one chunk as small integers, and the values of functions of them."""

    def __init__(self, basis: CodedBasis, chunk: Chunk) -> None:
        counts = np.array([coding.count for coding in basis.codings], dtype=np.int64)
        found = CodesOf(basis.codings)(chunk.x) if chunk.c is None else chunk.c
        if found.shape != (len(counts), len(chunk.t)) or (found.size and np.any(found.max(axis=1) >= counts)):
            raise ValueError("a code is not one of its covariate's.")
        self._found = found
        self.small: SmallCodes | None = None
        """the same for compiled loops, which do not check them"""
        if counts.max(initial=0) <= MOST_CODES and trusted() is not None:
            self._found = self.small = np.ascontiguousarray(found, dtype=np.uint16)
        self.values: dict[tuple[bytes, int], Float] = {}

    @property
    def codes(self) -> list[IntArray]:
        """Codes of each covariate."""
        return [codes.astype(np.int64) for codes in self._found]


class _Function:
    """A function of codes by tables, from compiled loops where there are any."""

    def __init__(self, basis: CodedBasis, coefficients: Float, power: int) -> None:
        self._tables = CodedTables(basis, coefficients, power)
        self._sums = TableSums(self._tables.constant, self._tables.groups)

    def __call__(self, coded: _Coded, n: int) -> Float:
        return self._tables.from_codes(coded.codes, n) if coded.small is None else self._sums(coded.small)


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
