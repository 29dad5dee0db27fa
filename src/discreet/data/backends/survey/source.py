"""Tables of any kind for a survey: the backend that knows the table reads it, frames in memory in batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from discreet.data.backends import backend_of
from discreet.data.backends.base import Capabilities, Groups, Options, TableRecords
from discreet.data.backends.memory import unit_numbers
from discreet.data.backends.scan import BATCH_ROWS, Columns, Sweep, Tally
from discreet.data.backends.survey.columns import SurveyColumns
from discreet.data.columns import one_kind
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import Records, RowProgress
from discreet.exceptions import InvalidInput

# Backends whose tables are in this process's memory, as far as they are no datasets.
_IN_MEMORY = ("memory", "arrow", "polars")


@contextmanager
def open_survey(table: Any, columns: SurveyColumns, options: Options) -> Iterator[Records]:
    """Records of a table, for as long as they are needed; see `discreet.data.backends.open_table`."""
    entry = backend_of(table)
    if entry.name != "files":
        options.check_no_text("this table")
    frame = nw.from_native(table, eager_only=True, pass_through=True) if entry.name in _IN_MEMORY else None
    if isinstance(frame, nw.DataFrame):
        options.check_alone("a frame is in the memory of this one")
        if options.relation is not None or options.query is not None:
            raise InvalidInput("relation= and query= belong to a database: leave them out for frames, and use where=.")
        records: Records = TableRecords.opened(columns, FrameSource(_arrow(frame, columns)))
    else:
        records = entry.open_records(table, columns, options)
    try:
        yield records
    finally:
        records.close()


@dataclass(frozen=True, slots=True, eq=False)
class FrameSource:
    """Columns of a frame in memory."""

    capabilities: ClassVar[Capabilities] = Capabilities(ordered=True, snapshot=True)
    table: pa.Table

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass, in batches."""
        chosen = self.table.select(list(sweep.columns.wanted))
        return sweep(chosen.to_batches(BATCH_ROWS), progress)

    def count(self, columns: Columns) -> None:
        """Counted on the way: conditions leave rows out."""

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> Groups | None:
        """There is no engine that adds up by itself."""
        return None

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit, of those that are used."""
        assert columns.unit is not None
        units = columns.used(self.table).column(columns.unit.column)
        # Units with more rows than declared are refused on the way.
        return int(np.bincount(unit_numbers(units, columns)).max(initial=0))

    def close(self) -> None:
        """There is nothing to let go of."""


def _arrow(frame: Any, columns: SurveyColumns) -> pa.Table:
    """The columns that are wanted, and the unit's, as Arrow."""
    unit = [] if columns.unit is None else [columns.unit.column]
    names = list(dict.fromkeys([*columns.wanted, *unit]))
    for name in names:
        if name not in frame.columns:
            raise InvalidInput(f"table has no column {name!r}; check outcome, covariates, categories, where and unit.")
    arrays = []
    for name in names:
        try:
            arrays.append(pa.chunked_array(_chunks(frame[name])))
        except (pa.ArrowException, DuplicateError, ValueError, TypeError, OverflowError):
            # Arrow's own sentence quotes the value that it stumbled over.
            raise one_kind(f"column {name!r}") from None
    return pa.table(dict(zip(names, arrays, strict=True)))


def _chunks(series: Any) -> list[Any]:
    column = series.to_arrow()
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
