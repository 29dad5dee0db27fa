"""Workers that are asked to end, or killed, in the middle of a fit: what becomes of the requests, and of the budget."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from discreet.serve import demo
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import jobs
from discreet.serve.domain.requests import Asked
from discreet.serve.domain.users import ALLOWED, Identity
from discreet.serve.operations import fleet
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.storage.schema import jobs as table

DATASET = "clinic-stays"
# So many requests are new at each point: one is worked on, and one waits.
_EACH = 2
_EPSILON = 0.004


@dataclass
class Found:
    """What became of requests at so many points."""

    points: int = 0
    workers: int = 1
    signal: str = "SIGTERM"
    requests: int = 0
    # The state of the request that was worked on when the signal came, as the ledger had it a moment before.
    caught: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    back_in_queue: int = 0
    lost: int = 0
    charged_twice: int = 0
    seconds_to_end: float = 0.0
    budget_adds_up: bool = False
    intact: bool = False


class Site:
    """A database with the demonstration's data, and workers that are started and ended."""

    def __init__(self, folder: Path, database: str | None = None, n: int = 20_000) -> None:
        self.settings = Settings(
            database=database or f"sqlite:///{folder}/service.db", data=str(folder), first_tick=0.05, lease=5.0
        )
        demo.prepare(self.settings, n=n)
        self.service = Service.of(self.settings)
        self.who = Identity(
            person="analyst", name="", role="analyst", scopes=ALLOWED["analyst"], token="", expires=float("inf")
        )
        self.dataset = catalogue.find(self.service.engine, self.who, DATASET)
        self._asked = 0

    def ask(self) -> str:
        """A request that was not made before."""
        self._asked += 1
        asked = Asked(kind="ate", epsilon=_EPSILON + self._asked * 1e-7, delta=1e-9)
        return str(jobs.submit(self.service, self.who, self.dataset, asked)["job"])

    def worker(self) -> subprocess.Popen[bytes]:
        """A worker, started as an operator does."""
        environment = os.environ | {
            f"DISCREET_{name.upper()}": str(value)
            for name, value in asdict(self.settings).items()
            if name in {"database", "data", "first_tick", "lease"}
        }
        command = [sys.executable, "-m", "discreet", "worker"]
        return subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)

    def there(self, count: int) -> None:
        """Wait until so many workers have reported."""
        self._until(lambda: len(fleet.present(self.service)) >= count)

    def rows(self, names: list[str]) -> list[dict[str, Any]]:
        """Requests as the database has them, what analysts do not see yet included."""
        with self.service.engine.begin() as connection:
            chosen = sa.select(table).where(table.c.id.in_(names))
            return [dict(row) for row in connection.execute(chosen).mappings()]

    def running(self, names: list[str], going: list[subprocess.Popen[bytes]]) -> list[dict[str, Any]]:
        """Those that a living worker works on, as soon as there is one; none, if all ended before that was seen."""
        found: list[dict[str, Any]] = []

        def one() -> bool:
            rows = self.rows(names)
            found[:] = [row for row in rows if row["state"] == "running" and _place(row, going) is not None]
            return bool(found) or not any(row["state"] in jobs.OPEN for row in rows)

        self._until(one)
        return found

    def ended(self, names: list[str]) -> list[dict[str, Any]]:
        """All of them, when they have ended."""
        self._until(lambda: not any(row["state"] in jobs.OPEN for row in self.rows(names)))
        return self.rows(names)

    def paid(self, row: dict[str, Any]) -> str:
        """The state of a request's reservation."""
        return str(self.service.ledger.request(int(row["reservation"])).state)

    def _until(self, met: Any, seconds: float = 300.0) -> None:
        until = time.monotonic() + seconds
        while not met():
            if time.monotonic() > until:
                raise RuntimeError("what was waited for did not come")
            time.sleep(0.01)


def at_random_points(
    points: int,
    workers: int,
    how: signal.Signals = signal.SIGTERM,
    *,
    seed: int = 0,
    database: str | None = None,
    n: int = 20_000,
) -> Found:
    """Signal a worker at so many random points of its work; the next one goes on.

    Parameters
    ----------
    points : int
        How many signals.
    workers : int
        Workers that share the database; one of them is signalled at a time.
    how : Signals
        SIGTERM, or SIGKILL for the whole group of processes.
    seed : int
        Of the moments.
    database : str, optional
        Address; a SQLite file by default.
    n : int
        Records.
    """
    draw, found = random.Random(seed), Found(points=points, workers=workers, signal=how.name)
    names: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), database, n)
        going = [site.worker() for _ in range(workers)]
        site.there(workers)
        try:
            lasts = _duration(site, going)
            for point in range(points):
                names += [site.ask() for _ in range(_EACH)]
                waiting = [row["id"] for row in site.rows(names) if row["state"] in jobs.OPEN]
                rows = site.running(waiting, going) if waiting else []
                time.sleep(draw.uniform(0.0, 1.2 * lasts))
                found.caught.update(site.paid(row) for row in rows[:1])
                place = _place(rows[0], going) if rows else None
                place = point % workers if place is None else place
                began = time.monotonic()
                if how == signal.SIGKILL:
                    os.killpg(going[place].pid, how)
                else:
                    going[place].send_signal(how)
                going[place].wait(300)
                found.seconds_to_end = max(found.seconds_to_end, time.monotonic() - began)
                found.back_in_queue += sum(row["state"] == "queued" for row in site.rows([row["id"] for row in rows]))
                going[place] = site.worker()
            done = site.ended(names)
        finally:
            for each in going:
                each.send_signal(signal.SIGTERM)
            for each in going:
                each.wait(300)
        _judge(site, done, found)
    return found


def _place(row: dict[str, Any], going: list[subprocess.Popen[bytes]]) -> int | None:
    """Which of the workers has a request; None where it is one that is gone."""
    return next((place for place, each in enumerate(going) if f"-{each.pid}-" in str(row["worker"])), None)


def _duration(site: Site, going: list[subprocess.Popen[bytes]]) -> float:
    """Seconds from the claim of a request to its end: the time within which signals come."""
    row = site.rows([site.ask()])[0]
    running = site.running([row["id"]], going)
    began = time.monotonic()
    site.ended([row["id"]])
    return time.monotonic() - began if running else 0.2


def _judge(site: Site, done: list[dict[str, Any]], found: Found) -> None:
    found.requests = len(done)
    found.ended.update(row["failure"] or row["state"] for row in done)
    found.lost = sum(site.paid(row) == "failed" for row in done)
    requests = site.service.ledger.requests(DATASET)
    charged = [request for request in requests if request.state in ("charged", "settled", "failed")]
    found.charged_twice = len(charged) - len({request.about["job"] for request in charged})
    # What counts as spent is what requests cost that released something, or were lost; nothing is left reserved.
    ended = sum(request.cost.epsilon for request in requests if request.state in ("settled", "failed"))
    found.budget_adds_up = abs(site.service.ledger.account(DATASET).spent.epsilon - ended) < 1e-9
    site.service.ledger.verify()
    found.intact = True
    site.service.close()
