"""What the log tells of people: who signed in, read, gave and took, in lines of the ledger's own chain."""

from __future__ import annotations

from typing import Any

from discreet.ledger.governance.rules import EVERYTHING
from discreet.serve.domain.users import OPERATOR, Identity
from discreet.serve.service import Service


def note(
    service: Service,
    event: str,
    identity: Identity | None,
    *,
    dataset: str | None = None,
    daily: bool = False,
    **facts: Any,
) -> None:
    """Write down what somebody did, unless nobody did: what the command line does is the operator's.

    Parameters
    ----------
    service : Service
        Whose log it goes into.
    event : str
        What happened, in two or three words.
    identity : Identity, optional
        Who did it.
    dataset : str, optional
        On which data set, if it concerns one.
    daily : bool
        Whether the same of the same day is written down but once: what people may repeat at will.
    facts
        The particulars; ``whom`` is the person concerned.
    """
    actor = OPERATOR if identity is None else identity.person
    service.ledger.note(event, actor=actor, dataset=dataset or EVERYTHING, daily=daily, **facts)


def refused(service: Service, what: str, identity: Identity, *, dataset: str | None = None, **facts: Any) -> None:
    """Write down that somebody tried what nobody may do alone."""
    note(service, "refused", identity, dataset=dataset, daily=True, what=what, **facts)


def read(service: Service, identity: Identity, facts: dict[str, Any], form: str | None = None) -> None:
    """Write down who read or downloaded which release: once a day each, because it may be done a thousand times."""
    about: dict[str, Any] = {"dataset": facts["dataset"], "release": facts["id"], "whom": facts["person"]}
    if form is None:
        note(service, "release read", identity, daily=True, **about)
    else:
        note(service, "release downloaded", identity, daily=True, form=form, **about)


def published(service: Service, identity: Identity, facts: dict[str, Any]) -> None:
    """Write down who showed a release to others."""
    about: dict[str, Any] = {"dataset": facts["dataset"], "release": facts["id"], "whom": facts["person"]}
    note(service, "release published", identity, daily=True, **about)
