"""Commands that estimate: they do what the library does, and say refusals in one sentence."""

import sys
from dataclasses import replace

import pandas as pd
import pytest

from discreet.estimators import ate as ate_module
from discreet.estimators.weighted import average as average_module
from discreet.releases.average import Release
from tests.cli.helpers import BOUNDS, ESTIMATE, plain, refused, run


@pytest.mark.parametrize("name", ["study.parquet", "study.csv"])
def test_an_effect_is_estimated_shown_and_saved_with_its_page(here, name):
    result = run("ate", name, *ESTIMATE, "--out", "release.json", "--report", "page.html")
    assert result.exit_code == 0
    release = Release.load("release.json")
    text = plain(result.stdout)
    for part in (
        release.text(release.estimate),
        release.interval_text(),
        "3,000",
        "epsilon = 5, delta = 1e-06",
        "proved",
    ):
        assert part in text
    assert "Effect of drug on days" in (here / "page.html").read_text()
    assert (release.guarantee.status, release.bounds) == ("proved", BOUNDS)


def test_a_subset_of_the_declared_covariates_can_be_chosen(here):
    assert run("ate", "study.parquet", *ESTIMATE, "--covariates", "sex", "--out", "release.json").exit_code == 0
    assert Release.load("release.json").bounds.names == ("sex",)


@pytest.mark.parametrize("propensity", ["0.5", "chance"])
def test_a_known_propensity_is_a_number_or_a_column(here, propensity):
    assert run("ate", "study.parquet", *ESTIMATE, "--propensity", propensity, "--out", "r.json").exit_code == 0
    assert Release.load("r.json").design == "known propensity"


@pytest.mark.parametrize("cap", ["5", "auto"])
def test_an_outcome_may_be_capped(here, cap):
    result = run("ate", "study.parquet", *ESTIMATE, "--cap", cap, "--out", "r.json")
    assert result.exit_code == 0
    release = Release.load("r.json")
    assert release.cap == 5 if cap == "5" else release.cap is not None
    assert f"capped at {release.cap:g}" in plain(result.stdout)


def test_outcomes_may_be_missing_and_records_may_weigh(here):
    frame = pd.read_csv("study.csv").assign(w=2.0)
    frame.loc[:200, "days"] = float("nan")
    frame.to_csv("lost.csv", index=False)
    refused(run("ate", "lost.csv", *ESTIMATE), "column 'days' has missing values")
    result = run("ate", "lost.csv", *ESTIMATE, "--missing-outcome", "adjust", "--out", "lost.json")
    assert result.exit_code == 0
    assert 0.0 < Release.load("lost.json").reference["missing_share_treated"] < 0.2
    replace(BOUNDS, weight=(0, 4)).save("weighted.toml")
    frame[201:].to_csv("kept.csv", index=False)
    result = run("ate", "kept.csv", *ESTIMATE, "--bounds", "weighted.toml", "--weight", "w", "--out", "kept.json")
    assert result.exit_code == 0
    assert Release.load("kept.json").reference["mean_weight"] == pytest.approx(2.0, abs=0.2)
    refused(run("ate", "kept.csv", *ESTIMATE, "--weight", "w"), "sample_weight needs Bounds(weight=(0, most))")


def test_relation_and_level_can_be_chosen(here):
    result = run("ate", "study.parquet", *ESTIMATE, "--neighbours", "add-remove", "--alpha", "0.2")
    assert result.exit_code == 0
    assert "80 % interval" in result.stdout
    assert "add-remove" in result.stdout


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--epsilon", "-1"], "epsilon must be positive"),
        (["--alpha", "0"], "--alpha must lie between 0 and 1"),
        (["--outcome", "dayz"], "no column 'dayz'"),
        (["--covariates", "age,weight"], "--covariates names 'weight', which the bounds do not"),
        (["--bounds", "nothing.toml"], "There is no bounds file"),
        (["--out", "missing/release.json"], "name a file in a directory that exists"),
        (["--out", "study.csv"], "exists already"),
        (["--report", "."], "name a file in a directory that exists"),
        (["--propensity", "0.99"], "propensity"),
        (["--cap", "-3"], "cap must lie above"),
        (["--cap", "most"], "cap must be a number"),
    ],
)
def test_refusals_are_one_sentence_and_exit_code_two(here, extra, sentence):
    refused(run("ate", "study.parquet", *ESTIMATE, *extra), sentence)


def test_a_missing_file_and_a_missing_delta_are_refused(here):
    refused(run("ate", "nothing.csv", *ESTIMATE), "There is no file")
    refused(run("ate", "study.csv", *ESTIMATE[:-2]), "delta")


def test_what_cannot_be_written_is_refused_before_anything_is_spent(here, monkeypatch):
    monkeypatch.setattr(ate_module.ATE, "fit_table", lambda *_, **__: pytest.fail("the budget was spent"))
    refused(run("ate", "study.csv", *ESTIMATE, "--out", "study.csv"), "exists already")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused(run("ate", "study.csv", *ESTIMATE, "--report", "page.html"), "pip install 'discreet[plots]'")


def test_a_result_that_was_paid_for_is_shown_even_if_it_cannot_be_saved(here, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(Release, "save", full)
    result = run("ate", "study.csv", *ESTIMATE, "--out", "release.json")
    assert result.exit_code == 2
    assert "estimate" in result.stdout
    assert "'release.json' cannot be written" in result.stderr


def test_release_texts_are_not_read_as_markup(here, monkeypatch):
    real = average_module._notes
    monkeypatch.setattr(average_module, "_notes", lambda *args: (*real(*args), "[bold]kept[/bold] [/nonsense]"))
    result = run("ate", "study.parquet", *ESTIMATE)
    assert result.exit_code == 0
    assert "[bold]kept[/bold]" in result.stdout
