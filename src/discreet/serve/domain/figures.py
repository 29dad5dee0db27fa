"""Pictures of releases as pages and downloads want them."""

from __future__ import annotations

import io
import re
import threading
from html import escape
from typing import Any

from discreet.releases.average import Release
from discreet.releases.function import EffectRelease
from discreet.releases.function_plots import gains_figure, importance_figure
from discreet.releases.plots import effect_figure, release_figure, segments_figure, svg
from discreet.releases.segments import UpliftRelease

# Matplotlib shares caches between figures that are not made for threads.
_drawing = threading.Lock()
_STYLE = re.compile(r' style="([^"]*)"')
_MOST = 12


def drawn(release: Any) -> list[tuple[str, str]]:
    """Captions and drawings of a release; none for releases without a picture."""
    figures = _figures(release)
    with _drawing:
        return [(caption, _without_styles(svg(figure, caption))) for caption, figure in figures]


def png(release: Any) -> bytes | None:
    """The first picture of a release, to download."""
    figures = _figures(release, first=True)
    if not figures:
        return None
    out = io.BytesIO()
    with _drawing:
        figures[0][1].savefig(
            out, format="png", dpi=180, facecolor="white", bbox_inches="tight", metadata={"Software": None}
        )
    return out.getvalue()


def _figures(release: Any, first: bool = False) -> list[tuple[str, Any]]:
    if isinstance(release, Release):
        return [
            (
                "The estimate with its 80 % and 95 % intervals, and where the uncertainty comes from.",
                release_figure(release),
            )
        ]
    if isinstance(release, EffectRelease):
        ranked = sorted(release.importance, key=lambda name: -release.importance[name])[: 1 if first else _MOST]
        along = [
            (f"The effect along {name}, the other covariates averaged; bands are 95 % and 80 % intervals.", name)
            for name in ranked
        ]
        figures = [(caption, effect_figure(release, name)) for caption, name in along]
        shares = ("What the effect goes with: each covariate's share of its variance.", release.importance)
        return [*figures, (shares[0], importance_figure(shares[1]))] if release.varies and not first else figures
    if isinstance(release, UpliftRelease):
        labels, words = release.partition.labels(), "effect of treatment (95 % intervals)"
        return [
            (
                "The effect in each segment, with 95 % intervals.",
                segments_figure(labels, release.effects, release.interval(), words),
            ),
            ("What treating the segments that gain most first is worth.", gains_figure(release.uplift_curve(), "95 %")),
        ]
    return []


def _without_styles(text: str) -> str:
    """Attributes in place of styles: the pages' security policy admits no style that stands in a page."""

    def attributes(match: re.Match[str]) -> str:
        parts = (part.partition(":") for part in match.group(1).split(";"))
        return "".join(f' {name.strip()}="{escape(value.strip())}"' for name, colon, value in parts if colon)

    return _STYLE.sub(attributes, text)
