"""Measurements on disk, and the runs that are missing: an interrupted run continues, and changed code starts again."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import Progress

from evidence.cache import CACHE, ROOT, SOURCE, Results, fingerprint
from evidence.reproduce.cache import PRESENTATION, package_files
from evidence.trust.runs import NOT_PRIVATE, RUNS

Row = dict[str, Any]
# No part of averages and functions.
_NO_PART = (
    *PRESENTATION,
    "discreet.audit",
    "discreet.estimators.planning.assumed",
    "discreet.estimators.planning.expected",
    "discreet.estimators.planning.setting",
    "discreet.estimators.arms.segments",
    "discreet.estimators.natural_experiments",
    "discreet.estimators.policies",
    "discreet.estimators.survival",
    "discreet.estimators.clustering",
    "discreet.estimators.uplift",
    "discreet.ledger",
    "discreet.papers",
    "discreet.postprocessing.segment_means",
    "discreet.postprocessing.segment_smoothing",
    "discreet.releases.arms.segments",
    "discreet.releases.arms.segments_page",
    "discreet.releases.segments",
    "discreet.serve",
)


class Job(NamedTuple):
    """One measurement: its kind, where it is taken, and the number of the study."""

    kind: str
    place: tuple[str | int | float, ...]
    number: int


class Store:
    """Rows of measurements by kind, place and number."""

    def __init__(self, folder: Path = CACHE) -> None:
        self.folder = folder
        self._files: dict[tuple[str, tuple[str | int | float, ...]], Results] = {}
        self._codes: dict[str, str] = {}

    def rows(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Row]]:
        """Those of the jobs that were run under this code, with what they found."""
        for job in jobs:
            row = self._results(job).rows.get(job.number)
            if row is not None:
                yield job, row

    def has(self, job: Job) -> bool:
        """Whether a job was run."""
        return job.number in self._results(job).rows

    def add(self, job: Job, row: Row) -> None:
        """Keep what a job found."""
        self._results(job).add({"replication": job.number} | row)

    def _results(self, job: Job) -> Results:
        key = (job.kind, job.place)
        if key not in self._files:
            if job.kind not in self._codes:
                self._codes[job.kind] = code(job.kind)
            words = "-".join([job.kind, *map(str, job.place)]).replace(" ", "_").replace("%", "pc")
            self._files[key] = Results(self.folder / f"trust-{self._codes[job.kind]}" / f"{words}.jsonl")
        return self._files[key]


def code(kind: str) -> str:
    """Fingerprint of what a kind of measurement depends on."""
    own = [ROOT / "evidence" / "trust" / name for name in ("acic.py", "designs.py", "rivals.py")]
    own += [ROOT / "evidence" / "average" / "nonprivate.py", *(ROOT / "evidence" / "population").glob("*.py")]
    if kind in NOT_PRIVATE:
        facts = [SOURCE / "data" / name for name in ("bounds.py", "columns.py")]
        return fingerprint("trust", [*own, *facts, *(SOURCE / "datasets").glob("*.py")])
    own += [ROOT / "evidence" / "trust" / name for name in ("averages.py", "fits.py", "runs.py")]
    own += [ROOT / "evidence" / "trust" / "balance.py"] if kind == "balance" else []
    names = ("plan.py", "expected.py", "assumed.py", "setting.py") if kind == "plan" else ()
    planning = [SOURCE / "estimators" / "planning" / name for name in names]
    return fingerprint("trust", [*own, *planning, *package_files(_NO_PART)])


def run(job: Job) -> Row:
    """Take one measurement."""
    return RUNS[job.kind](*job.place, job.number)


def fill(store: Store, jobs: Sequence[Job], *, seconds: float, processes: int) -> None:
    """Run what the store lacks, in this order; nothing new is begun when the time is up."""
    missing = deque(job for job in jobs if not store.has(job))
    until = time.monotonic() + seconds
    with Progress() as progress:
        task = progress.add_task("measurements", total=len(jobs), completed=len(jobs) - len(missing))
        if processes == 1:
            while missing and time.monotonic() < until:
                job = missing.popleft()
                store.add(job, run(job))
                progress.advance(task)
            return
        # The processes read these when they start: one thread each.
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            waiting: dict[Any, Job] = {}
            while missing or waiting:
                while missing and len(waiting) < processes and time.monotonic() < until:
                    job = missing.popleft()
                    waiting[pool.submit(run, job)] = job
                if not waiting:
                    break
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    store.add(waiting.pop(future), future.result())
                    progress.advance(task)
