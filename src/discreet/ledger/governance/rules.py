"""What takes two curators, as the log has it: a proposed deed, its proposer, its approver, its expiry.

A ledger that was never said to be governed goes by its first rule alone: a cap is raised by two curators. In one that
is, a data set is opened, a first cap is set, and a freeze is lifted by the approval itself: the line that approves is
the line that does it, and no other line can.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from discreet.exceptions import InvalidInput, LedgerCorrupt, LedgerRefused
from discreet.ledger.hash_chain import Entry, canonical
from discreet.privacy.budget import Budget

# Of no data set: what is noted of people, and what concerns all of them.
EVERYTHING = "*"
# What may be proposed. The first five change what the ledger allows; the others are carried out by a service.
_HERE = ("cap", "open", "allow", "unfreeze", "resume")
DEEDS = (*_HERE, "access", "token", "revoke")
_TWO = {
    "open": "opening a data set takes two curators here: propose it, and have another curator approve.",
    "allow": "a first cap takes two curators here: propose it, and have another curator approve.",
    "unfreeze": "lifting a freeze takes two curators here: propose it, and have another curator approve.",
}
# A clock that is this much behind the last line of the log was set back.
TOLERANCE = timedelta(minutes=5)
# What a cap comes to that should admit nothing: caps are positive.
_LEAST = 1e-9


@dataclass(slots=True, kw_only=True)
class Proposal:
    """A deed that one curator has proposed, and another has yet to approve.

    Parameters
    ----------
    id
        Number of the line that proposed it.
    dataset, analyst, cap
        Whose cap it is about, where it is about one.
    curator
        Who proposed it.
    deed, facts
        What would be done, and the particulars.
    expires
        Time after which it cannot be approved any more.
    open
        Whether it waits: neither approved nor rejected.
    approver
        Who approved it.

    Examples
    --------
    >>> import discreet as dc
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=2)
    >>> number = ledger.propose("clinic", epsilon=3, curator="Ada")
    >>> [(each.deed, each.curator, each.cap.epsilon) for each in ledger.proposals()]
    [('cap', 'Ada', 3.0)]
    >>> ledger.approve(number, curator="Grace")
    >>> ledger.account("clinic").cap.epsilon
    3.0
    """

    id: int
    dataset: str
    analyst: str | None
    cap: Budget | None
    curator: str
    deed: str = "cap"
    facts: dict[str, Any] = field(default_factory=dict)
    expires: str | None = None
    open: bool = True
    approver: str | None = None


class Governed:
    """The part of a book that says who may do what."""

    datasets: dict[str, Any]

    def __init__(self) -> None:
        self.proposals: dict[int, Proposal] = {}
        # How many curators it takes to loosen something; none was said to be needed in ledgers without a service.
        self.curators: int | None = None
        self.halted: str | None = None
        # The latest time of any line; lines are in order, clocks need not be.
        self.latest = ""
        self._noted: set[str] = set()

    def dataset(self, name: str) -> Any:
        """A data set by its name."""
        raise NotImplementedError

    def open_from(self, name: str, body: Mapping[str, Any]) -> None:
        """Enter a data set as its opening line has it."""
        raise NotImplementedError

    def noted(self, actor: str, dataset: str, body: Mapping[str, Any], day: str) -> bool:
        """Whether the log has the same note already, of this day."""
        return self.latest[:10] == max(day, self.latest[:10]) and _key(actor, dataset, body) in self._noted

    def pass_time(self, entry: Entry) -> None:
        """The latest time is that of this line, unless it was written by a clock that is behind."""
        if entry.time > self.latest:
            if entry.time[:10] != self.latest[:10]:
                self._noted.clear()
            self.latest = entry.time

    def takes_two(self, deed: str) -> None:
        """Refuse what one curator did alone, where it takes two."""
        if (self.curators or 0) > 1:
            raise LedgerRefused(_TWO[deed])

    def _govern(self, entry: Entry) -> None:
        if entry.body["curators"] not in (1, 2):
            raise InvalidInput("curators must be 1 or 2: say how many it takes to loosen something.")
        self.curators = entry.body["curators"]

    def _note(self, entry: Entry) -> None:
        if entry.body.get("daily"):
            self._noted.add(_key(entry.actor, entry.dataset, entry.body))

    def _halt(self, entry: Entry) -> None:
        self.halted = entry.body["reason"]

    def _propose(self, entry: Entry) -> None:
        body = entry.body
        deed, facts = body.get("deed", "cap"), body.get("facts", {})
        if deed not in DEEDS:
            raise LedgerCorrupt(f"line {entry.seq} proposes a deed that this version does not know: update.")
        cap = Budget(epsilon=body["epsilon"], delta=body["delta"]) if "epsilon" in body else None
        made = Proposal(
            id=entry.seq,
            dataset=entry.dataset,
            analyst=body.get("analyst"),
            cap=cap,
            curator=entry.actor,
            deed=deed,
            facts=dict(facts),
            expires=body.get("expires"),
        )
        self._check_possible(made)
        self.proposals[entry.seq] = made

    def _check_approve(self, entry: Entry) -> None:
        """Refuse what came too late, or was dated by a clock that was set back."""
        if self.latest and _time(entry.time) < _time(self.latest) - TOLERANCE:
            raise LedgerRefused(
                "the clock of this machine is behind the last line of the log: set it right; until then nothing is "
                "approved, because nobody could tell what has expired."
            )
        found = self._waiting(entry)
        if found.expires is not None and max(entry.time, self.latest) > found.expires:
            raise LedgerRefused("this proposal has expired: propose it again, if it is still wanted.")

    def _approve(self, entry: Entry) -> None:
        found = self._waiting(entry)
        if found.curator == entry.actor and self.curators != 1:
            raise LedgerRefused("a proposal takes two different curators: have another one approve.")
        self._check_possible(found)
        if found.deed in _HERE:
            getattr(self, f"_do_{found.deed}")(found)
        found.open, found.approver = False, entry.actor

    def _reject(self, entry: Entry) -> None:
        self._waiting(entry).open = False

    def _waiting(self, entry: Entry) -> Proposal:
        found = self.proposals.get(entry.body["proposal"])
        if found is None or not found.open or found.dataset != entry.dataset:
            raise InvalidInput(
                "there is no open proposal with this number on this data set: see 'discreet ledger show'."
            )
        return found

    # What can be done, and how the log's own part of it is.

    def _check_possible(self, made: Proposal) -> None:
        if made.deed == "open":
            if made.dataset in self.datasets:
                raise InvalidInput(f"data set {made.dataset!r} is open already: propose another cap, or choose a name.")
        elif made.deed == "resume":
            if self.halted is None:
                raise InvalidInput("nothing is halted: there is nothing to resume.")
        elif made.deed in ("cap", "allow", "unfreeze", "access"):
            self._check_on_dataset(made, self.dataset(made.dataset))

    def _check_on_dataset(self, made: Proposal, data: Any) -> None:
        if made.deed == "unfreeze" and not data.frozen:
            raise InvalidInput(f"data set {made.dataset!r} is not frozen: there is nothing to lift.")
        if made.deed == "allow" and made.analyst in data.quotas and not data.quotas[made.analyst].covers(made.cap):
            raise InvalidInput("this analyst has a cap already: propose a higher one.")
        if made.deed != "cap":
            return
        if made.analyst is not None and made.analyst not in data.quotas:
            raise InvalidInput("this analyst has no cap yet, so that there is none to raise: allow one.")
        assert made.cap is not None
        if made.analyst is None and data.cap.pure != made.cap.pure:
            raise InvalidInput("a cap keeps its kind, with or without a delta: open another data set for the other.")
        if not made.cap.covers(data.cap if made.analyst is None else data.quotas[made.analyst]):
            raise InvalidInput(
                "a proposal raises a cap, in epsilon, in delta or in both: one curator alone can lower it."
            )

    def _do_cap(self, made: Proposal) -> None:
        data = self.dataset(made.dataset)
        if made.analyst is None:
            data.cap = made.cap
        else:
            data.quotas[made.analyst] = made.cap

    def _do_open(self, made: Proposal) -> None:
        self.open_from(made.dataset, made.facts["opening"])

    def _do_allow(self, made: Proposal) -> None:
        self.dataset(made.dataset).quotas[made.analyst] = made.cap

    def _do_unfreeze(self, made: Proposal) -> None:
        self.dataset(made.dataset).frozen = False

    def _do_resume(self, made: Proposal) -> None:
        self.halted = None


def loosened(before: Governed, after: Governed) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Lines that take back whatever was loosened between two states of a log, as action, data set and body."""
    for name, data in after.datasets.items():
        known = before.datasets.get(name)
        if known is None or (known.frozen and not data.frozen):
            yield "freeze", name, {"reason": "opened or let go on by lines that came back from the anchor"}
        if known is None:
            continue
        for analyst, cap in [(None, data.cap), *data.quotas.items()]:
            old = known.cap if analyst is None else known.quotas.get(analyst)
            if old is None:
                # There was no cap for this analyst: one that admits next to nothing, until two curators raise it.
                old = Budget(epsilon=_LEAST, delta=None)
            if not old.covers(cap):
                yield "allow", name, {"analyst": analyst} | _smaller(old, cap)
    for each in after.proposals.values():
        if each.open and each.id not in before.proposals:
            yield "reject", each.dataset, {"proposal": each.id, "reason": "came back from the anchor: propose it again"}


def _smaller(one: Budget, other: Budget) -> dict[str, Any]:
    least = None if one.pure or other.pure else min(one.delta or 0.0, other.delta or 0.0)
    return {"epsilon": min(one.epsilon, other.epsilon), "delta": least}


def _key(actor: str, dataset: str, body: Mapping[str, Any]) -> str:
    return canonical([actor, dataset, dict(body)])


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
