import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.exceptions import InvalidBudget
from discreet.privacy.budget import Budget, Shares

positive = st.floats(1e-6, 1e6)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None, True, [1.0], 1j])
def test_an_epsilon_that_is_not_a_positive_finite_number_is_refused(epsilon):
    with pytest.raises(InvalidBudget, match="epsilon"):
        Budget(epsilon=epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2.0, float("nan"), float("inf"), "1e-5", False, [0.1]])
def test_a_delta_that_is_not_between_zero_and_one_is_refused(delta):
    with pytest.raises(InvalidBudget, match="delta"):
        Budget(epsilon=1, delta=delta)


@pytest.mark.parametrize("delta", [None, 0, 0.0])
def test_no_delta_and_a_delta_of_zero_both_mean_pure(delta):
    budget = Budget(epsilon=1, delta=delta)
    assert budget.pure
    assert budget == Budget(epsilon=1.0)
    assert str(budget) == "epsilon = 1"


def test_a_small_delta_is_printed_and_not_rounded_to_zero():
    assert str(Budget(epsilon=0.5, delta=1.25e-9)) == "epsilon = 0.5, delta = 1.25e-09"


def test_numpy_numbers_are_stored_as_plain_floats():
    budget = Budget(epsilon=np.float32(0.5), delta=np.float64(1e-6))
    assert type(budget.epsilon) is float
    assert type(budget.delta) is float


def test_a_budget_is_frozen():
    with pytest.raises(FrozenInstanceError, match="epsilon"):
        Budget(epsilon=1).epsilon = 2  # type: ignore[misc]


@given(positive, positive, st.floats(0, 0.5), st.floats(0, 0.5))
def test_covering_compares_both_components(eps1, eps2, delta1, delta2):
    one, two = Budget(epsilon=eps1, delta=delta1), Budget(epsilon=eps2, delta=delta2)
    assert one.covers(one)
    assert one.covers(two) == (eps2 <= eps1 and delta2 <= delta1)


def test_a_pure_budget_covers_nothing_with_a_delta():
    assert not Budget(epsilon=10).covers(Budget(epsilon=1, delta=1e-300))
    assert Budget(epsilon=1, delta=1e-300).covers(Budget(epsilon=1))


def test_shares_are_read_by_attribute_and_by_item_in_order():
    shares = Shares(location=0.1, moments=0.5, score=0.4)
    assert shares.moments == shares["moments"] == 0.5
    assert list(shares) == ["location", "moments", "score"]
    assert len(shares) == 3


def test_an_unknown_share_is_refused_by_name():
    shares = Shares(score=1.0)
    with pytest.raises(InvalidBudget, match="no share 'moments'; the shares are score"):
        shares["moments"]
    with pytest.raises(AttributeError, match="moments"):
        _ = shares.moments


@pytest.mark.parametrize("value", [0, -0.1, float("nan"), float("inf"), "half", None, True])
def test_a_share_that_is_not_positive_is_refused_by_name(value):
    with pytest.raises(InvalidBudget, match="'score'"):
        Shares(location=0.1, score=value)


def test_shares_of_more_than_everything_are_refused():
    with pytest.raises(InvalidBudget, match=r"add up to 1\.1"):
        Shares(location=0.6, score=0.5)
    with pytest.raises(InvalidBudget, match="at least one"):
        Shares()


def test_shares_are_frozen_and_survive_copying_and_pickling():
    shares = Shares(location=0.25, score=0.75)
    with pytest.raises(AttributeError, match="frozen"):
        shares.score = 1.0
    assert copy.deepcopy(shares) == copy.copy(shares) == pickle.loads(pickle.dumps(shares)) == shares
    assert hash(copy.copy(shares)) == hash(shares)
    assert repr(shares) == "Shares(location=0.25, score=0.75)"
    assert shares != Shares(location=0.25, score=0.7)


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=12))
def test_shares_that_were_normalised_by_floating_point_never_exceed_one(weights):
    total = sum(weights)
    shares = Shares(**{f"part{i}": weight / total for i, weight in enumerate(weights)})
    assert math.fsum(shares.to_dict().values()) <= 1 + 4e-16
    assert json.loads(json.dumps(shares.to_dict())) == shares.to_dict()
