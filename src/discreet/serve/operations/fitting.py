"""A process that fits, and nothing else: ``python -m discreet.serve.operations.fitting``, started by a worker.

It reads jobs from its standard input, one line of JSON each, and writes a line when one has ended. Signals are the
worker's business. When the worker is gone, it ends what it has begun, and then itself.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import signal
import sys
import threading
from contextlib import suppress
from typing import Any, TextIO

from discreet.serve.operations import logs
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.worker import work

# Pages come first where both share a machine.
_NICER = 5
_MEGABYTE = 1_000_000
# An address space holds more than what is used: this many times what a fit may use is refused at once.
_RESERVED = 4


def main() -> None:
    """Work on what comes, until nothing comes any more."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    # Whatever a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    logs.begin()
    settings = Settings.from_environment()
    service = Service.of(settings)
    _import_ahead()
    _limit(settings)
    _say(answers, ready=True)
    draining, waiting = threading.Event(), queue.SimpleQueue[Any]()
    threading.Thread(target=_hear, args=(draining, waiting), daemon=True).start()
    while (job := waiting.get()) is not None:
        service.name = job["worker"]
        work(service, job["row"], draining)
        _say(answers, done=job["row"]["id"])
    service.close()


def _hear(draining: threading.Event, waiting: queue.SimpleQueue[Any]) -> None:
    """Pass on what the worker says, while work goes on."""
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("drain"):
            draining.set()
        else:
            waiting.put(message)
    waiting.put(None)


def _say(answers: TextIO, **facts: Any) -> None:
    with suppress(BrokenPipeError):
        answers.write(json.dumps(facts) + "\n")
        answers.flush()


def _import_ahead() -> None:
    """What every fit needs, so that the first one need not wait for it."""
    import duckdb  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import opendp.prelude  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import discreet.estimators
    import discreet.papers  # noqa: F401


def _limit(settings: Settings) -> None:
    """Let the system refuse far too much memory at once, and end this process first where there is too little."""
    with suppress(OSError):
        os.nice(_NICER)
    if not settings.fit_memory:
        return
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (_RESERVED * settings.fit_memory * _MEGABYTE,) * 2)


if __name__ == "__main__":
    main()
