"""Tables of the service as they are now; `storage.migration` makes a database of an older version one of this."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from discreet.exceptions import InvalidInput, MissingExtra
from discreet.ledger._storage import make_private
from discreet.serve.storage.migration import migrate

metadata = sa.MetaData()
_text, _time = sa.Text, sa.Float


def _column(name: str, kind: Any, **kwargs: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, **({"nullable": False} | kwargs))


facts = sa.Table(
    "serve_facts",
    metadata,
    sa.Column("name", _text, primary_key=True),
    _column("value", _text),
)
people = sa.Table(
    "serve_people",
    metadata,
    sa.Column("id", _text, primary_key=True),
    _column("name", _text),
    _column("role", _text),
    _column("created", _time),
    # Of those whom an institution signs in: whom it means, and when it last said that they have their role.
    sa.Column("subject", _text, unique=True, index=True),
    sa.Column("confirmed", _time),
)
tokens = sa.Table(
    "serve_tokens",
    metadata,
    sa.Column("id", _text, primary_key=True),
    _column("person", _text, index=True),
    _column("label", _text),
    _column("digest", _text),
    _column("scopes", _text),
    _column("created", _time),
    _column("expires", _time),
    sa.Column("revoked", _time),
    sa.Column("used", _time),
    # Until another curator has approved it.
    _column("held", sa.Boolean, server_default=sa.false()),
)
sessions = sa.Table(
    "serve_sessions",
    metadata,
    sa.Column("digest", _text, primary_key=True),
    _column("token", _text, index=True),
    _column("csrf", _text),
    _column("expires", _time),
)
# Sign-ins by an institution that have begun, and sessions of those who came back from it.
sign_ins = sa.Table(
    "serve_sign_ins",
    metadata,
    sa.Column("state", _text, primary_key=True),
    _column("cookie", _text),
    _column("nonce", _text),
    _column("verifier", _text),
    _column("target", _text),
    _column("expires", _time),
)
visits = sa.Table(
    "serve_visits",
    metadata,
    sa.Column("digest", _text, primary_key=True),
    _column("person", _text, index=True),
    _column("csrf", _text),
    _column("expires", _time),
    _column("checked", _time),
    _column("confirmed", _time),
    # What the provider is asked again with, encrypted by the session's secret.
    _column("held", _text),
)
datasets = sa.Table(
    "serve_datasets",
    metadata,
    sa.Column("id", _text, primary_key=True),
    _column("title", _text),
    _column("about", _text),
    _column("source", _text),
    _column("outcome", _text),
    _column("treatment", _text),
    _column("bounds", _text),
    sa.Column("propensity", _text),
    # Further columns by what they are, as JSON.
    sa.Column("columns", _text),
    _column("n", sa.BigInteger),
    _column("n_public", sa.Boolean),
    sa.Column("n_about", sa.BigInteger),
    _column("claimed", sa.Boolean),
    _column("fingerprint", _text),
    _column("version", sa.Integer),
    _column("curator", _text),
    _column("created", _time),
    # What shows that the same records are registered again: where they are, and keyed digests of what files hold.
    _column("places", _text, server_default="[]"),
)
# What was proposed, as far as it is no matter of the ledger's log: sources may have passwords.
proposals = sa.Table(
    "serve_proposals",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _column("payload", _text),
    sa.Column("carried", _time),
)
grants = sa.Table(
    "serve_grants",
    metadata,
    sa.Column("dataset", _text, primary_key=True),
    sa.Column("person", _text, primary_key=True),
)
jobs = sa.Table(
    "serve_jobs",
    metadata,
    sa.Column("id", _text, primary_key=True),
    _column("dataset", _text, index=True),
    _column("person", _text, index=True),
    _column("kind", _text),
    _column("request", _text),
    _column("key", _text, index=True),
    _column("state", _text, index=True),
    _column("progress", sa.Integer),
    _column("created", _time),
    sa.Column("started", _time),
    sa.Column("visible", _time),
    sa.Column("worker", _text),
    sa.Column("lease", _time),
    _column("stop", sa.Boolean),
    sa.Column("reservation", _text),
    sa.Column("failure", _text),
    sa.Column("release", _text),
    # What it asks of a worker's version, and about how much work it is.
    _column("needs", sa.Integer, server_default="1"),
    _column("size", sa.BigInteger, server_default="0"),
    sa.Index("ix_serve_jobs_turns", "person", "started"),
)
# Processes that fit, as they say of themselves.
workers = sa.Table(
    "serve_workers",
    metadata,
    sa.Column("id", _text, primary_key=True),
    _column("version", _text),
    _column("work", sa.Integer),
    _column("started", _time),
    _column("seen", _time),
)
# Requests that may spend, by the keys that people gave them, and the first answer to each.
keys = sa.Table(
    "serve_keys",
    metadata,
    sa.Column("person", _text, primary_key=True),
    sa.Column("key", _text, primary_key=True),
    _column("digest", _text),
    _column("job", _text),
    _column("created", _time),
    sa.Column("answer", _text),
)
releases = sa.Table(
    "serve_releases",
    metadata,
    sa.Column("id", _text, primary_key=True),
    _column("job", _text, unique=True),
    _column("dataset", _text, index=True),
    _column("person", _text, index=True),
    _column("kind", _text),
    _column("key", _text, index=True),
    _column("title", _text),
    _column("plain", _text),
    # Databases that exist know it by its first name.
    _column("pictures", _text, key="figures"),
    sa.Column("png", sa.LargeBinary),
    _column("published", sa.Boolean),
    _column("created", _time),
)
# Releases that anybody may read who has the link.
public = sa.Table(
    "serve_public",
    metadata,
    sa.Column("release", _text, primary_key=True),
    _column("link", _text, unique=True, index=True),
    _column("curator", _text),
    _column("created", _time),
)
# Functions that answer one query after the other keep what has to stay secret, and every answer that they ever gave.
functions = sa.Table(
    "serve_functions",
    metadata,
    sa.Column("release", _text, primary_key=True),
    _column("head", _text),
    _column("asked", sa.Integer),
)
answers = sa.Table(
    "serve_answers",
    metadata,
    sa.Column("release", _text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    _column("call", _text),
)


def connect(url: str) -> sa.Engine:
    """An engine for the database, its tables in order."""
    return opened(url)[0]


def opened(url: str) -> tuple[sa.Engine, tuple[str, ...], tuple[str, ...]]:
    """The same with the steps of migration at which the tables were found, and are now."""
    engine = engine_of(url)
    if engine.dialect.name == "sqlite" and engine.url.database and engine.url.database != ":memory:":
        make_private(engine.url)
    try:
        before, after = migrate(engine)
    except sa.exc.OperationalError:
        raise InvalidInput("--database cannot be opened: check the address, and that its server is running.") from None
    return engine, before, after


def engine_of(url: str) -> sa.Engine:
    """An engine that has not touched the database yet."""
    # The driver that the extra brings.
    url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        # Whatever the server's default is: who waited for a row has to see what others wrote to it.
        more: Any = {"isolation_level": "READ COMMITTED"} if url.startswith("postgresql") else {}
        engine = sa.create_engine(url, pool_pre_ping=True, **more)
    except ModuleNotFoundError:
        raise MissingExtra(
            "--database is PostgreSQL's, which needs psycopg: install it with pip install 'discreet[serve,postgresql]'."
        ) from None
    except sa.exc.ArgumentError:
        raise InvalidInput("--database is no address of a database: write it as sqlite:///file.db.") from None
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine)
    return engine


def _prepare_sqlite(engine: sa.Engine) -> None:
    """Writers wait for each other from their first statement on, and readers wait for nobody."""

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        reading = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def reading(engine: sa.Engine) -> sa.Engine:
    """The same engine for transactions that only read: they do not wait for writers."""
    return engine.execution_options(reading=True)
