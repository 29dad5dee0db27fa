"""Whether the service can do what it is there for: for load balancers, and in sentences for whoever sets it up."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import sqlalchemy as sa

from discreet.exceptions import DiscreetError
from discreet.serve.domain import jobs
from discreet.serve.operations import fleet
from discreet.serve.service import Service
from discreet.serve.storage.schema import reading

# Anybody may ask: what was found is repeated for a second.
_KEEP = 1.0


class Readiness:
    """Checks, each with a name and whether it is met.

    Parameters
    ----------
    service : Service
        What is checked.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, threading.Lock()
        self._found: dict[str, bool] = {}
        self._at = -_KEEP

    def found(self) -> dict[str, bool]:
        """What is met now: without the first four nothing can be asked; without workers, requests wait."""
        with self._lock:
            if time.monotonic() - self._at >= _KEEP:
                self._found, self._at = self._checked(), time.monotonic()
            return self._found

    def _checked(self) -> dict[str, bool]:
        service, settings = self._service, self._service.settings
        database = _answers(service)
        free = fleet.free_megabytes(service)
        return {
            "database": database,
            "ledger": database and _ledger_answers(service),
            "data": Path(settings.data).is_dir(),
            "disk": free is None or free >= settings.least_free,
            "workers": database and (settings.work or bool(fleet.present(service))),
            "version": database and not jobs.beyond(service),
        }


def ready(found: dict[str, bool]) -> bool:
    """Whether requests can be taken; that nobody works on them yet is for monitoring."""
    return all(found[name] for name in ("database", "ledger", "data", "disk"))


def _answers(service: Service) -> bool:
    try:
        with reading(service.engine).begin() as connection:
            connection.execute(sa.select(1))
    except sa.exc.SQLAlchemyError:
        return False
    return True


def _ledger_answers(service: Service) -> bool:
    try:
        return service.ledger.head is not None
    except DiscreetError:
        return False
