"""Titles, findings and axes in the words that bounds declare."""

import re

import pytest

import discreet as dc
from discreet.datasets import draw
from discreet.datasets._demo import PUBLIC, table
from discreet.releases.parts import charts
from discreet.releases.report import KINDS, kind_of, render_page
from tests.data.test_labels import LABELS, UNITS

SUBJECT = "effect of catheter on days in hospital (days)"
PLAIN = {
    "ATE": "Average treatment effect",
    "ATT": "Average effect on the treated",
    "DifferenceInMeans": "Difference in mean outcomes",
    "CATE": "Treatment effect as a function of covariates",
    "Uplift": "Treatment effects by segment",
}


@pytest.fixture(scope="module")
def releases():
    """By name of the estimator: the release without labels, and with them."""
    study = draw("clinic", 2_000, 1)
    X = table(study.X, study.T, study.Y, "days").select(list(PUBLIC.names))
    words = {"labels": LABELS, "units": UNITS}
    found = {}
    with dc.testing.seeded_noise(0):
        for name, more in (
            ("ATE", {"delta": 1e-6}),
            ("ATT", {"delta": 1e-6}),
            ("DifferenceInMeans", {}),
            ("CATE", {"delta": 1e-6}),
            ("Uplift", {"by": {"age": 3}}),
        ):
            made = getattr(dc, name)(epsilon=2.0, bounds=dc.Bounds.from_dict(PUBLIC.to_dict() | words), **more)
            labelled = made.fit(study.Y, study.T, X=X).release_
            plain = labelled.to_dict()
            plain["bounds"] = PUBLIC.to_dict()
            found[name] = (type(labelled).from_dict(plain), labelled)
    return found


@pytest.mark.parametrize("name", list(PLAIN))
def test_titles_read_as_english_where_labels_are_declared_and_as_before_where_not(releases, name):
    plain, labelled = releases[name]
    assert plain.title == PLAIN[name]
    assert SUBJECT in labelled.title
    assert labelled.summary().startswith(labelled.title)
    assert labelled.from_dict(labelled.to_dict()).title == labelled.title
    page = render_page(labelled)
    assert f"<h1>{labelled.title}</h1>" in page
    assert "catheter" in re.search(r'class="finding">(.*?)</p>', page)[1]
    assert "catheter" not in render_page(plain)


def test_an_average_effect_is_called_by_treatment_outcome_and_unit(releases):
    assert releases["ATE"][1].title == "Average effect of catheter on days in hospital (days)"
    assert "The average effect of catheter on days in hospital (days) was estimated by" in releases["ATE"][1].methods()


def test_pages_have_a_section_about_balance_and_overlap_with_figures_and_numbers(releases):
    for name in ("ATE", "CATE"):
        page = render_page(releases[name][1])
        section = page.partition("<h2>Balance and overlap</h2>")[2].partition("<h2>")[0]
        assert section.count("<svg") == 2
        assert "fitted probabilities" in section
        assert "The differences in numbers" in section
    assert "Balance and overlap" not in render_page(releases["DifferenceInMeans"][1])


@pytest.mark.parametrize("name", list(PLAIN))
def test_every_kind_has_a_forest_whose_marks_lie_on_its_axis(releases, name):
    made = releases[name][1]
    found = kind_of(made).charts(made)
    assert found.forests
    for forest in found.forests:
        low, high = forest.ends()
        for row in forest.rows:
            for mark in row.marks:
                assert low <= mark.low <= mark.at <= mark.high <= high
                assert mark.inner is None or mark.low <= mark.inner[0] <= mark.inner[1] <= mark.high


def test_all_kinds_but_suggestions_draw_something():
    without = [kind.release.__name__ for kind in KINDS if kind.charts.__module__ != charts.__name__]
    assert without == ["SuggestedBounds"]


def test_an_axis_holds_zero_unless_that_would_hide_what_it_shows():
    assert charts.axis_ends([1.0], [2.0])[0] < 0.0
    low, high = charts.axis_ends([-101.0], [-100.0])
    assert high < 0.0
    assert low < -101.0
    assert charts.axis_ends([5.0], [5.0])[0] < 5.0


def test_curves_are_drawn_over_numbers_and_over_levels(releases):
    made = releases["CATE"][1]
    age, sex = charts.curve(made, "age"), charts.curve(made, "sex")
    assert age.x_label == "age at admission (years)"
    assert (age.x[0], age.x[-1]) == (18.0, 95.0)
    assert sex.x == (0.0, 1.0)
    assert len(age.series[0].y) == len(age.x)
