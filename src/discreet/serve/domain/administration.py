"""What curators do, for pages and for the programming interface alike."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field

from discreet.exceptions import DiscreetError, InvalidInput, LedgerCorrupt
from discreet.ledger import Head
from discreet.ledger.hash_chain import canonical, in_order, sha256
from discreet.privacy.budget import Budget
from discreet.serve.domain import budgets
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain.datasets import Dataset, NewDataset
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.service import Service
from discreet.serve.storage.schema import jobs, reading, releases

LINES = 200


class Cap(BaseModel):
    """A cap on what is spent."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    epsilon: float = Field(gt=0, le=1_000)
    delta: float | None = Field(default=None, ge=0, lt=1)

    def budget(self) -> Budget:
        """The same as a budget."""
        return Budget(epsilon=self.epsilon, delta=self.delta)


def register(service: Service, identity: Identity, new: NewDataset) -> Dataset:
    """Check the records, open an account in the ledger, and list the data set."""
    cap = Budget(epsilon=new.epsilon, delta=new.delta)
    neighbours: Any = "replace-one" if new.records_are_public else "add-remove"
    row = catalogue.checked(service.engine, service.clock, identity, new, root=service.settings.data)
    # The account first: a data set that is listed without one could not be asked. The same words open it only once.
    service.ledger.open(new.id, epsilon=cap.epsilon, delta=cap.delta, neighbours=neighbours, curator=identity.person)
    catalogue.add(service.engine, row)
    return catalogue.find(service.engine, identity, new.id)


def allow(service: Service, identity: Identity, dataset: str, analyst: str, cap: Budget) -> int | None:
    """Let an analyst use a data set up to a cap; a higher cap than before waits for another curator."""
    # A cap cannot be taken out of the log again.
    catalogue.check_analyst(service.engine, analyst)
    # The cap first: a data set without any admits everybody.
    waits = budgets.set_quota(service, identity, dataset, analyst, cap)
    catalogue.grant(service.engine, dataset, analyst)
    return waits


def freeze(service: Service, identity: Identity, dataset: str, *, frozen: bool, reason: str = "") -> None:
    """Stop everything new on a data set, or let it go on."""
    if len(reason) > 200 or not reason.isprintable():
        raise InvalidInput("reason must be printable text of at most 200 characters: shorten it.")
    switch = service.ledger.freeze if frozen else service.ledger.unfreeze
    switch(dataset, curator=identity.person, reason=reason.strip() or None)


def recheck(service: Service, identity: Identity, dataset: Dataset) -> None:
    """Check a changed source, and let no earlier release answer for it."""
    catalogue.recheck(service.engine, dataset)
    service.ledger.renew(dataset.id, str(dataset.version + 1), curator=identity.person)


def approvals(service: Service) -> list[dict[str, Any]]:
    """Caps that wait for a second curator."""
    return [
        {
            "id": proposal.id,
            "dataset": proposal.dataset,
            "analyst": proposal.analyst,
            "epsilon": proposal.cap.epsilon,
            "delta": proposal.cap.delta,
            "curator": proposal.curator,
        }
        for proposal in service.ledger.proposals()
    ]


def log(service: Service, after: int = 0) -> list[dict[str, Any]]:
    """Lines of the ledger's log."""
    return [json.loads(entry.line) for entry in service.ledger.log(after)]


def _check_shown(service: Service) -> None:
    """Refuse a release that is not the one in the log: analysts read the service's copy, not the ledger's."""
    wanted = sa.select(releases.c.id, releases.c.plain, jobs.c.reservation)
    with reading(service.engine).begin() as connection:
        rows = connection.execute(wanted.join_from(releases, jobs, releases.c.job == jobs.c.id, isouter=True)).all()
    # Asked for later: a release is settled before it is shown.
    recorded = {str(request.id): request.release for request in service.ledger.requests(state="settled")}
    for name, plain, reservation in rows:
        if recorded.get(reservation) not in _digests(plain):
            raise LedgerCorrupt(f"release {name} is not what the log says that it was: restore it from a copy.")


def _digests(plain: str) -> set[str]:
    """As ledgers write it down for the same release, today and formerly; none, of what is not even JSON."""
    try:
        found = json.loads(plain)
        return {sha256(in_order(found)), sha256(canonical(found))}
    except (ValueError, RecursionError):
        return set()


def verified(service: Service, anchor: str | None = None) -> dict[str, Any]:
    """Whether the whole log and all stored releases are what they were, those that pages show included."""
    try:
        kept = Head.parse(anchor) if anchor else None
    except (DiscreetError, ValueError):
        raise Refusal("malformed") from None
    try:
        head = service.ledger.verify(kept)
        _check_shown(service)
    except LedgerCorrupt as error:
        return {"intact": False, "head": None, "text": str(error)}
    return {"intact": True, "head": str(head), "text": f"All {head.seq} lines follow from each other."}
