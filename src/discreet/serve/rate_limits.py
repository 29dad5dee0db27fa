"""How often somebody may ask, and how much at once: what one person asks for must not keep others waiting."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

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


class Turns:
    """So many requests of one key are worked on at once; its others wait, and those of other keys do not.

    Parameters
    ----------
    most : int
        How many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[str, tuple[asyncio.Semaphore, list[None]]] = {}

    @asynccontextmanager
    async def one(self, key: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        turn, there = self._of.setdefault(key, (asyncio.Semaphore(self._most), []))
        there.append(None)
        try:
            async with turn:
                yield
        finally:
            there.pop()
            if not there:
                # Nobody waits: nothing is remembered of people who are not here.
                self._of.pop(key, None)
