"""Where records are: files below one directory, or a table of a database. Only curators name them."""

from __future__ import annotations

import glob
import hashlib
import re
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.backends.files import read_parquet
from discreet.data.backends.text.csv import csv_batches
from discreet.data.backends.text.fields import fields_for
from discreet.data.backends.text.format import TextFormat
from discreet.data.backends.text.paths import files_of
from discreet.data.bounds import Bounds, Levels
from discreet.data.expressions import Y, number
from discreet.data.partition import Cut, Partition
from discreet.exceptions import InvalidInput

_DATABASE = re.compile(r"(sqlite|postgresql(\+psycopg)?)://")
_SQLITE = "sqlite:///"
_ROWS = 65_536


def is_database(source: str) -> bool:
    """Whether a source is a table rather than files."""
    return bool(_DATABASE.match(source))


def is_sqlite(source: str) -> bool:
    """Whether a source is a table in a file of SQLite."""
    return source.startswith(_SQLITE)


def located(source: str, root: str, others: Sequence[str] = ()) -> str:
    """The source in full; files have to lie below the root or another directory, links resolved, and to exist.

    Parameters
    ----------
    source : str
        A path or pattern of CSV or Parquet files, ``sqlite:///file#table``, or ``postgresql://host/base#table``.
    root : str
        The directory at which paths begin.
    others : sequence of str
        Further directories that files may lie below.
    """
    if "\0" in source or not source.strip():
        raise InvalidInput("source must be a path, a pattern, or the address of a table: write one of them.")
    home = Path(root).resolve()
    homes = [home, *(Path(each).resolve() for each in others)]
    if not is_database(source):
        path = home / source
        # Letters of the directory's own name are no pattern.
        found = str(path if _is_file(path) else Path(glob.escape(str(home))) / source)
        _check_below(homes, found)
        return found
    url, _, table = source.partition("#")
    if not table:
        raise InvalidInput("source must name the table after a #, as in postgresql://host/base#table: add it.")
    if not url.startswith("sqlite"):
        return source
    if not url.startswith(_SQLITE):
        raise InvalidInput("source must be written as sqlite:///file#table: the path begins at the data directory.")
    found = f"{_SQLITE}{home / url.removeprefix(_SQLITE)}#{table}"
    if not _is_file(Path(_file(found))):
        raise InvalidInput("source matches no file: check the path, which begins at the service's data directory.")
    _check_below(homes, found)
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # Too long a name.
        return False


def _check_below(homes: Sequence[Path], source: str) -> None:
    """Refuse files that do not lie in one of the directories, links resolved."""
    try:
        found = [Path(file).resolve() for file in files_of_source(source)]
    except (ValueError, OSError, duckdb.Error):
        # There is none, or there cannot be one of such a name.
        raise InvalidInput(
            "source matches no file: check the path, which begins at the service's data directory."
        ) from None
    if not all(file.is_file() and any(map(file.is_relative_to, homes)) for file in found):
        raise InvalidInput("source leaves the service's data directory: move the files into it.")


def files_of_source(source: str) -> tuple[str, ...]:
    """The files of a source, by the same rules by which they are read."""
    if not is_database(source):
        # What is a file's name is no pattern: DuckDB need not be asked.
        return (source,) if _is_file(Path(source)) else files_of(source)
    if not _is_file(Path(_file(source))):
        raise InvalidInput("source is not there any more: put the file back, or have the data set checked again.")
    log = f"{_file(source)}-wal"
    return (_file(source), log) if _is_file(Path(log)) else (_file(source),)


def fingerprint(source: str) -> str:
    """What shows that files were changed or went away: their names, sizes and times, hashed."""
    if is_database(source) and not source.startswith(_SQLITE):
        return "a table"
    try:
        found = files_of_source(source)
    except InvalidInput:
        return "nothing"
    hashed = hashlib.sha256()
    for path in found:
        facts = Path(path).stat()
        hashed.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    return hashed.hexdigest()


def records_in(source: str, spec: TableSpec) -> int:
    """The number of records, once all of them were found fit for use."""
    facts: Any = {"outcome": spec.outcome, "treatment": spec.treatment, "propensity": spec.propensity}
    table, options = opened(source, bounds=spec.bounds, further=[name for _, name in spec.further], **facts)
    # By both ways in which fits read: engines add up cells by themselves, and rows are sent here. Either reads
    # everything, and refuses what cannot be used.
    steps = [(each * number(2.0**30)).rint() for each in (Y, Y * Y)]
    with open_table(table, spec, Options(**options)) as records:
        records.group_sums(_whole(spec.bounds), steps)
    with open_table(table, spec, Options(**options)) as records:
        return int(records.sum(lambda chunk: np.array([len(chunk.t)]))[0])


def _whole(bounds: Bounds) -> Partition:
    """One cell that all covariates have a part in."""
    cuts = (
        Cut(column=j, groups=(0,) * len(spec.levels)) if isinstance(spec, Levels) else Cut(column=j, edges=())
        for j, spec in enumerate(bounds.columns)
    )
    return Partition(tuple(cuts), bounds)


def opened(
    source: str,
    *,
    outcome: str,
    treatment: str,
    bounds: Bounds,
    propensity: float | str | None,
    further: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """What ``fit_table`` takes, and the options with it: files, an address and its table, or a table in memory."""
    if not is_database(source):
        return source, {}
    url, _, name = source.partition("#")
    if not url.startswith("sqlite"):
        return url.replace("postgresql+psycopg://", "postgresql://", 1), {"relation": name}
    return table_of(source, [*_wanted(outcome, treatment, bounds, propensity), *further]), {}


def in_memory(source: str, outcome: str, treatment: str, bounds: Bounds) -> Any:
    """All columns of a source that was checked before, as an Arrow table: numbers, and text where levels are text."""
    if is_database(source):
        return table_of(source, _wanted(outcome, treatment, bounds, None))
    specs = {outcome: bounds.outcome_column, treatment: bounds.arms}
    specs |= bounds.declared
    if not source.lower().endswith(".parquet"):
        form = TextFormat().of_files(files_of(source), list(specs))
        return pa.Table.from_batches(csv_batches(files_of(source), source, fields_for(specs), form))
    text = {name for name, spec in specs.items() if isinstance(spec, Levels) and spec.is_text}
    with duckdb.connect() as connection:
        found = read_parquet(connection, files_of(source))
        columns = [duckdb.ColumnExpression(name).cast("VARCHAR" if name in text else "DOUBLE") for name in specs]
        return found.select(*columns).to_arrow_table().rename_columns(list(specs))


def table_of(source: str, columns: Sequence[str]) -> Any:
    """Columns of a table in a database, as an Arrow table."""
    url, _, name = source.partition("#")
    schema, _, table = name.rpartition(".")
    if url.startswith("sqlite"):
        engine = sa.create_engine("sqlite://", creator=lambda: _read_only(_file(source)), poolclass=sa.NullPool)
    else:
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


def _file(source: str) -> str:
    """The file of a table in SQLite."""
    return source.partition("#")[0].removeprefix(_SQLITE)


def _read_only(path: str) -> sqlite3.Connection:
    """A connection that neither makes a file nor changes one."""
    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)


def _wanted(outcome: str, treatment: str, bounds: Bounds, propensity: float | str | None) -> list[str]:
    named = [propensity] if isinstance(propensity, str) else []
    return list(dict.fromkeys([outcome, treatment, *bounds.declared, *named]))
