"""Jobs that take turns, so that a busy moment hits all of them, and the median of what each takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

Job = Callable[[], object]


def in_turns(jobs: Mapping[str, Job], repeats: int, clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """Median of each job's CPU seconds (or by another clock), after a first turn that pays for imports."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name, job in jobs.items():
            start = clock()
            job()
            if turn:
                found[name].append(clock() - start)
    return {name: median(times) for name, times in found.items()}
