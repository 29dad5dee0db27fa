"""The queue of requests: in the database, so that neither a restart nor a crash forgets one.

A job is queued, then running, then done, failed or stopped. Its budget is reserved when it is queued. A running job
belongs to one server for the length of a lease that the server renews; when the lease runs out another server decides
by the ledger: what was charged has failed and stays charged, anything else is queued again.
"""

from __future__ import annotations

import json
import math
from typing import Any

import sqlalchemy as sa

from discreet.serve.domain import budgets, releases
from discreet.serve.domain.datasets import Dataset
from discreet.serve.domain.requests import TITLES, Asked, estimator_for, key_of
from discreet.serve.domain.users import Identity, new_id
from discreet.serve.errors import FAILURES, Refusal
from discreet.serve.service import Service
from discreet.serve.storage.paging import Page, select_page
from discreet.serve.storage.schema import jobs, reading

OPEN = ("queued", "running")
# What the row of a job asks of whoever works on it: raise it with a change that workers of today would get wrong.
WORK = 1
# Records that a data set is taken to have in the queue, where nobody may know about how many.
_UNKNOWN = 10_000
# Requests of one person and day that wait or ended uncharged: each leaves two lines in a log that is kept for ever, and
# those of others wait behind them.
MOST_IN_VAIN = 200
_DAY = 86_400.0


def submit(
    service: Service, identity: Identity, dataset: Dataset, asked: Asked, name: str | None = None
) -> dict[str, Any]:
    """Queue a request whose budget fits, or answer it from a release that exists already.

    Nothing here touches a record, and whether it is refused follows from the request, public facts and the ledger.
    """
    estimator_for(dataset, asked)
    key = key_of(dataset, asked)
    stored = releases.identical(service.engine, service.clock, identity, key)
    if stored is not None:
        with reading(service.engine).begin() as connection:
            reservation = connection.scalar(sa.select(jobs.c.reservation).where(jobs.c.release == stored))
        budgets.note_answer(service, identity, str(reservation))
        return {"release": stored, "job": None, "charged": False}
    if _in_vain(service, identity) >= MOST_IN_VAIN:
        raise Refusal("too-many")
    name = name or new_id()
    row = {
        "id": name,
        "dataset": dataset.id,
        "person": identity.person,
        "kind": asked.kind,
        "request": json.dumps(asked.plain()),
        "key": key,
        "state": "new",
        "progress": 0,
        "created": service.clock.now(),
        "stop": False,
        "needs": WORK,
        "size": _size(dataset, asked),
    }
    # Noted before anything is reserved, so that no reservation is ever forgotten.
    with service.engine.begin() as connection:
        connection.execute(sa.insert(jobs).values(row))
    try:
        reservation = budgets.reserve(service, identity, dataset, asked, name)
    except Refusal:
        with service.engine.begin() as connection:
            connection.execute(sa.delete(jobs).where(jobs.c.id == name))
        raise
    with service.engine.begin() as connection:
        mine = (jobs.c.id == name) & (jobs.c.state == "new")
        queued = connection.execute(
            sa.update(jobs).where(mine).values(state="queued", reservation=reservation)
        ).rowcount
    if not queued:
        # The ledger kept us waiting for so long that the job was forgotten.
        budgets.cancel(service, reservation)
        raise Refusal("too-many")
    service.wake.set()
    return {"release": None, "job": name, "charged": True}


def _size(dataset: Dataset, asked: Asked) -> int:
    """About how much work a request is, from public facts alone: the queue must reveal nothing else."""
    columns = dataset.bounds.names if asked.covariates is None else asked.covariates
    return (dataset.public_n or _UNKNOWN) * (2 + len(columns))


def _in_vain(service: Service, identity: Identity) -> int:
    """How many of somebody's requests of the last day have not been charged, and wait or ended without."""
    recent = (jobs.c.person == identity.person) & (jobs.c.created > service.clock.now() - _DAY)
    uncharged = jobs.c.state.in_(("new", "queued")) | (jobs.c.failure.is_not(None) & ~jobs.c.failure.like("%-charged"))
    with reading(service.engine).begin() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(jobs).where(recent & uncharged)) or 0


def find(service: Service, identity: Identity, name: str) -> dict[str, Any]:
    """A job as its owner, or a curator, may see it now."""
    wanted = sa.select(jobs).where((jobs.c.id == name) & (jobs.c.state != "new"))
    if not identity.curator:
        wanted = wanted.where(jobs.c.person == identity.person)
    with reading(service.engine).begin() as connection:
        row = connection.execute(wanted).mappings().first()
    if row is None:
        raise Refusal("no-job")
    return seen(service, row)


def listed(service: Service, identity: Identity, limit: int = 100) -> list[dict[str, Any]]:
    """One's own jobs, or all of them for a curator, the newest first."""
    return paged(service, identity, Page(limit=limit))[0]


def paged(service: Service, identity: Identity, page: Page) -> tuple[list[dict[str, Any]], str | None]:
    """A page of one's own jobs, or of all of them for a curator, the newest first; and where the next one begins."""
    wanted = sa.select(jobs).where(jobs.c.state != "new")
    if not identity.curator:
        wanted = wanted.where(jobs.c.person == identity.person)
    with reading(service.engine).begin() as connection:
        rows, following = select_page(connection, wanted, ((jobs.c.created, True), (jobs.c.id, False)), page)
    return [seen(service, row) for row in rows], following


def seen(service: Service, row: Any) -> dict[str, Any]:
    """What may be shown of a job: that it has ended only shows at points of a public schedule."""
    ended = row["state"] not in OPEN and (row["visible"] is None or row["visible"] <= service.clock.now())
    state = row["state"] if ended or row["state"] in OPEN else "running"
    failure = row["failure"] if ended else None
    return {
        "id": row["id"],
        "dataset": row["dataset"],
        "person": row["person"],
        "kind": row["kind"],
        "title": TITLES[row["kind"]],
        "request": json.loads(row["request"]),
        "state": state,
        "progress": _progress(service, row, state),
        "created": row["created"],
        "stopping": bool(row["stop"]) and state in OPEN,
        "failure": failure,
        "text": FAILURES.get(failure or "", ""),
        "charged": state == "done" or bool(failure and failure.endswith("-charged")),
        "release": row["release"] if state == "done" else None,
    }


def _progress(service: Service, row: Any, state: str) -> int:
    """Per cent, in steps that follow the public schedule: how fast work goes must reveal nothing about the records."""
    if state != "running" or row["started"] is None:
        return {"queued": 0, "running": 5}.get(state, 100)
    ticks = max(service.clock.now() - row["started"], 0.0) / service.settings.first_tick
    return min(95, 10 + 20 * math.floor(math.log2(1.0 + ticks)))


def stop(service: Service, identity: Identity, name: str) -> dict[str, Any]:
    """Ask for the end of a job: at once if it has not begun, else as soon as it listens.

    Whoever asks before the end can be seen gets nothing: whether there was something by then reveals how long it took.
    """
    found = find(service, identity, name)
    if found["state"] not in OPEN:
        raise Refusal("finished")
    with service.engine.begin() as connection:
        queued = (jobs.c.id == name) & (jobs.c.state == "queued")
        ended = {"state": "stopped", "failure": "stopped"}
        taken = connection.execute(sa.update(jobs).where(queued).values(ended)).rowcount
        connection.execute(sa.update(jobs).where(jobs.c.id == name).values(stop=True))
        hidden = (jobs.c.id == name) & (jobs.c.visible > service.clock.now())
        charged = (jobs.c.state == "done") | jobs.c.failure.like("%-charged")
        late = {"state": "stopped", "failure": "stopped-charged", "release": None}
        if connection.execute(sa.update(jobs).where(hidden & charged).values(late)).rowcount:
            releases.withhold(connection, name)
        reservation = connection.scalar(sa.select(jobs.c.reservation).where(jobs.c.id == name))
    if taken:
        budgets.cancel(service, str(reservation))
        if budgets.abandon(service, str(reservation)):
            # A server that had fallen silent, and lost the job, has come back and charged it.
            with service.engine.begin() as connection:
                connection.execute(sa.update(jobs).where(jobs.c.id == name).values(failure="stopped-charged"))
    return find(service, identity, name)


def claim(service: Service) -> dict[str, Any] | None:
    """The queued job whose turn it is, taken so that no other worker takes it.

    Whose last job began longest ago is next; of one person's jobs the smallest, and of equally small ones the oldest.
    """
    others = jobs.alias()
    last = sa.select(sa.func.max(others.c.started)).where(others.c.person == jobs.c.person).scalar_subquery()
    waits = (jobs.c.state == "queued") & _workable()
    order = (sa.func.coalesce(last, 0.0), jobs.c.size, jobs.c.created, jobs.c.id)
    chosen = sa.select(jobs.c.id).where(waits).order_by(*order).limit(1)
    with reading(service.engine).begin() as connection:
        # Most questions find nothing, and need not wait for whoever writes.
        if connection.scalar(sa.select(jobs.c.id).where(waits).limit(1)) is None:
            return None
    now = service.clock.now()
    taken = {"state": "running", "worker": service.name, "started": now, "lease": now + service.settings.lease}
    with service.engine.begin() as connection:
        name = connection.scalar(chosen.with_for_update(skip_locked=True, of=jobs))
        if name is None:
            return None
        mine = (jobs.c.id == name) & (jobs.c.state == "queued")
        if not connection.execute(sa.update(jobs).where(mine).values(taken)).rowcount:
            return None
        return dict(connection.execute(sa.select(jobs).where(jobs.c.id == name)).mappings().one())


def _workable() -> sa.ColumnElement[bool]:
    """Jobs that this version can work on."""
    return (jobs.c.needs <= WORK) & jobs.c.kind.in_(list(TITLES))


def beyond(service: Service) -> int:
    """How many queued jobs need a newer version than this one."""
    waits = (jobs.c.state == "queued") & ~_workable()
    with reading(service.engine).begin() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(jobs).where(waits)) or 0


def ours(service: Service, row: dict[str, Any]) -> bool:
    """Whether a job that we took is still ours; if so, it stays so for another lease."""
    mine = (jobs.c.id == row["id"]) & (jobs.c.worker == service.name) & (jobs.c.state == "running")
    with service.engine.begin() as connection:
        lease = service.clock.now() + service.settings.lease
        return bool(connection.execute(sa.update(jobs).where(mine).values(lease=lease)).rowcount)


def renew(service: Service, name: str, progress: int) -> bool:
    """Hold on to a job; whether it is still ours and wanted."""
    mine = (jobs.c.id == name) & (jobs.c.worker == service.name) & (jobs.c.state == "running")
    with service.engine.begin() as connection:
        lease = service.clock.now() + service.settings.lease
        kept = connection.execute(sa.update(jobs).where(mine).values(lease=lease, progress=progress)).rowcount
        return bool(kept) and not connection.scalar(sa.select(jobs.c.stop).where(jobs.c.id == name))


def due(service: Service, row: dict[str, Any]) -> float:
    """When a job that ends now may be seen to have ended: at the next point of the schedule."""
    # Writing it down takes a moment, too.
    spent = max(service.clock.now() + service.settings.grid - row["started"], 1e-3) / service.settings.first_tick
    # After one tick, then after 1.4 times as long each time: few bits of how long it took can be seen.
    ticks: float = 2.0 ** (max(math.ceil(2.0 * math.log2(spent)), 0) / 2.0)
    return float(row["started"]) + service.settings.first_tick * ticks


def until_seen(service: Service, name: str) -> float:
    """Seconds until a job that has ended may be seen to have."""
    with reading(service.engine).begin() as connection:
        visible = connection.scalar(sa.select(jobs.c.visible).where(jobs.c.id == name))
    return max(0.0, (visible or 0.0) - service.clock.now())


def end(service: Service, connection: sa.Connection, row: dict[str, Any], visible: float, **values: Any) -> bool:
    """End a job that is ours, to be seen when it is due; whether it was ours, and wanted if it brings a release."""
    mine = (jobs.c.id == row["id"]) & (jobs.c.worker == service.name) & (jobs.c.state == "running")
    if "release" in values:
        mine &= ~jobs.c.stop
    found = connection.execute(sa.update(jobs).where(mine).values(visible=visible, **values))
    return bool(found.rowcount)


def fail(service: Service, row: dict[str, Any], failure: str) -> None:
    """End a job without a release."""
    with service.engine.begin() as connection:
        failure = _failure_shown(connection, row, failure)
        state = "stopped" if failure.startswith("stopped") else "failed"
        end(service, connection, row, due(service, row), state=state, failure=failure)


def _failure_shown(connection: sa.Connection, row: dict[str, Any], failure: str) -> str:
    """Why a job ended; somebody who wanted it stopped reads so, whatever else happened after it was charged."""
    wanted = sa.select(jobs.c.stop).where(jobs.c.id == row["id"]).with_for_update()
    return "stopped-charged" if connection.scalar(wanted) and failure.endswith("-charged") else failure


def recover(service: Service) -> int:
    """Take up jobs whose server fell silent; how many there were."""
    _forget_new(service)
    with reading(service.engine).begin() as connection:
        late = (jobs.c.state == "running") & (jobs.c.lease < service.clock.now())
        rows = [dict(row) for row in connection.execute(sa.select(jobs).where(late)).mappings()]
    return sum(_taken_over(service, row) for row in rows)


def _taken_over(service: Service, row: dict[str, Any]) -> bool:
    """Decide about a job whose server fell silent, unless it has come back or somebody else was faster."""
    now = service.clock.now()
    silent = (jobs.c.id == row["id"]) & (jobs.c.worker == row["worker"]) & (jobs.c.state == "running")
    mine = {"worker": service.name, "lease": now + service.settings.lease}
    with service.engine.begin() as connection:
        # First the job, then the ledger: whoever holds the job is the only one to say what became of its charge.
        if not connection.execute(sa.update(jobs).where(silent & (jobs.c.lease < now)).values(mine)).rowcount:
            return False
    if budgets.abandon(service, row["reservation"]):
        fail(service, row, "lost-charged")
        return True
    queue_again(service, row)
    return True


def queue_again(service: Service, row: dict[str, Any]) -> bool:
    """Put a job that is ours, and was not charged, back into the queue, where it was; whether it was ours."""
    again: dict[str, Any] = {"state": "queued", "worker": None, "started": None, "lease": None, "progress": 0}
    held = (jobs.c.id == row["id"]) & (jobs.c.worker == service.name) & (jobs.c.state == "running")
    with service.engine.begin() as connection:
        return bool(connection.execute(sa.update(jobs).where(held).values(again)).rowcount)


def _forget_new(service: Service) -> None:
    """Forget jobs whose server fell silent before they were queued; `give_back` finds what was reserved for them."""
    late = (jobs.c.state == "new") & (jobs.c.created < service.clock.now() - service.settings.lease)
    with reading(service.engine).begin() as connection:
        if connection.scalar(sa.select(jobs.c.id).where(late).limit(1)) is None:
            return
    with service.engine.begin() as connection:
        connection.execute(sa.delete(jobs).where(late))


def give_back(service: Service) -> int:
    """Cancel what is reserved for jobs that nobody will work on any more; how many there were.

    Nothing was drawn for them: noise needs a charge, and what is cancelled can never be charged.
    """
    held = {request.about.get("job"): request.id for request in service.ledger.requests(state="reserved")}
    # A job is noted before its budget is reserved, so that one that is not there will not come either.
    with reading(service.engine).begin() as connection:
        going = set(connection.scalars(sa.select(jobs.c.id).where(jobs.c.state.in_(("new", *OPEN)))))
    # Reservations without a job are not the service's own.
    orphans = [number for job, number in held.items() if job is not None and job not in going]
    for number in orphans:
        budgets.cancel(service, str(number))
    return len(orphans)
