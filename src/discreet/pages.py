"""Any release from its file, and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet import effect_release, release, uplift_release
from discreet.effect_release import EffectRelease
from discreet.effect_report import render_effect, render_segments
from discreet.exceptions import UnsupportedRelease
from discreet.publishing import read_json
from discreet.release import Release
from discreet.report import render
from discreet.uplift_release import UpliftRelease

AnyRelease = Release | EffectRelease | UpliftRelease

_KINDS: dict[str, type[AnyRelease]] = {
    release.FORMAT: Release,
    effect_release.FORMAT: EffectRelease,
    uplift_release.FORMAT: UpliftRelease,
}


def load_release(path: str | Path) -> AnyRelease:
    """Read a release file, whichever of these kinds it holds: its guarantee is checked against its events again."""
    plain: Any = read_json(path, "a release's save")
    kind = _KINDS.get(str(plain.get("format"))) if isinstance(plain, dict) else None
    if kind is None:
        raise UnsupportedRelease(
            f"{str(path)!r} holds no release of ATE, CATE or Uplift: give the file that a release's save wrote."
        )
    return kind.from_dict(plain)


def render_page(release: AnyRelease, *, title: str | None = None) -> str:
    """A page about a release, for readers who have never heard of differential privacy: HTML that needs no network."""
    if isinstance(release, EffectRelease):
        return render_effect(release, title=title)
    if isinstance(release, UpliftRelease):
        return render_segments(release, title=title)
    return render(release, title=title)


def save_page(release: AnyRelease, path: str | Path, *, title: str | None = None) -> None:
    """Write the page of `render_page` to a file (needs matplotlib and Jinja2)."""
    Path(path).write_bytes(render_page(release, title=title).encode())
