"""How often somebody may ask: a bucket that fills steadily, for each person or address."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

# Buckets that are remembered; a forgotten one is full again, and forgetting takes this many others.
_MOST = 10_000


class Buckets:
    """Buckets of one size by key.

    Parameters
    ----------
    rate : float
        How much a second brings.
    size : float
        What a bucket holds at most.
    """

    def __init__(self, rate: float, size: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._size, self._clock = rate, size, clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str) -> bool:
        """Whether there was something left to take."""
        with self._lock:
            now = self._clock()
            level, seen = self._levels.pop(key, (self._size, now))
            level = min(self._size, level + self._rate * (now - seen))
            allowed = level >= 1.0
            self._levels[key] = (level - 1.0 if allowed else level, now)
            if len(self._levels) > _MOST:
                self._levels.popitem(last=False)
            return allowed
