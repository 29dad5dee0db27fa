"""DuckDB: relations and queries of a connection, and what files are asked through it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import duckdb
import pyarrow as pa

from discreet.data.backends.base import Capabilities, Groups, Options, TableRecords, missing_unit, quoted, types_of
from discreet.data.backends.group_by import compile_filters
from discreet.data.backends.scan import BATCH_ROWS, Columns, Sweep, Tally, named
from discreet.data.backends.sql import TEMPORAL, Sql, count_query, group_query, groups
from discreet.data.backends.value_counts import counted
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import RowProgress
from discreet.exceptions import InvalidInput

NARROW = {"boolean", "double", "float"} | {
    f"{sign}{size}" for sign in ("", "u") for size in ("tinyint", "smallint", "integer")
}
WIDE = {"bigint", "ubigint", "hugeint", "uhugeint", "decimal"}
TEXT = {"enum", "varchar"}
_VIEW = "discreet_rows"


@dataclass(frozen=True, slots=True, eq=False)
class DuckSource:
    """Rows of a DuckDB relation, which each pass runs again.

    With a cursor of its own all passes are in one transaction, and see one state of DuckDB's tables.
    """

    capabilities: ClassVar[Capabilities] = Capabilities()
    relation: duckdb.DuckDBPyRelation
    name: str = "table"
    cursor: duckdb.DuckDBPyConnection | None = None

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass, in batches."""
        return sweep(self._batches(sweep.columns), progress)

    def count(self, columns: Columns) -> int | None:
        """Number of rows that are used."""
        types = self._types(columns)
        conditions = compile_filters(columns.where, Sql(types))
        rows = self.relation.filter(" AND ".join(conditions)) if conditions else self.relation
        with reading(self.name):
            ((count,),) = rows.aggregate("count(*)").fetchall()
        return int(count)

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> Groups | None:
        """Counts and sums by cell and arm, in SQL."""
        types = self._types(columns)
        return run_group(self.relation, types, columns, partition, formulas, self.name)

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit."""
        self._types(columns)
        return most_rows(self.relation, columns, self.name)

    def close(self) -> None:
        """End the transaction, if there is one; the connection is the caller's."""
        if self.cursor is not None:
            with suppress(duckdb.Error):
                self.cursor.rollback()
            self.cursor.close()

    def check(self, columns: Columns) -> None:
        """Refuse columns that are not there, or do not hold what is declared."""
        self._types(columns)

    def _types(self, columns: Columns) -> dict[str, str]:
        types = types_of(self.relation)
        check_types(types, columns, self.name)
        return types

    def _batches(self, columns: Columns) -> Iterator[Any]:
        types = self._types(columns)
        chosen = ", ".join(expression(name, text, types[name]) for name, text in columns.wanted.items())
        with reading(self.name):
            yield from self.relation.project(chosen).to_arrow_reader(BATCH_ROWS)


def open_records(table: Any, columns: Columns, options: Options) -> TableRecords:
    """A relation, a connection with ``query`` (or ``table``), or a pair of both."""
    options.check_alone("DuckDB has threads of its own")
    if isinstance(table, duckdb.DuckDBPyRelation):
        if options.relation is not None or options.query is not None:
            raise InvalidInput(
                "relation= and query= belong to a connection: a relation is a query already; leave them out."
            )
        made = DuckSource(table)
    else:
        asked = [each for each in (options.query, options.relation) if each is not None]
        connection, query = table if isinstance(table, tuple) else (table, asked[0] if asked else None)
        if not isinstance(connection, duckdb.DuckDBPyConnection):
            raise InvalidInput("table must be a DuckDB relation, or a connection with query=: give one of them.")
        if len(asked) > (0 if isinstance(table, tuple) else 1):
            raise InvalidInput("query= and relation= both say what to read of a connection: give one, and only once.")
        made = opened(connection, query)
    try:
        made.check(columns)
    except BaseException:
        made.close()
        raise
    return TableRecords.opened(columns, made)


def opened(connection: duckdb.DuckDBPyConnection, query: Any) -> DuckSource:
    """A query of a connection. A cursor of its own: an open reader blocks its connection."""
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("query must be the text of a SELECT, or a table's name: write it.")
    cursor = connection.cursor()
    try:
        cursor.begin()
        is_query = query.strip().split(None, 1)[0].lower() in ("select", "from", "with", "values")
        # None for what is no SELECT, whatever the stubs say.
        relation: Any = cursor.sql(query) if is_query else cursor.table(query)
    except duckdb.Error:
        cursor.close()
        # DuckDB's own sentence may quote what it found in the tables.
        raise InvalidInput(
            "query is not one that this DuckDB connection can run in a cursor of its own: try it there first. "
            "Temporary tables and registered frames are not seen there: give connection.sql(...) itself instead."
        ) from None
    if relation is None:
        cursor.close()
        raise InvalidInput("query must return rows: write a SELECT, or a table's name.")
    return DuckSource(relation, cursor=cursor)


def run_group(
    relation: duckdb.DuckDBPyRelation,
    types: Mapping[str, str],
    columns: Columns,
    partition: Partition | None,
    formulas: Sequence[Formula],
    name: str,
) -> Groups | None:
    """Counts and sums by cell and arm of a relation; None where a decimal or a date needs Python."""
    if columns.dates or any(types[column] == "decimal" for column in columns.wanted):
        return None
    dialect, cells = Sql(types), 1 if partition is None else partition.count
    count = counted(columns, partition, dialect)
    with reading(name):
        if count is not None:
            return count.groups(answered(relation, count_query(count, _VIEW)), formulas, columns)
        return groups(
            answered(relation, group_query(columns, partition, formulas, dialect, _VIEW)), cells, len(formulas)
        )


def most_rows(relation: duckdb.DuckDBPyRelation, columns: Columns, name: str) -> int:
    """Most rows of one unit, out of core."""
    assert columns.unit is not None
    types = types_of(relation)
    column = quoted(columns.unit.column)
    conditions = compile_filters(columns.where, Sql(types))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    counted = f"SELECT {column} AS u, count(*) AS c FROM {_VIEW}{where} GROUP BY 1"
    with reading(name):
        ((most, absent),) = answered(
            relation, f"SELECT coalesce(max(c), 0), count(*) FILTER (u IS NULL) FROM ({counted})"
        )
    if absent:
        raise missing_unit(columns.unit.column)
    return int(most)


def answered(relation: duckdb.DuckDBPyRelation, query: str) -> list[Any]:
    """Rows of a query about the relation, which it calls by ``_VIEW``'s name."""
    asked = relation.query(_VIEW, query)
    assert asked is not None, "a SELECT returns rows"
    return asked.fetchall()


def check_types(types: Mapping[str, str], columns: Columns, name: str) -> None:
    """Refuse columns that are not there, or do not hold what is declared."""
    wanted = columns.wanted
    unit = [] if columns.unit is None else [columns.unit.column]
    missing = ", ".join(repr(column) for column in [*wanted, *unit] if column not in types)
    if missing:
        raise InvalidInput(f"{name} has no column {missing}: it has {', '.join(map(repr, types))}.")
    check_kinds(types, wanted, columns.dates)
    for column in unit:
        if types[column] not in (NARROW | WIDE | TEXT | {"uuid"}) - {"double", "float", "decimal"}:
            raise InvalidInput(
                f"{named(column)} must hold whole numbers or text, as it says whose row it is: convert it."
            )


def check_kinds(types: Mapping[str, str], wanted: Mapping[str, bool], dates: Collection[str] = ()) -> None:
    """Refuse columns that hold something else than numbers, dates or text as declared."""
    for column, text in wanted.items():
        if types[column] not in (TEXT if text else TEMPORAL if column in dates else NARROW | WIDE):
            needed = "text like its declared levels" if text else "dates" if column in dates else "numbers"
            raise InvalidInput(f"{named(column)} must hold {needed}, but its type is {types[column]}: convert it.")


def expression(name: str, text: bool, kind: str) -> str:
    """SQL of a column for Arrow. Wide numbers stay as they are: Python refuses those that float64 cannot hold."""
    if text:
        return f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}"
    return f"CAST({quoted(name)} AS DOUBLE) AS {quoted(name)}" if kind in NARROW else quoted(name)


class reading:  # noqa: N801
    """Turn what DuckDB and Arrow say about rows into one sentence: theirs quote the value that they stumbled over."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, duckdb.InterruptException):
            raise KeyboardInterrupt from None
        if isinstance(error, duckdb.OutOfMemoryException):
            raise InvalidInput(
                f"{self.name} takes more memory than DuckDB may use: raise its memory_limit, or read fewer columns."
            ) from None
        if isinstance(error, MemoryError):
            return
        if isinstance(error, duckdb.Error | pa.ArrowException | OSError):
            raise InvalidInput(
                f"{self.name} could not be read to its end: check the source, the connection and the space left."
            ) from None
