"""How large outcomes are taken to be where most of them have one value."""

import numpy as np
import pytest

from discreet import ATE, Bounds
from discreet.estimators.measurements import nuisances
from discreet.estimators.measurements.location import locate
from discreet.testing import seeded_noise


def located(y, monkeypatch, epsilon=2.0):
    """What the first rounds say of an outcome on [0, 1]."""
    found = []
    rng = np.random.default_rng(0)

    def keep(*arguments):
        found.append(locate(*arguments))
        return found[-1]

    monkeypatch.setattr("discreet.estimators.weighted.average.locate", keep)
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1)])
    x = rng.random((len(y), 1))
    with seeded_noise(1):
        ATE(epsilon=epsilon, delta=1e-6, bounds=bounds).fit(y, rng.random(len(y)) < 0.5, X=x)
    return found[0]


def test_rare_events_are_not_clipped_and_vary_as_much_as_they_do(monkeypatch):
    y = (np.random.default_rng(1).random(20_000) < 0.05).astype(float)
    location = located(y, monkeypatch)
    assert location.atomic
    # On [-1, 1], where outcomes are measured.
    assert location.deviation == pytest.approx(2.0 * y.std(), rel=0.1)
    assert location.scale == pytest.approx(location.deviation)
    assert location.magnitude.scale < 0.5 * location.scale
    assert location.least_clip == pytest.approx(1.0 + abs(location.centre))


def test_amounts_that_are_mostly_zero_are_clipped_no_lower_than_they_vary(monkeypatch):
    rng = np.random.default_rng(2)
    y = np.where(rng.random(20_000) < 0.1, rng.random(20_000), 0.0)
    location = located(y, monkeypatch)
    assert location.least_clip == location.deviation == pytest.approx(2.0 * y.std(), rel=0.1)


def test_outcomes_of_many_values_have_the_scale_of_their_middle(monkeypatch):
    y = np.random.default_rng(3).normal(0.5, 0.1, 20_000).clip(0, 1)
    location = located(y, monkeypatch)
    assert not location.atomic
    assert location.least_clip == 0.0
    assert location.scale == location.magnitude.scale


def test_models_of_rare_events_do_not_clip_them_and_know_how_uncertain_they_are(monkeypatch):
    rng = np.random.default_rng(4)
    x = rng.random((30_000, 1))
    chance = np.where(x[:, 0] > 0.5, 0.12, 0.02)
    e = np.where(x[:, 0] > 0.5, 0.7, 0.3)
    t = (rng.random(30_000) < e).astype(float)
    y = (rng.random(30_000) < chance).astype(float)
    bounds = Bounds(outcome=[0, 1], covariates=[(0, 1)], propensity=(0.1, 0.9))
    asked, fitted = [], []

    def keep(*arguments):
        asked.append(nuisances.nuisance_questions(*arguments))
        return asked[-1]

    def keep_fit(*arguments):
        fitted.append(nuisances.fit_nuisances(*arguments))
        return fitted[-1]

    monkeypatch.setattr("discreet.estimators.weighted.average.nuisance_questions", keep)
    monkeypatch.setattr("discreet.estimators.weighted.average.fit_nuisances", keep_fit)
    with seeded_noise(1):
        ATE(epsilon=2.0, delta=1e-6, bounds=bounds).fit(y, t, X=x)
    # An event lies almost the whole range, of two, from where most outcomes are.
    assert asked[0].clip > 1.8
    assert fitted[0].least_clip > 1.8
    assert fitted[0].least_scale == pytest.approx(2.0 * y.std(), rel=0.1)
