"""The log of a ledger on disk and what it adds up to: read, appended to, checked."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.exceptions import LedgerCorrupt, LedgerRefused, LedgerUnavailable
from discreet.ledger import _validation as checks
from discreet.ledger.governance.rules import TOLERANCE
from discreet.ledger.governance.search import LogFilter
from discreet.ledger.hash_chain import Entry, Head, Sealed, follow, sha256, verify_entries
from discreet.ledger.state import Book

if TYPE_CHECKING:
    from sqlalchemy import Connection

Read = TypeVar("Read")


class Journal:
    """What a `discreet.Ledger` is kept in.

    Parameters
    ----------
    url
        Where it is kept.
    """

    # Why nothing may be written now; None where it may.
    held: str | None = None

    def __init__(self, url: str) -> None:
        self._url = url
        self._connect()

    def _connect(self) -> None:
        # Imported when first used: estimators know of ledgers, and most of them never see one.
        from discreet.ledger._storage import Store

        self._store, self._book, self._lock, self._process = Store(self._url), Book(), RLock(), os.getpid()

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    @property
    def head(self) -> Head:
        """Number and hash of the last line. Keep it elsewhere: it shows later that no line is missing."""
        return self._read(lambda book: book.head)

    def log(self, after: int = 0) -> list[Entry]:
        """Lines of the log."""
        self._after_fork()
        with self._store.reading() as connection:
            return list(self._store.entries(connection, after))

    def search(self, wanted: LogFilter, *, after: int = 0, limit: int = 100, newest: bool = True) -> list[Entry]:
        """Lines that match a filter, the newest first or in order, at most so many."""
        self._after_fork()
        with self._store.reading() as connection:
            return self._store.found(connection, wanted, after=after, limit=limit, newest=newest)

    def count(self, wanted: LogFilter) -> int:
        """How many lines match a filter."""
        self._after_fork()
        with self._store.reading() as connection:
            return self._store.count(connection, wanted)

    def export(self, path: str | Path) -> Head:
        """Write the log to a file, one line of canonical JSON each, and return its head."""
        entries = self.log()
        Path(path).write_text("".join(f"{entry.line}\n" for entry in entries), encoding="utf-8")
        return verify_entries(entries)

    def verify(self, anchor: Head | None = None) -> Head:
        """Read everything again from the start, and refuse a log or a release that was changed.

        Parameters
        ----------
        anchor
            A head that was kept elsewhere. Without one, the loss of the last lines shows only if this object had read
            them before.
        """
        self._after_fork()
        book = Book()
        with self._lock:
            known = self._book.head
        with self._store.reading(as_of_now=True) as connection:
            entries = list(self._store.entries(connection))
            for kept in (anchor, known):
                verify_entries(entries, kept)
            for entry in entries:
                book.enter(entry, written=True)
            for number in book.requests.keys() | self._store.released(connection):
                request, text = book.requests.get(number), self._store.release(connection, number)
                recorded = None if request is None else request.release
                if (None if text is None else sha256(text)) != recorded:
                    raise LedgerCorrupt(f"the release of request {number} was changed: restore it from a copy.")
        return book.head

    def seal(self, parts: Iterable[bytes]) -> str:
        """A digest of records that nobody can check guesses against: it is keyed with a secret of this ledger."""
        return _keyed(self._secret(), parts)

    def sealed(self, after: int = 0) -> list[Sealed]:
        """Lines of the log as an anchor keeps them: with digests that show later that this ledger wrote them."""
        secret = self._secret()
        return [Sealed(entry, _line_seal(secret, entry)) for entry in self.log(after)]

    def check_wrote(self, lines: Iterable[Sealed]) -> None:
        """Refuse lines that neither this ledger nor the one that it is a copy of has written."""
        secret = self._secret()
        if not all(hmac.compare_digest(each.seal.encode(), _line_seal(secret, each.entry).encode()) for each in lines):
            raise LedgerCorrupt(
                "the anchor goes on with lines that this ledger did not write: nothing is taken from it. Find out who "
                "can write to it, and set it right from a copy."
            )

    def _secret(self) -> bytes:
        self._after_fork()
        with self._store.reading() as connection:
            return self._store.secret(connection)

    def _read(self, answer: Callable[[Book], Read]) -> Read:
        self._after_fork()
        with self._lock:
            with self._store.reading() as connection:
                self._catch_up(connection)
            return answer(self._book)

    def _write(
        self,
        action: str,
        dataset: str,
        actor: str,
        body: Mapping[str, Any] | Callable[[Book], Mapping[str, Any]],
        also: Callable[[Connection], None] | None = None,
    ) -> Entry:
        """Write one line, if it follows from all others, and have it on disk."""
        self._after_fork()
        checks.name(dataset, "dataset")
        checks.name(actor, "curator")
        if self.held is not None:
            raise LedgerUnavailable(self.held)
        with self._lock:
            ahead = False
            try:
                with self._store.writing() as connection:
                    self._catch_up(connection)
                    made = body(self._book) if callable(body) else body
                    now = datetime.now(UTC)
                    if now - self._store.now(connection) > TOLERANCE:
                        # The lines of all others would be behind it, and nothing could be approved for as long.
                        raise LedgerRefused(
                            "the clock of this machine is ahead of the database's: nothing is written. Set it right."
                        )
                    time = now.isoformat(timespec="seconds")
                    entry = follow(self._book.head, time=time, actor=actor, action=action, dataset=dataset, body=made)
                    self._book.enter(entry)
                    ahead = True
                    self._store.append(connection, entry)
                    if also is not None:
                        also(connection)
            except BaseException:
                if ahead:
                    # What is in memory may not be on disk: read it again.
                    self._book = Book()
                raise
            return entry

    def _catch_up(self, connection: Connection) -> None:
        for entry in self._store.entries(connection, self._book.head.seq):
            self._book.enter(entry, written=True)

    def _after_fork(self) -> None:
        # Connections do not survive a fork.
        if self._process != os.getpid():
            self._connect()


def _keyed(secret: bytes, parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(key=secret, digest_size=32)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _line_seal(secret: bytes, entry: Entry) -> str:
    # The hash of a line stands for it and for all before it; nothing else is ever sealed in these two parts.
    return _keyed(secret, [b"line of the log", entry.digest().encode()])
