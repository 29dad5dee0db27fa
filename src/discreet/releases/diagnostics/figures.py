"""Figures of balance and overlap for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.releases.diagnostics.diagnosed import Diagnosed
from discreet.releases.diagnostics.plots import MOST_ROWS, height, plot_balance, plot_overlap
from discreet.releases.diagnostics.released import name_of
from discreet.releases.page import inline_figure
from discreet.releases.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def diagnostic_figures(release: Diagnosed) -> list[tuple[str, Figure]]:
    """Captions and figures of what a release says about its arms."""
    kept, found = release.diagnostics or {}, []
    if "balance" in kept:
        rows = release.balance()
        figure = new_figure(6.8, height(rows))
        plot_balance(rows, figure.add_axes((0.25, 0.16, 0.73, 0.76)))
        more = f" The {MOST_ROWS} largest of {len(rows)} are shown." if len(rows) > MOST_ROWS else ""
        found.append((f"How the arms differ in their covariates, as far as noise lets it be seen.{more}", figure))
    if "overlap" in kept:
        figure = new_figure(6.8, 3.2)
        plot_overlap(release.overlap(), figure.add_axes((0.06, 0.18, 0.92, 0.72)))
        found.append(
            ("Fitted probabilities of treatment in either arm: arms are comparable where both have people.", figure)
        )
    return found


def diagnostic_section(release: Diagnosed) -> dict[str, Any] | None:
    """Balance and overlap as a section of a page: words, figures, and a table; None if there is nothing."""
    words = release.arms_in_words()
    if not words:
        return None
    drawn = [(caption, inline_figure(figure, caption)) for caption, figure in diagnostic_figures(release)]
    return {"words": words, "figures": drawn, "table": balance_table(release)}


def balance_table(release: Diagnosed) -> tuple[list[str], list[list[str]]] | None:
    """How the arms differ in each covariate, in words; None where that is not known."""
    if "balance" not in (release.diagnostics or {}):
        return None
    lines = [
        [name_of(row), *(_difference(row, when) for when in ("before", "after"))]
        for row in sorted(release.balance(), key=lambda row: -abs(row["before"]))
    ]
    return ["covariate", "difference", "after adjustment"], lines


def _difference(row: dict[str, Any], when: str) -> str:
    return "" if row[when] is None else f"{row[when]:.2g} (noise {row[f'{when}_sd']:.1g})"
