"""The command for average effects where several arms are declared."""

import numpy as np
import pandas as pd
import pytest

from discreet import ArmsRelease, Bounds
from tests.cli.helpers import plain, refused, run

GIVEN = ["--outcome", "days", "--treatment", "dose", "--bounds", "doses.toml", "--epsilon", "5", "--delta", "1e-6"]


@pytest.fixture
def doses(tmp_path, monkeypatch):
    """A study of three arms in the current directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    dose = rng.choice(["none", "one", "two"], 2_000, p=[0.5, 0.25, 0.25])
    days = 5.0 + 2.0 * (dose == "two") + rng.normal(0, 1, 2_000)
    pd.DataFrame({"days": days, "dose": dose}).to_csv("study.csv", index=False)
    Bounds(outcome=(0, 12), treatment=["none", "one", "two"]).save("doses.toml")


def test_all_differences_are_shown_saved_and_put_on_a_page(doses):
    result = run(
        "ate", "study.csv", *GIVEN, "--propensity", "none=.5, one=.25, two=.25", "--out", "a.json", "--report", "a.html"
    )
    assert result.exit_code == 0, result.output
    for part in ("two", "against", "all at once", "Mean outcomes: none"):
        assert part in plain(result.stdout)
    row = ArmsRelease.load("a.json").contrast("two", "none")
    assert row.low < 2.0 < row.high
    assert run("report", "a.json", "--out", "b.html").exit_code == 0


@pytest.mark.parametrize(
    ("propensity", "sentence"),
    [
        ("none=.5,one=half,two=.25", "a number for each"),
        ("none", "a number for each"),
        ("none=.5,one=.5", "must name every arm"),
        ("none=.5,one=.25,three=.25", "has no arm 'three'"),
        ("none=.5,one=.25,two=.2", "add up to one"),
    ],
)
def test_probabilities_that_do_not_belong_to_the_arms_are_refused(doses, propensity, sentence):
    refused(run("ate", "study.csv", *GIVEN, "--propensity", propensity), sentence)
