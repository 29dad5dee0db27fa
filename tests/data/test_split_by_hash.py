"""Splits by a keyed hash: the same halves on every engine, whatever the records hold and in whatever order."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.data.bounds import Bounds
from discreet.data.sampling import part_numbers
from discreet.exceptions import InvalidInput
from discreet.papers import PrivATE
from discreet.testing import record_sums, seeded_noise

BOUNDS = Bounds(outcome=(0, 1), covariates={"x": (0, 1)}, propensity=(0.2, 0.8))


def study(n=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"id": np.arange(n), "y": rng.random(n), "t": rng.integers(0, 2, n), "x": rng.random(n)}
    ).assign(name=lambda rows: "p" + rows["id"].astype(str))


def test_a_unit_is_in_the_same_part_however_its_name_is_stored():
    whole = np.arange(500)
    of = part_numbers(whole, "id", key=7, parts=2)
    for units in (
        whole.astype(float),
        whole.astype(str).astype(object),
        pa.array(whole, pa.int16()),
        pa.chunked_array([whole]),
    ):
        np.testing.assert_array_equal(part_numbers(units, "id", key=7, parts=2), of)
    np.testing.assert_array_equal(part_numbers(whole[::-1], "id", key=7, parts=2), of[::-1])
    # Halves of 500: within four standard deviations of even; and another key gives others.
    assert abs(of.sum() - 250) < 4 * np.sqrt(125)
    assert 150 < np.sum(of != part_numbers(whole, "id", key=8, parts=2)) < 350


def test_names_that_are_missing_or_no_names_are_refused():
    with pytest.raises(InvalidInput, match="id has missing values"):
        part_numbers(pa.array([1, None]), "id", key=0, parts=2)
    with pytest.raises(InvalidInput, match="id must hold whole numbers or text"):
        part_numbers(np.array([1.5]), "id", key=0, parts=2)


@pytest.mark.parametrize("column", ["id", "name"])
def test_private_halves_are_the_same_on_every_engine(tmp_path: Path, column):
    frame = study()
    mixed = frame.sample(frac=1, random_state=3)
    mixed.to_parquet(tmp_path / "it.parquet", row_group_size=50)
    arrow = pa.Table.from_pandas(mixed)
    tables = [frame, pl.from_pandas(mixed).lazy(), duckdb.connect().from_arrow(arrow), str(tmp_path / "it.parquet")]
    found = []
    for table in tables:
        estimator = PrivATE(epsilon=1, delta=1e-6, bounds=BOUNDS, calibration="proved", split="private", random_state=5)
        with seeded_noise(0), record_sums() as recorded:
            estimator.fit_table(table, outcome="y", treatment="t", split_by=column)
        found.append(np.concatenate([sums for _, _, sums, _ in recorded]))
        assert f"which half of the records each {column} is in" in estimator.guarantee_.public
    for sums in found[1:]:
        np.testing.assert_array_equal(sums, found[0])


def test_rows_without_an_order_have_no_halves_of_their_own():
    estimator = PrivATE(epsilon=1, delta=1e-6, bounds=BOUNDS, calibration="proved", split="private")
    with pytest.raises(InvalidInput, match="split needs split_by="):
        estimator.fit_table(pl.from_pandas(study()).lazy(), outcome="y", treatment="t")
    with pytest.raises(InvalidInput, match="unit is not for PrivATE"):
        estimator.fit_table(study(), outcome="y", treatment="t", unit="id", max_rows=1)


@pytest.mark.parametrize("option", ["wher", "sample_by"])
def test_options_that_a_split_by_hash_has_no_use_for_are_refused(option):
    estimator = PrivATE(epsilon=1, delta=1e-6, bounds=BOUNDS, calibration="proved", split="private")
    with pytest.raises(InvalidInput, match=f"fit_table does not take {option}="):
        estimator.fit_table(study(), outcome="y", treatment="t", split_by="id", **{option: "id"})
