"""Time that never goes backwards, nor stands still: a clock that is set back must neither bring expired tokens to life
again nor hold up what is due."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import sqlalchemy as sa

from discreet.serve.storage.schema import facts, reading

# The latest time seen is written down this often; a restart can fall back by no more. While the system's clock is
# behind, whoever starts anew must fall back by much less than a lease.
_WRITE, _WRITE_BEHIND = 60.0, 1.0


class Clock:
    """Seconds since 1970, at least as late as any that this database has seen.

    Parameters
    ----------
    engine : Engine
        Where the latest time is remembered.
    wall : callable, optional
        The system's clock; by default that of PostgreSQL's server, so that machines agree, and else this machine's.
    steady : callable, optional
        What goes on by itself when the system's clock is set back.
    """

    def __init__(
        self,
        engine: sa.Engine,
        wall: Callable[[], float] | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._steady, self._lock = engine, steady, threading.Lock()
        self._shared = wall is None and engine.dialect.name == "postgresql"
        self._wall = wall or (self._servers if self._shared else time.time)
        self._agree()
        with reading(engine).begin() as connection:
            seen = connection.scalar(sa.select(facts.c.value).where(facts.c.name == "clock"))
        self._latest = self._written = float(seen or 0.0)
        self._asked = steady()

    def _agree(self) -> None:
        """Read the clock of the database's server, from which time goes on by itself."""
        if self._shared:
            with reading(self._engine).begin() as connection:
                asked = sa.select(sa.func.extract("epoch", sa.func.clock_timestamp()))
                self._agreed = float(connection.scalar(asked) or 0.0), self._steady()

    def _servers(self) -> float:
        at, then = self._agreed
        return at + self._steady() - then

    def now(self) -> float:
        """The time. It writes nothing, so that it can be asked inside a transaction."""
        with self._lock:
            # In this order: what passes between the two readings is not counted twice.
            wall, before = self._wall(), self._asked
            self._asked = self._steady()
            self._latest = max(self._latest + max(self._asked - before, 0.0), wall)
            return self._latest

    def remember(self, *, at_once: bool = False) -> None:
        """Write the latest time down, if that is due; never inside a transaction, which it would wait for."""
        latest = self.now()
        with self._lock:
            often = _WRITE if latest - self._wall() < _WRITE_BEHIND else _WRITE_BEHIND
            if not at_once and latest - self._written < often:
                return
            self._written = latest
        self._agree()
        with self._engine.begin() as connection:
            seen = connection.scalar(sa.select(facts.c.value).where(facts.c.name == "clock").with_for_update())
            if float(seen or 0.0) < latest:
                connection.execute(sa.update(facts).where(facts.c.name == "clock").values(value=repr(latest)))
