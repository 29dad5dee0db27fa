"""SQL of counts and sums by cell and arm: DuckDB's, and what other dialects change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.backends.base import Groups, quoted
from discreet.data.backends.group_by import Named, compile_expression, compile_filters, compile_rows
from discreet.data.backends.scan import Columns
from discreet.data.backends.value_counts import Count
from discreet.data.expressions import Formula
from discreet.data.partition import Partition

if TYPE_CHECKING:
    pass

# Adding this and taking it away again rounds to whole numbers, of two to the even one, as IEEE arithmetic does.
_ROUNDER = 6755399441055744.0
_EXACT = 2**53
TEMPORAL = {"date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"}
_WIDE = {"bigint", "ubigint", "hugeint", "uhugeint"}
_SIGNED = {"tinyint", "smallint", "integer"}
_WHOLE = _WIDE | _SIGNED | {"boolean", "utinyint", "usmallint", "uinteger"}


@dataclass(frozen=True, slots=True)
class Sql:
    """DuckDB's SQL. ``types`` are the columns' types in lower case; a dialect replaces what differs."""

    types: Mapping[str, str]
    double: str = "DOUBLE"
    string: str = "VARCHAR"
    big: str = "BIGINT"
    raises: bool = False

    def number(self, column: str) -> str:
        """A column as float64; days since 1970-01-01 of dates and times."""
        if self.types[column] in TEMPORAL:
            return f"(epoch_us({quoted(column)}) / CAST('86400000000.0' AS {self.double}))"
        return f"CAST({quoted(column)} AS {self.double})"

    def text(self, column: str) -> str:
        """A column as text, compared letter by letter, whatever collation it was declared with."""
        return f'(CAST({quoted(column)} AS {self.string}) COLLATE "binary")'

    def is_whole(self, column: str) -> bool:
        """Whether a column's type holds whole numbers or truth values only."""
        return self.types[column] in _WHOLE

    def integer(self, column: str) -> str:
        """Such a column as integers."""
        return quoted(column) if self.types[column] in _SIGNED | _WIDE else f"CAST({quoted(column)} AS BIGINT)"

    def given(self, value: str) -> str:
        """Whether a value is not NULL."""
        return f"({value} IS NOT NULL)"

    def held(self, value: str, low: int, high: int) -> str:
        """An integer held between two others."""
        # DuckDB takes several times as long for least and greatest.
        return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"

    def usable(self, column: str) -> str | None:
        """Whether a value of a wide integer type fits into float64."""
        if self.types[column] not in _WIDE:
            return None
        name = quoted(column)
        return f"({name} IS NULL OR {name} BETWEEN -{_EXACT} AND {_EXACT})"

    def constant(self, value: float | str) -> str:
        """A literal: a number in quotes is read to the last bit, where one without them may be a decimal."""
        if isinstance(value, str):
            return literal(value)
        return f"CAST('{value!r}' AS {self.double})"

    def whole(self, value: int) -> str:
        """A small integer."""
        return str(int(value))

    def arithmetic(self, sign: str, left: str, right: str) -> str:
        """+, -, * or / of two numbers."""
        return f"({left} {sign} {right})"

    def compare(self, sign: str, left: str, right: str) -> str:
        """A comparison."""
        return f"({left} {sign} {right})"

    def finite(self, value: str) -> str:
        """Whether a number is neither missing nor NaN nor infinite."""
        return f"isfinite({value})"

    def missing(self, value: str, *, text: bool) -> str:
        """Whether a value is NULL, or a number is NaN."""
        return f"({value} IS NULL)" if text else f"({value} IS NULL OR NOT {self.present(value)})"

    def present(self, value: str) -> str:
        """Whether a number is neither NULL nor NaN."""
        # Not isnan: DuckDB takes it for false where a file's statistics, which know no NaN, have a largest number.
        return f"(isfinite({value}) OR isinf({value}))"

    def every(self, conditions: Sequence[str]) -> str:
        """Whether all conditions are met."""
        return f"({' AND '.join(conditions)})"

    def some(self, conditions: Sequence[str]) -> str:
        """Whether any condition is met."""
        return f"({' OR '.join(conditions)})"

    def choose(self, cases: Sequence[tuple[str, str]], otherwise: str | None = None) -> str:
        """The value of the first case whose condition is met."""
        cases_ = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases)
        return f"CASE {cases_} ELSE {'NULL' if otherwise is None else otherwise} END"

    def clip(self, value: str, low: float, high: float) -> str:
        """A number held between two others."""
        return f"least(greatest({value}, {self.constant(low)}), {self.constant(high)})"

    def rint(self, value: str) -> str:
        """The nearest whole number, of two the even one."""
        return f"(({value} + {self.constant(_ROUNDER)}) - {self.constant(_ROUNDER)})"

    def floor(self, value: str, plus: int) -> str | None:
        """The next whole number below, and a small one."""
        below = f"floor({value})"
        return f"TRY_CAST({self.arithmetic('+', below, self.constant(float(plus))) if plus else below} AS INTEGER)"

    @property
    def nothing(self) -> str:
        """NULL."""
        return "NULL"


def group_query(
    columns: Columns, partition: Partition | None, formulas: Sequence[Formula], dialect: Sql, table: str
) -> str:
    """SQL that returns key, rows, usable outcomes and the sum of each formula.

    ``table`` is what stands after FROM. One inner query names cell, arm and outcome, so that each is computed once.
    """
    named = compile_rows(columns, partition, dialect)
    conditions = compile_filters(columns.where, dialect)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    inner = f"SELECT {named.key} AS k, {named.arm} AS a, {named.y} AS y"
    if named.e is not None:
        inner += f", {named.e} AS e"
    outer = Named("k", "a", "y", None if named.e is None else "e")
    sums = [f"sum(CAST({compile_expression(each, outer, dialect, columns)} AS {dialect.big}))" for each in formulas]
    chosen = ", ".join(["k", "count(*)", "count(y)", *sums])
    return f"SELECT {chosen} FROM ({inner} FROM {table}{where}) AS rows_ GROUP BY k"


def groups(found: Iterable[Sequence[Any]], cells: int, formulas: int) -> Groups:
    """What the rows of `group_query` say, cells without records filled with zeros."""
    counts = np.zeros((cells, 2), dtype=np.int64)
    sums = tuple(np.zeros((cells, 2), dtype=np.int64) for _ in range(formulas))
    usable = True
    for key, rows, outcomes, *totals in found:
        if key is None or rows != outcomes:
            usable = False
            continue
        counts.flat[int(key)] = int(rows)
        for table, value in zip(sums, totals, strict=True):
            table.flat[int(key)] = int(value)
    return Groups(counts, sums, usable)


def count_query(made: Count[str], table: str) -> str:
    """SQL of counts by cell, arm and outcome."""
    keys = ", ".join(made.keys)
    numbers = ", ".join(str(place + 1) for place in range(len(made.keys)))
    return f"SELECT {keys}, count(*) FROM {table} WHERE {' AND '.join(made.conditions)} GROUP BY {numbers}"


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"
