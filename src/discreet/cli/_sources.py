"""Where the records of a command are: files, a table or query of PostgreSQL, or whatever a Spark cluster reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from discreet.exceptions import InvalidInput

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="CSV or Parquet file, a pattern in quotes such as 'part-*.parquet', or a postgresql:// address.",
    ),
]
Table = Annotated[str | None, typer.Option(help="Table to read at a postgresql:// address.")]
Select = Annotated[str | None, typer.Option("--query", help="SELECT to read at a postgresql:// address.")]
Spark = Annotated[
    str | None,
    typer.Option(help="Read the file, or a table by its name, on this Spark cluster: spark://host:7077 or local[4]."),
]


@contextmanager
def reading(
    source: str, estimator: Any, rows: dict[str, Any], *, table: str | None, query: str | None, spark: str | None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """What the estimator's ``fit_table`` takes: the records, and options, to which ``rows`` belongs."""
    if (table is not None or query is not None) and (spark is not None or "://" not in source):
        raise InvalidInput("--table and --query are for PostgreSQL: name a file, or a table with --spark, alone.")
    if spark is None:
        yield source, rows | {"relation": table, "query": query}
        return
    from discreet.data.backends.spark.reader import read, session
    from discreet.data.bounds import Levels
    from discreet.data.filters import conditions

    bounds = estimator.bounds
    specs = {rows["outcome"]: bounds.outcome_column, rows["treatment"]: bounds.arms}
    specs |= bounds.declared
    specs |= {rows[role.name]: role.declared(bounds) for role in estimator.roles if rows.get(role.name) is not None}
    numeric = {name for name, spec in specs.items() if not (isinstance(spec, Levels) and spec.is_text)}
    numeric |= {condition.column for condition in conditions(rows.get("where")) if not condition.is_text}
    numeric |= {rows["sample_by"]} if "sample_by" in rows else set()
    numeric |= {estimator.propensity} if isinstance(estimator.propensity, str) else set()
    with session(spark) as cluster:
        yield read(cluster, source, sorted(numeric)), rows
