"""CPU time of ATE and CATE over that of a peer with as many terms, in turns: ``python -m benchmarks.ratios``.

The peer is an AIPW estimate by scikit-learn (ridge and logistic regression, two folds) on as many polynomial features
as the fit's own basis has terms; not private. Fits from a Parquet file are measured by what Arrow takes to decode it.
With ``--compiled`` each fit is also timed without compiled loops, which ``DISCREET_COMPILED=1`` in the environment asks
for.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import discreet
from benchmarks.data import BOUNDS, NAMES, arrays, write_parquet
from benchmarks.peers import aipw
from benchmarks.turns import in_turns
from discreet.estimators.measurements import coded_features
from discreet.privacy.compiled import products

SIZES = ((10_000, 10), (100_000, 10), (300_000, 5))
FILE_ROWS = 1_000_000
_EPSILON, _DELTA = 1.0, 1e-6


def declared(p: int) -> discreet.Bounds:
    """Bounds of the first covariates."""
    covariates = dict(zip(NAMES[:p], BOUNDS.columns[:p], strict=True))
    return discreet.Bounds(outcome=BOUNDS.outcome, covariates=covariates, propensity=BOUNDS.propensity)


def without_loops(job: Callable[[], object]) -> Callable[[], object]:
    """The same job as on a machine without a compiler."""

    def run() -> None:
        kept = products.trusted
        try:
            for module in (products, coded_features):
                module.trusted = lambda: None  # type: ignore[attr-defined]
            job()
        finally:
            for module in (products, coded_features):
                module.trusted = kept  # type: ignore[attr-defined]

    return run


def of_arrays(rows: int, p: int, repeats: int, *, both: bool) -> tuple[int, dict[str, float]]:
    """Number of terms, and seconds of both estimators and of the peer."""
    Y, T, X = arrays(rows)
    X, bounds = np.ascontiguousarray(X[:, :p]), declared(p)
    ate, cate = (kind(epsilon=_EPSILON, delta=_DELTA, bounds=bounds) for kind in (discreet.ATE, discreet.CATE))
    terms = int(ate.fit(Y, T, X=X).release_.adjustment["terms"])
    jobs: dict[str, Callable[[], object]] = {"ATE": lambda: ate.fit(Y, T, X=X), "CATE": lambda: cate.fit(Y, T, X=X)}
    if both:
        jobs |= {f"{name}, NumPy": without_loops(job) for name, job in list(jobs.items())}
    return terms, in_turns({**jobs, "AIPW": lambda: aipw(Y, T, X, terms)}, repeats)


def of_file(rows: int, repeats: int, *, both: bool) -> tuple[int, dict[str, float]]:
    """The same from a Parquet file, over what decoding it once takes."""
    import pyarrow.parquet as pq

    names = ("y", "t", *NAMES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.parquet"
        write_parquet(path, rows)
        ate = discreet.ATE(epsilon=_EPSILON, delta=_DELTA, bounds=declared(len(NAMES)))

        def fit() -> discreet.ATE:
            return ate.fit_table(str(path), outcome="y", treatment="t", covariates=list(NAMES), workers=1)

        def decode() -> int:
            return sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches(65_536, columns=list(names)))

        terms = int(fit().release_.adjustment["terms"])
        jobs: dict[str, Callable[[], object]] = {"ATE": fit}
        if both:
            jobs["ATE, NumPy"] = without_loops(fit)
        return terms, in_turns({**jobs, "decode": decode}, repeats)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ratios", description="Time of fits over that of peers.")
    parser.add_argument("--quick", action="store_true", help="few records")
    parser.add_argument(
        "--compiled", action="store_true", help="each fit also without compiled loops (run it with DISCREET_COMPILED=1)"
    )
    options = parser.parse_args(arguments)
    sizes, rows, repeats = (((2_000, 3),), 5_000, 1) if options.quick else (SIZES, FILE_ROWS, 3)
    console, table = Console(), Table("records", "covariates", "terms", "fit", "CPU s", "peer", "CPU s", "ratio")
    loops = "compiled loops" if products.trusted() is not None else "NumPy alone"
    for n, p in sizes:
        _add(table, n, p, "AIPW", *of_arrays(n, p, repeats, both=options.compiled))
    _add(table, rows, len(NAMES), "decode", *of_file(rows, 1, both=options.compiled))
    console.print(table)
    console.print(f"{loops}; {os.environ.get('OMP_NUM_THREADS', 'all')} threads")


def _add(table: Table, n: int, p: int, peer: str, terms: int, took: dict[str, float]) -> None:
    for name, seconds in took.items():
        if name != peer:
            ratio = f"{seconds / took[peer]:.2f}"
            table.add_row(f"{n:,}", f"{p}", f"{terms}", name, f"{seconds:.3f}", peer, f"{took[peer]:.3f}", ratio)


if __name__ == "__main__":
    main()
