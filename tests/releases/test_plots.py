"""Plots: they hold what they promise, fit any numbers, and name the extra that they need."""

import sys
from xml.etree import ElementTree

import pytest

from discreet.cli.demo.comparisons import Row, plot_splits, plot_widths
from discreet.exceptions import InvalidInput, MissingExtra
from discreet.releases.average import Uncertainty
from discreet.releases.plots import COLOURS, plot_release, release_figure, svg
from tests.releases.test_average import a_release


def words(figure):
    return ElementTree.fromstring(svg(figure, "a figure").replace("xlink:href", "href")).itertext()


def test_a_release_is_drawn_with_its_numbers_and_the_split_of_its_uncertainty():
    text = "\n".join(words(release_figure(a_release())))
    for part in (
        "estimate −1.23",
        "−1.46",
        "−1.01",
        "no effect",
        "sampling 75 %",
        "privacy noise 19 %",
        "adjustment 7 %",
    ):
        assert part in text
    assert "clipping" not in text


def test_drawing_on_given_axes_returns_them():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert plot_release(a_release(), ax=ax) is ax


def test_without_axes_pyplot_makes_a_figure_that_notebooks_show():
    from matplotlib import pyplot

    before = set(pyplot.get_fignums())
    ax = plot_release(a_release())
    assert len(set(pyplot.get_fignums()) - before) == 1
    pyplot.close(ax.figure)


@pytest.mark.parametrize("estimate", [0.0, 1e6, -1e-9])
@pytest.mark.parametrize("sampling", [0.0, 1e-8, 1e5])
def test_any_size_of_numbers_can_be_drawn(estimate, sampling):
    uncertainty = Uncertainty(sampling=sampling, privacy=0.0)
    assert "estimate" in " ".join(words(release_figure(a_release(estimate=estimate, uncertainty=uncertainty))))


def test_a_zero_that_is_far_away_does_not_squeeze_the_interval():
    assert "no effect lies further left" in " ".join(words(release_figure(a_release(estimate=500.0))))
    assert "no effect lies further right" in " ".join(words(release_figure(a_release(estimate=-500.0))))


def test_widths_far_apart_are_compared_on_a_log_scale_and_cut_with_arrows():
    narrow = Row(label="ours", low=-1.0, high=1.0, estimate=0.0)
    wide = Row(label="theirs", low=-100.0, high=100.0, kind="formula")
    _, widths = plot_widths([narrow, wide], truth=0.1).axes
    assert widths.get_xscale() == "log"
    positions, widths = plot_widths([narrow, Row(label="open", low=-0.5, high=0.5, kind="open")]).axes
    assert widths.get_xscale() == "linear"
    assert positions.get_xlim()[1] < 2


def test_splits_have_one_bar_for_each_source_and_release():
    figure = plot_splits({"a": a_release(), "b": a_release()})
    assert len(figure.axes[0].patches) == 6
    assert {"sampling", "privacy noise", "adjustment"} <= {text.strip() for text in words(figure)}


@pytest.mark.parametrize(("plot", "nothing"), [(plot_widths, []), (plot_splits, {})])
def test_nothing_to_compare_is_refused(plot, nothing):
    with pytest.raises(InvalidInput, match="at least one"):
        plot(nothing)


def test_svg_follows_the_page_and_brings_nothing_of_its_own():
    text = svg(release_figure(a_release()), 'says "so" & <more>')
    assert text.startswith('<svg viewBox="')
    assert 'aria-label="says &quot;so&quot; &amp; &lt;more&gt;"' in text
    assert "var(--blue)" in text
    for absent in (*COLOURS.values(), "<style", "<metadata", "font-family", 'http://www.w3.org/1999/xlink" width'):
        assert absent not in text


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'discreet\[plots\]'"):
        plot_release(a_release())
