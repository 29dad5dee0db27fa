"""What is published of an effect function: its level, its limits, its band and what it goes with."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from discreet import ATE, Bounds, EffectRelease
from discreet.data.in_memory import ArrayRecords
from discreet.estimators.measurements.effect_function import EffectFunction, measure_effect
from discreet.estimators.measurements.effect_release import constant_release, function_release
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.releases.average import Uncertainty
from discreet.testing import seeded_noise

# The effect goes with the second covariate, a little with the first, and not with the third.
BOUNDS = Bounds(outcome=(-6, 6), covariates={"a": (-1, 1), "b": (-1, 1), "c": ["f", "m"]}, propensity=(0.1, 0.9))
BUDGET = Budget(epsilon=8.0, delta=1e-6)


def records(n=4_000):
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.integers(0, 2, n)])
    t = (rng.random(n) < 0.5) * 1.0
    y = x[:, 0] + t * (0.5 + 0.2 * x[:, 0] + x[:, 1]) + rng.normal(0, 0.5, n)
    levels = np.array(["f", "m"], dtype=object)[x[:, 2].astype(int)]
    X = np.column_stack([x[:, :2].astype(object), levels])
    return y, t, X


@cache
def parts():
    """A gate that has answered everything, a function and the average effect beside it."""
    y, t, X = records()
    gate = Gate(ArrayRecords.of(y, t, X, bounds=BOUNDS, propensity=0.5), budget=BUDGET, neighbours="replace-one")
    average = ATE(epsilon=8.0, delta=1e-6, bounds=BOUNDS, propensity=0.5)
    with seeded_noise(1):
        measured, location, models = average._measure_with_models(GatePart(gate, 0.6, "average: "))
        function = EffectFunction.constant(models, location, models.propensity.on_reference, 0.0, "R")
        function = measure_effect(GatePart(gate, 0.4), 1, 0.8, 0.2, function)
        made = function_release(gate, function, measured, {}, ("A note.",))
    return gate, function, measured, made


def released(**change):
    """A release beside another average effect."""
    gate, function, measured, _ = parts()
    with seeded_noise(1):
        return function_release(gate, function, replace(measured, **change), {}, ())


def level(release):
    """The function's average over the stand-in."""
    return float(release.average @ release.coefficients)


def test_a_precise_average_sets_the_level_and_a_vague_one_does_not():
    sure = released(estimate=2.0, uncertainty=Uncertainty(sampling=1e-6, privacy=0.0))
    vague = released(estimate=2.0, uncertainty=Uncertainty(sampling=1e6, privacy=0.0))
    assert level(sure) == pytest.approx(2.0, abs=1e-3)
    # The function counts from the average effect: its own is what it adds to it.
    _, function, measured, made = parts()
    own = 6.0 * float(function.setting.reference.features.mean(axis=0) @ function.coefficients)
    assert level(vague) == pytest.approx(2.0 + own, abs=1e-3)
    assert (
        min(measured.estimate, measured.estimate + own)
        <= level(made)
        <= max(measured.estimate, measured.estimate + own)
    )
    np.testing.assert_allclose(sure.coefficients[1:], vague.coefficients[1:])


def test_the_average_effect_is_published_as_it_was_measured():
    _, _, measured, made = parts()
    assert made.ate() == measured.estimate
    assert made.ate_interval(0.1) == pytest.approx(measured.interval(0.1))


def test_coefficients_are_those_of_the_function_in_the_outcomes_unit():
    _, function, _, made = parts()
    _, _, X = records(500)
    x = np.column_stack([X[:, 0].astype(float), X[:, 1].astype(float), (X[:, 2] == "m") * 1.0])
    basis = function.setting.basis
    shape = 6.0 * basis.from_codes(basis.codes(x), len(x)) @ function.coefficients
    unlimited = np.concatenate(list(made._features(X))) @ made.coefficients
    np.testing.assert_allclose(unlimited - unlimited.mean(), shape - shape.mean(), atol=1e-4)


def test_effects_end_three_deviations_from_their_level_and_files_keep_it():
    made, (_, _, X) = parts()[3], records()
    sd = made.reference["sd_of_effect"]
    assert made.limits == pytest.approx((level(made) - 3 * sd, level(made) + 3 * sd))
    narrow = replace(made, limits=(0.4, 0.6))
    effect, (low, high) = narrow.effect(X), narrow.effect_interval(X)
    assert (effect.min(), effect.max()) == (0.4, 0.6)
    assert np.all((low <= effect) & (effect <= high))
    again = EffectRelease.from_dict(narrow.to_dict())
    assert (again.limits, again.measured) == (narrow.limits, narrow.measured)
    np.testing.assert_array_equal(again.effect(X), effect)


def test_importance_goes_where_the_effect_does_and_adds_up():
    importance = parts()[3].importance
    assert importance["b"] > 0.8
    assert importance["b"] > importance["a"] > importance["c"] >= 0.0
    assert sum(importance.values()) == pytest.approx(1.0)


def test_bands_are_no_narrower_than_the_average_and_what_is_left_out():
    _, _, measured, made = parts()
    error = np.hypot(measured.uncertainty.se, measured.uncertainty.clipping)
    stated = np.sqrt(np.sum((made.average @ made.factor) ** 2))
    # A function leaves out more of an effect that varies more.
    assert stated > np.hypot(error, made.reference["sd_of_effect"])
    wide = released(uncertainty=Uncertainty(sampling=1.0, privacy=0.0))
    assert np.sqrt(np.sum((wide.average @ wide.factor) ** 2)) > 1.0
    assert np.array_equal(made.factor, np.tril(made.factor))


def test_what_is_public_and_said_about_it():
    _, function, _, made = parts()
    assert made.design == "known propensity"
    assert set(made.guarantee.public) == {
        "the declared bounds",
        "the number of records",
        "the probability of treatment",
    }
    assert made.notes[-1] == "A note."
    assert "relies on the stated probabilities" in made.notes[0]
    assert made.adjustment["terms"] == made.terms.m == len(function.kept)
    assert made.reference.keys() == {"unadjusted", "treated_share", "sd_of_effect", "chance_that_it_varies"}


def test_a_constant_says_what_the_average_effect_says():
    measured = parts()[2]
    bare = replace(measured, bounds=Bounds(outcome=(-6, 6)))
    made = constant_release(bare)
    assert made.effect().tolist() == [measured.estimate]
    assert made.ate_interval(0.2) == pytest.approx(measured.interval(0.2))
    np.testing.assert_allclose(np.concatenate(made.effect_interval()), measured.interval(), rtol=1e-9)
    assert (made.importance, made.varies, made.terms.m) == ({}, False, 1)
    assert made.notes[0].startswith("No covariates were declared")
    assert EffectRelease.from_dict(made.to_dict()).effect().tolist() == [measured.estimate]
