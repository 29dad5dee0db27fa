"""Names and types of a source's columns, for the form in which a curator declares bounds; never a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import sqlalchemy as sa

from discreet.data.backends.files import read_parquet
from discreet.data.backends.text.format import TextFormat
from discreet.data.backends.text.paths import files_of
from discreet.exceptions import InvalidInput
from discreet.serve.domain import sources

Kind = Literal["number", "text", "yes or no", "date", "other"]
# Files and columns that a form can hold.
_MOST_FILES, _MOST_COLUMNS = 500, 120
_ENDINGS = (".csv", ".tsv", ".csv.gz", ".parquet")
_KINDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("yes or no", ("bool",)),
    ("number", ("int", "float", "double", "decimal", "numeric", "real", "hugeint")),
    ("date", ("date", "time")),
    ("text", ("varchar", "char", "text", "string", "enum")),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column as a form shows it."""

    name: str
    kind: Kind
    type: str


def files_below(root: str) -> list[str]:
    """Files below the data directory that can be a source, by their paths from there."""
    home = Path(root).resolve()
    found = (path for path in sorted(home.rglob("*")) if path.name.lower().endswith(_ENDINGS) and path.is_file())
    kept = [path.relative_to(home).as_posix() for path in found if path.resolve().is_relative_to(home)]
    return kept[:_MOST_FILES]


def columns_of(source: str) -> list[Column]:
    """The columns of a source that was located; types of text files are guessed from their first rows."""
    try:
        found = _of_database(source) if sources.is_database(source) else _of_files(source)
    except (duckdb.Error, sa.exc.SQLAlchemyError, OSError, UnicodeError):
        # What these errors say may quote a record.
        raise InvalidInput(
            "source cannot be read: check that it is a CSV or Parquet file, or a table that exists."
        ) from None
    if not 2 <= len(found) <= _MOST_COLUMNS:
        raise InvalidInput(
            f"source must have from 2 to {_MOST_COLUMNS} columns for this form: choose another, or write its bounds as "
            "TOML."
        )
    return [Column(name, _kind(kind), kind.lower()) for name, kind in found]


def _of_files(source: str) -> list[tuple[str, str]]:
    files = files_of(source)
    with duckdb.connect() as connection:
        if source.lower().endswith(".parquet"):
            relation = read_parquet(connection, files)
        else:
            form = TextFormat().of_files(files)
            separator: Any = {} if form.delimiter is None else {"sep": form.delimiter}
            relation = connection.read_csv(files[0], header=True, sample_size=1_000, **separator)
        return [(name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)]


def _of_database(source: str) -> list[tuple[str, str]]:
    url, _, name = source.partition("#")
    schema, _, table = name.rpartition(".")
    if url.startswith("sqlite"):
        engine = sa.create_engine("sqlite://", creator=lambda: sources._read_only(sources._file(source)))
    else:
        engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        return [(each["name"], str(each["type"])) for each in sa.inspect(engine).get_columns(table, schema or None)]
    finally:
        engine.dispose()


def _kind(type_: str) -> Kind:
    low = type_.lower()
    return next((kind for kind, words in _KINDS if any(word in low for word in words)), "other")
