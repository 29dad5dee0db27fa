"""Where records may be, and what shows that the same records are registered already.

Files lie below the directories of the configuration, tables of PostgreSQL on the servers that it lists, and neither
the service's own database nor a system catalogue is ever a source. A view is looked through to the tables below it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from discreet.exceptions import InvalidInput
from discreet.serve.domain import sources
from discreet.serve.settings import Settings

_PART = 1 << 20
_OWN = "source is the service's own database: keep records in another one."
_CATALOGUE = "source is a system catalogue: name a table of records."
_UNREADABLE = "source cannot be read: check the address, the table, and the columns' names."
# What an address of PostgreSQL may say after a question mark: nothing that changes which table a name means.
_HARMLESS = {"host", "port", "user"}

# A table with everything that it is read from: what views select from, partitions, and tables that inherit.
_BELOW = """
WITH RECURSIVE below(oid) AS (
    SELECT to_regclass(:name)::oid
    UNION
    SELECT more.oid FROM below, LATERAL (
        SELECT d.refobjid AS oid FROM pg_rewrite r JOIN pg_depend d ON d.objid = r.oid
        WHERE r.ev_class = below.oid AND d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
        UNION SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = below.oid
    ) more
)
SELECT c.oid, n.nspname, c.relkind::text, (SELECT oid FROM pg_database WHERE datname = current_database()) AS base
FROM below JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace
"""


def located(source: str, settings: Settings) -> str:
    """The source in full, if records may be there.

    Parameters
    ----------
    source : str
        As a curator writes it.
    settings : Settings
        Of the service: what is allowed.
    """
    found = sources.located(source, settings.data, settings.directories)
    if not sources.is_database(found):
        _check_own(sources.files_of_source(found), settings)
        return found
    if sources.is_sqlite(found):
        if found.partition("#")[2].rpartition(".")[2].strip('"[]`').lower().startswith("sqlite_"):
            raise InvalidInput(_CATALOGUE)
        _check_own(sources.files_of_source(found), settings)
        return found
    _check_host(found.partition("#")[0], settings.hosts)
    tables = _below(found)
    if settings.database.startswith("postgresql") and _server(settings.database) == tables[0].rpartition("/")[0]:
        raise InvalidInput(_OWN)
    return found


def places(source: str, seal: Callable[[Iterable[bytes]], str]) -> list[str]:
    """What a source has in common with any other that has a record of it: the same files, copies, the same tables.

    Parameters
    ----------
    source : str
        In full.
    seal : callable
        Makes a keyed digest, so that what is kept lets nobody check guesses about records.
    """
    if sources.is_database(source) and not sources.is_sqlite(source):
        return [f"table:{table}" for table in _below(source)]
    found = []
    for name in sources.files_of_source(source):
        path = Path(name)
        status = path.stat()
        # Of SQLite the file alone counts: a table has several names there, and views of it have others.
        found.append(f"file:{status.st_dev}:{status.st_ino}")
        found.append(f"path:{path.resolve()}")
        if status.st_size:
            found.append(f"bytes:{seal([_digest(path)])}")
    return sorted(set(found))


def in_common(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether two sources have records in common, as far as that can be told."""
    return not {*map(_whole, one)}.isdisjoint(map(_whole, other))


def _whole(place: str) -> str:
    """A place without the name of a table, with which earlier versions wrote down files of SQLite."""
    return place.partition("#")[0]


def _digest(path: Path) -> bytes:
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_PART):
            hashed.update(part)
    return hashed.digest()


def _check_own(files: Iterable[str], settings: Settings) -> None:
    """Refuse the files of the service's own database, by whatever name."""
    if not settings.database.startswith("sqlite"):
        return
    own = sa.engine.make_url(settings.database).database or ""
    for name in files:
        for tail in ("", "-wal", "-shm", "-journal"):
            try:
                same = os.path.samefile(name, own + tail)
            except OSError:
                same = False
            if same:
                raise InvalidInput(_OWN)


def _check_host(address: str, hosts: Iterable[str]) -> None:
    try:
        url = sa.engine.make_url(address)
        port = int(url.query.get("port", url.port or 5432))  # type: ignore[arg-type]
    except (sa.exc.ArgumentError, ValueError, TypeError):
        raise InvalidInput(
            "source is no address of a table: write it as postgresql://host/base#schema.table."
        ) from None
    host = url.query.get("host", url.host or "localhost")
    if url.query.keys() - _HARMLESS or not isinstance(host, str) or "," in host or (url.host and "host" in url.query):
        raise InvalidInput("source says more than a host, a port, a user and a database: leave the rest out.")
    names = {host, f"{host}:{port}", f"{host}:{port}/{url.database}", f"{host}/{url.database}"}
    if not names & set(hosts):
        raise InvalidInput(
            "source is on a server that this service may not read: whoever runs it lists servers, in the setting hosts."
        )


def _engine(address: str) -> sa.Engine:
    plain = address.partition("#")[0].replace("postgresql+psycopg://", "postgresql://", 1)
    return sa.create_engine(plain.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=sa.NullPool)


def _server(address: str) -> str:
    """Which database of which cluster this is, by whatever name it was reached."""
    with _engine(address).connect() as connection:
        return _identity(connection)


def _identity(connection: sa.Connection) -> str:
    base = connection.scalar(sa.text("SELECT oid FROM pg_database WHERE datname = current_database()"))
    try:
        with connection.begin_nested():
            cluster = connection.scalar(sa.text("SELECT system_identifier FROM pg_control_system()"))
    except sa.exc.DBAPIError:
        # Not for everybody, on some servers: then by when the server began, which differs from others' as well.
        cluster = connection.scalar(sa.text("SELECT extract(epoch FROM pg_postmaster_start_time())::text"))
    return f"{cluster}/{base}"


def _below(source: str) -> list[str]:
    """Cluster, database and number of a table and of all that it is read from."""
    address, _, name = source.partition("#")
    schema, _, table = name.rpartition(".")
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table) if part)
    try:
        with _engine(address).connect() as connection:
            identity = _identity(connection)
            rows: list[Any] = list(connection.execute(sa.text(_BELOW), {"name": quoted}))
    except sa.exc.SQLAlchemyError:
        raise InvalidInput(_UNREADABLE) from None
    if not rows:
        raise InvalidInput(_UNREADABLE)
    for row in rows:
        if row.nspname == "information_schema" or row.nspname.startswith("pg_"):
            raise InvalidInput(_CATALOGUE)
        if row.relkind not in ("r", "p", "v", "m"):
            raise InvalidInput("source is read from another server, or is no table: name a table of this one.")
    return sorted(f"{identity}/{row.oid}" for row in rows)
