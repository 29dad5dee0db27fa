"""Large tables, beside engines without privacy and other private systems: ``python -m benchmarks.scale``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.scale import measure
from benchmarks.scale.data import ROOT
from benchmarks.scale.page import write
from benchmarks.scale.targets import Found

FOLDER = ROOT / "docs" / "evidence"
_SERVER = ROOT / "tests" / "with-postgres.sh"


def run(plan: measure.Plan, patience: measure.Patience, console: Console, only: Sequence[str] = ()) -> Found:
    """All pieces, or those whose names begin so; what is on disk is not measured again."""
    pieces = measure.Pieces(plan, patience, lambda words: console.print(words, markup=False, highlight=False))
    wanted = measure.pieces(plan)
    known = [*wanted, "floor"]
    for word in only:
        if not any(name.startswith(word) for name in known):
            raise SystemExit(f"There is no piece {word!r}: choose among {', '.join(known)}.")
    found: dict[str, measure.Result] = {}
    for name, how in wanted.items():
        piece = pieces.get(name, how, measured=not only or name.startswith(tuple(only)))
        if piece:
            whole = found.setdefault(name.partition(":")[0], {"jobs": {}})
            whole |= piece | {"jobs": whole["jobs"] | piece["jobs"]}
    middle = found.get(f"average-{plan.averages[1]}", {})
    if "ate, all rows, few terms" in middle.get("jobs", {}):
        found["floor"] = pieces.get("floor", lambda *how: measure.floor(middle, *how))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Time and memory on large tables.")
    parser.add_argument("--quick", action="store_true", help="few records, printed and not kept")
    parser.add_argument("--only", nargs="+", default=(), metavar="PIECE", help="measure pieces whose names begin so")
    parser.add_argument("--limit", type=float, help="seconds after which a job is given up")
    parser.add_argument("--enough", type=float, help="seconds after which a job is not repeated again")
    options = parser.parse_args(arguments)
    if not {"DISCREET_TEST_POSTGRES", "DISCREET_NO_POSTGRES"} & set(os.environ):
        # Once more, with a PostgreSQL server of its own.
        os.execv(_SERVER, [str(_SERVER), sys.executable, "-m", "benchmarks.scale", *sys.argv[1:]])
    console = Console()
    usual = (120.0, 60.0) if options.quick else (5_400.0, 900.0)
    patience = measure.Patience(limit=options.limit or usual[0], enough=options.enough or usual[1])
    if options.quick:
        found = run(measure.QUICK, patience, console, options.only)
        with tempfile.TemporaryDirectory() as folder:
            write(found, measure.QUICK, Path(folder), stem="scale", command="python -m benchmarks.scale --quick")
            console.print((Path(folder) / "scale.md").read_text(), markup=False, soft_wrap=True)
        return
    found = run(measure.FULL, patience, console, options.only)
    write(found, measure.FULL, FOLDER, stem="scale", command="python -m benchmarks.scale")
    console.print((FOLDER / "scale.md").read_text(), markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
