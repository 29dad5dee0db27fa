"""Numbers behind `CATE`: ``python -m evidence.effects`` writes docs/evidence/cate.md and cate.csv.

An interrupted run continues where it stopped; code that has changed since is run again. Designs are those of
`evidence.effects.designs`, seeds are ones on which nothing was developed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.progress import Progress

from discreet.exceptions import InvalidInput
from evidence.cache import CACHE, ROOT, Results, fingerprint
from evidence.effects import page as effect_page
from evidence.effects.runs import IHDP, Cell, cells, run
from evidence.reproduce import cache

REPLICATIONS = 40
# Cells that need fewer replications wait for so many of the others.
_LATER = 6


def collect(
    replications: int, seconds: float, processes: int, only: str | None = None
) -> dict[Cell, list[dict[str, float]]]:
    """Rows of every cell; replication by replication, so that all have some if time is up, the chief ones more."""
    folder = CACHE / f"cate-{_code()}"
    parts = {cell: part for cell, part in cells() if only is None or only in cell.name}
    wanted = {cell: max(1, replications // part) for cell, part in parts.items()}
    if not _has_ihdp():
        wanted = {cell: count for cell, count in wanted.items() if not cell.design.startswith(IHDP)}
    stored = {cell: Results(folder / f"{cell.name}.jsonl") for cell in wanted}
    jobs = [(c, r) for c, count in wanted.items() for r in range(count) if r not in stored[c].rows]
    jobs.sort(key=lambda job: (1 if parts[job[0]] == 1 else _LATER) * job[1])
    until, queue = time.monotonic() + seconds, deque(jobs)
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with Progress() as progress, ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        task = progress.add_task("replications", total=len(jobs))
        waiting: dict[Any, Any] = {}
        while queue or waiting:
            while queue and len(waiting) < 2 * processes and time.monotonic() < until:
                following = queue.popleft()
                waiting[pool.submit(run, *following)] = following
            if not waiting:
                break
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                cell, replication = waiting.pop(future)
                stored[cell].add({"replication": replication} | future.result())
                progress.advance(task)
    return {cell: [results.rows[r] for r in sorted(results.rows)] for cell, results in stored.items() if results.rows}


def _code() -> str:
    """What numbers depend on: the package without what only people see, the designs and the runs."""
    own = [ROOT / "evidence" / "effects" / name for name in ("designs.py", "runs.py")]
    others = ("discreet.audit", "discreet.serve", "discreet.estimators.uplift", "discreet.releases.segments")
    return fingerprint("effects", [*own, *cache.package_files((*cache.PRESENTATION, *others))])


def _has_ihdp() -> bool:
    from discreet.datasets import ihdp

    try:
        ihdp(1)
    except InvalidInput:
        return False
    return True


def main() -> None:
    """Run, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--replications", type=int, default=REPLICATIONS, help="of a cell (fewer where the page says so)"
    )
    parser.add_argument("--seconds", type=float, default=5_400.0, help="start nothing new after this")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", help="cells whose name has this in it; prints their errors and writes no page")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "evidence")
    asked = parser.parse_args()
    found = collect(asked.replications, asked.seconds, asked.processes, asked.only)
    if asked.only is not None:
        print("\n".join(effect_page.lines(found)))
        return
    command = f"python -m evidence.effects --replications {asked.replications}"
    (asked.out / "cate.md").write_text(effect_page.page(found, command))
    effect_page.write_csv(asked.out / "cate.csv", found)
    print(f"Written: cate.md and cate.csv ({sum(map(len, found.values()))} fits).")


if __name__ == "__main__":
    main()
