"""Plots of what differs between people: whom to treat first, and what the effect goes with."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from discreet.releases.plots import BLUE, INK, MUTED, new_figure, require, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More covariates than these are not drawn.
_MOST_BARS = 12


class Gains(Protocol):
    """A curve over the share of people who are treated, with a band."""

    @property
    def share(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def low(self) -> Any: ...
    @property
    def high(self) -> Any: ...


def plot_gains(curve: Gains, level: str, ax: "Axes | None" = None) -> "Axes":
    """Draw what treating the best segments first is worth, with its band, beside treating people at random.

    Parameters
    ----------
    curve : UpliftCurve
        What to draw.
    level : str
        Of the band, in words.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    require()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")[1]
    ax.fill_between(curve.share, curve.low, curve.high, color=BLUE, alpha=0.18, linewidth=0, label=f"{level} band")
    ax.plot(curve.share, curve.value, "o-", color=BLUE, linewidth=2.2, markersize=4, label="best segments first")
    at_random = [0.0, curve.value[-1]]
    ax.plot([0.0, 1.0], at_random, color=MUTED, linewidth=1.4, linestyle=(0, (4, 3)), label="people at random")
    ax.set(xlim=(0.0, 1.0), xlabel="share of people who are treated")
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    ax.set_ylabel("effect per person of all", color=MUTED)
    ax.legend(frameon=False, labelcolor=INK, loc="best")
    tidy(ax)
    return ax


def plot_importance(shares: Mapping[str, float], ax: "Axes | None" = None) -> "Axes":
    """Draw which covariates the effect goes with: each one's share of its variance, the largest first.

    Parameters
    ----------
    shares : mapping from names to float
        What to draw.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    require()
    ranked = sorted(shares.items(), key=lambda item: -item[1])[:_MOST_BARS]
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(6.4, 1.0 + 0.3 * len(ranked)), layout="constrained")[1]
    ax.barh(range(len(ranked)), [share for _, share in ranked], height=0.6, color=BLUE, linewidth=0)
    for place, (_, share) in enumerate(ranked):
        words = f"{100 * share:.0f} %"
        ax.annotate(words, (share, place), (6, 0), textcoords="offset points", va="center", color=INK)
    ax.set_yticks(range(len(ranked)), [name for name, _ in ranked])
    ax.set(ylim=(len(ranked) - 0.4, -0.6), xlim=(0.0, 1.12 * max([share for _, share in ranked], default=1.0) or 1.0))
    tidy(ax)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def importance_figure(shares: Mapping[str, float]) -> "Figure":
    """`plot_importance` on a figure of its own."""
    figure = new_figure(6.8, 0.4 + 0.32 * min(len(shares), _MOST_BARS))
    plot_importance(shares, figure.add_axes((0.2, 0.04, 0.78, 0.92)))
    return figure


def gains_figure(curve: Gains, level: str) -> "Figure":
    """`plot_gains` on a figure of its own."""
    figure = new_figure(6.8, 3.6)
    plot_gains(curve, level, figure.add_axes((0.12, 0.16, 0.86, 0.8)))
    return figure
