"""Figures that releases of several papers share, and why most of them have no interval of an average."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Levels
from discreet.exceptions import InvalidInput
from discreet.releases.plots import BLUE, FAINT, INK, MUTED, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 101


class WithoutAverage:
    """A method whose paper gives no interval of an average effect: asking says why, and what has one."""

    _why_no_interval = (
        "it estimates effects as a function of covariates, and its paper gives no interval of their average"
    )

    def ate_interval(self, alpha: float = 0.05) -> NoReturn:
        """Refused: says why there is no interval of the average effect, and what has one."""
        raise InvalidInput(
            f"ate_interval: {type(self).__name__} has none, because {self._why_no_interval}. Fit discreet.ATE for an "
            "average effect with an interval, or papers.PrivATE for a published one."
        )


class AlongCovariates(WithoutAverage):
    """A method that answers effects at any covariates."""

    bounds: Bounds
    effect: Callable[..., Float]

    def plot(self, feature: str | int = 0, ax: Any = None) -> Any:
        """Draw effects along one covariate, the others in the middle of their ranges (needs matplotlib)."""
        return plot_along(self.effect, self.bounds, feature, ax)


def plot_along(effect: Callable[[Any], Float], bounds: Bounds, feature: str | int, ax: Axes | None) -> Axes:
    """Effects along one covariate, the others at the middle of their ranges and at their first levels."""
    axes, place = _axes(ax), _place(bounds, feature)
    usual = [spec.levels[0] if isinstance(spec, Levels) else (spec.low + spec.high) / 2.0 for spec in bounds.columns]
    spec = bounds.columns[place]
    values: list[Any] = (
        list(spec.levels) if isinstance(spec, Levels) else np.linspace(spec.low, spec.high, _POINTS).tolist()
    )
    rows = np.array([[*usual[:place], value, *usual[place + 1 :]] for value in values], dtype=object)
    heights = effect(rows)
    if isinstance(spec, Levels):
        axes.plot([str(level) for level in values], heights, "o", color=BLUE)
    else:
        axes.plot(values, heights, color=BLUE)
    axes.axhline(0.0, color=FAINT, linewidth=1.0, zorder=0)
    axes.set(xlabel=bounds.names[place], ylabel="effect, other covariates in the middle")
    return axes


def plot_answers(effects: Float, ax: Axes | None) -> Axes:
    """Released effects at queries, in the order of the queries."""
    axes = _axes(ax)
    axes.axhline(0.0, color=FAINT, linewidth=1.0, zorder=0)
    axes.plot(np.arange(1, len(effects) + 1), effects, "o", color=BLUE, markersize=3)
    axes.set(xlabel="query", ylabel="effect")
    return axes


def plot_point(estimate: float, noise_sd: float, ax: Axes | None) -> Axes:
    """An estimate, with one standard deviation of the noise on it where there is any."""
    axes = _axes(ax)
    axes.axvline(0.0, color=FAINT, linewidth=1.0, zorder=0)
    axes.errorbar([estimate], [0.0], xerr=noise_sd or None, fmt="o", color=BLUE)
    axes.set(xlabel="average effect (bar: noise alone)", yticks=[])
    return axes


def _place(bounds: Bounds, feature: str | int) -> int:
    if isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < bounds.p:
        return feature
    if feature in bounds.names:
        return bounds.names.index(feature)
    raise InvalidInput(f"feature must be one of {', '.join(bounds.names)}, or its position: choose a covariate.")


def _axes(ax: Axes | None) -> Axes:
    require()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(6.4, 3.4))[1]
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(colors=MUTED, labelcolor=INK)
    return ax
