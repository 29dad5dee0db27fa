"""Releases of effects on a time to event: files, words, curves, pages."""

import json
from pathlib import Path

import numpy as np
import pytest

from discreet import InvalidInput, SurvivalRelease, load, render_page
from discreet.releases.report import kind_of

FILE = Path(__file__).parent.parent / "golden" / "releases" / "discreet-survival.v1.json"
RELEASE = load(FILE)


def edited(**change):
    return SurvivalRelease.from_dict(json.loads(FILE.read_text()) | change)


def test_a_file_gives_back_what_was_saved(tmp_path):
    RELEASE.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == FILE.read_bytes()
    assert SurvivalRelease.load(tmp_path / "again.json") == RELEASE


def test_curves_begin_at_one_fall_and_lie_in_bands_that_are_wider_for_all_points_at_once():
    each, at_once = RELEASE.curves(), RELEASE.curves(simultaneous=True)
    assert list(each) == ["control", "treated"]
    for name, band in each.items():
        assert band.time.tolist() == [0.0, *RELEASE.times]
        assert (band.survival[0], band.low[0], band.high[0]) == (1.0, 1.0, 1.0)
        assert np.all(np.diff(band.survival) <= 0.0)
        assert np.all(at_once[name].low[1:] < band.low[1:])
        assert np.all(band.high[1:] <= at_once[name].high[1:])
    assert len(RELEASE.table()) == 2 * len(RELEASE.times)
    assert RELEASE.table()[0].keys() == {"time", "arm", "survival", "low", "high", "at_risk"}


def test_words_say_what_was_compared_and_how_well_it_is_known():
    low, high = RELEASE.interval()
    assert low < RELEASE.estimate < high
    for text in (RELEASE.summary(), str(RELEASE), " ".join(map(str, RELEASE.display().lines))):
        assert RELEASE.interval_text() in text
    assert RELEASE.title == "Difference in the restricted mean time without the event up to 365"
    assert "efficient score under independent censoring" in RELEASE.methods()
    assert "probability of the event up to 365" in edited(measure="risk", estimate=0.1).title
    assert sum(RELEASE.shares().values()) == pytest.approx(1.0)


def test_no_interval_goes_beyond_what_is_possible():
    assert edited(measure="risk", estimate=0.5).interval() == (-1.0, 1.0)
    wide = RELEASE.uncertainty.to_dict() | {"privacy": 1e4}
    assert edited(uncertainty=wide).interval() == (-365.0, 365.0)


@pytest.mark.parametrize("estimate", [1.0, 300.0, -300.0])
def test_the_page_has_the_finding_the_curves_and_the_numbers(estimate):
    release = edited(estimate=estimate)
    page = render_page(release, title="Effect of the drug")
    assert "<title>Effect of the drug</title>" in page
    assert "<svg" in page
    word = "do not show" if estimate == 1.0 else "Treatment raised" if estimate > 0 else "Treatment lowered"
    kind = kind_of(release)
    assert kind is not None
    assert word in kind.facts(release)["finding"]
    assert word in page
    assert len(kind.figures(release, 3)) == 1


def test_curves_are_drawn_with_their_bands():
    from matplotlib.figure import Figure

    ax = RELEASE.plot(Figure().add_subplot(), alpha=0.2)
    assert [line.get_label() for line in ax.get_lines()] == ["control", "treated"]
    assert "80 %" in ax.get_xlabel()


@pytest.mark.parametrize(
    "change",
    [
        {"measure": "hazard"},
        {"design": "guess"},
        {"times": [90, 80, 365]},
        {"times": [90, 180]},
        {"times": []},
        {"counts": [[1.0] * 9]},
        {"counts": [[1.0] * 8, [1.0] * 9]},
        {"count_sd": 0.0},
        {"n": -1},
        {"estimate": "many"},
        {"adjustment": 3},
    ],
)
def test_an_edited_file_is_refused(change):
    with pytest.raises(InvalidInput):
        edited(**change)


@pytest.mark.parametrize("alpha", [0, 1, True, "0.05"])
def test_levels_lie_between_zero_and_one(alpha):
    for ask in (RELEASE.interval, RELEASE.curves):
        with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
            ask(alpha)


def test_bands_allow_for_rows_of_one_unit_that_are_alike():
    four = edited(rows=4)
    assert four.to_dict()["rows"] == 4
    assert "rows" not in RELEASE.to_dict()
    for name, band in RELEASE.curves().items():
        wide = four.curves()[name]
        np.testing.assert_array_equal(wide.survival, band.survival)
        # On the scale of the cumulative hazard: at most twice as wide, and by as much where noise is small.
        ratio = np.log(wide.survival / wide.low)[1:] / np.log(band.survival / band.low)[1:]
        assert np.all((ratio > 1.2) & (ratio <= 2.0))
    with pytest.raises(InvalidInput, match="rows must be a whole number"):
        edited(rows=0)
