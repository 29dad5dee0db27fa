"""Commands that read release files: they do what the library does, and say refusals in one sentence."""

import numpy as np
import pytest

import discreet as dc
from discreet.cli import app
from discreet.datasets import private_ci_rct
from discreet.testing import seeded_noise
from tests.cli.helpers import plain, refused, run


@pytest.fixture
def sites(tmp_path, monkeypatch):
    """Three sites' releases in a directory."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(["north", "south", "east"]):
        trial = private_ci_rct(n=1_000, seed=seed)
        with seeded_noise(seed):
            means = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X)
        means.release_.save(f"{name}.json")
    return ["north.json", "south.json", "east.json"]


def test_sites_are_combined_shown_saved_and_put_on_a_page(sites, tmp_path):
    result = run(
        "combine", *sites, "--model", "random", "--people", "disjoint", "--out", "c.json", "--report", "c.html"
    )
    assert result.exit_code == 0, result.output
    made = dc.load("c.json")
    assert made == dc.combine(
        [dc.load(name) for name in sites], model="random", people="disjoint", names=["north", "south", "east"]
    )
    shown = plain(result.stdout)
    assert "north" in shown
    assert "was stated, and cannot be checked" in shown
    assert "Privacy: epsilon = 1 (replace-one, test)" in shown
    assert "3 sites combined" in (tmp_path / "c.html").read_text()
    assert run("report", "c.json", "--out", "again.html").exit_code == 0
    assert (tmp_path / "again.html").read_text() == (tmp_path / "c.html").read_text()
    again = run("combine", *sites, "--model", "fixed", "--names", "a,b,c", "--alpha", "0.2", "--out", "c.json")
    assert again.exit_code == 0
    assert "80 % interval" in plain(again.stdout)
    assert [site.name for site in dc.load("c.json").sites] == ["a", "b", "c"]
    assert dc.load("c.json").people == "overlapping"
    assert np.isfinite(dc.load("c.json").estimate)


def test_what_cannot_be_combined_is_refused_in_one_sentence(sites):
    fixed = ("--model", "fixed")
    refused(run("combine", "north.json", *fixed), "two or more")
    refused(run("combine", "north.json", "north.json", *fixed), "are the same release")
    refused(run("combine", "north.json", "nothing.json", *fixed), "There is no release file")
    refused(run("combine", *sites, *fixed, "--names", "a,b"), "as many as there are releases")
    refused(run("combine", *sites, *fixed, "--alpha", "2"), "--alpha must lie between 0 and 1")
    refused(run("combine", *sites, *fixed, "--out", "no/c.json"), "name a file in a directory that exists")
    assert run("combine", *sites, *fixed, "--out", "c.json").exit_code == 0
    refused(run("combine", *sites, "c.json", *fixed), "combined already")
    assert run("combine", *sites).exit_code == 2
    assert app.info.name == "discreet"


def test_a_release_is_explained_and_compared(sites):
    words = run("explain", "north.json", "--alpha", "0.2")
    assert words.exit_code == 0, words.output
    assert "What would help" in words.stdout
    assert "80 in 100" in words.stdout
    assert run("combine", *sites, "--model", "fixed", "--out", "c.json").exit_code == 0
    beside = run("compare", "north.json", "south.json", "c.json")
    assert beside.exit_code == 0, beside.output
    assert "They answer the same question" in beside.stdout
    assert "north" in plain(beside.stdout)
    refused(run("explain", "nothing.json"), "There is no release file")
    refused(run("compare", "north.json"), "two or more")
    refused(run("compare", "north.json", "south.json", "--alpha", "0"), "--alpha must lie between 0 and 1")
