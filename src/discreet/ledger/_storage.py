"""Where the log is kept: SQLite or PostgreSQL, in tables that can only grow.

A line is on disk before the call that wrote it returns. Writers take turns, so that what one reads before it writes is
all there is.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, cast

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    func,
    insert,
    inspect,
    or_,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from discreet.exceptions import InvalidInput, LedgerCorrupt, LedgerUnavailable, MissingExtra
from discreet.ledger.governance.search import LogFilter
from discreet.ledger.hash_chain import Entry, canonical, sha256

# How long a writer waits for its turn, in seconds.
_PATIENCE = 60
_SQLITE, _POSTGRESQL = "sqlite", "postgresql"
# Any number will do, as long as nobody else locks by it.
_LOCK = 0x6469736372656574

_making = threading.Lock()

_tables = MetaData()
_schema = Table("ledger_schema", _tables, Column("version", Integer, primary_key=True))
_log = Table(
    "ledger_log",
    _tables,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("time", String(40), nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", String(20), nullable=False),
    Column("dataset", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
)
_release = Table(
    "ledger_release",
    _tables,
    Column("request", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("text", Text, nullable=False),
)
# Digests of records are keyed with it; it is in no log and no export.
_secret = Table("ledger_secret", _tables, Column("secret", String(64), primary_key=True))


def _first_schema(connection: Connection) -> None:
    """Log, releases and the secret, which refuse to be changed."""
    _tables.create_all(connection, tables=[_log, _release, _secret])
    connection.execute(insert(_secret).values(secret=os.urandom(32).hex()))
    for statement in protected(connection.dialect.name):
        connection.exec_driver_sql(statement)


def protected(dialect: str) -> Iterator[str]:
    """Statements after which log, releases and secret refuse to be changed."""
    for table in (_log.name, _release.name, _secret.name):
        yield from _append_only(table, dialect)


# In order; a database has the version of the last one that it went through. Never edit one that was published: add one.
_MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first_schema,)


def _append_only(table: str, dialect: str) -> Iterator[str]:
    if dialect == _SQLITE:
        for verb in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'the ledger only grows'); END"
            )
        return
    yield (
        "CREATE OR REPLACE FUNCTION ledger_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger only grows'; END $$"
    )
    yield (
        f"CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_only_grows()"
    )


class Store:
    """The tables of one ledger.

    Parameters
    ----------
    url
        "sqlite:///budget.db" (three slashes: a relative path, four: an absolute one), or a URL of PostgreSQL.
    """

    def __init__(self, url: str) -> None:
        self._engine = engine_for(url)
        try:
            with self.writing() as connection:
                _migrate(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is alone in writing; it is on disk when the block has ended."""
        with _refusing(), self._engine.connect() as plain:
            options: dict[str, Any] = {"discreet_writing": True}
            if plain.dialect.name == _POSTGRESQL:
                # Whatever the server's default is: what is read after the lock must be what others wrote before it.
                options["isolation_level"] = "READ COMMITTED"
            connection = plain.execution_options(**options)
            with connection.begin():
                if connection.dialect.name == _POSTGRESQL:
                    # Whatever the server's default is: a charge must survive a power cut.
                    connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
                yield connection

    @contextmanager
    def reading(self, *, as_of_now: bool = False) -> Iterator[Connection]:
        """A transaction that reads; everything as of its beginning, if that is wanted (SQLite gives no other)."""
        with _refusing(), self._engine.connect() as plain:
            options: dict[str, Any] = {}
            if plain.dialect.name == _POSTGRESQL:
                # A single question needs no transaction, and so no journeys to begin and end one.
                options["isolation_level"] = "REPEATABLE READ" if as_of_now else "AUTOCOMMIT"
            connection = plain.execution_options(**options)
            with connection.begin():
                yield connection

    def now(self, connection: Connection) -> datetime:
        """The time by the clock of the database, which several machines may share."""
        if connection.dialect.name == _POSTGRESQL:
            return cast(datetime, connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one())
        found = connection.exec_driver_sql("SELECT strftime('%Y-%m-%dT%H:%M:%S+00:00', 'now')").scalar_one()
        return datetime.fromisoformat(found)

    def append(self, connection: Connection, entry: Entry) -> None:
        """Write one line."""
        plain = {name: getattr(entry, name) for name in _log.columns.keys()}  # noqa: SIM118
        connection.execute(insert(_log).values(plain | {"body": canonical(dict(entry.body))}))

    def entries(self, connection: Connection, after: int = 0) -> Iterator[Entry]:
        """Lines after a number, in order."""
        lines = select(_log).order_by(_log.c.seq)
        # From the start everything is read, numbers that no line should have included.
        yield from self._rows(connection, lines.where(_log.c.seq > after) if after else lines)

    def _rows(self, connection: Connection, lines: Any) -> Iterator[Entry]:
        for row in connection.execute(lines).mappings():
            try:
                body = json.loads(row["body"])
            except ValueError:
                body = None
            if not isinstance(body, dict) or canonical(body) != row["body"]:
                raise LedgerCorrupt(f"line {row['seq']} of the log was changed: restore the ledger from a copy.")
            yield Entry(**(dict(row) | {"body": body}))

    def found(self, connection: Connection, wanted: LogFilter, *, after: int, limit: int, newest: bool) -> list[Entry]:
        """Some of the lines that match, in order or the newest first."""
        lines = select(_log.c.seq).where(*_conditions(wanted), _log.c.seq > after)
        order = _log.c.seq.desc() if newest else _log.c.seq
        numbers = connection.execute(lines.order_by(order).offset(wanted.skip).limit(limit)).scalars().all()
        # Read as all lines are, so that one that was changed is refused.
        rows = {each.seq: each for each in self._rows(connection, select(_log).where(_log.c.seq.in_(numbers)))}
        return [rows[number] for number in numbers]

    def count(self, connection: Connection, wanted: LogFilter) -> int:
        """How many lines match."""
        found = select(func.count()).select_from(_log).where(*_conditions(wanted))
        return int(connection.execute(found).scalar_one())

    def put_release(self, connection: Connection, request: int, text: str) -> str:
        """Keep a release, and return its digest."""
        digest = sha256(text)
        connection.execute(insert(_release).values(request=request, digest=digest, text=text))
        return digest

    def release(self, connection: Connection, request: int) -> str | None:
        """The text of a release; None where there is none."""
        found = connection.execute(select(_release.c.text).where(_release.c.request == request)).scalar_one_or_none()
        return None if found is None else str(found)

    def released(self, connection: Connection) -> set[int]:
        """Numbers under which releases are kept."""
        return set(connection.execute(select(_release.c.request)).scalars())

    def secret(self, connection: Connection) -> bytes:
        """What digests of records are keyed with."""
        return bytes.fromhex(connection.execute(select(_secret.c.secret)).scalar_one())


def _conditions(wanted: LogFilter) -> list[Any]:
    """What lines have to meet; a body is canonical JSON, so that a field with its value is a piece of its text."""

    def says(field: str, value: str) -> Any:
        return _log.c.body.contains(f'"{field}":{canonical(value)}', autoescape=True)

    found: list[Any] = []
    if wanted.who:
        found.append(or_(_log.c.actor == wanted.who, says("whom", wanted.who), says("analyst", wanted.who)))
    if wanted.what:
        found.append(or_(_log.c.action == wanted.what, says("event", wanted.what), says("deed", wanted.what)))
    if wanted.dataset:
        found.append(_log.c.dataset == wanted.dataset)
    if wanted.since:
        found.append(_log.c.time >= wanted.since)
    if wanted.until:
        # A day is meant with all of its hours.
        found.append(_log.c.time < wanted.until + "~")
    return found


def engine_for(url: str) -> Engine:
    """Connections to the database of a ledger, with whatever makes its writes durable."""
    made = address_of(url)
    try:
        if made.get_backend_name() == _SQLITE:
            make_private(made)
            engine = create_engine(made, connect_args={"timeout": _PATIENCE, "check_same_thread": False})
            event.listen(engine, "connect", _durable_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        # A request may wait for its turn behind others, but not forever.
        options = f"-c lock_timeout={_PATIENCE}s"
        return create_engine(made, pool_pre_ping=True, pool_timeout=_PATIENCE, connect_args={"options": options})
    except ModuleNotFoundError:
        raise MissingExtra("PostgreSQL needs psycopg: install it with pip install 'discreet[postgresql]'.") from None


def make_private(url: URL) -> None:
    """Make the file of a new SQLite database, for its owner alone; SQLite gives files beside it the same mode.

    A file that exists keeps its mode. One that cannot be made is for SQLite to complain about.
    """
    # Only one that did not exist is opened: closing a database's file would end this process's locks on it.
    with _making, suppress(OSError):
        os.close(os.open(str(url.database), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def address_of(url: str) -> URL:
    """The address of a database as SQLAlchemy takes it; refused where a ledger could not be kept."""
    advice = "give 'sqlite:///budget.db' or 'postgresql://user@host/database'."
    try:
        made = make_url(url)
        backend = made.get_backend_name()
    except (ArgumentError, NoSuchModuleError, AttributeError):
        raise InvalidInput(f"url is not the address of a database: {advice}") from None
    if backend == _POSTGRESQL:
        return made.set(drivername="postgresql+psycopg")
    if backend != _SQLITE:
        raise InvalidInput(f"a ledger is kept in SQLite or PostgreSQL: {advice}")
    if not made.database or made.database == ":memory:" or made.database.startswith("file:") or made.query:
        raise InvalidInput(f"a ledger in memory would forget what was spent: {advice}")
    return made


def _durable_sqlite(connection: Any, _: object) -> None:
    # SQLAlchemy says when transactions begin; the driver must not.
    connection.isolation_level = None
    # One file, and a commit is on disk, its directory included, before it returns.
    connection.execute("PRAGMA synchronous = EXTRA")


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get("discreet_writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _migrate(connection: Connection) -> None:
    # Inside a writer's transaction, so that two processes do not both set a new database up.
    if not inspect(connection).has_table(_schema.name):
        _schema.create(connection)
        found = 0
    else:
        found = max(connection.execute(select(_schema.c.version)).scalars(), default=0)
    if found > len(_MIGRATIONS):
        raise LedgerCorrupt(
            f"this ledger has version {found}, and this discreet knows versions up to {len(_MIGRATIONS)}: update it."
        )
    for version, step in enumerate(_MIGRATIONS[found:], found + 1):
        step(connection)
        connection.execute(insert(_schema).values(version=version))


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except DBAPIError:
        # The driver's own words may hold an address with a password.
        raise LedgerUnavailable(
            "the ledger's database does not answer as it should, so that nothing is drawn: check that it exists, that "
            "you may write to it, and that nobody keeps it locked."
        ) from None
