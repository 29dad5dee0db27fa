"""Run mutants: one pytest session for the modules of a group, whose process is forked once for every mutant.

The tests are imported and collected once. A fork then runs the tests that execute the changed lines, fast ones first,
and ends at the first failure. Which tests execute which lines is measured by coverage.py in a fork of its own.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from evidence.mutants.changes import Mutant, Originals
from evidence.mutants.table import Group

ARGUMENTS = ("-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no")
# A test is given this many times what it takes without a mutant, and some seconds more, before it counts as endless:
# seconds of processor time, which other work on the machine does not change. A mutant that only waits is ended too.
PATIENCE, GRACE, WAITING = 5.0, 3.0, 120.0
# The tests of one mutant take no more seconds than this without it; slower ones are not run, and so kill nothing.
LONGEST = 10.0
# Tests that need a server of their own are left out: each fork would have to start one.
SERVERS = {"postgres", "spark"}
_MEMORY = 16 << 30
_INVALID = 77

Report = Callable[[Mutant, str], None]
# Mutants, each with the test files to run it against.
Work = list[tuple[Mutant, list[str]]]
Measured = dict[str, Path]


class Broken(RuntimeError):
    """The tests of a group fail without any mutant."""


def run_group(group: Group, work: Work, deadline: float, report: Report, measured: Measured) -> None:
    """Run mutants until the deadline, in a process that is used for nothing else.

    What the tests of a file take and execute is kept in another file, that ``measured`` names.
    """
    import pytest

    with tempfile.TemporaryDirectory() as folder:
        session = _Session(group, work, deadline, report, measured)
        code = pytest.main([*ARGUMENTS, f"--basetemp={folder}/tests", *group.tests], plugins=[session])
    if not session.done:
        raise Broken(f"the tests fail without a mutant, or cannot be collected (pytest's code is {code}).")


class _Session:
    """A pytest plugin that runs mutants instead of tests."""

    def __init__(self, group: Group, work: Work, deadline: float, report: Report, measured: Measured) -> None:
        self._group, self._work, self._deadline = group, work, deadline
        self._report, self._measured = report, measured
        self._failed = False
        self.done = False

    def pytest_sessionstart(self) -> None:
        """Take the same examples for every mutant; a failure need not be made small."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.default, database=None, derandomize=True, phases=phases)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember a failure."""
        self._failed = self._failed or report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        """Take the place of pytest's own loop."""
        if session.testsfailed:
            return True
        originals = {module: Originals(importlib.import_module(_dotted(module))) for module in self._group.modules}
        items = [item for item in session.items if not SERVERS & set(item.fixturenames) and not _needs_server(item)]
        paths = {module: original.module.__file__ for module, original in originals.items()}
        tests = {}
        for test, kept in self._measured.items():
            own = [item for item in items if test in (item.nodeid.split("::")[0], item.nodeid.split("[")[0])]
            if not kept.exists():
                fresh = kept.with_suffix(".new")
                if _in_fork(partial(self._cover, own, paths, fresh), 600.0) != "survived":
                    return True
                fresh.replace(kept)
            tests[test] = _Tests(own, **json.loads(kept.read_text()))
        gc.freeze()
        for mutant, names in self._work:
            if time.monotonic() > self._deadline:
                break
            chosen = _fastest([each for name in names for each in tests[name].executing_lines(mutant)])
            self._report(mutant, self._become_of(mutant, originals[mutant.module], chosen))
        self.done = True
        return True

    def _become_of(self, mutant: Mutant, originals: Originals, chosen: dict[Any, float]) -> str:
        limits = {item.nodeid: GRACE + PATIENCE * seconds for item, seconds in chosen.items()}

        def work() -> int:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            try:
                originals.replace(mutant)
            except (LookupError, SyntaxError, ValueError):
                return _INVALID
            except Exception:
                return 1
            return self._run(list(chosen), lambda item: _alarm(limits[item.nodeid]))

        return _in_fork(work, WAITING) if chosen else "no test"

    def _run(self, items: list[Any], before: Callable[[Any], None]) -> int:
        for item, following in zip(items, [*items[1:], None], strict=True):
            before(item)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return 1
        return 0

    def _cover(self, items: list[Any], paths: dict[str, str], kept: Path) -> int:
        """Write what each test takes, and which lines of the modules it executes."""
        from coverage import Coverage

        cover = Coverage(data_file=None, include=list(paths.values()), config_file=False, messages=False)
        seconds: dict[str, float] = {}
        begun: list[tuple[str, float]] = []

        def switch(item: Any) -> None:
            now = _processor_time()
            if begun:
                seconds[begun[-1][0]] = now - begun[-1][1]
            begun.append((item.nodeid, now))
            cover.switch_context(item.nodeid)

        cover.start()
        code = self._run(items, switch)
        cover.stop()
        seconds[begun[-1][0]] = _processor_time() - begun[-1][1]
        with warnings.catch_warnings():
            # A test may execute no line of the modules.
            warnings.simplefilter("ignore")
            data = cover.get_data()
        executing = {
            module: {line: sorted(set(names) - {""}) for line, names in data.contexts_by_lineno(path).items()}
            for module, path in paths.items()
        }
        kept.write_text(json.dumps({"seconds": seconds, "executing": executing}))
        return code


def _dotted(module: str) -> str:
    return "discreet." + module.removesuffix(".py").replace("/", ".")


def _needs_server(item: Any) -> bool:
    """A test whose parameters name a database or cluster."""
    return any(name in item.name for name in ("postgresql", "spark"))


@dataclass(frozen=True, slots=True)
class _Tests:
    """The tests of one file, what each takes, and which of them execute which lines of which module."""

    items: list[Any]
    seconds: dict[str, float]
    executing: dict[str, dict[str, list[str]]]

    def executing_lines(self, mutant: Mutant) -> list[tuple[bool, Any, float]]:
        """Tests that may notice the mutant. A constant may be used by any, also elsewhere: these come last."""
        lines, constant = self.executing[mutant.module], mutant.function == "(module)"
        near = set[str]()
        for line in mutant.users if constant else mutant.lines:
            near |= set(lines.get(str(line), ()))
        names = set(self.seconds) if constant else near
        return [
            (item.nodeid not in near, item, self.seconds[item.nodeid]) for item in self.items if item.nodeid in names
        ]


def _fastest(tests: list[tuple[bool, Any, float]]) -> dict[Any, float]:
    """The fastest, as if the second case of a test took twice its time; no more than fit into that of one mutant."""
    cases = Counter[str]()
    turns: list[tuple[bool, float, int, Any, float]] = []
    for far, item, seconds in sorted(tests, key=lambda test: test[2]):
        name = item.nodeid.split("[")[0]
        cases[name] += 1
        turns.append((far, cases[name] * seconds, len(turns), item, seconds))
    ordered = [(item, seconds) for _, _, _, item, seconds in sorted(turns)]
    ends = accumulate(seconds for _, seconds in ordered)
    return dict(ordered[:1]) | {item: took for (item, took), end in zip(ordered, ends, strict=True) if end <= LONGEST}


def _processor_time() -> float:
    """Of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def _alarm(seconds: float) -> None:
    """End this process after so much processor time, unless another alarm is set before."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _in_fork(work: Callable[[], int], limit: float) -> str:
    """What became of the work in a process of its own: survived, killed, timed out or invalid."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            code = work()
        finally:
            os._exit(code)
    start = time.monotonic()
    pause = 0.002
    try:
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                return {0: "survived", _INVALID: "invalid", -signal.SIGPROF: "timed out"}.get(code, "killed")
            if time.monotonic() - start > limit:
                break
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
    finally:
        _end(child)
    os.waitpid(child, 0)
    return "timed out"


def _end(child: int) -> None:
    """End a fork and whatever its tests started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def quiet() -> Any:
    """Send what tests print to nowhere, and return where to say how far the run is."""
    sys.stdout.flush()
    sys.stderr.flush()
    said = os.fdopen(os.dup(2), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return said
