"""CSV and Parquet files, which may be larger than memory: Arrow decodes Parquet a batch at a time, DuckDB reads CSV.

SUM and COUNT by cell run in DuckDB. Long Parquet tables are divided among processes, one thread each.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.data.backends.base import (
    CHANGED,
    NO_MEMORY,
    Capabilities,
    Groups,
    Options,
    TableRecords,
    quoted,
    types_of,
)
from discreet.data.backends.duckdb import (
    check_kinds,
    check_types,
    csv_number,
    most_rows,
    number_or_null,
    read_csv,
    run_group,
    too_long,
)
from discreet.data.backends.scan import BATCH_ROWS, Columns, Sweep, Tally, in_order, named, run_parts, workers_for
from discreet.data.bounds import Bounds, Levels
from discreet.data.columns import too_large
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import RowProgress
from discreet.exceptions import InvalidInput

SUFFIXES = {".csv": "CSV", ".csv.gz": "CSV", ".csv.zst": "CSV", ".parquet": "Parquet"}
# Most rows that a process takes at a time, and how many times each takes some.
_PART_ROWS, _TURNS = 1_000_000, 4
# Most that is kept of CSV files.
_KEPT_BYTES = 32 * 2**20


def open_records(table: Any, columns: Columns, options: Options) -> TableRecords:
    """The files that a path or pattern names."""
    path = str(table)
    kind = _kind(path)
    if options.relation is not None or options.query is not None:
        raise InvalidInput("relation= and query= belong to a database: leave them out for files, and use where=.")
    if kind == "CSV":
        options.check_alone("DuckDB reads CSV files with threads of its own")
    files = files_of(path)
    made = ParquetSource.of(path, files, options) if kind == "Parquet" else CsvSource(path, files, _marks(files))
    try:
        made.check(columns)
    except BaseException:
        made.close()
        raise
    return TableRecords.opened(columns, made)


@dataclass(frozen=True, slots=True)
class CsvSource:
    """CSV files: commas, double quotes, names in the first line; an empty field is a missing value.

    The columns of short files are kept in memory: to read text takes longer than all that is done with its numbers.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(ordered=True, snapshot=True)
    path: str
    files: tuple[str, ...]
    marks: tuple[tuple[int, int], ...]
    kept: dict[tuple[str, ...], list[Any]] = field(default_factory=dict, repr=False, compare=False)

    def check(self, columns: Columns) -> None:
        """Refuse columns that are not there."""
        with duckdb.connect() as connection:
            try:
                types = types_of(read_csv(connection, self.files))
            except duckdb.Error:
                raise InvalidInput(_unreadable(self.files, self.path, columns.wanted)) from None
        unit = [] if columns.unit is None else [columns.unit.column]
        _check_names(types, [*columns.wanted, *unit], self.path, "CSV")

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass, in batches."""
        return sweep(self._batches(sweep.columns), progress)

    def count(self, columns: Columns) -> None:
        """Not known without reading the text."""

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> None:
        """Reading text takes longest anyway: `run` adds up."""

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit."""
        _check_marks(self.files, self.marks)
        with duckdb.connect() as connection:
            everything = read_csv(connection, self.files)
            numeric = [
                f"{csv_number(each.column)} AS {quoted(each.column)}" for each in columns.where if not each.is_text
            ]
            rows = everything.project(f"* REPLACE ({', '.join(numeric)})") if numeric else everything
            found = most_rows(rows, columns, repr(self.path))
        _check_marks(self.files, self.marks)
        return found

    def close(self) -> None:
        """Let go of columns; each pass has a connection of its own."""
        self.kept.clear()

    def _batches(self, columns: Columns) -> Iterator[Any]:
        _check_marks(self.files, self.marks)
        names, size, batches = tuple(columns.wanted), 0, list[Any]()
        if names in self.kept:
            yield from self.kept[names]
        else:
            for batch in csv_batches(self.files, self.path, columns.wanted):
                size += batch.nbytes
                batches = [*batches, batch] if size <= _KEPT_BYTES else []
                yield batch
            if size <= _KEPT_BYTES:
                self.kept[names] = batches
        _check_marks(self.files, self.marks)


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """Parquet files, divided into parts by their row groups.

    One connection serves for as long as they are needed: to open one takes longer than to ask for the files' types.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(ordered=True, snapshot=True)
    path: str
    files: tuple[str, ...]
    marks: tuple[tuple[int, int], ...]
    parts: tuple[Part, ...]
    workers: int
    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect, repr=False, compare=False)

    @classmethod
    def of(cls, path: str, files: tuple[str, ...], options: Options) -> ParquetSource:
        """Look at the files' own accounts of their rows."""
        marks = _marks(files)
        rows: dict[str, list[int]] = {}
        for file in files:
            with _parquet(path):
                meta = pq.read_metadata(file)
                rows[file] = [meta.row_group(k).num_rows for k in range(meta.num_row_groups)]
        total = sum(map(sum, rows.values()))
        workers = workers_for(options.workers, total)
        most = min(_PART_ROWS, -(-total // (_TURNS * workers)))
        parts: list[Part] = []
        for file, groups in rows.items():
            first = 0
            while first < len(groups):
                last = first + 1
                while last < len(groups) and sum(groups[first : last + 1]) <= most:
                    last += 1
                before = parts[-1].first + parts[-1].rows if parts else 0
                parts.append(Part(path, file, tuple(range(first, last)), sum(groups[first:last]), before))
                first = last
        return cls(path, files, marks, tuple(parts), workers)

    def check(self, columns: Columns) -> None:
        """Refuse columns that are not there, or do not hold what is declared."""
        unit = [] if columns.unit is None else [columns.unit.column]
        _check_schemas(self.files, self.path, [*columns.wanted, *unit])
        with _parquet(self.path):
            types = types_of(read_parquet(self.connection, self.files))
        check_types(types, columns, repr(self.path))

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass, by one process or several."""
        _check_marks(self.files, self.marks)
        tally = run_parts(sweep, self.parts, self.workers, progress)
        _check_marks(self.files, self.marks)
        return tally

    def count(self, columns: Columns) -> int | None:
        """What the files say of themselves, where all rows are used."""
        return None if columns.where else sum(part.rows for part in self.parts)

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> Groups | None:
        """Counts and sums by cell and arm, in DuckDB."""
        _check_marks(self.files, self.marks)
        with _parquet(self.path):
            relation = read_parquet(self.connection, self.files)
            found = run_group(relation, types_of(relation), columns, partition, formulas, repr(self.path))
        _check_marks(self.files, self.marks)
        return found

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit."""
        _check_marks(self.files, self.marks)
        with _parquet(self.path):
            found = most_rows(read_parquet(self.connection, self.files), columns, repr(self.path))
        _check_marks(self.files, self.marks)
        return found

    def close(self) -> None:
        """Let go of the connection; files are closed after each pass."""
        self.connection.close()


@dataclass(frozen=True, slots=True)
class Part:
    """Some row groups of one Parquet file."""

    path: str
    file: str
    groups: tuple[int, ...] | None
    rows: int
    first: int = 0

    def batches(self, columns: Iterable[str]) -> Iterator[Any]:
        """Arrow batches of the wanted columns, in their order."""
        wanted = list(columns)
        with _parquet(self.path), pq.ParquetFile(self.file, pre_buffer=False) as file:
            names = set(file.schema_arrow.names)
            groups = None if self.groups is None else list(self.groups)
            present = [name for name in wanted if name in names]
            rows = file.iter_batches(BATCH_ROWS, row_groups=groups, columns=present, use_threads=False)
            for batch in rows:
                # A column that this file lacks and others have is missing in all of its rows.
                yield pa.RecordBatch.from_arrays(
                    [batch.column(name) if name in names else pa.nulls(batch.num_rows) for name in wanted], names=wanted
                )


def read_covariates(path: str, bounds: Bounds, covariates: Sequence[str] | None = None) -> Any:
    """The declared covariates of a file as an Arrow table, in the order of the bounds.

    The file has to have these columns alone, unless ``covariates`` says which of its columns to take.
    """
    names = in_order(covariates, bounds)
    if not names:
        raise InvalidInput("covariates must name the columns, in order: the bounds give theirs no names.")
    wanted = {name: isinstance(spec, Levels) and spec.is_text for name, spec in zip(names, bounds.columns, strict=True)}
    batches = list(_covariate_batches(str(path), wanted, alone=covariates is None))
    if not batches:
        raise InvalidInput(f"{str(path)!r} has no rows: give a file with at least one.")
    return pa.Table.from_batches(batches).rename_columns(list(bounds.names))


def _covariate_batches(path: str, wanted: Mapping[str, bool], *, alone: bool) -> Iterator[Any]:
    kind, files = _kind(path), files_of(path)
    with duckdb.connect() as connection:
        try:
            read = read_csv(connection, files) if kind == "CSV" else read_parquet(connection, files)
            types = types_of(read)
        except duckdb.Error:
            raise InvalidInput(_unreadable(files, path, wanted) if kind == "CSV" else _broken(path)) from None
    _check_names(types, wanted, path, kind)
    extra = ", ".join(repr(name) for name in types if name not in wanted)
    if alone and extra:
        raise InvalidInput(
            f"{path!r} has columns that the bounds do not declare: drop {extra}, or name those to use in covariates."
        )
    if kind == "CSV":
        yield from csv_batches(files, path, wanted)
        return
    check_kinds(types, wanted)
    for file in files:
        yield from Part(path, file, None, 0).batches(wanted)


def _kind(path: str) -> str:
    kind = next((kind for suffix, kind in SUFFIXES.items() if path.lower().endswith(suffix)), None)
    if kind is None:
        raise InvalidInput(f"{path!r} is not a CSV or Parquet file by its name: it must end in {', '.join(SUFFIXES)}.")
    return kind


def files_of(path: str) -> tuple[str, ...]:
    """The files that a path or pattern names, in order."""
    if Path(path).is_file():
        return (path,)
    with duckdb.connect() as connection:
        found = connection.execute("SELECT file FROM glob(?) ORDER BY file", [path]).fetchall()
    if not found:
        raise InvalidInput(f"There is no file {path!r}: check the path.")
    return tuple(name for (name,) in found)


def read_parquet(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """Parquet files as one relation; names of directories are no columns."""
    return connection.read_parquet([glob.escape(file) for file in files], union_by_name=True, hive_partitioning=False)


def csv_batches(files: Sequence[str], path: str, wanted: Mapping[str, bool]) -> Iterator[Any]:
    """Arrow batches of float64 and text columns, in the order of ``wanted``."""
    # An open reader blocks its connection, so each pass has one of its own.
    with duckdb.connect() as connection:
        try:
            rows = read_csv(connection, files)
            chosen = [
                (f"CAST({quoted(name)} AS VARCHAR)" if text else csv_number(name)) + f" AS {quoted(name)}"
                for name, text in wanted.items()
            ]
            yield from rows.project(", ".join(chosen)).to_arrow_reader(BATCH_ROWS)
        except (MemoryError, duckdb.OutOfMemoryException):
            raise InvalidInput(NO_MEMORY) from None
        except (duckdb.Error, pa.ArrowException, OSError):
            # Arrow passes DuckDB's errors on as OSError, and their sentences quote the value that they stumbled over.
            raise InvalidInput(_unreadable(files, path, wanted)) from None


def _check_names(types: Mapping[str, str], wanted: Sequence[str] | Mapping[str, bool], path: str, kind: str) -> None:
    missing = ", ".join(repr(name) for name in wanted if name not in types)
    if missing:
        # What stands in the first line of a CSV file without a header is a record, so it is not printed.
        hint = "its first line must hold the names" if kind == "CSV" else f"it has {', '.join(map(repr, types))}"
        raise InvalidInput(f"{path!r} has no column {missing}: {hint}.")


def _check_schemas(files: Sequence[str], path: str, wanted: Sequence[str]) -> None:
    """Refuse files whose columns DuckDB, which joins them in its own way, and Arrow would not read alike."""
    found: dict[str, Any] = {}
    known = {name.lower(): name for name in wanted}
    for file in files:
        with _parquet(path):
            schema = pq.read_schema(file)
        if len({name.lower() for name in schema.names}) < len(schema.names):
            raise InvalidInput(f"{path!r} has two columns with the same name, apart from case: rename one.")
        for column in schema:
            name = known.get(column.name.lower(), column.name)
            if name != column.name and name not in schema.names and name in wanted:
                raise InvalidInput(
                    f"{path!r} has no column {name!r} in some file, but {column.name!r}: give it one name everywhere."
                )
            if name in wanted and found.setdefault(name, _plain(column.type)) != _plain(column.type):
                raise InvalidInput(
                    f"{named(name)} has other types in some files of {path!r} than in others: write it as one type."
                )


def _plain(kind: Any) -> Any:
    """A type, texts of every kind being one."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(plain) or pa.types.is_string_view(plain) else plain


def _broken(path: str) -> str:
    return f"{path!r} is not readable as Parquet: check that it is complete, and of one schema if there are several."


def _unreadable(files: Sequence[str], path: str, wanted: Mapping[str, bool]) -> str:
    numeric = [name for name, text in wanted.items() if not text]
    columns = [quoted(name) for name in numeric]
    junk = [f"bool_or({column} IS NOT NULL AND {number_or_null(column)} IS NULL)" for column in columns]
    long = [f"bool_or({too_long(column)})" for column in columns]
    try:
        with duckdb.connect() as connection:
            found = read_csv(connection, files).aggregate(", ".join([*junk, *long])).fetchall()[0]
    except duckdb.Error:
        found = ()
    guilty = ", ".join(repr(name) for name, is_junk in zip(numeric, found[: len(numeric)], strict=False) if is_junk)
    if guilty:
        return f"column {guilty} must hold numbers, but has text: convert it, or declare its levels."
    for name, is_long in zip(numeric, found[len(numeric) :], strict=False):
        if is_long:
            return too_large(named(name))
    return f"{path!r} is not readable as CSV: use commas, double quotes, UTF-8, and equally many fields in each line."


def _marks(files: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Sizes and times of change."""
    try:
        return tuple((found.st_size, found.st_mtime_ns) for found in map(os.stat, files))
    except OSError:
        raise InvalidInput(CHANGED) from None


def _check_marks(files: Sequence[str], marks: tuple[tuple[int, int], ...]) -> None:
    if _marks(files) != marks:
        raise InvalidInput(CHANGED)


@contextmanager
def _parquet(path: str) -> Iterator[None]:
    try:
        yield
    except (MemoryError, duckdb.OutOfMemoryException):
        raise InvalidInput(NO_MEMORY) from None
    except (duckdb.Error, pa.ArrowException, OSError):
        raise InvalidInput(_broken(path)) from None
