"""What a charge takes, and a whole request without its fit, when nobody else asks."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from statistics import median

from discreet import Ledger
from discreet.ledger import Cost


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of a charge, and of a whole request without its fit; medians."""

    charge: float
    request: float


def durations(url: str, requests: int) -> Times:
    """What a request takes when nobody else asks."""
    charges, wholes = [], []
    with closing(Ledger(url)) as ledger:
        ledger.open("timed", epsilon=float(requests))
        for _ in range(requests):
            start = time.perf_counter()
            number = ledger.reserve("timed", Cost(epsilon=1.0))
            before = time.perf_counter()
            ledger.charge(number)
            charges.append(time.perf_counter() - before)
            ledger.settle(number)
            wholes.append(time.perf_counter() - start)
    return Times(1e3 * median(charges), 1e3 * median(wholes))
