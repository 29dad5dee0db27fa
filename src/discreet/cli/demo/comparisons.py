"""Plots that compare releases with each other, with other methods and with the truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from discreet.exceptions import InvalidInput
from discreet.releases.average import Release
from discreet.releases.plots import BLUE, GREEN, INK, MUTED, ORANGE, legend, new_figure, stack, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Intervals that differ by more than this cannot be compared on a linear scale.
_WIDE = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One interval among others.

    Parameters
    ----------
    label
        What it is, for people.
    low, high
        Its ends.
    estimate
        Its centre; None where only a width is known.
    kind
        "private" for a release, "open" for an analysis without privacy, "formula" for a width that was computed from
        a paper's formula and never drawn.
    """

    label: str
    low: float
    high: float
    estimate: float | None = None
    kind: Literal["private", "open", "formula"] = "private"

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.high - self.low


_MARKS = {"private": (BLUE, "o"), "open": (INK, "s"), "formula": (ORANGE, "D")}


def plot_widths(rows: Sequence[Row], truth: float | None = None) -> "Figure":
    """Compare intervals: where they lie, and how wide they are (on a log scale if some are many times wider).

    Parameters
    ----------
    rows : sequence of Row
        From top to bottom. Rows of kind "formula" that do not fit are cut, with arrows.
    truth : float, optional
        The true effect, where it is known.
    """
    if not rows:
        raise InvalidInput("rows must hold at least one interval; give something to compare.")
    figure = new_figure(8.6, 1.3 + 0.36 * len(rows))
    left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [1.7, 1.0], "wspace": 0.06})
    shown = [row for row in rows if row.kind != "formula"] or list(rows)
    ends = [end for row in shown for end in (row.low, row.high)] + ([] if truth is None else [truth])
    pad = 0.06 * (max(ends) - min(ends)) or 1.0
    limits = min(ends) - pad, max(ends) + pad
    for place, row in enumerate(rows):
        _draw_row(left, right, place, row, limits)
    if truth is not None:
        left.axvline(truth, color=GREEN, linewidth=1.4, linestyle=(0, (5, 3)), zorder=1)
        left.annotate(
            "true effect", (truth, 1.0), (0, 4), ("data", "axes fraction"), "offset points", ha="center", color=GREEN
        )
    left.set(xlim=limits, ylim=(len(rows) - 0.4, -0.6), xlabel="95 % interval of the effect")
    left.set_yticks(range(len(rows)), [row.label for row in rows])
    left.locator_params(axis="x", nbins=6)
    widths = [row.width for row in rows if row.width > 0]
    if widths and max(widths) > _WIDE * min(widths):
        right.set_xscale("log")
        right.xaxis.set_major_formatter("{x:,g}")
        right.set(xlim=(min(widths) / 1.6, max(widths) * 5), xlabel="its width (log scale)")
    else:
        right.set(xlim=(0, 1.35 * max(widths, default=1.0)), xlabel="its width")
    for part in (left, right):
        tidy(part)
        part.tick_params(axis="y", length=0, pad=10)
    right.minorticks_off()
    return figure


def plot_splits(releases: Mapping[str, Release]) -> "Figure":
    """Split the uncertainty of several releases by its sources, with the standard error beside each bar.

    Parameters
    ----------
    releases : mapping from labels to Release
        From top to bottom.
    """
    if not releases:
        raise InvalidInput("releases must hold at least one release; give something to compare.")
    figure = new_figure(8.6, 1.5 + 0.36 * len(releases))
    ax = figure.subplots()
    for place, release in enumerate(releases.values()):
        stack(ax, place, release.shares(), height=0.6)
        ax.text(1.03, place, release.text(release.uncertainty.se), va="center", color=INK)
    ax.text(1.03, -0.75, "standard error", color=MUTED)
    ax.set(ylim=(len(releases) - 0.4, -0.6), xlim=(0, 1.2))
    ax.set_xlabel("share of the uncertainty (its variance)", loc="left")
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    ax.set_yticks(range(len(releases)), list(releases))
    present = {name: None for release in releases.values() for name in release.shares()}
    legend(ax, {name: name for name in present}, above=True)
    tidy(ax)
    ax.spines["bottom"].set_bounds(0, 1)
    ax.tick_params(axis="y", length=0)
    return figure


def _draw_row(left: "Axes", right: "Axes", place: int, row: Row, limits: tuple[float, float]) -> None:
    colour, mark = _MARKS[row.kind]
    low, high = max(row.low, limits[0]), min(row.high, limits[1])
    left.plot([low, high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt", zorder=2)
    for end, cut, arrow in ((low, row.low < low, "<"), (high, row.high > high, ">")):
        if cut:
            left.plot(end, place, arrow, color=colour, markersize=8, clip_on=False, zorder=3)
    if row.estimate is not None and limits[0] <= row.estimate <= limits[1]:
        left.plot(row.estimate, place, mark, color=colour, markersize=6, zorder=3)
    right.plot(row.width, place, mark, color=colour, markersize=6)
    width = f"{row.width:.2g}" if row.width < 100 else f"{row.width:,.0f}"
    right.annotate(width, (row.width, place), (8, 0), textcoords="offset points", va="center", color=INK)
