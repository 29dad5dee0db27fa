"""Runs replications until all are there or time is up, in as many processes as wanted, and never twice."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from discreet.datasets.observational import data_file
from evidence.reproduce.cache import Results as Stored
from evidence.reproduce.cache import code, settings
from evidence.reproduce.targets import FLAGSHIP_CELL, Results, Row, Target

# Seconds after which no new replication is started: quick runs stay below two minutes, full ones below forty.
QUICK_SECONDS, FULL_SECONDS = 90.0, 2_250.0

Progress: TypeAlias = Callable[[str, int, int], None]
Job: TypeAlias = tuple[str, int]


def collect(
    target: Target, *, paper: str, full: bool, processes: int, cache: Path, progress: Progress | None = None
) -> Results:
    """Raw results of every cell: as many replications as all cells have, and at least one.

    What an earlier run has left in ``cache`` is used if code, libraries and data files are still the same.
    """
    cells, wanted = target.cells(full), target.replications(full)
    made_with = settings(data_file(name) for name in target.files)
    # Reading all that a run imports takes a second, and there are two answers for dozens of cells.
    made_by = {own: code(made_with, target.run.__module__, flagship=own) for own in {_own(cell) for cell in cells}}
    stored = {}
    for cell in cells:
        folder = cache / f"{paper}-{target.experiment}-{made_by[_own(cell)]}"
        stored[cell] = Stored(folder / f"{cell.replace(' ', '-')}.jsonl")
    # All cells of a replication before the next: if time is up, every cell has been run equally often.
    jobs = [(cell, r) for r in range(wanted) for cell in cells if r not in stored[cell].rows]
    total = wanted * len(cells)
    done = total - len(jobs)
    until = time.monotonic() + (FULL_SECONDS if full else QUICK_SECONDS)
    for (cell, replication), row in _results(target, jobs, processes, until):
        stored[cell].add({"replication": replication} | row)
        done += 1
        if progress is not None:
            progress(f"{target.name}, {cell}", done, total)
    finished = min(_first_gap(results.rows) for results in stored.values())
    return {cell: [results.rows[r] for r in range(min(finished, wanted))] for cell, results in stored.items()}


def _results(target: Target, jobs: list[Job], processes: int, until: float) -> Iterator[tuple[Job, Row]]:
    """Results as they come; the first replication of every cell is run in any case."""
    if processes == 1:
        from threadpoolctl import threadpool_limits

        for job in jobs:
            if job[1] and time.monotonic() > until:
                return
            # One thread here as in the processes below: on a busy machine more of them wait for each other.
            with threadpool_limits(1):
                row = target.run(*job)
            yield job, row
        return
    # The processes read these when they start: one thread each, because there are as many of them as are wanted.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: dict[Future[Row], Job] = {}
        queue = deque(jobs)
        while queue or waiting:
            while queue and len(waiting) < 2 * processes and (not queue[0][1] or time.monotonic() <= until):
                following = queue.popleft()
                waiting[pool.submit(target.run, *following)] = following
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()


def _own(cell: str) -> bool:
    """Whether a cell runs an estimator of this project's own."""
    return cell.replace("/", " ").split()[-1] == FLAGSHIP_CELL


def _first_gap(rows: dict[int, Row]) -> int:
    gap = 0
    while gap in rows:
        gap += 1
    return gap
