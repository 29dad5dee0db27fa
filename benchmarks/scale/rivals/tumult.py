"""Tumult Analytics on the same records and cells, in an environment of its own: `environments` makes it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.scale.worker import serve


def prepare(spec: dict[str, Any]) -> Callable[[], int]:
    """A noisy count and a noisy sum of outcomes for every cell and arm, at epsilon 1 in all."""
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    builder = SparkSession.builder.master(spec["master"])
    for name, value in spec["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    arm, outcome = spec["treatment"], spec["outcome"]
    keys = KeySet.from_dict({"cell": list(range(spec["cells"])), arm: [0, 1]})
    # Its own binning runs in Python, a record at a time; Spark finds the cells much faster.
    columns = [f"{spec['cell']} AS cell", arm, outcome]

    def job() -> int:
        session = Session.from_dataframe(
            privacy_budget=PureDPBudget(1.0),
            source_id="records",
            dataframe=spark.read.parquet(spec["path"]).selectExpr(*columns),
            protected_change=AddOneRow(),
        )
        groups = QueryBuilder("records").groupby(keys)
        counts = session.evaluate(groups.count(), PureDPBudget(0.5)).collect()
        sums = session.evaluate(groups.sum(outcome, 0, 1), PureDPBudget(0.5)).collect()
        assert len(counts) == len(sums)
        return len(sums)

    return job


if __name__ == "__main__":
    serve(lambda: prepare(json.loads(sys.argv[1])))
