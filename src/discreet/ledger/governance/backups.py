"""Copies of a ledger, with the tables of a service beside it: one file of SQLite, whatever the database is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    Connection,
    DefaultClause,
    Engine,
    MetaData,
    false,
    func,
    insert,
    inspect,
    select,
    text,
    true,
)
from sqlalchemy.exc import DBAPIError

from discreet.exceptions import InvalidInput, LedgerCorrupt, LedgerUnavailable
from discreet.ledger._storage import address_of, engine_for, protected
from discreet.ledger.governance.anchors import Anchor, compare
from discreet.ledger.hash_chain import Head
from discreet.ledger.ledger import Ledger

_OURS = ("ledger_", "serve_")
# Rows that are copied at once.
_ROWS = 2_000


def back_up(url: str, file: Path) -> Head:
    """Copy everything as of one moment into a new file, and verify the copy; returns the head of its log.

    Parameters
    ----------
    url
        Of the ledger; its servers may go on.
    file
        The copy; there must be no such file. It is as secret as the database.
    """
    address = address_of(url)
    if address.get_backend_name() == "sqlite" and not Path(str(address.database)).is_file():
        raise InvalidInput("there is no ledger at this address: check it.")
    if file.exists():
        raise InvalidInput("the file for the backup exists already: choose another name, so that no copy is lost.")
    part = file.with_name(f".{file.name}.part")
    try:
        with suppress(FileNotFoundError):
            part.unlink()
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _copy(url, f"sqlite:///{part}")
        with closing(Ledger(f"sqlite:///{part}")) as made:
            head = made.verify()
        descriptor = os.open(part, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        part.rename(file)
    except (OSError, DBAPIError, LedgerUnavailable):
        raise LedgerUnavailable(
            "the backup could not be written: check that its directory exists, that you may write to it and that the "
            "disk has room; no file was left, and the ledger is as it was."
        ) from None
    finally:
        with suppress(OSError):
            part.unlink()
    return head


def restore(file: Path, url: str, *, anchor: Anchor | None = None, curator: str) -> tuple[Head, int]:
    """Make a ledger of a copy, with the lines that an anchor knows and the copy lacks; it is halted.

    Parameters
    ----------
    file
        A backup.
    url
        Where the ledger shall be: a database that has none yet.
    anchor
        What followed the log: what it knows as spent stays spent.
    curator
        Who restores it.

    Returns
    -------
    The head of the log, and how many lines came from the anchor.
    """
    if not file.is_file():
        raise InvalidInput("there is no backup of this name: check the path.")
    with closing(Ledger(f"sqlite:///{file}")) as copy:
        copy.verify()
        missing = compare(copy.log(), anchor.entries()) if anchor is not None else []
        copy.check_wrote(missing)
    with _connected(url) as (_, connection):
        if any(name.startswith(_OURS) for name in inspect(connection).get_table_names()):
            raise InvalidInput("there is a ledger at this address already: restore to an empty database.")
    try:
        _copy(f"sqlite:///{file}", url)
    except (OSError, DBAPIError):
        raise LedgerUnavailable("the ledger could not be written there: check the address and the disk.") from None
    with _connected(url) as (_, connection), connection.begin():
        forget_secrets(connection)
    with closing(Ledger(url)) as made:
        known = "what was spent since is known from the anchor" if anchor else "what was spent since is not known"
        made.readmit(missing, f"restored from a copy that ends at line {made.head.seq}: {known}.", curator=curator)
        return made.verify(), len(missing)


def forget_secrets(connection: Connection) -> None:
    """Let nobody in by what a copy says, and let functions that keep their noise answer nothing new.

    What was revoked, withdrawn or answered since the copy was made is not known: tokens are made again, sessions begun
    again, and access is given again by two curators.
    """
    there = set(inspect(connection).get_table_names())
    for table, statement in {
        "serve_functions": "UPDATE serve_functions SET asked = -asked - 1 WHERE asked >= 0",
        "serve_tokens": "UPDATE serve_tokens SET revoked = created WHERE revoked IS NULL",
        "serve_sessions": "DELETE FROM serve_sessions",
        "serve_visits": "DELETE FROM serve_visits",
        "serve_sign_ins": "DELETE FROM serve_sign_ins",
        "serve_grants": "DELETE FROM serve_grants",
    }.items():
        if table in there:
            connection.execute(text(statement))


def _copy(source: str, target: str) -> None:
    tables = MetaData()
    with _connected(source) as (_, old), _connected(target) as (engine, new):
        if old.dialect.name == "postgresql":
            old = old.execution_options(isolation_level="REPEATABLE READ")
        with old.begin(), new.begin():
            tables.reflect(old, only=lambda name, _: name.startswith(_OURS))
            if "ledger_log" not in tables.tables:
                raise InvalidInput("there is no ledger at this address: check it.")
            for table in tables.sorted_tables:
                for column in table.columns:
                    column.type, column.server_default = column.type.as_generic(), _default(column)
            tables.create_all(new)
            for table in tables.sorted_tables:
                rows = old.execute(select(table)).mappings()
                while part := rows.fetchmany(_ROWS):
                    new.execute(insert(table), [dict(row) for row in part])
                counts = {each.scalar(select(func.count()).select_from(table)) for each in (old, new)}
                if len(counts) > 1:
                    raise LedgerCorrupt("the copy has not as many rows as the ledger: repeat it.")
            for statement in protected(engine.dialect.name):
                new.exec_driver_sql(statement)


def _default(column: Any) -> Any:
    """What a column is when nothing is said, in words that every database knows."""
    given = column.server_default
    words = "" if given is None else re.sub(r"::[\w ]+$", "", str(given.arg))
    if not words or "(" in words:
        return None
    if isinstance(column.type.as_generic(), Boolean):
        return DefaultClause(false() if words.strip("'").lower() in ("0", "false") else true())
    return DefaultClause(text(words))


@contextmanager
def _connected(url: str) -> Iterator[tuple[Engine, Connection]]:
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            yield engine, connection
    finally:
        engine.dispose()
