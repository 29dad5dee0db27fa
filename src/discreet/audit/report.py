"""Pictures of audits: what the attacker sees on either data set, or how far rounds move."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.audit.result import AuditResult
from discreet.releases.plots import BLUE, FAINT, INK, MUTED, ORANGE, require
from discreet.releases.report import page, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from discreet.audit.result import AuditResult


def draw(result: AuditResult, ax: Axes | None = None) -> Axes:
    """Draw a result."""
    require()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(7.2, 3.2))[1]
    draws = {
        "histograms": _histograms,
        "normals": _normals,
        "laplace": _laplace,
        "shares": _shares,
        "bars": _bars,
        "ratios": _ratios,
    }
    kind = result.picture.get("kind")
    if kind in draws:
        draws[kind](dict(result.picture), ax)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=MUTED, labelcolor=INK, color=FAINT)
    shown = "nothing was told apart" if result.shown() == "nothing" else result.shown()
    ax.set_title(f"{result.mechanism}: {shown}", loc="left", fontsize=10, color=INK)
    return ax


def _histograms(picture: dict[str, Any], ax: Axes) -> None:
    edges = np.array(picture["edges"])
    for counts, colour, label in ((picture["one"], BLUE, "one data set"), (picture["other"], ORANGE, "its neighbour")):
        total = max(1, sum(counts))
        ax.stairs(np.array(counts) / total, edges, color=colour, fill=True, alpha=0.55, label=label)
    ax.set(xlabel="what the attacker computes from a release", ylabel="share of runs")
    ax.legend(frameon=False, fontsize=9)


def _normals(picture: dict[str, Any], ax: Axes) -> None:
    shift, sds = min(picture["shift"], 1e3), picture["sds"]
    x = np.linspace(-4 * sds[0], shift + 4 * sds[1], 600)
    for mean, sd, colour, label in ((0.0, sds[0], BLUE, "one data set"), (shift, sds[1], ORANGE, "its neighbour")):
        ax.fill_between(x, np.exp(-(((x - mean) / sd) ** 2) / 2) / sd, color=colour, alpha=0.55, label=label)
    ax.set(xlabel="release, in units of its noise", yticks=[])
    ax.legend(frameon=False, fontsize=9)


def _laplace(picture: dict[str, Any], ax: Axes) -> None:
    shift = picture["shift"]
    x = np.linspace(-5.0, shift + 5.0, 600)
    for mean, colour, label in ((0.0, BLUE, "one data set"), (shift, ORANGE, "its neighbour")):
        ax.fill_between(x, np.exp(-np.abs(x - mean)), color=colour, alpha=0.55, label=label)
    ax.set(xlabel="noisy sum, in scales of its noise", yticks=[])
    ax.legend(frameon=False, fontsize=9)


def _shares(picture: dict[str, Any], ax: Axes) -> None:
    for name, colour, label in (("one", BLUE, "one data set"), ("other", ORANGE, "its neighbour")):
        ax.plot(picture["levels"], picture[name], color=colour, label=label)
    ax.set(xlabel="published width over its critical value", ylabel="share of runs at most so wide", ylim=(0, 1.02))
    ax.legend(frameon=False, fontsize=9)


def _bars(picture: dict[str, Any], ax: Axes) -> None:
    places = range(len(picture["labels"]))
    ax.barh(places, picture["values"], color=ORANGE, height=0.5)
    ax.set_yticks(places, picture["labels"])
    ax.set(xlabel=f"share of outputs ({picture['unit']})", xlim=(0, 100))


def _ratios(picture: dict[str, Any], ax: Axes) -> None:
    names, ratios = picture["names"], picture["ratios"]
    places = np.arange(len(names))
    ax.barh(places, np.minimum(ratios, 3.0), color=[ORANGE if value > 1 else BLUE for value in ratios], height=0.6)
    ax.axvline(1.0, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set_yticks(places, names, fontsize=max(5, 9 - len(names) // 8))
    ax.invert_yaxis()
    end = max(1.05, min(3.0, max(ratios, default=1.0)))
    ax.set(xlabel="largest move found, over the stated diameter", xlim=(0, end))


def render(result: AuditResult) -> str:
    """The page as text: HTML with its style and pictures inside."""
    require()
    from matplotlib.figure import Figure

    pictures = []
    for part in result.parts or (result,):
        rows = len(part.picture.get("names", ()))
        figure = Figure(figsize=(8.2, max(3.0, 0.8 + 0.22 * rows)))
        part.plot(figure.subplots())
        figure.tight_layout()
        caption = f"{part.instrument}: {part.shown()}. Neighbours: {part.worst}."
        pictures.append((caption, picture(figure, caption)))
    facts = [
        ("Claimed", f"{result.claimed} ({result.neighbours}, {result.status})"),
        ("Attack", f"{result.attack} ({result.instrument})"),
        ("Shown", result.shown()),
        ("Confidence", "exact" if result.confidence == 1 else f"{100 * result.confidence:g} %"),
        ("Runs", f"{result.trials:,}"),
        ("Worst neighbours", result.worst),
    ]
    return page(
        "audit.html",
        title=f"Audit of {result.mechanism}",
        result=result,
        finding=f"{result.mechanism}: {result.verdict}.",
        facts=facts,
        pictures=pictures,
        notes=[(part.instrument, note) for part in result.parts or (result,) for note in part.notes],
        rounds=[(moved.name, f"{moved.ratio:.3f}", moved.neighbours) for moved in result.rounds],
        json=result.to_json(),
    )


def save_page(result: AuditResult, path: str | Path) -> None:
    """Write the page of `render` to a file."""
    Path(path).write_bytes(render(result).encode())
