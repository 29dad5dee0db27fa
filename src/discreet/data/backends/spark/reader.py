"""Files and tables that Spark reads, for those who bring the address of a cluster rather than a frame."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from warnings import catch_warnings, filterwarnings

from discreet.exceptions import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@contextmanager
def session(master: str) -> Iterator[SparkSession]:
    """A session on a cluster (``local[4]``, ``spark://host:7077``, ``yarn``), or the one that is open already."""
    try:
        with catch_warnings():
            filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("--spark needs pyspark: install it with pip install 'discreet[spark]'.") from None
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if (active := SparkSession.getActiveSession()) is not None:
        yield active
        return
    if master.startswith("local"):
        # Workers on this machine have what this process has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        builder = SparkSession.builder.master(master).appName("discreet")
        # What is no number must not become NULL in silence.
        opened = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.ansi.enabled", "true")
        cluster = opened.getOrCreate()
    except (PySparkException, Py4JError, RuntimeError):
        raise InvalidInput(
            "Spark does not start at this address: check --spark, that Java 17 is installed, and Spark's own log."
        ) from None
    try:
        yield cluster
    finally:
        cluster.stop()


def read(cluster: SparkSession, name: str, numeric: Sequence[str]) -> DataFrame:
    """A CSV or Parquet file, or all that a pattern matches, by the name's end; otherwise a table that Spark knows.

    In CSV all is text: ``numeric`` says which columns hold numbers, and no type is guessed from the records.
    """
    from discreet.data.backends.spark.source import watched

    with watched():
        if name.lower().endswith(".parquet"):
            return cluster.read.parquet(name)
        if not name.lower().endswith((".csv", ".csv.gz", ".csv.zst")):
            return cluster.table(name)
        # The header of every file has to hold the same names, and every line as many fields.
        rows = cluster.read.csv(name, header=True, quote='"', escape='"', enforceSchema=False, mode="FAILFAST")
        known = [column for column in numeric if column in rows.columns]
        junk = rows.agg(*(_any_junk(rows[_quoted(column)]).alias(f"c{j}") for j, column in enumerate(known))).collect()
        guilty = ", ".join(repr(column) for column, found in zip(known, junk[0] if known else (), strict=True) if found)
        if guilty:
            raise InvalidInput(f"column {guilty} must hold numbers, but has text: convert it, or declare its levels.")
        return rows.withColumns({column: _number(rows[_quoted(column)]) for column in known})


def _any_junk(column: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.bool_or(column.isNotNull() & (column != "") & _number_or_null(column).isNull())


def _number(column: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    # The last cast fails for what is no number: a file may change after it was looked at.
    return F.coalesce(_number_or_null(column), F.when(column != "", column).cast("double"))


def _number_or_null(column: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    truth = F.when(F.lower(column) == "true", 1.0).when(F.lower(column) == "false", 0.0)
    return F.coalesce(column.try_cast("double"), truth)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
