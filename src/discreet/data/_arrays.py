"""Names of array types, and how Arrow's arrays become NumPy's and back without importing pandas."""

from __future__ import annotations

from collections.abc import Iterable
from threading import local
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.lib import StringBuilder

Float: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Values: TypeAlias = Any
"""A column as it was handed over: a NumPy array, a PyArrow array or a PyArrow chunked array."""
Level: TypeAlias = str | int | float | bool


def as_numpy(column: Any, missing: float = 0) -> Any:
    """An Arrow column's memory as NumPy sees it, or a copy with a number for what is missing; not to be written to.

    To ask the column itself, or `pyarrow.array` or `pyarrow.scalar` for anything, is to import pandas.
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_boolean(whole.type):
        return as_numpy(whole.cast(pa.uint8()), missing).view(np.bool_)
    if not whole.null_count:
        return np.from_dlpack(whole)
    bare = pa.Array.from_buffers(whole.type, len(whole), [None, whole.buffers()[1]], offset=whole.offset)
    found = np.array(np.from_dlpack(bare))
    found[as_numpy(pc.is_null(whole))] = missing
    return found


def text_array(values: Iterable[Level]) -> Any:
    """Text as an Arrow array."""
    builder = StringBuilder()
    builder.append_values(list(values))
    return builder.finish().cast(pa.large_string())


def mask_array(mask: Any) -> Any:
    """Booleans as an Arrow array."""
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, bits])


# Larger arrays (16 MB) are made anew, lest their memory be held for good.
_MOST_NUMBERS = 2**21


class ScratchBuffer(local):
    """One array, of changing shape; each thread has its own."""

    def __init__(self) -> None:
        self._memory: Float = np.empty(0)

    def __call__(self, rows: int, columns: int) -> Float:
        """An array with any numbers in it, columns one after the other; it lasts until the next call."""
        size = rows * columns
        if size > _MOST_NUMBERS:
            return np.empty((columns, rows)).T
        if size > self._memory.size:
            self._memory = np.empty(size)
        return self._memory[:size].reshape(columns, rows).T
