"""Pages: ask, wait, read a release, explore an effect function."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import UploadFile

from discreet.exceptions import DiscreetError
from discreet.releases.parts import labels
from discreet.serve.domain import budgets, jobs, plans, releases
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import queries as explore
from discreet.serve.domain.requests import TITLES, Asked, estimator_for
from discreet.serve.errors import Refusal
from discreet.serve.governance import notes, public
from discreet.serve.pages import figures, forms
from discreet.serve.pages.analyst import download, harmless, plain_json
from discreet.serve.pages.release_view import release_facts
from discreet.serve.pages.rendering import may_read, may_request, me, page, service_of

router = APIRouter(include_in_schema=False)


@router.get("/datasets/{dataset}/request")
def request_page(request: Request, dataset: str) -> Response:
    """What is about to be spent, to be confirmed."""
    service, identity = service_of(request), may_request(request)
    found = catalogue.find(service.engine, identity, dataset)
    given = dict(request.query_params)
    problem, asked, answer, fits, leaves = None, None, None, False, None
    try:
        asked = forms.asked(given, found.bounds)
        estimator_for(found, asked)
        leaves = budgets.what_if(service, found, identity, asked)
        fits = leaves["admitted"]
        if asked.entry.planned_as is not None:
            answer = plans.answer(found, forms.planned(given | {"solve": ""}, found.bounds))
    except DiscreetError as error:
        problem = str(error)
    context: dict[str, Any] = {"dataset": found, "asked": asked, "answer": answer, "problem": problem, "fits": fits}
    context["leaves"] = leaves
    context |= {"given": given, "kinds": TITLES, "bars": budgets.bars(service, found, identity)}
    context |= {"back": f"/datasets/{found.id}/plan?{urlencode(given)}"}
    return page(request, "request.html", 200 if asked else 422, **context)


@router.post("/datasets/{dataset}/request")
async def request_release(request: Request, dataset: str) -> Response:
    """Queue a request, and go where its progress shows."""
    form = {name: str(value) for name, value in (await request.form()).items()}
    return await _in_thread(_submit, request, dataset, form)


def _submit(request: Request, dataset: str, form: dict[str, str]) -> Response:
    service, identity = service_of(request), may_request(request)
    found = catalogue.find(service.engine, identity, dataset)
    asked: Asked = forms.asked(form, found.bounds)
    made = jobs.submit(service, identity, found, asked)
    if made["release"] is not None:
        return RedirectResponse(f"/releases/{made['release']}?again=1", status_code=303)
    return RedirectResponse(f"/requests/{made['job']}", status_code=303)


@router.get("/requests")
def requests_page(request: Request) -> Response:
    """One's requests."""
    service, identity = service_of(request), may_read(request)
    return page(request, "requests.html", rows=jobs.listed(service, identity))


@router.get("/requests/{job}")
def job_page(request: Request, job: str) -> Response:
    """How a request goes; when it is done, its release follows by itself."""
    service, identity = service_of(request), may_read(request)
    found = jobs.find(service, identity, job)
    if "hx-request" in request.headers:
        answer = page(request, "job_state.html", job=found)
        if found["state"] == "done":
            answer.headers["hx-redirect"] = f"/releases/{found['release']}"
        return answer
    if found["state"] == "done":
        return RedirectResponse(f"/releases/{found['release']}", status_code=303)
    return page(request, "job.html", job=found)


@router.post("/requests/{job}/stop")
def stop_job(request: Request, job: str) -> Response:
    """Ask for the end of a request."""
    jobs.stop(service_of(request), may_request(request), job)
    return RedirectResponse(f"/requests/{job}", status_code=303)


@router.get("/releases")
def releases_page(request: Request) -> Response:
    """Own and published releases."""
    service, identity = service_of(request), may_read(request)
    return page(request, "releases.html", rows=releases.listed(service.engine, service.clock, identity), kinds=TITLES)


@router.get("/releases/{release}")
def release_page(request: Request, release: str) -> Response:
    """What was found, what is promised, and how to write about it."""
    service, identity = service_of(request), may_read(request)
    facts = releases.find(service.engine, service.clock, identity, release)
    notes.read(service, identity, facts)
    made = service.shelf.get(service.engine, release)
    context: dict[str, Any] = {"facts": facts, "figures": releases.figures_of(service.engine, release)}
    context |= {"again": "again" in request.query_params, "mine": facts["person"] == identity.person}
    link = public.link_of(service, release) if identity.curator else None
    context |= {"public": False, "explorable": explore.asks(made), "public_link": link}
    return page(request, "release.html", **context, **release_facts(made))


@router.get("/releases/{release}/release.json")
def release_json(request: Request, release: str) -> Response:
    """The release file."""
    service, identity = service_of(request), may_read(request)
    facts = releases.find(service.engine, service.clock, identity, release)
    plain = explore.published(service, release).to_dict()
    notes.read(service, identity, facts, "JSON")
    return download(plain_json(plain), f"{facts['dataset']}-{facts['kind']}-{release}.json", "application/json")


@router.get("/releases/{release}/figure-{number}.svg")
def release_svg(request: Request, release: str, number: int) -> Response:
    """A figure for a paper."""
    service, identity = service_of(request), may_read(request)
    facts = releases.find(service.engine, service.clock, identity, release)
    drawn = releases.svg_of(service.shelf.get(service.engine, release), number)
    return download(drawn, f"{facts['dataset']}-{facts['kind']}-{release}-{number}.svg", "image/svg+xml")


@router.get("/releases/{release}/release.png")
def release_png(request: Request, release: str) -> Response:
    """The figure."""
    service, identity = service_of(request), may_read(request)
    facts = releases.find(service.engine, service.clock, identity, release)
    drawn = releases.png_of(service.engine, service.shelf, release)
    notes.read(service, identity, facts, "PNG")
    return download(drawn, f"{facts['dataset']}-{facts['kind']}-{release}.png", "image/png")


@router.post("/releases/{release}/publish")
def publish(request: Request, release: str) -> Response:
    """Show a release to all who may use the data set."""
    service, identity = service_of(request), me(request)
    if not ({"request", "curate"} & identity.scopes):
        raise Refusal("forbidden")
    releases.publish(service.engine, service.clock, identity, release)
    notes.published(service, identity, releases.find(service.engine, service.clock, identity, release))
    return RedirectResponse(f"/releases/{release}", status_code=303)


@router.get("/releases/{release}/explore")
def explore_page(request: Request, release: str) -> Response:
    """Curves with bands, a form for one person, and a file for many."""
    service, identity = service_of(request), may_read(request)
    facts = releases.find(service.engine, service.clock, identity, release)
    made = service.shelf.get(service.engine, release)
    if not explore.asks(made):
        raise Refusal("no-function")
    notes.read(service, identity, facts)
    curves = figures.curves(made)
    return page(request, "explore.html", facts=facts, bounds=made.bounds, curves=curves, start=explore.middle(made))


@router.post("/releases/{release}/explore")
async def explore_person(request: Request, release: str) -> Response:
    """The answer for one person, as a part of the page. Some functions write answers down: no address does that."""
    form = {name: str(value) for name, value in (await request.form()).items()}
    return await _in_thread(_answer_person, request, release, form)


def _answer_person(request: Request, release: str, form: dict[str, str]) -> Response:
    made = _function(request, release)
    rows = [forms.person(form, made.bounds)]
    found = explore.answers(service_of(request), me(request), release, rows)[0]
    beyond = [explore.outside_words(name, made.bounds) for name in explore.outside(rows, made.bounds)[0]]
    words = labels.effect_axis(made.bounds)
    return page(request, "answer.html", found=found, bounds=made.bounds, outside=beyond, words=words)


def _function(request: Request, release: str) -> Any:
    """A release that one may see and ask about people."""
    service, identity = service_of(request), may_read(request)
    releases.find(service.engine, service.clock, identity, release)
    made = service.shelf.get(service.engine, release)
    if not explore.asks(made):
        raise Refusal("no-function")
    return made


@router.post("/releases/{release}/upload")
async def upload(request: Request, release: str) -> Response:
    """Effects for the rows of a CSV file, as a CSV file; its last column names what lies outside of its bounds."""
    async with request.form(max_files=1, max_fields=10) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Refusal("malformed")
        body = await file.read()
    return await _in_thread(_answer_file, request, release, body)


def _answer_file(request: Request, release: str, body: bytes) -> Response:
    service, made = service_of(request), _function(request, release)
    rows = explore.rows_in(body, made.bounds, service.settings.upload_rows)
    found = explore.answers(service, me(request), release, rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([harmless(name) for name in [*made.bounds.names, *found[0], "outside"]])
    for row, answer, beyond in zip(rows, found, explore.outside(rows, made.bounds), strict=True):
        given = [row[name] for name in made.bounds.names]
        writer.writerow([harmless(value) for value in [*given, *answer.values(), "; ".join(beyond)]])
    return download(out.getvalue(), f"effects-{release}.csv", "text/csv")


async def _in_thread(function: Any, *args: Any) -> Response:
    from anyio.to_thread import run_sync

    answer: Response = await run_sync(function, *args)
    return answer
