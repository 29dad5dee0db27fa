"""Works on jobs: one at a time in each worker, charged before the first record is read."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from discreet.exceptions import BudgetExceeded, DiscreetError
from discreet.serve.domain import budgets, jobs, releases, sources
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import interactive_functions as functions
from discreet.serve.domain.requests import asked_of, columns_for, estimator_for, title_of
from discreet.serve.domain.users import new_id
from discreet.serve.governance import approvals
from discreet.serve.operations import fleet, logs
from discreet.serve.service import Service

_PAUSE = 0.5
# Works on a job that was claimed; it hears by the event that the worker is to end.
Runner = Callable[[Service, dict[str, Any], threading.Event], None]


class Stopped(Exception):
    """Somebody asked for the end of the job, or another server has taken it."""


class Withdrawn(Exception):
    """The person who asked may not use the data set any more."""


class Draining(Exception):
    """The worker is to end, and the job has not been charged: another one may have it."""


class Worker:
    """Takes jobs from the queue until it is asked to end; in a thread, or in the process's own.

    Parameters
    ----------
    service : Service
        Database, clock and ledger.
    runner : callable, optional
        Works on a job; by default in this thread.
    """

    def __init__(self, service: Service, runner: Runner | None = None) -> None:
        self._service, self._over = service, threading.Event()
        self._runner: Runner = runner or work
        self._thread = threading.Thread(target=self.run, name="discreet-jobs", daemon=True)

    def start(self) -> None:
        """Begin, in a thread."""
        self._thread.start()

    def end(self) -> None:
        """Take no further job, and wait for the present one: until it has ended, or is back in the queue."""
        self.drain()
        self._thread.join()

    def drain(self) -> None:
        """Take no further job; nothing new is charged from here on."""
        self._over.set()
        self._service.wake.set()

    def run(self) -> None:
        """Work until asked to end."""
        swept = -math.inf
        with fleet.Member(self._service) as member:
            while not self._over.is_set():
                try:
                    self._service.clock.remember()
                    jobs.recover(self._service)
                    if time.monotonic() - swept > self._service.settings.lease:
                        swept = time.monotonic()
                        jobs.give_back(self._service)
                        approvals.finish(self._service)
                        self._service.anchoring.follow(self._service.ledger)
                    self._empty_queue(member)
                except Exception as error:
                    logs.failed("jobs", error)
                    self._over.wait(_PAUSE)
                self._service.wake.wait(_PAUSE)
                self._service.wake.clear()

    def _empty_queue(self, member: fleet.Member) -> None:
        while not self._over.is_set() and member.may_begin() and (row := jobs.claim(self._service)) is not None:
            self._runner(self._service, row, self._over)
            # The next one begins when this one may be seen to have ended: queues reveal no more than schedules.
            self._over.wait(jobs.until_seen(self._service, row["id"]))


def work(service: Service, row: dict[str, Any], draining: threading.Event | None = None) -> None:
    """One job, from its claim to its end, or back into the queue where nothing new may be charged any more."""
    about, started = logs.job_id.set(row["id"]), time.monotonic()
    heart = _Heart(service, row["id"], draining or threading.Event())
    heart.start()
    try:
        _work(service, row, heart)
        logs.note(logging.INFO, "job released", seconds=round(time.monotonic() - started, 3))
    except Draining:
        jobs.queue_again(service, row)
        logs.note(logging.INFO, "job back in the queue")
    except Stopped:
        give_up(service, row, "stopped", "stopped-charged")
    except BudgetExceeded:
        give_up(service, row, "budget")
    except budgets.Frozen:
        give_up(service, row, "frozen")
    except budgets.Cancelled:
        give_up(service, row, "stopped", "lost-charged")
    except Withdrawn:
        give_up(service, row, "access")
    except MemoryError as error:
        logs.failed("job", error)
        give_up(service, row, "limits", "limits-charged")
    except Exception as error:
        # What it says may depend on records, so that only its kind is noted.
        logs.failed("job", error)
        give_up(service, row, "source")
    finally:
        heart.end()
        logs.job_id.reset(about)


def give_up(service: Service, row: dict[str, Any], why: str, why_charged: str = "failed-charged") -> None:
    """End without a release: whatever was charged stays charged, and is reported so."""
    if not jobs.ours(service, row):
        # Another server has taken it over: what the ledger says of it is no longer for this one to change.
        return
    charged = budgets.abandon(service, row["reservation"])
    if not charged:
        budgets.cancel(service, row["reservation"])
    jobs.fail(service, row, why_charged if charged else why)
    logs.note(logging.WARNING, "job ended without a release", failure=why_charged if charged else why)


def _work(service: Service, row: dict[str, Any], heart: _Heart) -> None:
    dataset = catalogue.by_id(service.engine, row["dataset"])
    if dataset is None or not catalogue.unchanged(dataset):
        raise DiscreetError("the source has changed.")
    asked = asked_of(json.loads(row["request"]))
    estimator = estimator_for(dataset, asked)
    heart.listen()
    if not catalogue.may_use(service.engine, dataset.id, row["person"]):
        raise Withdrawn
    if heart.draining.is_set():
        raise Draining
    # From here on whatever happens may depend on records, so that it is paid for first.
    budgets.charge(service, row["reservation"])
    facts: Any = {"outcome": dataset.outcome, "treatment": dataset.treatment}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if asked.kind == "dp-cate":
            made, secret = functions.fitted(estimator, dataset.source, **facts)
        else:
            further = columns_for(dataset, asked.entry)
            known = dataset.propensity
            table, rows = sources.opened(
                dataset.source, bounds=estimator.bounds, propensity=known, further=further.values(), **facts
            )
            heart.listen()
            facts |= further
            made, secret = estimator.fit_table(table, progress=heart.progress, **facts, **rows).release_, None
    if not catalogue.unchanged(dataset):
        raise DiscreetError("the source has changed while it was read.")
    heart.listen()
    figures = _figures(made)
    name = new_id()
    budgets.settle(service, row["reservation"], made)
    visible = jobs.due(service, row)
    with service.engine.begin() as connection:
        new = releases.NewRelease(
            id=name,
            job=row["id"],
            dataset=dataset.id,
            person=row["person"],
            kind=asked.kind,
            key=row["key"],
            title=releases.title_of(made, title_of(dataset, asked)),
            created=visible,
        )
        releases.store(connection, new, made, figures)
        if secret is not None:
            functions.keep(connection, name, secret)
        if not jobs.end(service, connection, row, visible, state="done", release=name, progress=100):
            raise Stopped
    # What the next page shows takes a moment to compose.
    account = service.ledger.account(dataset.id)
    for as_recorded in (True, False):
        budgets.composed(service, account, as_recorded=as_recorded)


def _figures(made: Any) -> list[tuple[str, str]]:
    """Figures of a release; one that cannot be drawn must not cost what was paid for."""
    try:
        return releases.drawn_figures(made)
    except Exception as error:
        logs.failed("figure", error)
        return []


class _Heart:
    """Renews the lease of a job while it is worked on, and hears whether it is still wanted."""

    def __init__(self, service: Service, job: str, draining: threading.Event) -> None:
        self._service, self._job, self._over = service, job, threading.Event()
        self.draining = draining
        self._wanted, self._progress = True, 0
        self._thread = threading.Thread(target=self._beat, name="discreet-lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def listen(self) -> None:
        """Stop here if nobody wants the job any more."""
        if not jobs.renew(self._service, self._job, self._progress):
            self._wanted = False
        if not self._wanted:
            raise Stopped

    def progress(self, what: str, done: int, total: int) -> None:
        """Note a pass over the records; stop between two of them if nobody wants the job any more."""
        del done, total
        self._progress = min(90, int("".join(filter(str.isdigit, what)) or 0) * 5)
        if not self._wanted:
            raise Stopped

    def _beat(self) -> None:
        pause = min(self._service.settings.lease / 3, 1.0)
        last = time.monotonic()
        while not self._over.wait(pause):
            try:
                self._wanted = jobs.renew(self._service, self._job, self._progress) and self._wanted
                last = time.monotonic()
            except Exception:
                # A database that cannot be reached for longer than a lease has given the job to somebody else.
                self._wanted = self._wanted and time.monotonic() - last < self._service.settings.lease
