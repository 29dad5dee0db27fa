"""Frames in memory: pandas, polars and Arrow, and whatever else narwhals knows as an eager frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from discreet.data._arrays import IntArray
from discreet.data.backends.base import Options, missing_unit, too_many_rows
from discreet.data.backends.scan import Columns, named
from discreet.data.columns import arrow
from discreet.data.frames import vector
from discreet.data.in_memory import ArrayRecords
from discreet.exceptions import InvalidInput


def open_records(table: Any, columns: Columns, options: Options) -> ArrayRecords:
    """Records in memory; columns are referred to, not copied, unless a filter leaves rows out."""
    options.check_alone("a frame is in the memory of this one")
    if options.relation is not None or options.query is not None:
        raise InvalidInput("relation= and query= belong to a database: leave them out for frames, and use where=.")
    try:
        frame = nw.from_native(table, eager_only=True)
    except DuplicateError:
        raise InvalidInput("table has two columns with the same name: rename one.") from None
    except TypeError:
        raise InvalidInput(
            "table must be a path, or a frame of pandas, polars, Arrow, DuckDB or Spark: convert it; arrays go to fit."
        ) from None
    unit = [] if columns.unit is None else [columns.unit.column]
    for name in [*columns.wanted, *unit]:
        if name not in frame.columns:
            raise InvalidInput(
                f"table has no column {name!r}; check outcome, treatment, covariates, propensity, where and unit."
            )
    used = np.ones(len(frame), dtype=bool)
    for condition in columns.where:
        used &= condition.mask(vector(frame[condition.column].to_native(), named(condition.column)))
    if not used.all():
        frame = frame.filter(used.tolist())
    units = None
    if columns.unit is not None:
        units = unit_numbers(vector(frame[columns.unit.column].to_native(), named(columns.unit.column)), columns)
    by_column = isinstance(columns.propensity, str)
    records = ArrayRecords.of(
        frame[columns.outcome].to_native(),
        frame[columns.treatment].to_native(),
        frame.select(list(dict.fromkeys(columns.covariates))).to_native() if columns.covariates else None,
        bounds=columns.bounds,
        propensity=frame[columns.propensity].to_native() if by_column else columns.propensity,
        unit=columns.unit,
        sample_by=None if columns.sample_by is None else frame[columns.sample_by].to_native(),
        public=columns.public,
    )
    if columns.further:
        values = {each: frame[name].to_native() for each, name in columns.further}
        records = records.beside(values, {each.role: named(name) for each, name in columns.further})
    return replace(records, units=units)


def unit_numbers(values: Any, columns: Columns) -> IntArray:
    """A number for each row that says whose it is; units with more rows than declared are refused."""
    assert columns.unit is not None
    column = arrow(values, named(columns.unit.column))
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or _is_text(kind)):
        raise InvalidInput(
            f"{named(columns.unit.column)} must hold whole numbers or text, as it says whose row it is: convert it."
        )
    if column.null_count:
        raise missing_unit(columns.unit.column)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    numbers: IntArray = column.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if len(numbers) and np.bincount(numbers).max() > columns.unit.max_rows:
        raise too_many_rows(columns.unit)
    return numbers


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
