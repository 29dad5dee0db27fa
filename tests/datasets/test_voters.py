"""Voters of the social pressure experiment: the trial, and effects that were put into it."""

import os

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.datasets import social_pressure
from discreet.datasets.voters import VOTERS


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
