"""What curators write to a ledger: proposals and approvals, freezes, notes of what happened, and a halt."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from discreet.exceptions import InvalidInput
from discreet.ledger import _validation as checks
from discreet.ledger._journal import Journal
from discreet.ledger.governance.rules import DEEDS, EVERYTHING, Proposal, loosened
from discreet.ledger.hash_chain import Sealed, follow
from discreet.ledger.state import Book

# Days after which a proposal cannot be approved any more, and the most that anybody may ask for.
DAYS, MOST_DAYS = 14.0, 90.0


class Curated(Journal):
    """A ledger as curators see it; `discreet.Ledger` is one."""

    def govern(self, curators: int, *, curator: str) -> None:
        """Say how many curators it takes to open a data set, to set a first cap and to lift a freeze: 1 or 2.

        Whoever runs a service says so in its configuration. Raising a cap takes two where nothing was said.
        """
        if self._read(lambda book: book.curators) != curators:
            self._write("govern", EVERYTHING, curator, {"curators": curators})

    @property
    def curators(self) -> int | None:
        """How many curators it takes to loosen something; None where nothing was said."""
        return self._read(lambda book: book.curators)

    def propose(
        self, dataset: str, *, epsilon: float, delta: float | None = None, analyst: str | None = None, curator: str
    ) -> int:
        """Propose another cap, of the data set or of an analyst; the number is what another curator approves."""
        return self._write("propose", dataset, curator, checks.cap(analyst, epsilon, delta)).seq

    def propose_deed(
        self, deed: str, dataset: str = EVERYTHING, *, curator: str, days: float = DAYS, **facts: Any
    ) -> int:
        """Propose what takes two curators; the number is what another curator approves.

        Parameters
        ----------
        deed
            "cap", "open", "allow", "unfreeze" or "resume", or what a service carries out: "access", "token", "revoke".
        dataset
            On which data set.
        curator
            Who proposes it.
        days
            After which it cannot be approved any more.
        facts
            The particulars, plain JSON; ``analyst``, ``epsilon`` and ``delta`` are those of a cap.
        """
        if deed not in DEEDS:
            raise InvalidInput(f"deed must be one of {', '.join(DEEDS)}: choose one of them.")
        if not 0 < days <= MOST_DAYS:
            raise InvalidInput(f"days must lie between 0 and {MOST_DAYS:g}: a proposal has to expire.")
        body: dict[str, Any] = {"analyst": checks.optional(facts.pop("analyst", None), "analyst")}
        if "epsilon" in facts:
            body = checks.cap(body["analyst"], facts.pop("epsilon"), facts.pop("delta", None))
        body |= {"deed": deed, "facts": facts}
        # By the log's own time, where the clock of this machine is behind it.
        wanted = self._read(lambda book: max(book.latest, datetime.now(UTC).isoformat(timespec="seconds")))
        expires = (datetime.fromisoformat(wanted) + timedelta(days=days)).isoformat(timespec="seconds")
        return self._write("propose", dataset, curator, body | {"expires": expires}).seq

    def approve(self, proposal: int, *, curator: str) -> None:
        """Approve what another curator has proposed: it is done with that."""
        self._write("approve", self.proposal(proposal).dataset, curator, {"proposal": proposal})

    def reject(self, proposal: int, *, curator: str, reason: str | None = None) -> None:
        """Have a proposal not be approved by anybody: one's own, or that of another curator."""
        body = {"proposal": proposal, "reason": checks.optional(reason, "reason")}
        self._write("reject", self.proposal(proposal).dataset, curator, body)

    def proposal(self, number: int) -> Proposal:
        """A proposal by its number, whatever became of it."""
        found = self._read(lambda book: book.proposals.get(number))
        if found is None:
            raise InvalidInput(f"there is no proposal {number} in this ledger: check its number.")
        return replace(found)

    def proposals(self, *, everything: bool = False) -> tuple[Proposal, ...]:
        """What waits for a second curator; or all that ever was proposed."""

        def find(book: Book) -> tuple[Proposal, ...]:
            now = max(book.latest, datetime.now(UTC).isoformat(timespec="seconds"))
            waiting = (
                each
                for each in book.proposals.values()
                if everything or (each.open and (each.expires is None or each.expires >= now))
            )
            return tuple(replace(each) for each in waiting)

        return self._read(find)

    def freeze(self, dataset: str, *, curator: str, reason: str | None = None) -> None:
        """Stop everything new on a data set, requests that were reserved and not yet charged included."""
        self._write("freeze", dataset, curator, {"reason": checks.optional(reason, "reason")})

    def unfreeze(self, dataset: str, *, curator: str, reason: str | None = None) -> None:
        """Let requests go on; where two curators are needed, propose it instead."""
        self._write("unfreeze", dataset, curator, {"reason": checks.optional(reason, "reason")})

    def halt(self, reason: str, *, curator: str) -> None:
        """Stop everything new on all data sets, until two curators resume.

        Releases that the log speaks of and that are not kept here answer nothing any more: they were lost.
        """
        with self._store.reading() as connection:
            kept = self._store.released(connection)
        body = self._read(lambda book: _halting(book, kept, reason))
        self._write("halt", EVERYTHING, curator, body)

    def readmit(self, lines: Sequence[Sealed], reason: str, *, curator: str) -> bool:
        """Write lines down again that this ledger once had, word for word, take back what they loosened, and halt.

        What they spent, froze or lowered holds. A cap that they raised is lowered again, a data set that they opened or
        let go on is frozen, and what they proposed is rejected: two curators decide anew. False, if somebody else has
        written meanwhile: compare again.
        """
        self.check_wrote(lines)
        with self._lock:
            try:
                with self._store.writing() as connection:
                    self._catch_up(connection)
                    if lines and lines[0].entry.seq != self._book.head.seq + 1:
                        return False
                    released = self._store.released(connection)
                    before = deepcopy(self._book)
                    for each in lines:
                        self._book.enter(each.entry, written=True)
                        self._store.append(connection, each.entry)
                    deeds = [
                        *loosened(before, self._book),
                        ("halt", EVERYTHING, _halting(self._book, released, reason)),
                    ]
                    time = max(self._book.latest, datetime.now(UTC).isoformat(timespec="seconds"))
                    for action, dataset, body in deeds:
                        entry = follow(
                            self._book.head, time=time, actor=curator, action=action, dataset=dataset, body=body
                        )
                        self._book.enter(entry)
                        self._store.append(connection, entry)
            except BaseException:
                self._book = Book()
                raise
        return True

    @property
    def halted(self) -> str | None:
        """Why everything is halted; None where nothing is."""
        return self._read(lambda book: book.halted)

    def note(self, event: str, *, actor: str, dataset: str = EVERYTHING, daily: bool = False, **facts: Any) -> bool:
        """Write down that something happened that no other line says; whether it was not known yet.

        Parameters
        ----------
        event
            What, in a word or two.
        actor
            Who did it.
        dataset
            To which data set it belongs.
        daily
            Whether the same of the same day is written down but once.
        facts
            The particulars, plain JSON; ``whom`` is the person concerned.
        """
        body: dict[str, Any] = {"event": checks.name(event, "event")} | facts | ({"daily": True} if daily else {})
        if daily:
            day = datetime.now(UTC).date().isoformat()
            if self._read(lambda book: book.noted(actor, dataset, body, day)):
                return False
        self._write("note", dataset, actor, body)
        return True


def _halting(book: Book, kept: set[int], reason: str) -> dict[str, Any]:
    """What a line says that halts everything: why, and which releases are in no copy."""
    lost = {each.id for each in book.requests.values() if each.release} - kept
    return {"reason": checks.name(reason, "reason"), "lost": sorted(lost)}
