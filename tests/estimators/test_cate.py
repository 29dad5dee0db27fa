"""The effect function: what it finds, what it refuses to find, and what it leaves behind."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from discreet import ATE, CATE, Bounds, EffectRelease, NotFitted
from discreet.data.in_memory import ArrayRecords
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.testing import frozen_noise, seeded_noise

BOUNDS = Bounds(
    outcome=(-8, 8), covariates={"age": (-3, 3), "dose": (0, 1), "ward": ["a", "b", "c"]}, propensity=(0.1, 0.9)
)


def rising(x, z, w):
    return 1.0 + x + (w == "b")


def study(n, seed, effect=rising, randomised=False):
    rng = np.random.default_rng(seed)
    x, z, w = np.clip(rng.normal(size=n), -3, 3), rng.random(n), rng.choice(["a", "b", "c"], n)
    e = np.full(n, 0.5) if randomised else 1 / (1 + np.exp(-0.6 * x))
    t = (rng.random(n) < e) * 1.0
    tau = np.broadcast_to(effect(x, z, w), n)
    y = x + z + t * tau + rng.normal(size=n)
    return y, t, pd.DataFrame({"age": x, "dose": z, "ward": w}), tau, e


def fitted(n=6_000, seed=0, epsilon=4.0, effect=None, randomised=False, **given):
    y, t, X, tau, e = study(n, seed, effect or rising, randomised)
    propensity = given.pop("propensity", None)
    propensity = e if isinstance(propensity, str) else propensity
    with seeded_noise(seed):
        made = CATE(**({"epsilon": epsilon, "delta": 1e-6, "bounds": BOUNDS, "propensity": propensity} | given))
        return made.fit(y, t, X=X), X, tau


@pytest.fixture(scope="module")
def usual():
    return fitted()


def rmse(estimate, tau):
    return float(np.sqrt(np.mean((estimate - tau) ** 2)))


def test_an_effect_that_varies_is_found(usual):
    cate, X, tau = usual
    assert rmse(cate.effect(X), tau) < 0.3 * np.std(tau)
    importance = cate.importance()
    assert importance["age"] > importance["ward"] > importance["dose"]
    assert sum(importance.values()) == pytest.approx(1.0)


def test_averages_agree_with_the_function(usual):
    cate, X, tau = usual
    assert cate.effect_on(X) == pytest.approx(float(np.mean(cate.effect(X))), abs=1e-9)
    assert cate.ate() == pytest.approx(cate.effect_on(X), abs=0.1)
    low, high = cate.ate_interval()
    assert low < cate.ate() < high
    old = X[X["age"] > 1]
    low, high = cate.effect_on_interval(old, alpha=0.1)
    assert low < cate.effect_on(old) < high
    assert low < float(np.mean(tau[X["age"] > 1])) < high


def test_intervals_hold_the_estimate_and_widen_with_the_level(usual):
    cate, X, _ = usual
    estimate = cate.effect(X)
    narrow, wide = cate.effect_interval(X, alpha=0.5), cate.effect_interval(X, alpha=0.01)
    assert np.all(wide[0] <= narrow[0])
    assert np.all(narrow[0] <= estimate + 1e-12)
    assert np.all(estimate - 1e-12 <= narrow[1])
    assert np.all(narrow[1] <= wide[1])


def test_fitting_leaves_parameters_and_a_release_behind(usual):
    cate, X, _ = usual
    assert set(vars(cate)) - set(cate.get_params()) == {"release_"}
    assert isinstance(cate.release_, EffectRelease)
    again = pickle.loads(pickle.dumps(cate))
    np.testing.assert_array_equal(again.effect(X), cate.effect(X))
    # No array of the release is as long as the records.
    sizes = [np.size(value) for value in vars(cate.release_).values() if isinstance(value, np.ndarray)]
    assert len(X) not in sizes


def test_the_guarantee_is_the_budget_and_the_events_fill_it(usual):
    guarantee = usual[0].guarantee_
    assert (guarantee.epsilon, guarantee.delta, guarantee.proof, guarantee.status) == (4.0, 1e-6, "cate.md", "test")
    spent = sum(event.mu**2 for event in guarantee.events)
    assert spent == pytest.approx(calibrate_mu(4.0, 1e-6) ** 2, rel=1e-6)


@pytest.mark.parametrize("given", [{"propensity": "column"}, {"propensity": 0.5}, {"neighbours": "add-remove"}])
def test_known_designs_and_add_remove(given):
    cate, X, tau = fitted(3_000, 3, 8.0, lambda x, z, w: 1.0 + x, **given)
    # A wrong constant propensity biases the effect, but must not break the fit.
    if given.get("propensity") != 0.5:
        assert rmse(cate.effect(X), tau) < 0.6 * np.std(tau)
    names = {event.name for event in cate.guarantee_.events}
    assert ("probabilities of treatment" in names) == (given.get("propensity") == "column")
    assert ("average: propensity refinement 1" in names) == ("propensity" not in given)
    assert ("number of records" in names) == ("neighbours" in given)


def test_a_null_effect_is_called_constant():
    cate, X, _ = fitted(6_000, 1, 4.0, lambda x, z, w: 0.0 * x + 0.5)
    assert rmse(cate.effect(X), 0.5) < 0.1
    assert cate.release_.reference["chance_that_it_varies"] < 0.5
    assert cate.release_.reference["sd_of_effect"] < 0.05
    assert "The evidence is in favour of an effect that is the same for everyone" in cate.summary()


@pytest.mark.parametrize("seed", range(3))
def test_an_effect_that_goes_with_one_of_many_covariates_is_not_called_constant(seed):
    # Nothing is clearer than this effect: its error is a tenth of it.
    rng = np.random.default_rng(seed)
    x, t = (rng.random((50_000, 8)) < 0.5) * 1.0, rng.integers(0, 2, 50_000)
    tau = 0.2 * (2.0 * x[:, 0] - 1.0)
    bounds = Bounds(outcome=(-6, 6), covariates=[[0, 1]] * 8)
    with seeded_noise(seed):
        cate = CATE(epsilon=8.0, delta=1e-6, bounds=bounds, propensity=0.5).fit(
            0.5 * x[:, 0] + t * tau + rng.normal(size=50_000), t, X=x
        )
    assert rmse(cate.effect(x), tau) < 0.15 * np.std(tau)
    assert cate.release_.reference["chance_that_it_varies"] > 0.95
    assert "the same for everyone" not in cate.summary()


def test_a_budget_too_small_gives_a_constant_a_note_and_wide_intervals():
    cate, X, tau = fitted(400, 2, 0.2)
    assert not cate.release_.varies
    assert np.ptp(cate.effect(X)) == 0.0
    assert set(cate.importance().values()) == {0.0}
    assert "a constant is released" in cate.summary()
    low, high = cate.effect_interval(X)
    assert np.all((low <= tau) & (tau <= high))
    # As vague as the average effect is.
    assert np.min(high - low) >= np.ptp(cate.ate_interval()) - 1e-9


def test_a_small_budget_gives_an_effect_that_hardly_varies():
    cate, X, tau = fitted(1_500, 2, 0.5)
    assert np.std(cate.effect(X)) < 0.5 * np.std(tau)
    low, high = cate.effect_interval(X)
    assert np.mean((low <= tau) & (tau <= high)) > 0.9


def test_without_covariates_the_effect_is_a_constant():
    y, t, *_ = study(800, 4)
    with seeded_noise(0):
        cate = CATE(epsilon=4.0, delta=1e-6, bounds=Bounds(outcome=(-8, 8))).fit(y, t)
    assert cate.effect().shape == (1,)
    assert cate.ate() == pytest.approx(float(cate.effect()[0]))
    assert cate.importance() == {}


def test_without_noise_a_polynomial_effect_is_recovered():
    bounds = Bounds(outcome=(-12, 12), covariates=[(-2, 2), (-2, 2)], propensity=(0.2, 0.8))
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, (6_000, 2))
    t = (rng.random(6_000) < 0.5) * 1.0
    tau = 1 + x[:, 0] ** 2 - x[:, 0] * x[:, 1]
    with frozen_noise():
        cate = CATE(epsilon=20.0, delta=1e-6, bounds=bounds, propensity=0.5).fit(
            x[:, 1] + t * tau + 0.3 * rng.normal(size=6_000), t, X=x
        )
    # A function of codes is made of steps.
    assert rmse(cate.effect(x), tau) < 0.1 * np.std(tau)


def test_nothing_is_answered_before_fitting():
    with pytest.raises(NotFitted, match="call fit first"):
        CATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS).effect(None)


def test_bounds_that_are_far_too_wide_cost_little():
    wide = Bounds(
        outcome=(-8, 8), covariates={"age": (-30, 30), "dose": (-4, 5), "ward": ["a", "b", "c"]}, propensity=(0.1, 0.9)
    )
    cate, X, tau = fitted(bounds=wide)
    assert rmse(cate.effect(X), tau) < 0.4 * np.std(tau)
    # Codes are where the records were, to within a cell: half of them in a tenth of the range.
    edges = cate.release_.terms.edges[0]
    assert np.mean(np.abs(edges) < 0.1) > 0.5


@pytest.mark.parametrize("half", [300.0, 5_000.0, 1e9])
def test_records_in_a_tiny_part_of_their_range_have_a_function(half):
    vast = Bounds(
        outcome=(-8, 8),
        covariates={"age": (-half, half), "dose": (-half, half / 3.0), "ward": ["a", "b", "c"]},
        propensity=(0.1, 0.9),
    )
    cate, X, _ = fitted(bounds=vast)
    again = EffectRelease.from_dict(json.loads(json.dumps(cate.release_.to_dict())))
    np.testing.assert_array_equal(again.effect(X), cate.effect(X))
    assert np.all(np.isfinite(cate.effect(X)))


def test_the_doubly_robust_correction_finds_the_same_effect(usual):
    plain = usual[0]
    cate, X, tau = fitted(correction="DR")
    assert rmse(cate.effect(X), tau) < 0.35 * np.std(tau)
    assert np.any(plain.effect(X) != cate.effect(X))
    assert (plain.release_.adjustment["correction"], cate.release_.adjustment["correction"]) == ("R", "DR")


def test_where_all_have_one_probability_both_corrections_are_the_same_moments():
    plain, X, _ = fitted(randomised=True, propensity=0.5)
    cate, *_ = fitted(randomised=True, propensity=0.5, correction="DR")
    np.testing.assert_allclose(cate.effect(X), plain.effect(X), rtol=1e-6)


def test_where_a_column_has_the_probabilities_the_correction_is_doubly_robust():
    plain, X, tau = fitted(propensity="column")
    assert rmse(plain.effect(X), tau) < 0.35 * np.std(tau)
    assert plain.release_.adjustment["correction"] == "DR"
    assert "the doubly robust correction was used" in plain.summary()
    asked, *_ = fitted(propensity="column", correction="DR")
    np.testing.assert_array_equal(plain.effect(X), asked.effect(X))
    assert "the doubly robust correction was used" not in asked.summary()


def test_without_noise_both_corrections_agree_with_the_truth_where_an_arm_is_rare():
    rng = np.random.default_rng(12)
    n = 20_000
    x = np.clip(rng.normal(size=(n, 1)), -3, 3)
    e = np.clip(1 / (1 + np.exp(-1.5 * x[:, 0] + 1.0)), 0.05, 0.95)
    t = (rng.random(n) < e) * 1.0
    y = np.clip(x[:, 0] + t * (1 - x[:, 0]) + rng.normal(size=n), -10, 10)
    bounds = Bounds(outcome=(-10, 10), covariates=[(-3, 3)], propensity=(0.05, 0.95))
    for correction in ("R", "DR"):
        with seeded_noise(1):
            cate = CATE(epsilon=1e4, delta=1e-6, bounds=bounds, correction=correction).fit(y, t, X=x)
        assert rmse(cate.effect(x), 1 - x[:, 0]) < 0.115


def test_a_randomised_treatment_is_not_explained_away_where_covariates_are_nearly_collinear():
    # Counts on a few points have fewer curves than the basis: a full Newton step on the logit once ran away here.
    rng = np.random.default_rng(4)
    n = 16_000
    count = np.clip(rng.poisson(1.2, n), 0, 7) + 1.0
    flags = (rng.random((n, 3)) < [0.9, 0.8, 0.3]) * 1.0
    x = np.column_stack([count, flags, rng.uniform(18, 90, n)])
    t = (rng.random(n) < 0.4) * 1.0
    tau = -0.3 * flags[:, 1]
    y = (rng.random(n) < 0.5 + t * tau) * 1.0
    bounds = Bounds(outcome=(0, 1), covariates=[(1, 8), [0, 1], [0, 1], [0, 1], (18, 90)], propensity=(0.2, 0.8))
    errors = []
    for epsilon in (1.0, 16.0):
        with seeded_noise(2):
            cate = CATE(epsilon=epsilon, delta=1e-6, bounds=bounds).fit(y, t, X=x)
        errors.append(rmse(cate.effect(x), tau))
    assert errors[0] < 0.06
    assert errors[1] < 0.06


@pytest.mark.parametrize("correction", ["R", "DR"])
@pytest.mark.parametrize("treated", [0.5, 0.15])
@pytest.mark.parametrize("kind", ["event", "spending"])
def test_effects_on_rare_outcomes_are_not_clipped_away(kind, treated, correction):
    # An effect on a rare event changes how many residuals are large, not how large they are.
    rng = np.random.default_rng(9)
    n = 60_000
    x = rng.uniform(-1, 1, (n, 2))
    t = (rng.random(n) < treated) * 1.0
    happens = (rng.random(n) < 0.08 + 0.04 * t * (1 + x[:, 0])) * 1.0
    y = happens if kind == "event" else happens * np.minimum(rng.exponential(10.0, n), 50.0)
    truth = 0.04 if kind == "event" else 0.04 * 10.0 * (1 - np.exp(-5.0))
    top = 1.0 if kind == "event" else 50.0
    bounds = Bounds(outcome=(0, top), covariates=[(-1, 1)] * 2, propensity=(0.05, 0.95))
    with seeded_noise(3):
        cate = CATE(epsilon=2.0, delta=1e-6, bounds=bounds, propensity=treated, correction=correction).fit(y, t, X=x)
    low, high = cate.ate_interval(alpha=0.01)
    assert low <= truth <= high
    assert abs(cate.ate() - truth) < 0.35 * truth


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_treatment_that_few_or_most_get_at_random_is_recognised(share):
    # With an outcome that depends on a covariate: a propensity that stays near a half would take that for an effect.
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (8_000, 3))
    T = (rng.random(len(X)) < share) * 1
    Y = np.clip(2 * X[:, 1] + (1 + X[:, 0]) * T + rng.normal(size=len(X)), -8, 8)
    bounds = Bounds(outcome=(-8, 8), covariates=[(-1, 1)] * 3, propensity=(0.02, 0.98))
    with seeded_noise(3):
        fit = CATE(epsilon=20, delta=1e-6, bounds=bounds).fit(Y, T, X=X)
    assert np.sqrt(np.mean((fit.effect(X) - 1 - X[:, 0]) ** 2)) < 0.25
    assert fit.importance()["x0"] > 0.9


def test_a_constant_is_as_uncertain_as_the_average_it_comes_from():
    rng = np.random.default_rng(5)
    T, Y = np.arange(300) % 2, rng.normal(size=300)
    given = {"epsilon": 1.0, "delta": 1e-6, "bounds": Bounds(outcome=(-5, 5))}
    for seed in range(4):
        gate = Gate(ArrayRecords.of(Y, T, bounds=given["bounds"]), budget=Budget(epsilon=1.0, delta=1e-6))
        with seeded_noise(seed):
            # A function releases no means of its arms.
            average = ATE(**given)._measure(gate)
        with seeded_noise(seed):
            effect = CATE(**given).fit(Y, T)
        assert effect.ate() == float(effect.effect()[0]) == average.estimate
        assert effect.ate_interval() == average.interval()
        np.testing.assert_allclose(np.concatenate(effect.effect_interval()), average.interval(), rtol=1e-9)
