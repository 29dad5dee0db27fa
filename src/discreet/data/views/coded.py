"""Records in memory whose covariates are held as codes, so that a long table is read, clipped and encoded once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk, CodeMap, Kernel, RecordsInMemory, RowProgress, Unit, add_up

# What is kept from pass to pass has up to so many bytes.
KEPT_BYTES = 300_000_000
# Of a record beside its codes: an outcome, an arm and a probability.
_OTHERS = 9
# Of a further column.
_FURTHER = 8


def fits(rows: float, p: int, more: int = 0) -> bool:
    """Whether records are kept as codes: by their number, which must be public or released where that matters.

    ``more`` is how many further columns they have.
    """
    return rows * (p + _OTHERS + _FURTHER * more) <= KEPT_BYTES


# It neither compares nor prints its columns: they are the records themselves.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodedRecords(RecordsInMemory):
    """Records that were read and checked once; what is asked of them sees codes, and no covariates."""

    n: int
    bounds: Bounds
    kept: tuple[Chunk, ...] = field(repr=False)
    unit: Unit | None = None
    public: tuple[str, ...] = ()

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)``, an int64 array; ``progress`` is given the number of rows just finished."""
        return add_up(map(unpacked, self.kept), kernel, progress, n=self.n)


def packed(source: Iterable[Chunk], codes: CodeMap) -> Iterator[Chunk]:
    """Chunks with codes in place of covariates, in as little memory as their numbers can be held in."""
    for chunk in source:
        e = None if chunk.e is None else _short(chunk.e)
        t, more = chunk.t.astype(np.int8), {role: _short(values) for role, values in chunk.more.items()}
        yield Chunk(_short(chunk.y), t, np.empty((len(t), 0)), e, c=codes(chunk.x), more=more)  # type: ignore[arg-type]


def unpacked(chunk: Chunk) -> Chunk:
    """A chunk that was packed, as kernels want it."""
    y, t, e = (None if each is None else each.astype(np.float64) for each in (chunk.y, chunk.t, chunk.e))
    assert y is not None
    assert t is not None
    more = {role: values.astype(np.float64) for role, values in chunk.more.items()}
    return chunk._replace(y=y, t=t, e=e, more=more)


def _short(values: Float) -> Float:
    """The same numbers as float32 if that loses nothing; one number for all if they are the same."""
    if values.size and np.all(values == values[0]):
        return np.broadcast_to(values[:1].copy(), values.shape)
    short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values  # type: ignore[return-value]
