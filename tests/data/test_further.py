"""Columns beside outcome, treatment and covariates: every source hands them over alike, and checks them alike."""

import pickle
from contextlib import closing
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from discreet.data._arrays import IntArray
from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.backends.scan import Sweep
from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Chunk, Further
from discreet.exceptions import InvalidInput
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Interval

BOUNDS = Bounds(outcome=(0, 10), covariates={"x": (0, 1), "ward": ["n", "s"]})
BEFORE, ARM = Further("before", Range(0, 10, fill=5)), Further("instrument", Levels(("no", "yes")))
COLUMNS = ((BEFORE, "earlier"), (ARM, "offered"))
SPEC = TableSpec(outcome="y", treatment="t", bounds=BOUNDS, further=COLUMNS)


def study(n: int = 5_000) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        {
            "y": rng.uniform(0, 10, n),
            "t": np.arange(n) % 2,
            "x": rng.random(n),
            "ward": rng.choice(np.array(["n", "s"], dtype=object), n),
            "earlier": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-2, 12, n)),
            "offered": rng.choice(np.array(["no", "yes"], dtype=object), n),
            "id": np.arange(n),
        }
    )


FRAME = study()


def fingerprint(chunk: Chunk) -> IntArray:
    """A sum that depends on every bit of every record, and not on their order."""
    more = [chunk.more[role] for role in ("before", "instrument")]
    rows = np.ascontiguousarray(np.column_stack([chunk.y, chunk.t, chunk.x, *more]))
    return (rows.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)).sum(axis=0).view(np.int64)


def products(chunk: Chunk) -> IntArray:
    """What does not need covariates, to four decimals: samples and codes keep these numbers to the last bit."""
    before, arm = chunk.more["before"], chunk.more["instrument"]
    return np.array([len(chunk.t), *(np.rint(2**30 * chunk.y * each).sum() for each in (before, arm))], dtype=np.int64)


def in_memory(frame: pd.DataFrame = FRAME) -> ArrayRecords:
    held = ArrayRecords.of(frame["y"], frame["t"], frame[["x", "ward"]], bounds=BOUNDS, sample_by=frame["id"])
    columns = {BEFORE: frame["earlier"], ARM: frame["offered"]}
    return held.beside(columns, {"before": "before", "instrument": "Z"})


def sources(tmp_path: Any) -> dict[str, Any]:
    FRAME.to_csv(tmp_path / "it.csv", index=False)
    FRAME.to_parquet(tmp_path / "it.parquet", row_group_size=1_000)
    table = pa.Table.from_pandas(FRAME)
    return {
        "pandas": FRAME,
        "csv": str(tmp_path / "it.csv"),
        "parquet": str(tmp_path / "it.parquet"),
        "duckdb": duckdb.from_arrow(table),
        "polars": pl.from_arrow(table),
        "lazy": pl.scan_parquet(tmp_path / "it.parquet"),
        "arrow": table,
        "dataset": ds.dataset(tmp_path / "it.parquet"),
    }


def test_every_source_hands_over_the_same_numbers(tmp_path: Any) -> None:
    expected = in_memory().sum(fingerprint)
    for name, table in sources(tmp_path).items():
        with open_table(table, SPEC) as records:
            np.testing.assert_array_equal(records.sum(fingerprint), expected, err_msg=name)
            # Nobody adds up by cell what says nothing of these columns.
            assert records.group_sums(None, []) is None


def test_processes_hand_over_the_same_numbers(tmp_path: Any) -> None:
    path = sources(tmp_path)["parquet"]
    with open_table(path, SPEC, Options(workers=2)) as records:
        assert records.sum(products)[0] == len(FRAME)


def test_postgresql_hands_over_the_same_numbers(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as database:
        database.execute("CREATE TABLE further (y float8, t int2, x float8, ward text, earlier float8, offered text)")
        with database.cursor().copy("COPY further FROM STDIN") as copy:
            for row in FRAME.drop(columns="id").itertuples(index=False):
                copy.write_row([None if each != each else each for each in row])
    with open_table(postgres, SPEC, Options(relation="further")) as records:
        np.testing.assert_array_equal(records.sum(fingerprint), in_memory().sum(fingerprint))


def test_spark_hands_over_the_same_numbers(spark: Any, tmp_path: Any) -> None:
    FRAME.to_parquet(tmp_path / "it.parquet")
    spec = TableSpec(outcome="y", treatment="t", bounds=BOUNDS, further=COLUMNS)
    with open_table(spark.read.parquet(str(tmp_path / "it.parquet")).repartition(3), spec) as records:

        def offers(chunk: Chunk) -> Any:
            return np.array([chunk.more["instrument"].sum(), np.abs(chunk.more["instrument"] - chunk.t).sum()]).astype(
                np.int64
            )

        # Workers do not have this file: a function in a function goes to them as it is.
        assert records.n == len(FRAME)
        np.testing.assert_array_equal(records.sum(offers), in_memory().sum(offers))


@pytest.mark.parametrize("source", ["pandas", "csv", "lazy"])
def test_samples_and_codes_keep_further_columns(tmp_path: Any, source: str) -> None:
    spec = TableSpec(outcome="y", treatment="t", bounds=BOUNDS, further=COLUMNS, sample_by="id")

    def codes(x: Any) -> Any:
        return (x.T > 0.5).astype(np.uint8)

    expected = in_memory().sample(0.3, 1_500)
    assert expected is not None
    with open_table(sources(tmp_path)[source], spec) as records:
        some = records.sample(0.3, 1_500)
        assert some is not None
        np.testing.assert_array_equal(some.sum(products), expected.sum(products))
        np.testing.assert_array_equal(records.coded(codes).sum(products), in_memory().sum(products))
    with open_table(sources(tmp_path)[source], spec) as records:
        # A sample without records has as many zeros as the question has numbers.
        nobody = records.sample(1e-9, 1)
        assert nobody is not None
        np.testing.assert_array_equal(nobody.sum(products), np.zeros(3))


def test_rows_of_a_unit_keep_further_columns() -> None:
    spec = TableSpec(outcome="y", treatment="t", bounds=BOUNDS, further=COLUMNS, unit="person", max_rows=2)
    frame = FRAME.assign(person=FRAME["id"] // 2).sample(frac=1, random_state=3)
    with open_table(frame, spec) as records:
        together = records.by_unit()
        assert together is not None
        np.testing.assert_array_equal(together.sum(fingerprint), in_memory().sum(fingerprint))
        # They stay beside the outcomes that they belong to.
        np.testing.assert_array_equal(together.sum(products), in_memory().sum(products))


def test_a_pass_notices_that_a_further_column_changed() -> None:
    columns = SPEC.columns()
    changed = FRAME.assign(earlier=FRAME["earlier"].where(FRAME["id"] != 7, 9.0))
    swapped = FRAME.assign(earlier=FRAME["earlier"].to_numpy()[::-1])

    def checksum(frame: pd.DataFrame) -> int:
        table = pa.Table.from_pandas(frame[list(columns.wanted)], preserve_index=False)
        return Sweep(columns)(table.to_batches()).checksum

    assert len({checksum(frame) for frame in (FRAME, changed, swapped)}) == 3


def test_chunks_with_further_columns_can_be_sent_to_other_processes() -> None:
    chunk = next(iter(in_memory()._chunks()))
    again = pickle.loads(pickle.dumps(chunk))
    np.testing.assert_array_equal(again.more["before"], chunk.more["before"])
    assert set(chunk.more["instrument"]) == {0.0, 1.0}
    assert chunk.more["before"].min() == -1.0
    assert chunk.more["before"].max() == 1.0
    assert (chunk.more["before"] == 0.0).sum() > 100


def test_values_that_have_no_place_are_refused_without_data() -> None:
    for column, value, why in [
        ("earlier", np.inf, "has infinite values"),
        ("offered", "perhaps", "has values outside its declared levels"),
        ("offered", None, "has missing values"),
    ]:
        bad = FRAME.copy()
        bad.loc[11, column] = value
        with pytest.raises(InvalidInput, match=rf"column '{column}' {why}") as refusal, open_table(bad, SPEC):
            pass
        assert "perhaps" not in str(refusal.value)
    records = ArrayRecords.of(FRAME["y"], FRAME["t"], FRAME[["x", "ward"]], bounds=BOUNDS)
    with pytest.raises(InvalidInput, match="Z and Y must have one entry per record each"):
        records.beside({ARM: FRAME["offered"][:-1]}, {"instrument": "Z"})


def test_a_column_that_is_not_there_or_serves_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no column 'offered'"), open_table(FRAME.drop(columns="offered"), SPEC):
        pass
    twice = TableSpec(outcome="y", treatment="t", bounds=BOUNDS, further=((ARM, "t"),))
    with pytest.raises(InvalidInput, match="outcome, treatment, covariates, instrument and propensity must be diff"):
        twice.columns()


def test_the_database_is_let_go() -> None:
    connection = duckdb.connect()
    with closing(connection), open_table(connection.from_df(FRAME), SPEC) as records:
        assert records.sum(products)[0] == len(FRAME)


def test_a_question_may_be_about_a_further_column() -> None:
    question = Query("offers", 1.0, Interval(0.0, 1.0), lambda chunk: chunk.more["instrument"])
    chunk = next(iter(in_memory()._chunks()))
    assert set(question.map(chunk)) == {0.0, 1.0}
