"""The demonstration: it tells the truth, keeps to its own directory and writes everything that it speaks of."""

import io

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from discreet import EffectRelease, UpliftRelease
from discreet.cli import app
from discreet.cli.demo import tour
from discreet.datasets._demo import PUBLIC
from discreet.exceptions import InvalidInput
from discreet.releases.average import Release
from tests.cli.helpers import refused, run
from tests.releases.test_report import Page


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    steps = []
    out = tmp_path_factory.mktemp("demo") / "new" / "directory"
    result = tour.run(out, n=4_000, progress=lambda *step: steps.append(step))
    assert [done for _, done, _ in steps] == list(range(len(tour.EPSILONS) + 6))
    return result


def test_every_release_is_real_and_states_its_budget(found):
    assert list(found.releases) == list(tour.EPSILONS)
    for epsilon, release in found.releases.items():
        assert (release.guarantee.epsilon, release.guarantee.delta) == (epsilon, tour.DELTA)
        assert release.guarantee.status == "proved"


def test_the_analysis_without_privacy_finds_the_truth(found):
    # Five standard errors: a false alarm once in two million.
    assert abs(found.open.estimate - found.truth) < 5 * found.open.se
    assert abs(found.open.unadjusted - found.truth) > 5 * found.open.se


def test_the_formula_adds_the_published_noise_to_the_sampling_error():
    open_ = tour.Open(estimate=0.0, se=0.3, unadjusted=0.0, reach=2.0)
    n, epsilon, delta = 1_000, 0.5, 1e-5
    r = 2.0 * 5 * np.sqrt(2 * np.log(n) * np.log(2 / (0.9 * delta))) / (0.9 * epsilon * n)
    assert tour.formula_width(open_, n, epsilon, delta) == pytest.approx(2 * 1.959964 * np.sqrt(0.3**2 + r**2))


def test_the_reach_is_that_of_the_most_extreme_record(found):
    low, high = PUBLIC.outcome
    smallest = PUBLIC.propensity[0]
    assert 0 < found.open.reach <= (high - low) / smallest + abs(found.open.estimate)


def test_the_page_shows_its_pictures_and_what_was_found(found):
    page = Page(found.page.read_text())
    assert page.tags.count("svg") == 5
    for part in (
        "4,000 patients",
        "discreet ate clinic.parquet",
        "discreet cate clinic.parquet",
        "discreet uplift trial.parquet",
        "ε = 1",
        "PrivATE's formula",
        "true effect",
        "severity [7, 20], sex m",
    ):
        assert part in page.text
    assert "script" not in page.tags


def test_the_files_that_the_page_speaks_of_are_there_and_agree(found):
    folder = found.page.parent
    assert {path.name for path in folder.iterdir()} == {
        "clinic.parquet",
        "bounds.toml",
        "release.json",
        "report.html",
        "demo.html",
        "trial.parquet",
        "effect.json",
        "effect.html",
        "segments.json",
        "segments.html",
        "people.csv",
    }
    assert Release.load(folder / "release.json") == found.chosen
    function, segments = EffectRelease.load(folder / "effect.json"), UpliftRelease.load(folder / "segments.json")
    np.testing.assert_array_equal(
        function.effect(found.effects.people), found.effects.function.effect(found.effects.people)
    )
    assert segments.table() == found.effects.segments.table()
    assert (function.guarantee.epsilon, function.guarantee.delta) == (tour.CHOSEN, tour.DELTA)
    assert (segments.guarantee.epsilon, segments.guarantee.delta) == (tour.CHOSEN, 0.0)


def test_the_commands_of_the_page_run(found, monkeypatch):
    monkeypatch.chdir(found.page.parent)
    answered = CliRunner().invoke(app, ["effect", "effect.json", "people.csv"])
    assert answered.exit_code == 0, answered.output
    assert "Average over 3 rows" in answered.output


def test_segments_are_compared_with_their_true_effects(found):
    truth = found.effects.segment_truth
    low, high = found.effects.segments.interval(1e-6)
    assert (truth > 0.4).all()
    # Patients who are more severely ill gain more, whatever their sex.
    assert (np.diff(truth[::2]) > 0).all()
    assert ((low <= truth) & (truth <= high)).all()


def test_the_table_names_estimates_truth_guarantee_and_ends_with_the_page(found):
    out = io.StringIO()
    tour.show(found, Console(file=out, width=100))
    text = out.getvalue()
    for part in (
        "no privacy",
        "discreet, ε = 0.25",
        "True effect",
        "epsilon = 1, delta = 1e-06",
        "What is protected",
        "For whom? (CATE)",
        "f, 75, severity 9, south",
        "Whom first? (Uplift)",
        "severity [7, 20], sex m",
    ):
        assert part in text
    assert text.rstrip().endswith(str(found.page.resolve()))


def test_a_directory_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InvalidInput, match="holds other files already"):
        tour.run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="cannot be made or read as a directory"):
        tour.run(tmp_path / "file")


def test_a_miss_is_admitted_and_not_hidden(found):
    from dataclasses import replace

    page = Page(tour._page(replace(found, truth=99.0)))
    assert "lies outside this time" in " ".join(page.text.split())


def test_the_demonstration_runs_where_it_is_told_to(here, monkeypatch):
    monkeypatch.setattr(tour.run, "__kwdefaults__", {**tour.run.__kwdefaults__, "n": 2_000})
    result = run("demo", "--out", "tour")
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith("demo.html")
    assert (here / "tour" / "demo.html").is_file()
    (here / "tour" / "thesis.tex").write_text("mine")
    refused(run("demo", "--out", "tour"), "holds other files already")
