"""DP-CATE's function, asked one query after the other: every answer is in the database before it is given.

What is kept here is **secret**: a function that was fitted to records, without noise. A query that was asked before
gets the same answer, by whichever server and after whatever crash; a new one gets noise that fits all earlier noise.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import sqlalchemy as sa

from discreet.papers import DPCATEFunction
from discreet.papers.common.nuisances import design
from discreet.papers.common.queries import encode_queries
from discreet.papers.dp_cate.interactive import SecretFunction
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import sources
from discreet.serve.domain.users import Identity
from discreet.serve.errors import Refusal
from discreet.serve.service import Service
from discreet.serve.storage.schema import answers, functions, reading, releases

# Queries that are answered in all: each new one costs time that grows with their number.
MOST_ANSWERS = 2_000
_held: dict[str, tuple[int, SecretFunction]] = {}
_lock = threading.Lock()


def fitted(
    estimator: DPCATEFunction, source: str, *, outcome: str, treatment: str
) -> tuple[Any, dict[str, Any] | None]:
    """A release, and what has to be kept secret for further answers: nothing where the whole function is released."""
    table = sources.in_memory(source, outcome, treatment, estimator.bounds)
    X = table.select(list(estimator.bounds.declared))
    estimator.fit(table[outcome], table[treatment], X=X)
    if estimator.calibration == "proved":
        return estimator.release_, None
    return estimator._release_of(estimator.secret_), estimator.secret_.head(estimator._about)


def keep(connection: sa.Connection, release: str, head: dict[str, Any]) -> None:
    """Begin to answer."""
    connection.execute(sa.insert(functions).values(release=release, head=json.dumps(head), asked=0))


def is_kept(service: Service, release: str) -> bool:
    """Whether a release answers from a secret function."""
    with reading(service.engine).begin() as connection:
        return connection.scalar(sa.select(functions.c.asked).where(functions.c.release == release)) is not None


def ask(service: Service, identity: Identity, release: str, X: Any, bounds: Any) -> Any:
    """Effects for rows of covariates; they are durable when this returns, and the same for ever.

    Each new answer is a new release from records: there is none while the data set is frozen, nor for anybody who may
    not use it any more.
    """
    rows = design(encode_queries(X, bounds, "rows"), bounds)
    refusal = _refusal(service, identity, release)
    with _lock, service.engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            # As in the ledger, whatever the server's default is: noise that a power cut forgets would be drawn anew.
            connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")
        wanted = sa.select(functions).where(functions.c.release == release)
        found = connection.execute(wanted.with_for_update()).mappings().first()
        if found is None:
            raise Refusal("no-release")
        if found["asked"] < 0:
            raise Refusal("frozen", "This function came back with an older copy: what it answered since is not known.")
        secret = _restored(connection, release, found)
        if refusal is not None and not secret.answered(rows):
            raise refusal
        secret.go_on_in(_Keeper(connection, release, found["asked"]))
        # Until the transaction has ended well, nobody knows whether this object and the database agree.
        _held.pop(release, None)
        if len(secret.answers) + len(rows) > MOST_ANSWERS:
            raise Refusal("too-large", f"This function gives {MOST_ANSWERS:,} answers in all: ask for fewer.")
        effects = secret.ask(rows)
        asked = connection.scalar(sa.select(functions.c.asked).where(functions.c.release == release))
    with _lock:
        _held[release] = (int(asked or 0), secret)
    return effects


def _refusal(service: Service, identity: Identity, release: str) -> Refusal | None:
    """Why nothing new may be answered; asked before a transaction begins, for whose end the ledger may be waiting."""
    with reading(service.engine).begin() as connection:
        dataset = connection.scalar(sa.select(releases.c.dataset).where(releases.c.id == release))
    if dataset is None or not (identity.curator or catalogue.may_use(service.engine, dataset, identity.person)):
        return Refusal("no-dataset", "The data set is closed to you: only what was answered before is answered again.")
    return Refusal("frozen") if service.ledger.account(dataset).frozen else None


def answered(service: Service, release: str) -> tuple[float, ...]:
    """All answers so far."""
    with _lock, reading(service.engine).begin() as connection:
        found = connection.execute(sa.select(functions).where(functions.c.release == release)).mappings().first()
        return () if found is None else _restored(connection, release, found).answers


def _restored(connection: sa.Connection, release: str, found: Any) -> SecretFunction:
    asked, secret = _held.get(release, (-1, None))
    if secret is not None and asked == found["asked"]:
        return secret
    calls = connection.scalars(sa.select(answers.c.call).where(answers.c.release == release).order_by(answers.c.number))
    return SecretFunction.restored(json.loads(found["head"]), [json.loads(call) for call in calls])


class _Keeper:
    """A transaction in which answers are remembered."""

    def __init__(self, connection: sa.Connection, release: str, asked: int) -> None:
        self._connection, self._release, self._asked = connection, release, asked

    def append(self, line: dict[str, Any]) -> None:
        """Remember one call, if the transaction ends well; otherwise nothing was answered."""
        self._asked += 1
        row = {"release": self._release, "number": self._asked, "call": json.dumps(line, allow_nan=False)}
        self._connection.execute(sa.insert(answers).values(row))
        same = functions.c.release == self._release
        self._connection.execute(sa.update(functions).where(same).values(asked=self._asked))

    def close(self) -> None:
        """The transaction's owner ends it."""
