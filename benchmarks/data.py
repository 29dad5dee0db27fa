"""A study of any length, made a batch at a time so that making it needs no more memory than holding it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from discreet import Bounds
from discreet.datasets.study import Float

COVARIATES = 10
NAMES = tuple(f"x{j}" for j in range(COVARIATES))
BOUNDS = Bounds(outcome=(-8, 9), covariates=dict.fromkeys(NAMES, (-3, 3)), propensity=(0.05, 0.95))
_BLOCK = 250_000
_SEED = 2_600_000


def batches(rows: int) -> Iterator[tuple[slice, Float, Float, Float]]:
    """Consecutive pieces of outcome, treatment and covariates."""
    for start in range(0, rows, _BLOCK):
        part = slice(start, min(start + _BLOCK, rows))
        rng = np.random.default_rng([_SEED, start])
        x = np.clip(rng.standard_normal((part.stop - start, COVARIATES)), -3, 3)
        t = (rng.random(len(x)) < 1 / (1 + np.exp(-0.5 * x[:, 0] + 0.3 * x[:, 1]))).astype(np.float64)
        yield part, x[:, 0] + 0.5 * x[:, 2] + t + rng.standard_normal(len(x)), t, x


def arrays(rows: int) -> tuple[Float, Float, Float]:
    """The whole study: Y, T, X."""
    Y, T, X = np.empty(rows), np.empty(rows), np.empty((rows, COVARIATES))
    for part, y, t, x in batches(rows):
        Y[part], T[part], X[part] = y, t, x
    return Y, T, X


def write_parquet(path: Path, rows: int) -> None:
    """The whole study as one file with the columns y, t, x0, x1, ..."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float64()) for name in ("y", "t", *NAMES)])
    with pq.ParquetWriter(path, schema) as writer:
        for _, y, t, x in batches(rows):
            writer.write_table(pa.table([y, t, *x.T.copy()], schema=schema))
