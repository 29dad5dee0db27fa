"""Requests that are sent again: whoever gives a request a key gets its first answer again, and spends once.

A key is noted, with the name that its job will have, before anything is reserved. A server that ends in between leaves
the note: by the job, or by its absence, the next one to ask learns what became of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from discreet.exceptions import InvalidInput
from discreet.serve.domain.users import Identity, new_id
from discreet.serve.errors import Refusal
from discreet.serve.service import Service
from discreet.serve.storage.schema import jobs, keys, reading

LONGEST = 200


def once(
    service: Service, identity: Identity, key: str, request: Any, act: Callable[[str], dict[str, Any]]
) -> tuple[dict[str, Any], bool]:
    """The answer to a request, and whether it was given before.

    Parameters
    ----------
    service, identity
        Who asks, and what.
    key : str
        What the person calls the request.
    request
        Plain JSON that says what is asked; under one key it has to be the same each time.
    act : callable
        Answers the request under the name for its job, or refuses, and then nothing is kept.
    """
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    found = _noted(service, identity, key, digest)
    if found["answer"] is not None:
        return json.loads(found["answer"]), True
    mine = (keys.c.person == identity.person) & (keys.c.key == key)
    if not found["new"]:
        known = _begun(service, found)
        if known is not None:
            _keep(service, mine, known)
            return known, True
    try:
        answer = act(found["job"])
    except sa.exc.IntegrityError:
        # A server that had fallen silent has come back, and makes the same job.
        raise Refusal("under-way") from None
    except (Refusal, InvalidInput):
        known = _of_job(service, found["job"])
        if known is None:
            # Nothing is reserved, so that the key is free again. After any other error the note stays, until the job,
            # or its absence, shows what became of the request.
            with service.engine.begin() as connection:
                connection.execute(sa.delete(keys).where(mine & keys.c.answer.is_(None)))
            raise
        answer = known
    _keep(service, mine, answer)
    return answer, False


def _noted(service: Service, identity: Identity, key: str, digest: str) -> dict[str, Any]:
    """What is noted under a key; it is noted now, if it is new."""
    now = service.clock.now()
    row = {"person": identity.person, "key": key, "digest": digest, "job": new_id(), "created": now, "answer": None}
    try:
        with service.engine.begin() as connection:
            connection.execute(sa.insert(keys).values(row))
        return row | {"new": True}
    except sa.exc.IntegrityError:
        pass
    here = (keys.c.person == identity.person) & (keys.c.key == key)
    with reading(service.engine).begin() as connection:
        found = connection.execute(sa.select(keys).where(here)).mappings().first()
    if found is None:
        # Refused, and forgotten, between the two statements.
        raise Refusal("under-way")
    if found["digest"] != digest:
        raise Refusal("other-request")
    return dict(found) | {"new": False}


def _begun(service: Service, found: dict[str, Any]) -> dict[str, Any] | None:
    """The answer that a server ended before it could give; None, after the request was taken over from it."""
    known = _of_job(service, found["job"])
    now = service.clock.now()
    if known is not None:
        return known
    if now - found["created"] < service.settings.lease:
        raise Refusal("under-way")
    same = (keys.c.person == found["person"]) & (keys.c.key == found["key"]) & (keys.c.created == found["created"])
    with service.engine.begin() as connection:
        if not connection.execute(sa.update(keys).where(same & keys.c.answer.is_(None)).values(created=now)).rowcount:
            raise Refusal("under-way")
    return None


def _of_job(service: Service, name: str) -> dict[str, Any] | None:
    """The answer to a request whose job waits, or has gone further."""
    with reading(service.engine).begin() as connection:
        state = connection.scalar(sa.select(jobs.c.state).where(jobs.c.id == name))
    return None if state in (None, "new") else {"release": None, "job": name, "charged": True}


def _keep(service: Service, mine: sa.ColumnElement[bool], answer: dict[str, Any]) -> None:
    with service.engine.begin() as connection:
        connection.execute(sa.update(keys).where(mine).values(answer=json.dumps(answer)))
