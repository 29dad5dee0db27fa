"""Tables of any kind as records: one front door, and one file for each engine behind it.

An engine is a `Source` (see `discreet.data.backends.base`): it runs sweeps over Arrow batches wherever its rows are,
and may add up by cell itself. `ENGINES` says which file knows a table; none of them is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from numbers import Real
from typing import Any

from discreet.data.backends.base import Options, TableRecords
from discreet.data.backends.scan import Columns, in_order
from discreet.data.bounds import Bounds
from discreet.data.filters import Condition, Half, conditions
from discreet.data.records import Records, Unit, outside_overlap
from discreet.exceptions import InvalidInput, MissingBounds

# Which file knows a table: by how a text begins, or by the package that its class comes from. The file has
# `source(table, columns, options)`, which returns a Source, or Records where rows are in memory anyway.
TEXTS = {
    "postgresql://": "postgres.source",
    "postgres://": "postgres.source",
}
PACKAGES = {
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
    "pandas": "memory",
    "polars": "polars",
    "pyarrow": "arrow",
    "pyspark": "spark.source",
    "modin": "memory",
    "cudf": "memory",
}


@contextmanager
def open_table(
    table: Any,
    *,
    outcome: str,
    treatment: str,
    covariates: Sequence[str] | None = None,
    bounds: Bounds,
    propensity: Any = None,
    where: Mapping[str, Any] | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    sample_by: str | None = None,
    half: tuple[str, Half] | None = None,
    options: Options = Options(),  # noqa: B008 - it is frozen
) -> Iterator[Records]:
    """Records of a table, for as long as they are needed.

    Parameters
    ----------
    table
        A path or pattern of CSV or Parquet files; a DuckDB relation, connection (with ``query``) or pair of connection
        and query; a frame of pandas or polars, lazy ones included; an Arrow table or dataset; a Spark frame; the URL
        of a PostgreSQL database (with a table or a query).
    outcome, treatment : str
        Names of columns.
    covariates : list of str, optional
        Names of columns; if not given, those that the bounds name.
    bounds : Bounds
        Public facts about the records.
    propensity : float or str, optional
        Probability of treatment where it is known by design, or the column that holds it.
    where : mapping, optional
        Which rows are meant: see `discreet.data.filters`.
    unit, max_rows : str and int, optional
        The column that says whose row it is, and how many one unit has at most.
    sample_by : str, optional
        A column of whole numbers by which a sample may be chosen.
    half : (str, Half), optional
        A column that divides the units, and which half of them is meant.
    options : Options
        What engines may be told.
    """
    if not isinstance(bounds, Bounds):
        raise MissingBounds("Records need bounds=Bounds(outcome=(low, high), ...): declare them.")
    if propensity is not None and (isinstance(propensity, bool) or not isinstance(propensity, str | Real)):
        raise InvalidInput("propensity must be a number or the name of a column of the table: name one of its columns.")
    if (unit is None) != (max_rows is None):
        raise InvalidInput("unit and max_rows belong together: name the column, and the most rows that one unit has.")
    columns = Columns(
        bounds=bounds,
        outcome=_name("outcome", outcome),
        treatment=_name("treatment", treatment),
        covariates=in_order(covariates, bounds),
        propensity=float(propensity) if isinstance(propensity, Real) else propensity,
        where=conditions(where) + (() if half is None else (Condition(half[0], half=half[1]),)),
        unit=None if unit is None or max_rows is None else Unit(unit, max_rows),
        sample_by=None if sample_by is None else _name("sample_by", sample_by),
    )
    low, high = bounds.propensity
    if isinstance(columns.propensity, float) and not low <= columns.propensity <= high:
        raise InvalidInput(outside_overlap("propensity"))
    roles = [columns.outcome, columns.treatment, *columns.covariates]
    roles += [columns.propensity] if isinstance(columns.propensity, str) else []
    if len(set(roles)) < len(roles):
        raise InvalidInput("outcome, treatment, covariates and propensity must be different columns: choose again.")
    if columns.sample_by in roles:
        raise InvalidInput(
            "sample_by must be a column of its own, such as an id, and no outcome, treatment, covariate or propensity: "
            "name another."
        )
    # Each column of text or numbers is read once, whatever it serves for.
    columns.wanted  # noqa: B018 - refuses conditions that do not fit
    source = import_module(f"discreet.data.backends.{_engine(table)}").source(table, columns, options)
    public = ("the filter that chose the records",) if where else ()
    try:
        yield TableRecords(columns, source, public) if hasattr(source, "run") else source
    finally:
        source.close() if hasattr(source, "close") else None


def _engine(table: Any) -> str:
    if isinstance(table, str) or hasattr(table, "__fspath__"):
        text = str(table)
        known = next((engine for head, engine in TEXTS.items() if text.startswith(head)), None)
        if known is None and "://" in text and "@" in text:
            # Not quoted, because it may hold a password.
            raise InvalidInput("table is an address of no known kind: write postgresql://user@host:port/database.")
        return known or "files"
    probe = table[0] if isinstance(table, tuple) and len(table) == 2 else table
    package = type(probe).__module__.split(".")[0]
    if package in PACKAGES:
        return PACKAGES[package]
    if (
        hasattr(table, "__arrow_c_stream__")
        or hasattr(table, "__dataframe__")
        or hasattr(table, "__narwhals_dataframe__")
    ):
        return "memory"
    raise InvalidInput(
        "table must be a path or pattern of CSV or Parquet files, a DuckDB relation or connection with query=, a frame "
        "(pandas, polars, Arrow, Spark) or a postgresql:// URL: give one of them; arrays go to fit."
    )


def _name(argument: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{argument} must be the name of a column: write it as text.")
    return value
