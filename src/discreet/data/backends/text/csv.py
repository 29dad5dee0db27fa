"""CSV files, which may be larger than memory: DuckDB reads text, and `fields` say how it becomes values."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.csv as pcsv

from discreet.data.backends.base import NO_MEMORY, Capabilities, Options, quoted, types_of
from discreet.data.backends.duckdb import most_rows
from discreet.data.backends.scan import BATCH_ROWS, Columns, Sweep, Tally, named
from discreet.data.backends.text.fields import Field, fields_of, too_long
from discreet.data.backends.text.format import TextFormat, header, names
from discreet.data.backends.text.paths import check_marks, check_names, marks_of
from discreet.data.columns import too_large
from discreet.data.declared.dates import not_dates
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import RowProgress
from discreet.exceptions import InvalidInput

# Most that is kept of CSV files.
_KEPT_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class CsvSource:
    """CSV files with double quotes and names in the first line, as their format says.

    The columns of short files are kept in memory: to read text takes longer than all that is done with its numbers.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(ordered=True, snapshot=True)
    path: str
    files: tuple[str, ...]
    marks: tuple[tuple[int, int], ...]
    form: TextFormat = field(default_factory=TextFormat)
    kept: dict[tuple[str, ...], list[Any]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, path: str, files: tuple[str, ...], columns: Columns, options: Options) -> CsvSource:
        """Look at the header, which may say what separates fields."""
        unit = [] if columns.unit is None else [columns.unit.column]
        form = options.text.of_files(files, [*columns.wanted, *unit])
        return cls(path, files, marks_of(files), form)

    def check(self, columns: Columns) -> None:
        """Refuse columns that are not there."""
        types = csv_types(self.files, self.path, self.form, fields_of(columns))
        unit = [] if columns.unit is None else [columns.unit.column]
        check_names(types, [*columns.wanted, *unit], self.path, "CSV")

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass, in batches."""
        return sweep(self._batches(sweep.columns), progress)

    def count(self, columns: Columns) -> None:
        """Not known without reading the text."""

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> None:
        """Reading text takes longest anyway: `run` adds up."""

    def most_rows(self, columns: Columns) -> int:
        """Most rows of one unit."""
        check_marks(self.files, self.marks)
        assert columns.unit is not None
        unit, made = columns.unit.column, fields_of(columns)
        with duckdb.connect() as connection:
            everything = read_csv(connection, self.files, self.form)
            # Units are compared as text, and what is missing is nobody's.
            conditions = [made[each.column].sql(self.form) for each in columns.where if each.column != unit]
            by = Field(unit, "text").sql(self.form)
            found = most_rows(everything.project(", ".join([by, *dict.fromkeys(conditions)])), columns, repr(self.path))
        check_marks(self.files, self.marks)
        return found

    def close(self) -> None:
        """Let go of columns; each pass has a connection of its own."""
        self.kept.clear()

    def _batches(self, columns: Columns) -> Iterator[Any]:
        check_marks(self.files, self.marks)
        wanted, size, batches = tuple(columns.wanted), 0, list[Any]()
        if wanted in self.kept:
            yield from self.kept[wanted]
        else:
            for batch in csv_batches(self.files, self.path, fields_of(columns), self.form):
                size += batch.nbytes
                batches = [*batches, batch] if size <= _KEPT_BYTES else []
                yield batch
            if size <= _KEPT_BYTES:
                self.kept[wanted] = batches
        check_marks(self.files, self.marks)


def csv_types(files: Sequence[str], path: str, form: TextFormat, fields: Mapping[str, Field]) -> dict[str, str]:
    """Names of the columns, all of them text."""
    with duckdb.connect() as connection:
        try:
            return types_of(read_csv(connection, files, form))
        except (duckdb.Error, pa.ArrowException, OSError, UnicodeError):
            raise InvalidInput(_unreadable(files, path, fields, form)) from None


def csv_batches(
    files: Sequence[str], path: str, fields: Mapping[str, Field], form: TextFormat, kept: Sequence[str] = ()
) -> Iterator[Any]:
    """Arrow batches of numbers, dates and text, in the order of ``fields``; then columns that are kept as they are."""
    # An open reader blocks its connection, so each pass has one of its own.
    with duckdb.connect() as connection:
        try:
            rows = read_csv(connection, files, form)
            chosen = [each.sql(form) for each in fields.values()]
            chosen += [f"{quoted(name)} AS kept_{place}" for place, name in enumerate(kept)]
            yield from rows.project(", ".join(chosen)).to_arrow_reader(BATCH_ROWS)
        except (MemoryError, duckdb.OutOfMemoryException):
            raise InvalidInput(NO_MEMORY) from None
        except (duckdb.Error, pa.ArrowException, OSError, UnicodeError):
            # Arrow passes DuckDB's errors on as OSError, and their sentences quote the value that they stumbled over.
            raise InvalidInput(_unreadable(files, path, fields, form)) from None


def read_csv(connection: duckdb.DuckDBPyConnection, files: Sequence[str], form: TextFormat) -> duckdb.DuckDBPyRelation:
    """CSV files as one relation of text.

    Everything that DuckDB would otherwise guess from the first records is fixed, types included: how one record is read
    must not depend on the others.
    """
    if form.encoding not in (None, "utf-8"):
        return connection.from_arrow(_decoded(files, form))
    return connection.read_csv(
        [glob.escape(file) for file in files],  # type: ignore[arg-type]
        header=True,
        sep=form.delimiter or ",",
        quotechar='"',
        escapechar='"',
        comment="",
        skiprows=0,
        all_varchar=True,
        union_by_name=True,
        hive_partitioning=False,
    )


def _decoded(files: Sequence[str], form: TextFormat) -> Any:
    """Batches of text from files of another encoding, which Arrow decodes as it goes."""
    separator = form.delimiter or ","
    found = {file: names(header(file, form.encoding), separator) for file in files}
    everything = list(dict.fromkeys(name for listed in found.values() for name in listed))
    schema = pa.schema([(name, pa.string()) for name in everything])

    def batches() -> Iterator[Any]:
        for file, listed in found.items():
            reader = pcsv.open_csv(
                file,
                read_options=pcsv.ReadOptions(encoding=form.encoding),
                parse_options=pcsv.ParseOptions(delimiter=separator, newlines_in_values=True),
                convert_options=pcsv.ConvertOptions(
                    column_types=dict.fromkeys(listed, pa.string()), null_values=[""], strings_can_be_null=True
                ),
            )
            for batch in reader:
                kept = [
                    batch.column(name) if name in listed else pa.nulls(len(batch), pa.string()) for name in everything
                ]
                yield pa.RecordBatch.from_arrays(kept, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def refusal_of(rows: duckdb.DuckDBPyRelation, fields: Mapping[str, Field], form: TextFormat) -> str | None:
    """Which columns of text do not hold what was declared, as a sentence without data; None where all do."""
    numeric = [each for each in fields.values() if each.kind in ("number", "truth")]
    asked = [f"bool_or({each.junk(form)})" for each in fields.values()]
    asked += [f"bool_or({too_long(quoted(each.name))})" for each in numeric]
    found = rows.aggregate(", ".join(asked)).fetchall()[0]
    junk = [each for each, is_junk in zip(fields.values(), found[: len(fields)], strict=True) if is_junk]
    if junk and junk[0].kind == "date":
        return not_dates(named(junk[0].name))
    if junk:
        guilty = ", ".join(repr(each.name) for each in junk if each.kind != "date")
        return (
            f"column {guilty} must hold numbers, but has text: convert it, declare its levels, name in na= what means "
            "missing, or say decimal=',' if that is how fractions are written."
        )
    for each, is_long in zip(numeric, found[len(fields) :], strict=True):
        if is_long:
            return too_large(named(each.name))
    return None


def _unreadable(files: Sequence[str], path: str, fields: Mapping[str, Field], form: TextFormat) -> str:
    try:
        with duckdb.connect() as connection:
            sentence = refusal_of(read_csv(connection, files, form), fields, form)
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeError):
        sentence = None
    return sentence or (
        f"{path!r} is not readable as CSV: use double quotes and equally many fields in each line, and say encoding= "
        "if it is not UTF-8, or delimiter= if it is none of comma, semicolon, tab and bar."
    )
