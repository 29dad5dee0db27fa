"""Spark frames: sweeps run on the workers that have the rows, counts and sums by cell in Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from warnings import catch_warnings, filterwarnings

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from discreet import __version__
from discreet.data.backends.base import Capabilities, Groups, Options, TableRecords, missing_unit, unusable
from discreet.data.backends.group_by import Named, compile_expression, compile_filters, compile_rows
from discreet.data.backends.scan import Columns, Sweep, Tally, named, total
from discreet.data.backends.spark.dialect import WIDE, SparkDialect, place
from discreet.data.backends.spark.progress import run_with_progress
from discreet.data.backends.sql import groups
from discreet.data.backends.value_counts import counted
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import RowProgress
from discreet.exceptions import InvalidInput

_NARROW = {"tinyint", "smallint", "int", "float", "double", "boolean"}
_TEXT = {"string", "char", "varchar"}
_UNIT = {"tinyint", "smallint", "int", "bigint", "string", "char", "varchar"}
# What a partition yields: its tally.
_SCHEMA = "rows bigint, treated bigint, checksum binary, shape array<bigint>, sums binary, refusal string, arms bigint"
_ARROW = pa.schema(
    [
        ("rows", pa.int64()),
        ("treated", pa.int64()),
        ("checksum", pa.binary()),
        ("shape", pa.list_(pa.int64())),
        ("sums", pa.binary()),
        ("refusal", pa.string()),
        ("arms", pa.int64()),
    ]
)


def open_records(table: Any, columns: Columns, options: Options) -> TableRecords:
    """A frame of Spark, which each pass runs again."""
    options.check_alone("Spark divides rows among workers of its own")
    if options.relation is not None or options.query is not None:
        raise InvalidInput("relation and query are for connections: a Spark frame is a query already.")
    if not hasattr(table, "mapInArrow"):
        raise InvalidInput("table must be a DataFrame of Spark SQL: convert it, for example by to_spark().")
    if table.isStreaming:
        raise InvalidInput("table is a stream, which has no end: write it down and give what was written.")
    with watched():
        # Spark Connect does not show its plans; there the checksum of every pass has to do.
        plan = getattr(table, "_jdf", None)
        if plan is not None and not plan.queryExecution().analyzed().deterministic():
            raise InvalidInput(
                "table is a query with chance in it (rand, shuffle, monotonically_increasing_id), so that each pass "
                "would see other rows: write its result down and give that."
            )
        made = _checked(table, columns)
    return TableRecords.opened(columns, made)


@dataclass(frozen=True, slots=True, eq=False)
class SparkSource:
    """Rows of a frame. Its columns are called by their places, because Spark's names have rules of their own."""

    capabilities: ClassVar[Capabilities] = Capabilities(remote=True)
    frame: DataFrame
    types: dict[str, str]

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass in one job, each partition on a worker; one row of integers per partition comes back.

        A partition that has to be read again, because its worker died, counts once: Spark takes one result of each.
        """
        dialect = SparkDialect(self.types)
        chosen = [dialect.text(name) if text else dialect.column(name) for name, text in sweep.columns.wanted.items()]
        rows = self._filtered(sweep.columns).select(*chosen)
        # Spark Connect has no accumulators: there, rows are reported when all are done.
        context = None if progress is None else getattr(self.frame.sparkSession, "_sc", None)
        done = None if context is None else context.accumulator(0)
        with watched():
            parts = rows.mapInArrow(partial(_partition, sweep, __version__, done), _SCHEMA)
            if context is None or done is None or progress is None:
                table, reported = parts.toArrow(), 0
            else:
                table, reported = run_with_progress(parts, context, done, progress)
            found = total(_tally(part) for part in table.to_pylist())
        if progress is not None and found.rows > reported:
            progress(found.rows - reported)
        return found

    def count(self, columns: Columns) -> int:
        """Number of rows that are used."""
        with watched():
            return int(self._filtered(columns).count())

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> Groups:
        """Counts and sums by cell and arm, in Spark SQL."""
        low, high = columns.bounds.propensity
        known = columns.propensity
        if isinstance(known, float) and not low <= known <= high:
            return unusable()
        dialect = SparkDialect(self.types)
        count = counted(columns, partition, dialect)
        with watched():
            if count is not None:
                rows = self.frame.where(dialect.every(count.conditions))
                return count.groups(rows.groupBy(*count.keys).agg(F.count(F.lit(1))).collect(), formulas, columns)
            row = compile_rows(columns, partition, dialect)
            inner = {"k": row.key, "a": row.arm, "y": row.y} | ({} if row.e is None else {"e": row.e})
            outer = Named(F.col("k"), F.col("a"), F.col("y"), None if row.e is None else F.col("e"))
            sums = [F.sum(compile_expression(each, outer, dialect, columns).cast("bigint")) for each in formulas]
            rows = self._filtered(columns).select(*(value.alias(name) for name, value in inner.items()))
            found = rows.groupBy("k").agg(F.count(F.lit(1)), F.count("y"), *sums).collect()
        return groups(found, 1 if partition is None else partition.count, len(formulas))

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit."""
        assert columns.unit is not None
        unit = SparkDialect(self.types).column(columns.unit.column)
        with watched():
            counted = self._filtered(columns).groupBy(unit.alias("u")).agg(F.count(F.lit(1)).alias("c"))
            most, absent = counted.agg(F.max("c"), F.count(F.when(F.col("u").isNull(), 1))).collect()[0]
        if absent:
            raise missing_unit(columns.unit.column)
        return int(most or 0)

    def close(self) -> None:
        """The session is the caller's."""

    def _filtered(self, columns: Columns) -> DataFrame:
        dialect = SparkDialect(self.types)
        conditions = compile_filters(columns.where, dialect)
        return self.frame.where(dialect.every(conditions)) if conditions else self.frame


def _partition(sweep: Sweep, version: str, done: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """What a worker does: it has to be the same discreet, because sums are the same to the last bit."""
    if version != __version__:
        refusal = f"Spark's workers have discreet {__version__}, and not {version}: install the same everywhere."
        found = Tally(refusal=refusal)
    else:
        found = sweep(batches)
    if done is not None:
        done.add(found.rows)
    sums = found.sums
    row = {
        "rows": [found.rows],
        "treated": [found.treated],
        "checksum": [found.checksum.to_bytes(8, "little")],
        "shape": [None if sums is None else list(sums.shape)],
        "sums": [None if sums is None else sums.astype("<i8").tobytes()],
        "refusal": [found.refusal],
        "arms": [found.arms],
    }
    yield pa.RecordBatch.from_pydict(row, schema=_ARROW)


def _tally(part: dict[str, Any]) -> Tally:
    sums = None
    if part["sums"] is not None:
        sums = np.frombuffer(part["sums"], dtype="<i8").reshape(part["shape"]).astype(np.int64)
    checksum = int.from_bytes(part["checksum"], "little")
    return Tally(part["rows"], part["treated"], checksum, sums, part["refusal"], arms=part["arms"])


@contextmanager
def watched() -> Iterator[None]:
    """Turn Spark's errors, which may quote values, into a sentence that does not."""
    try:
        with catch_warnings():
            # Spark does not know the latest pandas yet; nothing here goes through pandas.
            filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield
    except (PySparkException, Py4JError, pa.ArrowException, OSError):
        raise InvalidInput(
            "Spark could not read the table to its end: see Spark's own log, which may quote records, and check that "
            f"its workers reach the data and have discreet {__version__} installed."
        ) from None


def _checked(table: DataFrame, columns: Columns) -> SparkSource:
    fields = [(field.name, field.dataType.simpleString().split("(")[0]) for field in table.schema.fields]
    types = dict(fields)
    wanted = columns.wanted
    unit = [] if columns.unit is None else [columns.unit.column]
    missing = ", ".join(repr(name) for name in [*wanted, *unit] if name not in types)
    if missing:
        raise InvalidInput(f"table has no column {missing}: it has {', '.join(map(repr, types))}.")
    if len(types) < len(fields):
        raise InvalidInput("table has two columns with the same name: rename one.")
    for name, text in wanted.items():
        if types[name] not in (_TEXT if text else _NARROW | WIDE):
            needed = "text like its declared levels" if text else "numbers"
            raise InvalidInput(f"{named(name)} must hold {needed}, but its type is {types[name]}: convert it.")
    for name in unit:
        if types[name] not in _UNIT:
            raise InvalidInput(
                f"{named(name)} must hold whole numbers or text, as it says whose row it is: convert it."
            )
    return SparkSource(table.toDF(*map(place, range(len(fields)))), types)
