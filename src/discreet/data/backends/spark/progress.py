"""Spark jobs that tell how far they are, and that end when whoever waits for them does."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from pyspark import inheritable_thread_target

from discreet.data.records import RowProgress

# Seconds between two reports of what is done.
_OFTEN = 0.2


def run_with_progress(parts: Any, context: Any, done: Any, progress: RowProgress) -> tuple[Any, int]:
    """The rows of a frame as an Arrow table, and how many rows were reported to ``progress``.

    Spark's workers add to ``done`` what each finished partition had. The job has a thread of its own, so that this one
    may report, and be interrupted: the job is then cancelled.
    """
    group = f"discreet {uuid.uuid4()}"

    def job() -> Any:
        context.setJobGroup(group, "one pass over a table", interruptOnCancel=True)
        return parts.toArrow()

    reported = 0
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(inheritable_thread_target(parts.sparkSession)(job))
        try:
            while not wait([running], timeout=_OFTEN).done:
                reported += _report(done.value - reported, progress)
        except BaseException:
            context.cancelJobGroup(group)
            raise
        return running.result(), reported


def _report(more: int, progress: RowProgress) -> int:
    if more > 0:
        progress(more)
    return max(more, 0)
