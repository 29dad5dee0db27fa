"""The ledger: a log on disk, what it adds up to, and the few things that may be written to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, get_args

from discreet.data.notebooks.card import Carded
from discreet.exceptions import InvalidInput, LedgerCorrupt
from discreet.ledger import _validation as checks
from discreet.ledger.account import Account, plot_accounts
from discreet.ledger.composition import Cost, check_composition
from discreet.ledger.governance.curators import Curated
from discreet.ledger.hash_chain import in_order, sha256
from discreet.ledger.state import Book, Request, State
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee, Neighbours

if TYPE_CHECKING:
    from sqlalchemy import Connection

# What a release may state above its request's cost: a rounding error.
_ROUNDED = 1 + 1e-12


class Terms(TypedDict, total=False):
    """What may be declared of a data set when it is opened; `Ledger.open` explains each."""

    neighbours: Neighbours
    unit: str
    strata: Iterable[str]
    version: str
    composition: str
    analysts: Mapping[str, Budget] | None


class Ledger(Curated, Carded):
    """Durable budgets of data sets, which no sequence of requests, crash or race can overspend.

    Parameters
    ----------
    url
        Where it is kept: "sqlite:///budget.db" (made when it does not exist; four slashes for an absolute path), or
        "postgresql://user@host/database".

    Privacy
    -------
    All releases that are charged to a data set together satisfy its cap, however analysts choose what to ask, with the
    exceptions that docs/proofs/ledger.md names: claimed releases count with what they claim. A charge is on disk before
    noise is drawn, and nothing is ever refunded after. Nothing in the ledger but the releases depends on records.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> ledger = dc.Ledger("sqlite:///budget.db")
    >>> ledger.open("trial", epsilon=2)
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> means = dc.DifferenceInMeans(epsilon=0.5, bounds=trial.bounds)
    >>> _ = means.fit(trial.Y, trial.T, X=trial.X, ledger=ledger, dataset="trial")
    >>> ledger.account("trial").left
    (1.5, 0.0)
    """

    # What curators do.

    def open(
        self,
        dataset: str,
        *,
        epsilon: float,
        delta: float | None = None,
        curator: str = "curator",
        **terms: Unpack[Terms],
    ) -> None:
        """Open a data set with a cap; opening it again in the same words changes nothing.

        Parameters
        ----------
        dataset
            Its name.
        epsilon, delta
            The cap on all that is ever released about it. Without a delta only pure releases fit.
        curator
            Who opens it.
        neighbours, unit
            What is protected, by default "replace-one" and "one record"; requests under another relation are refused.
        strata
            Names of disjoint parts, where a fit may be charged to one of them. Which part a record is in must be public
            and must not depend on what the record says: requests on different strata then count side by side.
        version
            Of the records, by default "1". Identical requests are answered from stored releases until a curator renews
            it.
        composition
            "either" (default): Gaussian requests add up in squares and others plainly, half of delta for each way.
            "gaussian": squares only, all of delta. "plain": epsilons and deltas are added, all of delta.
        analysts
            Caps of single analysts. Where there are any, nobody else may ask.
        """
        unknown = terms.keys() - Terms.__annotations__.keys()
        if unknown:
            raise InvalidInput(
                f"open takes no {', '.join(sorted(unknown))}: besides epsilon, delta and curator it takes "
                f"{', '.join(Terms.__annotations__)}."
            )
        cap = Budget(epsilon=epsilon, delta=delta)
        body = opening(cap, terms)
        found = self._read(lambda book: book.datasets.get(dataset))
        if found is None or found.opening != body:
            self._write("open", dataset, curator, body)
        for analyst, quota in (terms.get("analysts") or {}).items():
            if found is None or analyst not in found.quotas:
                self.allow(dataset, analyst, epsilon=quota.epsilon, delta=quota.delta, curator=curator)

    def allow(
        self, dataset: str, analyst: str | None, *, epsilon: float, delta: float | None = None, curator: str
    ) -> None:
        """Give an analyst a cap, or lower one; the data set's own where ``analyst`` is None. `propose` raises one."""
        self._write("allow", dataset, curator, checks.cap(analyst, epsilon, delta))

    def renew(self, dataset: str, version: str, *, curator: str) -> None:
        """Say that the records have changed: no stored release answers a request about another version.

        The budget is not renewed: records that stay in the data set are still the same people's.
        """
        self._write("renew", dataset, curator, {"version": checks.name(version, "version")})

    # What a request goes through.

    def reserve(
        self,
        dataset: str,
        cost: Cost,
        *,
        analyst: str | None = None,
        stratum: str | None = None,
        neighbours: Neighbours = "replace-one",
        about: Mapping[str, Any] | None = None,
        same: str | None = None,
    ) -> int:
        """Set a cost aside, or refuse; the number is the request's.

        Parameters
        ----------
        dataset, analyst, stratum
            What is asked, and by whom.
        cost
            What it may cost.
        neighbours
            The relation that its guarantee will be about.
        about
            Public description, plain JSON, for the log.
        same
            Whatever identifies identical requests, from public facts alone; see `stored`.
        """

        def body(book: Book) -> dict[str, Any]:
            data = book.dataset(dataset)
            if data.neighbours != neighbours:
                raise InvalidInput(
                    f"data set {dataset!r} needs neighbours={data.neighbours!r}, under which its budget is counted."
                )
            return {
                "cost": cost.to_dict(),
                "analyst": checks.optional(analyst, "analyst"),
                "stratum": stratum,
                "about": dict(about or {}),
                "key": data.key(stratum, same),
                "plain": book.plan(dataset, cost, analyst, stratum),
            }

        # Refused on what is on disk now, without waiting for a turn to write.
        self._read(body)
        return self._write("reserve", dataset, analyst or "analyst", body).seq

    def charge(self, request: int) -> None:
        """Count a reserved request as spent for good. It is on disk when this returns; draw only then."""
        found = self.request(request)
        self._write("charge", found.dataset, found.analyst or "analyst", {"request": request})

    def settle(self, request: int, release: Any = None, guarantee: Guarantee | None = None) -> None:
        """Keep what a charged request released.

        Parameters
        ----------
        request
            Its number.
        release
            The release, which has ``to_dict`` and ``guarantee``; None where it is not kept here.
        guarantee
            What it promises, where there is no release.
        """
        found = self.request(request)
        promise: Guarantee | None = guarantee if release is None else release.guarantee
        if promise is not None:
            self._check_promise(found, promise)
        outcome: dict[str, Any] = {} if promise is None else promise.to_dict()
        outcome["kind"] = None if release is None else type(release).__name__
        text = None if release is None else in_order(release.to_dict())
        body = {"request": request, "release": None if text is None else sha256(text), "outcome": outcome}

        def keep(connection: Connection) -> None:
            if text is not None:
                self._store.put_release(connection, request, text)

        self._write("settle", found.dataset, found.analyst or "analyst", body, also=keep)

    def _check_promise(self, request: Request, promise: Guarantee) -> None:
        relation = self.account(request.dataset).neighbours
        if promise.neighbours != relation:
            raise InvalidInput(f"the release has another relation than its data set: it needs neighbours={relation!r}.")
        if promise.epsilon > request.cost.epsilon * _ROUNDED or promise.delta > request.cost.delta * _ROUNDED:
            raise InvalidInput("the release promises less than its request has paid for: reserve what it spends.")

    def fail(self, request: int) -> None:
        """Say that a charged request will release nothing. It stays charged: noise may have been drawn."""
        found = self.request(request)
        self._write("fail", found.dataset, found.analyst or "analyst", {"request": request})

    def cancel(self, request: int, *, actor: str | None = None) -> None:
        """Give back what was reserved and never charged; refused once it is charged.

        It is safe at any time: a fit whose reservation was cancelled cannot charge it any more, and draws nothing.
        """
        found = self.request(request)
        self._write("cancel", found.dataset, actor or found.analyst or "analyst", {"request": request})

    def stored(
        self, dataset: str, same: str, *, legacy: str | None = None, stratum: str | None = None
    ) -> Request | None:
        """The settled request that an identical one on unchanged records is answered from, for free.

        ``legacy`` is the same in the words of older ledgers (`discreet.ledger.charging.Wanted`), looked up second.
        """

        def find(book: Book) -> Request | None:
            data = book.dataset(dataset)
            keys = filter(None, (data.key(stratum, each) for each in (same, legacy)))
            return next(filter(None, map(data.stored, keys)), None)

        found = self._read(find)
        return None if found is None else replace(found)

    def key(self, dataset: str, same: str | None, *, stratum: str | None = None) -> str | None:
        """What identical requests on the records as they are now have in common; None where they are not recognised."""
        return self._read(lambda book: book.dataset(dataset).key(stratum, same))

    def answer(self, request: int, *, analyst: str | None = None) -> dict[str, Any]:
        """A stored release, with a line in the log that says who got it again: one, however often they do."""
        if not self._read(lambda book: book.answered(request, analyst)):
            body = {"request": request, "analyst": analyst}
            self._write("answer", self.request(request).dataset, analyst or "analyst", body)
        return self.release(request)

    # What can be read.

    def datasets(self) -> tuple[str, ...]:
        """Names of all data sets."""
        return self._read(lambda book: tuple(book.datasets))

    def account(self, dataset: str) -> Account:
        """A data set's cap, what is spent and what is left."""
        return self._read(lambda book: Account.of(book.dataset(dataset), book.proposals.values(), book.halted))

    def request(self, number: int) -> Request:
        """A request by its number."""
        return self._read(lambda book: replace(book.request(number)))

    def requests(
        self, dataset: str | None = None, *, state: State | None = None, analyst: str | None = None
    ) -> tuple[Request, ...]:
        """Requests in the order in which they were made."""

        def find(book: Book) -> tuple[Request, ...]:
            return tuple(
                replace(request)
                for request in book.requests.values()
                if dataset in (None, request.dataset)
                and state in (None, request.state)
                and analyst in (None, request.analyst)
            )

        return self._read(find)

    def release(self, request: int) -> dict[str, Any]:
        """A stored release, as plain JSON."""
        found = self.request(request)
        with self._store.reading() as connection:
            text = self._store.release(connection, request)
        if found.release is None:
            raise InvalidInput(f"request {request} has no stored release: it is {found.state}.")
        if text is None or sha256(text) != found.release:
            raise LedgerCorrupt(f"the release of request {request} was changed: restore the ledger from a copy.")
        plain: dict[str, Any] = json.loads(text)
        return plain

    def plot(self, ax: Any = None) -> Any:
        """Draw what is spent, reserved and left of every cap (needs matplotlib)."""
        return plot_accounts([self.account(name) for name in self.datasets()], ax)

    def __str__(self) -> str:
        """All accounts as readable text."""
        accounts = [str(self.account(name)) for name in self.datasets()]
        return "\n\n".join(accounts) or "No data set is open."

    def __repr__(self) -> str:
        return f"<Ledger with {len(self.datasets())} data sets>"


def opening(cap: Budget, terms: Terms) -> dict[str, Any]:
    """The line that opens a data set."""
    neighbours, strata = terms.get("neighbours", "replace-one"), terms.get("strata", ())
    if neighbours not in get_args(Neighbours):
        raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")
    parts = [checks.name(part, "strata") for part in ([strata] if isinstance(strata, str) else strata)]
    if len(set(parts)) < len(parts):
        raise InvalidInput("strata names a part twice: name each once.")
    return {
        "epsilon": cap.epsilon,
        "delta": cap.delta,
        "neighbours": neighbours,
        "unit": checks.name(terms.get("unit", "one record"), "unit"),
        "strata": parts,
        "version": checks.name(terms.get("version", "1"), "version"),
        "composition": check_composition(terms.get("composition", "either"), cap),
    }
