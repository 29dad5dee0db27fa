"""The measurements, piece by piece: each is kept, so that a run can be interrupted and continued."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.scale.data import CACHE, CUT, FEATURES, MILLION, OUTCOME, ROOT, TREATED, TREATMENT, edges, table
from benchmarks.scale.postgres import load, server
from benchmarks.scale.rivals.environments import RIVALS, interpreter
from benchmarks.scale.tasks import cell_sql
from benchmarks.scale.worker import Failed, Worker
from discreet.data.backends.scan import MANY_ROWS
from evidence.reproduce.cache import PRESENTATION, fingerprint, package_files, settings

Spec = dict[str, Any]
Result = dict[str, Any]
Say = Callable[[str], None]

ENGINES = ("duckdb", "polars", "spark", "postgresql")
CORES = os.cpu_count() or 1
SPARK: Spec = {
    "master": f"local[{CORES}]",
    "settings": {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    },
}
# Terms that fits of all rows are compared at; without a limit they have up to 300.
TERMS = 115
# Seconds; imports take a few, and an engine that has to warm up takes some tens.
_IMPORTS_DO_NOT_MATTER = 120.0
# Code that neither reads records nor adds them up is no reason to measure again.
_TAKES_NONE = (
    *PRESENTATION,
    "discreet.audit",
    "discreet.datasets",
    "discreet.exceptions",
    "discreet.ledger",
    "discreet.papers",
    "discreet.privacy.noise",
    "discreet.releases.io",
    "discreet.serve",
)
_OWN = ("data", "measure", "postgres", "tasks", "worker", "rivals/environments", "rivals/opendp", "rivals/tumult")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything."""

    name: str
    uplift: int
    averages: tuple[int, int, int]
    growth_rows: tuple[int, ...]
    growth_features: tuple[int, ...]
    growth_terms: tuple[int, ...]
    features_at: int
    bits: int
    cluster: tuple[int, int]
    repeats: int


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Seconds: for one job before it is given up, and for all repetitions of one job before no more are begun."""

    limit: float
    enough: float


FULL = Plan(
    name="full",
    uplift=14 * MILLION,
    averages=(MILLION, 14 * MILLION, 100 * MILLION),
    growth_rows=(125_000, 250_000, 500_000, MILLION, 2 * MILLION, 4 * MILLION),
    growth_features=(2, 4, 8, 12),
    growth_terms=(29, 58, TERMS, 230, 300),
    features_at=MILLION,
    bits=250_000,
    cluster=(MILLION, 4 * MILLION),
    repeats=5,
)
QUICK = Plan(
    name="quick",
    uplift=200_000,
    averages=(20_000, 40_000, 80_000),
    growth_rows=(20_000, 40_000),
    growth_features=(2, 4),
    growth_terms=(5, 9),
    features_at=20_000,
    bits=20_000,
    cluster=(20_000, 40_000),
    repeats=1,
)
_ALL: Spec = {"job": "ours", "estimator": "ate", "all_rows": True}
AVERAGES: dict[str, Spec] = {
    "decode": {"job": "decode"},
    "ate": {"job": "ours", "estimator": "ate"},
    "ate, all rows": _ALL,
    "ate, all rows, few terms": _ALL | {"most_terms": TERMS},
    "ate, all rows, few terms, compiled": _ALL | {"most_terms": TERMS, "compiled": True},
    "ate, design known": _ALL | {"propensity": TREATED},
    "ate, design known, one process": _ALL | {"propensity": TREATED, "workers": 1},
    "cate": {"job": "ours", "estimator": "cate"},
}
Measure = Callable[[Plan, Patience, Say], Result]


class Pieces:
    """Results on disk, used again while neither code nor plan has changed."""

    def __init__(self, plan: Plan, patience: Patience, say: Say, folder: Path = CACHE / "results") -> None:
        digest = hashlib.sha256(repr((plan, _code())).encode()).hexdigest()[:12]
        self.plan, self.patience, self.say, self.folder = plan, patience, say, folder / f"{plan.name}-{digest}"

    def get(self, name: str, measure: Measure, *, measured: bool = True) -> Result:
        """The piece of this name; measured if it is not there, or empty if it is not to be."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            if not measured:
                return {}
            self.say(f"{name}: measuring")
            found = measure(self.plan, self.patience, self.say)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(found, indent=1))
        result: Result = json.loads(path.read_text())
        return result


def pieces(plan: Plan) -> dict[str, Measure]:
    """What there is to measure, targets first. Parts of one table have names that differ after a colon alone."""
    small, middle, large = plan.averages
    few = "ate, all rows, few terms"
    return {
        "uplift": uplift,
        f"average-{middle}: sample": average(middle, "decode", "ate"),
        f"average-{middle}: CATE": average(middle, "cate"),
        f"average-{middle}: all rows, few terms": average(middle, few, f"{few}, compiled"),
        f"average-{middle}: processes": average(middle, "ate, design known", "ate, design known, one process"),
        f"average-{large}: sample": average(large, "decode", "ate"),
        f"average-{large}: CATE": average(large, "cate"),
        "bits": bits,
        f"average-{small}: all": average(small, "decode", "ate", "ate, all rows", "ate, design known", "cate"),
        "terms": terms,
        "cluster": cluster,
        f"average-{middle}: all rows": average(middle, "ate, all rows"),
        "growth": growth,
        f"average-{large}: known": average(large, "ate, design known"),
    }


def uplift(plan: Plan, patience: Patience, say: Say) -> Result:
    """Counts and sums by cell and arm: each engine without privacy, ours on it, and other systems."""
    specs = {
        f"{engine}, {job}": _job(engine, plan.uplift, job=job, estimator="uplift")
        for engine in ENGINES
        for job in ("raw", "ours")
    }
    specs |= {name: _rival(name, plan.uplift) for name in RIVALS}
    return {"rows": plan.uplift} | in_turns(specs, plan.repeats, patience, say)


def average(rows: int, *names: str) -> Measure:
    """ATE and CATE, and the time that decoding takes; in two processes where rows are many."""

    def measure(plan: Plan, patience: Patience, say: Say) -> Result:
        processes = {"workers": 2} if rows > MANY_ROWS else {}
        specs = {name: _job("duckdb", rows, **processes | AVERAGES[name]) for name in names}
        return {"rows": rows} | in_turns(specs, plan.repeats, patience, say)

    return measure


def floor(middle: Result, plan: Plan, patience: Patience, say: Say) -> Result:
    """The second moments of as many columns as ATE has terms, without anything else."""
    of_ate = middle.get("jobs", {}).get("ate, all rows, few terms", {}).get("found") or {}
    if not of_ate.get("terms"):
        return {"jobs": {}}
    spec = {"job": "gram", "rows": middle["rows"], "terms": of_ate["terms"]}
    return {"rows": middle["rows"]} | of_ate | in_turns({"gram": spec}, min(plan.repeats, 3), patience, say)


def growth(plan: Plan, patience: Patience, say: Say) -> Result:
    """ATE by the number of records, and by the number of covariates."""
    cells = [(rows, len(FEATURES)) for rows in plan.growth_rows] + [(plan.features_at, p) for p in plan.growth_features]
    specs = {f"{rows}, {p}": _job("duckdb", rows, features=FEATURES[:p], **_ALL) for rows, p in dict.fromkeys(cells)}
    return in_turns(specs, min(plan.repeats, 3), patience, say, alone=True)


def terms(plan: Plan, patience: Patience, say: Say) -> Result:
    """ATE of all rows by the most terms that it may have."""
    specs = {str(most): _job("duckdb", plan.features_at, **_ALL, most_terms=most) for most in plan.growth_terms}
    specs |= {"decode": _job("duckdb", plan.features_at, job="decode")}
    return {"rows": plan.features_at} | in_turns(specs, min(plan.repeats, 3), patience, say)


def cluster(plan: Plan, patience: Patience, say: Say) -> Result:
    """Uplift and ATE on Spark at two sizes, which separates what a round costs from what a record costs."""
    specs = {
        f"{estimator}, {rows}": _job("spark", rows, job="ours", estimator=estimator)
        for estimator in ("uplift", "ate")
        for rows in plan.cluster
    }
    return in_turns(specs, min(plan.repeats, 3), patience, say, alone=True)


def bits(plan: Plan, patience: Patience, say: Say) -> Result:
    """Digests of all exact sums, by engine."""
    specs = {
        f"{engine}, {estimator}": _job(engine, plan.bits, job="bits", estimator=estimator)
        for engine in ENGINES
        for estimator in ("uplift", "ate")
    }
    return {"rows": plan.bits} | in_turns(specs, 1, patience, say, alone=True, warm=False)


def in_turns(
    specs: Mapping[str, Spec | Failed],
    repeats: int,
    patience: Patience,
    say: Say,
    *,
    alone: bool = False,
    warm: bool = True,
) -> Result:
    """Time all jobs, a repetition of each in turn, so that a busy moment hits all of them.

    A first repetition pays for imports and is not counted, unless it takes so long that they do not matter. No more are
    begun once a job has had ``patience.enough``. ``alone`` runs one job after the other, where none is compared.
    """
    if alone:
        parts = [in_turns({name: spec}, repeats, patience, say, warm=warm)["jobs"] for name, spec in specs.items()]
        return {"jobs": {name: job for part in parts for name, job in part.items()}}
    jobs: dict[str, Result] = {name: {"seconds": [], "peak": 0, "found": None, "reason": None} for name in specs}
    running: dict[str, Worker] = {}
    with ExitStack() as stack:
        for name, spec in specs.items():
            try:
                running[name] = _start(name, spec, patience.limit)
                stack.callback(running[name].stop)
            except Failed as failed:
                jobs[name]["reason"] = str(failed)
                say(f"  {name}: {failed}")
        for turn in range(repeats + warm):
            for name, worker in running.items():
                job = jobs[name]
                if job["reason"] is None and sum(job["seconds"]) < patience.enough and len(job["seconds"]) < repeats:
                    job |= _repeat(name, worker, patience.limit, say, job["seconds"], counted=turn >= warm)
    return {"jobs": jobs}


def _repeat(name: str, worker: Worker, limit: float, say: Say, seconds: list[float], *, counted: bool) -> Result:
    try:
        one = worker.run(limit)
    except Failed as failed:
        say(f"  {name}: {failed}")
        return {"reason": str(failed), "peak": worker.peak}
    say(f"  {name}: {one['seconds']:.2f} s, {one['peak'] / 2**20:,.0f} MiB")
    if counted or one["seconds"] > _IMPORTS_DO_NOT_MATTER:
        seconds = [*seconds, one["seconds"]]
    return {"seconds": seconds, "peak": one["peak"], "found": one["found"]}


def _start(name: str, spec: Spec | Failed, limit: float) -> Worker:
    if isinstance(spec, Failed):
        raise spec
    python = str(spec.get("python", sys.executable))
    command = [python, "-m", spec.get("module", "benchmarks.scale.tasks"), json.dumps(spec)]
    environment = os.environ | {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["DISCREET_COMPILED"] = "1" if spec.get("compiled") else "0"
    log = CACHE / "logs" / f"{name.replace(', ', '-')}.log"
    return Worker(command, limit=limit, folder=ROOT, log=log, environment=environment)


def located(engine: str, rows: int, features: Iterable[str] = FEATURES) -> Spec:
    """Where an engine finds so many records, and how it is set up."""
    spec: Spec = {"engine": engine, "path": str(table(rows)), "features": list(features)}
    if engine == "spark":
        if shutil.which("java") is None:
            raise Failed("needs Java, which is not installed")
        spec |= SPARK
    if engine == "postgresql":
        spec |= {"url": server(), "relation": load(rows)}
    return spec


def _job(engine: str, rows: int, **more: Any) -> Spec | Failed:
    features = more.pop("features", CUT if more.get("estimator") == "uplift" else FEATURES)
    try:
        return located(engine, rows, features) | more
    except Failed as failed:
        return failed


def _rival(name: str, rows: int) -> Spec | Failed:
    cells = {"edges": edges(), "cell": cell_sql(), "cells": prod(CUT.values())}
    columns = {"treatment": TREATMENT, "outcome": OUTCOME}
    try:
        return (
            {"python": str(interpreter(name)), "module": RIVALS[name].module, "path": str(table(rows))}
            | cells
            | columns
            | SPARK
        )
    except Failed as failed:
        return failed


@cache
def _code() -> str:
    """Fingerprint of all that takes time: engines, estimators and jobs. What is charged, drawn and shown takes none."""
    own = [ROOT / "benchmarks" / "scale" / f"{name}.py" for name in _OWN]
    return fingerprint(settings([]), [*package_files(_TAKES_NONE), *own], ROOT)
