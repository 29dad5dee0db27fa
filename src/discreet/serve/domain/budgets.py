"""The ledger as the service uses it: reserved when a request is queued, charged before a record is read."""

from __future__ import annotations

import threading
from typing import Any

from discreet.exceptions import BudgetExceeded, DiscreetError, LedgerRefused
from discreet.ledger import Account, Cost
from discreet.privacy.budget import Budget
from discreet.serve.domain.datasets import Dataset
from discreet.serve.domain.requests import LEAST, OFFERED, Asked
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.service import Service

# Composing distributions takes a moment; what was composed does not change until something is charged.
_composed: dict[tuple[str, str, bool], tuple[tuple[float, ...], float]] = {}
_left: dict[tuple[str, str, str | None, float | None], tuple[Any, float]] = {}
_lock = threading.Lock()
# The delta that forms begin with.
_DELTA = 1e-6
_MOST = 1_000


class Frozen(DiscreetError):
    """A data set on which nothing may be charged now."""


class Cancelled(DiscreetError):
    """A request that does not wait to be charged any more."""


def cost_of(asked: Asked) -> Cost:
    """What a request costs."""
    budget = Budget(epsilon=asked.epsilon, delta=asked.delta)
    return Cost.of(budget, one_gate=OFFERED[asked.kind].one_gate)


def reserve(service: Service, identity: Identity, dataset: Dataset, asked: Asked, job: str) -> str:
    """Set the cost of a request aside, or refuse in words that depend on nothing but public numbers."""
    if not service.anchoring.follow(service.ledger):
        raise Refusal("anchor")
    try:
        number = service.ledger.reserve(
            dataset.id,
            cost_of(asked),
            analyst=identity.person,
            neighbours=dataset.neighbours,
            about={"job": job} | asked.plain(),
        )
    except BudgetExceeded:
        raise Refusal("budget") from None
    except LedgerRefused:
        raise Refusal("frozen" if service.ledger.account(dataset.id).frozen else "budget") from None
    return str(number)


def charge(service: Service, reservation: str) -> None:
    """Count it as spent for good: it is on disk, and the anchor knows, when this returns."""
    if not service.anchoring.follow(service.ledger):
        raise Frozen("the anchor cannot be reached.")
    try:
        service.ledger.charge(int(reservation))
    except LedgerRefused:
        if service.ledger.request(int(reservation)).state != "reserved":
            raise Cancelled("the request was charged or cancelled by others.") from None
        raise Frozen("the data set is frozen.") from None
    if not service.anchoring.follow(service.ledger):
        # Charged, and nothing may be drawn that the anchor would not know of: it has failed, and stays charged.
        raise DiscreetError("the anchor cannot be reached any more.")


def settle(service: Service, reservation: str, release: Any) -> None:
    """Record what a charged request released."""
    service.ledger.settle(int(reservation), release)


def cancel(service: Service, reservation: str) -> None:
    """Give back what was never charged."""
    try:
        service.ledger.cancel(int(reservation))
    except LedgerRefused:
        # Charged or cancelled in the meantime: then there is nothing to give back.
        return


def note_answer(service: Service, identity: Identity, reservation: str) -> None:
    """Have the log say that somebody got a stored release again, for free."""
    service.ledger.answer(int(reservation), analyst=identity.person)


def abandon(service: Service, reservation: str) -> bool:
    """Whether a request that will release nothing was charged; if so, the ledger says that it failed."""
    found = service.ledger.request(int(reservation))
    if found.state == "charged":
        try:
            service.ledger.fail(found.id)
        except LedgerRefused:
            return True
    return found.state in ("charged", "settled", "failed")


def bars(service: Service, dataset: Dataset, identity: Identity) -> dict[str, Any]:
    """Spent, reserved and left, of the data set and by analyst, as somebody may see it: numbers for bars and words.

    There is one measure. Left is the largest epsilon that a request may still have at the delta that is shown with it,
    by the very check that admits requests; what is not left is spent or reserved.
    """
    account = service.ledger.account(dataset.id)
    whole = _bar(service, account, None)
    analysts = [_bar(service, account, name) for name in account.quotas if identity.curator or name == identity.person]
    return {
        "whole": whole,
        "analysts": analysts,
        "frozen": account.frozen,
        "composition": account.composition,
        # How requests of others ended is for curators: it may depend on records.
        "requests": account.requests if identity.curator else {},
        "claimed": account.claimed if identity.curator else 0,
        # So may what a release spent of its charge: analysts see what was charged, which is known from the start.
        "composed": composed(service, account, as_recorded=identity.curator),
        "plain": account.spent.epsilon,
    }


def composed(service: Service, account: Account, *, as_recorded: bool) -> float:
    """Epsilon of all that counts, composed from what was charged, or from what releases recorded; remembered."""
    key = (service.settings.database, account.dataset, as_recorded)
    settled = account.requests.get("settled", 0) if as_recorded else 0
    state: tuple[float, ...] = (
        account.spent.requests,
        account.spent.epsilon,
        account.spent.delta,
        account.cap.delta or 0.0,
        settled,
    )
    with _lock:
        known = _composed.get(key)
    if known is not None and known[0] == state:
        return known[1]
    found = account.composed if as_recorded else account.composed_as_charged
    with _lock:
        if len(_composed) > _MOST:
            _composed.clear()
        _composed[key] = (state, found)
    return found


def largest(service: Service, dataset: Dataset, identity: Identity, delta: float | None) -> float:
    """The largest epsilon that somebody may still ask for."""
    return left_of(service, service.ledger.account(dataset.id), identity.person, delta)


def left_of(service: Service, account: Account, analyst: str | None, delta: float | None) -> float:
    """The largest epsilon that an analyst, or all of them together, may still ask for at a delta; remembered."""
    quota = account.quotas.get(analyst) if analyst is not None else None
    state = (account.spent, account.cap, account.composition, quota)
    key = (service.settings.database, account.dataset, analyst, delta)
    with _lock:
        known = _left.get(key)
    if known is not None and known[0] == state:
        return known[1]
    found = account.largest(delta or None, analyst=analyst, anybody=analyst is None)
    # Nobody may ask for less than the least.
    found = found if found >= LEAST else 0.0
    with _lock:
        if len(_left) > _MOST:
            _left.clear()
        _left[key] = (state, found)
    return found


def shown_delta(cap: Budget) -> float | None:
    """The delta at which what is left is shown: that of an ordinary request, or less under a small cap."""
    return min(_DELTA, cap.delta / 10) if cap.delta else None


def what_if(service: Service, dataset: Dataset, identity: Identity, asked: Asked) -> dict[str, Any]:
    """What a request would leave, for whoever asks and for all analysts together: free, and nothing is reserved."""
    account, cost = service.ledger.account(dataset.id), cost_of(asked)
    name = identity.person if identity.role == "analyst" else None
    admitted = not account.frozen and account.fits(cost, analyst=name, anybody=name is None)
    delta = shown_delta(account.cap)
    now = {"yours": left_of(service, account, name, delta), "all": left_of(service, account, None, delta)}
    then: dict[str, float | None] = {"yours": None, "all": None}
    if admitted:
        made = account.after(cost, analyst=name)
        then = {"yours": _least(made, delta, name), "all": _least(made, delta, None)}
    return {"admitted": admitted, "delta": delta, "left": now, "would_leave": then}


def _least(account: Account, delta: float | None, analyst: str | None) -> float:
    found = account.largest(delta, analyst=analyst, anybody=analyst is None)
    return found if found >= LEAST else 0.0


def _bar(service: Service, account: Account, analyst: str | None) -> dict[str, Any]:
    """What is left of a cap, as a number and as a part of it; the rest is spent or reserved."""
    cap = account.cap if analyst is None else account.quotas[analyst].cap
    delta = shown_delta(account.cap if account.cap.pure else cap)
    left = left_of(service, account, analyst, delta)
    part = min(1.0, left / cap.epsilon)
    held = account.reserved_part(analyst)
    return {
        "name": analyst,
        "cap": cap,
        "spent": (1.0 - part) * (1.0 - held),
        "reserved": (1.0 - part) * held,
        "left": part,
        "left_epsilon": left,
        "left_delta": delta,
    }
