"""The command for published methods: what it makes is what the library makes."""

import pytest

from discreet import load, papers
from discreet.papers.commands import METHODS
from tests.cli.helpers import ESTIMATE, refused, run

PURE = ESTIMATE[:-2]
GIVEN = {
    "adum": (*PURE, "--set", 'by={"age": 3}'),
    "two-model": PURE,
    "propensity-iptw": (*ESTIMATE, "--set", "xi=0.1"),
    "private-ate": ESTIMATE,
    "s-learner": (*ESTIMATE, "--set", "base=linear"),
    "t-learner": (*ESTIMATE, "--set", "base=linear"),
    "dr-learner": (*ESTIMATE, "--set", "base=linear", "--where", "sex=f"),
    "r-learner": (*ESTIMATE, "--set", "base=linear", "--covariates", "age"),
    "x-learner": (*ESTIMATE, "--set", "base=linear", "--set", "propensity=0.5"),
    "dp-cate-function": (*ESTIMATE, "--set", "basis=9"),
}


def test_every_method_with_a_table_has_a_name():
    names = {method.name for method in METHODS.values()}
    fitted = {name for name in papers.__all__ if hasattr(getattr(papers, name), "fit_table")}
    assert names == fitted


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_run_shown_and_its_release_saved(name, here):
    result = run("paper", name, "study.parquet", *GIVEN[name], "--out", "release.json")
    assert result.exit_code == 0, result.output
    release = load("release.json")
    assert release.guarantee.status == "proved"
    assert release.summary() in result.stdout
    refused(run("paper", name, "study.parquet", *GIVEN[name], "--out", "release.json"), "exists")


@pytest.mark.filterwarnings("ignore::discreet.papers.UnprovedClaim")
def test_what_is_claimed_has_to_be_asked_for(here):
    result = run("paper", "adum", "study.csv", *GIVEN["adum"], "--calibration", "published", "--out", "a.json")
    assert result.exit_code == 0, result.output
    assert load("a.json").guarantee.status == "claimed"


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("ate", (), "there is no method 'ate'; choose from adum"),
        ("two-model", ("--delta", "1e-6"), "pure epsilon"),
        ("two-model", ("--set", "degrees=2"), "no parameter 'degrees' to set"),
        ("two-model", ("--set", "degree"), "--set takes NAME=VALUE"),
        ("two-model", ("--calibration", "hoped"), "calibration must be one of"),
        ("dp-cate-function", ("--calibration", "published"), "keeps a secret"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(name, more, words, here):
    refused(run("paper", name, "study.csv", *PURE, *more), words)
