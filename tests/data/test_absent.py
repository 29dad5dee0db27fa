"""Covariates that may be missing: an indicator beside the fill, in every source, at no cost to anybody else."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import ATE, CATE, Bounds, InvalidInput, Levels, Range, Uplift
from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.frames import encoded
from discreet.data.in_memory import ArrayRecords
from discreet.testing import record_sums, seeded_noise

BOUNDS = Bounds(
    outcome=(-4, 8),
    covariates={
        "age": Range(18, 90, fill=54, missing="indicator"),
        "ward": Levels(("a", "b"), fill="a", missing="indicator"),
        "dose": Range(0, 10, fill=0),
    },
)


def study(n: int = 3_000, seed: int = 3) -> pd.DataFrame:
    """Those whose age is missing are treated more often, and are worse off."""
    rng = np.random.default_rng(seed)
    # What a missing age counts as is an age that many have: else its own cell would give it away.
    age, ward, dose = (
        rng.choice([20.0, 54.0, 88.0], n),
        rng.choice(np.array(["a", "b"]), n),
        rng.integers(0, 11, n) * 1.0,
    )
    lost = rng.random(n) < 0.3
    t = (rng.random(n) < np.where(lost, 0.8, 0.3)).astype(np.int64)
    y = 1.0 * t + 2.0 * lost + rng.normal(0, 0.5, n)
    wards = pd.Series(ward, dtype=object).where(rng.random(n) > 0.2, None)
    dose[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"y": y, "t": t, "age": np.where(lost, np.nan, age), "ward": wards, "dose": dose})


def test_bounds_have_an_indicator_for_each_covariate_that_asks_for_one() -> None:
    assert BOUNDS.names == ("age", "ward", "dose", "age missing", "ward missing")
    assert (BOUNDS.p, BOUNDS.sources, list(BOUNDS.declared)) == (5, (0, 1, 2, 0, 1), ["age", "ward", "dose"])
    assert Bounds.from_toml(BOUNDS.to_toml()) == BOUNDS
    assert Bounds.from_dict(BOUNDS.to_dict()) == BOUNDS
    assert BOUNDS.to_toml().count('missing = "indicator"') == 2
    by_place = Bounds(outcome=(0, 1), covariates=[(0, 1), Range(0, 1, fill=0, missing="indicator")])
    assert by_place.names == ("x0", "x1", "x1 missing")
    assert Bounds.from_dict(by_place.to_dict()) == by_place
    dates = Bounds.from_toml(
        'outcome = {low = 0, high = 1}\n[covariates.day]\nlow = "2020-01-01"\nhigh = "2021-01-01"\n'
        'fill = "2020-06-01"\nmissing = "indicator"\n'
    )
    assert dates.names == ("day", "day missing")
    assert encoded(pa.table({"day": ["2020-01-01", None]}), dates)[:, 1].tolist() == [0.0, 1.0]


def test_what_cannot_be_declared_is_refused() -> None:
    for made in (
        lambda: Range(0, 1, missing="indicator"),
        lambda: Levels(("a", "b"), missing="indicator"),
        lambda: Range(0, 1, fill=0, missing="mean"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidInput, match='missing must be "indicator", beside a fill'):
            made()
    with pytest.raises(InvalidInput, match="'age missing' is what the indicator of 'age' is called"):
        Bounds(outcome=(0, 1), covariates={"age": Range(0, 1, fill=0, missing="indicator"), "age missing": [0, 1]})


def test_records_are_encoded_with_a_one_where_the_value_is_missing() -> None:
    frame = study(50)
    x = encoded(frame[["age", "ward", "dose"]], BOUNDS)
    np.testing.assert_array_equal(x[:, 3], frame["age"].isna())
    np.testing.assert_array_equal(x[:, 4], frame["ward"].isna())
    np.testing.assert_array_equal(x[frame["age"].isna(), 0], 0.0)
    records = ArrayRecords.of(frame["y"], frame["t"], frame[["age", "ward", "dose"]], bounds=BOUNDS)
    (chunk,) = records._chunks()
    np.testing.assert_array_equal(chunk.x, x)


def sources(frame: pd.DataFrame, folder: Path, connection: Any) -> dict[str, Any]:
    frame.to_csv(folder / "it.csv", index=False, float_format="%.17g")
    frame.to_parquet(folder / "it.parquet")
    return {
        "pandas": frame,
        "csv": str(folder / "it.csv"),
        "parquet": str(folder / "it.parquet"),
        "polars": pl.from_pandas(frame),
        "lazy": pl.scan_parquet(folder / "it.parquet"),
        "duckdb": connection.read_parquet(str(folder / "it.parquet")),
    }


def fingerprint(chunk: Any) -> Any:
    """Records are rounded before they are added up, so that their order does not matter."""
    x = np.rint(1_000 * chunk.x).astype(np.int64)
    return np.concatenate([x.sum(axis=0), x[chunk.t > 0].sum(axis=0)])


def integers(table: Any, **options: Any) -> list[Any]:
    """The sums of whole records, and those of cells, which engines add up by themselves."""
    cells = Uplift(epsilon=1.0, bounds=BOUNDS, by={"age missing": "levels", "ward missing": "levels", "dose": 2})
    with open_table(table, TableSpec(outcome="y", treatment="t", bounds=BOUNDS), Options(**options)) as records:
        whole = records.sum(fingerprint)
    with seeded_noise(1), record_sums() as sums:
        cells.fit_table(table, outcome="y", treatment="t", **options)
    return [whole, *(each for _, _, each, _ in sums)]


def assert_same(ours: list[Any], theirs: list[Any], name: str) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


def test_every_source_gives_the_same_integers(tmp_path: Path) -> None:
    frame = study()
    expected = integers(frame)
    with closing(duckdb.connect()) as connection:
        for name, table in sources(frame, tmp_path, connection).items():
            assert_same(integers(table), expected, name)


def test_postgres_gives_the_same_integers(postgres: str) -> None:
    import psycopg

    frame = study()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE absent (y float8, t int4, age float8, ward text, dose float8)")
        with connection.cursor() as cursor, cursor.copy("COPY absent FROM STDIN") as rows:
            # Half of the ages that are missing are NULL, the others NaN, as in files.
            for k, row in enumerate(frame.itertuples(index=False)):
                age = None if k % 2 and np.isnan(row.age) else float(row.age)
                rows.write_row([float(row.y), int(row.t), age, row.ward, float(row.dose)])
    assert_same(integers(postgres, relation="absent"), integers(frame), "postgres")


def test_spark_gives_the_same_integers(spark: Any, tmp_path: Path) -> None:
    from pyspark import cloudpickle

    # Workers do not have the tests: what is asked goes to them as it is.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    frame = study()
    frame.to_parquet(tmp_path / "it.parquet")
    table = spark.read.parquet(str(tmp_path / "it.parquet")).repartition(3)
    assert_same(integers(table), integers(frame), "spark")


def test_an_average_is_adjusted_for_what_being_missing_says() -> None:
    frame = study(20_000)
    plain = Bounds(
        outcome=BOUNDS.outcome,
        covariates={"age": Range(18, 90, fill=54), "ward": Levels(("a", "b"), fill="a"), "dose": Range(0, 10, fill=0)},
    )
    with seeded_noise(1):
        with_it = ATE(epsilon=4.0, delta=1e-6, bounds=BOUNDS).fit_table(frame, outcome="y", treatment="t").release_
        without = ATE(epsilon=4.0, delta=1e-6, bounds=plain).fit_table(frame, outcome="y", treatment="t").release_
    low, high = with_it.interval()
    assert low < 1.0 < high
    # People whose age is missing count as people in the middle: that much confounding is left.
    assert abs(without.estimate - 1.0) > 3 * abs(with_it.estimate - 1.0)
    assert dc.Release.from_dict(with_it.to_dict()) == with_it
    assert "age missing" in with_it.methods()


def test_a_function_is_asked_with_the_columns_of_the_table() -> None:
    frame = study(2_000)
    with seeded_noise(1):
        cate = CATE(epsilon=4.0, delta=1e-6, bounds=BOUNDS).fit_table(frame, outcome="y", treatment="t")
    effects = cate.effect(frame[["age", "ward", "dose"]][:5])
    assert effects.shape == (5,)
    assert set(cate.release_.importance) == set(BOUNDS.names)
    with pytest.raises(InvalidInput, match="X lacks columns that the bounds declare"):
        cate.effect(frame[["age", "ward"]][:5])


def test_an_audit_says_that_it_makes_up_no_missing_values() -> None:
    with pytest.raises(InvalidInput, match="declare bounds without missing="):
        dc.audit(ATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS))
