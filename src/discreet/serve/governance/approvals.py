"""Deeds that take two curators: proposed by one, approved by another before they expire, then carried out once.

What a deed changes in the ledger happens by the line that approves it. What it changes here (a data set is listed,
access is given, a token comes into force, another is revoked) follows, and is done again where a server stopped in
between.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from discreet.exceptions import DiscreetError, InvalidInput, LedgerRefused
from discreet.ledger import Proposal
from discreet.ledger.governance.rules import EVERYTHING
from discreet.ledger.hash_chain import canonical, sha256
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.governance import notes
from discreet.serve.service import Service
from discreet.serve.storage.schema import proposals, reading

_log = logging.getLogger("discreet.serve")
# Proposals that may wait at once: whoever approves has to be able to read them.
MOST_WAITING = 100


def decide(
    service: Service,
    identity: Identity,
    deed: str,
    dataset: str = EVERYTHING,
    *,
    payload: Mapping[str, Any] | None = None,
    **facts: Any,
) -> int | None:
    """Propose a deed to another curator, and return its number; None where one curator is enough and it is done.

    Parameters
    ----------
    service, identity
        Whose ledger, and who proposes.
    deed : str
        One of the ledger's.
    dataset : str
        On which data set.
    payload : mapping, optional
        What is needed to carry it out and belongs in no log; the log has its digest.
    facts
        What the log, and whoever approves, may know.
    """
    if len(service.ledger.proposals()) >= MOST_WAITING:
        raise InvalidInput(f"{MOST_WAITING} proposals wait already: have some of them approved or rejected first.")
    text = canonical(dict(payload or {}))
    number = service.ledger.propose_deed(
        deed, dataset, curator=identity.person, payload=sha256(_salted(service, text)), **facts
    )
    with service.engine.begin() as connection:
        connection.execute(sa.insert(proposals).values(id=number, payload=text, carried=None))
    if service.ledger.curators != 1:
        return number
    approve(service, identity, number, again=True)
    return None


def approve(service: Service, identity: Identity, number: int, *, again: bool = False) -> None:
    """Approve what another curator has proposed, and carry it out.

    Parameters
    ----------
    service, identity
        Whose ledger, and who approves.
    number : int
        Of the proposal.
    again : bool
        Whether the approver knows that these records are registered already, under a cap of their own.
    """
    try:
        found = service.ledger.proposal(number)
    except InvalidInput:
        raise Refusal("nothing-here") from None
    if not found.open:
        raise Refusal("nothing-here")
    if found.curator == identity.person and service.ledger.curators != 1:
        notes.refused(service, "approving one's own proposal", identity, dataset=found.dataset, proposal=number)
        raise Refusal("twice")
    text = _payload(service, found)
    if found.deed == "open":
        _check_registration(service, identity, found, json.loads(text), again=again)
    elif found.deed in ("allow", "access", "cap") and found.analyst is not None:
        catalogue.check_analyst(service.engine, found.analyst)
    try:
        service.ledger.approve(number, curator=identity.person)
    except LedgerRefused as error:
        raise Refusal("not-now", str(error)[:1].upper() + str(error)[1:]) from None
    finish(service)


def reject(service: Service, identity: Identity, number: int, reason: str = "") -> None:
    """Take one's own proposal back, or keep another curator's from being approved."""
    try:
        service.ledger.reject(number, curator=identity.person, reason=reason.strip() or None)
    except InvalidInput:
        raise Refusal("nothing-here") from None


def finish(service: Service) -> int:
    """Carry out what was approved and is not carried out yet; how many deeds there were."""
    wanted = sa.select(proposals.c.id).where(proposals.c.carried.is_(None))
    with reading(service.engine).begin() as connection:
        waiting = set(connection.scalars(wanted))
    done = 0
    for found in service.ledger.proposals(everything=True) if waiting else ():
        if found.id not in waiting or found.open:
            continue
        if found.approver is not None:
            try:
                _carry_out(service, found, json.loads(_payload(service, found)))
            except (DiscreetError, sa.exc.SQLAlchemyError) as error:
                # One that cannot be carried out keeps no other from it, and is tried again with the next one.
                _log.error("approved, and not carried out: proposal %d: %s", found.id, type(error).__name__)
                continue
            done += 1
        with service.engine.begin() as connection:
            # What was rejected holds nothing that anybody needs any more.
            here = proposals.c.id == found.id
            connection.execute(sa.update(proposals).where(here).values(carried=service.clock.now(), payload="{}"))
    return done


def waiting(service: Service, dataset: str | None = None) -> list[dict[str, Any]]:
    """What waits for a second curator, in words and as facts."""
    return [
        {
            "id": each.id,
            "deed": each.deed,
            "dataset": each.dataset,
            "analyst": each.analyst,
            "epsilon": None if each.cap is None else each.cap.epsilon,
            "delta": None if each.cap is None else each.cap.delta,
            "curator": each.curator,
            "expires": each.expires,
            "again": list(each.facts.get("again", ())),
            "facts": {name: value for name, value in each.facts.items() if name not in ("payload", "opening")},
            "text": sentence(each),
        }
        for each in service.ledger.proposals()
        if dataset in (None, each.dataset)
    ]


def sentence(proposal: Proposal) -> str:
    """What would be done, as people read it."""
    facts, whom = proposal.facts, proposal.analyst or proposal.facts.get("whom", "")
    cap = "" if proposal.cap is None else str(proposal.cap)
    return {
        "open": f"register {facts.get('title', proposal.dataset)} as {proposal.dataset}, with a cap of {cap}",
        "cap": f"raise the cap of {whom + ' on ' if whom else ''}{proposal.dataset} to {cap}",
        "allow": f"give {whom} access to {proposal.dataset}, up to {cap}",
        "access": f"give {whom} access to {proposal.dataset} again",
        "unfreeze": f"lift the freeze of {proposal.dataset}",
        "resume": "lift the halt of all data sets",
        "token": f"put a token for {whom} in force, of which {proposal.curator} may have a copy",
        "revoke": f"revoke a token of {whom}",
    }[proposal.deed]


def _check_registration(
    service: Service, identity: Identity, found: Proposal, row: dict[str, Any], *, again: bool
) -> None:
    if catalogue.by_id(service.engine, row["id"]) is not None:
        raise InvalidInput("id is the name of another data set already: reject this proposal.")
    stated = set(found.facts.get("again", ()))
    beside = set(catalogue.same_records(service, row["id"], json.loads(row["places"])))
    if beside - stated:
        # Something was registered since: whoever proposed did not say so, and whoever approves would not know.
        notes.refused(service, "registering records a second time", identity, dataset=found.dataset, proposal=found.id)
        raise Refusal("again-since")
    if beside and not again:
        raise Refusal("again")
    if not catalogue.unchanged_row(row):
        raise InvalidInput("source has changed since it was proposed: reject this proposal, and propose it again.")


def _carry_out(service: Service, found: Proposal, payload: dict[str, Any]) -> None:
    """Do what was approved; doing it twice changes nothing."""
    if found.deed == "open":
        if catalogue.by_id(service.engine, found.dataset) is None:
            catalogue.add(service.engine, payload | {"created": service.clock.now()})
        beside = set(catalogue.same_records(service, found.dataset, json.loads(payload["places"])))
        if beside - set(found.facts.get("again", ())):
            # Both were approved at the same moment, and neither approver could know of the other.
            reason = "the same records were registered at the same moment"
            service.ledger.freeze(found.dataset, curator=people.OPERATOR, reason=reason)
    elif found.deed in ("allow", "access") or (found.deed == "cap" and found.facts.get("access")):
        assert found.analyst is not None
        catalogue.grant(service.engine, found.dataset, found.analyst)
    elif found.deed == "token":
        people.put_in_force(service.engine, payload["token"])
        service.forget_identities()
    elif found.deed == "revoke":
        people.revoke(service.engine, service.clock, payload["token"])
        service.forget_identities()


def _payload(service: Service, found: Proposal) -> str:
    """What a proposal would carry out: refused, if it is not what was proposed."""
    wanted = sa.select(proposals.c.payload).where(proposals.c.id == found.id)
    with reading(service.engine).begin() as connection:
        text = connection.scalar(wanted)
    expected = found.facts.get("payload")
    if expected is None and text is None:
        # Of a ledger's own command line, or of a version that knew raised caps alone.
        return "{}"
    if text is None or sha256(_salted(service, text)) != expected:
        raise Refusal("changed-proposal")
    return str(text)


def _salted(service: Service, text: str) -> str:
    """With a secret of the ledger, so that the log lets nobody guess a password that is part of an address."""
    return service.ledger.seal([text.encode()])
