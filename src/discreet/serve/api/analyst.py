"""The programming interface for analysts: data sets, plans, requests, releases, and functions to ask."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Security
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from discreet.datasets._placeholder import dummy
from discreet.serve.api.answers import (
    AuditAnswer,
    DatasetAnswer,
    DatasetFacts,
    Effects,
    Job,
    Me,
    PageOf,
    PlanAnswer,
    ReleaseAnswer,
    ReleaseFacts,
    ReleaseFile,
    Submitted,
    refusals,
)
from discreet.serve.audit_summary import summary
from discreet.serve.domain import budgets, jobs, plans, releases
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import queries as explore
from discreet.serve.domain.combinations import Combination, combined
from discreet.serve.domain.datasets import Dataset
from discreet.serve.domain.plans import Question
from discreet.serve.domain.requests import AnyAsked, estimator_for, kinds_for
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.governance import notes
from discreet.serve.pages.rendering import may_read, may_request, service_of
from discreet.serve.service import Service
from discreet.serve.storage import idempotency
from discreet.serve.storage.paging import MOST, USUAL, Page

BEARER = HTTPBearer(auto_error=False, description="A token, as a curator or `POST .../tokens` gives it.")


async def _reader(request: Request) -> Identity:
    """Who asks; in the event loop, because a thread would take longer than this does."""
    return may_read(request)


async def _spender(request: Request) -> Identity:
    return may_request(request)


async def page_of(
    limit: Annotated[int, Query(ge=1, le=MOST, description="Items of a page, at most.")] = USUAL,
    after: Annotated[
        str | None, Query(max_length=400, description="What the page before has named as `next`; none for the first.")
    ] = None,
) -> Page:
    """The part of a list that is asked for, by the same convention everywhere."""
    return Page(limit, after)


Reader = Annotated[Identity, Depends(_reader)]
Spender = Annotated[Identity, Depends(_spender)]
Paged = Annotated[Page, Depends(page_of)]
Name = Annotated[str, Path(max_length=64, description="As the lists give it.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=idempotency.LONGEST,
        pattern=r"^[\x21-\x7e]+$",
        description="What you call this request: sent again under the same key, it gives the first answer again, and "
        "spends nothing more.",
    ),
]
Match = Annotated[
    str | None, Header(alias="If-None-Match", max_length=1_000, description="The ETag of what you have already.")
]
_TAGGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "Changes when the answer does.", "schema": {"type": "string"}}}},
    304: {"description": "What you have is what there is."},
}
# Rows that are answered without leaving the event loop: a thread would take longer than they do.
_AT_ONCE = 64

router = APIRouter(prefix="/api/v1", responses=refusals("method"), dependencies=[Security(BEARER)])


class Rows(BaseModel):
    """People to ask a released function about."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    rows: list[dict[str, float | str | bool]] = Field(
        min_length=1, max_length=2_000, description="One object per person, with exactly the declared covariates."
    )
    alpha: float = Field(default=0.05, gt=0, lt=1, description="One minus the level of the intervals.")


@router.get("/me", tags=["people"], response_model=Me)
def whoami(identity: Reader) -> dict[str, Any]:
    """Who one is, and what one's token allows."""
    return {"person": identity.person, "name": identity.name, "role": identity.role, "scopes": sorted(identity.scopes)}


@router.get("/datasets", tags=["data sets"], response_model=PageOf[DatasetFacts])
def datasets(request: Request, identity: Reader, page: Paged) -> dict[str, Any]:
    """Data sets that one may use, the oldest first: public schema, no record."""
    found, following = catalogue.paged(service_of(request).engine, identity, page)
    return {"items": [public(dataset) for dataset in found], "next": following}


@router.get(
    "/datasets/{dataset}",
    tags=["data sets"],
    responses=refusals("no-dataset"),
    response_model=DatasetAnswer,
    response_model_exclude_unset=True,
)
def dataset(request: Request, identity: Reader, dataset: Name) -> dict[str, Any]:
    """A data set's public schema and its budgets."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    return public(found) | {"budget": plain_bars(budgets.bars(service, found, identity))}


@router.post("/datasets/{dataset}/what-if", tags=["data sets"], responses=refusals("no-dataset"))
def what_if(request: Request, identity: Reader, dataset: Name, asked: AnyAsked) -> dict[str, Any]:
    """Whether a request would be admitted, and what it would leave: free, and nothing is reserved."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    estimator_for(found, asked)
    return budgets.what_if(service, found, identity, asked)


@router.get("/datasets/{dataset}/dummy", tags=["data sets"], responses=refusals("no-dataset"))
def dummy_rows(
    request: Request, identity: Reader, dataset: Name, n: Annotated[int, Query(ge=1, le=10_000)] = 100
) -> dict[str, list[float | str]]:
    """Made-up rows of the same schema, column by column, from the declared bounds alone: to try programs on."""
    found = catalogue.find(service_of(request).engine, identity, dataset)
    facts: Any = {"outcome": found.outcome, "treatment": found.treatment, "further": catalogue.specs_of(found)}
    made: dict[str, list[float | str]] = dummy(found.bounds, n, **facts)
    return made


@router.post(
    "/datasets/{dataset}/plan", tags=["data sets"], responses=refusals("no-dataset"), response_model=PlanAnswer
)
def plan(request: Request, identity: Reader, dataset: Name, asked: Question) -> dict[str, Any]:
    """What a request would cost and bring: width, noise, detectable effect, or the epsilon for a width. Free."""
    found = catalogue.find(service_of(request).engine, identity, dataset)
    return plans.answer(found, asked.root).to_dict()


@router.post(
    "/datasets/{dataset}/requests",
    tags=["requests"],
    status_code=202,
    responses=refusals("no-dataset", "budget", "under-way", "other-request"),
    response_model=Submitted,
)
def request_release(
    request: Request, identity: Spender, dataset: Name, asked: AnyAsked, response: Response, key: Key = None
) -> dict[str, Any]:
    """Ask for a release. Its budget is reserved now and charged before a record is read; an identical request on
    unchanged data is answered from the stored release, for free. With an `Idempotency-Key` it is safe to send again."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    if key is None:
        return jobs.submit(service, identity, found, asked)

    def submit(name: str) -> dict[str, Any]:
        return jobs.submit(service, identity, found, asked, name)

    answer, again = idempotency.once(service, identity, key, [found.id, asked.plain()], submit)
    response.headers["idempotency-replayed"] = "true" if again else "false"
    return answer


@router.get("/requests", tags=["requests"], response_model=PageOf[Job])
def list_requests(request: Request, identity: Reader, page: Paged) -> dict[str, Any]:
    """One's requests, the newest first."""
    found, following = jobs.paged(service_of(request), identity, page)
    return {"items": found, "next": following}


@router.get("/requests/{job}", tags=["requests"], responses=refusals("no-job"), response_model=Job)
def show_request(request: Request, identity: Reader, job: Name) -> dict[str, Any]:
    """How a request goes: waiting, working, released, failed or stopped."""
    return jobs.find(service_of(request), identity, job)


@router.post("/requests/{job}/stop", tags=["requests"], responses=refusals("no-job", "finished"), response_model=Job)
def stop_request(request: Request, identity: Spender, job: Name) -> dict[str, Any]:
    """Stop a request. What was charged stays charged."""
    return jobs.stop(service_of(request), identity, job)


@router.get("/releases", tags=["releases"], response_model=PageOf[ReleaseFacts])
def list_releases(request: Request, identity: Reader, page: Paged) -> dict[str, Any]:
    """Own and published releases, the newest first."""
    service = service_of(request)
    found, following = releases.paged(service.engine, service.clock, identity, page)
    return {"items": found, "next": following}


@router.get(
    "/releases/{release}",
    tags=["releases"],
    responses=refusals("no-release") | _TAGGED,
    response_model=ReleaseAnswer,
)
def show_release(request: Request, identity: Reader, release: Name, match: Match = None) -> Response:
    """A release, with its guarantee: what `discreet` reads back from a file."""
    service = service_of(request)
    facts = releases.find(service.engine, service.clock, identity, release)
    notes.read(service, identity, facts, "JSON")
    answer = ReleaseAnswer(**facts, release=explore.published(service, release).to_dict())
    return tagged(answer.model_dump_json().encode(), match, "application/json")


@router.get(
    "/releases/{release}/picture",
    tags=["releases"],
    responses=refusals("no-release") | _TAGGED | {200: _TAGGED[200] | {"content": {"image/png": {}}}},
    response_class=Response,
)
def figure(request: Request, identity: Reader, release: Name, match: Match = None) -> Response:
    """The figure of a release, as PNG."""
    service = service_of(request)
    notes.read(service, identity, releases.find(service.engine, service.clock, identity, release), "PNG")
    return tagged(releases.png_of(service.engine, service.shelf, release), match, "image/png")


@router.post(
    "/releases/{release}/publish", tags=["releases"], responses=refusals("no-release"), response_model=ReleaseFacts
)
def publish(request: Request, identity: Spender, release: Name) -> dict[str, Any]:
    """Show a release to everybody who may use its data set; it cannot be taken back."""
    service = service_of(request)
    releases.publish(service.engine, service.clock, identity, release)
    notes.published(service, identity, releases.find(service.engine, service.clock, identity, release))
    return releases.find(service.engine, service.clock, identity, release)


@router.post(
    "/releases/{release}/effects",
    tags=["releases"],
    responses=refusals("no-release", "no-function"),
    response_model=Effects,
    response_model_exclude_none=True,
)
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


@router.post("/combinations", tags=["releases"], responses=refusals("no-release"), response_model=ReleaseFile)
def combine(request: Request, identity: Reader, asked: Combination) -> dict[str, Any]:
    """One estimate and interval from several releases of one average effect: free, and kept nowhere."""
    plain: dict[str, Any] = combined(service_of(request), identity, asked).to_dict()
    return plain


@router.get("/audit", tags=["evidence"], response_model=AuditAnswer)
def audit(identity: Reader) -> dict[str, Any]:
    """What the audit found, of proved and of published mechanisms."""
    return summary()


def public(dataset: Dataset) -> dict[str, Any]:
    """What analysts may know of a data set."""
    return dataset.public() | {"kinds": kinds_for(dataset)}


def tagged(body: bytes, match: str | None, kind: str) -> Response:
    """An answer with its ETag; without its body, for those who have it already."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    # Whoever keeps it has to ask whether it is still so: access may have been taken away.
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    known = {each.strip().removeprefix("W/") for each in (match or "").split(",")}
    if known & {tag, "*"}:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


def _visible(service: Service, identity: Identity, release: str) -> None:
    """Whether somebody may see a function; remembered, because that is never taken back."""
    facts = releases.find(service.engine, service.clock, identity, release)
    made = service.shelf.get(service.engine, release)
    if not explore.asks(made):
        raise Refusal("no-function")
    notes.read(service, identity, facts)
    if facts["person"] == identity.person:
        service.shelf.remember(identity.person, release)


def plain_bars(bars: dict[str, Any]) -> dict[str, Any]:
    """Budgets as plain JSON."""

    def plain(bar: dict[str, Any]) -> dict[str, Any]:
        return bar | {"cap": {"epsilon": bar["cap"].epsilon, "delta": bar["cap"].delta}}

    return bars | {"whole": plain(bars["whole"]), "analysts": [plain(bar) for bar in bars["analysts"]]}
