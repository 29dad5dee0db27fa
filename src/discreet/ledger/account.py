"""A data set's account as people and pages see it: cap, spent, reserved, left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.data.notebooks.card import Carded
from discreet.exceptions import MissingExtra
from discreet.ledger.composition import (
    Composition,
    Cost,
    Total,
    admits,
    gaussian_limit,
    over,
    plain_limit,
    within_quota,
)
from discreet.ledger.governance.rules import Proposal
from discreet.ledger.state import DataSet, Request
from discreet.privacy.accountant import profile_of
from discreet.privacy.budget import Budget, ClaimedEvent, Event, GaussianEvent, event_from_dict
from discreet.privacy.guarantee import Neighbours

# Composing distributions takes a tenth of a second each: beyond this many only the plain sum is shown.
_MOST_EVENTS = 60
_HALVINGS = 40
_BAR = 32
# Colours of Okabe and Ito, which everyone can distinguish.
_COLOURS = {"spent": "#0072b2", "reserved": "#e69f00", "left": "#d5dade"}


_NOTHING = (Total(), Total())


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One analyst's cap, and what the analyst has spent of it.

    Examples
    --------
    >>> import discreet as dc
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=2, analysts={"Ada": dc.Budget(epsilon=1)})
    >>> quota = ledger.account("clinic").quotas["Ada"]
    >>> quota.cap.epsilon, quota.spent.epsilon
    (1.0, 0.0)
    """

    cap: Budget
    spent: Total


@dataclass(frozen=True, slots=True, kw_only=True)
class Account(Carded):
    """A snapshot of one data set.

    Parameters
    ----------
    dataset, version, neighbours, unit, frozen
        What it is, and what is protected.
    cap, composition
        What may be spent, and how costs add up.
    spent
        All that counts, in the worst stratum; ``reserved`` is the part of it that has not been charged yet.
    strata
        Totals by stratum, where there are any.
    quotas
        Caps and spending of analysts, where there are any.
    requests
        How many requests are in which state.
    proposals
        Caps that wait for a second curator.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.ledger import Cost
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("clinic", epsilon=2)
    >>> _ = ledger.reserve("clinic", Cost(epsilon=0.5))
    >>> account = ledger.account("clinic")
    >>> account.left, account.fits(Cost(epsilon=1.75))
    ((1.5, 0.0), False)
    """

    dataset: str
    version: str
    neighbours: Neighbours
    unit: str
    frozen: bool
    cap: Budget
    composition: Composition
    spent: Total
    reserved: Total
    strata: dict[str, Total]
    quotas: dict[str, Quota]
    requests: dict[str, int]
    claimed: int
    proposals: tuple[Proposal, ...]
    _events: tuple[tuple[Event, ...], ...]
    _charges: tuple[tuple[Event, ...], ...]
    _totals: tuple[tuple[Cost, ...], ...]
    _compositions: tuple[Composition, ...]
    _by_analyst: dict[str, tuple[Total, Total]]

    @classmethod
    def of(cls, data: DataSet, proposals: Iterable[Proposal] = (), halted: str | None = None) -> Account:
        """The account of a data set."""
        parts = data.strata or (None,)
        totals = {part: Total.of(data.costs(part)) for part in parts}
        states = [request.state for request in data.requests.values()]
        counted = list(data.counted())
        return cls(
            dataset=data.name,
            version=data.version,
            neighbours=data.neighbours,
            unit=data.unit,
            frozen=data.frozen or halted is not None,
            cap=data.cap,
            composition=data.composition,
            spent=max(totals.values(), key=lambda total: total.epsilon),
            reserved=Total.of(request.cost for request in counted if request.state == "reserved"),
            strata={part: total for part, total in totals.items() if part is not None},
            quotas={name: Quota(cap=cap, spent=data.quota_total(name)) for name, cap in data.quotas.items()},
            requests={state: states.count(state) for state in sorted(set(states))},
            claimed=sum(request.outcome.get("status") == "claimed" for request in counted),
            proposals=tuple(each for each in proposals if each.open and each.dataset == data.name),
            _events=tuple(
                tuple(event for request in counted if request.stratum in (None, part) for event in _events(request))
                for part in parts
            ),
            _charges=tuple(
                tuple(_charge(request) for request in counted if request.stratum in (None, part)) for part in parts
            ),
            _totals=tuple(tuple(data.costs(part)) for part in parts),
            _compositions=data.compositions,
            _by_analyst={
                name: (
                    data.quota_total(name),
                    Total.of(r.cost for r in counted if r.analyst == name and r.state == "reserved"),
                )
                for name in data.quotas
            },
        )

    @property
    def left(self) -> tuple[float, float]:
        """Cap less spent, by plain addition: epsilon and delta. Gaussian requests may get more; see `largest`."""
        delta = (self.cap.delta or 0.0) - self.spent.delta
        return max(0.0, self.cap.epsilon - self.spent.epsilon), max(0.0, delta)

    @property
    def composed(self) -> float:
        """Epsilon of all that counts, at the cap's delta, composed as tightly as the recorded events allow.

        For people: what was asked was chosen along the way, so that not this number but filters enforce the cap.
        """
        return self._tight(self._events)

    @property
    def composed_as_charged(self) -> float:
        """The same, of what was charged whatever became of it: it says nothing about how and when requests ended."""
        return self._tight(self._charges)

    def _tight(self, events: tuple[tuple[Event, ...], ...]) -> float:
        plain = self.spent.epsilon
        if any(sum(not isinstance(event, GaussianEvent) for event in part) > _MOST_EVENTS for part in events):
            return plain
        delta = self.cap.delta or 0.0
        tight = max((profile_of(part).epsilon_at(delta) if part else 0.0) for part in events)
        return min(tight, plain) if self.spent.delta <= delta else tight

    def fits(
        self, cost: Cost, *, analyst: str | None = None, stratum: str | None = None, anybody: bool = False
    ) -> bool:
        """Whether a request would be admitted now, freezing apart; caps of analysts apart as well for ``anybody``."""
        if self.quotas and not anybody:
            if analyst not in self.quotas:
                return False
            quota = self.quotas[analyst]
            if over(quota.cap, cost) or not within_quota(quota.cap, _plus(quota.spent, cost)):
                return False
        if over(self.cap, cost):
            return False
        parts: Iterable[str | None] = self.strata or (None,)
        totals = [
            Total.of([*costs, cost] if stratum in (None, part) else costs)
            for part, costs in zip(parts, self._totals, strict=True)
        ]
        return any(all(admits(self.cap, way, total) for total in totals) for way in self._compositions)

    def largest(
        self,
        delta: float | None = None,
        *,
        one_gate: bool = True,
        analyst: str | None = None,
        stratum: str | None = None,
        anybody: bool = False,
    ) -> float:
        """Largest epsilon, rounded down, that a request with this delta may still have; 0 where none fits.

        Parameters
        ----------
        delta
            Of the request; None for a pure one.
        one_gate
            Whether the estimator is one of discreet's own, which spend their budget in one gate.
        analyst, stratum
            Who asks, and about which part.
        anybody
            Leave caps of analysts out: what is left for all of them together.
        """

        def fits(epsilon: float) -> bool:
            cost = Cost.of(Budget(epsilon=epsilon, delta=delta), one_gate=one_gate)
            return self.fits(cost, analyst=analyst, stratum=stratum, anybody=anybody)

        if fits(self.cap.epsilon):
            return self.cap.epsilon
        low, high = 0.0, self.cap.epsilon
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if middle > 0 and fits(middle) else (low, middle)
        return low if low > 1e-9 * self.cap.epsilon else 0.0

    def after(self, cost: Cost, *, analyst: str | None = None, stratum: str | None = None) -> Account:
        """The account as a request would leave it, if it were admitted: what fits and `largest` are as of then."""
        parts: Iterable[str | None] = self.strata or (None,)
        totals = tuple(
            (*costs, cost) if stratum in (None, part) else costs
            for part, costs in zip(parts, self._totals, strict=True)
        )
        # As in `Book.plan`: the first filter that admits it is that of all that follows.
        ways = [way for way in self._compositions if all(admits(self.cap, way, Total.of(each)) for each in totals)]
        known = {name: Total.of(costs) for name, costs in zip(self.strata, totals, strict=bool(self.strata))}
        quotas = dict(self.quotas)
        if analyst in quotas:
            quotas[analyst] = replace(quotas[analyst], spent=_plus(quotas[analyst].spent, cost))
        return replace(
            self,
            composition=(ways or self._compositions)[0],
            spent=max(map(Total.of, totals), key=lambda total: total.epsilon),
            strata=known if self.strata else {},
            quotas=quotas,
            _totals=totals,
            _compositions=tuple((ways or self._compositions)[:1]),
        )

    def reserved_part(self, analyst: str | None = None) -> float:
        """Which part of what counts is reserved and not charged yet: a split of bars, which no cap depends on."""
        spent, held = (self.spent, self.reserved) if analyst is None else self._by_analyst.get(analyst, _NOTHING)
        squares = (spent.mu**2, held.mu**2) if spent.mu < math.inf else (spent.epsilon, held.epsilon)
        return min(1.0, squares[1] / squares[0]) if squares[0] else 0.0

    @property
    def shares(self) -> tuple[float, float, float]:
        """Parts of the cap that are spent, reserved and left, for bars: by whichever way of adding up leaves more."""
        spent = self._share(self.spent)
        reserved = spent - self._share(_minus(self.spent, self.reserved))
        return max(0.0, spent - reserved), reserved, 1.0 - spent

    def _share(self, total: Total) -> float:
        if not total.requests:
            return 0.0
        epsilon, delta = plain_limit(self.cap, self.composition)
        limit = gaussian_limit(self.cap, self.composition)
        plain = max(_ratio(total.epsilon, epsilon), _ratio(total.delta, delta))
        return min(1.0, plain, _ratio(total.mu, limit) ** 2)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON, for pages and services."""
        spent, reserved, left = self.shares
        return {
            "dataset": self.dataset,
            "version": self.version,
            "neighbours": self.neighbours,
            "unit": self.unit,
            "frozen": self.frozen,
            "composition": self.composition,
            "cap": _plain(self.cap),
            "spent": {"epsilon": self.spent.epsilon, "delta": self.spent.delta},
            "composed": self.composed,
            "shares": {"spent": spent, "reserved": reserved, "left": left},
            "strata": {name: {"epsilon": t.epsilon, "delta": t.delta} for name, t in self.strata.items()},
            "analysts": {
                name: {"cap": _plain(q.cap), "spent": {"epsilon": q.spent.epsilon, "delta": q.spent.delta}}
                for name, q in self.quotas.items()
            },
            "requests": self.requests,
            "claimed": self.claimed,
        }

    def __str__(self) -> str:
        spent, reserved, left = self.shares
        lines = [
            f"{self.dataset} (version {self.version}): cap {self.cap}; {self.neighbours}, {self.unit}"
            + (" [FROZEN]" if self.frozen else ""),
            f"  {bar(spent, reserved)} {spent + reserved:.0%} spent or reserved, {left:.0%} left",
            f"  composed: epsilon = {self.composed:.4g}"
            + (f" at delta = {self.cap.delta:.3g}" if self.cap.delta else ""),
            f"  plain sum: epsilon = {self.spent.epsilon:.4g}, delta = {self.spent.delta:.3g}",
        ]
        lines += [
            f"  stratum {name}: epsilon = {t.epsilon:.4g}, delta = {t.delta:.3g}" for name, t in self.strata.items()
        ]
        lines += [
            f"  analyst {name}: epsilon = {q.spent.epsilon:.4g}, delta = {q.spent.delta:.3g} of {q.cap}"
            for name, q in self.quotas.items()
        ]
        lines += [f"  requests: {', '.join(f'{count} {state}' for state, count in self.requests.items()) or 'none'}"]
        if self.claimed:
            lines += [f"  {self.claimed} of them rest on published claims: the cap holds as far as these do."]
        lines += [
            f"  proposal {p.id} by {p.curator}: "
            + (f"cap {p.cap} for {p.analyst or 'the data set'}" if p.cap else p.deed)
            for p in self.proposals
        ]
        return "\n".join(lines)


def bar(spent: float, reserved: float, width: int = _BAR) -> str:
    """A bar of text: spent, reserved, left."""
    full = min(width, math.ceil(width * spent - 1e-9))
    held = min(width - full, math.ceil(width * reserved - 1e-9))
    return "█" * full + "▒" * held + "·" * (width - full - held)


def _events(request: Request) -> tuple[Event, ...]:
    """What is known of a request: its recorded events, or the most that it may spend."""
    recorded = request.outcome.get("events")
    return tuple(event_from_dict(event) for event in recorded) if recorded else (_charge(request),)


def _charge(request: Request) -> Event:
    """The most that a request may spend."""
    name, cost = f"request {request.id}", request.cost
    if cost.mu is not None:
        return GaussianEvent(name=name, diameter=cost.mu, sigma=1.0, dimension=1, lattice=False)
    return ClaimedEvent(name=name, epsilon=cost.epsilon, delta=cost.delta)


def _plus(total: Total, cost: Cost) -> Total:
    return Total(
        epsilon=total.epsilon + cost.epsilon,
        delta=total.delta + cost.delta,
        mu=math.hypot(total.mu, cost.gdp_mu),
        requests=total.requests + 1,
    )


def _minus(total: Total, part: Total) -> Total:
    known = total.mu < math.inf and part.mu < math.inf
    return Total(
        epsilon=max(0.0, total.epsilon - part.epsilon),
        delta=max(0.0, total.delta - part.delta),
        mu=math.sqrt(max(0.0, total.mu**2 - part.mu**2)) if known else math.inf,
        requests=total.requests - part.requests,
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.inf if part else 0.0


def _plain(budget: Budget) -> dict[str, float | None]:
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def plot_accounts(accounts: Sequence[Account], ax: Any = None) -> Any:
    """Draw what is spent, reserved and left of every cap (needs matplotlib)."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("figures need matplotlib: install it with pip install 'discreet[plots]'.") from None
    if ax is None:
        ax = pyplot.subplots(figsize=(7.2, 0.8 + 0.5 * max(1, len(accounts))), layout="constrained")[1]
    names = [f"{each.dataset}{' (frozen)' if each.frozen else ''}\n{each.cap}" for each in accounts]
    starts = [0.0] * len(accounts)
    for number, (part, colour) in enumerate(_COLOURS.items()):
        widths = [100 * each.shares[number] for each in accounts]
        ax.barh(names, widths, left=starts, color=colour, label=part, height=0.55)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    ax.set_xlim(0, 100)
    ax.set_xlabel("% of the cap")
    ax.invert_yaxis()
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return ax
