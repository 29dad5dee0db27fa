"""Proofs and evidence as pages: what the documentation says, served beside the releases that rest on it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from discreet.serve.errors import Refusal
from discreet.serve.pages.rendering import page

router = APIRouter(include_in_schema=False)
_INSTALLED = Path(__file__).parents[1] / "documents"
# Where the package runs from a copy of its repository, the documentation is beside it.
HOME = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[4] / "docs"
TITLES = {"proofs": "Proofs", "evidence": "Evidence"}
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,60}")
_LINK = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.DOTALL)
_IMAGE = re.compile(r'<img src="[^"]*" alt="([^"]*)"[^>]*>')
_ALIGNED = re.compile(r' style="text-align:(\w+)"')


@router.get("/proofs")
def proofs(request: Request) -> Response:
    """All proofs."""
    return _listed(request, "proofs")


@router.get("/evidence")
def evidence(request: Request) -> Response:
    """All pages of measurements."""
    return _listed(request, "evidence")


@router.get("/proofs/{name}")
def proof(request: Request, name: str) -> Response:
    """A proof."""
    return _shown(request, "proofs", name)


@router.get("/evidence/{name}")
def measured(request: Request, name: str) -> Response:
    """A page of measurements."""
    return _shown(request, "evidence", name)


def _listed(request: Request, kind: str) -> Response:
    rows = [(path.stem, _title(path)) for path in sorted((HOME / kind).glob("*.md")) if path.stem != "index"]
    return page(request, "documents.html", kind=kind, title=TITLES[kind], rows=rows)


def _shown(request: Request, kind: str, name: str) -> Response:
    path = HOME / kind / f"{name}.md"
    if not _NAME.fullmatch(name) or not path.is_file():
        raise Refusal("nothing-here")
    return page(request, "document.html", kind=kind, title=_title(path), heading=TITLES[kind], text=_html(path))


@lru_cache(maxsize=128)
def _title(path: Path) -> str:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ").strip() or path.stem


@lru_cache(maxsize=128)
def _html(path: Path) -> str:
    """Markdown of the package's own as HTML: no raw HTML, no style in the page, links that lead somewhere here."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False}).enable("table").render(path.read_text(encoding="utf-8"))
    made = _ALIGNED.sub(lambda found: ' class="right"' if found[1] == "right" else "", made)
    made = _IMAGE.sub(r"<em>(figure: \1)</em>", made)
    made = _LINK.sub(lambda found: _link(path.parent.name, found[1], found[2]), made)
    made = made.replace("<table>", '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>')
    return made.replace("</table>", "</table></div>")


def _link(kind: str, target: str, words: str) -> str:
    """A link to a page that is served here, or elsewhere in full; else its words alone."""
    if target.startswith(("https://", "http://", "#")):
        return f'<a href="{target}">{words}</a>'
    where, _, place = target.partition("#")
    parts = where.removesuffix(".md").split("/")
    folder = parts[-2] if len(parts) > 1 else kind
    if folder in TITLES and where.endswith(".md") and (HOME / folder / f"{parts[-1]}.md").is_file():
        return f'<a href="/{folder}/{parts[-1]}{"#" + place if place else ""}">{words}</a>'
    return words
