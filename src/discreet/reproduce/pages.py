"""A page of evidence: what was published, what came out here, and a picture; as Markdown, CSV and PNG."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.plots import FAINT, INK, MUTED, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        The picture.
    """

    lead: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    remarks: Sequence[str]
    seeds: str
    replications: int
    figure: Figure = field(repr=False)


def write(page: Page, folder: Path, *, stem: str, title: str, command: str) -> list[Path]:
    """Write the three files; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    table, picture, words = (folder / f"{stem}.{ending}" for ending in ("csv", "png", "md"))
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([page.head, *page.lines])
    page.figure.savefig(picture, dpi=150, bbox_inches="tight", metadata={"Software": None})
    head = f"`{command}`. Replications: {page.replications:,}. Seeds: {page.seeds}."
    parts = [f"# {title}", page.lead, head, grid(page.head, page.lines), f"![{title}]({picture.name})"]
    parts += ["## Differences from the paper", "\n".join(f"* {remark}" for remark in page.remarks)]
    words.write_bytes(("\n\n".join(parts) + "\n").encode())
    return [words, table, picture]


def grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def share(hits: Sequence[bool]) -> str:
    """A proportion with its standard error, as the papers print theirs."""
    p = sum(hits) / len(hits)
    return f"{p:.3f} ± {sqrt(p * (1 - p) / len(hits)):.3f}"


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
