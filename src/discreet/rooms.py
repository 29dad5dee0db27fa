"""Memory that passes over records use again: fresh memory takes longer to get than most numbers to compute."""

from __future__ import annotations

from threading import local

import numpy as np

from discreet.columns import Float

# Larger arrays (16 MB) are made anew, lest their memory be held for good.
_MOST_NUMBERS = 2**21


class Room(local):
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
