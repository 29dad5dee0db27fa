"""Edges of parts and scores that mutants showed to be unprotected."""

from types import SimpleNamespace
from typing import ClassVar

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet.data.bounds import Bounds
from discreet.data.records import MIN_ROWS, Chunk
from discreet.exceptions import InvalidInput
from discreet.papers.common.sample_splitting import SampleSplit
from discreet.papers.meta_learners.stages import (
    BASES,
    Plan,
    Stages,
    check_ratios,
    dr_outcome,
    folded_outcome,
    overlap_of,
    r_outcome,
    sizes,
)
from discreet.privacy.budget import Budget


@pytest.mark.parametrize("ratios", [{"a": 0.0, "b": 1.0}, {"a": 0.5, "b": 0.6}, {"a": True, "b": 0.5}, {"a": 1.0}])
def test_ratios_are_positive_and_add_up_to_one(ratios):
    with pytest.raises(InvalidInput, match="ratios"):
        check_ratios(ratios, ("a", "b"))
    check_ratios({"a": 0.1, "b": 0.9}, ("a", "b"))


def test_a_part_may_be_as_small_as_is_said():
    half = {"a": 0.5, "b": 0.5}
    assert sizes(2 * MIN_ROWS, half) == {"a": MIN_ROWS, "b": MIN_ROWS}
    with pytest.raises(InvalidInput, match="fewer than"):
        sizes(2 * MIN_ROWS - 1, half)


def test_the_doubly_robust_score_is_the_published_one():
    y, t, e = np.array([1.0, 3.0]), np.array([1.0, 0.0]), np.array([0.25, 0.5])
    np.testing.assert_allclose(dr_outcome(y, t, e, np.array([2.0, 2.0]), np.array([0.5, 0.5])), [-2.5, -3.5])


def rows(n, e=None):
    places = np.arange(float(n))
    return Chunk(places / n, places % 2, places[:, None], None if e is None else np.full(n, e))


def test_halves_by_order_together_are_all_rows_and_halves_stay_as_they_are():
    split = SampleSplit.by_order(rows(11, 0.25))
    assert (len(split.first.t), len(split.second.t)) == (5, 6)
    for name in ("y", "t", "x", "e"):
        np.testing.assert_array_equal(getattr(split.whole, name), getattr(rows(11, 0.25), name))
    assert SampleSplit.by_order(split) is split


def test_a_probability_that_one_half_lacks_is_none_of_the_whole():
    for first, second in ((None, None), (0.5, None), (None, 0.5)):
        assert SampleSplit(rows(5, first), rows(5, second)).whole.e is None


def test_residual_scores_are_the_published_ones():
    y, t, e, eta = np.array([1.0, 3.0]), np.array([1.0, 0.0]), np.array([0.25, 0.5]), np.array([0.5, 1.0])
    quotients, weights = r_outcome(y, t, e, eta)
    np.testing.assert_allclose(quotients, [0.5 / 0.75, 2.0 / -0.5])
    np.testing.assert_allclose(weights, [0.75**2, 0.25])
    np.testing.assert_allclose(folded_outcome(y, t, e, eta), [0.75 * 0.5 / (0.25 * 0.75), -0.5 * 2.0 / 0.25])


BOUNDS = Bounds(outcome=(-2, 6), covariates=[(0, 1)], propensity=(0.2, 0.9))


class Learner:
    """A base learner whose model answers with numbers far outside of anything declared."""

    asked: ClassVar[list[np.ndarray]] = []
    about = "a made-up learner"

    def __init__(self, task):
        self.guarantee_ = None
        self.model_ = SimpleNamespace(predict=lambda x: Learner.asked.append(x) or np.linspace(-100.0, 100.0, len(x)))
        self.task = task

    def fit(self, x, y, sample_weight=None):
        self.x, self.y, self.weight = x, y, sample_weight
        return self


@pytest.fixture
def stages(monkeypatch):
    made = []

    def maker(task, *more):
        made.append(Learner(task))
        return made[-1]

    Learner.asked.clear()
    monkeypatch.setitem(BASES, "far", (maker, maker))
    told = []
    plan = Plan("far", BOUNDS, Budget(epsilon=1.0), {}, 0.05, None, 3)
    stage = Stages(plan, lambda *call: told.append(call))
    return stage, made, told


def test_released_models_are_held_to_what_was_declared(stages):
    stage, made, told = stages
    part, asked = rows(20), np.full((5, 1), 0.5)
    np.testing.assert_array_equal(stage.propensity(part)(asked), np.clip(np.linspace(-100, 100, 5), 0.2, 0.9))
    np.testing.assert_array_equal(stage.mean_outcome(part)(asked), np.clip(np.linspace(-100, 100, 5), -2, 6))
    np.testing.assert_array_equal(stage.response(part)(1.0, asked), np.clip(np.linspace(-100, 100, 5), -2, 6))
    # The arm stands first among what the response is a function of, in records as in questions.
    np.testing.assert_array_equal(Learner.asked[-1], np.column_stack([np.ones(5), asked]))
    np.testing.assert_array_equal(made[2].x, np.column_stack([part.t, part.x]))
    np.testing.assert_array_equal(made[0].y, part.t)
    np.testing.assert_array_equal(made[1].y, 2 + 4 * part.y)
    assert [call[1:] for call in told] == [(1, 3), (2, 3), (3, 3)]
    assert list(stage.models) == ["propensity", "outcome"]


def test_propensities_are_held_to_the_overlap_and_away_from_zero_and_one():
    assert overlap_of(BOUNDS, 0.05) == (0.2, 0.9)
    assert overlap_of(BOUNDS, 0.3) == (0.3, 0.7)


@pytest.mark.parametrize("column", ["id", "name"])
def test_halves_by_hash_share_no_row_and_lose_none_and_progress_is_told(column):
    n, told = 60, []
    facts = {"y": np.arange(n) / n, "t": np.arange(n) % 2, "x": np.arange(n) / n}
    table = pa.table(facts | {"id": np.arange(n), "name": [f"p{place}" for place in range(n)]})
    spec = {"outcome": "y", "treatment": "t", "bounds": Bounds(outcome=(0, 1), covariates={"x": (0, 1)})}
    split, public = SampleSplit.by_hash(table, column, 7, lambda *call: told.append(call), **spec)
    assert public == ()
    assert told
    assert 15 < len(split.first.t) < 45
    np.testing.assert_array_equal(np.sort(split.whole.y), 2 * np.arange(n) / n - 1)
    filtered, public = SampleSplit.by_hash(table, column, 7, None, where={"x": (0.5, None)}, **spec)
    assert len(filtered.whole.t) == n / 2
    assert public == ("the filter that chose the records",)
    with pytest.raises(InvalidInput, match="no column 'y0'"):
        SampleSplit.by_hash(table, column, 7, None, **{**spec, "outcome": "y0"})


def test_halves_by_hash_of_a_connection_are_those_of_the_relation_that_is_named():
    n, opened = 60, duckdb.connect()
    facts = {"y": np.arange(n) / n, "t": np.arange(n) % 2, "id": np.arange(n)}
    opened.from_arrow(pa.table(facts)).create("records")
    spec = {"outcome": "y", "treatment": "t", "bounds": Bounds(outcome=(0, 1))}
    split, _ = SampleSplit.by_hash(opened, "id", 7, None, relation="records", **spec)
    expected, _ = SampleSplit.by_hash(pa.table(facts), "id", 7, None, **spec)
    np.testing.assert_array_equal(np.sort(split.first.y), expected.first.y)
    np.testing.assert_array_equal(np.sort(split.second.y), expected.second.y)
