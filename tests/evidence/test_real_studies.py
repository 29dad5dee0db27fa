"""The page on real studies: what it counts, on studies that are made up."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.datasets import Study, draw
from evidence.average.nonprivate import Estimate
from evidence.real_studies import QUESTIONS, Line, page, run, studies, wald, with_privacy


def question(name):
    """One of the page's questions."""
    return next(each for each in QUESTIONS if each.name == name)


def line(intervals, estimate=1.0):
    """A line with these intervals."""
    return Line(question("STAR"), 100, 1.0, Estimate(estimate, 0.5), (1.0,) * len(intervals), tuple(intervals))


def test_a_line_counts_intervals_that_hold_the_estimate_and_those_that_leave_out_zero():
    made = line([(0.5, 1.5), (-1.0, 3.0), (2.0, 3.0), (-2.0, 0.5)])
    assert made.held == 0.5
    assert made.seen == 0.5
    assert made.ratio == pytest.approx(1.75 / (2 * 1.96 * 0.5), rel=1e-3)


def test_the_ratio_of_an_instrument_finds_its_effect_and_the_error_of_it():
    rng = np.random.default_rng(1)
    errors, estimates = [], []
    for _ in range(200):
        z = rng.integers(0, 2, 2_000).astype(float)
        u = rng.normal(size=2_000)
        t = (0.8 * z + 0.5 * u + rng.normal(size=2_000) > 0.4).astype(float)
        y = 2.0 * t + u + rng.normal(size=2_000)
        study = Study(name="made up", X=None, T=t, Y=y, bounds=dc.Bounds(outcome=(-9, 9)), Z=z)
        estimates.append(wald(study).estimate)
        errors.append(wald(study).se)
    assert np.mean(estimates) == pytest.approx(2.0, abs=4 * np.std(estimates) / np.sqrt(200))
    assert np.median(errors) == pytest.approx(np.std(estimates), rel=0.2)


@pytest.mark.parametrize("kind", ["observed", "trial", "instrument"])
def test_every_kind_of_question_is_released_beside_its_twin_without_privacy(kind):
    made = draw("clinic", n=3_000, seed=1)
    made = replace(made, Z=np.where(np.random.default_rng(0).random(3_000) < 0.9, made.T, 1 - made.T), propensity=None)
    asked = replace(question("STAR"), kind=kind)
    lines = list(run(asked, made, draws=2))
    assert [each.epsilon for each in lines] == [0.5, 1.0, 2.0]
    assert all(len(set(each.estimates)) == 2 for each in lines)
    with dc.testing.seeded_noise(0):
        assert with_privacy(made, kind, 1.0).release_.guarantee.epsilon == 1.0


def test_a_study_that_is_not_there_is_named_on_the_page_with_what_would_bring_it(tmp_path, monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    found, missing = studies(tmp_path)
    assert found == []
    assert len(missing) == len(QUESTIONS) == 8
    text = page([line([(0.0, 2.0)])], [(question("STAR"), "Tennessee.")], missing, 1, 1.0)
    assert "1 of 1" in text
    assert text.count("is left out") == 8
    assert "**missed**" in page([line([(2.0, 3.0)])], [], [], 1, 1.0)
