"""Pages for curators: approvals, data sets, caps, access, the log."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ValidationError

from discreet.data.bounds import Bounds
from discreet.exceptions import DiscreetError, InvalidInput
from discreet.ledger.governance.search import LogFilter
from discreet.serve.domain import administration as curating
from discreet.serve.domain import budgets
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.domain.administration import Cap
from discreet.serve.domain.datasets import NewDataset
from discreet.serve.errors import Refusal
from discreet.serve.governance import approvals, log_view, notes
from discreet.serve.pages.analyst import download
from discreet.serve.pages.rendering import may_curate, page, service_of
from discreet.serve.pages.requests import _in_thread
from discreet.serve.service import Service

router = APIRouter(prefix="/curator", include_in_schema=False)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_BOUNDS = """# What is public about the records: written down, never computed from them.
outcome = {low = 0, high = 40}
propensity = {low = 0.05, high = 0.95}

[covariates.age]
low = 18
high = 95

[covariates.sex]
levels = ["f", "m"]
"""


@router.get("")
def overview(request: Request) -> Response:
    """What waits for a decision, and all data sets."""
    service, identity = service_of(request), may_curate(request)
    rows = [(d, budgets.bars(service, d, identity)) for d in catalogue.listed(service.engine, identity)]
    stale = {dataset.id for dataset, _ in rows if not catalogue.unchanged(dataset)}
    return page(request, "curator.html", rows=rows, stale=stale, halted=service.ledger.halted, **_waiting(service))


def _waiting(service: Service, dataset: str | None = None) -> dict[str, Any]:
    """What waits for a second curator, and whether there is one."""
    return {
        "approvals": approvals.waiting(service, dataset),
        "curators": sum(person["role"] == "curator" for person in people.everybody(service.engine)),
        "needed": service.ledger.curators,
        "anchor_problem": service.anchoring.problem,
    }


@router.post("/approvals/{proposal}")
async def decide(request: Request, proposal: int) -> Response:
    """Approve or reject what was proposed."""
    return await _in_thread(_decide, request, proposal, await _form(request))


def _decide(request: Request, proposal: int, form: dict[str, str]) -> Response:
    service, identity = service_of(request), may_curate(request)
    if "reject" in form:
        approvals.reject(service, identity, proposal)
    else:
        approvals.approve(service, identity, proposal, again="again" in form)
    return RedirectResponse("/curator", status_code=303)


@router.post("/resume")
def resume(request: Request) -> Response:
    """Propose to lift a halt of everything."""
    curating.resume(service_of(request), may_curate(request))
    return RedirectResponse("/curator", status_code=303)


@router.get("/datasets/new")
def new_dataset(request: Request) -> Response:
    """The form for a data set."""
    may_curate(request)
    return page(request, "new_dataset.html", given={"bounds": _BOUNDS}, problem=None)


@router.post("/datasets/new")
async def register(request: Request) -> Response:
    """Register a data set."""
    return await _in_thread(_register, request, await _form(request))


def _register(request: Request, form: dict[str, str]) -> Response:
    service, identity = service_of(request), may_curate(request)
    try:
        bounds = Bounds.from_toml(form.get("bounds", ""))
        known = form.get("propensity", "").strip()
        new = _model(
            NewDataset,
            {name: form.get(name, "").strip() for name in ("id", "title", "about", "source", "outcome", "treatment")}
            | {"bounds": bounds.to_dict(), "propensity": _number_or_text(known) if known else None}
            | {"epsilon": form.get("epsilon", ""), "delta": form.get("delta", "").strip() or None}
            | {"records_are_public": "n_public" in form, "records_about": form.get("n_about", "").strip() or None}
            | {"admits_claimed": "claimed" in form},
        )
        proposal = curating.register(service, identity, new)
    except DiscreetError as error:
        return page(request, "new_dataset.html", 422, given=form, problem=str(error))
    # It is listed when another curator has approved it.
    return RedirectResponse("/curator" if proposal else f"/curator/datasets/{new.id}", status_code=303)


@router.get("/datasets/{dataset}")
def manage(request: Request, dataset: str) -> Response:
    """One data set: caps, access, freeze."""
    service, identity = service_of(request), may_curate(request)
    return _manage(request, catalogue.find(service.engine, identity, dataset))


def _manage(request: Request, found: catalogue.Dataset, problem: str | None = None) -> Response:
    service, identity = service_of(request), may_curate(request)
    analysts = [person for person in people.everybody(service.engine) if person["role"] == "analyst"]
    context: dict[str, Any] = {"dataset": found, "bars": budgets.bars(service, found, identity), "problem": problem}
    context |= {"analysts": analysts, "granted": catalogue.granted(service.engine, found.id)}
    context |= {"beside": catalogue.beside(service, found)}
    context |= {"waiting": approvals.waiting(service, found.id)}
    return page(request, "manage.html", 422 if problem else 200, **context, unchanged=catalogue.unchanged(found))


@router.post("/datasets/{dataset}/{action}")
async def act(request: Request, dataset: str, action: str) -> Response:
    """Change a cap, give access, freeze, check again."""
    return await _in_thread(_act, request, dataset, action, await _form(request))


def _act(request: Request, dataset: str, action: str, form: dict[str, str]) -> Response:
    service, identity = service_of(request), may_curate(request)
    found = catalogue.find(service.engine, identity, dataset)
    try:
        if action == "cap":
            curating.set_cap(service, identity, found.id, _cap(form).budget())
        elif action == "allow":
            curating.allow(service, identity, found.id, form.get("person", ""), _cap(form).budget())
        elif action == "deny":
            curating.deny(service, identity, found.id, form.get("person", ""))
        elif action == "freeze":
            reason = form.get("reason", "")
            curating.freeze(service, identity, found.id, frozen=form.get("frozen") == "1", reason=reason)
        elif action == "recheck":
            curating.recheck(service, identity, found)
        else:
            raise InvalidInput("There is no such action: use the buttons of the page.")
    except DiscreetError as error:
        return _manage(request, found, str(error))
    return RedirectResponse(f"/curator/datasets/{found.id}", status_code=303)


@router.get("/people")
def people_page(request: Request) -> Response:
    """People and their tokens."""
    may_curate(request)
    return _people(request)


def _people(
    request: Request, made: str | None = None, problem: str | None = None, waits: int | None = None
) -> Response:
    service = service_of(request)
    known = people.everybody(service.engine)
    tokens = people.tokens_of(service.engine)
    context: dict[str, Any] = {"people": known, "tokens": tokens, "made": made, "problem": problem, "waits": waits}
    return page(request, "people.html", 422 if problem else 200, now=service.clock.now(), **context)


@router.post("/people")
async def add_person(request: Request) -> Response:
    """Add an analyst, with a first token."""
    return await _in_thread(_add_person, request, await _form(request))


def _add_person(request: Request, form: dict[str, str]) -> Response:
    service, identity = service_of(request), may_curate(request)
    try:
        if form.get("role", "analyst") == "curator":
            notes.refused(service, "making another curator", identity)
            raise Refusal("other-curator")
        if form.get("role", "analyst") != "analyst":
            raise InvalidInput("role must be analyst: choose it.")
        made, proposal = curating.admit(service, identity, form.get("person", "").strip(), form.get("name", ""))
    except DiscreetError as error:
        return _people(request, problem=str(error))
    return _people(request, made=made, waits=proposal)


@router.post("/people/{person}/tokens")
def add_token(request: Request, person: str) -> Response:
    """Another token for somebody; it is shown this once."""
    service, identity = service_of(request), may_curate(request)
    made, proposal = curating.make_token(service, identity, person)
    return _people(request, made=made, waits=proposal)


@router.post("/tokens/{token}/revoke")
def revoke(request: Request, token: str) -> Response:
    """End a token; another curator's with the approval of a second."""
    proposal = curating.revoke_token(service_of(request), may_curate(request), token)
    return RedirectResponse("/curator" if proposal else "/curator/people", status_code=303)


@router.get("/log")
def log_page(request: Request) -> Response:
    """Lines of the log in words, those that match a filter, and whether all of it is intact."""
    service, _ = service_of(request), may_curate(request)
    given = request.query_params
    check = curating.verified(service, given["anchor"] or None) if "anchor" in given else None
    wanted, number = _wanted(request)
    rows, count = log_view.page(service, wanted)
    context: dict[str, Any] = {"rows": rows, "count": count, "check": check, "wanted": wanted, "number": number}
    context |= {"pages": max(1, -(-count // log_view.PAGE)), "query": urlencode(_filter(wanted))}
    return page(request, "log.html", **context, people=people.everybody(service.engine), words=log_view.ALL_WORDS)


def _wanted(request: Request) -> tuple[LogFilter, int]:
    """The filter of an address, and the number of the page."""
    given = {name: request.query_params.get(name, "")[:100] for name in ("who", "what", "dataset", "since", "until")}
    for name in ("since", "until"):
        if given[name] and not _DAY.fullmatch(given[name]):
            raise InvalidInput(f"{name} must be a day such as 2026-01-31: choose one.")
    text = request.query_params.get("page", "1")
    number = int(text) if text.isdecimal() and 0 < len(text) < 7 else 1
    return LogFilter(**given, skip=max(0, number - 1) * log_view.PAGE), max(1, number)


def _filter(wanted: LogFilter) -> dict[str, str]:
    return {name: value for name, value in asdict(wanted).items() if value and name != "skip"}


@router.get("/log.csv")
def export_table(request: Request) -> Response:
    """Lines that match a filter, in words, as a table."""
    service, identity = service_of(request), may_curate(request)
    wanted, _ = _wanted(request)
    notes.note(service, "log exported", identity, daily=True, form="csv")
    return download(log_view.exported(service, replace(wanted, skip=0)), "log.csv", "text/csv")


@router.get("/log.jsonl")
def export(request: Request) -> Response:
    """All of the log, to be kept elsewhere and verified there."""
    service, identity = service_of(request), may_curate(request)
    notes.note(service, "log exported", identity, daily=True, form="jsonl")
    text = "".join(f"{entry.line}\n" for entry in service.ledger.log())
    return download(text, "ledger.jsonl", "application/x-ndjson")


async def _form(request: Request) -> dict[str, str]:
    return {name: str(value) for name, value in (await request.form()).items()}


def _cap(form: dict[str, str]) -> Cap:
    cap: Cap = _model(Cap, {"epsilon": form.get("epsilon", ""), "delta": form.get("delta", "").strip() or None})
    return cap


def _model(model: type[BaseModel], values: dict[str, Any]) -> Any:
    try:
        return model(**values)
    except ValidationError as error:
        field = str((error.errors()[0]["loc"] or ("a field",))[0])
        raise InvalidInput(f"{field} has a value that cannot be used: check it.") from None


def _number_or_text(text: str) -> float | str:
    try:
        return float(json.loads(text))
    except (ValueError, TypeError):
        return text
