"""What the records bear out of a function: all of a right one, nothing of a wrong one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from discreet import ATE, CATE, Bounds, EffectRelease
from discreet.estimators import cate as cate_module
from discreet.estimators.measurements import effect_release
from discreet.estimators.measurements.calibration import Calibration, calibrate
from discreet.releases.average import Uncertainty
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-6, 6), covariates={"a": (-1, 1), "b": (-1, 1)}, propensity=(0.1, 0.9))


def records(n=12_000, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    t = (rng.random(n) < 0.5) * 1.0
    y = np.clip(x[:, 0] + t * (0.5 + x[:, 1]) + rng.normal(0, 0.5, n), -6, 6)
    return y, t, pd.DataFrame(x, columns=["a", "b"])


def fitted(change, monkeypatch):
    """A fit whose effect is changed before it is calibrated, and what calibration said of it."""
    seen = []

    def changed(gate, share, models, location, average):
        return seen.append(calibrate(gate, share, change(models), location, average)) or seen[0]

    monkeypatch.setattr(cate_module, "calibrate", changed)
    y, t, X = records()
    with seeded_noise(1):
        fit = CATE(epsilon=8.0, delta=1e-6, bounds=BOUNDS, propensity=0.5).fit(y, t, X=X)
    return fit, X, seen[0]


def test_a_right_function_is_kept(monkeypatch):
    fit, X, seen = fitted(lambda models: models, monkeypatch)
    assert seen.slope > 0.9
    assert seen.slope_sd < 0.1
    assert seen.mean == pytest.approx(0.0, abs=0.1 * seen.sd)
    assert fit.release_.reference["part_borne_out"] == seen.slope
    assert np.sqrt(np.mean((fit.effect(X) - 0.5 - X["b"]) ** 2)) < 0.15


def test_a_function_with_the_wrong_sign_is_dropped(monkeypatch):
    fit, X, seen = fitted(lambda models: replace(models, effect=-models.effect), monkeypatch)
    assert seen.slope == 0.0
    assert not fit.release_.varies
    assert np.ptp(fit.effect(X)) == pytest.approx(0.0, abs=1e-12)
    assert set(fit.importance().values()) == {0.0}
    assert float(fit.effect(X)[0]) == pytest.approx(0.5, abs=0.1)


def test_a_function_twice_too_steep_is_halved(monkeypatch):
    _, _, seen = fitted(lambda models: replace(models, effect=2.0 * models.effect), monkeypatch)
    assert seen.slope == pytest.approx(0.5, abs=0.08)


@pytest.fixture(scope="module")
def parts():
    y, t, X = records(4_000)
    with seeded_noise(2):
        function = CATE(epsilon=8.0, delta=1e-6, bounds=BOUNDS, propensity=0.5).fit(y, t, X=X).release_
        average = ATE(epsilon=8.0, delta=1e-6, bounds=BOUNDS, propensity=0.5).fit(y, t, X=X).release_
    return function, average, X


def calibration(**given):
    usual = {"slope": 1.0, "slope_sd": 0.0, "mean": 0.0, "noise": 0.0, "limit": 1.0, "sd": 0.1}
    return Calibration(**(usual | given))


@pytest.mark.parametrize(("se", "moves"), [(1e-6, True), (1e6, False)])
def test_a_precise_average_moves_the_function_and_a_vague_one_does_not(parts, se, moves):
    function, average, _ = parts
    far = replace(average, estimate=2.0, uncertainty=Uncertainty(sampling=se, privacy=0.0))
    moved = effect_release.anchored(function, calibration(), far, {})
    own = float(function.average @ function.coefficients)
    assert float(moved.average @ moved.coefficients) == pytest.approx(2.0 if moves else own, abs=1e-3)
    assert moved.ate() == 2.0
    assert moved.ate_interval(0.1) == pytest.approx(far.interval(0.1))
    np.testing.assert_allclose(np.diff(moved.coefficients[1:]), np.diff(function.coefficients[1:]), atol=1e-12)


def test_the_average_over_the_records_counts_and_not_that_over_the_stand_in(parts):
    function, average, _ = parts
    sure = replace(average, uncertainty=Uncertainty(sampling=1e-6, privacy=0.0))
    moved = effect_release.anchored(function, calibration(mean=0.05), sure, {})
    # In units of half the outcome's range.
    assert float(moved.average @ moved.coefficients) == pytest.approx(average.estimate - 0.05 * 6.0, abs=1e-3)


def test_effects_end_where_the_function_was_clipped_and_files_keep_it(parts):
    function, average, X = parts
    moved = effect_release.anchored(function, calibration(limit=0.02), average, {})
    effect, (low, high) = moved.effect(X), moved.effect_interval(X)
    assert np.ptp(effect) <= 2 * 0.02 * 6.0 + 1e-12
    assert np.all(low <= effect)
    assert np.all(effect <= high)
    again = EffectRelease.from_dict(moved.to_dict())
    assert (again.limits, again.measured) == (moved.limits, moved.measured)
    np.testing.assert_array_equal(again.effect(X), effect)
