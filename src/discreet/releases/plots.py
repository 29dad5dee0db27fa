"""Plots of releases: few marks, plain words, colours that everyone can distinguish.

Matplotlib is imported when something is plotted. Figures are made without pyplot unless an interactive one is asked
for, so that plotting in a report never touches a notebook's figures.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from discreet.data.bounds import Bounds
from discreet.exceptions import MissingExtra
from discreet.releases.average import SOURCES
from discreet.releases.parts.labels import effect_axis, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER, INK, MUTED, FAINT = "#ffffff", "#1c2126", "#66707a", "#d5dade"
# Okabe and Ito's colours.
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
COLOURS = {
    SOURCES["sampling"]: BLUE,
    SOURCES["privacy"]: ORANGE,
    SOURCES["nuisance"]: GREEN,
    SOURCES["clipping"]: PURPLE,
}
# More segments than these are drawn without their names.
_NAMED = 32


class Estimated(Protocol):
    """A release of one number, with an interval and where its uncertainty comes from."""

    @property
    def estimate(self) -> float: ...
    @property
    def bounds(self) -> Bounds: ...
    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval at level ``1 - alpha``, of finite ends."""

    def text(self, value: float) -> str:
        """A number with as many decimals as it has meaning."""

    def shares(self) -> dict[str, float]:
        """Shares of the uncertainty by their sources."""


class Curved(Protocol):
    """A release that has the effect along each covariate."""

    @property
    def bounds(self) -> Bounds: ...
    def curve(self, feature: str | int, alpha: float = 0.05) -> Any:
        """Values, the effect there, and a band."""


def plot_release(release: Estimated, ax: "Axes | None" = None) -> "Axes":
    """Draw the estimate with its 80 % and 95 % intervals, above a bar that splits the uncertainty by its sources.

    Parameters
    ----------
    release : Release
        What to draw.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    require()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(7.2, 3.2))[1]
    ax.set_axis_off()
    interval, bar = ax.inset_axes((0.0, 0.5, 1.0, 0.42)), ax.inset_axes((0.0, 0.13, 1.0, 0.1))
    _draw_interval(release, interval)
    _draw_shares(release.shares(), bar)
    return ax


def plot_segments(
    labels: Sequence[str], effects: Any, ends: tuple[Any, Any], words: str, ax: "Axes | None" = None
) -> "Axes":
    """Draw one effect per segment with bars around it.

    Parameters
    ----------
    labels : sequence of str
        What the segments are called; written out where they are few.
    effects, ends : arrays of shape (k,), and a pair of them
        The effects, and where their bars begin and end.
    words : str
        What is drawn.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    require()
    named = len(labels) <= _NAMED
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(7.2, _height(len(labels))), layout="constrained")[1]
    places = range(len(labels))
    if named:
        # Names are read from top to bottom.
        ax.axvline(0.0, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        ax.hlines(places, *ends, color=BLUE, linewidth=2.5, alpha=0.5)
        ax.plot(effects, places, "o", color=PAPER, markeredgecolor=BLUE, markeredgewidth=2, zorder=3)
        ax.set_yticks(places, labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.set_xlabel(words)
    else:
        ax.axhline(0.0, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        ax.vlines(places, *ends, color=BLUE, linewidth=1.2, alpha=0.6)
        ax.plot(places, effects, "o", color=BLUE, markersize=4)
        ax.set_xlabel("segment, in the order of table()")
        ax.set_ylabel(words, color=MUTED)
    tidy(ax)
    ax.tick_params(axis="y", length=0)
    return ax


def _height(rows: int) -> float:
    return 1.0 + 0.3 * rows if rows <= _NAMED else 3.6


def release_figure(release: Estimated) -> "Figure":
    """`plot_release` on a figure of its own, made without pyplot."""
    figure = new_figure(8.2, 3.3)
    plot_release(release, figure.add_axes((0.03, 0.0, 0.94, 1.0)))
    return figure


def plot_effect(release: Curved, feature: str | int, ax: "Axes | None" = None) -> "Axes":
    """Draw the effect along one covariate, the others averaged, with its 95 % and 80 % bands (pointwise).

    Parameters
    ----------
    release : EffectRelease
        What to draw.
    feature : str or int
        The covariate, by name or position.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.
    """
    require()
    curves = {alpha: release.curve(feature, alpha) for alpha in (0.05, 0.2)}
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(6.4, 3.6))[1]
    curve = curves[0.05]
    if all(isinstance(value, float) for value in curve.values) and len(curve.values) > 50:
        for alpha, shade in ((0.05, 0.16), (0.2, 0.22)):
            band = curves[alpha]
            ax.fill_between(band.values, band.low, band.high, color=BLUE, alpha=shade, linewidth=0)
        ax.plot(curve.values, curve.effect, color=BLUE, linewidth=2.2)
    else:
        places = range(len(curve.values))
        for alpha, thickness in ((0.05, 2.5), (0.2, 8.0)):
            ax.vlines(places, curves[alpha].low, curves[alpha].high, color=BLUE, linewidth=thickness, alpha=0.5)
        ax.plot(places, curve.effect, "o", color=PAPER, markeredgecolor=BLUE, markeredgewidth=2, zorder=3)
        ax.set_xticks(places, [str(value) for value in curve.values])
        ax.set_xlim(-0.6, len(curve.values) - 0.4)
    ax.axhline(0, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
    ax.set_xlabel(with_unit(release.bounds, feature if isinstance(feature, str) else release.bounds.names[feature]))
    ax.set_ylabel(effect_axis(release.bounds), color=MUTED)
    tidy(ax)
    return ax


def effect_figure(release: Curved, feature: str | int) -> "Figure":
    """`plot_effect` on a figure of its own."""
    figure = new_figure(6.8, 3.4)
    plot_effect(release, feature, figure.add_axes((0.1, 0.16, 0.88, 0.8)))
    return figure


def segments_figure(labels: Sequence[str], effects: Any, ends: tuple[Any, Any], words: str) -> "Figure":
    """`plot_segments` on a figure of its own."""
    figure = new_figure(7.2, _height(len(labels)))
    plot_segments(labels, effects, ends, words, figure.add_axes((0.1, 0.12, 0.88, 0.84)))
    return figure


def svg(figure: "Figure", description: str) -> str:
    """A figure as an SVG element for a page: text stays text, and ink and colours follow the page's CSS variables.

    Parameters
    ----------
    figure : matplotlib Figure
        Any figure.
    description : str
        What it shows, for those who cannot see it.
    """
    from html import escape

    import matplotlib

    # The salt makes the ids of two figures on one page differ.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": description}):
        out = io.StringIO()
        figure.savefig(
            out, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None, "Creator": None}
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    # Left out: who drew it, a style that would reach the whole page, ids that repeat, and fonts (the page has its own).
    for left_out in (
        r"<metadata>.*?</metadata>",
        r"<style.*?</style>",
        r' id="[A-Za-z0-9.]+_\d+"',
        r"font-family: [^;]*; ",
    ):
        text = re.sub(left_out, "", text, flags=re.DOTALL)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    label = escape(description, quote=True)
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{label}">', text, count=1
    )


_VARIABLES = {
    PAPER: "paper",
    INK: "ink",
    MUTED: "muted",
    FAINT: "faint",
    BLUE: "blue",
    ORANGE: "orange",
    GREEN: "green",
    PURPLE: "purple",
}


def require() -> None:
    """Refuse, in one sentence, if what pages and plots need is not installed."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "Plots and pages need matplotlib and Jinja2: install them with pip install 'discreet[plots]'."
        ) from None


def new_figure(width: float, height: float) -> "Figure":
    """A figure without pyplot."""
    require()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def _draw_interval(release: Estimated, ax: "Axes") -> None:
    for alpha, thickness in ((0.05, 2.5), (0.2, 8.0)):
        low, high = release.interval(alpha)
        ax.plot([low, high], [0, 0], color=BLUE, linewidth=thickness, solid_capstyle="round" if alpha > 0.1 else "butt")
    low, high = release.interval()
    ax.plot(release.estimate, 0, "o", color=PAPER, markersize=6, markeredgecolor=BLUE, markeredgewidth=2, zorder=3)
    # The estimate stands above and the ends below, so that a short interval does not make them collide.
    for value, words, rise in ((release.estimate, "estimate ", 10), (low, "", -18), (high, "", -18)):
        ax.annotate(
            words + _minus(release.text(value)),
            (value, 0),
            (0, rise),
            textcoords="offset points",
            ha="center",
            color=INK if words else MUTED,
            fontweight="bold" if words else "normal",
        )
    margin = 0.16 * (high - low) or 1.0
    left, right = min(low - margin, 0.0 - margin / 2), max(high + margin, margin / 2)
    # Zero is the question that readers come with, unless it is so far away that showing it would hide the interval.
    if max(0.0 - high, low, 0.0) > 4 * (high - low):
        left, right = low - margin, high + margin
        side, words = (
            ("right", "no effect lies further right →") if high < 0 else ("left", "← no effect lies further left")
        )
        ax.text(1.0 if high < 0 else 0.0, 1.0, words, transform=ax.transAxes, ha=side, va="top", color=MUTED)
    else:
        ax.axvline(0, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
        ax.annotate("no effect", (0, 1), (0, 1), ("data", "axes fraction"), "offset points", ha="center", color=MUTED)
    ax.set(xlim=(left, right), ylim=(-1.0, 1.0), yticks=[])
    ax.locator_params(axis="x", nbins=7)
    ax.set_xlabel(f"{effect_axis(release.bounds, average=True)} (thick: 80 % interval, thin: 95 %)")
    tidy(ax)


def _draw_shares(shares: Mapping[str, float], ax: "Axes") -> None:
    stack(ax, 0, shares)
    ax.set(xlim=(0, 1))
    ax.set_axis_off()
    ax.set_title("where the uncertainty comes from", loc="left", fontsize=10, color=MUTED, pad=4)
    legend(ax, {name: f"{name} {share:.0%}".replace("%", " %") for name, share in shares.items()})


def stack(ax: "Axes", place: int, shares: Mapping[str, float], height: float = 0.8) -> None:
    """Shares as one bar."""
    start, whole = 0.0, sum(shares.values()) or 1.0
    for name, share in shares.items():
        ax.barh(place, share / whole, left=start, height=height, color=COLOURS[name], linewidth=0)
        start += share / whole


def _minus(text: str) -> str:
    return text.replace("-", "−")


def legend(ax: "Axes", names: Mapping[str, str], above: bool = False) -> None:
    """What the colours of shares mean."""
    from matplotlib.patches import Patch

    handles = [Patch(color=COLOURS[name], label=label) for name, label in names.items()]
    anchor: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0)} if above else {}
    anchor = anchor or {"loc": "upper left", "bbox_to_anchor": (-0.01, -0.1)}
    ax.legend(
        handles=handles,
        ncols=len(handles),
        frameon=False,
        labelcolor=INK,
        handlelength=1.0,
        handleheight=1.0,
        columnspacing=1.6,
        borderaxespad=0.2,
        **anchor,
    )


def tidy(ax: "Axes") -> None:
    """Leave out what is no data."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    ax.set_facecolor("none")
    ax.tick_params(colors=MUTED, labelcolor=INK, color=FAINT)
    ax.xaxis.label.set_color(MUTED)
