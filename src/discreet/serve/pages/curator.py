"""Pages for curators: approvals, data sets, caps, access, the log."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ValidationError

from discreet.data.bounds import Bounds
from discreet.exceptions import DiscreetError, InvalidInput
from discreet.serve.domain import administration as curating
from discreet.serve.domain import budgets
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.domain.administration import Cap
from discreet.serve.domain.datasets import NewDataset
from discreet.serve.errors import Refusal
from discreet.serve.pages.analyst import download
from discreet.serve.pages.rendering import may_curate, page, service_of
from discreet.serve.pages.requests import _in_thread

router = APIRouter(prefix="/curator", include_in_schema=False)
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
    return page(request, "curator.html", rows=rows, stale=stale, approvals=curating.approvals(service))


@router.post("/approvals/{proposal}")
def approve(request: Request, proposal: int) -> Response:
    """Approve what another curator has proposed."""
    budgets.approve(service_of(request), may_curate(request), proposal)
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
        curating.register(service, identity, new)
    except DiscreetError as error:
        return page(request, "new_dataset.html", 422, given=form, problem=str(error))
    return RedirectResponse(f"/curator/datasets/{new.id}", status_code=303)


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
    context |= {"beside": catalogue.beside(service.engine, found)}
    context |= {"waiting": [each for each in curating.approvals(service) if each["dataset"] == found.id]}
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
            budgets.set_cap(service, identity, found.id, _cap(form).budget())
        elif action == "allow":
            curating.allow(service, identity, found.id, form.get("person", ""), _cap(form).budget())
        elif action == "deny":
            catalogue.grant(service.engine, found.id, form.get("person", ""), allowed=False)
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


def _people(request: Request, made: str | None = None, problem: str | None = None) -> Response:
    service = service_of(request)
    known = people.everybody(service.engine)
    tokens = people.tokens_of(service.engine)
    context: dict[str, Any] = {"people": known, "tokens": tokens, "made": made, "problem": problem}
    return page(request, "people.html", 422 if problem else 200, now=service.clock.now(), **context)


@router.post("/people")
async def add_person(request: Request) -> Response:
    """Add an analyst, with a first token."""
    return await _in_thread(_add_person, request, await _form(request))


def _add_person(request: Request, form: dict[str, str]) -> Response:
    service, _ = service_of(request), may_curate(request)
    try:
        person = form.get("person", "").strip()
        if form.get("role", "analyst") == "curator":
            raise Refusal("other-curator")
        people.add_person(
            service.engine, service.clock, person=person, name=form.get("name", ""), role=form.get("role", "analyst")
        )
        made = people.add_token(service.engine, service.clock, person=person, label="first token")
    except DiscreetError as error:
        return _people(request, problem=str(error))
    return _people(request, made=made)


@router.post("/people/{person}/tokens")
def add_token(request: Request, person: str) -> Response:
    """Another token for somebody; it is shown this once."""
    service, identity = service_of(request), may_curate(request)
    people.may_admit(service.engine, identity, person)
    return _people(request, made=people.add_token(service.engine, service.clock, person=person))


@router.post("/tokens/{token}/revoke")
def revoke(request: Request, token: str) -> Response:
    """End a token."""
    service, _ = service_of(request), may_curate(request)
    people.revoke(service.engine, service.clock, token)
    service.forget_identities()
    return RedirectResponse("/curator/people", status_code=303)


@router.get("/log")
def log_page(request: Request) -> Response:
    """The latest lines of the log, and whether all of it is intact."""
    service, _ = service_of(request), may_curate(request)
    check = curating.verified(service, request.query_params.get("anchor") or None) if request.query_params else None
    lines = curating.log(service)
    return page(request, "log.html", lines=lines[::-1][: curating.LINES], count=len(lines), check=check)


@router.get("/log.jsonl")
def export(request: Request) -> Response:
    """All of the log, to be kept elsewhere and verified there."""
    service, _ = service_of(request), may_curate(request)
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
