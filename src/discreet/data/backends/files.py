"""Files, by their names: Parquet, which Arrow decodes a batch at a time; text and workbooks have a package.

SUM and COUNT by cell run in DuckDB. Long Parquet tables are divided among processes, one thread each.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.data.backends.base import NO_MEMORY, Capabilities, Groups, Options, TableRecords, types_of
from discreet.data.backends.duckdb import check_types, most_rows, run_group
from discreet.data.backends.scan import BATCH_ROWS, Columns, Sweep, Tally, named, run_parts, workers_for
from discreet.data.backends.text.csv import CsvSource
from discreet.data.backends.text.paths import check_marks, files_of, kind_of, marks_of
from discreet.data.backends.text.workbooks import WORKBOOKS, open_workbook
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import Records, RowProgress
from discreet.exceptions import InvalidInput

# Most rows that a process takes at a time, and how many times each takes some.
_PART_ROWS, _TURNS = 1_000_000, 4


def open_records(table: Any, columns: Columns, options: Options) -> Records:
    """The files that a path or pattern names."""
    path = str(table)
    kind = kind_of(path)
    if options.relation is not None or options.query is not None:
        raise InvalidInput("relation= and query= belong to a database: leave them out for files, and use where=.")
    if kind != "Parquet":
        options.check_alone(f"{kind} files are read by this process, with threads of their own")
    if kind not in ("CSV", "Excel"):
        options.check_no_text(f"a {kind} file")
    files = files_of(path)
    if kind in WORKBOOKS:
        return open_workbook(kind, path, files, columns, options)
    made = ParquetSource.of(path, files, options) if kind == "Parquet" else CsvSource.of(path, files, columns, options)
    try:
        made.check(columns)
    except BaseException:
        made.close()
        raise
    return TableRecords.opened(columns, made)


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
        marks = marks_of(files)
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
        check_marks(self.files, self.marks)
        tally = run_parts(sweep, self.parts, self.workers, progress)
        check_marks(self.files, self.marks)
        return tally

    def count(self, columns: Columns) -> int | None:
        """What the files say of themselves, where all rows are used."""
        return None if columns.where else sum(part.rows for part in self.parts)

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> Groups | None:
        """Counts and sums by cell and arm, in DuckDB."""
        check_marks(self.files, self.marks)
        with _parquet(self.path):
            relation = read_parquet(self.connection, self.files)
            found = run_group(relation, types_of(relation), columns, partition, formulas, repr(self.path))
        check_marks(self.files, self.marks)
        return found

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit."""
        check_marks(self.files, self.marks)
        with _parquet(self.path):
            found = most_rows(read_parquet(self.connection, self.files), columns, repr(self.path))
        check_marks(self.files, self.marks)
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


def read_parquet(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """Parquet files as one relation; names of directories are no columns."""
    return connection.read_parquet([glob.escape(file) for file in files], union_by_name=True, hive_partitioning=False)


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


def broken(path: str) -> str:
    """The refusal of a file that is no Parquet."""
    return f"{path!r} is not readable as Parquet: check that it is complete, and of one schema if there are several."


@contextmanager
def _parquet(path: str) -> Iterator[None]:
    try:
        yield
    except (MemoryError, duckdb.OutOfMemoryException):
        raise InvalidInput(NO_MEMORY) from None
    except (duckdb.Error, pa.ArrowException, OSError):
        raise InvalidInput(broken(path)) from None
