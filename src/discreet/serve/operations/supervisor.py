"""A worker: it takes jobs from the queue and has a process of its own do them, within limits of memory and time."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from discreet.serve.operations import logs
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.worker import Worker, give_up

_COMMAND = (sys.executable, "-m", "discreet.serve.operations.fitting")
_TICK = 0.1
# A fresh process after so many fits, or when it has kept this part of what a fit may need.
_MOST_FITS, _KEPT = 200, 0.5
_PATIENCE = 120.0


class FitProcess:
    """The process that fits, started anew when it has to be.

    Parameters
    ----------
    settings : Settings
        With the limits of a fit.
    command : sequence of str, optional
        What it runs.
    """

    def __init__(self, settings: Settings, command: Sequence[str] = _COMMAND) -> None:
        self._settings, self._command, self._fits = settings, command, 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Have a process that is ready."""
        if self._process is not None and self._process.poll() is None:
            return
        self._fits = 0
        environment = os.environ | self._settings.environment()
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        if self._answer(time.monotonic() + _PATIENCE, lambda: None) is None:
            self._kill()
            raise RuntimeError("no process that fits could be started")

    def run(self, service: Service, row: dict[str, Any], draining: threading.Event) -> None:
        """One job, from its claim to its end."""
        self._tell({"row": row, "worker": service.name})
        asked = False

        def tick() -> str | None:
            nonlocal asked
            if draining.is_set() and not asked:
                asked = True
                self._tell({"drain": True})
            used = self._memory()
            if self._settings.fit_memory and used > self._settings.fit_memory * 1_000_000:
                return "memory"
            return None

        reason = self._answer(time.monotonic() + self._settings.fit_seconds, tick)
        if reason != "done":
            self._kill()
            logs.note(logging.ERROR, "the process that fits was ended", job=row["id"], reason=reason or "time")
            give_up(service, row, "limits", "limits-charged")
        self._fits += 1
        if self._fits >= _MOST_FITS or self._memory() > _KEPT * (self._settings.fit_memory or 1e9) * 1_000_000:
            self.end()
        if not draining.is_set():
            self.start()

    def end(self) -> None:
        """Let the process end by itself: it has nothing to do."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def _tell(self, message: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            # That it is gone shows when it is listened to.
            return

    def _answer(self, until: float, tick: Callable[[], str | None]) -> str | None:
        """What became of a job: done, what a tick says, that the process ended; None when time is up."""
        assert self._process is not None
        assert self._process.stdout is not None
        while time.monotonic() < until:
            if select.select([self._process.stdout], [], [], _TICK)[0]:
                # A line is written whole, and there is never more than one.
                return "done" if self._process.stdout.readline() else "the process ended"
            if (reason := tick()) is not None:
                return reason
        return None

    def _memory(self) -> int:
        """Bytes that the process holds; 0 where the system does not say."""
        if self._process is None:
            return 0
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.end()


def run(settings: Settings, *, leave_with_parent: bool = False) -> None:
    """Work until somebody asks for the end.

    Parameters
    ----------
    settings : Settings
        Of the service.
    leave_with_parent : bool
        Whether to end when standard input does, which a parent process holds open.
    """
    logs.begin()
    service = Service.of(settings)
    fits = FitProcess(settings)
    worker = Worker(service, fits.run)

    def drain(*_: object) -> None:
        worker.drain()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, drain)
    if leave_with_parent:
        threading.Thread(target=_outlived, args=(drain,), daemon=True).start()
    fits.start()
    logs.note(logging.INFO, "worker started", worker=service.name)
    worker.run()
    fits.end()
    logs.note(logging.INFO, "worker ended", worker=service.name)
    service.close()


def _outlived(drain: Callable[[], None]) -> None:
    """Wait until nobody holds standard input open any more."""
    sys.stdin.read()
    drain()


if __name__ == "__main__":
    run(Settings.from_environment(), leave_with_parent=True)
