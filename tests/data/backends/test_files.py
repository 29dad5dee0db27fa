"""Records in files: the same chunks as in memory, and refusals that name columns and never quote values."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.data.backends import TableSpec, open_table
from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import CHUNK_ROWS, Chunk, IntArray, Records
from discreet.exceptions import InvalidInput, MissingBounds, SourceFailed

BOUNDS = Bounds(
    outcome=(-2, 2),
    covariates={
        "age": Range(20, 60, fill=40),
        "sex, or gender": Levels(("f", "m"), other="f", fill="m"),
        'the "ward"': [3, 1, 2],
        "smokes": [False, True],
    },
    treatment=("placebo", "drug"),
    propensity=(0.2, 0.8),
)


def study(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "smokes": rng.random(n) < 0.3,
            'the "ward"': rng.integers(1, 4, n),
            "sex, or gender": rng.choice(np.array(["f", "m", 'x"y', None]), n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 20, n)),
            "y": rng.standard_normal(n),
            "arm": np.where(np.arange(n) % 2, "drug", "placebo"),
            "e": rng.uniform(0.2, 0.8, n),
        }
    )


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=3_000)
    else:
        frame.to_csv(path, index=False)
    return path


def fingerprint(chunk: Chunk) -> IntArray:
    """A sum that depends on every bit of every record, and not on their order."""
    assert len(chunk.t) <= CHUNK_ROWS
    assert chunk.e is not None
    rows = np.ascontiguousarray(np.column_stack([chunk.y, chunk.t, chunk.x, chunk.e]))
    mixed = rows.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.concatenate([[len(rows)], (mixed >> np.uint64(20)).sum(axis=0).view(np.int64)])


def in_memory(frame: pd.DataFrame, bounds: Bounds = BOUNDS) -> Records:
    return ArrayRecords.of(frame["y"], frame["arm"], frame[list(bounds.names)], bounds=bounds, propensity=frame["e"])


def opened(path: Path | str, **arguments: Any) -> Records:
    """Records of a table, checked as the first round does."""
    with open_table(path, TableSpec(**arguments)) as records:
        records.sum(lambda chunk: np.ones(1, dtype=np.int64))
        return records


def in_file(path: Path | str, bounds: Bounds = BOUNDS, **changes: Any) -> Records:
    return opened(path, **{"outcome": "y", "treatment": "arm", "bounds": bounds, "propensity": "e", **changes})


@pytest.mark.parametrize(
    "name", ["it.csv", "it.csv.gz", "it.parquet", 'it\'s [1] *odd* "name".csv', "it's [1] *odd*.parquet"]
)
def test_a_file_gives_the_same_bits_as_arrays(tmp_path: Path, name: str) -> None:
    frame = study(3 * CHUNK_ROWS + 17)
    records = in_file(write(frame, tmp_path / name))
    assert records.n == len(frame)
    np.testing.assert_array_equal(records.sum(fingerprint), in_memory(frame).sum(fingerprint))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.integers(10, 200), st.integers(0, 2**32 - 1), st.sampled_from(["it.csv", "it.parquet"]))
def test_every_float_survives_the_file(tmp_path: Path, n: int, seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    frame = study(n, seed).assign(y=rng.standard_normal(n) * 10.0 ** rng.integers(-300, 1, n))
    expected = in_memory(frame).sum(fingerprint)
    np.testing.assert_array_equal(in_file(write(frame, tmp_path / name)).sum(fingerprint), expected)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_pattern_reads_all_files_even_with_columns_in_another_order(tmp_path: Path, suffix: str) -> None:
    frame = study(100)
    write(frame[:40], tmp_path / f"a.{suffix}")
    write(frame[40:][frame.columns[::-1]], tmp_path / f"b.{suffix}")
    records = in_file(tmp_path / f"*.{suffix}")
    np.testing.assert_array_equal(records.sum(fingerprint), in_memory(frame).sum(fingerprint))


def test_progress_is_reported_in_rows(tmp_path: Path) -> None:
    n = 2 * CHUNK_ROWS + 1
    progress: list[int] = []
    in_file(write(study(n), tmp_path / "it.parquet")).sum(fingerprint, progress.append)
    assert sum(progress) == n
    assert len(progress) == 3


def test_covariates_may_be_named_in_any_order(tmp_path: Path) -> None:
    frame = study(50)
    records = in_file(write(frame, tmp_path / "it.parquet"), covariates=list(BOUNDS.names)[::-1])
    np.testing.assert_array_equal(records.sum(fingerprint), in_memory(frame).sum(fingerprint))


def test_bounds_by_position_take_their_columns_from_the_covariates(tmp_path: Path) -> None:
    frame = study(50)
    path = write(frame, tmp_path / "it.csv")
    bounds = Bounds(outcome=(-2, 2), covariates=[(0, 50), [3, 1, 2]], treatment=("placebo", "drug"))
    records = in_file(path, bounds, covariates=["id", 'the "ward"'])
    expected = ArrayRecords.of(
        frame["y"], frame["arm"], frame[["id", 'the "ward"']].to_numpy(), bounds=bounds, propensity=frame["e"]
    )
    np.testing.assert_array_equal(records.sum(fingerprint), expected.sum(fingerprint))
    with pytest.raises(InvalidInput, match="covariates must list the columns, in order"):
        in_file(path, bounds)


def test_a_propensity_known_by_design_may_be_one_number(tmp_path: Path) -> None:
    path = write(study(50), tmp_path / "it.csv")
    half = in_file(path, propensity=0.5).sum(lambda chunk: np.array([np.count_nonzero(chunk.e == 0.5)]))
    assert half == [50]
    absent = in_file(path, propensity=None).sum(lambda chunk: np.array([int(chunk.e is None)]))
    assert absent == [1]


@pytest.mark.parametrize("truth", [("true", "false"), ("True", "False"), ("1", "0"), ("1.0", "0.0")])
def test_a_csv_may_spell_booleans_and_treatment_in_the_usual_ways(tmp_path: Path, truth: tuple[str, str]) -> None:
    yes, no = truth
    path = tmp_path / "it.csv"
    path.write_text("y,t,b\n" + f"1,{yes},{yes}\n0,{no},{no}\n" * 6)
    records = opened(path, outcome="y", treatment="t", bounds=Bounds(outcome=(0, 1), covariates={"b": [False, True]}))
    kernel = lambda chunk: np.array([chunk.t @ chunk.x[:, 0], chunk.x.sum(), chunk.t @ chunk.y], dtype=np.int64)  # noqa: E731
    np.testing.assert_array_equal(records.sum(kernel), [6, 6, 6])


def test_how_a_csv_record_is_read_does_not_depend_on_the_others(tmp_path: Path) -> None:
    lines = ["007,1", "#1,0", "t,1", "'a,0", "2020-01-01,1"] * 3
    path = tmp_path / "it.csv"
    path.write_text("\n".join(["code,t", *lines]) + "\n")
    levels = ["007", "#1", "t", "'a", "2020-01-01"]
    rows = pd.read_csv(path, dtype={"code": str}).assign(y=0.0)
    bounds = Bounds(outcome=(0, 1), covariates={"code": levels})
    counts = opened(write(rows, path), outcome="y", treatment="t", bounds=bounds).sum(
        lambda chunk: np.bincount(chunk.x[:, 0].astype(int), minlength=5).astype(np.int64)
    )
    np.testing.assert_array_equal(counts, [3] * 5)


SPOILED: dict[str, tuple[dict[str, Any], str]] = {
    "missing outcome": ({"y": np.nan}, "column 'y' has missing values"),
    "infinite age": ({"age": np.inf}, "column 'age' has infinite values"),
    "unknown ward": ({'the "ward"': 77}, "ward\"' has values outside its declared levels"),
    "third arm": ({"arm": "secret"}, "column 'arm' must hold 0 or 1"),
    "missing arm": ({"arm": None}, "column 'arm' must hold 0 or 1"),
    "propensity": ({"e": 0.99}, "column 'e' must lie inside the declared"),
    "missing propensity": ({"e": np.nan}, "column 'e' must lie inside the declared"),
}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(("change", "reason"), SPOILED.values(), ids=SPOILED)
def test_what_cannot_be_used_is_refused_at_the_door(
    tmp_path: Path, suffix: str, change: dict[str, Any], reason: str
) -> None:
    frame = study(40)
    for name, value in change.items():
        frame.loc[7, name] = value
    with pytest.raises(InvalidInput, match=reason) as refusal:
        in_file(write(frame, tmp_path / f"it.{suffix}"))
    assert "secret" not in str(refusal.value)
    assert "77" not in str(refusal.value).replace(str(tmp_path), "")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_too_few_records_and_an_empty_arm_are_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InvalidInput, match="fewer than 10"):
        in_file(write(study(9), tmp_path / f"it.{suffix}"))
    with pytest.raises(InvalidInput, match="One arm is empty"):
        in_file(write(study(40).assign(arm="drug"), tmp_path / f"it.{suffix}"))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_text_where_numbers_are_declared_is_refused_by_column_and_not_quoted(tmp_path: Path, suffix: str) -> None:
    frame = study(40).astype({"age": object})
    frame.loc[:, "age"] = "secret"
    with pytest.raises(InvalidInput, match="column 'age' must hold numbers") as refusal:
        in_file(write(frame, tmp_path / f"it.{suffix}"))
    assert "secret" not in str(refusal.value)


def test_one_word_late_in_a_numeric_csv_column_is_refused_by_column_and_not_quoted(tmp_path: Path) -> None:
    frame = study(30_000).astype({"age": object})
    frame.loc[29_000, "age"] = "secret"
    with pytest.raises(InvalidInput, match="column 'age' must hold numbers, but has text") as refusal:
        in_file(write(frame, tmp_path / "it.csv"))
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("column", "values"), [("age", pd.date_range("2020-01-01", periods=40)), ("sex, or gender", np.arange(40))]
)
def test_a_parquet_column_of_the_wrong_type_is_refused_by_name(tmp_path: Path, column: str, values: Any) -> None:
    with pytest.raises(InvalidInput, match=f"column '{column}' must hold .*, but its type is (timestamp|bigint)"):
        in_file(write(study(40).assign(**{column: values}), tmp_path / "it.parquet"))


def test_a_missing_column_is_refused_by_name(tmp_path: Path) -> None:
    frame = study(40).drop(columns=["age", "e"])
    with pytest.raises(InvalidInput, match="has no column 'age', 'e': it has 'id', 'smokes'"):
        in_file(write(frame, tmp_path / "it.parquet"))
    with pytest.raises(InvalidInput, match="has no column 'age', 'e': its first line must hold the names"):
        in_file(write(frame, tmp_path / "it.csv"))


def test_names_differ_when_their_case_differs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no column 'Y'"):
        in_file(write(study(40), tmp_path / "it.parquet"), outcome="Y")


def test_a_csv_without_a_header_does_not_show_its_first_record(tmp_path: Path) -> None:
    study(40).assign(y="secret").to_csv(tmp_path / "it.csv", index=False, header=False)
    with pytest.raises(InvalidInput, match="its first line must hold the names") as refusal:
        in_file(tmp_path / "it.csv")
    assert "secret" not in str(refusal.value)


def test_a_broken_file_is_refused_without_quoting_it(tmp_path: Path) -> None:
    lines = write(study(40), tmp_path / "it.csv").read_text().splitlines()
    (tmp_path / "it.csv").write_text("\n".join([*lines[:20], "secret,secret", *lines[20:]]))
    with pytest.raises(InvalidInput, match="not readable as CSV: use double quotes") as refusal:
        in_file(tmp_path / "it.csv")
    assert "secret" not in str(refusal.value)
    (tmp_path / "it.parquet").write_bytes(b"PAR1secret")
    with pytest.raises(InvalidInput, match="not readable as Parquet"):
        in_file(tmp_path / "it.parquet")


def test_a_file_that_is_not_there_is_refused_by_its_name(tmp_path: Path) -> None:
    for name in ("missing.csv", "missing*.parquet"):
        with pytest.raises(InvalidInput, match=r"There is no file .*missing"):
            in_file(tmp_path / name)
    with pytest.raises(InvalidInput, match=r"must end in \.csv"):
        in_file(tmp_path / "it.doc")


ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "same column twice": ({"propensity": "y"}, "must be different columns"),
    "a name, not a list": ({"covariates": "age"}, "takes a list of column names"),
    "an undeclared covariate": ({"covariates": [*BOUNDS.names, "id"]}, "do not declare: drop or declare 'id'"),
    "a forgotten covariate": (
        {"covariates": ["age"]},
        "covariates lacks columns that the bounds declare: 'sex, or gender'",
    ),
    "a propensity outside": ({"propensity": 0.9}, "propensity must lie inside"),
}


@pytest.mark.parametrize(("changes", "reason"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_that_make_no_sense_are_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        in_file(write(study(40), tmp_path / "it.csv"), **changes)


def test_missing_bounds_are_refused() -> None:
    with pytest.raises(MissingBounds, match="declare them"):
        opened("it.csv", outcome="y", treatment="t", bounds=None)  # type: ignore[arg-type]


def test_a_file_that_changes_between_passes_is_refused(tmp_path: Path) -> None:
    records = in_file(write(study(40), tmp_path / "it.csv"))
    write(study(41), tmp_path / "it.csv")
    with pytest.raises(SourceFailed, match=r"changed while they were being read.*stays spent"):
        records.sum(fingerprint)
