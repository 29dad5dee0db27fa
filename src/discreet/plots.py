"""Pictures of releases: few marks, plain words, colours that everyone can tell apart.

Matplotlib is imported when a picture is drawn. Figures are made without pyplot unless an interactive one is asked for,
so that drawing in a report never touches a notebook's figures.
"""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from discreet.effect_release import EffectRelease
from discreet.errors import InvalidInput, MissingExtra
from discreet.release import SOURCES, Release

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
# Intervals that differ by more than this cannot be compared on a linear scale.
_WIDE = 8.0
# More segments than these are drawn without their names.
_NAMED = 12


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


def plot_release(release: Release, ax: "Axes | None" = None) -> "Axes":
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
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(7.2, 3.6))[1]
    places = range(len(labels))
    ax.axhline(0.0, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.vlines(places, *ends, color=BLUE, linewidth=1.2)
    ax.plot(places, effects, "o", color=BLUE, markersize=4)
    if len(labels) <= _NAMED:
        ax.set_xticks(places, labels, rotation=30, ha="right", color=INK)
    else:
        ax.set_xlabel("segment, in the order of table()", color=MUTED)
    ax.set_ylabel(words, color=MUTED)
    return ax


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
    figure = _figure(8.6, 1.3 + 0.36 * len(rows))
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
        _tidy(part)
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
    figure = _figure(8.6, 1.5 + 0.36 * len(releases))
    ax = figure.subplots()
    for place, release in enumerate(releases.values()):
        _stack(ax, place, release.shares(), height=0.6)
        ax.text(1.03, place, release.text(release.uncertainty.se), va="center", color=INK)
    ax.text(1.03, -0.75, "standard error", color=MUTED)
    ax.set(ylim=(len(releases) - 0.4, -0.6), xlim=(0, 1.2))
    ax.set_xlabel("share of the uncertainty (its variance)", loc="left")
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    ax.set_yticks(range(len(releases)), list(releases))
    present = {name: None for release in releases.values() for name in release.shares()}
    _legend(ax, {name: name for name in present}, above=True)
    _tidy(ax)
    ax.spines["bottom"].set_bounds(0, 1)
    ax.tick_params(axis="y", length=0)
    return figure


def release_figure(release: Release) -> "Figure":
    """`plot_release` on a figure of its own, made without pyplot."""
    figure = _figure(8.2, 3.3)
    plot_release(release, figure.add_axes((0.03, 0.0, 0.94, 1.0)))
    return figure


def plot_effect(release: EffectRelease, feature: str | int, ax: "Axes | None" = None) -> "Axes":
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
    ax.axhline(0, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
    ax.set_xlabel(feature if isinstance(feature, str) else release.bounds.names[feature])
    ax.set_ylabel("effect of treatment", color=MUTED)
    _tidy(ax)
    return ax


def effect_figure(release: EffectRelease, feature: str | int) -> "Figure":
    """`plot_effect` on a figure of its own."""
    figure = _figure(6.8, 3.4)
    plot_effect(release, feature, figure.add_axes((0.1, 0.16, 0.88, 0.8)))
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
    """Refuse, in one sentence, if what pages and pictures need is not installed."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "Pictures and pages need matplotlib and Jinja2: install them with pip install 'discreet[plots]'."
        ) from None


def _figure(width: float, height: float) -> "Figure":
    require()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def _draw_interval(release: Release, ax: "Axes") -> None:
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
    room = 0.16 * (high - low) or 1.0
    left, right = min(low - room, 0.0 - room / 2), max(high + room, room / 2)
    # Zero is the question that readers come with, unless it is so far away that showing it would hide the interval.
    if max(0.0 - high, low, 0.0) > 4 * (high - low):
        left, right = low - room, high + room
        side, words = (
            ("right", "no effect lies further right →") if high < 0 else ("left", "← no effect lies further left")
        )
        ax.text(1.0 if high < 0 else 0.0, 1.0, words, transform=ax.transAxes, ha=side, va="top", color=MUTED)
    else:
        ax.axvline(0, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
        ax.annotate("no effect", (0, 1), (0, 1), ("data", "axes fraction"), "offset points", ha="center", color=MUTED)
    ax.set(xlim=(left, right), ylim=(-1.0, 1.0), yticks=[])
    ax.locator_params(axis="x", nbins=7)
    ax.set_xlabel("average effect of treatment, in the unit of the outcome (thick: 80 % interval, thin: 95 %)")
    _tidy(ax)


def _draw_shares(shares: Mapping[str, float], ax: "Axes") -> None:
    _stack(ax, 0, shares)
    ax.set(xlim=(0, 1))
    ax.set_axis_off()
    ax.set_title("where the uncertainty comes from", loc="left", fontsize=10, color=MUTED, pad=4)
    _legend(ax, {name: f"{name} {share:.0%}".replace("%", " %") for name, share in shares.items()})


def _stack(ax: "Axes", place: int, shares: Mapping[str, float], height: float = 0.8) -> None:
    start, whole = 0.0, sum(shares.values()) or 1.0
    for name, share in shares.items():
        ax.barh(place, share / whole, left=start, height=height, color=COLOURS[name], linewidth=0)
        start += share / whole


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


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _legend(ax: "Axes", names: Mapping[str, str], above: bool = False) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=COLOURS[name], label=label) for name, label in names.items()]
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0)} if above else {}
    where = where or {"loc": "upper left", "bbox_to_anchor": (-0.01, -0.1)}
    ax.legend(
        handles=handles,
        ncols=len(handles),
        frameon=False,
        labelcolor=INK,
        handlelength=1.0,
        handleheight=1.0,
        columnspacing=1.6,
        borderaxespad=0.2,
        **where,
    )


def _tidy(ax: "Axes") -> None:
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    ax.set_facecolor("none")
    ax.tick_params(colors=MUTED, labelcolor=INK, color=FAINT)
    ax.xaxis.label.set_color(MUTED)
