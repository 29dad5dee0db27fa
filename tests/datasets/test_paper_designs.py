"""Generators of the papers: what their texts say."""

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.datasets import draw, meta_learners, private_ci_rct, propensity_scores
from discreet.datasets.paper_designs import SETUPS
from tests.datasets.helpers import inside

# Variance of the effect, as the error of the authors' S-learner at n = 16,000 and epsilon = 16 shows it; A and C are
# biased there, so that their own formulas stand in: (1/12 + 1/12) / 4, and no variance at all.
VARIANCE = {"A": 1 / 24, "B": 1.273, "C": 0.0, "D": 1.7, "E": 10.12}
# First row of the matrix that the authors print; its products with itself are the first covariate's variance.
ROW = [
    -0.16596,
    0.44065,
    -0.99977,
    -0.39533,
    -0.70649,
    -0.81532,
    -0.62748,
    -0.30888,
    -0.20647,
    0.07763,
    -0.16161,
    0.37044,
]


@pytest.mark.parametrize("setup", SETUPS)
def test_a_setup_keeps_its_bounds_and_its_overlap(setup):
    study = meta_learners(setup, 5_000, 1)
    low, high = study.bounds.outcome
    assert study.n == 5_000
    assert low <= study.Y.min()
    assert study.Y.max() <= high
    # So wide that outcomes are hardly ever clipped.
    assert np.mean(np.isin(study.Y, study.bounds.outcome)) < 0.002
    assert np.mean(study.T) == pytest.approx(np.mean(study.propensity), abs=4 * 0.5 / np.sqrt(5_000))
    assert set(np.unique(study.T)) == {0.0, 1.0}


@pytest.mark.parametrize("setup", SETUPS)
def test_effects_vary_as_in_the_authors_runs(setup):
    effects = meta_learners(setup, 100_000, 2).effects
    # Clipping covariates at three standard deviations takes about 2 % off.
    assert np.var(effects) == pytest.approx(VARIANCE[setup], rel=0.04, abs=1e-9)


def test_the_same_seed_draws_the_same_study_and_another_one_does_not():
    for setup in SETUPS:
        first, again, other = (meta_learners(setup, 50, seed) for seed in (3, 3, 4))
        assert np.array_equal(first.Y, again.Y)
        assert not np.array_equal(first.Y, other.Y)


def test_setup_d_differs_from_the_text_in_its_baseline_only():
    code, text = meta_learners("D", 2_000, 5), draw("setup-d", 2_000, 5)
    assert np.array_equal(code.X, text.X)
    assert np.array_equal(code.T, text.T)
    assert np.array_equal(code.effects, text.effects)
    x = code.X
    moved = np.maximum(x[:, 0] + x[:, 1], 0) - np.maximum(x[:, 0] + x[:, 1] + x[:, 2], 0)
    difference = code.Y - text.Y
    assert difference == pytest.approx(moved, abs=1e-9)


def test_setup_e_is_that_of_the_code():
    study = meta_learners("E", 50_000, 1)
    x = study.X
    assert set(np.unique(x[:, 3:])) == {0.0, 1.0}
    assert study.effects == pytest.approx(
        x[:, 1] - x[:, 2] + x[:, 3:].sum(axis=1) + 5 / (1 + np.exp(-x[:, 0])), abs=1e-9
    )
    assert (study.propensity.min(), study.propensity.max()) == (0.1, 0.9)
    assert np.var(x[:, 0]) == pytest.approx(np.sum(np.square(ROW)), rel=0.03)


def test_as_printed_setups_d_and_e_are_those_of_table_1():
    printed = meta_learners("E", 50_000, 1, as_printed=True)
    x = printed.X
    effects = 1 / (1 + np.exp(x[:, 0])) - x[:, 1] + x[:, 2] + x[:, 3] + x[:, 4] + x[:, 5]
    assert printed.effects == pytest.approx(effects, abs=1e-9)
    assert printed.propensity == pytest.approx(1 / (1 + np.exp(x[:, 0] + x[:, 5])), abs=1e-12)
    control = sum((k + 1) * x[:, k] for k in range(6)) + x[:, 0] * x[:, 5] + ((x[:, 2] > -0.5) & (x[:, 2] < 0.5))
    noise = printed.Y - control - printed.T * effects
    inside = np.abs(printed.Y) < 90
    assert np.mean(inside) > 0.999
    assert (np.mean(noise[inside]), np.std(noise[inside])) == (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))
    assert np.var(x[:, 0]) == pytest.approx(np.sum(np.square(ROW)), rel=0.03)
    assert np.array_equal(meta_learners("D", 100, 5, as_printed=True).Y, draw("setup-d", 100, 5).Y)
    for setup in "ABC":
        assert np.array_equal(meta_learners(setup, 100, 5, as_printed=True).Y, meta_learners(setup, 100, 5).Y)


def test_an_unknown_setup_is_refused():
    with pytest.raises(InvalidInput, match="one of A, B, C, D, E"):
        meta_learners("F", 10, 0)


def test_the_propensity_paper_s_covariates_are_scaled_by_their_largest_norm():
    study = propensity_scores(0.1, 5)
    assert study.X.shape == (1200, 25)
    norms = np.linalg.norm(study.X, axis=1)
    assert norms.max() == pytest.approx(1)
    # Norms of 3 times a chi variable with 25 degrees of freedom: the mean is about 5 / 7.5 of the largest.
    assert 0.55 < norms.mean() < 0.75
    inside(study)


def test_the_propensity_paper_s_vectors_are_shared_by_all_trials_unless_asked_otherwise():
    first, second = (propensity_scores(2.0, seed) for seed in (1, 2))

    def assignment(study):
        return np.linalg.lstsq(study.X, np.log(study.propensity / (1 - study.propensity)))[0]

    np.testing.assert_allclose(assignment(first), assignment(second), atol=1e-10)
    fresh = [assignment(propensity_scores(2.0, seed, vectors=None)) for seed in (1, 2)]
    assert np.abs(fresh[0] - fresh[1]).max() > 0.5


def test_the_propensity_paper_s_outcome_has_the_stated_effect_and_error():
    study = propensity_scores(2.0, 3, n=20_000)
    design = np.column_stack([study.X, study.T])
    coefficients = np.linalg.lstsq(design, study.Y)[0]
    residuals = study.Y - design @ coefficients
    assert coefficients[-1] == pytest.approx(2.0, abs=0.01)
    assert residuals.std() == pytest.approx(0.1, rel=0.03)
    assert study.T.mean() == pytest.approx(study.propensity.mean(), abs=0.015)
    assert study.ate == 2.0


def test_the_trial_has_one_covariate_and_treats_exactly_half():
    study = private_ci_rct(1_000, 4)
    assert study.X.shape == (1_000, 1)
    assert study.T.sum() == 500
    inside(study)
    design = np.column_stack([np.ones(1_000), study.X, study.T])
    assert np.linalg.lstsq(design, study.Y)[0][-1] == pytest.approx(1.0, abs=4 * 2 * 0.58 / np.sqrt(1_000))
    with pytest.raises(InvalidInput, match="n must be even"):
        private_ci_rct(999, 4)


def test_the_same_seed_gives_the_same_study():
    for make in (lambda seed: propensity_scores(0.1, seed), lambda seed: private_ci_rct(100, seed)):
        np.testing.assert_array_equal(make(1).Y, make(1).Y)
        assert not np.array_equal(make(1).Y, make(2).Y)
