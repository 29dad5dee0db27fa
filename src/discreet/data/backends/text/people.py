"""People of whom covariates alone are known, in files: for effects of a release, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from discreet.data.backends.base import types_of
from discreet.data.backends.duckdb import check_kinds
from discreet.data.backends.files import Part, broken, read_parquet
from discreet.data.backends.scan import BATCH_ROWS, in_order
from discreet.data.backends.text.csv import csv_batches, csv_types
from discreet.data.backends.text.fields import Field, fields_for
from discreet.data.backends.text.format import TextFormat
from discreet.data.backends.text.paths import check_names, files_of, kind_of
from discreet.data.backends.text.workbooks import WORKBOOKS, cells, values_in
from discreet.data.bounds import Bounds, Levels
from discreet.data.declared.dates import DateRange
from discreet.exceptions import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The declared covariates in a file, and columns that are kept beside them.

    Parameters
    ----------
    path
        A file or a pattern.
    bounds
        What is declared of the covariates.
    covariates
        Their columns; if not given, those that the bounds name.
    kept
        Columns that batches have as well, as they are: text of a text file. None for all.
    form
        How text is read.
    """

    path: str
    bounds: Bounds
    covariates: Sequence[str] | None = None
    kept: Sequence[str] | None = ()
    form: TextFormat = field(default_factory=TextFormat)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Pairs of covariates, named and ordered like the bounds, and of the kept columns."""
        names = in_order(self.covariates, self.bounds)[: len(self.bounds.declared)]
        if not names:
            raise InvalidInput("covariates must name the columns, in order: the bounds give theirs no names.")
        fields = fields_for(dict(zip(names, self.bounds.declared.values(), strict=True)))
        kind, files = kind_of(self.path), files_of(self.path)
        form = self.form.of_files(files, names) if kind == "CSV" else self.form
        types = self._types(kind, files, fields, form)
        check_names(types, [*names, *(self.kept or ())], self.path, kind)
        kept = list(types) if self.kept is None else list(self.kept)
        p = len(names)
        for batch in self._batches(kind, files, fields, kept, form):
            covariates = pa.RecordBatch.from_arrays(batch.columns[:p], names=list(self.bounds.declared))
            yield covariates, pa.RecordBatch.from_arrays(batch.columns[p:], names=kept)

    def table(self) -> Any:
        """All covariates as one Arrow table."""
        batches = [people for people, _ in self.batches()]
        if not batches:
            raise InvalidInput(f"{self.path!r} has no rows: give a file with at least one.")
        return pa.Table.from_batches(batches)

    def _batches(
        self, kind: str, files: Sequence[str], fields: Mapping[str, Field], kept: Sequence[str], form: TextFormat
    ) -> Iterator[Any]:
        """Batches of the covariates, then of what is kept; a column may be both."""
        if kind == "CSV":
            yield from csv_batches(files, self.path, fields, form, kept)
            return
        if kind in WORKBOOKS:
            table = cells(kind, self.path, files[0])
            read = values_in(kind, self.path, table, fields, form).columns + table.select(kept).columns
            whole = pa.Table.from_arrays(read, names=[str(place) for place in range(len(read))])
            yield from whole.combine_chunks().to_batches(BATCH_ROWS)
            return
        wanted = list(dict.fromkeys([*fields, *kept]))
        for file in files:
            for batch in Part(self.path, file, None, 0).batches(wanted):
                read = [batch.column(name) for name in (*fields, *kept)]
                yield pa.RecordBatch.from_arrays(read, names=[str(place) for place in range(len(read))])

    def _types(
        self, kind: str, files: Sequence[str], fields: Mapping[str, Field], form: TextFormat
    ) -> Mapping[str, str]:
        if kind == "CSV":
            return csv_types(files, self.path, form, fields)
        if kind in WORKBOOKS:
            return dict.fromkeys(cells(kind, self.path, files[0]).column_names, "")
        try:
            with duckdb.connect() as connection:
                types = types_of(read_parquet(connection, files))
        except duckdb.Error:
            raise InvalidInput(broken(self.path)) from None
        check_names(types, fields, self.path, kind)
        specs = zip(fields, self.bounds.declared.values(), strict=True)
        wanted = {name: isinstance(spec, Levels) and spec.is_text for name, spec in specs}
        dates = {
            name
            for name, spec in zip(fields, self.bounds.declared.values(), strict=True)
            if isinstance(spec, DateRange)
        }
        check_kinds(types, wanted, dates)
        return types
