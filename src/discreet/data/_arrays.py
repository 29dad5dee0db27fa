"""Names of array types, and memory that passes over records use again."""

from __future__ import annotations

from threading import local
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Float: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Values: TypeAlias = Any
"""A column as it was handed over: a NumPy array, a PyArrow array or a PyArrow chunked array."""
Level: TypeAlias = str | int | float | bool
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
