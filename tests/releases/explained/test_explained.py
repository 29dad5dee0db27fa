"""Plain words about releases of every kind, and releases beside each other."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import discreet
from discreet import Bounds, InvalidInput, UnsupportedRelease, combine
from discreet.releases.explained import compare, explain
from discreet.releases.explained.headline import headline
from tests.releases.combined.helpers import gaussian, made, pure, site

GOLDEN = Path(__file__).parents[2] / "golden" / "releases"
# A policy is no release: it says what to do, and not what was found.
FILES = sorted(
    path
    for path in GOLDEN.glob("*.json")
    if path.name != "expected.json" and not path.name.startswith("discreet-policy.")
)
SECTIONS = (
    "What was estimated",
    "What the interval means",
    "What is promised",
    "What is not promised",
    "What would help",
)
# What has one number, or an average, with an interval, or one for every two arms.
WITH_INTERVAL = {
    "discreet-release",
    "discreet-combined-release",
    "discreet-effect-release",
    "discreet-uplift",
    "discreet-local-effect",
    "discreet-survival",
    "discreet-arms",
    "discreet-arm-segments",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_kind_of_release_is_explained(path):
    release = discreet.load(path)
    words = explain(release)
    assert all(section in words for section in SECTIONS)
    assert "Do not publish it" in words
    assert ("There is none" in words) == (release.format not in WITH_INTERVAL)
    assert all(note in words for note in release.notes)
    # The number that the file is known by.
    expected = json.loads((GOLDEN / "expected.json").read_text())[path.name]
    if release.format == "discreet-effect-release":
        assert f"{expected['headline']:.2g}"[:4] in words


@pytest.mark.parametrize("name", ["discreet-arms", "discreet-arm-segments"])
def test_several_arms_are_explained_by_the_effects_against_the_control(name):
    release = discreet.load(GOLDEN / f"{name}.v1.json")
    words = explain(release, alpha=0.1)
    rows = (release.averages if name.endswith("segments") else release.contrasts)(0.1, against="placebo")
    assert len(rows) == 2
    for row in rows:
        zero = "includes zero" if row.low <= 0 <= row.high else "does not include zero"
        assert f"{row.effect:.3g}, from {row.low:.3g} to {row.high:.3g}, which {zero}." in words
    assert "90 in 100 intervals of one effect" in words
    assert ("on average over all segments" in words) == name.endswith("segments")
    remarks = " ".join(compare([release, release], names=["a", "b"]).remarks)
    assert "effects of every two" in remarks
    assert "nobody can say how far off" not in remarks


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_kind_of_release_can_stand_beside_itself_and_beside_another(path):
    release, other = discreet.load(path), discreet.load(GOLDEN / "discreet-release.v1-capped.json")
    same = compare([release, release], names=["a", "b"])
    assert same.head == ("", "a", "b")
    assert all(line[1] == line[2] for line in same.lines)
    assert "They answer the same question" in same.remarks[0]
    if path.name != "discreet-release.v1-capped.json":
        assert "Not comparable as they are: they differ in" in str(compare([release, other]))


def test_an_effect_that_is_not_zero_and_one_that_may_be_are_told_in_different_words():
    assert "treatment raises the outcome" in explain(site(2.0))
    assert "treatment lowers the outcome" in explain(site(-2.0))
    assert "It includes zero" in explain(site(0.1))
    assert "90 in 100" in explain(site(0.1), alpha=0.1)


def test_the_promise_is_in_words_that_fit_its_relation_and_status():
    words = explain(site(1.0, guarantee=gaussian(neighbours="add-remove", unit="all rows of one patient")))
    assert "had all rows of one patient been missing" in words
    assert "times in 100, where a coin is right 50 times" in words
    assert "proved for every data set" in words
    assert "With a chance of at most 1e-06 (delta)" in words
    plain = explain(site(1.0, guarantee=pure()))
    assert "(delta)" not in plain
    assert "twice the epsilon" in plain
    claimed = replace(gaussian(), status="claimed")
    assert "could not be proved here" in explain(site(1.0, guarantee=claimed))


def test_what_would_help_is_computed_from_the_release():
    noisy, sampled = site(1.0, sampling=0.01, privacy=1.0), site(1.0, sampling=1.0, privacy=0.01)
    assert "With twice the records the interval would be about 0.5 times as wide" in explain(noisy)
    assert "With twice the records the interval would be about 0.71 times as wide" in explain(sampled)
    apart = combine([site(0.0), site(3.0), site(6.0)], model="random", people="disjoint")
    assert "Mostly more sites" in explain(apart)
    assert "a single site may differ" in explain(apart)
    assert "more records at each site" in explain(combine([site(1.0), site(2.0)], model="fixed"))


def test_several_sites_are_compared_with_one_of_them():
    sites = [site(1.0), site(2.0)]
    both = combine(sites, model="fixed", people="disjoint")
    assert "same question" in compare([both, sites[0]]).remarks[0]
    mixed = combine([site(1.0), site(2.0, design="known propensity")], model="fixed")
    assert "At some sites" in explain(mixed)


def test_a_binary_outcome_is_a_probability():
    assert "the probability of 'yes'" in explain(site(0.5, bounds=Bounds(outcome=["no", "yes"])))


def test_budgets_about_the_same_people_add_up_where_they_can():
    remarks = str(compare([site(1.0), site(2.0)]))
    assert "all of them together have epsilon = 1.40" in remarks
    other = site(2.0, guarantee=gaussian(neighbours="add-remove"))
    assert "epsilons cannot be compared" in str(compare([site(1.0), other]))
    designed = site(2.0, design="known propensity", bounds=Bounds(outcome=(0, 10), covariates={"bp": (0, 1)}))
    remarks = str(compare([site(1.0), designed]))
    assert "different covariates" in remarks
    assert "came about in different ways" in remarks


def test_what_is_no_release_is_refused():
    with pytest.raises(UnsupportedRelease, match="an estimator's release_ gives"):
        headline(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="two or more"):
        compare([site(1.0)])
    with pytest.raises(InvalidInput, match="as many as"):
        compare([site(1.0), site(2.0)], names=["a"])
    assert made(1.0, 0.0, pure().events).epsilon == 1.0
