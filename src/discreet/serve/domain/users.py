"""People, their access tokens and their sessions: secrets are kept as digests, and compared in constant time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

import sqlalchemy as sa

from discreet.exceptions import InvalidInput
from discreet.serve.errors import Refusal
from discreet.serve.storage.clock import Clock
from discreet.serve.storage.schema import people, reading, sessions, tokens

Role = Literal["analyst", "curator"]
# Whoever runs the machine, as the log names them.
OPERATOR = "operator"
SCOPES = {
    "read": "see data sets, plan, read releases and ask released functions",
    "request": "spend budget: ask for releases",
    "curate": "register data sets, set caps, approve, freeze, and give access",
}
ALLOWED: dict[str, frozenset[str]] = {
    "analyst": frozenset({"read", "request"}),
    "curator": frozenset({"read", "curate"}),
}
SESSION = 8 * 3600.0
# Seconds for which tokens of people whom an institution signs in hold, after it last said that they have their role.
CONFIRMED = 30 * 86_400.0
LONGEST = 366.0
_MINUTE = 60.0
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who asks: a person, by a token or by a session that a token opened."""

    person: str
    name: str
    role: Role
    scopes: frozenset[str]
    token: str
    expires: float
    csrf: str | None = None

    @property
    def curator(self) -> bool:
        """Whether this is a curator who may act as one."""
        return self.role == "curator" and "curate" in self.scopes


def random_text(size: int = 32) -> str:
    """Random bytes of the operating system, as text that fits into an address."""
    return base64.urlsafe_b64encode(os.urandom(size)).rstrip(b"=").decode()


def new_id() -> str:
    """A name that nobody can guess."""
    return os.urandom(9).hex()


def slug(value: object, what: str) -> str:
    """A short name as it may stand in an address."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidInput(f"{what} must be a short name of lower-case letters, digits and hyphens: choose another.")
    return value


def add_person(engine: sa.Engine, clock: Clock, *, person: str, name: str, role: str) -> None:
    """A new person, who can do nothing before there is a token."""
    slug(person, "person")
    if person == OPERATOR:
        raise InvalidInput("person is what the log calls whoever runs the service: choose another name.")
    if role not in get_args(Role):
        raise InvalidInput("role must be analyst or curator: choose one of them.")
    if not name.strip() or len(name) > 80:
        raise InvalidInput("name must have between 1 and 80 characters: write it as people know it.")
    row = {"id": person, "name": name.strip(), "role": role, "created": clock.now()}
    try:
        with engine.begin() as connection:
            connection.execute(sa.insert(people).values(row))
    except sa.exc.IntegrityError:
        raise InvalidInput("person is the name of somebody else already: choose another.") from None


def everybody(engine: sa.Engine) -> list[dict[str, Any]]:
    """All people, by name."""
    with reading(engine).begin() as connection:
        return [dict(row) for row in connection.execute(sa.select(people).order_by(people.c.id)).mappings()]


def add_token(
    engine: sa.Engine,
    clock: Clock,
    *,
    person: str,
    label: str = "",
    scopes: frozenset[str] | None = None,
    days: float = 90.0,
    held: bool = False,
) -> str:
    """A token, which is shown this once; the database keeps a digest of it. One that is held is not in force yet.

    A token has 256 random bits, so that a plain SHA-256 hides it: there is no dictionary to try.
    """
    with reading(engine).begin() as connection:
        role = connection.scalar(sa.select(people.c.role).where(people.c.id == person))
    if role is None:
        raise InvalidInput("person is nobody that the service knows: add the person first.")
    given = ALLOWED[role] if scopes is None else scopes
    if not given or not given <= ALLOWED[role]:
        raise InvalidInput(f"scopes of a token for this role are {' and '.join(sorted(ALLOWED[role]))}: choose some.")
    if not 0 < days <= LONGEST:
        raise InvalidInput(f"days must lie between 0 and {LONGEST:.0f}: a token has to expire.")
    if len(label) > 80:
        raise InvalidInput("label must have at most 80 characters: shorten it.")
    secret, made = random_text(), new_id()
    row = {
        "id": made,
        "person": person,
        "label": label,
        "digest": _digest(secret),
        "scopes": " ".join(sorted(given)),
        "created": clock.now(),
        "expires": clock.now() + 86_400.0 * days,
        "revoked": None,
        "used": None,
        "held": held,
    }
    with engine.begin() as connection:
        connection.execute(sa.insert(tokens).values(row))
    return f"discreet_{made}_{secret}"


def may_admit(engine: sa.Engine, identity: Identity, person: str) -> None:
    """Refuse a curator who would act for another: they make tokens for analysts and for themselves."""
    with reading(engine).begin() as connection:
        role = connection.scalar(sa.select(people.c.role).where(people.c.id == person))
    if role == "curator" and person != identity.person:
        raise Refusal("other-curator")


def public_id(token: str) -> str:
    """The part of a token that is no secret."""
    return token.split("_", 2)[1]


def put_in_force(engine: sa.Engine, token: str) -> None:
    """Let a token be used that was held until another curator had approved it."""
    with engine.begin() as connection:
        connection.execute(sa.update(tokens).where(tokens.c.id == token).values(held=False))


def touch(engine: sa.Engine, clock: Clock, token: str) -> None:
    """Note that a token was used, to the minute."""
    late = sa.or_(tokens.c.used.is_(None), tokens.c.used < clock.now() - _MINUTE)
    with reading(engine).begin() as connection:
        if connection.scalar(sa.select(tokens.c.id).where((tokens.c.id == token) & late)) is None:
            return
    with engine.begin() as connection:
        connection.execute(sa.update(tokens).where(tokens.c.id == token).values(used=clock.now()))


def holder(engine: sa.Engine, token: str) -> tuple[str, str] | None:
    """Whose token it is, and in what role."""
    row = _token_row(engine, token)
    return None if row is None else (row["person"], row["role"])


def alive(engine: sa.Engine, token: str) -> bool:
    """Whether a token was not revoked yet."""
    row = _token_row(engine, token)
    return row is not None and row["revoked"] is None


def tokens_of(engine: sa.Engine, person: str | None = None) -> list[dict[str, Any]]:
    """Tokens without their digests, the newest first."""
    shown = [column for column in tokens.c if column.name != "digest"]
    wanted = sa.select(*shown).order_by(tokens.c.created.desc())
    with reading(engine).begin() as connection:
        found = connection.execute(wanted if person is None else wanted.where(tokens.c.person == person))
        return [dict(row) for row in found.mappings()]


def revoke(engine: sa.Engine, clock: Clock, token: str) -> bool:
    """End a token and the sessions that it opened; whether there was one to end."""
    with engine.begin() as connection:
        alive = (tokens.c.id == token) & tokens.c.revoked.is_(None)
        found = connection.execute(sa.update(tokens).where(alive).values(revoked=clock.now())).rowcount
        connection.execute(sa.delete(sessions).where(sessions.c.token == token))
    return bool(found)


def by_token(engine: sa.Engine, clock: Clock, given: str) -> Identity | None:
    """Whose token this is, if it is in force."""
    parts = given.split("_", 2)
    if len(parts) != 3 or parts[0] != "discreet" or not given.isascii() or len(given) > 200:
        return None
    row = _token_row(engine, parts[1])
    # Where there is no such token something is compared all the same, so that both take as long.
    digest = row["digest"] if row is not None else _digest("")
    right = hmac.compare_digest(digest, _digest(parts[2]))
    if row is None or not right:
        return None
    found = _identity(row, clock)
    if found is None and row["revoked"] is None:
        # It has expired, and must stay so: the time at which that was seen outlives this process.
        clock.remember(at_once=True)
    return found


def open_session(engine: sa.Engine, clock: Clock, identity: Identity) -> tuple[str, str]:
    """A session for the holder of a token: the cookie's value, and what forms have to carry."""
    secret, csrf = random_text(), random_text(18)
    expires = min(identity.expires, clock.now() + SESSION)
    row = {"digest": _digest(secret), "token": identity.token, "csrf": csrf, "expires": expires}
    with engine.begin() as connection:
        connection.execute(sa.delete(sessions).where(sessions.c.expires < clock.now()))
        connection.execute(sa.insert(sessions).values(row))
    return secret, csrf


def by_session(engine: sa.Engine, clock: Clock, secret: str) -> Identity | None:
    """Whose session this is, if it and its token are in force."""
    if not secret.isascii() or len(secret) > 200:
        return None
    with reading(engine).begin() as connection:
        found = connection.execute(sa.select(sessions).where(sessions.c.digest == _digest(secret))).mappings().first()
    if found is None:
        return None
    if found["expires"] <= clock.now():
        clock.remember(at_once=True)
        return None
    row = _token_row(engine, found["token"])
    return None if row is None else _identity(row, clock, found["csrf"])


def close_session(engine: sa.Engine, secret: str) -> None:
    """Forget a session."""
    with engine.begin() as connection:
        connection.execute(sa.delete(sessions).where(sessions.c.digest == _digest(secret)))


def _token_row(engine: sa.Engine, token: str) -> Any:
    facts = (people.c.name, people.c.role, people.c.subject, people.c.confirmed)
    joined = sa.select(tokens, *facts).join(people, people.c.id == tokens.c.person)
    with reading(engine).begin() as connection:
        return connection.execute(joined.where(tokens.c.id == token)).mappings().first()


def _identity(row: Any, clock: Clock, csrf: str | None = None) -> Identity | None:
    if row["revoked"] is not None or row["held"] or row["expires"] <= clock.now() or row["role"] not in ALLOWED:
        return None
    if row["subject"] is not None and (row["confirmed"] or 0.0) + CONFIRMED <= clock.now():
        return None
    return Identity(
        person=row["person"],
        name=row["name"],
        role=row["role"],
        scopes=frozenset(row["scopes"].split()) & ALLOWED[row["role"]],
        token=row["id"],
        expires=row["expires"],
        csrf=csrf,
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
