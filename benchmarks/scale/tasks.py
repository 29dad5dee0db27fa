"""What is timed: `Uplift`, `ATE` and `CATE` on each engine, and what each engine does without privacy.

A job runs in a process of its own: ``python -m benchmarks.scale.tasks '{"job": "raw", "engine": "duckdb", ...}'``.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.scale.data import CUT, OUTCOME, TREATMENT, bounds, edges
from benchmarks.scale.worker import serve
from discreet.data.records import CHUNK_ROWS

EPSILON, DELTA = 1.0, 1e-6
_BATCH_ROWS = 65_536
Job = Callable[[], Any]


def prepare(spec: dict[str, Any]) -> Job:
    """Do whatever is not timed; what is returned is."""
    jobs: dict[str, Callable[[dict[str, Any]], Job]] = {"decode": _decode, "gram": _gram, "raw": _raw}
    jobs |= {"ours": _ours, "bits": _bits}
    return jobs[spec["job"]](spec)


def _decode(spec: dict[str, Any]) -> Job:
    """Arrow decodes the columns once, and nothing is done with them."""
    import pyarrow.parquet as pq

    columns = [*spec["features"], OUTCOME, TREATMENT]

    def job() -> int:
        rows = 0
        for path in sorted(glob.glob(spec["path"])):
            for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS, columns=columns):
                rows += batch.num_rows
        return rows

    return job


def _gram(spec: dict[str, Any]) -> Job:
    """A plain matrix of second moments, of columns that are in memory already, a chunk at a time."""
    import numpy as np

    chunk = np.random.default_rng(0).standard_normal((CHUNK_ROWS, spec["terms"]))

    def job() -> None:
        total = np.zeros((spec["terms"], spec["terms"]))
        for _ in range(0, spec["rows"], CHUNK_ROWS):
            total += chunk.T @ chunk

    return job


def _raw(spec: dict[str, Any]) -> Job:
    """The engine's own count and sum by cell and arm; returns what all engines have to agree on."""
    source, engine = _source(spec), spec["engine"]
    if engine == "duckdb":
        import duckdb

        query = raw_sql(f"read_parquet('{source}')")
        return lambda: _totals(duckdb.connect().execute(query).fetchall())
    if engine == "polars":
        return lambda: _totals(_polars_groups(source).collect(engine="streaming").rows())
    if engine == "spark":
        source.createOrReplaceTempView("records")
        return lambda: _totals(source.sparkSession.sql(raw_sql("records")).collect())
    import psycopg

    connection = psycopg.connect(spec["url"])
    return lambda: _totals(connection.execute(raw_sql(spec["relation"])).fetchall())


def _ours(spec: dict[str, Any]) -> Job:
    """A private release of the same."""
    fit = _fit(spec)

    def job() -> dict[str, Any]:
        rounds: set[str] = set()
        fitted = fit(progress=lambda name, *_: rounds.add(name))
        if spec["estimator"] == "uplift":
            # The work is done when a person has the effects; how long they take after the sums is counted separately.
            start = time.perf_counter()
            return {"cells": len(fitted.table()), "smoothing": time.perf_counter() - start}
        terms, interval = fitted.release_.adjustment["terms"], fitted.ate_interval()
        return {"rounds": len(rounds), "terms": terms, "interval": interval}

    return job


def _bits(spec: dict[str, Any]) -> Job:
    """A digest of every exact sum on the way, the noise being frozen: engines that agree release the same bits."""
    from discreet.testing import frozen_noise, record_sums

    fit = _fit(spec)

    def job() -> str:
        digest = hashlib.sha256()
        with frozen_noise(), record_sums() as sums:
            fit()
        for name, _, exact, _ in sums:
            digest.update(name.encode())
            digest.update(exact.tobytes())
        return digest.hexdigest()[:16]

    return job


def _fit(spec: dict[str, Any]) -> Callable[..., Any]:
    import discreet
    from discreet.estimators import _allocation

    # A job has a process of its own, so that public rules may be changed for it.
    if spec.get("all_rows"):
        _allocation.SAMPLE = replace(_allocation.SAMPLE, by_place=math.inf)
    _allocation.MOST_TERMS = spec.get("most_terms", _allocation.MOST_TERMS)
    source, declared = _source(spec), bounds(tuple(spec["features"]))
    options: dict[str, Any] = {"outcome": OUTCOME, "treatment": TREATMENT}
    options |= {name: spec[name] for name in ("relation", "workers") if name in spec}

    def fit(**more: Any) -> Any:
        if spec["estimator"] == "uplift":
            estimator: Any = discreet.Uplift(epsilon=EPSILON, bounds=declared, by=CUT)
        else:
            kind = {"ate": discreet.ATE, "cate": discreet.CATE}[spec["estimator"]]
            estimator = kind(epsilon=EPSILON, delta=DELTA, bounds=declared, propensity=spec.get("propensity"))
        return estimator.fit_table(source, **options, **more)

    return fit


def _source(spec: dict[str, Any]) -> Any:
    """The records as the engine's own kind of table."""
    if spec["engine"] == "polars":
        import polars as pl

        return pl.scan_parquet(spec["path"])
    if spec["engine"] == "spark":
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(spec["master"])
        for name, value in spec["settings"].items():
            builder = builder.config(name, value)
        return builder.getOrCreate().read.parquet(*glob.glob(spec["path"]))
    return spec["url"] if spec["engine"] == "postgresql" else spec["path"]


def raw_sql(source: str) -> str:
    """Count and sum by cell and arm, without privacy, in SQL that DuckDB, Spark and PostgreSQL all understand."""
    return (
        f"SELECT {cell_sql()} AS cell, {TREATMENT} AS arm, count(*) AS records, sum({OUTCOME}) AS total "
        f"FROM {source} GROUP BY 1, 2"
    )


def cell_sql() -> str:
    """The number of a record's cell; values beyond the bounds belong to the outermost cells."""
    cell = ""
    for name, ends in edges().items():
        most = len(ends) - 2
        part = f"least(greatest(floor(({name} - ({ends[0]!r})) / {ends[1] - ends[0]!r}), 0), {most})"
        cell = f"({cell}) * {most + 1} + {part}" if cell else part
    return f"CAST({cell} AS INT)"


def _polars_groups(source: Any) -> Any:
    import polars as pl

    cell: Any = pl.lit(0)
    for name, ends in edges().items():
        most = len(ends) - 2
        part = ((pl.col(name) - ends[0]) / (ends[1] - ends[0])).floor().clip(0, most)
        cell = cell * (most + 1) + part
    return source.group_by(cell.cast(pl.Int32).alias("cell"), TREATMENT).agg(
        pl.len().alias("records"), pl.col(OUTCOME).sum().alias("total")
    )


def _totals(rows: list[Any]) -> list[int]:
    """Groups, records, outcomes, and a sum that distinguishes groups."""
    apart = sum((int(cell) + 1) * (int(arm) + 1) * int(total) for cell, arm, _, total in rows)
    return [len(rows), sum(int(row[2]) for row in rows), sum(int(row[3]) for row in rows), apart]


if __name__ == "__main__":
    serve(lambda: prepare(json.loads(sys.argv[1])))
