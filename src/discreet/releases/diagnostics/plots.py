"""Plots of balance and overlap, in the style of all releases' plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.releases.diagnostics.released import Overlap, Row, name_of
from discreet.releases.plots import BLUE, INK, MUTED, ORANGE, PAPER, require, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows that a plot has at most: those with the largest differences.
MOST_ROWS = 40
# Bars are of two standard deviations of the noise; a difference of a tenth is what most authors call small.
_DEVIATIONS, _SMALL = 2.0, 0.1


def plot_balance(rows: list[Row], ax: Axes | None = None) -> Axes:
    """Draw a love plot: the arms' differences before and after adjustment, each within two noise sd.

    Parameters
    ----------
    rows : list of dict
        The table of `Release.balance`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    require()
    ranked = _ranked(rows)
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(6.8, height(rows)), layout="constrained")[1]
    ax.axvline(0.0, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
    ax.axvspan(-_SMALL, _SMALL, color=MUTED, alpha=0.1, linewidth=0, zorder=0)
    for when, words, colour, shift in (("before", "before", ORANGE, -0.14), ("after", "after adjustment", BLUE, 0.14)):
        some = [(place + shift, row) for place, row in enumerate(ranked) if row[when] is not None]
        if not some:
            continue
        places, values = [place for place, _ in some], [row[when] for _, row in some]
        reach = [_DEVIATIONS * row[f"{when}_sd"] for _, row in some]
        ends = [value - own for value, own in zip(values, reach, strict=True)]
        tops = [value + own for value, own in zip(values, reach, strict=True)]
        ax.hlines(places, ends, tops, color=colour, linewidth=2.5, alpha=0.5)
        ax.plot(
            values,
            places,
            "o",
            color=PAPER,
            markersize=5,
            markeredgecolor=colour,
            markeredgewidth=2,
            label=words,
            zorder=3,
        )
    ax.set_yticks(range(len(ranked)), [name_of(row) for row in ranked])
    ax.set_ylim(len(ranked) - 0.4, -0.6)
    ax.set_xlabel("treated minus controls, in standard deviations (levels: in shares); bars are two sd of the noise")
    _legend(ax)
    tidy(ax)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_overlap(overlap: Overlap, ax: Axes | None = None) -> Axes:
    """Draw the fitted probabilities of treatment: the treated above, controls below.

    Parameters
    ----------
    overlap : Overlap
        What to draw.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    require()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")[1]
    width = overlap.edges[1] - overlap.edges[0]
    for name, colour, sign in (("treated", BLUE, 1.0), ("control", ORANGE, -1.0)):
        heights = [sign * share for share in overlap.shares[name]]
        ax.bar(overlap.edges[:-1], heights, width=0.92 * width, align="edge", color=colour, linewidth=0, label=name)
    ax.axhline(0.0, color=MUTED, linewidth=1.0)
    for end in overlap.trim:
        ax.axvline(end, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
    ax.set_xlim(0.0, 1.0)
    ax.set_yticks([])
    ax.set_xlabel("fitted probability of treatment (dashed: where it is held)")
    _legend(ax)
    tidy(ax)
    return ax


def _ranked(rows: list[Row]) -> list[Row]:
    """The largest differences first."""
    return sorted(rows, key=lambda row: -abs(row["before"]))[:MOST_ROWS]


def height(rows: list[Row]) -> float:
    """Of a love plot, in inches."""
    return 1.4 + 0.3 * min(len(rows), MOST_ROWS)


def _legend(ax: Axes) -> None:
    ax.legend(frameon=False, labelcolor=INK, ncols=2, loc="lower left", bbox_to_anchor=(-0.01, 1.0), borderaxespad=0.2)
