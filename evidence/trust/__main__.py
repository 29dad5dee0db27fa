"""Whether estimates and intervals can be believed: ``python -m evidence.trust`` writes docs/evidence/trust.md.

Parts: population (random studies), trials, shapes, acic, effects, estimands, plan; all of them unless some are named.
A part is written onto the page in its place, and the others stay. An interrupted run continues where it stopped; code
that has changed since is run again. Methods without privacy are kept apart, and survive changes of the library.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from evidence.cache import ROOT
from evidence.population import REPORTING
from evidence.trust import page
from evidence.trust.parts import LARGEST, PARTS, Asked, names, seeds_of
from evidence.trust.store import Store, fill

_FOREVER = 1e9
_DOCS = ROOT / "docs" / "evidence"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line; run, judge and write part by part."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.first < REPORTING and options.out == _DOCS:
        parser.error(
            f"studies below {REPORTING:,} are for choosing and are never reported: name another folder by --out"
        )
    until = time.monotonic() + (60.0 * options.minutes if options.minutes is not None else _FOREVER)
    store, console = Store(), Console()
    for name in options.parts or names():
        part = PARTS[name]
        asked = Asked(studies=options.studies or part.studies, largest=options.largest, first=options.first)
        jobs = part.jobs(asked)
        fill(store, jobs, seconds=until - time.monotonic(), processes=options.processes)
        found = list(store.rows(jobs))
        if not found:
            console.print(f"{name}: nothing was measured (no time left, or no data); the page stays as it is.")
            continue
        section = part.section(found)
        head = page.provenance(_command(name, options), seeds_of(part, asked), len(found), len(jobs))
        written = page.text(part.title, head, section)
        path = page.write(options.out, [each.title for each in PARTS.values()], part.title, written)
        section.table.to_csv(path.with_name(f"trust-{name}.csv"), index=False, float_format="%.6g")
        for verdict in section.verdicts:
            console.print(f"{name}: {verdict.target}: {verdict.figure} ({verdict.limit}), {verdict.word.strip('*')}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evidence.trust", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=(*names(), []), help="all of them unless some are named")
    parser.add_argument("--studies", type=int, help="random studies, or replications of every cell")
    parser.add_argument("--largest", type=int, default=LARGEST, help="records of a study at most")
    parser.add_argument("--first", type=int, default=REPORTING, help="number of the first random study")
    parser.add_argument("--minutes", type=float, help="begin nothing new after this")
    parser.add_argument("--processes", type=int, default=2, help="one thread each (default 2)")
    parser.add_argument("--out", type=Path, default=_DOCS, help="folder of the page")
    return parser


def _command(name: str, options: argparse.Namespace) -> str:
    words = [f"python -m evidence.trust {name}"]
    if options.studies:
        words.append(f"--studies {options.studies}")
    if options.largest != LARGEST:
        words.append(f"--largest {options.largest}")
    if options.first != REPORTING:
        words.append(f"--first {options.first}")
    return " ".join(words)


if __name__ == "__main__":
    main()
