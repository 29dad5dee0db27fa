"""Where records are: files below one directory, or a table of a database. Only curators name them."""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from discreet.bounds import Bounds, Levels
from discreet.engines import open_table
from discreet.errors import InvalidInput
from discreet.records import ArrayRecords

_DATABASE = re.compile(r"(sqlite|postgresql(\+psycopg)?)://")
_ROWS = 65_536


def is_database(source: str) -> bool:
    """Whether a source is a table rather than files."""
    return bool(_DATABASE.match(source))


def located(source: str, root: str) -> str:
    """The source in full; files have to lie below the root, links resolved, and to exist.

    Parameters
    ----------
    source : str
        A path or pattern of CSV or Parquet files, or an address such as ``postgresql://host/base#table``.
    root : str
        The directory that holds all data.
    """
    if "\0" in source or not source.strip():
        raise InvalidInput("source must be a path, a pattern, or the address of a table: write one of them.")
    if is_database(source):
        if not source.partition("#")[2]:
            raise InvalidInput("source must name the table after a #, as in postgresql://host/base#table: add it.")
        return source
    home = Path(root).resolve()
    pattern = str(home / source)
    found = [Path(path).resolve() for path in glob.glob(pattern)]
    if not found:
        raise InvalidInput("source matches no file: check the path, which begins at the service's data directory.")
    if not all(path.is_file() and path.is_relative_to(home) for path in found):
        raise InvalidInput("source leaves the service's data directory: move the files into it.")
    return pattern


def fingerprint(source: str) -> str:
    """What tells that files were changed or went away: their names, sizes and times, hashed."""
    if is_database(source):
        return "a table"
    hashed = hashlib.sha256()
    for path in sorted(glob.glob(source)):
        facts = Path(path).stat()
        hashed.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    return hashed.hexdigest() if glob.glob(source) else "nothing"


def records_in(source: str, *, outcome: str, treatment: str, bounds: Bounds, propensity: float | str | None) -> int:
    """The number of records, once all of them were found fit for use."""
    if not is_database(source):
        facts: Any = {"outcome": outcome, "treatment": treatment, "bounds": bounds, "propensity": propensity}
        with open_table(source, **facts) as records:
            # Adding ones up reads everything, and refuses what cannot be used.
            return int(records.sum(lambda chunk: np.array([len(chunk.t)]))[0])
    table = table_of(source, _wanted(outcome, treatment, bounds, propensity))
    X = table.select(list(bounds.names)) if bounds.p else None
    known = table[propensity] if isinstance(propensity, str) else propensity
    return ArrayRecords.of(table[outcome], table[treatment], X, bounds=bounds, propensity=known).n


def opened(source: str, *, outcome: str, treatment: str, bounds: Bounds, propensity: float | str | None) -> Any:
    """What ``fit_table`` takes: the path of files, or a table in memory."""
    if not is_database(source):
        return source
    return table_of(source, _wanted(outcome, treatment, bounds, propensity))


def in_memory(source: str, outcome: str, treatment: str, bounds: Bounds) -> Any:
    """All columns of files that were checked before, as an Arrow table: numbers, and text where levels are text."""
    specs = {outcome: bounds.outcome_range, treatment: bounds.arms}
    specs |= dict(zip(bounds.names, bounds.columns, strict=True))
    text = {name for name, spec in specs.items() if isinstance(spec, Levels) and spec.is_text}
    with duckdb.connect() as connection:
        if source.lower().endswith(".parquet"):
            found = connection.read_parquet(source, union_by_name=True)
        else:
            found = connection.read_csv(source, header=True, sep=",", all_varchar=True, union_by_name=True)
        columns = [duckdb.ColumnExpression(name).cast("VARCHAR" if name in text else "DOUBLE") for name in specs]
        return found.select(*columns).to_arrow_table().rename_columns(list(specs))


def table_of(source: str, columns: Sequence[str]) -> Any:
    """Columns of a table in a database, as an Arrow table."""
    url, _, name = source.partition("#")
    schema, _, table = name.rpartition(".")
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    # Names are quoted by SQLAlchemy; nothing of them is read as SQL.
    made = sa.table(table, *(sa.column(column) for column in columns), schema=schema or None)
    columns_: list[list[Any]] = [[] for _ in columns]
    try:
        with engine.connect().execution_options(yield_per=_ROWS) as connection:
            for part in connection.execute(sa.select(*made.c)).partitions():
                for column, values in zip(columns_, zip(*part, strict=True), strict=True):
                    column.extend(values)
    except sa.exc.SQLAlchemyError:
        raise InvalidInput("source cannot be read: check the address, the table, and the columns' names.") from None
    finally:
        engine.dispose()
    try:
        return pa.table({column: pa.array(values) for column, values in zip(columns, columns_, strict=True)})
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise InvalidInput("source has a column that mixes kinds of values: convert it first.") from None


def _wanted(outcome: str, treatment: str, bounds: Bounds, propensity: float | str | None) -> list[str]:
    named = [propensity] if isinstance(propensity, str) else []
    return list(dict.fromkeys([outcome, treatment, *bounds.names, *named]))
