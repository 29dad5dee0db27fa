"""How much somebody may ask, and at once: buckets that fill steadily, turns by person; what costs more takes more."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

# Buckets that are remembered; a forgotten one is full again, and forgetting takes this many others.
_MOST = 10_000
# Choice: what a request costs, where a lookup costs one. By hand; the first that fits counts.
_COSTS: tuple[tuple[re.Pattern[str], float], ...] = tuple(
    (re.compile(path), cost)
    for path, cost in (
        (r"(/api/v1)?/curator/log(/verification)?", 100.0),
        (r"/curator(/.*)?", 20.0),
        (r"/api/v1/datasets/[^/]+/plan", 4.0),
        (r"/datasets/[^/]+/(plan|request)", 40.0),
        (r"(/api/v1)?/datasets/[^/]+/dummy(\.csv)?", 10.0),
        (r"(/api/v1)?/releases/[^/]+/(picture|release\.png)", 20.0),
        (r"/api/v1/combinations", 20.0),
        (r"/releases/[^/]+/(explore|upload)", 40.0),
    )
)
# Unit: bytes of a body that cost as much as a lookup.
_BYTES = 4_096


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

    def take(self, key: str, cost: float = 1.0) -> bool:
        """Whether there was enough left to take; no request costs more than a full bucket holds."""
        cost = min(cost, self._size)
        with self._lock:
            now = self._clock()
            level, seen = self._levels.pop(key, (self._size, now))
            level = min(self._size, level + self._rate * (now - seen))
            allowed = level >= max(cost, 1.0)
            self._levels[key] = (level - cost if allowed else level, now)
            if len(self._levels) > _MOST:
                self._levels.popitem(last=False)
            return allowed


def cost_of(path: str, length: str) -> float:
    """What a request costs, by its address and the stated length of its body."""
    stated = int(length) if length.isdecimal() and len(length) < 12 else 0
    return next((cost for pattern, cost in _COSTS if pattern.fullmatch(path)), 1.0) + stated / _BYTES


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
