"""Requests that are killed, at lines of their code and at moments of time, and what the ledger says afterwards."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet import Bounds, DifferenceInMeans, Ledger
from discreet.ledger.charging import wanted_by
from discreet.privacy import noise

BOUNDS = Bounds(outcome=(0, 1))
_WATCHED = str(Path(discreet.__file__).parent)


@dataclass(slots=True)
class Crashes:
    """What came of all kills."""

    lines: int = 0
    moments: int = 0
    steps: int = 0
    """lines of discreet's code in one request"""
    drawn: int = 0
    drawn_uncounted: int = 0
    lost_lines: int = 0
    verified: int = 0
    states: dict[str, int] = field(default_factory=dict)
    """of the requests that were killed"""


def crash(url: str, folder: Path, *, lines: int, moments: int, seed: int = 0) -> Crashes:
    """Kill a request at so many lines of its code, and so many at moments of time; check the ledger after each."""
    found, pick = Crashes(), random.Random(seed)
    with closing(Ledger(url)) as ledger:
        ledger.open("killed", epsilon=10_000.0)
    marks = folder / "drawn"
    # The first request loads libraries, the second one counts.
    _request(url, marks, None)
    found.steps = _request(url, marks, None)
    seconds = max(_seconds(url, marks) for _ in range(3))
    while found.lines < lines or found.moments < moments:
        by_line = found.lines < lines
        line = 1 + pick.randrange(found.steps) if by_line else None
        moment = None if by_line else pick.uniform(0, seconds)
        with closing(Ledger(url)) as ledger:
            before = ledger.head
        marks.unlink(missing_ok=True)
        child, begun = _forked(url, marks, line)
        if moment is not None:
            os.read(begun, 1)
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)
        os.close(begun)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        found.lines += line is not None and killed
        found.moments += moment is not None and killed
        if moment is not None:
            # A machine has busy and idle minutes: whoever got away shows that a request takes less by now.
            seconds *= 1.03 if killed else 0.9
        _look(url, marks, before, found)
    return found


def _look(url: str, marks: Path, before: Any, found: Crashes) -> None:
    with closing(Ledger(url)) as ledger:
        try:
            # Nothing that was in the log before is missing from it, and all of it verifies.
            ledger.verify(before)
            found.verified += 1
        except discreet.LedgerCorrupt:
            found.lost_lines += 1
            return
        for request in ledger.requests("killed"):
            if request.id > before.seq:
                found.states[request.state] = found.states.get(request.state, 0) + 1
        for number in {int(mark) for mark in marks.read_text().split()} if marks.exists() else ():
            found.drawn += 1
            found.drawn_uncounted += ledger.request(number).state not in ("charged", "settled", "failed")


def _request(url: str, marks: Path, line: int | None, begun: int | None = None) -> int:
    """One request; every draw leaves a mark just before it. Returns how many lines it took, or dies at one of them."""
    rng = np.random.default_rng(0)
    Y, T = rng.integers(0, 2, 60).astype(float), np.arange(60) % 2
    estimator = DifferenceInMeans(epsilon=0.5, bounds=BOUNDS)
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(_WATCHED):
            return None
        if event == "line":
            count += 1
            if count == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    with closing(Ledger(url)) as ledger:
        # Reading the log so far is no step of the request.
        assert ledger.head.seq
        if begun is not None:
            os.write(begun, b".")
        sys.settrace(trace)
        want = wanted_by(estimator, {"Y": Y, "T": T}, one_gate=True)
        number = ledger.reserve("killed", want.cost, about=want.about)
        real = noise._exact

        def marking(*args: Any) -> Any:
            with marks.open("a") as file:
                file.write(f"{number}\n")
            return real(*args)

        noise._exact = marking  # type: ignore[assignment]
        try:
            estimator.fit(Y, T, ledger=ledger, reservation=number)
        finally:
            sys.settrace(None)
            noise._exact = real
    return count


def _seconds(url: str, marks: Path) -> float:
    child, begun = _forked(url, marks, None)
    os.read(begun, 1)
    start = time.monotonic()
    os.waitpid(child, 0)
    os.close(begun)
    return time.monotonic() - start


def _forked(url: str, marks: Path, line: int | None) -> tuple[int, int]:
    """A process that makes a request, and where it says that it begins."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            _request(url, marks, line, writes)
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    return child, reads
