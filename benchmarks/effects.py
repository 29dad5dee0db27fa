"""Effect functions: time of a fit, of a million queries, and size of the file."""

# ruff: noqa: E501 (the page's sentences)

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from benchmarks.data import BOUNDS, COVARIATES, arrays

QUERIES = 1_000_000
# Wanted: seconds of all queries, bytes of the file, and how many times the peer's time a fit may take.
WANTED_SECONDS, WANTED_BYTES, WANTED_RATIO = 2.0, 200_000, 2.0
OURS, PEER = "discreet", "EconML"
_EPSILON, _DELTA = 1.0, 1e-6
_MANY = (30, 100)


def in_turns(methods: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Best time of each method; the methods take turns, so that a busy moment hits all of them."""
    best = dict.fromkeys(methods, np.inf)
    for repeat in range(repeats + 1):
        for name, method in methods.items():
            start = time.perf_counter()
            method()
            # The first round pays for imports and is not counted, unless it is the only one.
            if repeat or not repeats:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def fits(rows: int, repeats: int) -> dict[str, float]:
    """Seconds of `CATE.fit`, and of EconML's LinearDRLearner with plain linear nuisances."""
    from sklearn.linear_model import LinearRegression, LogisticRegression

    Y, T, X = arrays(rows)
    plain = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    methods = {OURS: lambda: _estimator(COVARIATES).fit(Y, T, X=X), PEER: lambda: _econml(**plain).fit(Y, T, X=X)}
    return in_turns(methods, repeats)


def default_fits(rows: int) -> dict[str, float]:
    """The same with EconML's own choice of nuisances, which takes long: timed once."""
    Y, T, X = arrays(rows)
    with warnings.catch_warnings():
        # Of names that scikit-learn is about to change.
        warnings.simplefilter("ignore", FutureWarning)
        return in_turns(
            {OURS: lambda: _estimator(COVARIATES).fit(Y, T, X=X), PEER: lambda: _econml().fit(Y, T, X=X)}, 0
        )


def queries(rows: int, count: int, repeats: int) -> tuple[dict[str, float], int, str]:
    """Seconds of queries from a file, and of reading it; its size in bytes, and its function in words."""
    Y, T, X = arrays(rows)
    fitted = _estimator(COVARIATES).fit(Y, T, X=X)
    people = arrays(count)[2]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "effect.json"
        fitted.release_.save(path)
        loaded = discreet.EffectRelease.load(path)
        methods: dict[str, Callable[[], object]] = {
            f"{count:,} effects": lambda: loaded.effect(people),
            f"{count:,} intervals": lambda: loaded.effect_interval(people),
            "reading the file": lambda: discreet.EffectRelease.load(path),
        }
        return in_turns(methods, repeats), path.stat().st_size, f"{loaded.terms} ({loaded.terms.m} terms)"


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


def section(rows: int, count: int, many: int, repeats: int) -> list[str]:
    """Run everything and describe it, a line of Markdown each."""
    took = fits(rows, repeats)
    asked, size, words = queries(rows, count, repeats)
    seconds = asked[f"{count:,} effects"]
    ratio = took[OURS] / took[PEER]
    few = default_fits(rows // 10)
    return [
        f"## Effect functions, p = {COVARIATES}",
        "",
        f"`CATE` at ε = {_EPSILON:g}, δ = {_DELTA:g} on {rows:,} records: {words}. The peer is EconML's LinearDRLearner, for an effect",
        "that is linear in all covariates, with linear and logistic nuisances and its default cross-fitting; not private. Queries are",
        f"answered by a release that was read from its file. Best of {repeats}, in turns, after one that is not counted.",
        "",
        "| aim | wanted | figure |  |",
        "| --- | --- | --- | --- |",
        f"| time of `fit` over LinearDRLearner's | ≤ {WANTED_RATIO:g} | {ratio:.2f} | {_word(ratio <= WANTED_RATIO)} |",
        f"| seconds for {count:,} effects | < {WANTED_SECONDS:g} | {seconds:.2f} | {_word(seconds < WANTED_SECONDS)} |",
        f"| size of the file | < {WANTED_BYTES / 1000:.0f} kB | {size / 1000:.0f} kB | {_word(size < WANTED_BYTES)} |",
        "",
        "| what | seconds |",
        "| --- | --- |",
        *(f"| `fit`, {name} | {value:.2f} |" for name, value in took.items()),
        *(f"| {name} | {value:.2f} |" for name, value in asked.items()),
        "",
        f"With its own choice of nuisances (by cross-validation; timed once) LinearDRLearner takes {few[PEER]:.1f} seconds on {rows // 10:,}",
        f"records, and `CATE` {few[OURS]:.1f}.",
        "",
        f"Files where covariates are many ({many:,} records; the further ones are noise):",
        "",
        "| covariates | terms | size of the file |",
        "| --- | --- | --- |",
        *(f"| {p} | {terms} | {size / 1000:.0f} kB |" for p, terms, size in sizes(many)),
    ]


def _econml(**models: Any) -> Any:
    from econml.dr import LinearDRLearner

    return LinearDRLearner(random_state=0, **models)


def _estimator(p: int) -> discreet.CATE:
    bounds = discreet.Bounds(outcome=BOUNDS.outcome, covariates=[BOUNDS.columns[0]] * p, propensity=BOUNDS.propensity)
    return discreet.CATE(epsilon=_EPSILON, delta=_DELTA, bounds=bounds)


def _word(reached: bool) -> str:
    return "reached" if reached else "**not reached**"
