"""Pages that anybody may read who has the link, and the side-by-side view of several releases."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from discreet.releases.explained.compare import compare
from discreet.releases.parts.charts import Forest
from discreet.releases.report import kind_of
from discreet.serve.domain import queries as explore
from discreet.serve.domain import releases
from discreet.serve.errors import Refusal
from discreet.serve.governance import public
from discreet.serve.pages.analyst import download, plain_json
from discreet.serve.pages.figures import forest_view
from discreet.serve.pages.release_view import release_facts
from discreet.serve.pages.rendering import may_curate, may_read, page, service_of

router = APIRouter(include_in_schema=False)
# Columns of a table that people can still read.
_MOST = 8


@router.post("/releases/{release}/public")
def show(request: Request, release: str) -> Response:
    """Show a release to the public."""
    public.show(service_of(request), may_curate(request), release)
    return RedirectResponse(f"/releases/{release}", status_code=303)


@router.post("/releases/{release}/withdraw")
def withdraw(request: Request, release: str) -> Response:
    """Take it back from the public."""
    public.withdraw(service_of(request), may_curate(request), release)
    return RedirectResponse(f"/releases/{release}", status_code=303)


@router.get("/public/{link}")
def public_page(request: Request, link: str) -> Response:
    """A release for anybody: what was found, what is promised, and what it rests on."""
    service = service_of(request)
    facts = public.find(service, link)
    made = service.shelf.get(service.engine, facts["id"])
    context: dict[str, Any] = {"facts": facts, "figures": releases.figures_of(service.engine, facts["id"])}
    context |= {"again": False, "mine": False, "explorable": False, "public": True, "public_link": link}
    return page(request, "release.html", **context, **release_facts(made))


@router.get("/public/{link}/release.json")
def public_json(request: Request, link: str) -> Response:
    """The release file."""
    service = service_of(request)
    facts = public.find(service, link)
    plain = explore.published(service, facts["id"]).to_dict()
    return download(plain_json(plain), f"{facts['dataset']}-{facts['kind']}.json", "application/json")


@router.get("/public/{link}/release.png")
def public_png(request: Request, link: str) -> Response:
    """The figure."""
    service = service_of(request)
    facts = public.find(service, link)
    drawn = releases.png_of(service.engine, service.shelf, facts["id"])
    return download(drawn, f"{facts['dataset']}-{facts['kind']}.png", "image/png")


@router.get("/compare")
def compare_page(request: Request) -> Response:
    """Several releases beside each other."""
    service, identity = service_of(request), may_read(request)
    names = list(dict.fromkeys(request.query_params.getlist("release")))
    if not 2 <= len(names) <= _MOST:
        raise Refusal("malformed", f"Choose from two to {_MOST} releases of the list, and compare them again.")
    found = [releases.find(service.engine, service.clock, identity, name) for name in names]
    made = [service.shelf.get(service.engine, name) for name in names]
    called = [f"{chr(ord('A') + k)}" for k in range(len(names))]
    return page(
        request,
        "compare.html",
        rows=list(zip(called, found, strict=True)),
        table=compare(made, called),
        forests=_together(called, made),
    )


def _together(called: list[str], made: list[Any]) -> list[dict[str, Any]]:
    """First estimates on one axis where they share outcome and unit, else each on an axis of its own."""
    groups: dict[Any, list[Any]] = {}
    captions: dict[Any, tuple[str, str]] = {}
    for name, release in zip(called, made, strict=True):
        kind = kind_of(release)
        forests = kind.charts(release).forests if kind is not None else ()
        if not forests:
            continue
        first: Forest = forests[0]
        key = (release.bounds.outcome_column, first.axis)
        captions.setdefault(key, (first.axis, first.caption))
        rows = groups.setdefault(key, [])
        for row in first.rows:
            label = name if len(first.rows) == 1 else f"{name}: {row.label}"
            rows.append(type(row)(label=label, text=row.text, marks=row.marks, total=False))
    words = "Thick bars are 80 % and thin bars 95 % intervals, noise included."
    return [forest_view(Forest(caption=words, axis=captions[key][0], rows=tuple(rows))) for key, rows in groups.items()]
