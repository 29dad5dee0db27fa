"""PostgreSQL: rows by binary COPY, counts and sums by cell in SQL, all in one transaction that sees one state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from discreet.data.backends.base import Capabilities, Groups, Options, TableRecords, missing_unit, unusable
from discreet.data.backends.group_by import compile_filters
from discreet.data.backends.postgres.copy import connect, copied, fetched, refusing
from discreet.data.backends.postgres.dialect import (
    NUMBERS,
    TEXT,
    WIDE,
    PostgresDialect,
    as_float,
    as_place,
    name,
    query_of,
)
from discreet.data.backends.scan import BATCH_ROWS, Columns, Sweep, Tally, named
from discreet.data.backends.sql import count_query, group_query, groups
from discreet.data.backends.value_counts import counted
from discreet.data.bounds import Levels
from discreet.data.columns import too_large
from discreet.data.expressions import Formula, is_finite
from discreet.data.partition import Partition
from discreet.data.records import RowProgress
from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    import psycopg

_EXACT = 2.0**53


def open_records(table: Any, columns: Columns, options: Options) -> TableRecords:
    """A table or a query of the database at an address."""
    options.check_alone("one transaction reads a database, so that all passes see the same")
    rows = query_of(options.relation, options.query)
    connection = connect(str(table))
    try:
        types = _types(connection, rows)
        _check(types, columns)
    except BaseException:
        connection.close()
        raise
    return TableRecords.opened(columns, PostgresSource(connection, rows, types))


# The connection is not printed: it knows a password.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PostgresSource:
    """Rows of a table or query. One transaction stays open from the first pass to the last: all see the same."""

    capabilities: ClassVar[Capabilities] = Capabilities(snapshot=True)
    connection: psycopg.Connection[Any]
    rows: str
    types: Mapping[str, str]

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass, in batches."""
        return sweep(self._batches(sweep.columns), progress)

    def count(self, columns: Columns) -> int:
        """Number of rows that are used."""
        ((count,),) = self._asked(f"SELECT count(*) FROM {self._filtered(columns)}")
        return int(count)

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> Groups | None:
        """Counts and sums by cell and arm, in SQL."""
        low, high = columns.bounds.propensity
        known = columns.propensity
        if isinstance(known, float) and not low <= known <= high:
            return unusable()
        if not all(is_finite(each, (known, known) if isinstance(known, float) else (low, high)) for each in formulas):
            # What could overflow is an error here. Public numbers say so, no record.
            return None
        dialect = PostgresDialect(self.types)
        count = counted(columns, partition, dialect)
        if count is None:
            text = group_query(columns, partition, formulas, dialect, self.rows)
        else:
            text = count_query(count, self.rows)
        found = self._asked(text)
        if count is not None:
            return count.groups(found, formulas, columns)
        return groups(found, 1 if partition is None else partition.count, len(formulas))

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit."""
        assert columns.unit is not None
        unit = name(columns.unit.column)
        counted = f"SELECT {unit} AS u, count(*) AS c FROM {self._filtered(columns)} GROUP BY 1"
        ((most, absent),) = self._asked(
            f"SELECT coalesce(max(c), 0), count(*) FILTER (WHERE u IS NULL) FROM ({counted}) AS units"
        )
        if absent:
            raise missing_unit(columns.unit.column)
        return int(most)

    def close(self) -> None:
        """End the transaction and the connection."""
        self.connection.close()

    def _asked(self, text: str) -> list[Any]:
        with refusing():
            return self.connection.execute(text).fetchall()

    def _filtered(self, columns: Columns) -> str:
        conditions = compile_filters(columns.where, PostgresDialect(self.types))
        return f"{self.rows} WHERE {' AND '.join(conditions)}" if conditions else self.rows

    def _batches(self, columns: Columns) -> Iterator[Any]:
        wanted, levels = columns.wanted, _levels(columns)
        # Where names of units are hashed, text is needed as it is, and rows are of any length.
        hashed = any(condition.half is not None and condition.is_text for condition in columns.where)
        chosen = [
            as_float(column, self.types[column])
            if not text
            else PostgresDialect(self.types).text(column)
            if hashed
            else as_place(column, levels[column])
            for column, text in wanted.items()
        ]
        select = f"SELECT {', '.join(chosen)} FROM {self._filtered(columns)}"
        batches: Iterator[Any] = copied(self.connection, select, len(chosen), BATCH_ROWS)
        if hashed:
            batches = fetched(self.connection, select, BATCH_ROWS)
        for batch in batches:
            arrays = []
            for values, (column, text) in zip(batch, wanted.items(), strict=True):
                if text:
                    arrays.append(pa.array(values, pa.large_string()) if hashed else _texts(values, levels[column]))
                    continue
                numbers = np.ascontiguousarray(values, dtype=np.float64)
                if self.types[column] in WIDE and np.any(np.abs(numbers) > _EXACT):
                    raise InvalidInput(too_large(named(column)))
                # NaN as null: it stands for what is missing.
                arrays.append(pa.array(numbers, from_pandas=True))
            yield pa.RecordBatch.from_arrays(arrays, names=list(wanted))


def _levels(columns: Columns) -> dict[str, list[str]]:
    """The texts that matter in each column of text: all others are one to whoever looks at levels and conditions."""
    bounds = columns.bounds
    specs = [(columns.outcome, bounds.outcome_column), (columns.treatment, bounds.arms)]
    specs += zip(columns.covariates, bounds.columns, strict=True)
    specs += [(name, each.spec) for each, name in columns.further]
    found: dict[str, list[str]] = {}
    for column, spec in specs:
        if isinstance(spec, Levels) and spec.is_text:
            found[column] = [str(level) for level in spec.levels]
    for condition in columns.where:
        if condition.is_text and condition.half is None:
            known = found.setdefault(condition.column, [])
            known += [str(value) for value in condition.values if value not in known]
    return found


def _texts(places: Any, levels: Sequence[str]) -> Any:
    """Places of levels as text: 0 for any other, which is written as something that is no level, -1 for NULL."""
    other = max(levels, key=len) + "?"
    indices = pa.array(places.astype(np.int32), mask=places < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array([other, *levels], pa.large_string()))


def _types(connection: psycopg.Connection[Any], rows: str) -> dict[str, str]:
    with refusing():
        cursor = connection.execute(f"SELECT * FROM {rows} LIMIT 0")
        compile_rows = cursor.description or []
        oids = [column.type_code for column in compile_rows]
        kinds = dict(
            connection.execute(
                "SELECT oid::int8, CASE WHEN typtype = 'e' THEN 'enum' ELSE typname::text END FROM pg_type "
                "WHERE oid = ANY(%s::int8[]::oid[])",
                [oids],
            ).fetchall()
        )
    if len({column.name for column in compile_rows}) < len(compile_rows):
        raise InvalidInput("table has two columns with the same name: rename one in the query.")
    return {column.name: kinds.get(column.type_code, "unknown") for column in compile_rows}


def _check(types: Mapping[str, str], columns: Columns) -> None:
    wanted = columns.wanted
    unit = [] if columns.unit is None else [columns.unit.column]
    missing = ", ".join(repr(column) for column in [*wanted, *unit] if column not in types)
    if missing:
        raise InvalidInput(f"table has no column {missing}: it has {', '.join(map(repr, types))}.")
    for column, text in wanted.items():
        if types[column] not in (TEXT if text else NUMBERS):
            needed = "text like its declared levels" if text else "numbers"
            raise InvalidInput(f"{named(column)} must hold {needed}, but its type is {types[column]}: convert it.")
    for column in unit:
        if types[column] not in TEXT | {"int2", "int4", "int8", "uuid"}:
            raise InvalidInput(
                f"{named(column)} must hold whole numbers or text, as it says whose row it is: convert it."
            )
