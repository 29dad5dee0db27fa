"""What PostgreSQL sends: connections that keep their passwords to themselves, and rows of float8 by binary COPY."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import psycopg

Piece: TypeAlias = bytes | bytearray | memoryview

# COPY's binary format: a signature, flags and the length of an extension; at the end, a row of -1 fields.
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = struct.Struct(">11sii")
_TRAILER = b"\xff\xff"
_REASONS = {
    "42P01": "there is no such table: check its name and schema",
    "42501": "this user may not read it: grant SELECT",
    "42601": "the query is not valid SQL: try it in psql",
    "25006": "the query would write: give one that only reads",
    "22003": "a number is too large or too small for float64: leave it out, or rescale the column",
    "57014": "the statement was cancelled, or took longer than the server allows: start again",
    "53100": "the server's disk is full: free some space and start again",
}


def driver() -> Any:
    """The package psycopg, which is an extra."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("PostgreSQL needs psycopg: install it with pip install 'discreet[postgresql]'.") from None
    return psycopg


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection whose one transaction only reads, and sees the database as it is at its first statement.

    Nothing that libpq says on failure is repeated: it may quote the address, and the address may hold a password.
    """
    package = driver()
    try:
        connection: psycopg.Connection[Any] = package.connect(url, application_name="discreet")
    except package.Error:
        raise InvalidInput(
            "PostgreSQL does not answer at this address, or refuses the user: check "
            "postgresql://user@host:port/database, and that psql can connect with it."
        ) from None
    with refusing():
        connection.isolation_level = package.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        # Between two rounds the transaction is idle for as long as estimates take.
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    return connection


@contextmanager
def refusing(*others: type[Exception]) -> Iterator[None]:
    """Turn the server's errors, which may quote values, into sentences that do not; ``others`` pass."""
    psycopg = driver()
    try:
        yield
    except others:
        raise
    except psycopg.Error as error:
        state = error.sqlstate
        if state in _REASONS:
            raise InvalidInput(f"PostgreSQL refuses: {_REASONS[state]}.") from None
        # Without a state, or with one of these: the server went away.
        if state is None or state.startswith(("08", "57P")):
            raise InvalidInput(
                "The connection to PostgreSQL was lost before all records were read, so that nothing of this pass was "
                "used: check the server and start again."
            ) from None
        raise InvalidInput(
            f"PostgreSQL refuses the query (SQLSTATE {state}; its own words are not repeated, because they may quote "
            "records): try it in psql."
        ) from None


def fetched(connection: psycopg.Connection[Any], select: str, rows: int) -> Iterator[list[Any]]:
    """The columns of a SELECT of any types, ``rows`` rows at a time, by a server-side cursor: slower than `copied`."""
    with refusing(), connection.cursor(name="discreet", binary=True) as cursor:
        cursor.execute(select.encode())
        while found := cursor.fetchmany(rows):
            yield list(zip(*found, strict=True))


def copied(connection: psycopg.Connection[Any], select: str, width: int, rows: int) -> Iterator[Float]:
    """The columns of a SELECT of float8 without NULL, ``rows`` rows at a time: all of them, or an error."""
    statement = f"COPY ({select}) TO STDOUT (FORMAT BINARY)".encode()
    seen = 0
    with refusing(), connection.cursor() as cursor:
        with cursor.copy(statement) as copy:
            for batch in decoded(copy, width, rows):
                seen += len(batch)
                yield batch.T
        # The server's own count, which arrives after the last row: without it, rows may be missing.
        if cursor.rowcount != seen:
            raise _broken()


def decoded(blocks: Iterable[Piece], width: int, rows: int) -> Iterator[Float]:
    """Rows of float8 from the blocks of a binary COPY, however these are cut.

    No field is NULL and all are float8, so that every row takes equally many bytes.
    """
    row = np.dtype([("fields", ">i2"), ("values", [("size", ">i4"), ("value", ">f8")], (width,))])
    waiting: list[Piece] = []
    size, begun = 0, False
    for block in blocks:
        waiting.append(block)
        size += len(block)
        if size >= rows * row.itemsize + _HEADER.size:
            data, begun = _joined(waiting, begun)
            cut = min(len(data) // row.itemsize, rows) * row.itemsize
            yield _values(data[:cut], row)
            waiting, size = [data[cut:]], len(data) - cut
    data, begun = _joined(waiting, begun)
    if not data.endswith(_TRAILER) or (len(data) - len(_TRAILER)) % row.itemsize:
        raise _broken()
    if len(data) > len(_TRAILER):
        yield _values(data[: -len(_TRAILER)], row)


def _joined(waiting: list[Piece], begun: bool) -> tuple[bytes, bool]:
    data = b"".join(waiting)
    if begun:
        return data, True
    if len(data) < _HEADER.size:
        raise _broken()
    signature, _, extension = _HEADER.unpack_from(data)
    if signature != _SIGNATURE or extension < 0:
        raise _broken()
    return data[_HEADER.size + extension :], True


def _values(data: bytes, row: np.dtype[Any]) -> Float:
    found = np.frombuffer(data, dtype=row)
    fields = found["values"]
    if not (np.all(found["fields"] == fields.shape[1]) and np.all(fields["size"] == 8)):
        raise _broken()
    return fields["value"].astype(np.float64)


def _broken() -> InvalidInput:
    return InvalidInput(
        "PostgreSQL sent fewer or other rows than it announced, so that nothing of this pass was used: start again."
    )
