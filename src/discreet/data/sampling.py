"""Samples and parts of records, chosen by a hash of a column, or of the places that records have.

By a column they are the same on every engine and in any order. Whether a record belongs to one depends on that record
alone, so that a question about a sample is a question about all records whose map is zero outside it. Places are public
where one record takes the place of another, and with them which records belong to a sample, and how many there are.
Proof: docs/proofs/gate.md, lemma 15.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.data._arrays import Float, IntArray, Values
from discreet.data.bounds import Bounds
from discreet.data.columns import arrow
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import (
    CHUNK_ROWS,
    Chunk,
    CodeMap,
    Kernel,
    Records,
    RecordsInMemory,
    RowProgress,
    Unit,
    added,
)
from discreet.data.views.coded import packed, unpacked
from discreet.exceptions import InvalidInput

# Samples up to this many float32 numbers (192 MB) are kept in memory; outcomes, arms and probabilities count double.
KEPT_NUMBERS = 48_000_000
# Of SplitMix64, which spreads consecutive numbers evenly.
_STEP, _FIRST, _SECOND = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def chosen(keys: Float, part: float) -> npt.NDArray[np.bool_]:
    """Whether each whole number belongs to a sample of so large a part."""
    mixed = keys.astype(np.int64).view(np.uint64) + _STEP
    mixed ^= mixed >> np.uint64(30)
    mixed *= _FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(31)
    return np.asarray(mixed < np.uint64(min(int(part * 2.0**64), 2**64 - 1)))


def placed(source: Iterable[Chunk]) -> Iterator[Chunk]:
    """The same chunks with the places of their records to choose by."""
    first = 0
    for chunk in source:
        yield chunk._replace(k=places(first, len(chunk.t)))
        first += len(chunk.t)


def places(first: int, rows: int) -> Float:
    """Places of so many rows as numbers to choose by."""
    return np.arange(first, first + rows, dtype=np.float64)


def sampled(source: Iterable[Chunk], part: float) -> Iterator[Chunk]:
    """The records of a sample, put together to chunks of the usual length; `whole` makes them fit for kernels."""
    waiting: list[Chunk] = []
    rows = 0
    for chunk in source:
        assert chunk.k is not None
        some = _some(chunk, chosen(chunk.k, part))
        if rows + len(some.t) > CHUNK_ROWS:
            yield _joined(waiting)
            waiting, rows = [], 0
        waiting.append(some)
        rows += len(some.t)
    if rows:
        yield _joined(waiting)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample(RecordsInMemory):
    """Records of a sample, in memory.

    Where a column chose them their number is private, and ``n`` that of all records: gates treat each record as a unit
    that may be empty. Where places did, it is public, and there is no unit.

    Covariates are rounded to float32, as those of every sample are: models do not need more, and memory is short.
    """

    n: int
    bounds: Bounds
    unit: Unit | None
    public: tuple[str, ...] = ()
    kept: tuple[Chunk, ...] = field(repr=False)
    roles: tuple[str, ...] = ()
    """of further columns"""
    as_codes: list[tuple[CodeMap, Sample]] = field(default_factory=list, repr=False)

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)``, an int64 array. How many rows there are is not reported."""
        total = nothing(kernel, self.bounds, self.roles)
        for chunk in self.kept:
            total = added(total, kernel(whole(chunk) if chunk.c is None else unpacked(chunk)))
        return total

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> Sample:
        """Codes in place of covariates: in less memory, and looked up once for all passes."""
        if not self.as_codes or self.as_codes[0][0] != codes:
            kept = tuple(packed(map(whole, self.kept), codes))
            self.as_codes[:] = [(codes, replace(self, kept=kept, as_codes=[]))]
        return self.as_codes[0][1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweptSample:
    """Records of a sample, which every pass looks for among all of them; the rest is as in `Sample`."""

    n: int
    bounds: Bounds
    unit: Unit | None
    ordered: bool
    sums: Callable[[Kernel, RowProgress | None], IntArray | None]
    """what a pass adds up over the sample; None where it found nobody"""
    public: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    """of further columns"""

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)`` over the sample; ``progress`` is given all rows."""
        sums = self.sums(kernel, progress)
        return nothing(kernel, self.bounds, self.roles) if sums is None else sums

    def group_sums(
        self, partition: Partition | None, formulas: Sequence[Formula], progress: RowProgress | None = None
    ) -> IntArray | None:
        """Only a sweep finds the rows of a sample."""
        return None

    def sample(
        self, part: float, rows: float, progress: RowProgress | None = None, *, by_place: bool = False
    ) -> Records | None:
        """A sample has none of its own."""
        return None

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> Records:
        """Rows stay where they are."""
        return self

    def by_unit(self) -> Records | None:
        """Rows stay where they are."""
        return None

    def close(self) -> None:
        """The table is closed by whoever opened it."""


def counted(chunk: Chunk) -> IntArray:
    """A kernel that counts records."""
    return np.array([len(chunk.t)])


def each_of(unit: Unit | None) -> Unit:
    """Whose rows those of a sample are: a unit has as many as before, or none."""
    return Unit("record", 1) if unit is None else unit


def together(parts: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """The same rows in as few chunks as they need."""
    if not parts:
        return ()
    whole = _joined(parts)
    starts = range(0, len(whole.t), CHUNK_ROWS)
    # Copies, so that each lies together in memory.
    return tuple(_some(whole, np.arange(start, min(start + CHUNK_ROWS, len(whole.t)))) for start in starts)


def nothing(kernel: Kernel, bounds: Bounds, roles: Iterable[str] = ()) -> IntArray:
    """What a kernel adds up to where there are no records: as many zeros as it has numbers for a made-up one."""
    e, more = np.full(1, bounds.propensity[0]), {role: np.zeros(1) for role in roles}
    return 0 * kernel(Chunk(np.zeros(1), np.zeros(1), np.zeros((1, bounds.p)), e, more=more))


def _some(chunk: Chunk, which: npt.NDArray[np.bool_] | IntArray) -> Chunk:
    # One covariate after the other stays in memory.
    e = None if chunk.e is None else chunk.e[which]
    x: Any = chunk.x.T[:, which].astype(np.float32).T
    return Chunk(chunk.y[which], chunk.t[which], x, e, more={role: v[which] for role, v in chunk.more.items()})


def whole(chunk: Chunk) -> Chunk:
    """A chunk of a sample as kernels want it."""
    return chunk._replace(x=chunk.x.T.astype(np.float64).T)


def _joined(parts: Sequence[Chunk]) -> Chunk:
    e = [part.e for part in parts if part.e is not None]
    return Chunk(
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.t for part in parts]),
        np.concatenate([part.x.T for part in parts], axis=1).T,
        np.concatenate(e) if e else None,
        more={role: np.concatenate([part.more[role] for part in parts]) for role in parts[0].more},
    )


def part_numbers(units: Values, name: str, *, key: int, parts: int) -> IntArray:
    """The part of each unit, from 0 on: BLAKE2b of its name under a key, so that nothing else matters.

    Whole numbers are hashed as they are written, so that 7, 7.0 and "7" are one unit.
    """
    found = arrow(units, name)
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    if found.null_count:
        raise InvalidInput(f"{name} has missing values, but says which part a record is in: leave out those rows.")
    coded = found.dictionary_encode()
    of = np.array([_part(_written(value, name), key, parts) for value in coded.dictionary.to_pylist()], dtype=np.int64)
    return np.asarray(of[coded.indices.to_numpy()])


def _written(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not value.is_integer():
        raise InvalidInput(f"{name} must hold whole numbers or text, as it says which part a record is in: convert it.")
    return str(int(value))


def _part(name: str, key: int, parts: int) -> int:
    keyed = key.to_bytes(16, "little", signed=True)
    digest = hashlib.blake2b(name.encode(), digest_size=8, key=keyed, person=b"discreet split").digest()
    # 64 bits for a handful of parts: they are even to within one in 2**60.
    return int.from_bytes(digest, "little") % parts
