"""A page of evidence: what was published, what came out here, and a figure; as Markdown, CSV and PNG."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from discreet.releases.plots import FAINT, INK, MUTED, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Aim(NamedTuple):
    """Something that a page should show: what, whether it does, and the numbers that decide it."""

    what: str
    reached: bool
    found: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a target found.

    Parameters
    ----------
    lead
        What is compared with what.
    head, lines
        The table.
    remarks
        What differs from the paper, and why; one sentence or a few each.
    seeds
        Where the seeds of studies and of noise start.
    replications
        How often each cell was run.
    figure
        The figure.
    aims
        What was to be shown, each computed from the results.
    """

    lead: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    remarks: Sequence[str]
    seeds: str
    replications: int
    figure: Figure = field(repr=False)
    aims: Sequence[Aim] = ()


def write(page: Page, folder: Path, *, stem: str, title: str, command: str) -> list[Path]:
    """Write the three files; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    table, image, text = (folder / f"{stem}.{ending}" for ending in ("csv", "png", "md"))
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([page.head, *page.lines])
    page.figure.savefig(image, dpi=150, bbox_inches="tight", metadata={"Software": None})
    written = f"{date.today():%-d %B %Y}"
    head = f"`{command}`. Replications: {page.replications:,}. Seeds: {page.seeds}. By the code of {written}."
    parts = [f"# {title}", page.lead, head, grid(page.head, page.lines), f"![{title}]({image.name})"]
    if page.aims:
        lines = [f"* {'Reached' if aim.reached else 'Not reached'}: {aim.what} ({aim.found})." for aim in page.aims]
        parts += ["## What was to be shown", "\n".join(lines)]
    parts += ["## Differences from the paper", "\n".join(f"* {remark}" for remark in page.remarks)]
    text.write_bytes(("\n\n".join(parts) + "\n").encode())
    return [text, table, image]


def grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def share(hits: Sequence[bool]) -> str:
    """A proportion with its standard error, as the papers print theirs."""
    p = sum(hits) / len(hits)
    return f"{p:.3f} ± {sqrt(p * (1 - p) / len(hits)):.3f}"


def nominal(cells: Sequence[tuple[str, float, Sequence[bool]]]) -> Aim:
    """Whether coverages (name, nominal, hits) lie within three standard errors of what they should be."""
    off = []
    for name, level, hits in cells:
        coverage = sum(hits) / len(hits)
        if abs(coverage - level) > 3 * sqrt(level * (1 - level) / len(hits)):
            off.append(f"{name} at {level:.2f}: {coverage:.3f}")
    found = f"{len(cells) - len(off)} of {len(cells)}" + (f"; not {', '.join(off)}" if off else "")
    return Aim("coverages within three standard errors of nominal", not off, found)


def falls(values: Sequence[float], errors: Sequence[float], *, drop: float | None = None) -> bool:
    """Whether a curve ends lower than it starts, by more than three standard errors, and no step rises by as much.

    Where both ends are about the same studies, ``drop`` is the standard error of their difference.
    """
    steps = zip(values, values[1:], errors, errors[1:], strict=False)
    fell = values[0] - values[-1] > 3 * (sqrt(errors[0] ** 2 + errors[-1] ** 2) if drop is None else drop)
    return fell and all(b - a <= 3 * sqrt(s**2 + t**2) for a, b, s, t in steps)


def axes(columns: int = 1, width: float = 8.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A figure with tidy axes side by side, made without pyplot."""
    require()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    made = list(figure.subplots(1, columns, squeeze=False)[0])
    for ax in made:
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        for side in ("bottom", "left"):
            ax.spines[side].set_color(FAINT)
        ax.tick_params(colors=MUTED, labelcolor=INK, color=FAINT)
    return figure, made
