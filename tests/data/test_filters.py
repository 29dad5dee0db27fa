"""A filter that is declared means the same in every engine, and is public."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from discreet import Bounds, DifferenceInMeans, Uplift
from discreet.data.filters import conditions, in_words
from discreet.exceptions import InvalidInput
from discreet.testing import record_sums, seeded_noise

BOUNDS = Bounds(outcome=(0, 1), covariates={"x": (0, 10)})


def table(n: int = 900) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "y": rng.integers(0, 2, n),
            "t": np.arange(n) % 2,
            "x": rng.integers(0, 11, n).astype(np.float64),
            "ward": pa.array(rng.choice(np.array(["a", "b", "it's", None]), n)),
            "score": pa.array(rng.choice(np.array([1.0, 2.5, np.nan, np.inf]), n), mask=rng.random(n) < 0.1),
            "year": pa.array(rng.integers(2018, 2023, n), pa.int16()),
            "open": rng.random(n) < 0.5,
        }
    )


ROWS = table()
WHERE: dict[str, tuple[dict[str, Any], Any]] = {
    "a value": ({"year": 2020}, lambda r: r["year"] == 2020),
    "values": ({"year": [2019, 2021]}, lambda r: r["year"] in (2019, 2021)),
    "a range": ({"x": (2, 7)}, lambda r: 2 <= r["x"] <= 7),
    "an open range": ({"score": (2, None)}, lambda r: r["score"] is not None and r["score"] >= 2),
    "a text": ({"ward": "it's"}, lambda r: r["ward"] == "it's"),
    "texts": ({"ward": ["a", "b"]}, lambda r: r["ward"] in ("a", "b")),
    "a truth": ({"open": True}, lambda r: r["open"]),
    "two conditions": ({"open": False, "x": (None, 5)}, lambda r: not r["open"] and r["x"] <= 5),
    "an arm's own column": ({"t": [0, 1], "y": [0, 1]}, lambda r: True),
}


def tables(folder: Path) -> dict[str, Any]:
    pq.write_table(ROWS, folder / "it.parquet", row_group_size=100)
    ROWS.to_pandas().to_csv(folder / "it.csv", index=False)
    return {
        "pandas": ROWS.to_pandas(),
        "polars": pl.from_arrow(ROWS),
        "lazy": pl.from_arrow(ROWS).lazy(),
        "relation": duckdb.connect().from_arrow(ROWS),
        "dataset": ds.dataset(folder / "it.parquet"),
        "parquet": str(folder / "it.parquet"),
        "csv": str(folder / "it.csv"),
    }


@pytest.mark.parametrize(("where", "meant"), WHERE.values(), ids=WHERE)
def test_the_same_rows_are_meant_everywhere(tmp_path: Path, where: Any, meant: Any) -> None:
    kept = pa.Table.from_pylist([row for row in ROWS.to_pylist() if meant(row)], ROWS.schema)
    makers = (
        lambda: DifferenceInMeans(epsilon=1, bounds=BOUNDS),
        lambda: Uplift(epsilon=1, bounds=BOUNDS, by={"x": 3}),
    )
    for maker in makers:
        with seeded_noise(0), record_sums() as expected:
            maker().fit_table(kept, outcome="y", treatment="t")
        for kind, rows in tables(tmp_path).items():
            estimator = maker()
            with seeded_noise(0), record_sums() as recorded:
                estimator.fit_table(rows, outcome="y", treatment="t", where=where)
            for (*_, one, _), (*_, other, _) in zip(expected, recorded, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=kind)
            assert "the filter that chose the records" in estimator.release_.guarantee.public


BAD: dict[str, tuple[Any, str]] = {
    "SQL": ("year = 2020", "SQL is not taken"),
    "a pair of nothing": ({"x": (None, None)}, "no pair"),
    "a triple": ({"x": (1, 2, 3)}, "no pair"),
    "reversed ends": ({"x": (7, 2)}, "ends reversed"),
    "an empty list": ({"x": []}, "takes a value, a list of values"),
    "text and numbers": ({"x": [1, "a"]}, "all numbers or all text"),
    "text in a range": ({"x": ("a", "b")}, "pair .low, high. of numbers"),
    "a huge number": ({"x": 2**60}, r"at most 2\*\*53"),
    "NaN": ({"x": float("nan")}, r"at most 2\*\*53"),
    "a dictionary": ({"x": {}}, "takes a value"),
    "a column by number": ({3: 1}, "must name its columns by text"),
}


@pytest.mark.parametrize(("where", "reason"), BAD.values(), ids=BAD)
def test_conditions_that_make_no_sense_are_refused(where: Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        conditions(where)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"nothing": 1}, "no column 'nothing'"),
        ({"x": "a"}, "does not fit what the bounds declare"),
        ({"ward": 3}, "column 'ward'.* must hold numbers"),
        ({"year": (3000, 4000)}, "fewer than 10"),
    ],
)
def test_filters_that_do_not_fit_the_table_are_refused(tmp_path: Path, where: Any, reason: str) -> None:
    for kind, rows in tables(tmp_path).items():
        if kind == "csv" and "ward" in where:
            reason = "column 'ward' must hold numbers"
        with pytest.raises(InvalidInput, match=reason):
            DifferenceInMeans(epsilon=1, bounds=BOUNDS).fit_table(rows, outcome="y", treatment="t", where=where)


def test_the_command_line_takes_filters_in_words() -> None:
    words = ["year=2020", "ward=a,b", "age=18:65", "x=1.5:", "z=:2", "name=a:b", "codes=1,x"]
    assert in_words(words) == {
        "year": [2020.0],
        "ward": ["a", "b"],
        "age": (18.0, 65.0),
        "x": (1.5, None),
        "z": (None, 2.0),
        "name": ["a:b"],
        "codes": ["1", "x"],
    }
    for wrong in (["year"], ["=3"], ["year="], ["x=1", "x=2"]):
        with pytest.raises(InvalidInput, match="--where takes"):
            in_words(wrong)
