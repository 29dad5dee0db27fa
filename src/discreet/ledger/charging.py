"""How a fit pays: reserved before records are read, charged before noise is drawn, settled with its release.

`charged_fit` is a fit on a ledger; `on_ledger` gives ``fit`` and ``fit_table`` of an estimator the arguments
``ledger``, ``dataset``, ``analyst``, ``stratum`` and ``reservation``. Whoever is about to draw calls
`discreet.privacy.noise.charge_first`, which makes the charge durable: there is no other way to noise. Methods that
read records beyond sums (`discreet.papers`) call it when they have read them, before they compute anything.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Protocol, TypedDict, TypeVar

import narwhals as nw
import numpy as np

from discreet.data.backends.text.format import TEXT_OPTIONS
from discreet.exceptions import DiscreetError, InvalidInput, LedgerRefused
from discreet.ledger._identity import (
    NotPlain,
    as_declared,
    declared_names,
    legacy_method_words,
    method_words,
    plain,
)
from discreet.ledger.composition import Cost
from discreet.ledger.hash_chain import canonical
from discreet.ledger.ledger import Ledger
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.noise import charged_by, drawing_is_seeded

Fitted = TypeVar("Fitted")

_ARGUMENTS = ("ledger", "dataset", "analyst", "stratum", "reservation")
# Arguments that choose rows of a table.
_ROW_ARGUMENTS = ("where", "unit", "max_rows", "relation", "query", "split_by", "sample_by", *TEXT_OPTIONS)
_LEDGER_NOTE = (
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
        What identical requests have in common; None where public facts do not say.
    legacy
        The same in the words of ledgers that were written before estimators had ids.
    covariates
        Names that the bounds declare, in their order.

    Examples
    --------
    >>> import discreet as dc
    >>> estimator = dc.DifferenceInMeans(epsilon=0.5, bounds=dc.Bounds(outcome=(0, 1)))
    >>> wanted = wanted_by(estimator, {"Y": [0, 1], "T": [0, 1]}, one_gate=True)
    >>> wanted.neighbours, wanted.about
    ('replace-one', {'method': 'DifferenceInMeans'})
    """

    cost: Cost
    neighbours: Neighbours
    about: dict[str, Any]
    same: str | None
    legacy: str | None = None
    covariates: tuple[str, ...] = ()


class ChargeableEstimator(Protocol):
    """What a ledger needs to know of an estimator; as class attributes where they are no parameters."""

    @property
    def epsilon(self) -> float: ...

    @property
    def delta(self) -> float | None: ...

    @property
    def neighbours(self) -> Neighbours: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


class Payment(TypedDict, total=False):
    """How a fit is paid for: the arguments that ``fit`` and ``fit_table`` take besides their own."""

    ledger: Ledger
    dataset: str | None
    analyst: str | None
    stratum: str | None
    reservation: int | None


def charged_fit(
    estimator: Any,
    call: Mapping[str, Any],
    fit: Callable[[], Fitted],
    *,
    payment: Payment,
    kinds: Iterable[Any],
    one_gate: bool = False,
) -> Fitted:
    """Fit on a ledger: answered from a stored release, or reserved, charged before the first draw, and settled.

    Parameters
    ----------
    estimator
        What is fitted (`ChargeableEstimator`).
    call
        The arguments of its ``fit`` or ``fit_table``, by name.
    fit
        Makes the fit and returns the estimator.
    payment
        The ledger, and what to charge to whom.
    kinds
        Classes of releases that it makes and that can be read back: identical requests are answered from them.
    one_gate
        Whether the whole budget is spent in one gate, so that Gaussian rounds compose exactly.
    """
    ledger = payment.get("ledger")
    if not isinstance(ledger, Ledger):
        raise InvalidInput("ledger must be a discreet.Ledger: open one with Ledger('sqlite:///budget.db').")
    wanted = wanted_by(estimator, call, one_gate=one_gate, ledger=ledger)
    stored = _stored(ledger, wanted, {kind.format: kind for kind in kinds}, payment)
    if stored is not None:
        estimator.release_ = stored
        return estimator  # type: ignore[no-any-return]
    purchase = _Purchase(ledger, _reserved(ledger, wanted, payment))
    with purchase.made():
        done = fit()
    purchase.settle(estimator)
    return done


def on_ledger(*kinds: Any, one_gate: bool = False) -> Callable[[Callable[..., Fitted]], Callable[..., Fitted]]:
    """Let a ``fit`` be charged to a ledger, by `charged_fit` where ``ledger=`` is given.

    Parameters
    ----------
    kinds, one_gate
        As `charged_fit` takes them.
    """

    def decorate(fit: Callable[..., Fitted]) -> Callable[..., Fitted]:
        signature = inspect.signature(fit)

        @wraps(fit)
        def fitting(self: ChargeableEstimator, *args: Any, **named: Any) -> Fitted:
            payment: Any = {name: named.pop(name, None) for name in _ARGUMENTS}
            if payment["ledger"] is None:
                if any(value is not None for value in payment.values()):
                    raise InvalidInput(f"{', '.join(_ARGUMENTS[1:])} belong to a ledger: give ledger= as well.")
                return fit(self, *args, **named)
            call = dict(signature.bind(self, *args, **named).arguments)
            made = partial(fit, self, *args, **named)
            return charged_fit(self, call, made, payment=payment, kinds=kinds, one_gate=one_gate)

        fitting.__signature__ = _with_payment(signature)  # type: ignore[attr-defined]
        first, _, rest = inspect.cleandoc(fit.__doc__ or "").partition("\n")
        fitting.__doc__ = f"{first}\n\n{_LEDGER_NOTE}\n{rest}"
        return fitting

    return decorate


def _with_payment(signature: inspect.Signature) -> inspect.Signature:
    shown = list(signature.parameters.values())
    keyword = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in _ARGUMENTS]
    others = [each for each in shown if each.kind is not inspect.Parameter.VAR_KEYWORD]
    rest = [each for each in shown if each.kind is inspect.Parameter.VAR_KEYWORD]
    return signature.replace(parameters=[*others, *keyword, *rest])


def wanted_by(
    estimator: ChargeableEstimator, call: Mapping[str, Any], *, one_gate: bool, ledger: Ledger | None = None
) -> Wanted:
    """What an estimator's ``fit`` or ``fit_table`` would ask a ledger for, called with these arguments.

    Identical requests are recognised where a ledger is given: it keys the digests of the records.

    Examples
    --------
    >>> import discreet as dc
    >>> estimator = dc.DifferenceInMeans(epsilon=0.5, bounds=dc.Bounds(outcome=(0, 1)))
    >>> wanted_by(estimator, {"Y": [0, 1], "T": [0, 1]}, one_gate=True).cost
    Cost(epsilon=0.5, delta=0.0, mu=None)
    """
    budget = Budget(epsilon=estimator.epsilon, delta=estimator.delta)
    method = type(estimator).__name__
    call = dict(call) | dict(call.get("options") or {})
    columns: dict[str, Any] = {}
    same: str | None = None
    legacy: str | None = None
    covariates = declared_names(estimator)
    # What is not plain, or cannot be read as columns, is refused by the fit itself, in better words.
    with suppress(NotPlain, TypeError, ValueError):
        columns = _columns(call)
        words = method_words(estimator)
        contents = _contents(call, (vars(estimator).get("propensity"),))
        if ledger is not None and call.get("queries") is None and contents is not None:
            # A release that was drawn with seeded noise never answers a request that was not.
            asked = {"columns": columns, "seeded": drawing_is_seeded(), "records": ledger.seal(contents)}
            # Keys sort names: that columns of an array are taken in another order has to be said.
            ordered = {} if list(covariates) == sorted(covariates) else {"covariates": list(covariates)}
            same = canonical(words | asked | ordered)
            legacy = canonical(legacy_method_words(estimator) | asked)
    about = {"method": method} | ({"columns": columns} if columns else {})
    return Wanted(
        cost=Cost.of(budget, one_gate=one_gate),
        neighbours=estimator.neighbours,
        about=about,
        same=same,
        legacy=legacy,
        covariates=covariates,
    )


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
        if self._charged:
            return
        try:
            self._ledger.charge(self._request)
        except LedgerRefused:
            if self._ledger.request(self._request).state != "reserved":
                raise _used() from None
            raise
        self._charged = True

    def give_up(self) -> None:
        # The log decides what was never charged, and can be cancelled. What is charged may be somebody else's, who was
        # first with the same reservation: only who charged it says that nothing will come of it. Should the ledger not
        # answer, the request goes on counting as spent.
        with suppress(DiscreetError):
            if self._charged:
                self._ledger.fail(self._request)
            elif self._ledger.request(self._request).state == "reserved":
                self._ledger.cancel(self._request)

    def settle(self, estimator: Any) -> None:
        try:
            release = estimator.release_
        except AttributeError:
            release = None
        self._ledger.settle(self._request, release)


def _stored(ledger: Ledger, wanted: Wanted, known: Mapping[str, Any], payment: Payment) -> Any:
    """The release of an identical request; None where there is none."""
    dataset = payment.get("dataset")
    if wanted.same is None or payment.get("reservation") is not None or dataset is None:
        return None
    found = ledger.stored(dataset, wanted.same, legacy=wanted.legacy, stratum=payment.get("stratum"))
    # What was paid for is the same only at the same price, whatever a class leaves out of its parameters.
    if found is None or found.cost.budget != wanted.cost.budget:
        return None
    kept = as_declared(ledger.release(found.id), wanted.covariates)
    if kept is None or kept.get("format") not in known:
        return None
    # Read first, whatever its version: the log says only who got it.
    release = known[kept["format"]].from_dict(kept)
    ledger.answer(found.id, analyst=payment.get("analyst"))
    return release


def _reserved(ledger: Ledger, wanted: Wanted, payment: Payment) -> int:
    dataset, stratum, reservation = payment.get("dataset"), payment.get("stratum"), payment.get("reservation")
    if reservation is not None:
        found = ledger.request(reservation)
        if found.state != "reserved":
            raise _used()
        if found.cost != wanted.cost:
            raise InvalidInput("reservation is not one of exactly this cost: reserve anew.")
        if (dataset or found.dataset, stratum or found.stratum) != (found.dataset, found.stratum):
            raise InvalidInput("reservation is on another data set or stratum: leave these out, or reserve anew.")
        if ledger.account(found.dataset).neighbours != wanted.neighbours:
            raise InvalidInput("reservation is on a data set with another relation: give the estimator its neighbours.")
        keys = {ledger.key(found.dataset, same, stratum=found.stratum) for same in (wanted.same, wanted.legacy)}
        if found.key not in {None, *keys}:
            raise InvalidInput("reservation was made for another request, or for older records: reserve anew.")
        return reservation
    if dataset is None:
        raise InvalidInput("dataset is missing: name the data set that the ledger is to charge.")
    return ledger.reserve(
        dataset,
        wanted.cost,
        analyst=payment.get("analyst"),
        stratum=stratum,
        neighbours=wanted.neighbours,
        about=wanted.about,
        same=wanted.same,
    )


def _used() -> InvalidInput:
    return InvalidInput("reservation is already used, by another fit or by whoever cancelled it: reserve anew.")


def _columns(call: Mapping[str, Any]) -> dict[str, Any]:
    """Which columns a call is about, and which file: public names."""
    if "table" not in call:
        X = call.get("X")
        names: dict[str, Any] = {}
        for role, values in (("outcome", call.get("Y")), ("treatment", call.get("T"))):
            name = getattr(values, "name", None)
            names |= {role: name} if isinstance(name, str) else {}
        # Even without a name: the same numbers in another role are another request.
        names |= {role: str(getattr(values, "name", None) or role) for role, values in call.get("further", {}).items()}
        listed = getattr(X, "columns", None)
        return names if listed is None else names | {"covariates": [str(name) for name in listed]}
    words = {name: call.get(name) for name in ("outcome", "treatment", "covariates", *_ROW_ARGUMENTS)}
    words |= call.get("further", {})
    words["covariates"] = None if words["covariates"] is None else list(words["covariates"])
    named = {name: plain(value) for name, value in words.items() if value is not None or name not in _ROW_ARGUMENTS}
    return named | ({"file": _file(call["table"])} if _file(call["table"]) else {})


def _file(table: Any) -> str | None:
    """The full name of a file; of an address only its kind, as passwords hide in many places of it."""
    if not isinstance(table, str) and not hasattr(table, "__fspath__"):
        return None
    text = os.fspath(table)
    return f"{text.partition('://')[0]}://" if "://" in text else os.path.abspath(text)


def _contents(call: Mapping[str, Any], more: tuple[Any, ...]) -> Iterator[bytes] | None:
    """What identifies records: themselves where they are in memory, the files that hold them, or an address."""
    if "table" not in call:
        return _bytes(call.get("Y"), call.get("T"), call.get("X"), *call.get("further", {}).values())
    table = call["table"]
    if _file(table) is not None:
        return _marks(os.fspath(table))
    eager = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(eager, nw.DataFrame):
        return None
    wanted = [call.get(role) for role in ("outcome", "treatment", "unit", "split_by", "sample_by")]
    wanted += [*(call.get("covariates") or eager.columns), *(call.get("where") or ())]
    # Probabilities may be a column, and those of several arms are no names.
    wanted += [each for each in (*more, *call.get("further", {}).values()) if isinstance(each, str)]
    names = [name for name in dict.fromkeys(wanted) if name in eager.columns]
    return _bytes(*(eager[name].to_native() for name in names))


def _marks(text: str) -> Iterator[bytes]:
    """An address; of files, by the rules by which they are read, also how long they are and when they were changed."""
    from discreet.data.backends.text.paths import files_of

    yield text.encode()
    for path in () if "://" in text else files_of(text):
        facts = os.stat(path)
        yield f"{os.path.abspath(path)} {facts.st_size} {facts.st_mtime_ns}".encode()


def _bytes(*values: Any) -> Iterator[bytes]:
    for each in values:
        if isinstance(each, np.ma.MaskedArray):
            raise NotPlain
        frame = nw.from_native(each, eager_only=True, pass_through=True)
        named = isinstance(frame, nw.DataFrame)
        parts = [(name, frame[name].to_numpy()) for name in frame.columns] if named else [("", np.asarray(each))]
        for name, part in parts:
            plain = part.dtype.kind in "biuf"
            yield f"{name} {part.dtype.str if plain else 'text'} {part.shape}".encode()
            yield (
                np.ascontiguousarray(part).tobytes() if plain else "\0".join(map(repr, part.ravel().tolist())).encode()
            )
