"""Records of Criteo's shape in Parquet files, written once and kept: 1, 14 and 100 million of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from discreet import Bounds
from discreet.datasets.marketing import CRITEO_RANGES

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".bench-cache"
SEED = 71_000_000
FEATURES = tuple(CRITEO_RANGES)
OUTCOME, TREATMENT, ID = "visit", "treatment", "id"
# By design, as in the trial.
TREATED = 0.85
MILLION = 1_000_000
# A visit becomes a conversion this often, as in the trial.
_CONVERTS = 0.062
_GROUP_ROWS = 250_000
# The disk has to hold the files, and PostgreSQL's table of the same records.
_BYTES_A_ROW = 300

# Segments: ten equal cuts of one continuous feature, and of one that is half at a single value.
CUT = {"f0": 10, "f6": 10}


def bounds(features: tuple[str, ...] = FEATURES) -> Bounds:
    """What is declared about the records, of the wanted features alone."""
    declared = {name: CRITEO_RANGES[name] for name in features}
    return Bounds(outcome=(0.0, 1.0), covariates=declared, propensity=(0.7, 0.95))


def edges() -> dict[str, list[float]]:
    """Where the cells of each cut feature begin and end."""
    return {name: np.linspace(*CRITEO_RANGES[name], parts + 1).tolist() for name, parts in CUT.items()}


def table(rows: int, folder: Path = CACHE / "data") -> Path:
    """A file of so many records, or a pattern for several where they are more than a file's worth; made if need be."""
    longest = 14 * MILLION
    if rows <= longest:
        path = folder / f"criteo-{rows}.parquet"
        if not path.exists():
            _write(path, rows)
        return path
    whole, rest = divmod(rows, longest)
    parts = folder / f"criteo-{rows}"
    # The same file under several names: reading it again costs what reading another would, and the disk is spared.
    parts.mkdir(parents=True, exist_ok=True)
    for k in range(whole):
        _link(table(longest, folder), parts / f"part-{k:02}.parquet")
    if rest:
        _link(table(rest, folder), parts / f"part-{whole:02}.parquet")
    return parts / "*.parquet"


def batches(rows: int) -> Iterator[Any]:
    """The records as Arrow tables, a row group each."""
    import pyarrow as pa

    from discreet.datasets.marketing import criteo_shaped

    for start in range(0, rows, _GROUP_ROWS):
        study = criteo_shaped(min(_GROUP_ROWS, rows - start), SEED + start)
        luck = np.random.default_rng([SEED, start]).random(study.n)
        columns = dict(zip(FEATURES, study.X.T.copy(), strict=True))
        columns |= {TREATMENT: study.T.astype(np.int32), OUTCOME: study.Y.astype(np.int32)}
        columns["conversion"] = (study.Y * (luck < _CONVERTS)).astype(np.int32)
        columns[ID] = np.arange(start, start + study.n)
        yield pa.table(columns)


def _write(path: Path, rows: int) -> None:
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(path.parent).free < rows * _BYTES_A_ROW:
        raise SystemExit(f"{rows:,} records need {rows * _BYTES_A_ROW / 1e9:.1f} GB of disk: free some.")
    # Under another name until it is complete, so that an interrupted run leaves no half of a file.
    half = path.with_suffix(".half")
    writer = None
    for batch in batches(rows):
        writer = writer or pq.ParquetWriter(half, batch.schema)
        writer.write_table(batch)
    assert writer is not None
    writer.close()
    half.rename(path)


def _link(source: Path, name: Path) -> None:
    if not name.exists():
        os.link(source, name)
