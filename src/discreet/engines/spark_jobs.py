"""Sums that run on Spark's workers: rows stay where they are, and one row of integers per partition comes back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from discreet import __version__
from discreet.columns import IntArray
from discreet.errors import DiscreetError, InvalidInput
from discreet.records import added

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What a partition yields: its sums, or why it has none.
_SCHEMA = "rows bigint, shape array<bigint>, sums binary, refusal string"
_ARROW = pa.schema(
    [("rows", pa.int64()), ("shape", pa.list_(pa.int64())), ("sums", pa.binary()), ("refusal", pa.string())]
)


class Summed(NamedTuple):
    """Sums over some of the rows, None where there are no rows, and how many rows these were."""

    total: IntArray | None
    rows: int


Adding = Callable[[Iterable[Any]], Summed]
"""From the Arrow batches of one partition to their sums."""


def run(frame: DataFrame, adding: Adding) -> Summed:
    """Add up a whole frame in one job: one pass, each partition on a worker.

    A partition that has to be read again, because its worker died, counts once: Spark takes one result of each.
    What a worker does travels there with all that it refers to, and must not refer to records.
    """
    with watched():
        parts = frame.mapInArrow(partial(_partition, adding, __version__), _SCHEMA).toArrow()
    total: IntArray | None = None
    rows = 0
    for part in parts.to_pylist():
        if part["refusal"] is not None:
            raise InvalidInput(part["refusal"])
        rows += part["rows"]
        if part["sums"] is not None:
            total = added(total, np.frombuffer(part["sums"], dtype="<i8").reshape(part["shape"]).astype(np.int64))
    return Summed(total, rows)


def _partition(adding: Adding, version: str, batches: Iterator[Any]) -> Iterator[Any]:
    """What a worker does. A refusal is told in its own words, which quote nothing, and not by a traceback."""
    refusal, found = None, Summed(None, 0)
    if version != __version__:
        refusal = f"Spark's workers have discreet {__version__}, and not {version}: install the same everywhere."
    else:
        try:
            found = adding(batches)
        except DiscreetError as error:
            refusal = str(error)
    sums = found.total
    row = {
        "rows": [found.rows],
        "shape": [None if sums is None else list(sums.shape)],
        "sums": [None if sums is None else sums.astype("<i8").tobytes()],
        "refusal": [refusal],
    }
    yield pa.RecordBatch.from_pydict(row, schema=_ARROW)


@contextmanager
def watched() -> Iterator[None]:
    """Turn Spark's errors, which may quote values, into a sentence that does not."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            # Spark says that it does not know the latest pandas; nothing here goes through pandas.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield
    except (PySparkException, Py4JError, OSError):
        raise InvalidInput(
            "Spark could not finish this pass, so that nothing of it was used: see its log, which may quote records, and "
            f"check that its workers can read the table and have discreet {__version__} installed."
        ) from None
