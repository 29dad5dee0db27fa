"""Anchors: the log, followed in a place that whoever can write the ledger should not be able to change.

A log shows by itself that lines were changed, and not that its last ones are missing: somebody who puts an old copy
back forgets what was spent since. An anchor holds every line, with a digest that is keyed with the ledger's secret. A
ledger that is behind it is an older copy: it gets back the lines that it lacks, word for word, so that what was spent
stays spent, takes back what they loosened, and is halted until two curators say so. One that contradicts it was
rewritten, or its anchor was: so was an anchor with further lines whose digests are not right.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from sqlalchemy import Column, Integer, MetaData, Table, Text, create_engine, insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import NullPool

from discreet.exceptions import InvalidInput, LedgerCorrupt, LedgerUnavailable
from discreet.ledger._storage import address_of
from discreet.ledger.hash_chain import Entry, Head, Sealed, read_sealed, verify_entries

_SECONDS = 30
# Lines that are sent at once by a process that does not know what was sent before.
_FEW = 100
# Of the environment, what a command gets.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME")
_OUT_OF_REACH = "the anchor of the ledger cannot be reached: check that it exists, has room, and may be written to."

_tables = MetaData()
_anchored = Table(
    "anchor_log", _tables, Column("seq", Integer, primary_key=True, autoincrement=False), Column("line", Text)
)


class Anchor(Protocol):
    """A place that follows a log."""

    def entries(self) -> list[Sealed]:
        """All lines that it holds; none, if it cannot be read back."""

    def head(self) -> Head | None:
        """The last line that it holds; None, if it holds none or cannot be read back."""

    def append(self, entries: Sequence[Sealed]) -> None:
        """Hold more lines; they are durable when this returns."""


def anchor_at(address: str) -> Anchor:
    """The anchor of an address.

    Parameters
    ----------
    address
        ``file:PATH``, ``command:PROGRAM WITH ARGUMENTS``, or that of a database.
    """
    kind, _, rest = address.partition(":")
    if kind == "file" and rest:
        return FileAnchor(Path(rest))
    if kind == "command" and rest.strip():
        return CommandAnchor(shlex.split(rest))
    if kind.startswith(("sqlite", "postgresql")):
        return DatabaseAnchor(address)
    raise InvalidInput("anchor must be file:PATH, command:PROGRAM, or the address of a database: write one of them.")


class FileAnchor:
    """A file with the lines of the log, one line of canonical JSON each, as `Ledger.export` writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self) -> list[Sealed]:
        """All lines; one that was cut off as it was written does not count."""
        with _reachable(), self._locked("r") as file:
            return list(read_sealed(_whole(file.read())))

    def head(self) -> Head | None:
        """The last line."""
        found = self.entries()
        return _head(found[-1]) if found else None

    def append(self, entries: Sequence[Sealed]) -> None:
        """Add lines to the end."""
        with _reachable(), self._locked("r+") as file:
            known = _whole(file.read())
            last = next(read_sealed(known[-1:])).entry.seq if known else 0
            new = [each for each in entries if each.entry.seq > last]
            file.seek(sum(len(line.encode()) for line in known))
            file.truncate()
            file.write("".join(f"{each.line}\n" for each in new))
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def _locked(self, mode: str) -> Iterator[IO[str]]:
        # Several servers follow one log.
        if not self._path.exists():
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._path.open(mode, encoding="utf-8", newline="") as file:
            fcntl.flock(file, fcntl.LOCK_EX if "+" in mode else fcntl.LOCK_SH)
            yield file


class DatabaseAnchor:
    """A table of another database; its user needs no more than to read and to add rows."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(address_of(url), poolclass=NullPool)

    def entries(self) -> list[Sealed]:
        """All lines."""
        with _reachable(), self._engine.begin() as connection:
            _tables.create_all(connection)
            lines = connection.execute(select(_anchored.c.line).order_by(_anchored.c.seq)).scalars().all()
        return list(read_sealed(lines))

    def head(self) -> Head | None:
        """The last line."""
        with _reachable(), self._engine.begin() as connection:
            _tables.create_all(connection)
            last = connection.execute(select(_anchored.c.line).order_by(_anchored.c.seq.desc()).limit(1)).scalar()
        found = None if last is None else next(read_sealed([last]))
        return None if found is None else _head(found)

    def append(self, entries: Sequence[Sealed]) -> None:
        """Add rows."""
        with _reachable(), self._engine.begin() as connection:
            _tables.create_all(connection)
        for each in entries:
            try:
                with _reachable(), self._engine.begin() as connection:
                    connection.execute(insert(_anchored).values(seq=each.entry.seq, line=each.line))
            except IntegrityError:
                # Another server was faster.
                continue


class CommandAnchor:
    """A program, such as one that sends a mail, which gets new lines on its standard input; it is not read back."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._sent: Head | None = None

    def entries(self) -> list[Sealed]:
        """None: what was sent cannot be read back."""
        return []

    def head(self) -> Head | None:
        """The last line that this process has sent."""
        return self._sent

    def append(self, entries: Sequence[Sealed]) -> None:
        """Send the head, and the lines since the last time; at first the head alone, where there are many."""
        if not entries:
            return
        head = _head(entries[-1])
        text = f"Head of the ledger: {head}\n\n"
        if self._sent is not None or len(entries) <= _FEW:
            text += "".join(f"{each.entry.line}\n" for each in entries)
        # What a program needs to be found and to find its files, and none of the passwords that servers know.
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        try:
            subprocess.run(
                self._words, input=text, text=True, check=True, capture_output=True, timeout=_SECONDS, env=environment
            )
        except (OSError, subprocess.SubprocessError):
            raise LedgerUnavailable(_OUT_OF_REACH) from None
        self._sent = head


def compare(ours: Sequence[Entry], kept: Sequence[Sealed]) -> list[Sealed]:
    """The lines that an anchor has and a log lacks; refused where they contradict each other."""
    verify_entries(each.entry for each in kept)
    shared = min(len(ours), len(kept))
    if shared and ours[shared - 1].hash != kept[shared - 1].entry.hash:
        raise LedgerCorrupt(
            "the log and its anchor contradict each other: one of them was rewritten. Nothing is released until the "
            "ledger is restored from a copy that agrees with the anchor."
        )
    return list(kept[len(ours) :])


def _head(line: Sealed) -> Head:
    return Head(line.entry.seq, line.entry.hash)


def _whole(text: str) -> list[str]:
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError):
        raise LedgerUnavailable(_OUT_OF_REACH) from None
    except IntegrityError:
        raise
    except DBAPIError:
        # The driver's own words may hold an address with a password.
        raise LedgerUnavailable(_OUT_OF_REACH) from None
