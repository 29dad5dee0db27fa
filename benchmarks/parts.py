"""What is measured, part by part; each can be run alone: ``python -m benchmarks.run --only cold-start``."""

# ruff: noqa: E501 (the page's sentences)

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import discreet
from benchmarks import cpu, effects
from benchmarks.data import BOUNDS, COVARIATES, NAMES, arrays, write_parquet
from benchmarks.lines import Line
from benchmarks.memory import of_arrays, of_command
from benchmarks.peers import aipw, linear_dr_learner
from benchmarks.ratios import without_loops
from benchmarks.turns import Job, in_turns
from discreet.data.in_memory import KEPT_NUMBERS
from discreet.privacy import gate
from discreet.privacy.compiled import library, products

_EPSILON, _DELTA = 1.0, 1e-6
_GB = 1e9
# Records around the number from which on encoded records, and what was made of them, are no longer kept.
_AROUND = (0.7, 0.95, 1.05, 1.4)


class Part(NamedTuple):
    """Something that is measured by itself."""

    title: str
    about: str
    """how long it takes on an idle machine with two cores"""
    words: str
    """what the page says about it"""
    measure: Callable[[bool], list[Line]]
    """its figures, of few records if that is asked for"""


def estimator(kind: str, p: int = COVARIATES, **more: Any) -> Any:
    """ATE or CATE of arrays with the first covariates of the study."""
    columns = [BOUNDS.columns[0]] * p
    bounds = discreet.Bounds(outcome=BOUNDS.outcome, covariates=columns, propensity=BOUNDS.propensity)
    return getattr(discreet, kind)(epsilon=_EPSILON, delta=_DELTA, bounds=bounds, **more)


def terms_of(fitted: Any) -> int:
    """Terms that models adjust for."""
    release = fitted.release_
    return int(release.adjustment["terms"] if hasattr(release, "adjustment") else release.terms.m)


@contextmanager
def noise_timed() -> Iterator[list[float]]:
    """CPU seconds of every draw of noise inside of the block."""
    kept, found = gate._drawn, []

    def drawn(*given: Any) -> Any:
        start = time.process_time()
        result = kept(*given)
        found.append(time.process_time() - start)
        return result

    gate._drawn = drawn  # type: ignore[assignment]
    try:
        yield found
    finally:
        gate._drawn = kept


def _fits(rows: int, kinds: tuple[str, ...]) -> tuple[dict[str, Job], dict[str, str], tuple[Any, Any, Any]]:
    """A fit of each kind, and how many terms it has and how long its noise takes, in words."""
    Y, T, X = arrays(rows)
    jobs: dict[str, Job] = {}
    words = {}
    for kind in kinds:
        own = estimator(kind)
        jobs[kind] = lambda own=own: own.fit(Y, T, X=X)  # type: ignore[misc]
        own.fit(Y, T, X=X)
        with noise_timed() as took:
            terms = terms_of(own.fit(Y, T, X=X))
        words[kind] = f"{terms} terms; noise {sum(took):.2f} s"
    return jobs, words, (Y, T, X)


def average(few: bool) -> list[Line]:
    """ATE beside peers."""
    rows, repeats = (3_000, 1) if few else (100_000, 5)
    jobs, words, records = _fits(rows, ("ATE",))
    terms = int(words["ATE"].split()[0])
    jobs |= {
        "LinearDRLearner": lambda: linear_dr_learner(*records, modifies=False),
        "AIPW": lambda: aipw(*records, terms),
    }
    took = in_turns(jobs, repeats)
    return [
        Line("`ATE` over LinearDRLearner", took["ATE"] / took["LinearDRLearner"], "×", 1.0, terms=words["ATE"]),
        Line(
            "`ATE` over scikit-learn's AIPW with as many terms",
            took["ATE"] / took["AIPW"],
            "×",
            0.15,
            terms=words["ATE"],
        ),
        *(Line(f"{name}, CPU seconds", value, "s") for name, value in took.items()),
    ]


def function(few: bool) -> list[Line]:
    """CATE beside the linear learner."""
    rows, repeats = (3_000, 1) if few else (100_000, 5)
    jobs, words, records = _fits(rows, ("CATE",))
    took = in_turns(jobs | {"LinearDRLearner": lambda: linear_dr_learner(*records, modifies=True)}, repeats)
    ratio = took["CATE"] / took["LinearDRLearner"]
    return [
        Line("`CATE` over LinearDRLearner with X", ratio, "×", 2.0, terms=words["CATE"]),
        *(Line(f"{name}, CPU seconds", value, "s") for name, value in took.items()),
    ]


def small(few: bool) -> list[Line]:
    """Fits of ten thousand records."""
    jobs, words, _ = _fits(2_000 if few else 10_000, ("ATE", "CATE"))
    took = in_turns(jobs, 1 if few else 5)
    most = {"ATE": 0.05, "CATE": 0.15}
    return [Line(f"`{kind}`, CPU seconds", took[kind], "s", most[kind], terms=words[kind]) for kind in most]


def compiled(few: bool) -> list[Line]:
    """Fits with compiled loops and without; none where they cannot be built."""
    before = os.environ.get("DISCREET_COMPILED")
    os.environ["DISCREET_COMPILED"] = "1"
    for each in (library.library, products.trusted):
        each.cache_clear()
    try:
        if products.trusted() is None:
            return []
        lines = []
        for rows in (2_000,) if few else (10_000, 100_000, 300_000, 1_000_000):
            jobs, words, _ = _fits(rows, ("ATE", "CATE"))
            plain = {f"{name}, NumPy": without_loops(job) for name, job in jobs.items()}
            took = in_turns(jobs | plain, 1 if few or rows > 500_000 else 3)
            lines += [
                Line(
                    f"`{kind}`, {rows:,} records: NumPy over compiled",
                    took[f"{kind}, NumPy"] / took[kind],
                    "×",
                    None,
                    1.7,
                    words[kind],
                )
                for kind in words
            ]
        return lines
    finally:
        os.environ.pop("DISCREET_COMPILED")
        if before is not None:
            os.environ["DISCREET_COMPILED"] = before
        for each in (library.library, products.trusted):
            each.cache_clear()


def kept_limit(few: bool) -> list[Line]:
    """CPU seconds per million records across the number of records from which on less is kept from pass to pass."""
    limit = KEPT_NUMBERS / (COVARIATES + 3)
    sizes = [int(limit * part / (200 if few else 1)) for part in _AROUND]
    lines = []
    for kind in ("ATE", "CATE"):
        found = []
        for rows in sizes:
            Y, T, X = arrays(rows)
            own = estimator(kind)
            took = []
            for _ in range(2):
                start = time.process_time()
                own.fit(Y, T, X=X)
                took.append(time.process_time() - start)
            found.append(min(took) / rows * 1e6)
            what = f"`{kind}`, {rows:,} records, CPU seconds per million"
            lines.append(Line(what, found[-1], "s", terms=f"{terms_of(own)} terms"))
        lines.append(
            Line(f"`{kind}`: per record, just above the limit over just below", found[2] / found[1], "×", 1.15)
        )
    return lines


def cold_start(few: bool) -> list[Line]:
    """Commands that have little to do."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = cpu.startup_tasks(Path(folder))
        took = cpu.medians(tasks, 1 if few else 5)
    most = dict(zip(tasks, (0.05, 0.3, 0.8, 1.3, None), strict=True))
    return [Line(f"{task.title}, CPU seconds", took[task], "s", most[task]) for task in tasks]


def processes(few: bool) -> list[Line]:
    """Seconds on the clock of a Parquet file with one process and with two."""
    rows, repeats = (50_000, 1) if few else (6_000_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        study, bounds = Path(folder) / "study.parquet", Path(folder) / "bounds.toml"
        write_parquet(study, rows)
        BOUNDS.save(bounds)
        roles = ("--outcome", "y", "--treatment", "t", "--epsilon", "1", "--delta", "1e-6", "--bounds", str(bounds))
        command = ("-m", "discreet", "ate", str(study), *roles, "--workers")
        jobs: dict[str, Job] = {
            words: lambda count=count: cpu.spent((*command, str(count)), cpu.HERE)  # type: ignore[misc]
            for words, count in (("one", 1), ("two", 2))
        }
        took = in_turns(jobs, repeats, time.perf_counter)
    return [
        Line(f"{rows:,} rows: one process over two, on the clock", took["one"] / took["two"], "×", None, 1.8),
        *(Line(f"{name}, seconds on the clock", value, "s") for name, value in took.items()),
    ]


def papers(few: bool) -> list[Line]:
    """Published methods beside many covariates."""
    widths = (10,) if few else (300, 1_000)
    lines = []
    for task, p in cpu.paper_tasks(widths):
        took = cpu.medians([task], 1)[task]
        lines.append(Line(f"{task.title}, CPU seconds", took, "s", 10.0 if p == 300 else None))
    return lines


def queries(few: bool) -> list[Line]:
    """Queries of an effect function, and its file."""
    rows, count, many, repeats = (3_000, 10_000, 3_000, 1) if few else (100_000, 1_000_000, 30_000, 5)
    took, size, words = effects.queries(rows, count, repeats)
    return [
        Line(f"{count:,} effects, seconds", took["effects"], "s", 2.0, terms=words),
        Line(f"{count:,} intervals, seconds", took["intervals"], "s", terms=words),
        Line("size of the file", size / 1000, "kB", 200.0, terms=words),
        Line("reading the file, seconds", took["reading"], "s"),
        *(
            Line(f"size of the file, {p} covariates", bytes_ / 1000, "kB", terms=f"{terms} terms")
            for p, terms, bytes_ in effects.sizes(many)
        ),
    ]


def memory(few: bool) -> list[Line]:
    """Peak resident memory of a process of its own."""
    rows = 200_000 if few else 10_000_000
    held = of_arrays(rows)
    with tempfile.TemporaryDirectory() as folder:
        table, bounds, release = (Path(folder) / name for name in ("study.parquet", "bounds.toml", "release.json"))
        write_parquet(table, rows)
        BOUNDS.save(bounds)
        options = ["--outcome", "y", "--treatment", "t", "--covariates", ",".join(NAMES), "--bounds", str(bounds)]
        options += ["--epsilon", "1", "--delta", "1e-6", "--out", str(release)]
        peak, seconds = of_command([sys.executable, "-m", "discreet", "ate", str(table), *options])
        size = table.stat().st_size
    sizes = (f"input {held['input'] / _GB:.2f} GB", f"file {size / _GB:.2f} GB")
    return [
        Line(
            f"arrays, {rows:,} records: `ATE.fit` beyond the input, libraries included",
            held["beyond"] / _GB,
            "GB",
            terms=sizes[0],
        ),
        Line(f"arrays, {rows:,} records: `ATE.fit`, seconds", held["seconds"], "s"),
        Line(f"Parquet, {rows:,} records: `discreet ate` in all", peak / _GB, "GB", 1.0, terms=sizes[1]),
        Line(f"Parquet, {rows:,} records: `discreet ate`, seconds", seconds, "s"),
    ]


_PEER = "EconML's LinearDRLearner with linear and logistic nuisances and its default cross-fitting"
PARTS: dict[str, Part] = {
    "average": Part("ATE, n = 100,000, p = 10", "2 min", f"Median CPU seconds of 5, in turns. The peers are {_PEER}, for one average effect with an interval, and an AIPW estimate by scikit-learn (ridge and logistic regression, two folds) on as many polynomials as `ATE` has terms; neither is private. *Noise* is the time of drawing it, which no faster loop shortens: a number for every pair of terms.", average),
    "function": Part("CATE, n = 100,000, p = 10", "2 min", f"The same for an effect function. The peer is {_PEER}, for an effect that is linear in all covariates.", function),
    "small": Part("n = 10,000, p = 10", "10 s", "Median CPU seconds of 5.", small),
    "compiled": Part("Compiled loops", "3 min", "Whole fits with `DISCREET_COMPILED=1` and without, in turns in one process: the same integers either way. Noise and public models, which take as long whatever the number of records, are in both: short tables gain nothing. There is no extra for compiled loops as long as they do not reach 1.7 on all of these; who has long tables asks for them in the environment.", compiled),
    "kept": Part("Where less is kept from pass to pass", "2 min", "Up to a number of records (of ten covariates, 615,384) encoded records are kept in memory, beyond it their codes. The lesser of two times each.", kept_limit),
    "cold-start": Part("Cold start", "30 s", "Median CPU seconds of 5 processes.", cold_start),
    "processes": Part("Processes", "6 min", "`discreet ate` on a Parquet file.", processes),
    "papers": Part("Papers, n = 2,000", "10 min", "CPU seconds of a process, imports included, once.", papers),
    "queries": Part("Queries of an effect function", "2 min", "Seconds on the clock, medians of 5, of a release that was read from its file. Further covariates are noise.", queries),
    "memory": Part("Memory, n = 10,000,000, p = 10", "6 min", "Peak resident memory of a process of its own.", memory),
}  # fmt: skip
