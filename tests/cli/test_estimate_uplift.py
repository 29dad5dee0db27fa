"""The command for effects by segment, and what other commands make of its file."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from discreet import UpliftRelease
from discreet.estimators import uplift as uplift_module
from tests.cli.helpers import plain, refused, run

GIVEN = ["--outcome", "days", "--treatment", "drug", "--bounds", "bounds.toml", "--epsilon", "5"]
BY = ["--by", "age=4", "--by", "sex=levels"]


@pytest.fixture
def published(here):
    """A release in the directory of the study, and a file of people."""
    result = run("uplift", "study.parquet", *GIVEN, *BY, "--out", "segments.json", "--report", "page.html")
    assert result.exit_code == 0, result.output
    people = pa.table({"age": [0.1, 0.5, 0.9], "sex": ["f", "m", "f"]})
    pcsv.write_csv(people, "people.csv")
    return result, people


def test_effects_by_segment_are_estimated_shown_and_saved_with_their_page(published, tmp_path):
    result, _ = published
    assert "age [0.75, 1], sex m" in result.stdout
    assert "epsilon = 5 (replace-one, proved)" in result.stdout
    assert len(UpliftRelease.load("segments.json").table()) == 8
    page = (tmp_path / "page.html").read_text()
    for part in ("Effect of drug on days, by segment", "best segments first", "age [0.75, 1], sex m", "Methods"):
        assert part in page


def test_the_file_alone_answers_and_becomes_a_page(published, tmp_path):
    _, people = published
    release = UpliftRelease.load("segments.json")
    answered = run("effect", "segments.json", "people.csv", "--out", "effects.csv", "--alpha", "0.2")
    assert answered.exit_code == 0, answered.output
    table = pcsv.read_csv("effects.csv")
    np.testing.assert_allclose(table["effect"].to_numpy(), release.effect(people))
    np.testing.assert_allclose(table["high"].to_numpy(), release.effect_interval(people, 0.2)[1])
    assert "Average over 3 rows" in answered.stdout
    assert run("report", "segments.json", "--out", "again.html", "--title", "Mine").exit_code == 0
    assert "<title>Mine</title>" in (tmp_path / "again.html").read_text()


def test_intervals_can_be_asked_for_that_cover_all_segments_at_once(here):
    result = run("uplift", "study.parquet", *GIVEN, *BY, "--alpha", "0.2", "--simultaneous")
    assert result.exit_code == 0, result.output
    assert "segments at once" in plain(result.stdout)
    refused_ = run("ate", "study.parquet", *GIVEN, "--delta", "1e-6", "--simultaneous")
    assert refused_.exit_code != 0


def test_segments_can_be_found_privately(here):
    result = run("uplift", "study.csv", *GIVEN, "--clusters", "3", "--delta", "1e-6", "--neighbours", "add-remove")
    assert result.exit_code == 0, result.output
    assert "cluster 2" in result.stdout
    assert "delta = 1e-06 (add-remove, proved)" in plain(result.stdout)


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--by", "age"], "--by takes age=8"),
        (["--by", "age=x"], "takes a number of cuts"),
        (["--by", "height=3"], "'height'"),
        (["--by", "sex=3"], "needs 'levels' or groups of levels for 'sex'"),
        ([], "declared with --by or found with --clusters"),
        ([*BY, "--clusters", "3"], "declared with --by or found with --clusters"),
        (["--clusters", "0"], "clusters must be a whole number"),
        ([*BY, "--epsilon", "0"], "epsilon must be positive"),
        ([*BY, "--alpha", "1"], "--alpha must lie between 0 and 1"),
        ([*BY, "--out", "study.csv"], "exists already"),
        ([*BY, "--report", "missing/page.html"], "name a file in a directory"),
        ([*BY, "--propensity", "nowhere"], "no column 'nowhere'"),
        ([*BY, "--propensity", "1.5"], "propensity must lie inside"),
    ],
)
def test_refusals_come_before_anything_is_spent(here, monkeypatch, extra, sentence):
    monkeypatch.setattr(uplift_module.Uplift, "_fit", lambda *_: pytest.fail("the budget was spent"))
    refused(run("uplift", "study.parquet", *GIVEN, *extra), sentence)


def test_files_that_hold_something_else_are_refused(published, tmp_path):
    plain_ = json.loads((tmp_path / "segments.json").read_text())
    for change, sentence in [
        ({"version": 99}, "version 99, newer than 2"),
        ({"format": "discreet-segments"}, "is not a release of discreet"),
        ({"format": "discreet-effect-release", "version": 1}, "a value of the wrong type"),
        ({"format": "discreet-effect-release", "version": 2}, "a value of the wrong type"),
        ({"format": "discreet-effect-release", "version": 3}, "exactly the fields"),
        ({"more": 1}, "exactly the fields"),
    ]:
        (tmp_path / "other.json").write_text(json.dumps(plain_ | change))
        refused(run("effect", "other.json", "people.csv"), sentence)
        refused(run("report", "other.json", "--out", "never.html"), sentence)
    for text in ("[1, 2]", "3", '"discreet-uplift"'):
        (tmp_path / "other.json").write_text(text)
        refused(run("effect", "other.json", "people.csv"), "is not a release of discreet")
    assert not (tmp_path / "never.html").exists()
