"""What curators do, for pages and for the programming interface alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import make_url

from discreet.exceptions import DiscreetError, InvalidInput, LedgerCorrupt
from discreet.ledger import Head
from discreet.ledger.hash_chain import canonical, in_order, sha256
from discreet.ledger.ledger import opening
from discreet.privacy.budget import Budget
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.domain.datasets import Dataset, NewDataset
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.governance import approvals, notes
from discreet.serve.service import Service
from discreet.serve.storage.schema import jobs, reading, releases


class Cap(BaseModel):
    """A cap on what is spent."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    epsilon: float = Field(gt=0, le=1_000)
    delta: float | None = Field(default=None, ge=0, lt=1)

    def budget(self) -> Budget:
        """The same as a budget."""
        return Budget(epsilon=self.epsilon, delta=self.delta)


def register(service: Service, identity: Identity, new: NewDataset) -> int | None:
    """Check the records, and propose to another curator to open an account for them and to list the data set.

    Returns the number of the proposal; None where one curator is enough, and the data set is listed.
    """
    cap = Budget(epsilon=new.epsilon, delta=new.delta)
    neighbours: Any = "replace-one" if new.records_are_public else "add-remove"
    row = catalogue.checked(service, identity, new)
    if new.id in service.ledger.datasets():
        raise InvalidInput("id is the name of another data set already: choose another.")
    beside = catalogue.same_records(service, new.id, json.loads(row["places"]))
    return approvals.decide(
        service,
        identity,
        "open",
        new.id,
        payload=row,
        epsilon=cap.epsilon,
        delta=cap.delta,
        opening=opening(cap, {"neighbours": neighbours}),
        title=row["title"],
        outcome=new.outcome,
        treatment=new.treatment,
        source=_shown(row["source"], service.settings.data),
        claimed=new.admits_claimed,
        again=beside,
    )


def _shown(source: str, data: str) -> str:
    """A source as another curator, and the log, may read it: without a password."""
    if not source.startswith("postgresql"):
        return source.replace(f"{Path(data).resolve()}/", "")
    address, _, table = source.partition("#")
    return f"{make_url(address)._replace(password=None).render_as_string()}#{table}"


def allow(service: Service, identity: Identity, dataset: str, analyst: str, cap: Budget) -> int | None:
    """Let an analyst use a data set up to a cap. Access, and a higher cap than before, wait for another curator."""
    # A cap cannot be taken out of the log again.
    catalogue.check_analyst(service.engine, analyst)
    known = service.ledger.account(dataset).quotas.get(analyst)
    facts: Any = {"analyst": analyst, "epsilon": cap.epsilon, "delta": cap.delta}
    if known is None:
        return approvals.decide(service, identity, "allow", dataset, **facts)
    if not known.cap.covers(cap):
        return approvals.decide(service, identity, "cap", dataset, access=True, **facts)
    service.ledger.allow(dataset, analyst, epsilon=cap.epsilon, delta=cap.delta, curator=identity.person)
    if analyst in catalogue.granted(service.engine, dataset):
        return None
    return approvals.decide(service, identity, "access", dataset, analyst=analyst)


def deny(service: Service, identity: Identity, dataset: str, analyst: str) -> None:
    """Close a data set to an analyst; what was released to them stays theirs."""
    catalogue.grant(service.engine, dataset, analyst, allowed=False)
    notes.note(service, "access taken", identity, dataset=dataset, whom=analyst)


def set_cap(service: Service, identity: Identity, dataset: str, cap: Budget) -> int | None:
    """Lower the cap of a data set; a higher one is proposed to another curator, and its number returned."""
    facts: Any = {"epsilon": cap.epsilon, "delta": cap.delta}
    if service.ledger.account(dataset).cap.covers(cap):
        service.ledger.allow(dataset, None, curator=identity.person, **facts)
        return None
    return approvals.decide(service, identity, "cap", dataset, **facts)


def freeze(service: Service, identity: Identity, dataset: str, *, frozen: bool, reason: str = "") -> int | None:
    """Stop everything new on a data set; or propose to let it go on."""
    if len(reason) > 200 or not reason.isprintable():
        raise InvalidInput("reason must be printable text of at most 200 characters: shorten it.")
    if frozen:
        service.ledger.freeze(dataset, curator=identity.person, reason=reason.strip() or None)
        return None
    return approvals.decide(service, identity, "unfreeze", dataset, reason=reason.strip() or None)


def resume(service: Service, identity: Identity) -> int | None:
    """Propose to lift a halt of everything, as after a restored copy."""
    return approvals.decide(service, identity, "resume")


def recheck(service: Service, identity: Identity, dataset: Dataset) -> None:
    """Check a changed source, and let no earlier release answer for it."""
    beside = set(catalogue.beside(service, dataset))
    catalogue.recheck(service, dataset)
    service.ledger.renew(dataset.id, str(dataset.version + 1), curator=identity.person)
    changed = catalogue.by_id(service.engine, dataset.id)
    if changed is not None and (now := set(catalogue.beside(service, changed)) - beside):
        # Other records under the name of these: a second registration that nobody approved.
        reason = f"its records are now those of {', '.join(sorted(now))}"
        service.ledger.freeze(dataset.id, curator=identity.person, reason=reason[:200])


def admit(service: Service, identity: Identity, person: str, name: str) -> tuple[str, int | None]:
    """Add an analyst, who may use nothing yet, with a first token as `make_token` makes it."""
    people.add_person(service.engine, service.clock, person=person, name=name, role="analyst")
    notes.note(service, "person added", identity, whom=person, role="analyst", name=name.strip())
    return make_token(service, identity, person, label="first token")


def make_token(service: Service, identity: Identity, person: str, **facts: Any) -> tuple[str, int | None]:
    """A token, and the number of the proposal that it waits for.

    Whoever makes a token for somebody may keep a copy of it, and have access given later. So every token for somebody
    else, the first one too, is in force when another curator has approved it; none is ever made for another curator.
    """
    people.may_admit(service.engine, identity, person)
    waits = person != identity.person
    token = people.add_token(service.engine, service.clock, person=person, held=waits, **facts)
    public = people.public_id(token)
    number = None
    if waits:
        number = approvals.decide(service, identity, "token", payload={"token": public}, whom=person, token=public)
    notes.note(service, "token made", identity, whom=person, token=public, waits=number)
    return token, number


def revoke_token(service: Service, identity: Identity, token: str) -> int | None:
    """End a token and its sessions; another curator's only with the approval of a second."""
    whom = people.holder(service.engine, token)
    if whom is None or not people.alive(service.engine, token):
        raise Refusal("nothing-here")
    person, role = whom
    if role == "curator" and person != identity.person:
        notes.refused(service, "revoking another curator alone", identity, whom=person)
        return approvals.decide(service, identity, "revoke", payload={"token": token}, whom=person, token=token)
    people.revoke(service.engine, service.clock, token)
    service.forget_identities()
    notes.note(service, "token revoked", identity, whom=person, token=token)
    return None


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
