"""Edges of parts and scores that mutants showed to be unprotected."""

import numpy as np
import pytest

from discreet.data.records import MIN_ROWS
from discreet.exceptions import InvalidInput
from discreet.papers.meta_learners.stages import check_ratios, dr_outcome, sizes


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
