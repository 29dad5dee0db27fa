"""PyArrow: tables in memory, and datasets, which DuckDB scans a batch at a time."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from discreet.data.backends import memory
from discreet.data.backends.base import Options, TableRecords
from discreet.data.backends.duckdb import DuckSource
from discreet.data.backends.scan import Columns
from discreet.data.records import Records
from discreet.exceptions import InvalidInput


def open_records(table: Any, columns: Columns, options: Options) -> Records:
    """A table or batch, or a dataset."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, ds.Dataset):
        options.check_alone("DuckDB scans a dataset with threads of its own")
        if options.relation is not None or options.query is not None:
            raise InvalidInput(
                "relation= and query= belong to a database: leave them out for datasets, and use where=."
            )
        try:
            relation = duckdb.connect().from_arrow(table)
        except duckdb.Error:
            raise InvalidInput(
                "table is a dataset with columns that DuckDB cannot read: select others first."
            ) from None
        made = DuckSource(relation)
        made.check(columns)
        return TableRecords.opened(columns, made)
    if not isinstance(table, pa.Table):
        raise InvalidInput(
            "table can be read only once, but every round reads it again: give a table (read_all) or a dataset instead."
        )
    return memory.open_records(table, columns, options)
