"""Releases for the public: behind a link that nobody can guess, without sign-in, until a curator withdraws it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from discreet.serve.domain import releases as shelved
from discreet.serve.domain.users import Identity, random_text
from discreet.serve.errors import Refusal
from discreet.serve.governance import notes
from discreet.serve.service import Service
from discreet.serve.storage.schema import public, reading, releases

# Facts of a release that anybody may know: not who asked for it.
_FACTS = ("id", "dataset", "kind", "title", "created")


def link_of(service: Service, release: str) -> str | None:
    """The link of a release that the public sees; None if it does not."""
    with reading(service.engine).begin() as connection:
        return connection.scalar(sa.select(public.c.link).where(public.c.release == release))


def show(service: Service, identity: Identity, release: str) -> str:
    """Show a release to anybody who has the link, which is returned; only curators do so."""
    if not identity.curator:
        raise Refusal("forbidden")
    facts = shelved.find(service.engine, service.clock, identity, release)
    if facts["created"] > service.clock.now():
        # It cannot be seen yet, or was stopped before anybody could see it.
        raise Refusal("no-release")
    if (known := link_of(service, release)) is not None:
        return known
    notes.note(service, "release public", identity, **_about(facts))
    link = random_text(18)
    row = {"release": release, "link": link, "curator": identity.person, "created": service.clock.now()}
    try:
        with service.engine.begin() as connection:
            connection.execute(sa.insert(public).values(row))
    except sa.exc.IntegrityError:
        return link_of(service, release) or link
    return link


def withdraw(service: Service, identity: Identity, release: str) -> None:
    """Take a release back from the public: its link answers no more, and another one will be a new one."""
    if not identity.curator:
        raise Refusal("forbidden")
    facts = shelved.find(service.engine, service.clock, identity, release)
    with service.engine.begin() as connection:
        gone = connection.execute(sa.delete(public).where(public.c.release == release)).rowcount
    if gone:
        notes.note(service, "release withdrawn", identity, **_about(facts))


def find(service: Service, link: str) -> dict[str, Any]:
    """What anybody may know of the release behind a link; any other link is refused in the same words."""
    wanted = sa.select(*(releases.c[name] for name in _FACTS)).join(public, public.c.release == releases.c.id)
    with reading(service.engine).begin() as connection:
        row = connection.execute(wanted.where(public.c.link == link)).mappings().first()
    if row is None:
        raise Refusal("not-public")
    return dict(row)


def _about(facts: dict[str, Any]) -> dict[str, Any]:
    return {"dataset": facts["dataset"], "release": facts["id"], "whom": facts["person"]}
