"""The command that writes a bounds file to fill in: the names of columns, and nothing else that stands in a file."""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._console import check_target, names_in, writing
from discreet.exceptions import InvalidInput

_HEAD = """\
# Public facts about the records. Fill them in from what is known about the subject, and never by looking at the
# records: the smallest or largest value of a column is somebody's value. Remove the # in front of what you fill in.
# Values outside a range are clipped to it. A guess that is too narrow costs accuracy, never privacy.

# If you do not know them, 'discreet bounds suggest' looks at the records for a small budget; 'discreet bounds check'
# compares this file with the columns of yours, and spends nothing. Which rows are used is said with --where, not here.

# Range of the outcome; of a binary one its two labels, the event second: {levels = ["no", "yes"]}
# Missing outcomes are refused unless they are said to count as something: {low = 0, high = 100, fill = 0}
# outcome = {low = 0, high = 100}

# Smallest and largest probability of treatment that anyone can have.
propensity = {low = 0.05, high = 0.95}

# The two labels of the treatment column, if they are not 0 and 1 or true and false.
# treatment = {control = "placebo", treated = "drug"}

# One part for each column to adjust for. Fill in each part or delete it: those of outcome, treatment and names as well.
# A column of numbers has low and high; a column of categories has the complete list of its levels. Further keys:
#   fill = 50         what a missing value counts as (without it, missing values are refused)
#   other = "second"  the level that values outside the list count as (without it, they are refused)
"""
_RANGE = "# low = 0\n# high = 100\n"
_LEVELS = '# levels = ["first", "second"]\n'
NUMBERS = {"decimal", "double", "float"} | {
    f"{sign}{size}" for sign in ("", "u") for size in ("tinyint", "smallint", "integer", "bigint", "hugeint")
}

TEXT = {"varchar", "enum"}


def init(
    file: Annotated[str, typer.Argument(help="CSV or Parquet file, or a pattern in quotes.")],
    out: Annotated[Path, typer.Option(help="Bounds file to write.")] = Path("bounds.toml"),
    outcome: Annotated[str | None, typer.Option(help="Column of the outcome, which is no covariate.")] = None,
    treatment: Annotated[str | None, typer.Option(help="Column of the treatment, which is no covariate.")] = None,
    covariates: Annotated[str | None, typer.Option(help="Columns to adjust for: a,b,c. Default: all others.")] = None,
) -> None:
    """Write a bounds file to fill in: names of columns, and no value from the records."""
    check_target(out, "--out", replace=False)
    text = template(
        file,
        leave_out=tuple(name for name in (outcome, treatment) if name is not None),
        covariates=None if covariates is None else names_in(covariates),
    )
    with writing(out):
        out.write_bytes(text.encode())
    typer.echo(f"Fill in what is public: {out}")


def template(path: str | Path, *, leave_out: tuple[str, ...] = (), covariates: Sequence[str] | None = None) -> str:
    """The text of a bounds file for a CSV or Parquet file, with every value left open.

    Parameters
    ----------
    path : str or Path
        A file, or a pattern with ``*`` for several.
    leave_out : tuple of str
        Columns that are no covariates, such as the outcome and the treatment.
    covariates : sequence of str, optional
        Columns that get a part, in this order; all others by default.

    Privacy
    -------
    Of a CSV file only the first line is used. It must hold the names of the columns: a file without them would have a
    record copied, unless ``leave_out`` names columns that it lacks. Of a Parquet file, its schema.
    """
    columns = columns_of(str(path))
    unknown = [name for name in (*leave_out, *(covariates or ())) if name not in columns]
    if unknown:
        raise InvalidInput(f"{str(path)!r} has no column {unknown[0]!r}: check its spelling.")
    both = [name for name in covariates or () if name in leave_out]
    if both:
        raise InvalidInput(f"--covariates names {both[0]!r}, which is the outcome or the treatment: leave it out.")
    named = columns if covariates is None else dict.fromkeys(covariates)
    parts = [_part(name, columns[name]) for name in named if name not in leave_out]
    return "\n".join([_HEAD, *parts])


def _part(name: str, kind: str | None) -> str:
    from discreet.data.declared.toml import toml_key

    head = f"[covariates.{toml_key(name)}]\n"
    if kind in NUMBERS:
        return head + _RANGE
    if kind in TEXT:
        return head + _LEVELS
    if kind == "boolean":
        return head + "# levels = [false, true]\n"
    # A CSV file does not say what its columns hold, and guessing it would mean to read records.
    return f"{head}# either\n{_RANGE}# or\n{_LEVELS}"


def columns_of(path: str) -> dict[str, str | None]:
    """Names of a file's columns, and DuckDB's names of their types; a CSV file does not say what its columns hold."""
    import duckdb

    from discreet.data.backends.base import types_of
    from discreet.data.backends.text.csv import csv_types
    from discreet.data.backends.text.format import TextFormat
    from discreet.data.backends.text.paths import files_of, kind_of
    from discreet.data.backends.text.workbooks import WORKBOOKS, cells

    kind, files = kind_of(path), files_of(path)
    if kind in WORKBOOKS:
        # Types of cells would be those of records.
        return dict.fromkeys(cells(kind, path, files[0]).column_names)
    if kind == "CSV":
        names = list(csv_types(files, path, TextFormat().of_files(files), {}))
    else:
        try:
            with duckdb.connect() as connection:
                pattern = [glob.escape(file) for file in files]
                return {**types_of(connection.read_parquet(pattern, union_by_name=True))}
        except duckdb.Error:
            # DuckDB's own sentence may quote a record.
            raise InvalidInput(f"{path!r} is not readable as {kind}: check that it is complete.") from None
    if any(_is_value(name) for name in names):
        raise InvalidInput(f"{path!r} does not seem to start with the names of its columns: add a line that does.")
    return dict.fromkeys(names)


def _is_value(name: str) -> bool:
    """Whether a supposed name is empty or a number: then the first line may be a record, and must not be copied."""
    try:
        float(name.replace(",", "."))
    except ValueError:
        return not name.strip()
    return True
