"""Which files a path or a pattern names, of which kind they are by their names, and whether they stay the same."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from discreet.data.backends.base import CHANGED
from discreet.exceptions import InvalidInput

SUFFIXES = {
    f"{ending}{packed}": "CSV" for ending in (".csv", ".tsv", ".tab", ".txt") for packed in ("", ".gz", ".zst")
} | {".parquet": "Parquet", ".xlsx": "Excel", ".dta": "Stata"}


def kind_of(path: str) -> str:
    """The kind of file that a name says."""
    kind = next((kind for suffix, kind in SUFFIXES.items() if path.lower().endswith(suffix)), None)
    if kind is None:
        known = ", ".join(suffix for suffix in SUFFIXES if not suffix.endswith((".gz", ".zst")))
        raise InvalidInput(
            f"{path!r} is not a CSV or Parquet file by its name: it must end in {known} (of text also .gz and .zst)."
        )
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


def check_names(types: Mapping[str, str], wanted: Sequence[str] | Mapping[str, object], path: str, kind: str) -> None:
    """Refuse a file without the wanted columns."""
    missing = ", ".join(repr(name) for name in wanted if name not in types)
    if missing:
        # What stands in the first line of a CSV file without a header is a record, so it is not printed.
        text = "its first line must hold the names (if it does, say delimiter= or encoding=)"
        hint = text if kind == "CSV" else f"it has {', '.join(map(repr, types))}"
        raise InvalidInput(f"{path!r} has no column {missing}: {hint}.")


def marks_of(files: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Sizes and times of change."""
    try:
        return tuple((found.st_size, found.st_mtime_ns) for found in map(os.stat, files))
    except OSError:
        raise InvalidInput(CHANGED) from None


def check_marks(files: Sequence[str], marks: tuple[tuple[int, int], ...]) -> None:
    """Refuse files that are not what they were."""
    if marks_of(files) != marks:
        raise InvalidInput(CHANGED)
