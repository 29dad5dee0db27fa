"""Tables of any kind as records: one entry point, and one file or package for each backend behind it.

A backend is a `Source` (see `discreet.data.backends.base`): it runs sweeps over Arrow batches wherever its rows are,
and may add up by cell itself. `backends` says which one knows a table; none of them is imported before it is needed.
Packages add theirs by an entry point in the group ``discreet.backends``, which names a `BackendEntry`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from numbers import Real
from typing import Any

from discreet.data.backends.base import Options
from discreet.data.backends.scan import Columns, in_order
from discreet.data.bounds import Bounds
from discreet.data.filters import Condition, Half, conditions
from discreet.data.records import Further, Records, Unit, outside_overlap
from discreet.data.views.presence import PRESENT
from discreet.exceptions import InvalidInput, MissingBounds

__all__ = ["BackendEntry", "TableSpec", "backends", "open_table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendEntry:
    """One backend: which tables are its own, and where its code is.

    Parameters
    ----------
    name
        What it is called.
    module
        Dotted name of the module that has ``open_records(table, columns, options)``, which returns `Records`.
    prefixes
        How a text begins that names a table of this backend.
    packages
        Packages whose objects it reads, as the first part of their classes' module.
    """

    name: str
    module: str
    prefixes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def open_records(self, table: Any, columns: Columns, options: Options) -> Records:
        """Records of a table; the backend is imported now."""
        records: Records = import_module(self.module).open_records(table, columns, options)
        return records


# A text that no other backend claims is the path of a file, and an object that narwhals can read is a frame.
_FILES = BackendEntry(name="files", module="discreet.data.backends.files")
_MEMORY = BackendEntry(name="memory", module="discreet.data.backends.memory", packages=("pandas", "modin", "cudf"))
_OWN = (
    _FILES,
    _MEMORY,
    BackendEntry(name="polars", module="discreet.data.backends.polars", packages=("polars",)),
    BackendEntry(name="arrow", module="discreet.data.backends.arrow", packages=("pyarrow",)),
    BackendEntry(name="duckdb", module="discreet.data.backends.duckdb", packages=("duckdb", "_duckdb")),
    BackendEntry(
        name="postgres",
        module="discreet.data.backends.postgres.source",
        prefixes=("postgresql://", "postgres://"),
    ),
    BackendEntry(name="spark", module="discreet.data.backends.spark.source", packages=("pyspark",)),
)


@lru_cache(maxsize=1)
def backends() -> tuple[BackendEntry, ...]:
    """All backends: those of the library first, then those that installed packages add."""
    added = tuple(point.load() for point in entry_points(group="discreet.backends"))
    strangers = [each for each in added if not isinstance(each, BackendEntry)]
    if strangers:
        raise InvalidInput("an entry point of discreet.backends must name a BackendEntry: ask its package's authors.")
    return (*_OWN, *added)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """Which columns and rows of a table are asked for, as a caller says it; `columns` checks that.

    Parameters
    ----------
    outcome, treatment : str
        Names of columns.
    bounds : Bounds
        Public facts about the records.
    covariates : list of str, optional
        Names of columns; if not given, those that the bounds name.
    propensity : float or str, optional
        Probability of treatment where it is known by design, or the column that holds it.
    where : mapping, optional
        Which rows are used: see `discreet.data.filters`.
    unit, max_rows : str and int, optional
        The column that says whose row it is, and how many one unit has at most.
    sample_by : str, optional
        A column of whole numbers by which a sample may be chosen.
    half : (str, Half), optional
        A column that divides the units, and which half of them is used.
    further : tuple of (Further, str)
        Columns that the estimator takes beside these.
    """

    outcome: str
    treatment: str
    bounds: Bounds
    covariates: Sequence[str] | None = None
    propensity: Any = None
    where: Mapping[str, Any] | None = None
    unit: str | None = None
    max_rows: int | None = None
    sample_by: str | None = None
    half: tuple[str, Half] | None = None
    further: tuple[tuple[Further, str], ...] = ()

    def columns(self) -> Columns:
        """What backends are given, once everything fits together."""
        self._check_types()
        where = () if self.where is None else conditions(self.where)
        columns = Columns(
            bounds=self.bounds,
            outcome=_name("outcome", self.outcome),
            treatment=_name("treatment", self.treatment),
            covariates=in_order(self.covariates, self.bounds),
            propensity=float(self.propensity) if isinstance(self.propensity, Real) else self.propensity,
            where=where if self.half is None else (*where, Condition(self.half[0], half=self.half[1])),
            unit=None if self.unit is None or self.max_rows is None else Unit(self.unit, self.max_rows),
            sample_by=None if self.sample_by is None else _name("sample_by", self.sample_by),
            further=tuple((each, _name(each.role, name)) for each, name in self.further),
        )
        _check_roles(columns)
        # Each column of text or numbers is read once, whatever it serves for.
        columns.wanted  # noqa: B018 - refuses conditions that do not fit
        return columns

    def _check_types(self) -> None:
        if not isinstance(self.bounds, Bounds):
            raise MissingBounds("Records need bounds=Bounds(outcome=(low, high), ...): declare them.")
        known = self.propensity
        if known is not None and (isinstance(known, bool) or not isinstance(known, str | Real)):
            raise InvalidInput(
                "propensity must be a number or the name of a column of the table: name one of its columns."
            )
        if (self.unit is None) != (self.max_rows is None):
            raise InvalidInput(
                "unit and max_rows belong together: name the column, and the most rows that one unit has."
            )


@contextmanager
def open_table(table: Any, spec: TableSpec, options: Options = Options()) -> Iterator[Records]:  # noqa: B008 - frozen
    """Records of a table, for as long as they are needed.

    Parameters
    ----------
    table
        A path or pattern of CSV or Parquet files; a DuckDB relation, connection (with ``query``) or pair of connection
        and query; a frame of pandas or polars, lazy ones included; an Arrow table or dataset; a Spark frame; the URL
        of a PostgreSQL database (with a table or a query).
    spec : TableSpec
        Which of its columns and rows.
    options : Options
        What a backend needs beside the table.
    """
    columns = spec.columns()
    entry = backend_of(table)
    if entry is not _FILES:
        options.check_no_text("this table")
    records = entry.open_records(table, columns, options)
    try:
        yield records
    finally:
        records.close()


def backend_of(table: Any) -> BackendEntry:
    """The backend that knows a table."""
    if isinstance(table, str) or hasattr(table, "__fspath__"):
        text = str(table)
        known = next((entry for entry in backends() if entry.prefixes and text.startswith(entry.prefixes)), None)
        if known is None and "://" in text and "@" in text:
            # Not quoted, because it may hold a password.
            raise InvalidInput("table is an address of no known kind: write postgresql://user@host:port/database.")
        return known or _FILES
    probe = table[0] if isinstance(table, tuple) and len(table) == 2 else table
    package = type(probe).__module__.split(".")[0]
    known = next((entry for entry in backends() if package in entry.packages), None)
    if known is not None:
        return known
    if any(hasattr(table, mark) for mark in ("__arrow_c_stream__", "__dataframe__", "__narwhals_dataframe__")):
        return _MEMORY
    raise InvalidInput(
        "table must be a path or pattern of CSV or Parquet files, a DuckDB relation or connection with query=, a frame "
        "(pandas, polars, Arrow, Spark) or a postgresql:// URL: give one of them; arrays go to fit."
    )


def _check_roles(columns: Columns) -> None:
    low, high = columns.bounds.propensity
    if isinstance(columns.propensity, float) and not low <= columns.propensity <= high:
        raise InvalidInput(outside_overlap("propensity"))
    roles = [columns.outcome, columns.treatment, *columns.covariates[: len(columns.bounds.declared)]]
    roles += [columns.propensity] if isinstance(columns.propensity, str) else []
    # Whether an outcome is there is read off the outcome's own column.
    further = [(each, name) for each, name in columns.further if each.role != PRESENT]
    roles += [name for _, name in further]
    if len(set(roles)) < len(roles):
        others = "".join(f", {each.role}" for each, _ in further)
        raise InvalidInput(
            f"outcome, treatment, covariates{others} and propensity must be different columns: choose again."
        )
    if columns.sample_by in roles:
        raise InvalidInput(
            "sample_by must be a column of its own, such as an id, and no outcome, treatment, covariate or propensity: "
            "name another."
        )


def _name(argument: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{argument} must be the name of a column: write it as text.")
    return value
