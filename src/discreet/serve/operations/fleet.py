"""What workers say of themselves in the database, and what keeps one from beginning a job."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from discreet import __version__
from discreet.serve.domain import jobs
from discreet.serve.operations import logs
from discreet.serve.service import Service
from discreet.serve.storage.schema import reading, workers

# Seconds: how often a worker reports, and after how many without a word it is taken to be gone.
_OFTEN, SILENT = 5.0, 30.0
_FORGOTTEN = 86_400.0
_AGAIN = 600.0


class Member:
    """One worker's line in the list.

    Parameters
    ----------
    service : Service
        Database, clock and the worker's name.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._began = service, service.clock.now()
        self._over, self._complained = threading.Event(), dict[str, float]()
        self._thread = threading.Thread(target=self._keep_reporting, name="discreet-presence", daemon=True)

    def __enter__(self) -> Member:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        with self._noted(), self._service.engine.begin() as connection:
            connection.execute(sa.delete(workers).where(workers.c.id == self._service.name))

    def _keep_reporting(self) -> None:
        while not self._over.is_set():
            with self._noted():
                self.report()
            self._over.wait(_OFTEN)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            logs.failed("presence", error)

    def report(self) -> None:
        """Say that this worker is there, and what it sees."""
        now, mine = self._service.clock.now(), workers.c.id == self._service.name
        new = {"id": self._service.name, "version": __version__, "work": jobs.WORK, "started": self._began, "seen": now}
        with self._service.engine.begin() as connection:
            if not connection.execute(sa.update(workers).where(mine).values(seen=now)).rowcount:
                connection.execute(sa.insert(workers).values(new))
            connection.execute(sa.delete(workers).where(workers.c.seen < now - _FORGOTTEN))
        if waiting := jobs.beyond(self._service):
            self._complain("requests wait for a newer worker: upgrade this one", waiting=waiting, version=__version__)

    def may_begin(self) -> bool:
        """Whether what a job makes could be written down."""
        free = free_megabytes(self._service)
        if free is None or free >= self._service.settings.least_free:
            return True
        self._complain("no work is begun: the disk of the database is almost full", free_megabytes=free)
        return False

    def _complain(self, event: str, **facts: Any) -> None:
        if time.monotonic() - self._complained.get(event, -_AGAIN) >= _AGAIN:
            self._complained[event] = time.monotonic()
            logs.note(logging.WARNING, event, **facts)


def present(service: Service) -> list[dict[str, Any]]:
    """Workers that were heard of lately."""
    heard = sa.select(workers).where(workers.c.seen > service.clock.now() - SILENT).order_by(workers.c.id)
    with reading(service.engine).begin() as connection:
        return [dict(row) for row in connection.execute(heard).mappings()]


def free_megabytes(service: Service) -> int | None:
    """What is free beside the file of a SQLite database; None where the database is elsewhere."""
    file = service.engine.url.database
    if service.engine.dialect.name != "sqlite" or not file:
        return None
    return shutil.disk_usage(Path(file).absolute().parent).free // 1_000_000
