"""CPU seconds of processes of their own: starting commands, papers with many covariates, and reading by processes.

``python -m benchmarks.cpu [startup] [papers] [workers]`` prints tables; ``--source src-of-another-version`` adds its
column. Each figure is the least of several runs: user and system time of the process and of those that it started.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.data import BOUNDS, NAMES, arrays, write_parquet

_ROOT = Path(__file__).parent.parent
HERE = _ROOT / "src"
"""the library as it is"""
_CSV_ROWS, _PARQUET_ROWS = 2_000, 3_000_000
_PAPER_ROWS = 2_000


class Task(NamedTuple):
    """A process, and what people call it."""

    title: str
    arguments: tuple[str, ...]


def spent(arguments: Sequence[str], source: Path) -> tuple[float, float]:
    """CPU seconds and seconds of Python with some arguments and one version of the library."""
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{_ROOT}"}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with code {process.returncode}.")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start


def table(title: str, tasks: Sequence[Task], sources: Sequence[Path], repeats: int) -> str:
    """The least CPU seconds of each task, for each version in turns."""
    least = {(task, source): float("inf") for task in tasks for source in sources}
    for task in tasks:
        for _ in range(repeats):
            for source in sources:
                least[task, source] = min(least[task, source], spent(task.arguments, source)[0])
    lines = [f"## {title}", "", "CPU seconds, the least of " + (f"{repeats} runs." if repeats > 1 else "one run."), ""]
    lines += ["| " + " | ".join(["", *("here" if each == HERE else str(each) for each in sources)]) + " |"]
    lines += ["| --- |" + " --- |" * len(sources)]
    for task in tasks:
        found = (f"{least[task, source]:.2f}" for source in sources)
        lines += [f"| {task.title} | {' | '.join(found)} |"]
    return "\n".join(lines)


def medians(tasks: Sequence[Task], repeats: int) -> dict[Task, float]:
    """The median of each task's CPU seconds, in turns, after a first that finds nothing in the cache."""
    found: dict[Task, list[float]] = {task: [] for task in tasks}
    for turn in range(repeats + (repeats > 1)):
        for task in tasks:
            took = spent(task.arguments, HERE)[0]
            if turn or repeats == 1:
                found[task].append(took)
    return {task: median(times) for task, times in found.items()}


def startup(folder: Path, sources: Sequence[Path], repeats: int) -> str:
    """How long commands take that have little to do."""
    return table("Starting", startup_tasks(folder), sources, repeats)


def startup_tasks(folder: Path) -> list[Task]:
    """Commands that have little to do, with their files in a folder."""
    study, bounds = folder / "study.csv", folder / "bounds.toml"
    _write_csv(study)
    BOUNDS.save(bounds)
    public = ("--bounds", str(bounds), "--epsilon", "1", "--delta", "1e-6")
    columns = ("--outcome", "y", "--treatment", "t")
    return [
        Task("`import discreet`", ("-c", "import discreet")),
        Task("`discreet --help`", ("-m", "discreet", "--help")),
        Task("`discreet plan ate`", ("-m", "discreet", "plan", "ate", "--n", "2000", *public)),
        Task(f"`discreet ate`, {_CSV_ROWS:,} rows", ("-m", "discreet", "ate", str(study), *columns, *public)),
        Task(
            f"`discreet uplift`, {_CSV_ROWS:,} rows",
            ("-m", "discreet", "uplift", str(study), *columns, *public, "--by", "x0=4"),
        ),
    ]


_PAPER = """
import warnings, numpy as np, discreet as dc
from discreet import papers
warnings.simplefilter("ignore")
n, p = {n}, {p}
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (n, p))
T = (rng.random(n) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(float)
Y = np.clip(X[:, 0] + T * (1.0 + X[:, 1]) + rng.normal(0.0, 0.5, n), -4.0, 5.0)
bounds = dc.Bounds(outcome=(-4, 5), covariates=[(-1, 1)] * p, propensity=(0.1, 0.9))
papers.{call}
"""
_GIVEN = "epsilon=1.0, delta=1e-6, bounds=bounds, random_state=0"
_CALLS = {
    "PrivATE, kernel": f'PrivATE(nuisance="kernel", {_GIVEN}).fit(Y, T, X=X)',
    "DRLearner, additive": f'DRLearner(base="additive", {_GIVEN}).fit(Y, T, X=X)',
    "DPCATE, linear": f'DPCATE(stage2="linear", {_GIVEN}).fit(Y, T, X=X, queries=X[:5])',
}


def papers(folder: Path, sources: Sequence[Path], repeats: int) -> str:
    """How long published methods take beside many covariates."""
    del folder
    return table(f"Papers, n = {_PAPER_ROWS:,}", [task for task, _ in paper_tasks((10, 300, 1_000))], sources, repeats)


def paper_tasks(widths: Sequence[int]) -> list[tuple[Task, int]]:
    """Each method with so many covariates."""
    return [
        (Task(f"{name}, p = {p:,}", ("-c", _PAPER.format(n=_PAPER_ROWS, p=p, call=call))), p)
        for name, call in _CALLS.items()
        for p in widths
    ]


def workers(folder: Path, sources: Sequence[Path], repeats: int) -> str:
    """Seconds on the clock, which is what processes are for, with one process and with two."""
    study, bounds = folder / "study.parquet", folder / "bounds.toml"
    write_parquet(study, _PARQUET_ROWS)
    BOUNDS.save(bounds)
    command = ["-m", "discreet", "ate", str(study), "--outcome", "y", "--treatment", "t", "--bounds", str(bounds)]
    command += ["--epsilon", "1", "--delta", "1e-6", "--workers"]
    lines = [f"## Processes, {_PARQUET_ROWS:,} rows of Parquet", ""]
    lines += [
        f"Seconds on the clock and CPU seconds, the least of {repeats}; {os.cpu_count()} cores.",
        "",
    ]
    lines += ["| version | one process | two | ratio | CPU, one | CPU, two |", "| --- | --- | --- | --- | --- | --- |"]
    for source in sources:
        runs = [[spent((*command, str(count)), source) for count in (1, 2)] for _ in range(repeats)]
        cpu, clock = ([min(run[k][j] for run in runs) for k in (0, 1)] for j in (0, 1))
        name = "here" if source == HERE else str(source)
        figures = (f"{clock[0]:.1f}", f"{clock[1]:.1f}", f"{clock[0] / clock[1]:.2f}", f"{cpu[0]:.1f}", f"{cpu[1]:.1f}")
        lines.append(f"| {name} | {' | '.join(figures)} |")
    return "\n".join(lines)


def _write_csv(path: Path) -> None:
    Y, T, X = arrays(_CSV_ROWS)
    header = ",".join(("y", "t", *NAMES))
    np.savetxt(path, np.column_stack([Y, T, X]), delimiter=",", header=header, comments="")


SECTIONS: dict[str, tuple[Callable[[Path, Sequence[Path], int], str], int]] = {
    "startup": (startup, 5),
    "papers": (papers, 1),
    "workers": (workers, 2),
}
"""What can be measured, and how often it is."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description="CPU seconds of processes.")
    parser.add_argument("sections", nargs="*", help=f"{', '.join(SECTIONS)}; all by default")
    parser.add_argument("--source", type=Path, action="append", default=[], help="src folder of another version")
    parser.add_argument("--repeats", type=int, help="runs of each task")
    options = parser.parse_args(arguments)
    for name in options.sections or SECTIONS:
        if name not in SECTIONS:
            raise SystemExit(f"There is no section {name!r}: there are {', '.join(SECTIONS)}.")
        section, repeats = SECTIONS[name]
        with tempfile.TemporaryDirectory() as folder:
            print(section(Path(folder), [*options.source, HERE], options.repeats or repeats), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
