"""Policies: whom they treat, what they expect of it, and that they are read back as they were."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from discreet import ATE, CATE, Bounds, InvalidInput, Policy, UnsupportedRelease, Uplift, load
from discreet.datasets import adum, dp_cate
from discreet.postprocessing.policies.choice import chosen_segments, luck_of_choosing, segment_gain
from discreet.testing import frozen_noise, seeded_noise

NUMBERS = st.floats(-1.0, 1.0, allow_nan=False)
BOUNDS = Bounds(outcome=(0, 1), covariates={"age": (18, 90), "sex": ["f", "m"]})


@pytest.fixture(scope="module")
def uplift():
    trial = adum(n=4_000, seed=1)
    with seeded_noise(0):
        return Uplift(epsilon=2.0, bounds=trial.bounds, by={0: 8}, propensity=0.5).fit(trial.Y, trial.T, X=trial.X)


@pytest.fixture(scope="module")
def cate():
    study = dp_cate(1, n=3_000, seed=1)
    with seeded_noise(0):
        return CATE(epsilon=4.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.floats(0.01, 1.0)), min_size=1, max_size=12), st.floats(0.01, 1.0), NUMBERS)
def test_a_choice_keeps_to_its_capacity_and_treats_nobody_below_the_cost(segments, capacity, cost):
    effects, sizes = map(np.array, zip(*segments, strict=True))
    shares = sizes / sizes.sum()
    chosen = chosen_segments(effects, shares, cost, capacity)
    assert shares[chosen].sum() <= capacity + 1e-8
    assert np.all(effects[chosen] > cost)
    # No set of segments that clearly fits gains more.
    sets = (np.arange(2 ** len(shares))[:, None] >> np.arange(len(shares))) & 1
    gains = (sets * shares * (effects - cost)).sum(axis=1)[sets @ shares <= 0.99 * capacity]
    assert gains.max() <= (shares * (effects - cost))[chosen].sum() + 1e-12


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=12), st.floats(0.01, 1.0), st.tuples(NUMBERS, NUMBERS))
def test_a_higher_cost_never_treats_more_people_and_never_gains_more(effects, capacity, costs):
    rng, effects = np.random.default_rng(len(effects)), np.array(effects)
    shares = rng.dirichlet(np.ones(len(effects)))
    dear, cheap = (chosen_segments(effects, shares, cost, capacity) for cost in (max(costs), min(costs)))
    gains = [(shares * (effects - cost))[set_].sum() for set_, cost in ((dear, max(costs)), (cheap, min(costs)))]
    assert gains[0] <= gains[1] + 1e-12
    # Of sets that gain the same, either may be taken.
    tie = gains[0] - (shares * (effects - max(costs)))[cheap].sum() < 1e-12
    steps = 1 / (100 * len(effects)) * len(effects) * capacity
    assert shares[dear].sum() <= shares[cheap].sum() + steps or tie


def test_of_equal_segments_those_with_the_largest_effects_are_treated():
    effects, shares = np.array([0.1, 0.4, 0.3, 0.2]), np.full(4, 0.25)
    assert chosen_segments(effects, shares, 0.0, 0.5).tolist() == [False, True, True, False]
    # One large segment is left out for two small ones that gain more together.
    effects, shares = np.array([0.5, 0.45, 0.45]), np.array([0.3, 0.25, 0.25])
    assert chosen_segments(effects, shares, 0.0, 0.5).tolist() == [False, True, True]


@pytest.mark.parametrize("effect", [0.3, -0.3])
def test_constant_effects_mean_all_or_nobody(effect):
    rng = np.random.default_rng(0)
    x, t = rng.uniform(18, 90, 4_000), np.arange(4_000) % 2
    y = 0.5 + effect * t
    with frozen_noise():
        fitted = Uplift(
            epsilon=1.0, bounds=Bounds(outcome=(0, 1), covariates={"age": (18, 90)}), by={"age": 6}, propensity=0.5
        ).fit(y, t, X=x[:, None])
    policy = fitted.policy(cost=0.1)
    assert set(policy.assign(x[:, None])) == {int(effect > 0)}
    assert policy.share == pytest.approx(float(effect > 0))
    assert not policy.rule.varies
    if effect < 0:
        assert policy.treats == ()
        assert tuple(policy.gain) == (0.0, 0.0, 0.0, 0.0)
        assert "nobody" in policy.summary()


def test_a_policy_of_segments_treats_those_that_gain(uplift):
    policy = uplift.policy(cost=0.1, capacity=0.3)
    assert policy.share <= 0.3
    assert policy.assign([[-0.9], [0.99]]).tolist() == [0, 1]
    assert policy.assign([[-0.9], [0.99]]).dtype == np.int64
    effects = {row["segment"]: row["effect"] for row in uplift.table()}
    assert min(effects[name] for name in policy.treats) > 0.1
    expected = sum((effects[name] - 0.1) / 8 for name in policy.treats)
    assert policy.gain.value == pytest.approx(expected, rel=0.1)
    assert policy.gain_lower(0.05) < policy.gain_lower(0.2) <= policy.gain.value
    assert policy.guarantee == uplift.guarantee_
    # The same from the file alone.
    assert Policy.of(uplift.release_, cost=0.1, capacity=0.3).to_dict() == policy.to_dict()


def test_a_policy_of_a_function_treats_whom_the_function_says(cate):
    people = dp_cate(1, n=500, seed=2).X
    policy = cate.policy(cost=2.0)
    np.testing.assert_array_equal(policy.assign(people), cate.effect(people) > 2.0)
    assert (policy.share, policy.gain) == (None, None)
    with pytest.raises(InvalidInput, match="fit PolicyValue"):
        policy.gain_lower()
    for capacity in (0.003, 0.2, 0.999):
        few = cate.policy(cost=2.0, capacity=capacity, X=people)
        assert few.share == few.assign(people).mean() <= capacity
        assert np.all(few.assign(people) <= policy.assign(people))
    assert cate.policy(cost=2.0, X=people).share == policy.assign(people).mean()


def test_who_is_treated_does_not_depend_on_who_stands_beside_them(cate, uplift):
    # Privacy: a record's place in the region is a function of that record alone, to the last bit.
    people = dp_cate(1, n=300, seed=3).X
    rule = cate.policy().rule
    x = 2 * np.clip(people, 0, 1) - 1
    whole = rule.effects(x)
    assert np.array_equal(whole, np.concatenate([rule.effects(row[None]) for row in x]))
    assert np.array_equal(whole[::-1], rule.effects(x[::-1].copy()))
    y = np.linspace(-1, 1, 101)[:, None]
    own = uplift.policy(cost=0.1).rule
    assert np.array_equal(own.treats(y), np.concatenate([own.treats(row[None]) for row in y]))


@pytest.mark.parametrize("kind", ["segments", "threshold", "declared"])
def test_a_policy_is_read_back_and_pickled_as_it_was(kind, cate, uplift, tmp_path):
    made = {
        "segments": lambda: uplift.policy(cost=0.1, capacity=0.5),
        "threshold": lambda: cate.policy(cost=2.0, capacity=0.4, X=dp_cate(1, n=50, seed=4).X),
        "declared": lambda: Policy.declare(bounds=BOUNDS, by={"age": 2, "sex": "levels"}, treated=[0, 1, 1, 1]),
    }
    policy = made[kind]()
    policy.save(tmp_path / "policy.json")
    people: Any = np.random.default_rng(0).uniform(0, 1, (40, policy.bounds.p))
    if kind == "declared":
        people = {"age": 18 + 72 * people[:, 0], "sex": np.where(people[:, 1] < 0.5, "f", "m")}
        import pandas as pd

        people = pd.DataFrame(people)
    for again in (
        load(tmp_path / "policy.json"),
        Policy.load(tmp_path / "policy.json"),
        pickle.loads(pickle.dumps(policy)),
    ):
        assert again.to_dict() == policy.to_dict()
        assert np.array_equal(again.assign(people), policy.assign(people))
        assert again.summary() == str(policy)


def test_a_declared_policy_needs_no_release():
    policy = Policy.declare(bounds=BOUNDS, by={"sex": "levels"}, treated=[True, False], cost=0.2)
    assert (policy.treats, policy.guarantee, policy.cost) == (("sex f",), None, 0.2)
    assert policy.rule.varies


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_luck_bounds_the_best_of_all_sets_of_people(rows):
    # All sets of three, and the positive part for more: the largest sum of errors that any choice could have gained.
    rng = np.random.default_rng(rows)
    errors = rng.normal(0, 1, (rows, 4)) * rng.uniform(0.1, 2.0, (rows, 1))
    luck, sd = luck_of_choosing([errors[:2], errors[2:]])
    best = np.maximum(errors @ rng.normal(0, 1, (4, 20_000)), 0.0).sum(axis=0)
    assert best.mean() == pytest.approx(luck, rel=0.05)
    for alpha in (0.05, 0.3):
        assert np.mean(best > luck - float(ndtri(alpha)) * sd) <= alpha + 0.01
    if rows == 3:
        sets = [errors[list(flags)].sum(axis=0) for flags in np.eye(2, dtype=bool)[:, [0, 0, 1]]]
        assert max(map(np.linalg.norm, sets)) <= sd * (1 + 1e-12)


def test_the_lower_bound_holds_for_the_policy_that_looks_best():
    # Nobody gains anything; the policy is chosen by errors alone.
    rng = np.random.default_rng(5)
    shares, sd = np.full(10, 0.1), np.linspace(0.5, 2.0, 10)
    missed, promised = 0, 0.0
    for _ in range(2_000):
        own = rng.normal(0, sd)
        chosen = chosen_segments(own, shares, 0.0, 1.0)
        gain = segment_gain(chosen, shares, own, (own, sd), 0.0)
        missed += int(gain.lower(0.1) > 0)
        promised += gain.unshrunken + float(ndtri(0.1)) * np.linalg.norm((shares * sd)[chosen]) > 0
    assert missed / 2_000 <= 0.1
    # A bound that forgets the choice is wrong most of the time.
    assert promised / 2_000 > 0.5


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"cost": -0.1}, "cost must be a number from 0"),
        ({"cost": 10.1}, "cost must be a number from 0 to 10"),
        ({"cost": np.nan}, "cost must be a number"),
        ({"cost": True}, "cost must be a number"),
        ({"cost": "1"}, "cost must be a number"),
        ({"capacity": -0.1}, "capacity must lie above 0"),
        ({"capacity": 0}, "capacity must lie above 0"),
        ({"capacity": 1.5}, "capacity must lie above 0"),
        ({"capacity": np.nan}, "capacity must lie above 0"),
        ({"capacity": True}, "capacity must lie above 0"),
    ],
)
def test_a_cost_or_a_capacity_that_is_none_is_refused(given_, message, uplift):
    with pytest.raises(InvalidInput, match=message):
        uplift.policy(**given_)


def test_what_no_policy_can_be_chosen_from_is_refused(uplift, cate):
    trial = adum(n=200, seed=1)
    with seeded_noise(0):
        average = ATE(epsilon=1.0, delta=1e-6, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X).release_
    with pytest.raises(InvalidInput, match="release of Uplift or CATE"):
        Policy.of(average)
    with pytest.raises(InvalidInput, match="X belongs to policies of CATE"):
        Policy.of(uplift.release_, X=trial.X)
    with pytest.raises(InvalidInput, match="capacity needs people"):
        cate.policy(capacity=0.5)
    with pytest.raises(InvalidInput, match="no rows"):
        cate.policy(capacity=0.5, X=[])
    with pytest.raises(InvalidInput, match="has 2 columns, but the bounds declare 1"):
        uplift.policy().assign([[0.1, 0.2]])
    for treated in ([True], [0, 2], [[True, False]], "yes"):
        with pytest.raises(InvalidInput, match=r"segments|True or False"):
            Policy.declare(bounds=BOUNDS, by={"sex": "levels"}, treated=treated)


@pytest.mark.parametrize(
    "edit",
    [
        lambda plain: plain["rule"].update(kind="lottery"),
        lambda plain: plain["rule"].update(treated=[1, 0]),
        lambda plain: plain["rule"]["treated"].pop(),
        lambda plain: plain.update(cost=-1.0),
        lambda plain: plain.update(capacity=7.0),
        lambda plain: plain.update(share=float("inf")),
        lambda plain: plain["gain"].update(sd=float("nan")),
        lambda plain: plain["gain"].update(more=1.0),
    ],
)
def test_an_edited_policy_is_refused(edit, uplift):
    plain = uplift.policy(cost=0.1).to_dict()
    edit(plain)
    with pytest.raises((InvalidInput, UnsupportedRelease)):
        Policy.from_dict(plain)
