"""polars: frames in memory, and lazy ones, which its streaming engine reads a batch at a time and adds up by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import polars as pl

from discreet.data.backends import memory
from discreet.data.backends.base import Capabilities, Groups, Options, TableRecords, missing_unit
from discreet.data.backends.group_by import Named, compile_expression, compile_filters, compile_rows
from discreet.data.backends.scan import BATCH_ROWS, Columns, Sweep, Tally, named
from discreet.data.backends.sql import groups
from discreet.data.backends.value_counts import counted
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import Records, RowProgress
from discreet.exceptions import InvalidInput

_EXACT = 2**53
_ROUNDER = 6755399441055744.0
_WIDE = (pl.Int64, pl.UInt64, pl.Int128, pl.UInt128)


def open_records(table: Any, columns: Columns, options: Options) -> Records:
    """A frame, or a lazy one."""
    if isinstance(table, pl.DataFrame):
        return memory.open_records(table, columns, options)
    if not isinstance(table, pl.LazyFrame):
        raise InvalidInput("table must be a frame of polars, lazy or not: put a series into one.")
    options.check_alone("polars reads a lazy frame with threads of its own")
    if options.relation is not None or options.query is not None:
        raise InvalidInput("relation= and query= belong to a database: leave them out for frames, and use where=.")
    with _reading():
        types = dict(table.collect_schema())
    made = PolarsSource(table, types)
    made.check(columns)
    return TableRecords.opened(columns, made)


@dataclass(frozen=True, slots=True, eq=False)
class PolarsSource:
    """Rows of a lazy frame, which each pass runs again."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    frame: pl.LazyFrame
    types: Mapping[str, Any]

    def check(self, columns: Columns) -> None:
        """Refuse columns that are not there, or do not hold what is declared."""
        unit = [] if columns.unit is None else [columns.unit.column]
        missing = ", ".join(repr(name) for name in [*columns.wanted, *unit] if name not in self.types)
        if missing:
            raise InvalidInput(f"table has no column {missing}: it has {', '.join(map(repr, self.types))}.")
        for name, text in columns.wanted.items():
            kind = self.types[name]
            if not (_is_text(kind) if text else kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
                needed = "text like its declared levels" if text else "numbers"
                raise InvalidInput(f"{named(name)} must hold {needed}, but its type is {kind}: convert it.")
        for name in unit:
            if not (self.types[name].is_integer() or self.types[name] == pl.Boolean or _is_text(self.types[name])):
                raise InvalidInput(
                    f"{named(name)} must hold whole numbers or text, as it says whose row it is: convert it."
                )

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass, in batches."""
        return sweep(self._batches(sweep.columns), progress)

    def count(self, columns: Columns) -> int | None:
        """Number of rows that are used."""
        with _reading():
            return int(self._filtered(columns).select(pl.len()).collect(engine="streaming").item())

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> Groups | None:
        """Counts and sums by cell and arm, by polars itself; not where a decimal needs Python's own rounding."""
        if any(isinstance(self.types[name], pl.Decimal) for name in columns.wanted):
            return None
        dialect = PolarsDialect(self.types)
        count = counted(columns, partition, dialect)
        if count is not None:
            names = [f"k{j}" for j in range(len(count.keys))]
            keys = [key.alias(name) for key, name in zip(count.keys, names, strict=True)]
            asked = self.frame.filter(*count.conditions).select(keys).group_by(names).agg(pl.len().alias("n"))
            with _reading():
                return count.groups(asked.collect(engine="streaming").rows(), formulas, columns)
        found = compile_rows(columns, partition, dialect)
        inner = [found.key.alias("k"), found.arm.alias("a"), found.y.alias("y")]
        inner += [] if found.e is None else [found.e.alias("e")]
        outer = Named(pl.col("k"), pl.col("a"), pl.col("y"), None if found.e is None else pl.col("e"))
        steps = {
            f"s{j}": compile_expression(each, outer, dialect, columns).cast(pl.Int64) for j, each in enumerate(formulas)
        }
        made = self._filtered(columns).select(inner).select("k", "y", **steps)
        asked = made.group_by("k").agg(
            pl.len().alias("n"), pl.col("y").count(), *(pl.col(each).sum() for each in steps)
        )
        with _reading():
            rows = asked.collect(engine="streaming").rows()
        return groups(rows, 1 if partition is None else partition.count, len(formulas))

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit."""
        assert columns.unit is not None
        unit = pl.col(columns.unit.column)
        asked = self._filtered(columns).select(unit.alias("u")).group_by("u").agg(pl.len().alias("n"))
        with _reading():
            most, absent = (
                asked.select(pl.col("n").max(), pl.col("u").is_null().any().alias("absent"))
                .collect(engine="streaming")
                .row(0)
            )
        if absent:
            raise missing_unit(columns.unit.column)
        return int(most or 0)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _filtered(self, columns: Columns) -> pl.LazyFrame:
        conditions = compile_filters(columns.where, PolarsDialect(self.types))
        return self.frame.filter(*conditions) if conditions else self.frame

    def _batches(self, columns: Columns) -> Iterator[Any]:
        chosen = [
            pl.col(name).cast(pl.String) if text and self.types[name] != pl.String else pl.col(name)
            for name, text in columns.wanted.items()
        ]
        with _reading():
            frame = self.frame.select(chosen)
            for part in frame.collect_batches(chunk_size=BATCH_ROWS, maintain_order=False, engine="streaming"):
                yield from part.to_arrow().combine_chunks().to_batches(BATCH_ROWS)


@dataclass(frozen=True, slots=True)
class PolarsDialect:
    """What polars says: see `discreet.data.backends.dialect.Dialect`."""

    types: Mapping[str, Any]
    raises: bool = False

    def number(self, column: str) -> pl.Expr:
        return pl.col(column).cast(pl.Float64)

    def text(self, column: str) -> pl.Expr:
        return pl.col(column).cast(pl.String)

    def is_whole(self, column: str) -> bool:
        return bool(self.types[column].is_integer()) or self.types[column] == pl.Boolean

    def integer(self, column: str) -> pl.Expr:
        # What Int64 cannot hold becomes NULL; it is not `usable` in an outcome, and no arm.
        return pl.col(column).cast(pl.Int64, strict=False)

    def given(self, value: pl.Expr) -> pl.Expr:
        return value.is_not_null()

    def held(self, value: pl.Expr, low: int, high: int) -> pl.Expr:
        return value.clip(low, high)

    def usable(self, column: str) -> pl.Expr | None:
        if self.types[column] not in _WIDE:
            return None
        return pl.col(column).is_null() | pl.col(column).is_between(-_EXACT, _EXACT)

    def constant(self, value: float | str) -> pl.Expr:
        return pl.lit(value, dtype=pl.String if isinstance(value, str) else pl.Float64)

    def whole(self, value: int) -> pl.Expr:
        return pl.lit(value, dtype=pl.Int32)

    def arithmetic(self, sign: str, left: pl.Expr, right: pl.Expr) -> pl.Expr:
        match sign:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        # polars inverts a divisor that is one number, or a column of one row, and multiplies by it: that rounds twice.
        return pl.map_batches([left, right], _quotient, return_dtype=pl.Float64, is_elementwise=True)

    def compare(self, sign: str, left: pl.Expr, right: pl.Expr) -> pl.Expr:
        match sign:
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">=":
                return left >= right
        return left == right

    def finite(self, value: pl.Expr) -> pl.Expr:
        return value.is_finite().fill_null(False)

    def missing(self, value: pl.Expr, *, text: bool) -> pl.Expr:
        return value.is_null() if text else value.is_null() | value.is_nan().fill_null(True)

    def present(self, value: pl.Expr) -> pl.Expr:
        return value.is_not_nan().fill_null(False)

    def every(self, conditions: Sequence[pl.Expr]) -> pl.Expr:
        return reduce(lambda left, right: left & right, conditions)

    def some(self, conditions: Sequence[pl.Expr]) -> pl.Expr:
        return reduce(lambda left, right: left | right, conditions)

    def choose(self, cases: Sequence[tuple[pl.Expr, pl.Expr]], otherwise: pl.Expr | None = None) -> pl.Expr:
        made = self.nothing if otherwise is None else otherwise
        for condition, value in reversed(cases):
            made = pl.when(condition).then(value).otherwise(made)
        return made

    def clip(self, value: pl.Expr, low: float, high: float) -> pl.Expr:
        return value.clip(low, high)

    def rint(self, value: pl.Expr) -> pl.Expr:
        return (value + _ROUNDER) - _ROUNDER

    def floor(self, value: pl.Expr, plus: int) -> None:
        """This engine finds cells by comparing."""

    @property
    def nothing(self) -> pl.Expr:
        return pl.lit(None)


def _quotient(columns: Sequence[pl.Series]) -> pl.Series:
    """NumPy's own. No number is NaN here, other than in place of what is missing."""
    left, right = (column.to_numpy() for column in columns)
    return pl.Series(np.divide(left, right), nan_to_null=True)


def _is_text(kind: Any) -> bool:
    return kind in (pl.String, pl.Categorical, pl.Enum, pl.Null)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        # polars quotes the value that it stumbled over, and panics over files that changed.
        raise InvalidInput(
            "table could not be read to its end: collect it yourself to see why, and check the space left."
        ) from None
