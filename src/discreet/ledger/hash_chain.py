"""A log that shows whether anybody has changed it: every line holds the hash of the line before.

A line is canonical JSON: sorted keys, no spaces, UTF-8. Its hash is SHA-256 of the line without the hash itself.
Changing, inserting, reordering or removing lines breaks the chain. What no chain can show by itself is that its last
lines are missing: keep a head (number and hash of the last line) elsewhere, and verify against it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from discreet.exceptions import LedgerCorrupt

FIRST = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the log.

    Parameters
    ----------
    seq
        Its number, from 1 without gaps. Order is by this number; clocks play no part in it.
    time
        When it was written, by the clock of the machine that wrote it, for people.
    actor
        Who did it.
    action
        What was done.
    dataset
        On which data set.
    body
        The particulars, plain JSON.
    previous, hash
        Hash of the line before, and of this one.

    Examples
    --------
    >>> import discreet as dc
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=2, curator="Ada")
    >>> entry = ledger.log()[0]
    >>> entry.seq, entry.actor, entry.action, entry.hash == entry.digest()
    (1, 'Ada', 'open', True)
    """

    seq: int
    time: str
    actor: str
    action: str
    dataset: str
    body: Mapping[str, Any]
    previous: str
    hash: str

    @property
    def line(self) -> str:
        """The line as it is exported."""
        return canonical(self._plain())

    def _plain(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def digest(self) -> str:
        """The hash that this line should have."""
        plain = self._plain()
        del plain["hash"]
        return sha256(canonical(plain))


@dataclass(frozen=True, slots=True)
class Sealed:
    """A line as an anchor keeps it: with a keyed digest, which nobody can make who has no access to the ledger.

    Examples
    --------
    >>> import discreet as dc
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=2)
    >>> kept = ledger.sealed()
    >>> list(read_sealed([line.line for line in kept])) == kept
    True
    """

    entry: Entry
    seal: str

    @property
    def line(self) -> str:
        """The line as an anchor writes it: as it is exported, and the digest."""
        return f"{self.entry.line} {self.seal}"


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a log, to be kept where nobody who can write the log can change it.

    Examples
    --------
    >>> import discreet as dc
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=2)
    >>> kept = str(ledger.head)
    >>> ledger.verify(anchor=Head.parse(kept)).seq
    1
    """

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Read what ``str`` wrote."""
        number, _, digest = text.strip().partition(":")
        if not number.isdecimal() or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise LedgerCorrupt("a head is written NUMBER:HASH with 64 hexadecimal digits; copy it as it was printed.")
        return cls(int(number), digest)


START = Head(0, FIRST)


def canonical(plain: Any) -> str:
    """The one way to write a JSON value."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def in_order(plain: Any) -> str:
    """A JSON value with its fields as they come: the order of covariates is part of what a release says."""
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256(text: str) -> str:
    """Hexadecimal SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def follow(head: Head, *, time: str, actor: str, action: str, dataset: str, body: Mapping[str, Any]) -> Entry:
    """The next line after a head."""
    made = Entry(
        seq=head.seq + 1,
        time=time,
        actor=actor,
        action=action,
        dataset=dataset,
        # Through JSON and back, so that what is kept in memory is what is on disk.
        body=json.loads(canonical(dict(body))),
        previous=head.hash,
        hash="",
    )
    plain = {field.name: getattr(made, field.name) for field in fields(made)}
    return Entry(**(plain | {"hash": made.digest()}))


def check(entry: Entry, after: Head) -> Head:
    """Refuse a line that does not follow; return the new head."""
    if entry.seq != after.seq + 1 or entry.previous != after.hash or entry.hash != entry.digest():
        raise LedgerCorrupt(
            f"line {after.seq + 1} of the log was changed, or lines are missing there: restore the ledger from a copy "
            "that verifies, and find out who can write to it."
        )
    return Head(entry.seq, entry.hash)


def read_lines(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries of an exported log, which must be written as they were exported."""
    known = {field.name for field in fields(Entry)}
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\n")
        try:
            plain = json.loads(text)
            entry = Entry(**plain) if isinstance(plain, dict) and plain.keys() == known else None
            same = entry is not None and entry.line == text
        except (TypeError, ValueError):
            entry, same = None, False
        if entry is None or not same:
            raise LedgerCorrupt(f"line {number} of the log is not written as it was exported: it was changed.")
        yield entry


def read_sealed(lines: Iterable[str]) -> Iterator[Sealed]:
    """The lines of an anchor; one without a digest has an empty one, which is right for none."""
    for number, line in enumerate(lines, 1):
        text, seal = line.rstrip("\n"), ""
        if not text.endswith("}"):
            text, _, seal = text.rpartition(" ")
        try:
            (entry,) = read_lines([text])
            right = type(entry.seq) is int and isinstance(entry.body, dict)
        except (LedgerCorrupt, RecursionError):
            right = False
        if not right:
            raise LedgerCorrupt(f"line {number} of the anchor is not written as the ledger writes it: it was changed.")
        yield Sealed(entry, seal)


def verify_lines(lines: Iterable[str], anchor: Head | None = None) -> Head:
    """Verify an exported log, and that it contains a head that was kept; return its own head.

    Examples
    --------
    >>> import discreet as dc
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=2)
    >>> ledger.freeze("clinic", curator="Ada")
    >>> verify_lines([entry.line for entry in ledger.log()], anchor=ledger.head).seq
    2
    """
    return verify_entries(read_lines(lines), anchor)


def verify_entries(entries: Iterable[Entry], anchor: Head | None = None) -> Head:
    """Verify entries in order, and that they contain a head that was kept; return the last head."""
    head, found = START, anchor is None or anchor == START
    for entry in entries:
        head = check(entry, head)
        found = found or head == anchor
    if not found:
        raise LedgerCorrupt(
            f"the log does not contain the head that was kept, line {anchor.seq if anchor else 0}: its end was "
            "removed or rewritten, or it is another log."
        )
    return head
