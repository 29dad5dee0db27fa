"""Rows that are products of tables over codes, which need not be made for the gate to add them up.

A query's map may return `Products` in place of an array. To whoever asks NumPy for it, it is that array; the gate puts
it on the grid with compiled loops where there are any (`library`), operation for operation as NumPy does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.data._arrays import Float, IntArray, ScratchBuffer
from discreet.privacy.compiled.library import library

SmallCodes = npt.NDArray[np.uint16]
# Codes are held in so many bits.
MOST_CODES = 1 << 16
# Records that are worked on together, as in kernels.c.
_ROWS = 128
_APART = 8
# Numbers in a register from which on tiles of sums are faster than a matrix product by BLAS.
_WIDE = 8
_memory, _steps = ScratchBuffer(), ScratchBuffer()
_Integer, _Number, _Pointer = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p


class _Layout(ctypes.Structure):
    _fields_: ClassVar = [
        ("functions", _Integer),
        ("column", _Pointer),
        ("table", _Pointer),
        ("features", _Integer),
        ("member", _Pointer),
        ("size", _Pointer),
        ("factor", _Pointer),
        ("first", _Integer),
    ]


class _Chunk(ctypes.Structure):
    _fields_: ClassVar = [
        ("rows", _Integer),
        ("codes", _Pointer),
        ("factors", _Integer),
        ("factor", _Pointer),
        ("values", _Pointer),
    ]


class _Grid(ctypes.Structure):
    _fields_: ClassVar = [("radius", _Number), ("scale", _Number), ("edge", _Number), ("safe", _Number)]


class _Tables(ctypes.Structure):
    _fields_: ClassVar = [
        ("constant", _Number),
        ("groups", _Integer),
        ("group_end", _Pointer),
        ("column", _Pointer),
        ("table", _Pointer),
        ("ahead_end", _Pointer),
        ("ahead_column", _Pointer),
        ("ahead", _Pointer),
    ]


def _addresses(arrays: Sequence[Float]) -> npt.NDArray[np.uint64]:
    return np.array([array.ctypes.data for array in arrays], dtype=np.uint64)


class Layout:
    """What the products of a map are made of, whatever the chunk.

    Parameters
    ----------
    functions
        Covariate and table of each function of a single one.
    members
        Functions of each feature, by their numbers, at most three; none for the constant.
    size
        What each feature is multiplied by.
    factor
        Which of a record's factors each feature is multiplied by; the first one if it is not given.
    values
        How many columns of values come after the features, each times the first factor.
    first
        Whether a factor is multiplied in before anything else, or after.
    """

    def __init__(
        self,
        functions: Sequence[tuple[int, Float]],
        members: Sequence[Sequence[int]],
        size: Float,
        *,
        factor: IntArray | None = None,
        values: int = 0,
        first: bool = False,
    ) -> None:
        features = len(members) + values
        member = np.full((features, 3), -1, dtype=np.int64)
        for row, own in zip(member, members, strict=False):
            row[: len(own)] = own
        member[len(members) :, 0] = -2 - np.arange(values)
        tables = [np.ascontiguousarray(table) for _, table in functions]
        sizes = np.concatenate([size, np.ones(values)])
        which = np.zeros(features, dtype=np.int64)
        if factor is not None:
            which[: len(members)] = factor
        column = np.array([j for j, _ in functions], dtype=np.int64)
        addresses = _addresses(tables)
        self.features, self.memory = features, features + len(tables)
        # Held for as long as their addresses are.
        self._held = (tables, column, addresses, member, sizes, which)
        self.own = _Layout(
            len(tables),
            column.ctypes.data,
            addresses.ctypes.data,
            features,
            member.ctypes.data,
            sizes.ctypes.data,
            which.ctypes.data,
            int(first),
        )


class TableSums:
    """Sums of tables over codes, in groups that are each multiplied by functions of further covariates."""

    def __init__(
        self,
        constant: float,
        groups: Sequence[tuple[Sequence[tuple[int, Float]], Sequence[tuple[int, Float]]]],
    ) -> None:
        ahead = [each for own, _ in groups for each in own]
        tables = [each for _, own in groups for each in own]
        held = [np.ascontiguousarray(table) for _, table in (*tables, *ahead)]
        columns = np.array([j for j, _ in tables], dtype=np.int64)
        ends = np.cumsum([len(own) for _, own in groups], dtype=np.int64)
        ahead_ends = np.cumsum([len(own) for own, _ in groups], dtype=np.int64)
        ahead_columns = np.array([j for j, _ in ahead], dtype=np.int64)
        addresses, ahead_addresses = _addresses(held[: len(tables)]), _addresses(held[len(tables) :])
        self._held = (held, columns, ends, ahead_ends, ahead_columns, addresses, ahead_addresses)
        self._own = _Tables(
            constant,
            len(groups),
            ends.ctypes.data,
            columns.ctypes.data,
            addresses.ctypes.data,
            ahead_ends.ctypes.data,
            ahead_columns.ctypes.data,
            ahead_addresses.ctypes.data,
        )

    def __call__(self, codes: SmallCodes) -> Float:
        """The sum for every record; only where there are compiled loops."""
        loops = trusted()
        assert loops is not None
        out = np.empty(codes.shape[1])
        loops.look_up(
            ctypes.byref(self._own), _Integer(len(out)), _Pointer(codes.ctypes.data), _Pointer(out.ctypes.data)
        )
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Rows of products, one to a record.

    Parameters
    ----------
    layout
        What they are made of.
    codes
        Codes of the records: one covariate after the other.
    factors
        Numbers that a record's products are multiplied by, one row for each.
    rows
        The same products from NumPy.
    values
        Columns of further numbers.
    """

    layout: Layout
    codes: SmallCodes
    factors: Float
    rows: Callable[[], Float]
    values: tuple[Float, ...] = ()
    dtype: np.dtype[np.float64] = field(default=np.dtype(np.float64), init=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Float:
        return np.array(self.rows(), dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Of the array."""
        return len(self), self.layout.features

    def steps(self, radius: float, edge: float, safe: float) -> Float | None:
        """Integers inside of a ball, as `into_ball` makes them; None where only that can. They last until the next."""
        loops = trusted()
        return None if loops is None else self.put(loops, radius, edge, safe, adds=False)

    def sums(self, radius: float, edge: float, safe: float) -> IntArray | None:
        """Their sums over all records; None where only NumPy can take them."""
        loops = trusted()
        return None if loops is None else self.put(loops, radius, edge, safe, adds=True)

    def put(self, loops: ctypes.CDLL, radius: float, edge: float, safe: float, *, adds: bool) -> Any:
        """Integers of each record, or their sums."""
        (n, features), factors = self.shape, np.ascontiguousarray(np.atleast_2d(self.factors), dtype=np.float64)
        values = [np.ascontiguousarray(each) for each in self.values]
        addresses = _addresses(values)
        memory = _memory(_ROWS, self.layout.memory + len(factors) + len(values))
        chunk = _Chunk(n, self.codes.ctypes.data, len(factors), factors.ctypes.data, addresses.ctypes.data)
        # Columns a power of two apart would compete for the same places of the cache.
        steps = None if adds else _steps(n + _APART, features)
        sums = np.zeros(features, dtype=np.int64)
        outside = loops.into_ball(
            ctypes.byref(self.layout.own),
            ctypes.byref(chunk),
            ctypes.byref(_Grid(radius, edge / radius, edge, safe)),
            _Pointer(memory.ctypes.data),
            _Pointer(None if steps is None else steps.ctypes.data),
            _Integer(n + _APART),
            _Pointer(sums.ctypes.data),
        )
        return None if outside else sums if steps is None else steps[:n]


def second_moments(steps: Float) -> IntArray | None:
    """Sums of products of columns of whole numbers, each pair once: the diagonal first, then row by row.

    None where BLAS is as fast, there are no compiled loops, or columns do not lie one after the other.
    """
    loops, n = trusted(), len(steps)
    if loops is None or loops.width() < _WIDE or (n > 1 and steps.strides[0] != steps.itemsize):
        return None
    return tiled(loops, steps)


def tiled(loops: ctypes.CDLL, steps: Float) -> IntArray:
    """The same, whether it is faster or not."""
    n, m = steps.shape
    out = np.zeros(m * (m + 1) // 2, dtype=np.int64)
    loops.second_moments(
        _Pointer(steps.ctypes.data),
        _Integer(steps.strides[1] // steps.itemsize),
        _Integer(n),
        _Integer(m),
        _Pointer(out.ctypes.data),
    )
    return out


@lru_cache(maxsize=1)
def trusted() -> ctypes.CDLL | None:
    """The compiled loops, if they are there and agree with NumPy, to the last bit, on products made up for this."""
    loops = library()
    return loops if loops is not None and agrees(loops) else None


def agrees(loops: ctypes.CDLL) -> bool:
    """Whether loops give made-up records the integers that they have by docs/proofs/gate.md, lemma 6."""
    place = np.arange(1, 301)
    codes = np.array([place % 7, place % 11], dtype=np.uint16)
    tables = np.cos(np.arange(7.0) + 0.1), np.sin(np.arange(11.0) * 1.7)
    size, factor = np.array([0.31, 0.77, 0.59, 1.13]), np.cos(place * 0.37)
    one, other = (table[own] for table, own in zip(tables, codes, strict=True))
    lead = one * factor
    rows = np.array([size[0] * factor, lead * size[1], other * factor * size[2], lead * size[3] * other])
    layout = Layout(list(enumerate(tables)), [[], [0], [1], [0, 1]], size, first=True)
    products = Products(layout, codes, factor, lambda: rows.T)
    # Some records are cut; and all are inside, on a grid so fine that the last bit of a product shows.
    for radius, edge in ((1.2, 2.0**20), (4.0, 2.0**52)):
        expected, safe = np.rint(rows * (edge / radius)), edge - 3.0
        squares = np.sum(expected**2, axis=0)
        expected = np.where(squares > edge**2, np.trunc(expected * (safe / np.sqrt(squares))), expected)
        if not np.array_equal(products.put(loops, radius, edge, safe, adds=False), expected.T):
            return False
        sums = products.put(loops, radius, edge, safe, adds=True)
        if radius < 2.0 and not np.array_equal(sums, np.sum(expected, axis=1)):
            return False
    return True
