"""Records in Spark: the same bits as in a file, on a cluster whose workers may die, and sums alone come back."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import Bounds, Levels, Range, Uplift
from discreet.data.backends import TableSpec, open_table
from discreet.data.records import Chunk, IntArray
from discreet.exceptions import InvalidInput, SourceFailed
from discreet.testing import seeded_noise
from tests.seeded_fits import BOUNDS, ESTIMATORS, fitted, study

ROLES = {"outcome": "y", "treatment": "t"}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The study as a Parquet file."""
    path = tmp_path_factory.mktemp("study") / "it.parquet"
    study().to_parquet(path, row_group_size=1_500)
    return str(path)


@pytest.mark.parametrize("name", ["ate", "means", "cate", "uplift", "uplift, signed", "uplift, weighted", "adum"])
def test_a_release_has_the_same_bits_as_from_a_file(spark: Any, file: str, name: str) -> None:
    expected, expected_sums = fitted(name, file)
    release, sums = fitted(name, spark.read.parquet(file).repartition(3))
    assert len(sums) == len(expected_sums)
    for ours, theirs in zip(sums, expected_sums, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert release.to_dict() == expected.to_dict()


ODD = Bounds(
    outcome=(-2, 2),
    covariates={
        "the `ward`, or w.": Levels(("it's", "back\\slash", "é", "other"), other="other", fill="é"),
        "Age": Range(20, 60, fill=40),
        "age": (-90.5, 1e6),
        "visits": (0, 2**52),
        "smokes": [False, True],
    },
    treatment=("placebo", "the drug"),
    outcome_fill=0.5,
)


def test_odd_names_levels_and_types_give_the_same_numbers_as_in_memory(spark: Any, tmp_path: Path) -> None:
    n, rng = 400, np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "y": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 2, n)),
            "t": rng.choice(np.array(["placebo", "the drug"], dtype=object), n),
            "the `ward`, or w.": rng.choice(np.array(["it's", "back\\slash", "é", "E", None], dtype=object), n),
            "Age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 20, n)).astype(np.float32),
            "age": rng.integers(-(10**6), 10**9, n) / 1000,
            "visits": rng.integers(-(2**53), 2**53, n, endpoint=True),
            "smokes": rng.random(n) < 0.5,
        }
    )
    frame.to_parquet(tmp_path / "it.parquet")
    conf = {"spark.sql.caseSensitive": "true"}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        there = spark.read.parquet(str(tmp_path / "it.parquet"))
        there = there.withColumn("age", there["age"].cast("decimal(12,3)"))
        estimator = Uplift(
            epsilon=1, bounds=ODD, by={"Age": 4, "age": 3, "the `ward`, or w.": "levels", "smokes": "levels"}
        )
        for options in ({}, {"where": {"Age": (None, 50)}}):
            with seeded_noise(1):
                expected = estimator.fit_table(frame, **ROLES, **options).release_.to_dict()
            with seeded_noise(1):
                assert estimator.fit_table(there, **ROLES, **options).release_.to_dict() == expected
    finally:
        for key in conf:
            spark.conf.unset(key)


def executor() -> int:
    """The Java process that runs this Python worker."""
    pid = os.getpid()
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid


def counted(chunk: Chunk) -> IntArray:
    return np.array([len(chunk.t), np.rint(2**30 * chunk.y).sum(), chunk.x.sum() * 2**20], dtype=np.int64)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_a_worker_that_is_killed_in_the_middle_changes_no_sum(spark: Any, file: str, tmp_path: Path) -> None:
    from pyspark import cloudpickle

    killed = tmp_path / "killed"

    def deadly(chunk: Chunk) -> IntArray:
        if not killed.exists():
            killed.write_text(str(executor()))
            os.kill(executor(), signal.SIGKILL)
            time.sleep(60)
        return counted(chunk)

    # Workers do not have this file.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with open_table(spark.read.parquet(file).repartition(5), TableSpec(bounds=BOUNDS, **ROLES)) as records:
        alive = records.sum(counted)
        after = records.sum(deadly)
    assert not Path(f"/proc/{killed.read_text()}").exists()
    np.testing.assert_array_equal(after, alive)


def test_a_query_with_chance_in_it_is_refused(spark: Any, file: str) -> None:
    from pyspark.sql import functions

    frame = spark.read.parquet(file)
    for chance in (frame.withColumn("y", functions.rand()), frame.where(functions.rand(3) < 0.5)):
        with pytest.raises(InvalidInput, match="chance in it"):
            ESTIMATORS["means"]().fit_table(chance, **ROLES)


def test_a_table_that_changes_between_rounds_releases_nothing(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "it.parquet"
    study(500).to_parquet(path)
    frame = spark.read.parquet(str(path))
    changes: list[int] = []

    def change(*_: object) -> None:
        if not changes:
            changes.append(1)
            study(500, seed=8).to_parquet(path)

    estimator = ESTIMATORS["ate"]()
    with pytest.raises(SourceFailed, match=r"changed while they were being read|could not read the table to its end"):
        estimator.fit_table(frame, progress=change, **ROLES)
    assert not hasattr(estimator, "release_")


SPOILED = {
    "no text": ("ward", "1", "'ward' must hold text .* type is int"),
    "no number": ("age", "current_timestamp()", "'age' must hold numbers"),
    "NULL": ("y", "nullif(y, 0.0) * nullif(dose, 3)", "'y' has missing values"),
    "infinite": ("y", "double('Infinity')", "'y' has infinite values"),
    "level": ("ward", "'secret'", "'ward' has values outside"),
    "int8": ("age", f"bigint({2**53 + 1})", r"'age' has .* beyond 2\*\*53"),
    "decimal": ("age", f"cast(-{2**60} as decimal(20))", r"'age' has .* beyond 2\*\*53"),
    "third arm": ("t", "2", "'t' must hold 0 or 1"),
    "one arm": ("t", "1", "One arm is empty"),
}


@pytest.mark.parametrize(("column", "expression", "reason"), SPOILED.values(), ids=SPOILED)
def test_what_cannot_be_used_is_refused_in_words_that_quote_nothing(
    spark: Any, file: str, column: str, expression: str, reason: str
) -> None:
    from pyspark.sql import functions

    frame = spark.read.parquet(file).withColumn(column, functions.expr(expression))
    # Spark SQL finds out that something is wrong, and a sweep says what.
    with pytest.raises(InvalidInput, match=reason) as refusal:
        ESTIMATORS["uplift"]().fit_table(frame, **ROLES)
    assert "secret" not in str(refusal.value)


def test_missing_columns_empty_frames_and_streams_are_refused(spark: Any, file: str) -> None:
    frame = spark.read.parquet(file)
    estimator = ESTIMATORS["means"]()
    with pytest.raises(InvalidInput, match="table has no column 'age', 'ward': it has 'y', 't', 'dose'"):
        estimator.fit_table(frame.drop("age", "ward"), **ROLES)
    with pytest.raises(InvalidInput, match="fewer than 10 records"):
        estimator.fit_table(frame.where("y > 1e9"), **ROLES)
    with pytest.raises(InvalidInput, match="is a stream"):
        estimator.fit_table(spark.readStream.format("rate").load(), **ROLES)
    with pytest.raises(InvalidInput, match="query already"):
        estimator.fit_table(frame, query="SELECT 1", **ROLES)


def test_a_unit_with_more_rows_than_declared_is_refused(spark: Any, file: str) -> None:
    frame = spark.read.parquet(file).selectExpr("*", "cast(floor(age) as int) as patient").limit(300)
    people = frame.withColumn("patient", frame["patient"])
    with pytest.raises(InvalidInput, match="'patient' has more rows than the 1 declared"):
        ESTIMATORS["means"]().fit_table(people, unit="patient", max_rows=1, **ROLES)
    release = ESTIMATORS["means"]().fit_table(people, unit="patient", max_rows=300, **ROLES).release_
    assert "patient" in release.guarantee.unit


def test_what_the_documentation_shows_runs(spark: Any, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "databases-and-clusters.md").read_text()
    shown = re.findall(r"```py\n(.*?)```", page, re.DOTALL)[1]
    path, n = tmp_path / "claims.parquet", np.arange(400)
    frame = pd.DataFrame({"days": n % 40, "treated": n % 2 == 0, "age": 18 + n % 80, "year": 2020 + n % 6})
    frame.to_parquet(path)
    found = {"spark": spark, "dc": discreet, "bounds": Bounds(outcome=(0, 40), covariates={"age": (18, 100)})}
    with seeded_noise(0):
        exec(compile(shown.replace("s3://bucket/claims", str(path)), "page", "exec"), found)
    assert found["ate"].release_.n == 132


def test_rows_are_told_of_while_partitions_finish(spark: Any, file: str) -> None:
    told: list[int] = []

    def slowly(chunk: Chunk) -> IntArray:
        time.sleep(0.3)
        return np.array([len(chunk.t)])

    with open_table(spark.read.parquet(file).repartition(8), TableSpec(bounds=BOUNDS, **ROLES)) as records:
        np.testing.assert_array_equal(records.sum(slowly, told.append), [6_000])
    assert len(told) > 2
    assert sum(told) == 6_000


def test_whoever_stops_waiting_stops_the_job(spark: Any, file: str) -> None:
    def stop(rows: int) -> None:
        raise KeyboardInterrupt

    def slowly(chunk: Chunk) -> IntArray:
        time.sleep(3.0)
        return np.array([len(chunk.t)])

    frame, start = spark.read.parquet(file).repartition(40), time.monotonic()
    with open_table(frame, TableSpec(bounds=BOUNDS, **ROLES)) as records, pytest.raises(KeyboardInterrupt):
        records.sum(slowly, stop)
    # Two workers would take a minute for all partitions.
    assert time.monotonic() - start < 45
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
