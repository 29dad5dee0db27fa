"""Records in CSV and Parquet files, read by DuckDB a batch at a time, so that they may be larger than memory."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from discreet.bounds import Bounds, Levels
from discreet.errors import InvalidInput, MissingBounds
from discreet.frames import match_names
from discreet.records import CHUNK_ROWS, Chunk, IntArray, Kernel, Names, OnRows, add_up, admit, chunks, hold

# A multiple of the chunk length, so that only the last chunk of a batch is short.
_BATCH_ROWS = 16 * CHUNK_ROWS
_SUFFIXES = {".csv": "CSV", ".csv.gz": "CSV", ".csv.zst": "CSV", ".parquet": "Parquet"}
_NUMERIC = (
    {"boolean", "decimal", "double", "float"}
    | {"tinyint", "smallint", "integer", "bigint", "hugeint"}
    | {"utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"}
)
_TEXT = {"enum", "varchar"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecords:
    """Records in one file, or in all files that match a pattern; each sum is one pass over them."""

    n: int
    bounds: Bounds
    path: str
    outcome: str
    treatment: str
    covariates: tuple[str, ...]
    propensity: str | float | None

    @classmethod
    def of(
        cls,
        path: str | Path,
        *,
        outcome: str,
        treatment: str,
        covariates: Sequence[str] | None = None,
        bounds: Bounds,
        propensity: str | float | None = None,
    ) -> "FileRecords":
        """Check everything in a first pass, which also counts the records.

        Parameters
        ----------
        path : str or Path
            A CSV file (commas, double quotes, names in the first line; an empty field is a missing value), a Parquet
            file, or a pattern with ``*`` for several of them. The name's end says which.
        outcome, treatment : str
            Names of columns.
        covariates : list of str, optional
            Names of columns; if not given, those that the bounds name.
        bounds : Bounds
            Public facts about the records.
        propensity : float or str, optional
            Probability of treatment where it is known by design, or the column that holds it.
        """
        if not isinstance(bounds, Bounds):
            raise MissingBounds("Records need bounds=Bounds(outcome=(low, high), ...): declare them.")
        records = cls(
            n=0,
            bounds=bounds,
            path=str(path),
            outcome=outcome,
            treatment=treatment,
            covariates=_in_order(covariates, bounds),
            propensity=float(propensity) if isinstance(propensity, Real) else propensity,
        )
        columns = list(records._wanted())
        if propensity is not None and not isinstance(propensity, str | Real):
            raise InvalidInput(
                "propensity must be a number or the name of a column of the file: name one of its columns."
            )
        if len(set(columns)) < 2 + bounds.p + isinstance(propensity, str):
            raise InvalidInput("outcome, treatment, covariates and propensity must be different columns: choose again.")
        return replace(records, n=admit(records._chunks()))

    def sum(self, kernel: Kernel, on_rows: OnRows | None = None) -> IntArray:
        """Add up ``kernel(chunk)``, an int64 array; ``on_rows`` is told the number of rows just finished."""
        return add_up(self._chunks(), kernel, on_rows, n=self.n)

    def _wanted(self) -> dict[str, bool]:
        """The columns to read, in order, and whether they must hold text rather than numbers."""
        wanted = {self.outcome: False, self.treatment: self.bounds.arms.is_text}
        for name, spec in zip(self.covariates, self.bounds.columns, strict=True):
            wanted[name] = isinstance(spec, Levels) and spec.is_text
        if isinstance(self.propensity, str):
            wanted[self.propensity] = False
        return wanted

    def _chunks(self) -> Iterator[Chunk]:
        p, bounds = self.bounds.p, self.bounds
        names = Names(
            _named(self.outcome),
            _named(self.treatment),
            tuple(_named(name) for name in self.covariates),
            _named(self.propensity) if isinstance(self.propensity, str) else "propensity",
        )
        for batch in _batches(self.path, self._wanted()):
            y, t, *x = (batch.column(j) for j in range(2 + p))
            e: Any = self.propensity
            if isinstance(e, str):
                e = batch.column(2 + p)
            elif e is not None:
                e = np.broadcast_to(e, batch.num_rows)
            yield from chunks(hold(y, t, x, e, bounds=bounds, names=names), bounds, names)


def read_covariates(path: str, bounds: Bounds, covariates: Sequence[str] | None = None) -> Any:
    """The declared covariates of a file as an Arrow table, in the order of the bounds.

    The file has to have these columns alone, unless ``covariates`` says which of its columns are meant.
    """
    names = _in_order(covariates, bounds)
    if not names:
        raise InvalidInput("covariates must name the columns, in order: the bounds give theirs no names.")
    specs = zip(names, bounds.columns, strict=True)
    wanted = {name: isinstance(spec, Levels) and spec.is_text for name, spec in specs}
    batches = list(_batches(str(path), wanted, alone=covariates is None))
    if not batches:
        raise InvalidInput(f"{str(path)!r} has no rows: give a file with at least one.")
    return pa.Table.from_batches(batches).rename_columns(list(bounds.names))


def _in_order(covariates: Sequence[str] | None, bounds: Bounds) -> tuple[str, ...]:
    if isinstance(covariates, str):
        raise InvalidInput("covariates takes a list of column names: put the name in a list.")
    if covariates is None and bounds.named:
        return bounds.names
    given = tuple(covariates or ())
    if bounds.named:
        match_names(given, bounds.names, "covariates")
        return bounds.names
    if len(given) != bounds.p:
        raise InvalidInput(
            f"covariates names {len(given)} columns, but the bounds declare {bounds.p}: name each of them."
        )
    return given


def _batches(path: str, wanted: dict[str, bool], *, alone: bool = False) -> Iterator[Any]:
    """Arrow batches of float64 and text columns, in the order of ``wanted``; ``alone`` if there may be no others."""
    kind = next((kind for suffix, kind in _SUFFIXES.items() if path.lower().endswith(suffix)), None)
    if kind is None:
        raise InvalidInput(f"{path!r} is not a CSV or Parquet file by its name: it must end in {', '.join(_SUFFIXES)}.")
    # An open reader blocks its connection, so each pass has one of its own.
    with duckdb.connect() as connection:
        try:
            source = _source(connection, path, kind)
            _check_columns(source, path, kind, wanted, alone)
            expressions = [_text(name) if text else _number(name, kind) for name, text in wanted.items()]
            yield from source.project(", ".join(expressions)).to_arrow_reader(_BATCH_ROWS)
        except (duckdb.Error, pa.ArrowException, OSError):
            # Arrow passes DuckDB's errors on as OSError, and their sentences quote the value that they stumbled over.
            raise InvalidInput(_unreadable(path, kind, wanted)) from None


def _source(connection: duckdb.DuckDBPyConnection, path: str, kind: str) -> duckdb.DuckDBPyRelation:
    pattern = glob.escape(path) if Path(path).is_file() else path
    if connection.execute("SELECT count(*) FROM glob(?)", [pattern]).fetchall() == [(0,)]:
        raise InvalidInput(f"There is no file {path!r}: check the path.")
    if kind == "Parquet":
        return connection.read_parquet(pattern, union_by_name=True)
    # Everything that DuckDB would otherwise guess from the first records is fixed, types included: how one record is
    # read must not depend on the others.
    return connection.read_csv(
        pattern,
        header=True,
        sep=",",
        quotechar='"',
        escapechar='"',
        comment="",
        skiprows=0,
        all_varchar=True,
        union_by_name=True,
    )


def _check_columns(source: duckdb.DuckDBPyRelation, path: str, kind: str, wanted: dict[str, bool], alone: bool) -> None:
    types = dict(zip(source.columns, (str(column.id) for column in source.types), strict=True))
    missing = ", ".join(repr(name) for name in wanted if name not in types)
    if missing:
        # What stands in the first line of a CSV file without a header is a record, so it is not printed.
        hint = "its first line must hold the names" if kind == "CSV" else f"it has {', '.join(map(repr, types))}"
        raise InvalidInput(f"{path!r} has no column {missing}: {hint}.")
    extra = ", ".join(repr(name) for name in types if name not in wanted)
    if alone and extra:
        raise InvalidInput(
            f"{path!r} has columns that the bounds do not declare: drop {extra}, or name those to use in covariates."
        )
    for name, text in wanted.items():
        if kind == "Parquet" and types[name] not in (_TEXT if text else _NUMERIC):
            needed = "text like its declared levels" if text else "numbers"
            raise InvalidInput(f"{_named(name)} must hold {needed}, but its type is {types[name]}: convert it.")


def _unreadable(path: str, kind: str, wanted: dict[str, bool]) -> str:
    if kind == "Parquet":
        return (
            f"{path!r} is not readable as Parquet: check that it is complete, and of one schema if there are several."
        )
    numeric = [name for name, text in wanted.items() if not text]
    junk = (f"bool_or({column} IS NOT NULL AND {_number_or_null(column)} IS NULL)" for column in map(_quoted, numeric))
    try:
        with duckdb.connect() as connection:
            found = _source(connection, path, kind).aggregate(", ".join(junk)).fetchall()[0]
    except duckdb.Error:
        found = ()
    guilty = ", ".join(repr(name) for name, is_junk in zip(numeric, found, strict=False) if is_junk)
    if guilty:
        return f"column {guilty} must hold numbers, but has text: convert it, or declare its levels."
    return f"{path!r} is not readable as CSV: use commas, double quotes, UTF-8, and equally many fields in each line."


def _number(name: str, kind: str) -> str:
    """SQL for the column as float64; in CSV, where all is text, what is no number and no boolean raises an error."""
    column = _quoted(name)
    exact = f"CAST({column} AS DOUBLE)"
    return f"coalesce({_number_or_null(column)}, {exact})" if kind == "CSV" else exact


def _number_or_null(column: str) -> str:
    boolean = f"CASE lower({column}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"coalesce(TRY_CAST({column} AS DOUBLE), {boolean})"


def _text(name: str) -> str:
    return f"CAST({_quoted(name)} AS VARCHAR)"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _named(name: str) -> str:
    return f"column {name!r}"
