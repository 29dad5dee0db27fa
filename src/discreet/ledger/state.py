"""What the log adds up to: data sets, their caps and their requests.

The log is the ledger: there is no balance beside it that could disagree with it. `Book.enter` follows one line, and
refuses one that does not follow from those before. The same checks hold before a line is written and after it is read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from discreet.exceptions import BudgetExceeded, InvalidInput, LedgerCorrupt, LedgerRefused
from discreet.ledger.composition import Composition, Cost, Total, admits, over, within_quota
from discreet.ledger.governance.rules import Governed
from discreet.ledger.hash_chain import START, Entry, Head, canonical, check, sha256
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours

State = Literal["reserved", "charged", "settled", "failed", "cancelled"]

# Everything but what was cancelled before anything was drawn counts as spent.
_COUNTED = ("reserved", "charged", "settled", "failed")


@dataclass(slots=True, kw_only=True)
class Request:
    """A request and how far it has come.

    Parameters
    ----------
    id
        Number of the line that reserved it.
    dataset, analyst, stratum
        Whose it is, and on what part of which data set.
    cost
        What it is charged.
    key
        Digest of all that makes it identical to another; None where it cannot be answered from a stored release.
    about
        Public description.
    state
        "reserved", then "charged" before noise is drawn, then "settled" with its release, or "failed" without; or
        "cancelled" before it was charged.
    release
        SHA-256 of the stored release; None where there is none.
    outcome
        What the settlement says about the release: kind, status, events.
    answered
        Analysts who got the release again, for free.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.ledger import Cost
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=2)
    >>> number = ledger.reserve("clinic", Cost(epsilon=0.5), analyst="Ada")
    >>> request = ledger.request(number)
    >>> request.state, request.cost.epsilon
    ('reserved', 0.5)
    """

    id: int
    dataset: str
    analyst: str | None
    stratum: str | None
    cost: Cost
    key: str | None
    about: dict[str, Any]
    plain: bool
    state: State = "reserved"
    release: str | None = None
    outcome: dict[str, Any] = field(default_factory=dict)
    answered: set[str | None] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class DataSet:
    """A data set with its cap and everything that was ever asked of it."""

    name: str
    opening: dict[str, Any]
    cap: Budget
    neighbours: Neighbours
    unit: str
    declared: Composition
    strata: tuple[str, ...]
    version: str
    quotas: dict[str, Budget] = field(default_factory=dict)
    frozen: bool = False
    requests: dict[int, Request] = field(default_factory=dict)

    def counted(self) -> Iterator[Request]:
        """Requests that count as spent: all but the cancelled ones."""
        return (request for request in self.requests.values() if request.state in _COUNTED)

    @property
    def composition(self) -> Composition:
        """How costs add up: as declared, or plainly where the first request needed the whole cap that way."""
        return "plain" if any(request.plain for request in self.counted()) else self.declared

    @property
    def compositions(self) -> tuple[Composition, ...]:
        """Filters that may admit the next request: before the first one nobody knows anything, and either will do."""
        first = self.declared == "either" and not any(True for _ in self.counted())
        return ("either", "plain") if first else (self.composition,)

    def costs(self, stratum: str | None = None) -> list[Cost]:
        """What counts for the records of one stratum: requests on all records, and on that stratum."""
        return [request.cost for request in self.counted() if request.stratum in (None, stratum)]

    def worst(self, *more: tuple[str | None, Cost]) -> Iterator[Total]:
        """Totals for the records of each stratum, with further costs added."""
        for stratum in self.strata or (None,):
            yield Total.of([*self.costs(stratum), *(cost for part, cost in more if part in (None, stratum))])

    def quota_total(self, analyst: str) -> Total:
        """What an analyst has spent; strata make no difference to a quota."""
        return Total.of(request.cost for request in self.counted() if request.analyst == analyst)

    def key(self, stratum: str | None, same: str | None) -> str | None:
        """What identical requests on the records as they are now have in common."""
        if same is None:
            return None
        return sha256(canonical({"dataset": self.name, "version": self.version, "stratum": stratum, "same": same}))

    def stored(self, key: str) -> Request | None:
        """The settled request that an identical one is answered from."""
        alike = (r for r in self.requests.values() if r.key == key and r.state == "settled" and r.release)
        return next(alike, None)


class Book(Governed):
    """All data sets of a ledger, as of one line of its log."""

    datasets: dict[str, DataSet]

    def __init__(self) -> None:
        super().__init__()
        self.head: Head = START
        self.datasets = {}
        self.requests: dict[int, Request] = {}

    def enter(self, entry: Entry, *, written: bool = False) -> None:
        """Follow one line of the log; one that is ``written`` fitted under its cap when it was."""
        head = check(entry, self.head)
        if entry.action not in ACTIONS:
            raise LedgerCorrupt(f"line {entry.seq} of the log holds an action that this version does not know: update.")
        if not written and entry.action in ("reserve", "charge", "approve"):
            # They are measured against caps and clocks of their own time, and may not fit under those of a later one.
            getattr(self, f"_check_{entry.action}")(entry)
        getattr(self, f"_{entry.action}")(entry)
        self.pass_time(entry)
        self.head = head

    def dataset(self, name: str) -> DataSet:
        """A data set by its name."""
        try:
            return self.datasets[name]
        except KeyError:
            raise InvalidInput(f"there is no data set {name!r} in this ledger: open it first.") from None

    def request(self, number: int) -> Request:
        """A request by its number."""
        try:
            return self.requests[number]
        except KeyError:
            raise InvalidInput(f"there is no request {number} in this ledger: check its number.") from None

    def answered(self, number: int, analyst: str | None) -> bool:
        """Whether the log says already that an analyst got a release again; refused where they may not."""
        request = self.request(number)
        data = self.dataset(request.dataset)
        if data.quotas and analyst not in data.quotas:
            raise LedgerRefused(f"data set {data.name!r} has no budget for this analyst: ask a curator to allow one.")
        return analyst in request.answered

    def plan(self, name: str, cost: Cost, analyst: str | None, stratum: str | None) -> bool:
        """Refuse a request that may not be made; otherwise say whether costs add up plainly where it was not declared.

        What it answers depends on caps, costs and names alone: all of these are public.
        """
        data = self.dataset(name)
        self._thawed(data)
        if stratum is not None and stratum not in data.strata:
            raise InvalidInput(f"data set {name!r} has no stratum {stratum!r}: strata are declared when it is opened.")
        if data.quotas:
            if analyst not in data.quotas:
                raise LedgerRefused(f"data set {name!r} has no budget for this analyst: ask a curator to allow one.")
            total = Total.of([*(r.cost for r in data.counted() if r.analyst == analyst), cost])
            if over(data.quotas[analyst], cost) or not within_quota(data.quotas[analyst], total):
                raise BudgetExceeded(_exceeded(f"the analyst's part of {name!r}", cost, data.quotas[analyst], total))
        totals = list(data.worst((stratum, cost)))
        for composition in () if over(data.cap, cost) else data.compositions:
            if all(admits(data.cap, composition, total) for total in totals):
                return composition != data.declared
        worst = max(totals, key=lambda total: total.epsilon)
        raise BudgetExceeded(_exceeded(f"data set {name!r}", cost, data.cap, worst))

    def _open(self, entry: Entry) -> None:
        if entry.dataset in self.datasets:
            raise InvalidInput(f"data set {entry.dataset!r} is open already: propose another cap, or choose a name.")
        self.takes_two("open")
        self.open_from(entry.dataset, entry.body)

    def open_from(self, name: str, body: Mapping[str, Any]) -> None:
        """Enter a data set as its opening line has it."""
        self.datasets[name] = DataSet(
            name=name,
            opening=dict(body),
            cap=_budget(body),
            neighbours=body["neighbours"],
            unit=body["unit"],
            declared=body["composition"],
            strata=tuple(body["strata"]),
            version=body["version"],
        )

    def _allow(self, entry: Entry) -> None:
        data, analyst, cap = self.dataset(entry.dataset), entry.body["analyst"], _budget(entry.body)
        if analyst is None:
            if not data.cap.covers(cap):
                raise LedgerRefused("a cap is raised by two curators: propose it, and have another curator approve.")
            data.cap = cap
            return
        if analyst not in data.quotas:
            self.takes_two("allow")
        elif not data.quotas[analyst].covers(cap):
            raise LedgerRefused("a cap is raised by two curators: propose it, and have another curator approve.")
        data.quotas[analyst] = cap

    def _halt(self, entry: Entry) -> None:
        super()._halt(entry)
        for number in entry.body.get("lost", ()):
            # Its release was in no copy: what it was charged stays, and it answers nothing.
            self.request(number).release = None

    def _freeze(self, entry: Entry) -> None:
        self.dataset(entry.dataset).frozen = True

    def _unfreeze(self, entry: Entry) -> None:
        self.takes_two("unfreeze")
        self.dataset(entry.dataset).frozen = False

    def _renew(self, entry: Entry) -> None:
        self.dataset(entry.dataset).version = entry.body["version"]

    def _reserve(self, entry: Entry) -> None:
        body = entry.body
        request = Request(
            id=entry.seq,
            dataset=entry.dataset,
            analyst=body["analyst"],
            stratum=body["stratum"],
            cost=Cost.from_dict(body["cost"]),
            key=body["key"],
            about=body["about"],
            plain=body["plain"],
        )
        self.requests[entry.seq] = self.datasets[entry.dataset].requests[entry.seq] = request

    def _check_reserve(self, entry: Entry) -> None:
        body = entry.body
        cost = Cost.from_dict(body["cost"])
        if self.plan(entry.dataset, cost, body["analyst"], body["stratum"]) != body["plain"]:
            raise InvalidInput("a reservation must say how costs add up from then on: reserve again.")

    def _check_charge(self, entry: Entry) -> None:
        """Refuse what fitted when it was reserved, where a cap was lowered since: with all that was charged before."""
        request, data = self._found(entry, "reserved"), self.dataset(entry.dataset)
        charged = [each for each in data.counted() if each is request or each.state != "reserved"]
        quota = data.quotas.get(request.analyst) if request.analyst is not None else None
        if quota is not None:
            total = Total.of(each.cost for each in charged if each.analyst == request.analyst)
            if not within_quota(quota, total):
                raise BudgetExceeded(_exceeded(f"the analyst's part of {data.name!r}", request.cost, quota, total))
        for part in data.strata or (None,):
            total = Total.of(each.cost for each in charged if each.stratum in (None, part))
            if request.stratum in (None, part) and not admits(data.cap, data.composition, total):
                raise BudgetExceeded(_exceeded(f"data set {data.name!r}", request.cost, data.cap, total))

    def _charge(self, entry: Entry) -> None:
        request = self._found(entry, "reserved")
        self._thawed(self.dataset(entry.dataset))
        request.state = "charged"

    def _settle(self, entry: Entry) -> None:
        request = self._found(entry, "charged")
        request.release, request.outcome = entry.body["release"], dict(entry.body["outcome"])
        request.state = "settled"

    def _fail(self, entry: Entry) -> None:
        self._found(entry, "charged").state = "failed"

    def _cancel(self, entry: Entry) -> None:
        self._found(entry, "reserved").state = "cancelled"

    def _answer(self, entry: Entry) -> None:
        self.answered(entry.body["request"], entry.body["analyst"])
        self._found(entry, "settled").answered.add(entry.body["analyst"])

    def _thawed(self, data: DataSet) -> None:
        if self.halted is not None:
            raise LedgerRefused(f"everything is halted until two curators resume: {self.halted}")
        if data.frozen:
            raise LedgerRefused(
                f"data set {data.name!r} is frozen: stored releases can be read, nothing new is released."
            )

    def _found(self, entry: Entry, state: State) -> Request:
        request = self.request(entry.body["request"])
        if request.dataset != entry.dataset or request.state != state:
            raise LedgerRefused(
                f"request {request.id} is {request.state}, not {state}: it is reserved, charged and settled once each."
            )
        return request


ACTIONS = (
    "open",
    "allow",
    "propose",
    "approve",
    "freeze",
    "unfreeze",
    "renew",
    "reserve",
    "charge",
    "settle",
    "fail",
    "cancel",
    "answer",
    "govern",
    "reject",
    "note",
    "halt",
)


def _budget(body: Any) -> Budget:
    return Budget(epsilon=body["epsilon"], delta=body["delta"])


def _exceeded(whose: str, cost: Cost, cap: Budget, total: Total) -> str:
    spent = max(0.0, total.epsilon - cost.epsilon), max(0.0, total.delta - cost.delta)
    used = f"epsilon = {spent[0]:.6g}" + (f", delta = {spent[1]:.3g}" if cap.delta else "")
    return (
        f"{whose} has a cap of {cap}; requests so far add up to {used}, and {cost.budget} more does not fit: ask for "
        "less, or have two curators raise the cap."
    )
