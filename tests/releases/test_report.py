"""The page about a release: complete, self-contained, escaped, and honest about what it is."""

import math
import sys
from html.parser import HTMLParser

import pytest
from scipy.special import ndtr

from discreet.data.bounds import Bounds, Levels, Range
from discreet.exceptions import MissingExtra
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import ClaimedEvent, LaplaceEvent
from discreet.releases.average import Uncertainty
from discreet.releases.page import guess
from discreet.releases.parts.average_page import finding, render, save_report
from discreet.releases.plots import release_figure
from tests.releases.test_average import a_guarantee, a_release

VOID = {"meta", "br", "img", "input", "link", "hr", "path", "use"}


class Page(HTMLParser):
    """Collects what a browser would see, and refuses tags that do not match."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_holds_finding_picture_protection_uncertainty_assumptions_methods_and_numbers():
    page = Page(render(a_release(), title="Days in hospital"))
    assert page.tags.count("svg") == 1
    for part in (
        "Days in hospital",
        "On average, treatment lowered the outcome by 1.23",
        "What was protected, and how strongly",
        "one record",
        "epsilon = 0.5, delta = 1e−06",
        "1 in 1,000,000",
        "Where the uncertainty comes from",
        "All confounders are among the covariates.",
        "augmented inverse probability weighting",
        "99 % interval",
        '"format": "discreet-release"',
        "docs/proofs/gate.md",
    ):
        assert part in page.text


def test_the_page_needs_no_network_and_runs_no_script():
    page = Page(render(a_release()))
    assert not {"script", "link", "iframe", "img"} & set(page.tags)
    assert not {"src", "onload", "onclick"} & {name for name, _ in page.attributes}
    assert all(value.startswith("#") for name, value in page.attributes if name in {"href", "xlink:href"})
    assert "url(http" not in render(a_release())


def test_everything_that_comes_from_a_file_is_escaped():
    evil = "<script>alert('&')</script>"
    bounds = Bounds(outcome=(0, 1), covariates={evil: ["<u>", "m"]}, treatment=("<em>", "</main>"))
    release = a_release(
        bounds=bounds,
        notes=(evil,),
        adjustment={"basis": evil},
        reference={evil: 1.0},
        guarantee=a_guarantee(unit=evil, public=(evil,), proof=evil),
    )
    html = render(release, title=evil, extra_figures=[(evil, release_figure(release))])
    assert "<script" not in html
    assert not {"u", "em"} & set(Page(html).tags)
    assert Page(html).text.count(evil) >= 7


def test_the_page_can_be_saved_and_has_a_title_of_its_own(tmp_path):
    save_report(a_release(), tmp_path / "page.html")
    html = (tmp_path / "page.html").read_bytes().decode()
    assert "<title>Average treatment effect</title>" in html


def test_further_pictures_are_shown_with_their_captions():
    page = Page(render(a_release(), extra_figures=[("Once more", release_figure(a_release(estimate=3.0)))]))
    assert page.tags.count("svg") == 2
    assert "Once more" in page.text


def test_two_pictures_on_one_page_do_not_share_ids():
    page = Page(render(a_release(), extra_figures=[("Once more", release_figure(a_release()))]))
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids)) > 0


def test_a_test_is_never_called_protected():
    page = Page(render(a_release(guarantee=a_guarantee(status="test"))))
    assert "A test, not private." in page.text
    assert "it protects nothing" in " ".join(page.text.split())
    assert "protection." not in page.text


def test_a_claim_is_called_a_claim():
    claimed = a_guarantee(status="claimed", proof=None, events=(ClaimedEvent(name="theirs", epsilon=0.5, delta=1e-6),))
    page = Page(render(a_release(guarantee=claimed)))
    assert "Claimed, not proved." in page.text


@pytest.mark.parametrize(
    ("estimate", "sentence"),
    [(1.0, "raised the outcome by 1.00"), (-1.0, "lowered the outcome by 1.00"), (0.01, "do not show whether")],
)
def test_the_finding_says_the_direction_only_if_the_interval_does(estimate, sentence):
    assert sentence in finding(a_release(estimate=estimate))


def test_the_guess_is_that_of_the_best_test_rounded_up():
    mu = calibrate_mu(0.5, 1e-6)
    exact = ndtr(mu / 2)
    found = guess(a_guarantee())
    assert found["right"] == pytest.approx(exact, abs=1e-9)
    assert exact <= float(found["times"]) / 100 <= exact + 0.001
    assert found["word"] == "Very strong"


def test_the_guess_under_laplace_noise_is_no_better_than_pure_epsilon_allows():
    laplace = LaplaceEvent(name="sum", diameter=1.0, scale=1.0, dimension=1)
    found = guess(a_guarantee(events=(laplace,), epsilon=1.0, delta=0.0))
    assert 0.5 < found["right"] <= math.e / (1 + math.e)


def test_huge_budgets_are_called_weak():
    claimed = ClaimedEvent(name="theirs", epsilon=1000.0, delta=0.0)
    assert guess(a_guarantee(status="claimed", epsilon=1000.0, events=(claimed,)))["word"] == "Weak"


def test_bounds_are_listed_with_what_missing_and_unknown_values_count_as():
    bounds = Bounds(
        outcome=(0, 1),
        covariates={"age": Range(18, 95, fill=50), "ward": Levels(("a", "b"), other="b", fill="a")},
        treatment=("placebo", "drug"),
    )
    text = Page(render(a_release(bounds=bounds))).text
    for part in ("18 to 95; missing counts as 50", "a, b; anything else counts as b", "placebo (control)"):
        assert part in text


def test_a_private_number_of_records_is_about_so_many():
    release = a_release(guarantee=a_guarantee(neighbours="add-remove"), n=2_998.7)
    text = " ".join(Page(render(release)).text.split())
    assert "About 2,999 records" in text
    assert "had it not been there at all" in text


def test_clipping_is_explained_when_it_matters():
    uncertainty = Uncertainty(sampling=0.1, privacy=0.1, nuisance=0.1, clipping=0.1)
    assert "Clipping" in Page(render(a_release(uncertainty=uncertainty))).text
    assert "Clipping" not in Page(render(a_release())).text


@pytest.mark.parametrize("library", ["jinja2", "matplotlib"])
def test_without_a_library_the_error_names_the_extra(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=r"pip install 'discreet\[plots\]'"):
        render(a_release())
