"""Pictures of releases as pages and downloads want them."""

from __future__ import annotations

import io
import re
import threading
from html import escape
from typing import Any

from discreet.releases.plots import svg
from discreet.releases.report import kind_of

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
    figures = _figures(release, most=1)
    if not figures:
        return None
    out = io.BytesIO()
    with _drawing:
        figures[0][1].savefig(
            out, format="png", dpi=180, facecolor="white", bbox_inches="tight", metadata={"Software": None}
        )
    return out.getvalue()


def _figures(release: Any, most: int = _MOST) -> list[tuple[str, Any]]:
    kind = kind_of(release)
    return [] if kind is None else kind.figures(release, most)


def _without_styles(text: str) -> str:
    """Attributes in place of styles: the pages' security policy admits no style that stands in a page."""

    def attributes(match: re.Match[str]) -> str:
        parts = (part.partition(":") for part in match.group(1).split(";"))
        return "".join(f' {name.strip()}="{escape(value.strip())}"' for name, colon, value in parts if colon)

    return _STYLE.sub(attributes, text)
