"""Bounds are declared, frozen, refused when they make no sense, and survive a file."""

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.bounds import Bounds, Levels, Range
from discreet.exceptions import InvalidInput, MissingBounds

CLINIC = Bounds(
    outcome=(0, 10),
    covariates={"age": (18, 100), "sex": ["f", "m"], "blood pressure": Range(40, 220, fill=120)},
    propensity=(0.1, 0.9),
    treatment=("placebo", "drug"),
    outcome_fill=0,
)

numbers = st.floats(min_value=-1e100, max_value=1e100)
pairs = st.tuples(numbers, numbers).map(sorted).filter(lambda pair: pair[1] / 2 - pair[0] / 2 > 0)


@st.composite
def specs(draw: st.DrawFn) -> Range | Levels:
    if draw(st.booleans()):
        low, high = draw(pairs)
        return Range(low, high, fill=draw(st.sampled_from([None, low, high])))
    codes = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15) | st.booleans()
    levels: list[Any] = draw(
        st.sampled_from([st.text(), codes]).flatmap(lambda kind: st.lists(kind, min_size=2, max_size=4, unique=True))
    )
    some = st.sampled_from([None, *levels])
    return Levels(tuple(levels), other=draw(some), fill=draw(some))


@st.composite
def all_bounds(draw: st.DrawFn) -> Bounds:
    covariates: Any = draw(
        st.none() | st.dictionaries(st.text(min_size=1), specs(), max_size=4) | st.lists(specs(), max_size=4)
    )
    ends: Any = draw(st.sampled_from([tuple(draw(pairs)), [0, 1], [True, False], ["no", "yes"], [-1, 2.5]]))
    return Bounds(
        outcome=ends,
        covariates=covariates,
        propensity=draw(st.sampled_from([(0.05, 0.95), (1e-5, 0.3), (0.5, 0.6)])),
        treatment=draw(st.sampled_from([None, (0, 1), ("control", "treated"), (True, False)])),
        outcome_fill=draw(st.sampled_from([None, *ends])),
    )


@given(all_bounds())
def test_toml_and_json_give_the_same_bounds_back(bounds: Bounds) -> None:
    for copied in (Bounds.from_toml(bounds.to_toml()), Bounds.from_dict(json.loads(json.dumps(bounds.to_dict())))):
        assert copied == bounds
        assert copied.names == bounds.names
        assert copied.named == bounds.named
        assert hash(copied) == hash(bounds)


def test_a_file_gives_the_same_bounds_back(tmp_path: Path) -> None:
    CLINIC.save(tmp_path / "bounds.toml")
    assert Bounds.load(str(tmp_path / "bounds.toml")) == CLINIC


def test_a_bounds_file_reads_like_one_that_a_person_would_write() -> None:
    text = """
    outcome = {low = 0, high = 10, fill = 0}
    propensity = {low = 0.1, high = 0.9}
    treatment = {control = "placebo", treated = "drug"}
    [covariates.age]
    low = 18
    high = 100
    [covariates.sex]
    levels = ["f", "m"]
    [covariates."blood pressure"]
    low = 40
    high = 220
    fill = 120
    """
    assert Bounds.from_toml(text) == CLINIC


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it)), dataclasses.replace])
def test_bounds_can_be_copied_pickled_and_replaced(twin: Any) -> None:
    assert twin(CLINIC) == CLINIC


def test_bounds_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CLINIC.outcome = (0, 1)  # type: ignore[misc]
    with pytest.raises(TypeError, match="item assignment"):
        CLINIC.covariates["age"] = (0, 1)  # type: ignore[index]


def test_later_changes_to_the_callers_dictionary_do_not_reach_the_bounds() -> None:
    covariates: dict[str, Any] = {"age": (18, 100)}
    bounds = Bounds(outcome=(0, 1), covariates=covariates)
    covariates["age"] = (0, 1)
    assert bounds.columns == (Range(18, 100),)


def test_named_covariates_keep_their_order_and_meaning() -> None:
    assert CLINIC.named
    assert CLINIC.names == ("age", "sex", "blood pressure")
    assert CLINIC.columns == (Range(18, 100), Levels(("f", "m")), Range(40, 220, 120))
    assert CLINIC.p == 3


def test_covariates_by_position_get_names() -> None:
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1), [1, 2, 3]])
    assert not bounds.named
    assert bounds.names == ("x0", "x1")
    assert bounds.columns == (Range(0, 1), Levels((1, 2, 3)))


def test_bounds_without_covariates_have_none() -> None:
    bounds = Bounds(outcome=(-2, 4))
    assert (bounds.p, bounds.names, bounds.columns) == (0, (), ())
    assert (bounds.outcome_width, bounds.outcome_middle) == (6, 1)
    assert bounds.propensity == (0.05, 0.95)
    assert bounds.arms == Levels((0, 1))


def test_a_missing_outcome_says_what_to_declare() -> None:
    with pytest.raises(MissingBounds, match=r"outcome=\(low, high\).*do not compute"):
        Bounds()


DATA = [np.array([0.0, 1.0]), pd.Series([0, 1]), pl.Series([0, 1]), pa.array([0, 1]), pd.DataFrame({"y": [0, 1]})]


@pytest.mark.parametrize("data", DATA, ids=lambda data: type(data).__module__ + "." + type(data).__name__)
def test_data_is_refused_where_bounds_belong(data: Any) -> None:
    for arguments in (
        {"outcome": data},
        {"outcome": (0, 1), "covariates": data},
        {"outcome": (0, 1), "covariates": {"age": data}},
        {"outcome": (0, 1), "covariates": [data]},
        {"outcome": (0, 1), "propensity": data},
    ):
        with pytest.raises(InvalidInput, match="declare them, do not compute them from the records"):
            Bounds(**arguments)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"outcome": (1, 0)}, "outcome: .*reversed"),
        ({"outcome": (1, 1)}, "outcome: .*low < high"),
        ({"outcome": (0, math.nan)}, "outcome: .*finite"),
        ({"outcome": (0, 1, 2)}, "outcome: .*pair"),
        ({"outcome": 1}, "outcome: .*pair"),
        ({"outcome_fill": 2}, "outcome: .*fill"),
        ({"covariates": {"age": (3, 3)}}, "covariate 'age': .*drop the column"),
        ({"covariates": {"age": (0, math.inf)}}, "covariate 'age': .*finite"),
        ({"covariates": {"sex": ["f"]}}, "covariate 'sex': .*at least two"),
        ({"covariates": {"sex": ["f", "f"]}}, "covariate 'sex': .*must differ"),
        ({"covariates": {"sex": ("f", "m")}}, "covariate 'sex': .*write levels as a list"),
        ({"covariates": {"sex": "fm"}}, "covariate 'sex': .*pair"),
        ({"covariates": [(0, 1), None]}, "covariate 1: .*pair"),
        ({"covariates": {0: (0, 1)}}, "named by text"),
        ({"covariates": {"": (0, 1)}}, "named by text"),
        ({"covariates": "age"}, "dictionary from names"),
        ({"propensity": (0, 0.5)}, "propensity: .*0 < low < high < 1"),
        ({"propensity": (0.5, 1)}, "propensity: .*0 < low < high < 1"),
        ({"propensity": (0.5, 0.5)}, "propensity: .*0 < low < high < 1"),
        ({"propensity": (math.nan, 0.5)}, "propensity: .*finite"),
        ({"propensity": 0.5}, "propensity: .*pair"),
        ({"treatment": ("a", "a")}, "treatment: .*must differ"),
        ({"treatment": ("a",)}, "two labels"),
        ({"treatment": "ab"}, "two labels"),
        ({"treatment": np.array([0, 1])}, "two labels"),
    ],
)
def test_bounds_that_make_no_sense_are_refused_by_name(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Bounds(**{"outcome": (0, 1), **arguments})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("outcome = {low = 0, high = 1}\nepsilon = 1", "unknown key 'epsilon'"),
        ("outcome = {low = 0, height = 1}", "outcome has an unknown key 'height'"),
        ("outcome = {low = 0}", "outcome lacks the key 'high'"),
        ("outcome = 3", "outcome must be a table"),
        (
            "outcome = {low = 0, high = 1}\ncovariates.age = {levels = [1, 2], low = 0}",
            "'age' has an unknown key 'low'",
        ),
        ("outcome = {low = 0, high = 1}\ncovariates.age = {low = 0}", "covariate 'age' lacks the key 'high'"),
        ("outcome = {low = 0, high = 1}\ncovariates.age = [0, 1]", "covariate 'age' must be a table"),
        ("outcome = {low = 0, high = 1}\ncovariates = 3", "covariates must be a table"),
        ("outcome = {low = 0, high = nan}", "outcome: .*finite"),
        ("outcome = ", "not valid TOML"),
        ("propensity = {low = 0.1, high = 0.9}", "Bounds needs outcome"),
    ],
)
def test_a_bounds_file_that_makes_no_sense_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Bounds.from_toml(text)


def test_a_bounds_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no bounds file"):
        Bounds.load(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        Bounds.load(tmp_path / "binary.toml")
