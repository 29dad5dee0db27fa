"""Columns of which nothing was declared: every engine shows the same values, and the same suggestion comes of them."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from discreet import InvalidInput, suggest_bounds
from discreet.testing import seeded_noise

N = 4_000
ASKED = {"outcome": "cost", "covariates": ["age"], "categories": {"ward": ["a", "b", "c"], "grade": [1, 2, 3]}}


def frame():
    rng = np.random.default_rng(3)
    cost = np.where(rng.random(N) < 0.3, 0.0, np.exp(rng.normal(5.0, 1.0, N)))
    cost[rng.random(N) < 0.1] = np.nan
    ward = rng.choice(np.array(["a", "b", "elsewhere", None], dtype=object), N)
    age, grade = rng.integers(18, 90, N), rng.integers(1, 5, N)
    return pd.DataFrame({"cost": cost, "age": age, "ward": ward, "grade": grade, "id": np.arange(N) // 2})


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same table in every place that can be had without a server."""
    home, data = tmp_path_factory.mktemp("survey"), frame()
    arrow = pa.Table.from_pandas(data, preserve_index=False)
    pq.write_table(arrow, home / "rows.parquet", row_group_size=700)
    data.to_csv(home / "rows.csv", index=False)
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE rows AS SELECT * FROM '{home / 'rows.parquet'}'")
    return {
        "pandas": data,
        "arrow": arrow,
        "dataset": ds.dataset(home / "rows.parquet"),
        "polars": pl.from_arrow(arrow),
        "lazy": pl.from_arrow(arrow).lazy(),
        "csv": str(home / "rows.csv"),
        "parquet": home / "rows.parquet",
        "duckdb": connection.table("rows"),
    }


def suggested(table, **given):
    with seeded_noise(1):
        return suggest_bounds(table, **{**ASKED, "epsilon": 2.0, **given})


PLACES = ["arrow", "dataset", "polars", "lazy", "csv", "parquet", "duckdb"]


@pytest.mark.parametrize("place", PLACES)
def test_every_engine_releases_the_same(tables, place):
    assert suggested(tables[place]) == suggested(tables["pandas"])


@pytest.mark.parametrize("place", PLACES)
def test_filters_and_units_are_the_same_everywhere(tables, place):
    rows = {"where": {"ward": ["a", "b"], "age": (30, 80)}, "unit": "id", "max_rows": 2, "epsilon": 8.0}
    found = suggested(tables[place], **rows)
    assert found == suggested(tables["pandas"], **rows)
    assert found.guarantee.unit == "one id with at most 2 rows"
    assert not found.guarantee.counts_public


def test_processes_divide_parquet_files(tables):
    assert suggested(tables["parquet"], workers=2) == suggested(tables["pandas"])


@pytest.mark.parametrize("place", ["pandas", *PLACES])
def test_what_does_not_fit_is_refused_everywhere_before_anything_is_spent(tables, place):
    table = tables[place]
    for given, words in (
        ({"covariates": ["ages"]}, "no column 'ages'"),
        ({"where": {"age": (200, 300)}}, "fewer than 10 records"),
        ({"unit": "id", "max_rows": 1}, "more rows than the 1 declared"),
    ):
        with pytest.raises(InvalidInput, match=words):
            suggested(table, **given)
    if place != "csv":
        with pytest.raises(InvalidInput, match="column 'ward' must hold numbers"):
            suggested(table, covariates=["ward"], categories=None)


def test_postgresql_releases_the_same(tables, postgres):
    import psycopg

    data = frame().astype(object).where(frame().notna(), None)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE survey (cost float8, age int, ward text, grade int, id int)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO survey VALUES (%s, %s, %s, %s, %s)", data.values.tolist())
    for given in ({}, {"where": {"age": (30, 80)}, "unit": "id", "max_rows": 2, "epsilon": 8.0}):
        assert suggested(postgres, relation="survey", **given) == suggested(tables["pandas"], **given)
