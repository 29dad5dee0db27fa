"""The programming interface for analysts: data sets, plans, requests, releases, and functions to ask."""

from __future__ import annotations

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from discreet.datasets._placeholder import dummy
from discreet.serve.audit_summary import summary
from discreet.serve.domain import budgets, jobs, plans, releases
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import queries as explore
from discreet.serve.domain.plans import Question
from discreet.serve.domain.requests import AnyAsked
from discreet.serve.domain.users import Identity
from discreet.serve.errors import TEXTS, Refusal
from discreet.serve.pages.rendering import may_read, may_request, service_of
from discreet.serve.service import Service


async def _reader(request: Request) -> Identity:
    """Who asks; in the event loop, because a thread would take longer than this does."""
    return may_read(request)


async def _spender(request: Request) -> Identity:
    return may_request(request)


Reader = Annotated[Identity, Depends(_reader)]
Spender = Annotated[Identity, Depends(_spender)]
Name = Annotated[str, Path(max_length=64, description="As the lists give it.")]
# Rows that are answered without leaving the event loop: a thread would take longer than they do.
_AT_ONCE = 64


class Problem(BaseModel):
    """Why something was refused, in fixed words."""

    error: str
    text: str


def refusals(*codes: str) -> dict[int | str, dict[str, Any]]:
    """How the schema documents refusals."""
    out: dict[int | str, dict[str, Any]] = {}
    for code in ("sign-in", "forbidden", "too-slow", "too-large", "malformed", "too-many", *codes):
        status, text = TEXTS[code]
        out.setdefault(status, {"model": Problem, "description": text})
    return out


router = APIRouter(prefix="/api/v1", responses=refusals("method"))


class Rows(BaseModel):
    """People to ask a released function about."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    rows: list[dict[str, float | str | bool]] = Field(
        min_length=1, max_length=2_000, description="One object per person, with exactly the declared covariates."
    )
    alpha: float = Field(default=0.05, gt=0, lt=1, description="One minus the level of the intervals.")


@router.get("/me", tags=["people"])
def whoami(identity: Reader) -> dict[str, Any]:
    """Who one is, and what one's token allows."""
    return {"person": identity.person, "name": identity.name, "role": identity.role, "scopes": sorted(identity.scopes)}


@router.get("/datasets", tags=["data sets"])
def datasets(request: Request, identity: Reader) -> list[dict[str, Any]]:
    """Data sets that one may use: public schema, no record."""
    return [dataset.public() for dataset in catalogue.listed(service_of(request).engine, identity)]


@router.get("/datasets/{dataset}", tags=["data sets"], responses=refusals("no-dataset"))
def dataset(request: Request, identity: Reader, dataset: Name) -> dict[str, Any]:
    """A data set's public schema and its budgets."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    return found.public() | {"budget": plain_bars(budgets.bars(service, found, identity))}


@router.get("/datasets/{dataset}/dummy", tags=["data sets"], responses=refusals("no-dataset"))
def dummy_rows(
    request: Request, identity: Reader, dataset: Name, n: Annotated[int, Query(ge=1, le=10_000)] = 100
) -> dict[str, Any]:
    """Made-up rows of the same schema, from the declared bounds alone: to try programs on."""
    found = catalogue.find(service_of(request).engine, identity, dataset)
    return dummy(found.bounds, n, outcome=found.outcome, treatment=found.treatment)


@router.post("/datasets/{dataset}/plan", tags=["data sets"], responses=refusals("no-dataset"))
def plan(request: Request, identity: Reader, dataset: Name, asked: Question) -> dict[str, Any]:
    """What a request would cost and bring: width, noise, detectable effect, or the epsilon for a width. Free."""
    found = catalogue.find(service_of(request).engine, identity, dataset)
    return plans.answer(found, asked.root).to_dict()


@router.post(
    "/datasets/{dataset}/requests",
    tags=["requests"],
    status_code=202,
    responses=refusals("no-dataset", "budget"),
)
def request_release(request: Request, identity: Spender, dataset: Name, asked: AnyAsked) -> dict[str, Any]:
    """Ask for a release. Its budget is reserved now and charged before a record is read; an identical request on
    unchanged data is answered from the stored release, for free."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    return jobs.submit(service, identity, found, asked)


@router.get("/requests", tags=["requests"])
def list_requests(request: Request, identity: Reader) -> list[dict[str, Any]]:
    """One's requests, the newest first."""
    return jobs.listed(service_of(request), identity)


@router.get("/requests/{job}", tags=["requests"], responses=refusals("no-job"))
def show_request(request: Request, identity: Reader, job: Name) -> dict[str, Any]:
    """How a request goes: waiting, working, released, failed or stopped."""
    return jobs.find(service_of(request), identity, job)


@router.post("/requests/{job}/stop", tags=["requests"], responses=refusals("no-job", "finished"))
def stop_request(request: Request, identity: Spender, job: Name) -> dict[str, Any]:
    """Stop a request. What was charged stays charged."""
    return jobs.stop(service_of(request), identity, job)


@router.get("/releases", tags=["releases"])
def list_releases(request: Request, identity: Reader) -> list[dict[str, Any]]:
    """Own and published releases, the newest first."""
    service = service_of(request)
    return releases.listed(service.engine, service.clock, identity)


@router.get("/releases/{release}", tags=["releases"], responses=refusals("no-release"))
def show_release(request: Request, identity: Reader, release: Name) -> dict[str, Any]:
    """A release, with its guarantee: what `discreet` reads back from a file."""
    service = service_of(request)
    facts = releases.find(service.engine, service.clock, identity, release)
    return facts | {"release": explore.published(service, release).to_dict()}


@router.get(
    "/releases/{release}/picture",
    tags=["releases"],
    responses=refusals("no-release") | {200: {"content": {"image/png": {}}}},
    response_class=Response,
)
def figure(request: Request, identity: Reader, release: Name) -> Response:
    """The figure of a release, as PNG."""
    service = service_of(request)
    releases.find(service.engine, service.clock, identity, release)
    return Response(releases.png_of(service.engine, service.shelf, release), media_type="image/png")


@router.post("/releases/{release}/publish", tags=["releases"], responses=refusals("no-release"))
def publish(request: Request, identity: Spender, release: Name) -> dict[str, Any]:
    """Show a release to everybody who may use its data set; it cannot be taken back."""
    service = service_of(request)
    releases.publish(service.engine, service.clock, identity, release)
    return releases.find(service.engine, service.clock, identity, release)


@router.post("/releases/{release}/effects", tags=["releases"], responses=refusals("no-release", "no-function"))
async def effects(request: Request, identity: Reader, release: Name, asked: Rows) -> Response:
    """Effects for people, with intervals where the release has any: free, and as often as one likes. What lies outside
    of the declared bounds counts as the nearer end, and is named in the warnings."""
    service = service_of(request)
    if not service.shelf.knows(identity.person, release):
        await run_sync(_visible, service, identity, release)
    made = service.shelf.peek(release)
    if made is not None and len(asked.rows) <= _AT_ONCE and not explore.secret(made):
        found = explore.answers(service, identity, release, asked.rows, asked.alpha)
    else:
        found = await run_sync(explore.answers, service, identity, release, asked.rows, asked.alpha)
    bounds = service.shelf.get(service.engine, release).bounds
    return JSONResponse({"effects": found, "warnings": explore.warnings(asked.rows, bounds)})


@router.get("/audit", tags=["evidence"])
def audit(identity: Reader) -> dict[str, Any]:
    """What the audit found, of proved and of published mechanisms."""
    return summary()


def _visible(service: Service, identity: Identity, release: str) -> None:
    """Whether somebody may see a function; remembered, because that is never taken back."""
    facts = releases.find(service.engine, service.clock, identity, release)
    made = service.shelf.get(service.engine, release)
    if not explore.asks(made):
        raise Refusal("no-function")
    if facts["person"] == identity.person:
        service.shelf.remember(identity.person, release)


def plain_bars(bars: dict[str, Any]) -> dict[str, Any]:
    """Budgets as plain JSON."""

    def plain(bar: dict[str, Any]) -> dict[str, Any]:
        return bar | {"cap": {"epsilon": bar["cap"].epsilon, "delta": bar["cap"].delta}}

    return bars | {"whole": plain(bars["whole"]), "analysts": [plain(bar) for bar in bars["analysts"]]}
