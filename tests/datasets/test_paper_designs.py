"""Setups A to E and the voters of the sample-splitting paper."""

import os

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.datasets import draw, meta_learners, social_pressure
from discreet.datasets.paper_designs import SETUPS
from discreet.datasets.voters import VOTERS

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


def test_an_unknown_setup_is_refused():
    with pytest.raises(InvalidInput, match="one of A, B, C, D, E"):
        meta_learners("F", 10, 0)


def test_voters_have_the_effect_that_was_put_there(voters):
    study = social_pressure(seed=1)
    assert study.n == 191_243
    assert list(study.bounds.names) == list(VOTERS)
    treated = study.T == 1
    # Turnout has a standard deviation of about 0.45 in either arm: three standard errors.
    difference = study.Y[treated].mean() - study.Y[~treated].mean()
    assert difference == pytest.approx(study.ate, abs=3 * 0.45 * np.sqrt(1 / treated.sum() + 1 / (~treated).sum()))
    age, voted = study.X[:, 0], study.X[:, 3]
    assert study.effects == pytest.approx(-voted / (2 + 100 / age))
    assert set(np.unique(study.Y)) == {0.0, 1.0}


@pytest.mark.parametrize("header", ["treatment,primary_06,age", "a,b,c"])
def test_a_file_without_its_columns_is_refused_without_quoting_it(header, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text(f"{header}\nNo Postcard,secret,3\n")
    with pytest.raises(InvalidInput, match="must have the columns") as refused:
        social_pressure(file)
    assert "secret" not in str(refused.value)


def test_a_small_file_of_the_right_shape_is_read(tmp_path):
    names = ["treatment", "primary_06", *VOTERS]
    rows = [["No Postcard", 1, 40, 1, 0, 1, 0, 1, 0, 2], ["Civic Duty", 0, 30, 0, 0, 0, 0, 0, 0, 1]] * 20
    file = tmp_path / "x.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    study = social_pressure(file, seed=0)
    assert study.n == 20
    assert np.allclose(study.effects, -0.5 / (1 + 50 / 40))


def test_the_trial_itself_has_the_letters_that_are_asked_for(tmp_path):
    names = ["treatment", "primary_06", *VOTERS]
    arms = ["No Postcard"] * 5 + ["Civic Duty", "Hawthorne", "Self", "Neighbors"]
    rows = [[arm, int(arm == "Self"), 40, 1, 0, 1, 0, 1, 0, 2] for arm in arms]
    file = tmp_path / "x.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    for treated, n, share, mean in (("self", 6, 1 / 6, 1.0), ("neighbors", 6, 1 / 6, 0.0), ("any", 9, 4 / 9, 0.25)):
        study = social_pressure(file, treated=treated)
        assert (study.n, study.T.mean(), study.effects) == (n, pytest.approx(share), None)
        assert study.propensity == pytest.approx(share)
        assert study.Y[study.T == 1].mean() == mean
        assert not study.Y[study.T == 0].any()
    with pytest.raises(InvalidInput, match="treated must be one of civic"):
        social_pressure(file, treated="everyone")


def test_the_letters_have_the_published_effects(voters):
    published = {"civic": 0.0179, "hawthorne": 0.0257, "self": 0.0485, "neighbors": 0.0813}
    for treated, effect in published.items():
        study = social_pressure(treated=treated)
        assert study.Y[study.T == 1].mean() - study.Y[study.T == 0].mean() == pytest.approx(effect, abs=5e-5)


def test_a_missing_folder_is_one_sentence(monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    assert "DISCREET_DATA" not in os.environ
    with pytest.raises(InvalidInput, match="DISCREET_DATA"):
        social_pressure()
