"""Effect functions: time of a million queries, and size of the file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import discreet
from benchmarks.data import BOUNDS, COVARIATES, arrays
from benchmarks.turns import Job, in_turns

_MANY = (30, 100)


def queries(rows: int, count: int, repeats: int) -> tuple[dict[str, float], int, str]:
    """Seconds of queries from a file, and of reading it; its size in bytes, and its function in words."""
    Y, T, X = arrays(rows)
    fitted = _estimator(COVARIATES).fit(Y, T, X=X)
    people = arrays(count)[2]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "effect.json"
        fitted.release_.save(path)
        loaded = discreet.EffectRelease.load(path)
        jobs: dict[str, Job] = {
            "effects": lambda: loaded.effect(people),
            "intervals": lambda: loaded.effect_interval(people),
            "reading": lambda: discreet.EffectRelease.load(path),
        }
        return (
            in_turns(jobs, repeats, time.perf_counter),
            path.stat().st_size,
            f"{loaded.terms} ({loaded.terms.m} terms)",
        )


def sizes(rows: int) -> Iterator[tuple[int, int, int]]:
    """Number of covariates, terms of the function and bytes of its file where covariates are many."""
    for p in _MANY:
        # Columns of the study beyond its own are noise, and as good as any for the size of a file.
        Y, T, X = arrays(rows)
        rng = np.random.default_rng(p)
        wide = np.column_stack([X, rng.uniform(-3, 3, (rows, p - COVARIATES))])
        release = _estimator(p).fit(Y, T, X=wide).release_
        with tempfile.TemporaryDirectory() as folder:
            release.save(Path(folder) / "effect.json")
            yield p, release.terms.m, (Path(folder) / "effect.json").stat().st_size


def _estimator(p: int) -> discreet.CATE:
    bounds = discreet.Bounds(outcome=BOUNDS.outcome, covariates=[BOUNDS.columns[0]] * p, propensity=BOUNDS.propensity)
    return discreet.CATE(epsilon=1.0, delta=1e-6, bounds=bounds)
