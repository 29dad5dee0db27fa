"""One job in a process of its own, run again whenever it is asked to; and the side that asks.

Nothing but the standard library is needed here, so that other systems' environments can run it too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_LOOK_EVERY = 0.1


def serve(prepare: Callable[[], Callable[[], Any]]) -> None:
    """Prepare a job, then run it once for every line of input, and answer with seconds and memory."""
    # Libraries may print what they like: answers have a channel of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    start = time.perf_counter()
    job = prepare()
    print(json.dumps({"prepared": time.perf_counter() - start}), file=answers, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        found = job()
        seconds = time.perf_counter() - start
        print(
            json.dumps({"seconds": seconds, "peak": _kilobytes("/proc/self/status", "VmHWM"), "found": found}),
            file=answers,
        )
        answers.flush()


class Failed(Exception):
    """A worker that ended or took too long, in a few words that a page can print."""


class Worker:
    """The other side: starts the process, asks it to run, watches the memory of it and of all its children."""

    def __init__(
        self, command: Sequence[str], *, limit: float, folder: Path, log: Path, environment: Mapping[str, str]
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.peak = 0
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                # A group of its own, so that a worker can be ended with all that it has started.
                start_new_session=True,
            )
        self.prepared = float(self._answer(limit)["prepared"])

    def run(self, limit: float) -> dict[str, Any]:
        """One repetition: its seconds, its peak so far in bytes, and what the job returned."""
        assert self.process.stdin is not None
        try:
            print("again", file=self.process.stdin, flush=True)
        except BrokenPipeError:
            self.stop()
            raise Failed(self._last_words()) from None
        answer = self._answer(limit)
        self.peak = max(self.peak, int(answer["peak"]))
        return answer | {"peak": self.peak}

    def stop(self) -> None:
        """End the process and everything that it has started."""
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGTERM)
                self.process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # What was left to write to a process that has ended cannot be written any more.
                with suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait()

    def _answer(self, limit: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        end = time.monotonic() + limit
        while not select.select([self.process.stdout], [], [], _LOOK_EVERY)[0]:
            self._look()
            if time.monotonic() > end:
                self.stop()
                raise Failed(f"took longer than {limit:.0f} seconds")
        line = self.process.stdout.readline()
        if not line:
            self.stop()
            raise Failed(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _look(self) -> None:
        members = list(family(self.process.pid))
        # A process that is alone knows its own peak exactly. Of several, pages that they share are shared out.
        if len(members) > 1:
            self.peak = max(self.peak, sum(_kilobytes(f"/proc/{member}/smaps_rollup", "Pss") for member in members))

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return (lines[-1] if lines else f"ended with code {self.process.returncode}")[:200]


def family(process: int) -> Iterator[int]:
    """A process and all that descend from it."""
    yield process
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))
    except OSError:  # ended meanwhile
        return


def _kilobytes(path: str, field: str) -> int:
    """A field of one of the system's own accounts, in bytes; 0 once the process has ended."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), 0)
