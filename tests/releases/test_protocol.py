"""Releases of every kind offer the same, and are asked what they can do and not which they are."""

from collections.abc import Callable
from typing import Any

import pytest

from discreet import ATE, CATE, Policy, PolicyValue, Uplift
from discreet.releases import load
from discreet.releases.protocol import AnswersAverages, AnswersCurves, AnswersIntervals
from discreet.releases.report import kind_of, render_page
from discreet.testing import seeded_noise
from tests.seeded_fits import BOUNDS, study

OLD = Policy.declare(bounds=BOUNDS, by={"age": 2}, treated=[False, True])
MADE: dict[str, Callable[[], Any]] = {
    "average": lambda: ATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS),
    "function": lambda: CATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS),
    "segments": lambda: Uplift(epsilon=2.0, bounds=BOUNDS, by={"age": 3}),
    "policy": lambda: PolicyValue(policy=OLD, epsilon=2.0, delta=1e-6, bounds=BOUNDS),
}
CAN = {
    "average": (False, False, False),
    "function": (True, True, True),
    "segments": (True, False, False),
    "policy": (False, False, False),
}


@pytest.fixture(scope="module")
def releases():
    table = study(600)
    with seeded_noise(0):
        return {name: make().fit_table(table, outcome="y", treatment="t").release_ for name, make in MADE.items()}


@pytest.mark.parametrize("name", MADE)
def test_a_release_is_read_back_and_shown_drawn_and_described_alike(releases, tmp_path, name):
    release = releases[name]
    release.save(tmp_path / "release.json")
    again = load(tmp_path / "release.json")
    assert (type(again), again.title, again.records) == (type(release), release.title, release.records)
    assert again.display(0.2) == release.display(0.2)
    kind = kind_of(release)
    assert kind.facts(again) == kind.facts(release)
    assert len(kind.figures(release, 1)) == 1
    assert f"<title>{release.title}</title>" in render_page(release)


@pytest.mark.parametrize("name", MADE)
def test_a_release_can_be_asked_for_what_it_holds(releases, name):
    found = tuple(isinstance(releases[name], can) for can in (AnswersIntervals, AnswersAverages, AnswersCurves))
    assert found == CAN[name]


def test_effects_with_intervals_are_the_effects_and_the_intervals(releases):
    rows = study(600)[list(BOUNDS.names)][:5]
    release = releases["segments"]
    effect, low, high = release.effect_with_interval(rows, 0.2)
    assert (effect == release.effect(rows)).all()
    for one, other in zip((low, high), release.effect_interval(rows, 0.2), strict=True):
        assert (one == other).all()


def test_what_has_no_page_is_refused():
    from discreet.exceptions import UnsupportedRelease

    with pytest.raises(UnsupportedRelease, match="to become a page"):
        render_page(object())
