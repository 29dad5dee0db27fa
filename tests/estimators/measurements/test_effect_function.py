"""Rounds of an effect function: what their moments identify, where residuals are clipped, and what they find."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from discreet import ATE, CATE, Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Chunk
from discreet.estimators import cate as cate_module
from discreet.estimators._effect_allocation import EFFECT_ROUNDS
from discreet.estimators.measurements.effect_function import (
    EffectFunction,
    choose_features,
    measure_effect,
    measure_probabilities,
)
from discreet.postprocessing.effect_shrinkage import Shrunk
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.testing import frozen_noise, seeded_noise, watched

# Outcomes as rounds see them: half of the range is one.
BOUNDS = Bounds(outcome=(-8, 8), covariates=[(-1, 1), (-1, 1)], propensity=(0.05, 0.95))
EFFECTS = {
    "none": lambda x: np.full(len(x), 0.5),
    "line": lambda x: 0.5 + x[:, 0],
    "step": lambda x: 1.0 * (x[:, 0] > 0.25),
    "product": lambda x: x[:, 0] * x[:, 1],
}
# Observational, or designs that are known: of one probability, and of one for each record.
DESIGNS = ["observational", "number", "column"]


def study(effect="line", design="observational", n=6_000):
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, (n, 2))
    e = np.full(n, 0.3) if design == "number" else np.clip(1 / (1 + np.exp(-1.5 * x[:, 0])), 0.05, 0.95)
    t = (rng.random(n) < e) * 1.0
    tau = EFFECTS[effect](x)
    y = x[:, 1] + t * tau + rng.normal(0, 0.5, n)
    known = {"observational": None, "number": 0.3, "column": e}[design]
    return ArrayRecords.of(y, t, x, bounds=BOUNDS, propensity=known), known, x, tau / 8, e


def gate_of(records, epsilon=1e4):
    return Gate(records, budget=Budget(epsilon=epsilon, delta=1e-6), neighbours="replace-one")


@cache
def started(effect="line", design="observational", correction="R"):
    """A constant function beside models without noise."""
    records, known, *_ = study(effect, design)
    with frozen_noise():
        average = ATE(epsilon=1e4, delta=1e-6, bounds=BOUNDS, propensity=known)
        measured, location, models = average._measure_with_models(gate_of(records))
    e = models.propensity.on_reference
    return EffectFunction.constant(models, location, e, measured.estimate / 8, correction), records


def chunk_of(x, y, t, e):
    """Records as maps see them."""
    y, t, e = (np.broadcast_to(np.asarray(part, dtype=float), len(x)).copy() for part in (y, t, e))
    return Chunk(y, t, np.asfortranarray(x), e)


def answered(function, x):
    """The function at rows that are encoded."""
    return function.level + function.setting.features.combine(chunk_of(x, 0.0, 0.0, 0.5), function.coefficients)


def with_coefficients(function, coefficients):
    fitted = Shrunk(coefficients, np.zeros((len(coefficients),) * 2), 1.0)
    return replace(function, kept=np.arange(len(coefficients)), fitted=fitted)


# --- what moments identify ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", ["R", "DR"])
@pytest.mark.parametrize("t", [0.0, 1.0])
def test_moments_move_with_the_effect_alike_in_both_arms(t, correction):
    function, _ = started("line", "column", correction)
    rng = np.random.default_rng(1)
    x, e = rng.uniform(-1, 1, (50, 2)), rng.uniform(0.05, 0.95, 50)
    other = with_coefficients(function, 0.1 * rng.normal(size=function.setting.basis.m))
    chunk = chunk_of(x, rng.uniform(-1, 1, 50), t, e)
    moved = answered(other, x) - answered(function, x)
    product = (t - e) * function.weight(e) * (function.residual(chunk, e) - other.residual(chunk, e))
    # (t - e) (t - 1 + e) is e (1 - e) in both arms.
    np.testing.assert_allclose(product, e * (1 - e) * function.weight(e) * moved, atol=1e-12)
    if correction == "DR":
        np.testing.assert_allclose(product, moved, atol=1e-12)


def test_a_right_function_beside_a_right_prognosis_leaves_nothing():
    function, _ = started("line", "column")
    rng = np.random.default_rng(2)
    x, e = rng.uniform(-1, 1, (40, 2)), rng.uniform(0.05, 0.95, 40)
    function = with_coefficients(function, 0.02 * rng.normal(size=function.setting.basis.m))
    for t in (0.0, 1.0):
        chunk = chunk_of(x, 0.0, t, e)
        y = function.models.answers(chunk).prognosis + (t - 1 + e) * answered(function, x)
        np.testing.assert_allclose(function.residual(chunk._replace(y=y), e), 0.0, atol=1e-12)


# --- the map of the moments -----------------------------------------------------------------------------------------


def moments_of(correction, design="column"):
    """The question about moments that a round asks, and the constant function before it."""
    function, records = started("line", design, correction)
    seen = []
    with frozen_noise(), watched(lambda _, rounds: seen.extend(each.query for each in rounds)):
        measure_effect(gate_of(records), 1, 0.5, 0.1, function)
    return seen[1], function


def rows_at(query, t, e, y):
    """Rows of one place with outcomes, as far as they reach, along their common direction."""
    chunk = chunk_of(np.full((len(y), 2), 0.1), y, t, e)
    rows = np.array(query.map(chunk))
    direction = rows[np.argmax(np.sum(rows**2, axis=1))]
    return rows @ direction / np.sqrt(direction @ direction)


def check_rows_fill_their_ball(correction):
    """The furthest record lies on the ball: neither beyond it, nor far inside."""
    query, _ = moments_of(correction)
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (4_000, 2))
    for e in (0.05, 0.3, 0.5, 0.9):
        for t in (0.0, 1.0):
            rows = np.array(query.map(chunk_of(x, rng.choice([-1.0, 1.0], 4_000), t, e)))
            furthest = np.sqrt(np.sum(rows**2, axis=1)).max() / query.geometry.radius
            assert furthest <= 1 + 1e-9
            # The larger of both arms reaches the clip wherever the probability lies.
            assert furthest > 0.9 or max(e, 1 - e) > (1 - e if t else e)


def check_residuals_are_clipped_alike_in_both_arms(correction):
    """Where one arm's residual is clipped the other's is, so that rows reach as far as their factors say."""
    query, _ = moments_of(correction)
    for e in (0.1, 0.3, 0.8):
        treated, control = (np.abs(rows_at(query, t, e, np.array([-1.0, 1.0]))) for t in (1.0, 0.0))
        assert treated.max() / control.max() == pytest.approx((1 - e) / e, rel=1e-9)


@pytest.mark.parametrize("correction", ["R", "DR"])
def test_rows_fill_their_ball_and_stay_inside(correction):
    check_rows_fill_their_ball(correction)


@pytest.mark.parametrize("correction", ["R", "DR"])
def test_residuals_are_clipped_alike_in_both_arms(correction):
    check_residuals_are_clipped_alike_in_both_arms(correction)


@pytest.mark.parametrize("correction", ["R", "DR"])
def test_residuals_that_are_small_pass_in_proportion_to_their_factor(correction):
    query, function = moments_of(correction)
    e, place, found = 0.3, np.full((1, 2), 0.1), {}
    for t in (0.0, 1.0):
        # An outcome of zero leaves so much.
        left = function.residual(chunk_of(place, 0.0, t, e), np.array([e]))[0]
        for size in (0.01, 0.02):
            found[t, size] = rows_at(query, t, e, np.array([size - left]))[0]
    for t in (0.0, 1.0):
        assert found[t, 0.02] == pytest.approx(2 * found[t, 0.01])
    assert found[1.0, 0.01] / found[0.0, 0.01] == pytest.approx((1 - e) / e)


# --- what is found --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", ["R", "DR"])
@pytest.mark.parametrize(("effect", "most"), [("line", 0.1), ("step", 0.3), ("product", 0.2)])
def test_without_noise_rounds_find_the_effect(effect, most, correction):
    function, records = started(effect, "observational", correction)
    _, _, x, tau, _ = study(effect)
    assert np.std(answered(function, x)) < 1e-12
    whole = gate_of(records)
    with frozen_noise():
        for number in (1, 2, 3):
            function = measure_effect(whole, number, 0.2, 0.1, function)
    assert np.std(answered(function, x) - tau) < most * np.std(tau)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_same_effect_for_everyone_is_left_alone(design):
    function, records = started("none", design)
    _, _, x, tau, _ = study("none", design)
    with seeded_noise(4):
        found = measure_effect(gate_of(records, 8.0), 1, 0.5, 0.1, function)
    assert np.std(answered(found, x)) < 0.02
    np.testing.assert_allclose(answered(found, x), tau, atol=0.03)


def test_a_function_is_corrected_from_where_it_is():
    # A first guess that is far off says the same after a round without noise as none does.
    function, records = started("line", "number")
    basis = function.setting.basis
    guess = np.zeros(basis.m)
    guess[1:4] = 0.05
    _, _, x, tau, _ = study("line", "number")
    with frozen_noise():
        plain = measure_effect(gate_of(records), 1, 0.5, 0.1, function)
        moved = measure_effect(
            gate_of(records), 1, 0.5, 0.1, replace(function, fitted=function.fitted._replace(mean=guess))
        )
    assert np.std(answered(replace(function, fitted=function.fitted._replace(mean=guess)), x) - tau) > 0.02
    np.testing.assert_allclose(answered(moved, x), answered(plain, x), atol=0.02)


def test_features_that_a_first_round_leaves_out_stay_out():
    function, records = started()
    with seeded_noise(1):
        first = measure_effect(gate_of(records, 2.0), 1, 0.5, 0.1, function)
        second = measure_effect(gate_of(records, 2.0), 2, 0.5, 0.1, first)
    assert first.kept[0] == 0
    assert len(first.kept) < function.setting.basis.m
    np.testing.assert_array_equal(first.kept, second.kept)
    assert not np.any(np.delete(second.coefficients, second.kept))
    assert np.all(np.diag(second.fitted.covariance) >= 0.0)


def test_what_is_forgotten_is_the_information_and_not_the_function():
    function, records = started()
    with frozen_noise():
        found = measure_effect(gate_of(records), 1, 0.5, 0.1, function)
    again = found.forgotten()
    assert not np.any(again.known.precision)
    assert np.any(found.known.precision)
    np.testing.assert_array_equal(again.coefficients, found.coefficients)
    # Coefficients may be as large as they were seen to be: what is known of their signs is gone.
    np.testing.assert_allclose(again.variance, found.variance + found.coefficients**2)


# --- probabilities that differ between records ----------------------------------------------------------------------


def test_probabilities_of_a_column_are_recovered_as_a_distribution():
    function, records = started("line", "column")
    e = study("line", "column")[4]
    with frozen_noise():
        found = measure_probabilities(gate_of(records), 0.5, function.models.propensity)
    assert found.shape == function.e.shape
    low, high = function.models.propensity.low, function.models.propensity.high
    assert low < found.min() < found.max() < high
    levels = np.linspace(0.02, 0.98, 25)
    # Cells are a sixteenth of the range wide.
    np.testing.assert_allclose(np.quantile(found, levels), np.quantile(e, levels), atol=0.6 * (high - low) / 16)
    assert np.mean(found) == pytest.approx(np.mean(e), abs=0.01)


def test_probabilities_have_nothing_to_do_with_the_covariates_of_the_points():
    function, records = started("line", "column")
    with frozen_noise():
        found = measure_probabilities(gate_of(records), 0.5, function.models.propensity)
    features = function.setting.reference.features[:, 1:]
    assert max(abs(np.corrcoef(found, feature)[0, 1]) for feature in features.T) < 0.05


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_probabilities_stay_inside_their_bounds_whatever_the_noise(epsilon):
    function, records = started("line", "column")
    with seeded_noise(2):
        found = measure_probabilities(gate_of(records, epsilon), 0.02, function.models.propensity)
    assert np.all((found > 0.05) & (found < 0.95))


@pytest.mark.parametrize(("design", "correction"), [("observational", "R"), ("number", "R"), ("column", "DR")])
def test_weights_count_all_records_alike_where_a_column_has_their_probabilities(design, correction, monkeypatch):
    seen = []

    def noting(measure):
        def noted(gate, number, share, magnitude_share, function, *rest):
            seen.append((function.correction, isinstance(gate, GatePart)))
            return measure(gate, number, share, magnitude_share, function, *rest)

        return noted

    for measure in (choose_features, measure_effect):
        monkeypatch.setattr(cate_module, measure.__name__, noting(measure))
    rng = np.random.default_rng(8)
    x, t = rng.uniform(-1, 1, (600, 2)), np.arange(600) % 2
    known = {"observational": None, "number": 0.5, "column": np.linspace(0.4, 0.6, 600)}[design]
    with seeded_noise(0):
        fit = CATE(epsilon=4.0, delta=1e-6, bounds=BOUNDS, propensity=known).fit(x[:, 0], t, X=x)
    assert seen == [(correction, True)] * EFFECT_ROUNDS
    assert fit.release_.adjustment["correction"] == correction
    asked = [event.name for event in fit.guarantee_.events]
    assert ("probabilities of treatment" in asked) == (design == "column")
