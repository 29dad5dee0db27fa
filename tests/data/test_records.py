"""Records in memory: every container gives the same chunks, and what cannot be used is refused at the door."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import CHUNK_ROWS, Chunk, IntArray
from discreet.exceptions import InvalidInput, MissingBounds, SourceFailed

BOUNDS = Bounds(
    outcome=(0, 10), covariates={"age": (20, 60), "sex": ["f", "m"], "ward": [3, 1, 2]}, propensity=(0.2, 0.8)
)
N = 12
Y = np.arange(N, dtype=float)
T = np.arange(N) % 2
AGE = np.linspace(10, 70, N)
SEX = np.array(["f", "m", "m"] * 4)
WARD = np.array([1, 2, 3, 3] * 3)
COLUMNS = {"ward": WARD, "age": AGE, "sex": SEX}


def whole(records: ArrayRecords) -> Chunk:
    """All chunks of the records, put back together."""
    seen: list[Chunk] = []

    def keep(chunk: Chunk) -> IntArray:
        seen.append(chunk)
        return np.array([len(chunk.t)])

    assert records.sum(keep) == [records.n]
    known = [chunk.e for chunk in seen if chunk.e is not None]
    return Chunk(
        y=np.concatenate([chunk.y for chunk in seen]),
        t=np.concatenate([chunk.t for chunk in seen]),
        x=np.concatenate([chunk.x for chunk in seen]),
        e=np.concatenate(known) if known else None,
    )


def assert_expected(chunk: Chunk) -> None:
    np.testing.assert_array_equal(chunk.y, (np.clip(Y, 0, 10) - 5) / 5)
    np.testing.assert_array_equal(chunk.t, T)
    np.testing.assert_array_equal(chunk.x[:, 0], (np.clip(AGE, 20, 60) - 40) / 20)
    np.testing.assert_array_equal(chunk.x[:, 1], SEX == "m")
    np.testing.assert_array_equal(chunk.x[:, 2], WARD % 3)


def categorical() -> pd.DataFrame:
    return pd.DataFrame(COLUMNS).astype({"sex": "category", "ward": "category"})


TABLES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas objects": lambda: pd.DataFrame(COLUMNS).astype(object),
    "pandas categories": categorical,
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categories": lambda: pl.DataFrame(COLUMNS).cast({"sex": pl.Categorical}),
    "polars chunks": lambda: pl.concat([pl.DataFrame(COLUMNS)[:5], pl.DataFrame(COLUMNS)[5:]], rechunk=False),
    "arrow": lambda: pa.table(COLUMNS),
    "arrow chunks": lambda: pa.concat_tables([pa.table(COLUMNS).slice(0, 5), pa.table(COLUMNS).slice(5)]),
    "arrow dictionaries": lambda: pa.table({**COLUMNS, "sex": pa.array(SEX).dictionary_encode()}),
    "arrow batch": lambda: pa.RecordBatch.from_pydict({name: pa.array(column) for name, column in COLUMNS.items()}),
    "object array": lambda: pd.DataFrame(COLUMNS)[["age", "sex", "ward"]].to_numpy(dtype=object),
    "list of rows": lambda: [list(row) for row in zip(AGE.tolist(), SEX.tolist(), WARD.tolist(), strict=True)],
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_kind_of_table_gives_the_same_chunks(table: Callable[[], Any]) -> None:
    assert_expected(whole(ArrayRecords.of(Y, T, table(), bounds=BOUNDS)))


VECTORS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "column": lambda values: values[:, None],
    "float32": lambda values: values.astype(np.float32),
    "objects": lambda values: values.astype(object),
    "pandas": pd.Series,
    "pandas frame": lambda values: pd.DataFrame({"it": values}),
    "polars": pl.Series,
    "polars frame": lambda values: pl.DataFrame({"it": values}),
    "arrow": pa.array,
    "arrow chunks": lambda values: pa.chunked_array([values[:5], values[5:]]),
}


@pytest.mark.parametrize("form", VECTORS.values(), ids=VECTORS)
def test_every_kind_of_column_gives_the_same_chunks(form: Callable[[Any], Any]) -> None:
    assert_expected(whole(ArrayRecords.of(form(Y), form(T), pd.DataFrame(COLUMNS), bounds=BOUNDS)))


def test_a_plain_array_is_matched_by_position_even_when_the_bounds_have_names() -> None:
    bounds = Bounds(outcome=(0, 10), covariates={"age": (20, 60), "ward": [3, 1, 2]})
    chunk = whole(ArrayRecords.of(Y, T, np.column_stack([AGE, WARD]), bounds=bounds))
    np.testing.assert_array_equal(chunk.x[:, 0], (np.clip(AGE, 20, 60) - 40) / 20)
    np.testing.assert_array_equal(chunk.x[:, 1], WARD % 3)


def test_a_frame_is_matched_by_position_when_the_bounds_have_no_names() -> None:
    bounds = Bounds(outcome=(0, 10), covariates=[(20, 60)])
    for frame in (pd.DataFrame({"anything": AGE}), pd.DataFrame({0: AGE}), pl.DataFrame({"anything": AGE}), AGE):
        chunk = whole(ArrayRecords.of(Y, T, frame, bounds=bounds))
        np.testing.assert_array_equal(chunk.x[:, 0], (np.clip(AGE, 20, 60) - 40) / 20)


def test_records_without_covariates_have_an_empty_table() -> None:
    chunk = whole(ArrayRecords.of(Y, T, bounds=Bounds(outcome=(0, 10))))
    assert chunk.x.shape == (N, 0)
    assert chunk.e is None


@pytest.mark.parametrize("treatment", [T.astype(bool), T.astype(float), pa.array(T.astype(bool)), pd.Series(T == 1)])
def test_treatment_may_be_boolean_or_numeric(treatment: Any) -> None:
    np.testing.assert_array_equal(whole(ArrayRecords.of(Y, treatment, bounds=Bounds(outcome=(0, 1)))).t, T)


def test_treatment_may_carry_two_declared_labels() -> None:
    bounds = Bounds(outcome=(0, 1), treatment=("placebo", "drug"))
    labels = pd.Series(np.where(T, "drug", "placebo"), dtype="category")
    np.testing.assert_array_equal(whole(ArrayRecords.of(Y, labels, bounds=bounds)).t, T)


def test_a_known_propensity_is_a_number_or_a_column() -> None:
    bounds = Bounds(outcome=(0, 1), propensity=(0.2, 0.8))
    np.testing.assert_array_equal(whole(ArrayRecords.of(Y, T, bounds=bounds, propensity=0.5)).e, np.full(N, 0.5))
    known = np.linspace(0.2, 0.8, N)
    for form in (np.asarray, list, pd.Series, pa.array):
        np.testing.assert_array_equal(whole(ArrayRecords.of(Y, T, bounds=bounds, propensity=form(known))).e, known)


def test_declared_fills_stand_in_for_missing_values() -> None:
    bounds = Bounds(
        outcome=(0, 10),
        covariates={"age": Range(20, 60, fill=40), "sex": Levels(("f", "m"), fill="m")},
        outcome_fill=10,
    )
    y, age, sex = Y.copy(), AGE.copy(), SEX.astype(object)
    y[0] = age[0] = np.nan
    sex[0] = None
    for frame in (pd.DataFrame({"age": age, "sex": sex}), pl.DataFrame({"age": age, "sex": sex.tolist()})):
        chunk = whole(ArrayRecords.of(y, T, frame, bounds=bounds))
        assert (chunk.y[0], chunk.x[0, 0], chunk.x[0, 1]) == (1, 0, 1)


def test_a_covariate_that_is_constant_in_the_data_is_accepted() -> None:
    records = ArrayRecords.of(Y, T, np.full((N, 1), 30.0), bounds=Bounds(outcome=(0, 10), covariates=[(20, 60)]))
    np.testing.assert_array_equal(whole(records).x, np.full((N, 1), -0.5))


@settings(max_examples=25)
@given(st.integers(10, 3 * CHUNK_ROWS), st.integers(0, 2**32 - 1))
def test_sums_do_not_depend_on_where_chunks_end_and_are_never_long(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, x = rng.normal(size=n), rng.normal(size=(n, 2))
    records = ArrayRecords.of(y, np.arange(n) % 2, x, bounds=Bounds(outcome=(-1, 1), covariates=[(-1, 1)] * 2))
    sizes: list[int] = []
    progress: list[int] = []

    def kernel(chunk: Chunk) -> IntArray:
        sizes.append(len(chunk.t))
        part: IntArray = np.rint(2.0**30 * np.column_stack([chunk.y, chunk.x])).astype(np.int64).sum(axis=0)
        return part

    total = records.sum(kernel, progress.append)
    expected = np.rint(2.0**30 * np.clip(np.column_stack([y, x]), -1, 1)).astype(np.int64).sum(axis=0)
    np.testing.assert_array_equal(total, expected)
    assert max(sizes) <= CHUNK_ROWS
    assert sum(sizes) == sum(progress) == n == records.n


def test_numeric_arrays_are_not_copied() -> None:
    x = np.asfortranarray(np.zeros((N, 2)))
    records = ArrayRecords.of(Y, T, x, bounds=Bounds(outcome=(0, 1), covariates=[(0, 1), (0, 1)]))
    assert records.held.y is Y
    assert all(np.shares_memory(column, x) for column in records.held.x)


def test_printing_records_prints_no_data() -> None:
    text = repr(ArrayRecords.of(Y, T, bounds=Bounds(outcome=(0, 10))))
    assert "n=12" in text
    assert "array" not in text
    assert "held" not in text


def frame_with(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({**COLUMNS, **columns})


def spoiled(values: Any, value: Any, dtype: Any = None) -> Any:
    out = np.array(values, dtype=dtype)
    out[3] = value
    return out


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "shorter T": ({"T": T[:-1]}, "T and Y must have one entry per record"),
    "longer X": ({"X": pd.concat([frame_with(), frame_with()])}, "X and Y must have one entry per record"),
    "short propensity": ({"propensity": np.full(5, 0.5)}, "propensity and Y must have one entry per record"),
    "few records": ({"Y": Y[:9], "T": T[:9], "X": frame_with()[:9]}, "fewer than 10 records"),
    "NaN in Y": ({"Y": spoiled(Y, np.nan)}, "Y has missing values"),
    "inf in Y": ({"Y": spoiled(Y, np.inf)}, "Y has infinite values"),
    "text in Y": ({"Y": SEX}, "Y must hold numbers, but its type is string"),
    "complex Y": ({"Y": Y + 0j}, "Y must hold"),
    "dates in Y": ({"Y": pd.Series(pd.date_range("2020-01-01", periods=N))}, "Y must hold numbers.*timestamp"),
    "two columns in Y": ({"Y": np.column_stack([Y, Y])}, "Y must be a single column"),
    "cube": ({"X": np.zeros((N, 3, 1))}, "X must be an array or a frame"),
    "scalar": ({"Y": 3.0}, "Y must be an array or a frame"),
    "dictionary": ({"X": COLUMNS}, "X must be an array or a frame"),
    "ragged": ({"X": [[1.0], [1.0, 2.0]] * 6}, "X must have the same number of entries in every row"),
    "masked": ({"Y": np.ma.masked_equal(Y, 3)}, "Y is a masked array"),
    "mixed object": ({"X": frame_with(age=spoiled(AGE, "x", object))}, "column 'age' of X must hold one kind of value"),
    "three arms": ({"T": spoiled(T, 2)}, "T must hold 0 or 1"),
    "missing T": ({"T": spoiled(T, np.nan, float)}, "T must hold 0 or 1"),
    "text T": ({"T": SEX}, "T must hold 0 or 1"),
    "all treated": ({"T": np.ones(N)}, "One arm is empty"),
    "none treated": ({"T": np.zeros(N)}, "One arm is empty"),
    "NaN in X": ({"X": frame_with(age=spoiled(AGE, np.nan))}, "column 'age' of X has missing values"),
    "inf in X": ({"X": frame_with(age=spoiled(AGE, -np.inf))}, "column 'age' of X has infinite values"),
    "text in X": ({"X": frame_with(age=AGE.astype(str))}, "column 'age' of X must hold numbers"),
    "unknown level": (
        {"X": frame_with(sex=spoiled(SEX, "z"))},
        "column 'sex' of X has values outside its declared levels",
    ),
    "null level": ({"X": frame_with(sex=spoiled(SEX, None, object))}, "column 'sex' of X has missing values"),
    "missing column": ({"X": frame_with().drop(columns="age")}, "X lacks columns that the bounds declare: 'age'"),
    "extra column": (
        {"X": frame_with(name="z")},
        "X has columns that the bounds do not declare: drop or declare 'name'",
    ),
    "twice a column": ({"X": pd.concat([frame_with(), frame_with()], axis=1)}, "two columns with the same name"),
    "too few columns": ({"X": np.zeros((N, 2))}, "X has 2 columns, but the bounds declare 3"),
    "no X": ({"X": None}, "X is missing, but the bounds declare covariates"),
    "lazy": ({"X": pl.LazyFrame(COLUMNS)}, "X is a lazy table: collect it"),
    "low propensity": ({"propensity": 0.1}, "propensity must lie inside the declared"),
    "NaN propensity": ({"propensity": np.nan}, "propensity must lie inside the declared"),
    "high propensity": ({"propensity": spoiled(np.full(N, 0.5), 0.9)}, "propensity must lie inside the declared"),
    "text propensity": ({"propensity": "0.5"}, "propensity must be an array"),
}


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used_is_refused_at_the_door(changes: dict[str, Any], reason: str) -> None:
    arguments = {"Y": Y, "T": T, "X": frame_with(), "bounds": BOUNDS, **changes}
    with pytest.raises(InvalidInput, match=reason):
        ArrayRecords.of(**arguments)


def test_covariates_without_declared_bounds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="X has columns that the bounds do not declare"):
        ArrayRecords.of(Y, T, frame_with(), bounds=Bounds(outcome=(0, 1)))
    with pytest.raises(InvalidInput, match="X has 1 columns, but the bounds declare 0"):
        ArrayRecords.of(Y, T, AGE, bounds=Bounds(outcome=(0, 1)))


def test_missing_bounds_are_refused() -> None:
    with pytest.raises(MissingBounds, match="declare them"):
        ArrayRecords.of(Y, T, bounds=None)  # type: ignore[arg-type]


KERNELS: dict[str, tuple[Callable[[Chunk], Any], str]] = {
    "nothing": (lambda chunk: None, "non-empty int64"),
    "floats": (lambda chunk: chunk.y, "non-empty int64"),
    "empty": (lambda chunk: np.empty(0, dtype=np.int64), "non-empty int64"),
    "small ints": (lambda chunk: np.ones(3, dtype=np.int32), "non-empty int64"),
    "changing shape": (lambda chunk: np.ones(len(chunk.t), dtype=np.int64), "one shape"),
}


@pytest.mark.parametrize(("kernel", "reason"), KERNELS.values(), ids=KERNELS)
def test_a_kernel_that_returns_anything_but_integers_is_a_programming_error(kernel: Any, reason: str) -> None:
    n = CHUNK_ROWS + 1
    records = ArrayRecords.of(np.zeros(n), np.arange(n) % 2, bounds=Bounds(outcome=(0, 1)))
    with pytest.raises(TypeError, match=reason):
        records.sum(kernel)


def test_too_little_memory_for_a_chunk_in_memory_is_a_sentence() -> None:
    def full(chunk: Any) -> Any:
        raise MemoryError("17 GiB for an array of shape (31337, 2)")

    records = ArrayRecords.of(np.linspace(0, 1, 40), np.arange(40) % 2, bounds=Bounds(outcome=(0, 1)))
    with pytest.raises(SourceFailed, match=r"too little memory for a few thousand records: .*stays spent"):
        records.sum(full)
