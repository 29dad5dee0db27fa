"""The workers that a server starts beside itself: started again when they end, and drained before it ends."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time

from discreet.serve.operations import logs
from discreet.serve.settings import Settings

_LOOK = 0.5
# Seconds before a worker that has ended is started again: twice as long each time, until it lasts.
_FIRST, _LONGEST, _LASTED = 1.0, 60.0, 120.0


class Workers:
    """So many worker processes.

    Parameters
    ----------
    settings : Settings
        Of the service, which says how many.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._over = settings, threading.Event()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._thread = threading.Thread(target=self._watch, name="discreet-workers", daemon=True)

    def start(self) -> None:
        """Start them."""
        self._processes = [self._started() for _ in range(self._settings.workers)]
        self._thread.start()

    def drain(self) -> None:
        """Have them take no further job; what was charged is ended first."""
        self._over.set()
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Drain them, and wait until they are gone."""
        self.drain()
        self._thread.join()
        for process in self._processes:
            process.wait()
            _close(process)

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "discreet.serve.operations.supervisor"]
        environment = os.environ | self._settings.environment()
        # They end when this process does, however it ends: then nobody holds their standard input open any more.
        return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)

    def _watch(self) -> None:
        pause, began = [_FIRST] * len(self._processes), [time.monotonic()] * len(self._processes)
        due = [0.0] * len(self._processes)
        while not self._over.wait(_LOOK):
            for place, process in enumerate(self._processes):
                now = time.monotonic()
                if process.poll() is None:
                    continue
                if not due[place]:
                    pause[place] = _FIRST if now - began[place] > _LASTED else min(2 * pause[place], _LONGEST)
                    due[place] = now + pause[place]
                    logs.note(logging.ERROR, "a worker ended and will be started again", code=process.returncode)
                elif now >= due[place] and not self._over.is_set():
                    _close(process)
                    self._processes[place], began[place], due[place] = self._started(), now, 0.0


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
