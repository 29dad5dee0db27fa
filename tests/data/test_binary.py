"""Binary outcomes are declared by two labels: the same numbers as the range (0, 1), and no third value."""

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import ATE, CATE, Bounds, DifferenceInMeans, InvalidInput, Ledger, Uplift
from discreet.data.bounds import Levels, Range
from discreet.data.in_memory import ArrayRecords
from discreet.datasets._placeholder import dummy
from discreet.testing import check_estimator, frozen_noise, record_sums

SURVEY = Bounds(outcome=["no", "yes"], outcome_fill="no", covariates={"age": (18, 100)}, treatment=("leaflet", "visit"))
N = 40
REFUSAL = (
    "must hold one of the two labels in Bounds(outcome=[no event, event]) in every record: recode it, declare "
    "outcome_fill= for missing ones, or declare a range (low, high)."
)


def events(Y: Any, bounds: Bounds) -> list[float]:
    """What estimators see of outcomes."""
    records = ArrayRecords.of(Y, np.arange(len(Y)) % 2, bounds=bounds)
    return np.concatenate([chunk.y for chunk in records._chunks()]).tolist()


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        ([0, 1], [0, 1]),
        ([0, 1], [False, True]),
        ([0, 1], [0.0, 1.0]),
        ([False, True], [0, 1]),
        ([1, 0], [1, 0]),
        ([-1, 2.5], [-1.0, 2.5]),
        (["no", "yes"], ["no", "yes"]),
    ],
)
@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series, pa.array])
def test_the_second_label_is_the_event(labels: Any, values: Any, kind: Any) -> None:
    assert events(kind(values * 6), Bounds(outcome=labels)) == [-1.0, 1.0] * 6


def test_missing_outcomes_are_the_label_that_was_declared_for_them() -> None:
    for fill, code in (("no", -1.0), ("yes", 1.0)):
        bounds = Bounds(outcome=["no", "yes"], outcome_fill=fill)
        assert events(pd.Series(["yes", None] * 6), bounds) == [1.0, code] * 6
    assert events(np.array([1.0, math.nan] * 6), Bounds(outcome=[0, 1], outcome_fill=0)) == [1.0, -1.0] * 6


def test_a_binary_outcome_is_the_range_from_0_to_1_to_whoever_computes() -> None:
    for labels in ([0, 1], ["no", "yes"], [2, 1]):
        bounds = Bounds(outcome=labels)
        assert bounds.binary
        assert bounds.outcome == (0.0, 1.0)
        assert bounds.outcome_range == Range(0, 1)
        assert (bounds.outcome_width, bounds.outcome_middle) == (1.0, 0.5)
        assert bounds.outcome_column == bounds.outcome_levels == Levels(tuple(labels))
    assert SURVEY.outcome_range == Range(0, 1, fill=0)
    plain = Bounds(outcome=(0, 1))
    assert not plain.binary
    assert (plain.outcome_levels, plain.outcome_column) == (None, Range(0, 1))


@pytest.mark.parametrize(
    "twin",
    [
        copy.copy,
        copy.deepcopy,
        lambda it: pickle.loads(pickle.dumps(it)),
        dataclasses.replace,
        lambda it: Bounds.from_toml(it.to_toml()),
        lambda it: Bounds.from_dict(json.loads(json.dumps(it.to_dict()))),
        lambda it: eval(repr(it)),
    ],
)
@pytest.mark.parametrize("bounds", [SURVEY, Bounds(outcome=[0, 1]), Bounds(outcome=[True, False])], ids=repr)
def test_a_copy_has_the_same_labels(bounds: Bounds, twin: Any) -> None:
    made = twin(bounds)
    assert made == bounds
    assert hash(made) == hash(bounds)
    assert (repr(made), made.to_toml()) == (repr(bounds), bounds.to_toml())


def test_bounds_made_from_another_outcome_keep_its_labels() -> None:
    assert Bounds(outcome=SURVEY.outcome).outcome_levels == Levels(("no", "yes"))
    assert dataclasses.replace(SURVEY, covariates=None).outcome_levels == SURVEY.outcome_levels
    assert not dataclasses.replace(Bounds(outcome=[0, 1]), outcome=(0, 1)).binary


def test_a_list_and_a_tuple_are_different_facts() -> None:
    assert Bounds(outcome=[0, 1]) != Bounds(outcome=(0, 1))
    assert Bounds(outcome=[0, 1]) != Bounds(outcome=[1, 0])
    assert len({Bounds(outcome=[0, 1]), Bounds(outcome=(0, 1)), Bounds(outcome=["no", "yes"])}) == 3
    assert repr(Bounds(outcome=[0, 1])).startswith("Bounds(outcome=[0, 1], ")
    assert repr(Bounds(outcome=(0, 1))).startswith("Bounds(outcome=(0.0, 1.0), ")


def test_files_tell_labels_from_ranges_as_they_do_for_covariates() -> None:
    assert Bounds(outcome=(0, 1)).to_dict()["outcome"] == {"low": 0.0, "high": 1.0}
    assert SURVEY.to_dict()["outcome"] == {"levels": ["no", "yes"], "fill": "no"}
    assert SURVEY.to_toml().startswith('outcome = {levels = ["no", "yes"], fill = "no"}\n')
    assert Bounds.from_toml("outcome = {levels = [0, 1]}") == Bounds(outcome=[0, 1])
    assert Bounds.from_toml("outcome = {low = 0, high = 1}") == Bounds(outcome=(0, 1))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"outcome": [0]}, r"outcome: A list declares a binary outcome.*list two labels.*tuple \(low, high\)"),
        ({"outcome": [0, 1, 2]}, "outcome: A list declares a binary outcome"),
        ({"outcome": []}, "outcome: A list declares a binary outcome"),
        ({"outcome": ["a", "a"]}, "outcome: .*must differ"),
        ({"outcome": [1, True]}, "outcome: .*must differ"),
        ({"outcome": ["0", 1]}, "outcome: .*all text or all numbers"),
        ({"outcome": [0, math.nan]}, "outcome: .*not NaN"),
        ({"outcome": [0, None]}, "outcome: .*text, a number or a boolean"),
        ({"outcome": ("no", "yes")}, "outcome: .*write levels as a list"),
        ({"outcome": [0, 1], "outcome_fill": 0.5}, "outcome: fill must be one of the declared levels"),
        ({"outcome": ["no", "yes"], "outcome_fill": 0}, "outcome: fill must be one of the declared levels"),
        ({"outcome": (0, 1), "outcome_fill": "no"}, "outcome: .*fill must be a number"),
    ],
)
def test_labels_that_make_no_sense_are_refused_by_name(arguments: Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Bounds(**arguments)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("outcome = [0, 1]", "outcome must be a table"),
        ('outcome = {levels = "ny"}', "outcome: levels must be a list of two labels"),
        ("outcome = {levels = [0, 1], low = 0}", "outcome has an unknown key 'low'"),
        ("outcome = {levels = [0, 1], other = 1}", "outcome has an unknown key 'other'"),
        ("outcome = {levels = [0, 1, 2]}", "outcome: A list declares a binary outcome"),
    ],
)
def test_files_that_make_no_sense_are_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Bounds.from_toml(text)


ENGINES: dict[str, Any] = {
    "pandas": lambda rows, folder: rows.to_pandas(),
    "polars": lambda rows, folder: pl.from_arrow(rows),
    "lazy": lambda rows, folder: pl.DataFrame(pl.from_arrow(rows)).lazy(),
    "arrow": lambda rows, folder: rows,
    "duckdb": lambda rows, folder: duckdb.connect().from_arrow(rows),
    "parquet": lambda rows, folder: (
        str(folder / "it.parquet") if not pq.write_table(rows, folder / "it.parquet") else ""
    ),
}
BAD: dict[str, tuple[Any, Any, Any]] = {
    "a third number": ([0, 1], pa.int64(), 31_337),
    "a number between": ([0, 1], pa.float64(), 0.31337),
    "infinity": ([0, 1], pa.float64(), math.inf),
    "NaN": ([0, 1], pa.float64(), math.nan),
    "a missing number": ([0, 1], pa.int64(), None),
    "another text": (["no", "yes"], pa.string(), "secret31337"),
    "a missing text": (["no", "yes"], pa.string(), None),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", [DifferenceInMeans, Uplift])
def test_what_is_no_label_is_refused_before_anything_is_spent(
    method: Any, engine: str, bad: str, tmp_path: Path
) -> None:
    labels, kind, value = BAD[bad]
    # All others alike: statistics of a file then say that there is one value only, NaN aside.
    rows = pa.table(
        {
            "died": pa.array([*labels[1:] * (N - 1), value], kind, from_pandas=False),
            "t": [k // 2 % 2 for k in range(N)],
            "x": [k / N for k in range(N)],
        }
    )
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("them", epsilon=1, curator="ada")
    more = {"by": {"x": 2}} if method is Uplift else {}
    estimator = method(epsilon=1, bounds=Bounds(outcome=labels, covariates={"x": (0, 1)}), **more)
    with pytest.raises(InvalidInput) as refusal:
        estimator.fit_table(
            ENGINES[engine](rows, tmp_path), outcome="died", treatment="t", ledger=ledger, dataset="them"
        )
    assert str(refusal.value) in (f"column 'died' {REFUSAL}", f"Y {REFUSAL}")
    assert not hasattr(estimator, "release_")
    assert ledger.account("them").spent.epsilon == 0


@pytest.mark.parametrize("kind", ["numbers for text", "text for numbers"])
def test_an_array_of_another_kind_is_refused_without_a_word_of_it(kind: str) -> None:
    bounds = Bounds(outcome=["no", "yes"] if kind == "numbers for text" else [0, 1])
    Y = np.arange(20) % 2 if kind == "numbers for text" else np.array(["secret"] * 20)
    with pytest.raises(InvalidInput) as refusal:
        DifferenceInMeans(epsilon=1, bounds=bounds).fit(Y, np.arange(20) % 2)
    assert str(refusal.value) == f"Y {REFUSAL}"


COVARIATES = {"x": (0, 1)}
METHODS = [
    DifferenceInMeans(epsilon=1, bounds=Bounds(outcome=(0, 1), covariates=COVARIATES)),
    Uplift(epsilon=1, bounds=Bounds(outcome=(0, 1), covariates=COVARIATES), by={"x": 2}),
    ATE(epsilon=1, delta=1e-6, bounds=Bounds(outcome=(0, 1), covariates=COVARIATES)),
]


def released(method: Any, outcome: Any, Y: Any, X: Any) -> tuple[dict[str, Any], list[Any]]:
    """A release without its bounds, and the integers behind it."""
    estimator = type(method)(
        **method.get_params(deep=False) | {"bounds": Bounds(outcome=outcome, covariates=COVARIATES)}
    )
    with frozen_noise(), record_sums() as recorded:
        estimator.fit(Y, np.arange(len(Y)) // 2 % 2, X=X)
    plain = estimator.release_.to_dict()
    assert plain.pop("bounds")["outcome"] == Bounds(outcome=outcome).to_dict()["outcome"]
    return plain, [sums.tolist() for _, _, sums, _ in recorded]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@settings(max_examples=20)
@given(st.lists(st.booleans(), min_size=16, max_size=60))
def test_labels_and_the_range_from_0_to_1_release_the_same(method: Any, died: list[bool]) -> None:
    Y, X = np.array(died) * 1.0, pd.DataFrame({"x": np.linspace(0, 1, len(died))})
    expected = released(method, (0, 1), Y, X)
    assert released(method, [0, 1], Y, X) == expected
    assert released(method, [False, True], np.array(died), X) == expected
    assert released(method, ["no", "yes"], np.where(died, "yes", "no"), X) == expected


def test_made_up_records_have_labels_and_are_accepted() -> None:
    assert set(dummy(SURVEY)["Y"]) == {"no", "yes"}
    check_estimator(DifferenceInMeans(epsilon=1, bounds=SURVEY))


def test_effects_of_any_kind_say_that_outcomes_were_coded() -> None:
    Y, T, X = np.arange(200) % 3 // 2, np.arange(200) % 2, pd.DataFrame({"x": np.arange(200) % 7 / 7})
    bounds = Bounds(outcome=[0, 1], covariates=COVARIATES)
    with frozen_noise():
        for method in (CATE(epsilon=9, delta=1e-6, bounds=bounds), Uplift(epsilon=9, bounds=bounds, by={"x": 2})):
            text = method.fit(Y, T, X=X).release_.methods()
            assert "outcomes were coded as 0 (0) and 1 (1)" in text
            assert "clipped to the declared range" not in text


def test_an_audit_brings_records_with_labels() -> None:
    found = dc.audit(DifferenceInMeans(epsilon=1, bounds=Bounds(outcome=["no", "yes"])))
    assert not found.violated


def test_a_service_reads_labels_as_text_and_plans_in_points(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from discreet.data.backends import TableSpec
    from discreet.serve.domain.sources import in_memory, records_in
    from discreet.serve.pages.forms import unit_of

    bounds = Bounds(outcome=["no", "yes"])
    (tmp_path / "it.csv").write_text("answer,t\n" + "no,0\nyes,1\nyes,0\nno,1\n" * 4)
    source = str(tmp_path / "it.csv")
    assert in_memory(source, "answer", "t", bounds)["answer"].to_pylist() == ["no", "yes", "yes", "no"] * 4
    assert records_in(source, TableSpec(outcome="answer", treatment="t", bounds=bounds)) == 16
    assert unit_of(bounds) == unit_of(Bounds(outcome=(0, 1))) == (0.01, "points")
