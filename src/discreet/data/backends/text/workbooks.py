"""Files of Excel and Stata, which pandas reads into memory, if it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from importlib import import_module
from typing import Any

import duckdb
import pyarrow as pa

from discreet.data._arrays import text_array
from discreet.data.backends.base import Options, types_of
from discreet.data.backends.memory import open_records
from discreet.data.backends.scan import Columns
from discreet.data.backends.text.csv import refusal_of
from discreet.data.backends.text.fields import Field, fields_of
from discreet.data.backends.text.format import TextFormat
from discreet.data.backends.text.paths import check_names
from discreet.data.records import Records
from discreet.exceptions import InvalidInput, MissingExtra

# Kinds of files, and the packages that read them.
WORKBOOKS: Mapping[str, tuple[str, ...]] = {"Excel": ("pandas", "openpyxl"), "Stata": ("pandas",)}


def open_workbook(kind: str, path: str, files: Sequence[str], columns: Columns, options: Options) -> Records:
    """One file as records in memory."""
    if len(files) > 1:
        raise InvalidInput(f"{path!r} names several {kind} files, which are read one at a time: join them first.")
    unit = [] if columns.unit is None else [columns.unit.column]
    fields = fields_of(columns) | {name: Field(name, "text") for name in unit if name not in columns.wanted}
    table = values_in(kind, path, cells(kind, path, files[0]), fields, options.text)
    return open_records(table, columns, Options())


def cells(kind: str, path: str, file: str) -> Any:
    """All columns of a file as an Arrow table: those of a spreadsheet as text."""
    frame = _read(kind, path, file).rename(columns=str)
    if kind != "Excel":
        return pa.Table.from_pandas(frame, preserve_index=False)
    # Cells have kinds of their own: as text they are read by the rules of text, each by itself.
    return pa.table({name: text_array(map(_text, frame[name].tolist())).cast(pa.string()) for name in frame.columns})


def values_in(kind: str, path: str, table: Any, fields: Mapping[str, Field], form: TextFormat) -> Any:
    """The wanted columns of such a table."""
    check_names(dict.fromkeys(table.column_names, ""), fields, path, kind)
    return values_of(table, fields, form) if kind == "Excel" else table.select(list(fields))


def values_of(table: Any, fields: Mapping[str, Field], form: TextFormat) -> Any:
    """A table of text as numbers, dates and text."""
    with duckdb.connect() as connection:
        rows = connection.from_arrow(table)
        types_of(rows)
        sentence = refusal_of(rows, fields, form)
        if sentence is not None:
            raise InvalidInput(sentence)
        return rows.project(", ".join(each.sql(form) for each in fields.values())).to_arrow_table()


def _read(kind: str, path: str, file: str) -> Any:
    needed = WORKBOOKS[kind]
    try:
        pandas, *_ = [import_module(name) for name in needed]
    except ImportError:
        raise MissingExtra(
            f"{kind} files are read by {' and '.join(needed)}: install discreet[files], or save the table as CSV."
        ) from None
    try:
        if kind == "Excel":
            # Neither types nor missing values are guessed: each cell comes as it is.
            return pandas.read_excel(file, dtype=object, keep_default_na=False, na_filter=False)
        return pandas.read_stata(file)
    except Exception:
        # pandas quotes what it stumbled over, and each reader has exceptions of its own.
        raise InvalidInput(f"{path!r} is not readable as {kind}: save it again, or as CSV.") from None


def _text(cell: Any) -> str:
    """A cell as text files write it."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)
