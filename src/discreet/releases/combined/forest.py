"""Forest plots: an interval for each site, and one for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from discreet.data.bounds import Bounds
from discreet.releases.parts.labels import effect_axis
from discreet.releases.plots import BLUE, INK, MUTED, ORANGE, new_figure, require, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Area of the square of a site that has all the weight, in points, and of the smallest that is still seen.
_LARGEST, _LEAST = 320.0, 12.0


class Combined(Protocol):
    """What a forest plot shows."""

    @property
    def estimate(self) -> float: ...
    @property
    def bounds(self) -> Bounds: ...
    @property
    def sites(self) -> Sequence[Any]: ...
    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of all sites together."""

    def site_interval(self, site: Any, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of one site."""

    def text(self, value: float) -> str:
        """A number in words."""


def plot_forest(release: Combined, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
    """Draw each site's estimate with its interval, its weight as a square's area, and all together as a diamond.

    Parameters
    ----------
    release : CombinedRelease
        What to draw.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    alpha : float
        Intervals cover with probability ``1 - alpha``.
    """
    require()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(7.2, _height(release)), layout="constrained")[1]
    count = len(release.sites)
    for place, site in enumerate(release.sites):
        low, high = release.site_interval(site, alpha)
        ax.hlines(place, low, high, color=BLUE, linewidth=2.0, alpha=0.6)
        area = max(_LARGEST * site.weight, _LEAST)
        ax.scatter([site.estimate], [place], s=area, marker="s", color=BLUE, zorder=3, linewidth=0)
    low, high = release.interval(alpha)
    ends, middles = (low, release.estimate, high, release.estimate), (count, count - 0.3, count, count + 0.3)
    ax.fill(ends, middles, color=ORANGE, zorder=3, linewidth=0)
    ax.axvline(release.estimate, color=ORANGE, linewidth=1.0, alpha=0.6, zorder=0)
    ax.axvline(0.0, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
    names = [f"{site.name} ({100 * site.weight:.0f} %)" for site in release.sites]
    ax.set_yticks(range(count + 1), [*names, "all together"])
    ax.get_yticklabels()[-1].set_fontweight("bold")
    # Sites are read from top to bottom.
    ax.set_ylim(count + 0.6, -0.6)
    level = f"{100 * (1 - alpha):g} % intervals"
    ax.set_xlabel(
        f"{effect_axis(release.bounds, average=True).removeprefix('average ')} ({level}; weights in brackets)"
    )
    tidy(ax)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return ax


def forest_figure(release: Combined) -> Figure:
    """`plot_forest` on a figure of its own, made without pyplot."""
    figure = new_figure(7.2, _height(release))
    plot_forest(release, figure.add_axes((0.1, 0.16, 0.88, 0.82)))
    return figure


def _height(release: Combined) -> float:
    return 1.3 + 0.36 * len(release.sites)
