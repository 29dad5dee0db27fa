"""The ledger as the service uses it: reserved when a request is queued, charged before a record is read."""

from __future__ import annotations

import threading
from typing import Any

from discreet.exceptions import BudgetExceeded, DiscreetError, InvalidInput, LedgerRefused
from discreet.ledger import Account, Cost
from discreet.privacy.budget import Budget
from discreet.serve.domain.datasets import Dataset
from discreet.serve.domain.requests import OFFERED, Asked
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.service import Service

# Composing distributions takes a moment; what was composed does not change until something is charged.
_composed: dict[tuple[str, str, bool], tuple[tuple[float, ...], float]] = {}
_lock = threading.Lock()
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
    """Count it as spent for good: it is on disk when this returns."""
    try:
        service.ledger.charge(int(reservation))
    except LedgerRefused:
        if service.ledger.request(int(reservation)).state != "reserved":
            raise Cancelled("the request was charged or cancelled by others.") from None
        raise Frozen("the data set is frozen.") from None


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
    """Spent, reserved and left, of the data set and by analyst, as somebody may see it: numbers for bars and words."""
    account = service.ledger.account(dataset.id)
    spent, reserved, left = account.shares
    whole = {
        "name": dataset.id,
        "cap": account.cap,
        "spent": spent,
        "reserved": reserved,
        "left": left,
        "epsilon_spent": account.spent.epsilon - account.reserved.epsilon,
        "epsilon_reserved": account.reserved.epsilon,
        "epsilon_left": account.left[0],
        "delta_spent": account.spent.delta,
        "delta_left": account.left[1],
    }
    analysts = [_quota(name, account) for name in account.quotas if identity.curator or name == identity.person]
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
    account = service.ledger.account(dataset.id)
    return account.largest(delta or None, analyst=identity.person)


def fits(service: Service, dataset: Dataset, identity: Identity, asked: Asked) -> bool:
    """Whether a request would be admitted now."""
    account = service.ledger.account(dataset.id)
    return not account.frozen and account.fits(cost_of(asked), analyst=identity.person)


def _quota(name: str, account: Account) -> dict[str, Any]:
    quota = account.quotas[name]
    delta = quota.cap.delta or 0.0
    share = max(quota.spent.epsilon / quota.cap.epsilon, quota.spent.delta / delta if delta else 0.0)
    return {
        "name": name,
        "cap": quota.cap,
        "spent": min(share, 1.0),
        "reserved": 0.0,
        "left": max(0.0, 1.0 - share),
        "epsilon_spent": quota.spent.epsilon,
        "epsilon_reserved": 0.0,
        "epsilon_left": max(0.0, quota.cap.epsilon - quota.spent.epsilon),
        "delta_spent": quota.spent.delta,
        "delta_left": max(0.0, delta - quota.spent.delta),
    }


def set_quota(service: Service, identity: Identity, dataset: str, analyst: str, cap: Budget) -> int | None:
    """Give an analyst a cap or lower it; a higher one is proposed to another curator, and its number returned."""
    account = service.ledger.account(dataset)
    known = account.quotas.get(analyst)
    facts: Any = {"epsilon": cap.epsilon, "delta": cap.delta, "curator": identity.person}
    if known is None or known.cap.covers(cap):
        service.ledger.allow(dataset, analyst, **facts)
        return None
    return service.ledger.propose(dataset, analyst=analyst, **facts)


def set_cap(service: Service, identity: Identity, dataset: str, cap: Budget) -> int | None:
    """Lower the cap of a data set; a higher one is proposed to another curator, and its number returned."""
    facts: Any = {"epsilon": cap.epsilon, "delta": cap.delta, "curator": identity.person}
    if service.ledger.account(dataset).cap.covers(cap):
        service.ledger.allow(dataset, None, **facts)
        return None
    return service.ledger.propose(dataset, **facts)


def approve(service: Service, identity: Identity, proposal: int) -> None:
    """Approve what another curator has proposed."""
    try:
        service.ledger.approve(proposal, curator=identity.person)
    except LedgerRefused:
        raise Refusal("twice") from None
    except InvalidInput:
        raise Refusal("nothing-here") from None
