"""The programming interface for curators: data sets, caps, approvals, access, the log."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Security
from pydantic import BaseModel, ConfigDict, Field

from discreet.ledger.governance.search import LogFilter
from discreet.serve.api.analyst import BEARER, Name, public
from discreet.serve.api.answers import refusals
from discreet.serve.domain import administration as curating
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.domain.administration import Cap
from discreet.serve.domain.datasets import NewDataset
from discreet.serve.domain.users import Identity
from discreet.serve.governance import approvals, log_view, notes
from discreet.serve.pages.rendering import may_curate, service_of

router = APIRouter(
    prefix="/api/v1/curator", tags=["curators"], responses=refusals("method"), dependencies=[Security(BEARER)]
)
Curator = Annotated[Identity, Depends(may_curate)]
Number = Annotated[int, Path(ge=0, le=10**9, description="Of a proposal, as the list gives it.")]


class NewPerson(BaseModel):
    """An analyst who may use the service."""

    model_config = ConfigDict(extra="forbid")

    person: str = Field(max_length=40, description="Short name: lower-case letters, digits, hyphens.")
    name: str = Field(max_length=80)
    role: Literal["analyst"] = "analyst"


class NewToken(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    label: str = Field(default="", max_length=80)
    scopes: list[str] | None = Field(default=None, max_length=5)
    days: float = Field(default=90.0, gt=0, le=people.LONGEST)


class Reason(BaseModel):
    """Why a switch is turned."""

    model_config = ConfigDict(extra="forbid")

    frozen: bool
    reason: str = Field(default="", max_length=200)


@router.post("/datasets", status_code=202)
def register(request: Request, identity: Curator, new: NewDataset) -> dict[str, Any]:
    """Register a data set by reference: every record is checked once, now, and another curator approves."""
    return {"proposal": curating.register(service_of(request), identity, new), "id": new.id}


@router.post("/datasets/{dataset}/recheck", responses=refusals("no-dataset"))
def recheck(request: Request, identity: Curator, dataset: Name) -> dict[str, Any]:
    """Check a source that has changed, so that it can be used again."""
    service = service_of(request)
    curating.recheck(service, identity, catalogue.find(service.engine, identity, dataset))
    return public(catalogue.find(service.engine, identity, dataset))


@router.put("/datasets/{dataset}/cap", responses=refusals("no-dataset"))
def set_cap(request: Request, identity: Curator, dataset: Name, cap: Cap) -> dict[str, Any]:
    """Lower a cap, or propose a higher one to another curator."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    return {"proposal": curating.set_cap(service, identity, found.id, cap.budget())}


@router.put("/datasets/{dataset}/analysts/{person}", responses=refusals("no-dataset"))
def allow(request: Request, identity: Curator, dataset: Name, person: Name, cap: Cap) -> dict[str, Any]:
    """Let an analyst use a data set up to a cap: another curator approves, unless it lowers what there is."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    return {"proposal": curating.allow(service, identity, found.id, person, cap.budget())}


@router.delete("/datasets/{dataset}/analysts/{person}", responses=refusals("no-dataset"))
def deny(request: Request, identity: Curator, dataset: Name, person: Name) -> dict[str, Any]:
    """Close a data set to an analyst; what was released to them stays theirs."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    curating.deny(service, identity, found.id, person)
    return {"analysts": catalogue.granted(service.engine, found.id)}


@router.post("/datasets/{dataset}/freeze", responses=refusals("no-dataset"))
def freeze(request: Request, identity: Curator, dataset: Name, reason: Reason) -> dict[str, Any]:
    """Stop everything new on a data set, or propose to another curator to let it go on."""
    service = service_of(request)
    found = catalogue.find(service.engine, identity, dataset)
    made = curating.freeze(service, identity, found.id, frozen=reason.frozen, reason=reason.reason)
    return {"frozen": service.ledger.account(found.id).frozen, "proposal": made}


@router.get("/approvals")
def waiting(request: Request, identity: Curator) -> list[dict[str, Any]]:
    """What waits for a second curator: data sets, caps, access, tokens, freezes to lift."""
    return approvals.waiting(service_of(request))


@router.post("/approvals/{proposal}", responses=refusals("twice", "nothing-here"))
def approve(
    request: Request,
    identity: Curator,
    proposal: Number,
    again: Annotated[bool, Query(description="Whether you know that these records are registered already.")] = False,
) -> dict[str, Any]:
    """Approve what another curator has proposed: it is done with that."""
    approvals.approve(service_of(request), identity, proposal, again=again)
    return {"approved": proposal}


@router.delete("/approvals/{proposal}", responses=refusals("nothing-here"))
def reject(request: Request, identity: Curator, proposal: Number) -> dict[str, Any]:
    """Take one's own proposal back, or reject that of another curator."""
    approvals.reject(service_of(request), identity, proposal)
    return {"rejected": proposal}


@router.post("/resume")
def resume(request: Request, identity: Curator) -> dict[str, Any]:
    """Propose to another curator to lift a halt of all data sets, as after a restored copy."""
    return {"proposal": curating.resume(service_of(request), identity)}


@router.get("/people")
def everybody(request: Request, identity: Curator) -> list[dict[str, Any]]:
    """All people."""
    return people.everybody(service_of(request).engine)


@router.post("/people", status_code=201)
def add_person(request: Request, identity: Curator, new: NewPerson) -> dict[str, Any]:
    """Add an analyst. Accounts of curators are made by whoever runs the service: `discreet serve --curator`."""
    service = service_of(request)
    people.add_person(service.engine, service.clock, person=new.person, name=new.name, role=new.role)
    notes.note(service, "person added", identity, whom=new.person, role=new.role, name=new.name.strip())
    return {"person": new.person}


@router.post("/people/{person}/tokens", status_code=201, responses=refusals("other-curator"))
def add_token(request: Request, identity: Curator, person: Name, new: NewToken) -> dict[str, Any]:
    """Make a token for an analyst or for oneself, which is shown this once.

    A token for an analyst is in force when another curator has approved it.
    """
    scopes = None if new.scopes is None else frozenset(new.scopes)
    facts: Any = {"label": new.label, "scopes": scopes, "days": new.days}
    made, proposal = curating.make_token(service_of(request), identity, person, **facts)
    return {"token": made, "proposal": proposal}


@router.get("/tokens")
def tokens(request: Request, identity: Curator) -> list[dict[str, Any]]:
    """All tokens, without their secrets."""
    return people.tokens_of(service_of(request).engine)


@router.delete("/tokens/{token}", responses=refusals("nothing-here"))
def revoke(request: Request, identity: Curator, token: Name) -> dict[str, Any]:
    """End a token and its sessions; that of another curator takes the approval of a second."""
    proposal = curating.revoke_token(service_of(request), identity, token)
    return {"revoked": token if proposal is None else None, "proposal": proposal}


@router.get("/log")
def log(
    request: Request,
    identity: Curator,
    after: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> list[dict[str, Any]]:
    """Lines of the ledger's log after one of them, every line with the hash of the one before."""
    found = log_view.lines(service_of(request), LogFilter(), after=after, limit=limit)
    return [json.loads(entry.line) for entry in found]


@router.get("/log/verification")
def verification(
    request: Request, identity: Curator, anchor: Annotated[str | None, Query(max_length=100)] = None
) -> dict[str, Any]:
    """Read the whole log again and check it, against a head that was kept elsewhere if there is one."""
    return curating.verified(service_of(request), anchor)
