"""Figures of balance and overlap for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.releases.diagnostics.diagnosed import Diagnosed
from discreet.releases.diagnostics.plots import MOST_ROWS, height, plot_balance, plot_overlap
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
