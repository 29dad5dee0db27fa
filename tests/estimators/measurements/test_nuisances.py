"""Two prognoses of one correction: one that errs least, and one whose errors go with nothing."""

import numpy as np
import pytest

from discreet import ATE, Bounds
from discreet.estimators.weighted import average as module
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-6, 6), covariates=[(-1, 1)] * 6, propensity=(0.1, 0.9))


def study(seed, n=4_000):
    """One cause moves treatment and outcome, along all covariates."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 6))
    cause = np.sin(3.0 * x).sum(axis=1) / 2.0
    t = (rng.random(n) < 1.0 / (1.0 + np.exp(-cause))).astype(float)
    return x, t, cause + rng.normal(0, 0.5, n), cause


@pytest.fixture
def models(monkeypatch):
    """The models that the last fit's score had."""
    found = []
    score = module._measure_score

    def kept(gate, model_gate, allocation, location, outcome, design):
        found.append(outcome)
        return score(gate, model_gate, allocation, location, outcome, design)

    monkeypatch.setattr(module, "_measure_score", kept)
    return found


def fit(seed, **given):
    x, t, y, cause = study(seed)
    with seeded_noise(seed):
        return ATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS, **given).fit(y, t, X=x), x, cause


def test_the_shrunk_prognosis_errs_less_and_the_free_one_does_not_err_with_the_propensity(models):
    errors, products = [], []
    for seed in range(8):
        _, x, cause = fit(seed)
        outcome = models[-1]
        features = outcome.propensity.setting.basis
        phi = features.from_codes(features.codes(x), len(x))
        e = 1.0 / (1.0 + np.exp(-outcome.propensity.start - phi @ outcome.propensity.theta))
        pi = 1.0 / (1.0 + np.exp(-cause))
        off = [cause / 6.0 - outcome.centre - phi @ each.coefficients for each in (outcome.for_functions(), outcome)]
        off = [each - each.mean() for each in off]
        errors.append([np.mean(each**2) for each in off])
        products.append([np.mean((pi - e) * each) for each in off])
    shrunk, free = np.mean(errors, axis=0)
    assert shrunk < free
    # What shrinking left of both models is of one sign in every study; the free prognosis has hardly any of it.
    shrunk, free = np.abs(np.mean(products, axis=0))
    assert free < shrunk


def test_a_known_design_has_one_prognosis(models):
    x, t, y, _ = study(1)
    with seeded_noise(1):
        ATE(epsilon=20.0, delta=1e-6, bounds=BOUNDS, propensity=np.full(len(t), 0.5)).fit(y, t, X=x)
    (outcome,) = models
    assert outcome.for_functions() is outcome
