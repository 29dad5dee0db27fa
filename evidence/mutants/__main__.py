"""Mutation tests of the privacy core: ``make mutants`` writes docs/evidence/mutants.md.

Why mutmut's operators in a loop of our own, tried on privacy/conversions.py: cosmic-ray 8.7 makes 976 mutants of its
160 lines and starts Python anew for each (8 seconds here, two hours for one module). mutmut 3.8 makes 291 and forks, in
1.6 seconds each; but it leaves out constants and every decorated function, and therefore the plan of the noise, all
properties and all that is cached, and it picks tests by function. With its operators, tests picked by line and one
pytest session for several modules, decorated functions and constants are mutated too, and most mutants take less.

What was found is kept in .evidence-cache/mutants, so that an interrupted run continues: a kill for as long as its
module is the same, anything else for as long as the tests are also the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import time
from collections import Counter
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

from evidence.mutants.changes import Mutant, mutants_of
from evidence.mutants.page import Outcome, page
from evidence.mutants.runs import quiet, run_group
from evidence.mutants.table import GROUPS, MODULES, Group

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "discreet"
KEPT = ROOT / ".evidence-cache" / "mutants"
PAGE = ROOT / "docs" / "evidence" / "mutants.md"
# Draw another one before the next run: some tests were written after looking at what survived of this sample.
SEED = 20261124
# Seeds and sizes of the samples just before it, after whose survivors tests were written; the next seed adds this one.
EARLIER = ((20261121, 32), (11, 45), (12, 40), (20261122, 32), (20261123, 32))


def digest(*paths: Path) -> str:
    """What changes when one of the files does."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def lines_digest(sources: list[Path], test: str) -> str:
    """What changes when the lines that a test executes may have changed."""
    path, _, name = test.partition("::")
    own = digest(*sources, ROOT / path)
    return f"{own}-{hashlib.sha256(name.encode()).hexdigest()[:8]}" if name else own


class Found:
    """What is known about the mutants of one module."""

    def __init__(self, module: str) -> None:
        self._path = KEPT / (module.replace("/", ".") + ".json")
        self._source = digest(SOURCE / module)
        self._tests = {test: digest(ROOT / test.split("::")[0]) for test in MODULES[module].tests}
        kept = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._kept: dict[str, Any] = kept.get("found", {}) if kept.get("source") == self._source else {}

    def status(self, mutant: Mutant) -> str | None:
        """What became of a mutant, if it would do the same again."""
        return None if self.unseen(mutant) else self._kept[mutant.key][0]

    def unseen(self, mutant: Mutant) -> list[str]:
        """The test files that a mutant has yet to be run against; none if it is dead."""
        status, seen = self._kept.get(mutant.key, (None, []))
        return (
            [] if status in ("killed", "timed out") else [test for test, own in self._tests.items() if own not in seen]
        )

    def add(self, mutant: Mutant, status: str) -> None:
        """Keep a result at once."""
        if status == "no test" and self._kept.get(mutant.key, ("",))[0] == "survived":
            # Only tests that are new were looked at.
            status = "survived"
        self._kept[mutant.key] = [status, list(self._tests.values())]
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"source": self._source, "found": self._kept}))
        fresh.replace(self._path)


def in_order(module: str) -> list[Mutant]:
    """A module's mutants in an order drawn by lot, so that whatever part is reached is a random sample."""
    return _drawn(mutants_of(module, SOURCE / module), module, SEED)


def _drawn(every: list[Mutant], module: str, seed: int) -> list[Mutant]:
    return random.Random(f"{seed}/{module}").sample(every, len(every))


def seen_before(module: str) -> frozenset[str]:
    """Keys of a module's mutants that were in an earlier sample, had each been of all modules."""
    every = mutants_of(module, SOURCE / module)
    return frozenset(mutant.key for seed, size in EARLIER for mutant in _drawn(every, module, seed)[:size])


def start(group: Group, only: list[str], sample: int | None, seconds: float) -> int:
    """Run what is not known of the mutants of some modules, in a process of its own."""
    child = os.fork()
    if child:
        return child
    code = 1
    said = quiet()
    begun = time.monotonic()
    try:
        found = {module: Found(module) for module in group.modules if module in only}
        queues = [
            [each for each in in_order(module)[:sample] if known.status(each) is None]
            for module, known in found.items()
        ]
        # In turns, so that no module waits for the others.
        wanted = [each for turn in zip_longest(*queues) for each in turn if each is not None]
        counts = Counter[str]()

        def report(mutant: Mutant, status: str) -> None:
            found[mutant.module].add(mutant, status)
            counts[status] += 1

        if wanted:
            work = [(each, found[each.module].unseen(each)) for each in wanted]
            own = [SOURCE / module for module in group.modules]
            measured = {test: KEPT / f"lines-{lines_digest(own, test)}.json" for test in group.tests}
            run_group(group, work, begun + seconds, report, measured)
        took = time.monotonic() - begun
        print(f"{', '.join(found)}: {len(wanted)} to run; {dict(counts)} in {took:.0f} s", file=said)
        code = 0
    except Exception as error:
        print(f"{', '.join(group.modules)}: {error}", file=said)
    finally:
        os._exit(code)


def run(only: list[str], sample: int | None, minutes: float, jobs: int) -> None:
    """Run the groups one after the other; each gets its part, by its modules, of the time that is left."""
    end = time.monotonic() + 60 * minutes
    KEPT.mkdir(parents=True, exist_ok=True)
    waiting, running = [group for group in GROUPS if set(group.modules) & set(only)], set[int]()
    while waiting or running:
        while waiting and len(running) < jobs:
            left = sum(len(set(group.modules) & set(only)) for group in waiting)
            group = waiting.pop(0)
            part = len(set(group.modules) & set(only)) / left
            running.add(start(group, only, sample, min(1.0, jobs * part) * (end - time.monotonic())))
        child, _ = os.wait()
        running.discard(child)


def outcomes(sample: int | None) -> list[Outcome]:
    """What is known of all modules, from the cache; of no more than the sample, lest earlier kills lengthen it."""
    every = []
    for module in MODULES:
        found, mutants = Found(module), in_order(module)
        by_status: dict[str, list[Mutant]] = {}
        # In their drawn order, up to the first that is not known: what comes later would be no fair sample.
        for mutant in takewhile(found.status, mutants[:sample]):
            by_status.setdefault(found.status(mutant) or "", []).append(mutant)
        every.append(Outcome(module, len(mutants), by_status, seen_before(module)))
    return every


def main(arguments: list[str] | None = None) -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m evidence.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="modules such as privacy/gate.py")
    parser.add_argument("--minutes", type=float, default=90.0, help="start no mutant after that many minutes")
    parser.add_argument("--sample", type=int, metavar="K", help="run K mutants per module, drawn by lot")
    parser.add_argument("--jobs", type=int, default=1, help="modules that are run at the same time")
    parser.add_argument("--survivors", action="store_true", help="run nothing; print what survived without a reason")
    chosen: Any = parser.parse_args(arguments)
    wrong = set(chosen.only or ()) - set(MODULES)
    if wrong:
        parser.error(f"--only names {sorted(wrong)}, which is no module of the core: {', '.join(MODULES)}.")
    os.chdir(ROOT)
    if not chosen.survivors:
        run(chosen.only or list(MODULES), chosen.sample, chosen.minutes, chosen.jobs)
    found = outcomes(chosen.sample)
    if chosen.survivors:
        for outcome in found:
            for mutant in outcome.unexplained:
                print(f"{outcome.module}:{mutant.line} {mutant.function}: {mutant.change}")
        return
    PAGE.write_text(page(found, SEED))


if __name__ == "__main__":
    main()
