"""How a fit pays: reserved before records are read, charged before noise is drawn, settled with its release.

`on_ledger` gives ``fit`` and ``fit_table`` of every estimator the arguments ``ledger``, ``dataset``, ``analyst``,
``stratum`` and ``reservation``. Whoever is about to draw calls `discreet.charging.charge_first`, which makes the charge
durable: there is no other way to noise. Methods that look at records beyond sums (`discreet.papers`) call it when they
have read them, before they compute anything.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar

from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.charging import charged_by
from discreet.errors import DiscreetError, InvalidInput
from discreet.guarantee import Neighbours
from discreet.ledger.chain import canonical
from discreet.ledger.costs import Cost
from discreet.ledger.durable import Ledger
from discreet.noise import drawing_is_seeded

Fitted = TypeVar("Fitted")

_ARGUMENTS = ("ledger", "dataset", "analyst", "stratum", "reservation")
_WORDS = (
    "With ``ledger=`` and ``dataset=`` (and ``analyst=``, ``stratum=``) the budget is charged to a `Ledger` before "
    "noise is drawn."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a fit would ask a ledger for.

    Parameters
    ----------
    cost
        All that it may spend.
    neighbours
        The relation of its guarantee.
    about
        Public description for the log.
    same
        What identical requests have in common; None where that cannot be told from public facts.
    """

    cost: Cost
    neighbours: Neighbours
    about: dict[str, Any]
    same: str | None


def on_ledger(*kinds: Any, one_gate: bool = False) -> Callable[[Callable[..., Fitted]], Callable[..., Fitted]]:
    """Let a ``fit`` be charged to a ledger.

    Parameters
    ----------
    kinds
        Classes of releases that it makes and that can be read back: identical requests are answered from them.
    one_gate
        Whether the whole budget is spent in one gate, so that Gaussian rounds compose exactly.
    """
    known = {kind.__name__: kind for kind in kinds}

    def decorate(fit: Callable[..., Fitted]) -> Callable[..., Fitted]:
        signature = inspect.signature(fit)

        @wraps(fit)
        def fitting(self: Any, *args: Any, **named: Any) -> Fitted:
            given = {name: named.pop(name, None) for name in _ARGUMENTS}
            ledger = given.pop("ledger")
            if ledger is None:
                if any(value is not None for value in given.values()):
                    raise InvalidInput(f"{', '.join(_ARGUMENTS[1:])} belong to a ledger: give ledger= as well.")
                return fit(self, *args, **named)
            if not isinstance(ledger, Ledger):
                raise InvalidInput("ledger must be a discreet.Ledger: open one with Ledger('sqlite:///budget.db').")
            call = dict(signature.bind(self, *args, **named).arguments)
            wanted = wanted_by(self, call, one_gate=one_gate)
            stored = _stored(ledger, wanted, known, given)
            if stored is not None:
                self.release_ = stored
                return self  # type: ignore[no-any-return]
            purchase = _Purchase(ledger, _reserved(ledger, wanted, **given))
            with purchase.made():
                done = fit(self, *args, **named)
            purchase.settle(self)
            return done

        shown = list(signature.parameters.values())
        keyword = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in _ARGUMENTS]
        fitting.__signature__ = signature.replace(parameters=[*shown, *keyword])  # type: ignore[attr-defined]
        first, _, rest = inspect.cleandoc(fit.__doc__ or "").partition("\n")
        fitting.__doc__ = f"{first}\n\n{_WORDS}\n{rest}"
        return fitting

    return decorate


def wanted_by(estimator: Any, call: Mapping[str, Any], *, one_gate: bool) -> Wanted:
    """What an estimator's ``fit`` or ``fit_table`` would ask a ledger for, called with these arguments."""
    budget = Budget(epsilon=estimator.epsilon, delta=getattr(estimator, "delta", None))
    neighbours: Neighbours = getattr(estimator, "neighbours", "replace-one")
    method = type(estimator).__name__
    columns = _columns(call, neighbours)
    about = {"method": method} | ({} if columns is None else {"columns": columns})
    same = None
    with suppress(_NotPlain):
        if columns is not None and call.get("queries") is None:
            parameters = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
            # A release that was drawn with seeded noise never answers a request that was not.
            seeded = drawing_is_seeded()
            same = canonical({"method": method, "parameters": parameters, "columns": columns, "seeded": seeded})
    return Wanted(cost=Cost.of(budget, one_gate=one_gate), neighbours=neighbours, about=about, same=same)


class _Purchase:
    """A reserved request on its way."""

    def __init__(self, ledger: Ledger, request: int) -> None:
        self._ledger, self._request, self._charged = ledger, request, False

    @contextmanager
    def made(self) -> Iterator[None]:
        """Charge before the first draw; should the fit go wrong, before or after it, say so in the ledger."""
        try:
            with charged_by(self.charge):
                yield
            # A fit that has drawn nothing yet, but keeps what it will answer from, has been paid for as well.
            self.charge()
        except BaseException:
            self.give_up()
            raise

    def charge(self) -> None:
        if not self._charged:
            self._ledger.charge(self._request)
            self._charged = True

    def give_up(self) -> None:
        # The log decides, not this process: only what was never charged can be cancelled. Should the ledger not answer,
        # the request goes on counting as spent.
        with suppress(DiscreetError):
            if self._ledger.request(self._request).state == "reserved":
                self._ledger.cancel(self._request)
            else:
                self._ledger.fail(self._request)

    def settle(self, estimator: Any) -> None:
        try:
            release = estimator.release_
        except AttributeError:
            release = None
        self._ledger.settle(self._request, release)


def _stored(ledger: Ledger, wanted: Wanted, known: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """The release of an identical request; None where there is none."""
    if wanted.same is None or given["reservation"] is not None or given["dataset"] is None:
        return None
    found = ledger.stored(given["dataset"], wanted.same, stratum=given["stratum"])
    if found is None or found.outcome.get("kind") not in known:
        return None
    return known[found.outcome["kind"]].from_dict(ledger.answer(found.id, analyst=given["analyst"]))


def _reserved(
    ledger: Ledger,
    wanted: Wanted,
    *,
    dataset: str | None,
    analyst: str | None,
    stratum: str | None,
    reservation: int | None,
) -> int:
    if reservation is not None:
        found = ledger.request(reservation)
        if found.state != "reserved" or found.cost != wanted.cost:
            raise InvalidInput("reservation is not one of exactly this cost that waits to be charged: reserve anew.")
        if (dataset or found.dataset, stratum or found.stratum) != (found.dataset, found.stratum):
            raise InvalidInput("reservation is on another data set or stratum: leave these out, or reserve anew.")
        if found.key not in (None, ledger.key(found.dataset, wanted.same, stratum=found.stratum)):
            raise InvalidInput("reservation was made for another request, or for older records: reserve anew.")
        return reservation
    if dataset is None:
        raise InvalidInput("dataset is missing: name the data set that the ledger is to charge.")
    return ledger.reserve(
        dataset,
        wanted.cost,
        analyst=analyst,
        stratum=stratum,
        neighbours=wanted.neighbours,
        about=wanted.about,
        same=wanted.same,
    )


def _columns(call: Mapping[str, Any], neighbours: Neighbours) -> dict[str, Any] | None:
    """Which columns of which records a call is about, from public facts; None where names do not tell.

    Two calls on frames with the same names might still be about different rows. Their number tells, where it is public;
    where it is private, only a file's name does.
    """
    if "table" in call:
        names = {name: call.get(name) for name in ("outcome", "treatment", "covariates")}
        names["covariates"] = None if names["covariates"] is None else list(names["covariates"])
        table = call["table"]
        if isinstance(table, str) or hasattr(table, "__fspath__"):
            return names | {"file": os.fspath(table)}
        return names | {"records": len(table)} if neighbours == "replace-one" and hasattr(table, "__len__") else None
    X = call.get("X")
    covariates = [] if X is None else getattr(X, "columns", None)
    outcome, treatment = (getattr(call.get(name), "name", None) for name in ("Y", "T"))
    if (
        neighbours != "replace-one"
        or covariates is None
        or not isinstance(outcome, str)
        or not isinstance(treatment, str)
    ):
        return None
    listed = [str(name) for name in covariates]
    return {"outcome": outcome, "treatment": treatment, "covariates": listed, "records": len(call["Y"])}


class _NotPlain(Exception):
    """A parameter that cannot be compared by its value."""


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Bounds):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    if is_dataclass(value) and not isinstance(value, type):
        return {"is": type(value).__name__} | {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    raise _NotPlain
