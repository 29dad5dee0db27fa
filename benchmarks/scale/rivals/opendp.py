"""OpenDP's polars interface on the same records and cells, in an environment of its own: `environments` makes it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

from benchmarks.scale.worker import serve


def prepare(spec: dict[str, Any]) -> Callable[[], int]:
    """A noisy count and a noisy sum of outcomes for every cell and arm, at epsilon 1."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    cuts, arm, outcome = spec["edges"], spec["treatment"], spec["outcome"]
    labels = {name: [str(k) for k in range(len(edges) - 1)] for name, edges in cuts.items()}
    cells = [(*cell, t) for cell in product(*labels.values()) for t in (0, 1)]
    keys = pl.LazyFrame(cells, schema={**dict.fromkeys(cuts, pl.String), arm: pl.Int32}, orient="row")

    def job() -> int:
        context = dp.Context.compositor(
            data=pl.scan_parquet(spec["path"]),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=2**27)],  # type: ignore[attr-defined]
        )
        cut = [
            pl.col(name).cut(edges[1:-1], labels=labels[name], left_closed=True).cast(pl.String)
            for name, edges in cuts.items()
        ]
        table = (
            context.query()
            .with_columns(*cut)
            .group_by(*cuts, arm)
            .agg(dp.len(), pl.col(outcome).fill_null(0).dp.sum((0, 1)))  # type: ignore[attr-defined]
            .with_keys(keys)
        )
        return int(table.release().collect().height)

    return job


if __name__ == "__main__":
    serve(lambda: prepare(json.loads(sys.argv[1])))
