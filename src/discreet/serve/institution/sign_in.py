"""Signing in by an institution: once for each state, in the browser where it began, as long as the role lasts.

The service keeps what it needs to ask the provider again, encrypted by the session's own secret, of which it keeps a
digest alone: nobody who reads the database can use it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from typing import Any

import sqlalchemy as sa

from discreet.ledger.governance.rules import EVERYTHING
from discreet.serve.domain.users import ALLOWED, SESSION, Identity, random_text
from discreet.serve.errors import Refusal
from discreet.serve.governance import notes
from discreet.serve.institution.provider import Provider, role_in
from discreet.serve.service import Service
from discreet.serve.storage.schema import people, reading, sessions, sign_ins, tokens, visits

# Seconds within which somebody has to come back from the provider.
_BACK = 600.0
# Seconds: how soon a provider that could not be reached is asked again, and how long its last word holds.
_SOON, _LAST_WORD = 30.0, 3_600.0
# The role of somebody whom the provider has given none any more.
NO_ROLE = "none"
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")
_log = logging.getLogger("discreet.serve")


def begin(service: Service, provider: Provider, target: str) -> tuple[str, str]:
    """Where somebody signs in, and what their browser has to bring back."""
    state, cookie, nonce, verifier = (random_text() for _ in range(4))
    row = {
        "state": _digest(state),
        "cookie": _digest(cookie),
        "nonce": nonce,
        "verifier": verifier,
        "target": target,
        "expires": service.clock.now() + _BACK,
    }
    address = provider.address_for(state, nonce, verifier)
    with service.engine.begin() as connection:
        connection.execute(sa.delete(sign_ins).where(sign_ins.c.expires < service.clock.now()))
        connection.execute(sa.insert(sign_ins).values(row))
    return address, cookie


def finish(service: Service, provider: Provider, cookie: str, state: str, code: str) -> tuple[str, str, Identity]:
    """A session for whom the provider signed in: the cookie's value, where they wanted to go, and who they are."""
    begun = _taken(service, cookie, state)
    made = provider.exchanged(code, begun["verifier"])
    claims = provider.claims(made.get("id_token"), service.clock.now(), begun["nonce"])
    claims = _with_groups(service, provider, claims, made)
    role = role_in(claims, service.settings)
    subject = _subject(service, claims)
    if role is None:
        _withdraw(service, subject, "signing in without a role")
        _log.warning("sign-in refused: no group of the provider has a role here")
        raise Refusal("no-role")
    person = _account(service, subject, claims, role)
    secret, identity = _opened(service, person, made)
    notes.note(service, "signed in", identity, by="the institution")
    return secret, begun["target"], identity


def by_visit(service: Service, secret: str) -> tuple[Identity, bool] | None:
    """Whose session by an institution this is, and whether the provider has to be asked again."""
    if not secret.isascii() or len(secret) > 200:
        return None
    wanted = sa.select(visits, people.c.name, people.c.role).join(people, people.c.id == visits.c.person)
    with reading(service.engine).begin() as connection:
        row = connection.execute(wanted.where(visits.c.digest == _digest(secret))).mappings().first()
    now = service.clock.now()
    if row is None or row["role"] not in ALLOWED:
        return None
    if row["expires"] <= now or row["confirmed"] + _LAST_WORD + service.settings.oidc_check <= now:
        # What has expired must stay so, whatever the clock does next.
        service.clock.remember(at_once=True)
        return None
    return _identity(row), row["checked"] + service.settings.oidc_check <= now


def still_stands(service: Service, provider: Provider, secret: str) -> bool:
    """Ask the provider whether somebody still has the role of their session; if not, everything of theirs ends."""
    now = service.clock.now()
    here = visits.c.digest == _digest(secret)
    with service.engine.begin() as connection:
        row = connection.execute(sa.select(visits).where(here)).mappings().first()
        # One request asks, and the others go on meanwhile.
        mine = here & (visits.c.checked <= now - service.settings.oidc_check)
        if row is None or not connection.execute(sa.update(visits).where(mine).values(checked=now)).rowcount:
            return row is not None
    held = _decrypted(secret, row["held"])
    try:
        made = provider.refreshed(held["refresh_token"]) if "refresh_token" in held else held
        known = {"sub": held["sub"]}
        if made.get("id_token") and made is not held:
            known = provider.claims(made["id_token"], now, None)
        claims = _with_groups(service, provider, known, made)
        role = role_in(claims, service.settings) if claims["sub"] == held["sub"] else None
    except Refusal as refusal:
        if refusal.code == "provider-away":
            again = now - service.settings.oidc_check + _SOON
            with service.engine.begin() as connection:
                connection.execute(sa.update(visits).where(here).values(checked=again))
            return True
        role = None
    with reading(service.engine).begin() as connection:
        person = connection.execute(sa.select(people).where(people.c.id == row["person"])).mappings().one()
    if role != person["role"]:
        _log.warning("session ended: its role has disappeared at the provider")
        _withdraw(service, person["subject"], "going on without the role of their session")
        return False
    kept = _encrypted(secret, held | _worth_keeping(made))
    with service.engine.begin() as connection:
        connection.execute(sa.update(visits).where(here).values(confirmed=now, held=kept))
        connection.execute(sa.update(people).where(people.c.id == row["person"]).values(confirmed=now))
    return True


def close(service: Service, secret: str) -> None:
    """Forget a session."""
    with service.engine.begin() as connection:
        connection.execute(sa.delete(visits).where(visits.c.digest == _digest(secret)))


def _taken(service: Service, cookie: str, state: str) -> dict[str, Any]:
    """What was noted when a sign-in began; a state works once, and in its own browser."""
    here = (sign_ins.c.state == _digest(state)) & (sign_ins.c.cookie == _digest(cookie))
    with service.engine.begin() as connection:
        row = connection.execute(sa.select(sign_ins).where(here)).mappings().first()
        gone = connection.execute(sa.delete(sign_ins).where(here)).rowcount
    if row is None or not gone or row["expires"] <= service.clock.now():
        _log.warning("sign-in refused: a state that is unknown, used, expired, or another browser's")
        raise Refusal("bad-state")
    return dict(row)


def _with_groups(service: Service, provider: Provider, claims: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Claims with the groups: from the identity token, or from where the provider says more of the same person."""
    if service.settings.oidc_groups in claims:
        return claims
    more = provider.profile(made.get("access_token"))
    if more and more.get("sub") != claims["sub"]:
        _log.warning("sign-in refused: a profile of somebody else")
        raise Refusal("bad-identity")
    return more | claims


def _subject(service: Service, claims: dict[str, Any]) -> str:
    """Whom the provider means; a name or an address can be given to somebody else, this cannot."""
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise Refusal("bad-identity")
    return f"{service.settings.oidc_issuer} {subject}"


def _account(service: Service, subject: str, claims: dict[str, Any], role: str) -> str:
    """The account of somebody whom the provider signed in; a new one never is one that is there already."""
    now = service.clock.now()
    name = str(claims.get("name") or claims.get("preferred_username") or "Somebody of the institution").strip()[:80]
    with service.engine.begin() as connection:
        row = connection.execute(sa.select(people).where(people.c.subject == subject)).mappings().first()
        if row is not None:
            if row["role"] != role:
                _end_all(connection, row["id"], now)
            changed = {"role": role, "name": name, "confirmed": now}
            connection.execute(sa.update(people).where(people.c.id == row["id"]).values(changed))
            return str(row["id"])
        known = set(connection.scalars(sa.select(people.c.id)))
        person = _free_name(str(claims.get("preferred_username") or claims.get("email") or ""), subject, known)
        new = {"id": person, "name": name, "role": role, "created": now, "subject": subject, "confirmed": now}
        connection.execute(sa.insert(people).values(new))
        return person


def _free_name(wanted: str, subject: str, known: set[str]) -> str:
    """A short name that nobody has: by what the provider calls somebody, and by a digest where that is taken."""
    plain = _NOT_A_NAME.sub("-", wanted.partition("@")[0].lower()).strip("-")[:24]
    if not plain or not plain[0].isalpha():
        plain = f"p-{plain}".rstrip("-")
    if plain not in known:
        return plain
    return f"{plain}-{hashlib.sha256(subject.encode()).hexdigest()[:12]}"


def _withdraw(service: Service, subject: str, what: str) -> None:
    """Take everything from somebody who has no role any more, tokens of their programs included.

    The log tells it of whoever has an account here: strangers could fill it.
    """
    with service.engine.begin() as connection:
        person = connection.scalar(sa.select(people.c.id).where(people.c.subject == subject))
        if person is not None:
            _end_all(connection, person, service.clock.now())
            connection.execute(sa.update(people).where(people.c.id == person).values(role=NO_ROLE))
    service.forget_identities()
    if person is not None:
        service.ledger.note("refused", actor=person, dataset=EVERYTHING, daily=True, what=what)


def _end_all(connection: sa.Connection, person: str, now: float) -> None:
    own = sa.select(tokens.c.id).where(tokens.c.person == person)
    connection.execute(sa.delete(sessions).where(sessions.c.token.in_(own)))
    connection.execute(sa.delete(visits).where(visits.c.person == person))
    alive = (tokens.c.person == person) & tokens.c.revoked.is_(None)
    connection.execute(sa.update(tokens).where(alive).values(revoked=now))


def _opened(service: Service, person: str, made: dict[str, Any]) -> tuple[str, Identity]:
    secret, now = random_text(), service.clock.now()
    with reading(service.engine).begin() as connection:
        found = connection.execute(sa.select(people).where(people.c.id == person)).mappings().one()
    held = {"sub": found["subject"].partition(" ")[2]} | _worth_keeping(made)
    row = {
        "digest": _digest(secret),
        "person": person,
        "csrf": random_text(18),
        "expires": now + SESSION,
        "checked": now,
        "confirmed": now,
        "held": _encrypted(secret, held),
    }
    with service.engine.begin() as connection:
        connection.execute(sa.delete(visits).where(visits.c.expires < now))
        connection.execute(sa.insert(visits).values(row))
    return secret, _identity(row | {"name": found["name"], "role": found["role"]})


def _worth_keeping(made: dict[str, Any]) -> dict[str, Any]:
    return {name: made[name] for name in ("access_token", "refresh_token") if isinstance(made.get(name), str)}


def _identity(row: Any) -> Identity:
    return Identity(
        person=row["person"],
        name=row["name"],
        role=row["role"],
        scopes=ALLOWED[row["role"]],
        token="",
        expires=row["expires"],
        csrf=row["csrf"],
    )


def _key(secret: str) -> Any:
    from joserfc.jwk import OctKey

    return OctKey.import_key(hashlib.sha256(b"held\0" + secret.encode()).digest())


def _encrypted(secret: str, held: dict[str, Any]) -> str:
    from joserfc import jwe

    return jwe.encrypt_compact({"alg": "dir", "enc": "A256GCM"}, json.dumps(held), _key(secret))


def _decrypted(secret: str, text: str) -> dict[str, Any]:
    from joserfc import jwe

    found: dict[str, Any] = json.loads(jwe.decrypt_compact(text, _key(secret)).plaintext or b"{}")
    return found


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
