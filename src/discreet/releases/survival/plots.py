"""Survival curves as figures."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.postprocessing.survival.curves import Band
from discreet.releases.plots import BLUE, INK, MUTED, ORANGE, new_figure, require, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (ORANGE, BLUE)


def plot_curves(curves: Mapping[str, Band], level: str, ax: "Axes | None" = None) -> "Axes":
    """Draw a survival curve per arm with its band.

    Parameters
    ----------
    curves : mapping
        Curves by the names of arms.
    level : str
        Of the bands, in words.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    require()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")[1]
    for (name, band), colour in zip(curves.items(), _COLOURS, strict=False):
        ax.fill_between(band.time, band.low, band.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(band.time, band.survival, "o-", color=colour, linewidth=2.2, markersize=4, label=name)
        last = float(band.time[-1])
    ax.set(xlim=(0.0, last), ylim=(0.0, 1.02), xlabel=f"time ({level} band at each point)")
    ax.set_ylabel("without the event", color=MUTED)
    ax.legend(frameon=False, labelcolor=INK, loc="best")
    tidy(ax)
    return ax


def curves_figure(curves: Mapping[str, Band]) -> "Figure":
    """`plot_curves` on a figure of its own."""
    figure = new_figure(7.2, 3.8)
    plot_curves(curves, "95 %", figure.add_axes((0.1, 0.14, 0.88, 0.82)))
    return figure
