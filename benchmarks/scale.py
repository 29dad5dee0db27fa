"""Large tables, beside engines without privacy and other private systems: ``python -m benchmarks.scale``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import scale_measure as measure
from benchmarks.scale_data import ROOT
from benchmarks.scale_page import write
from benchmarks.scale_targets import Found

FOLDER = ROOT / "docs" / "evidence"
_SERVER = ROOT / "tests" / "with-postgres.sh"


def run(plan: measure.Plan, console: Console, only: Sequence[str] = ()) -> Found:
    """All pieces, or those whose names are given; what is on disk is not measured again."""
    pieces = measure.Pieces(plan, lambda words: console.print(words, markup=False, highlight=False))
    found: dict[str, measure.Result] = {}
    middle = f"average-{plan.averages[1]}"
    wanted: dict[str, Callable[[measure.Plan, measure.Say], measure.Result]] = {
        "bits": measure.bits,
        "uplift": measure.uplift,
        **{f"average-{rows}": measure.average(rows) for rows in plan.averages},
        "floor": lambda plan, say: measure.floor(found[middle], plan, say),
        "workers": measure.workers,
        "cluster": measure.cluster,
        "growth": measure.growth,
    }
    unknown = set(only) - set(wanted)
    if unknown:
        raise SystemExit(f"There is no piece {', '.join(sorted(unknown))}: choose among {', '.join(wanted)}.")
    for name, how in wanted.items():
        found[name] = pieces.get(name, how, measured=not only or name in only)
    return {name: piece for name, piece in found.items() if piece}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Time and memory on large tables.")
    parser.add_argument("--quick", action="store_true", help="few records, printed and not kept")
    parser.add_argument("--only", nargs="+", default=(), metavar="PIECE", help="measure these pieces alone")
    options = parser.parse_args(arguments)
    if not {"DISCREET_TEST_POSTGRES", "DISCREET_NO_POSTGRES"} & set(os.environ):
        # Once more, with a PostgreSQL server of its own.
        os.execv(_SERVER, [str(_SERVER), sys.executable, "-m", "benchmarks.scale", *sys.argv[1:]])
    console = Console()
    if options.quick:
        found = run(measure.QUICK, console, options.only)
        with tempfile.TemporaryDirectory() as folder:
            write(found, measure.QUICK, Path(folder), stem="scale", command="python -m benchmarks.scale --quick")
            console.print((Path(folder) / "scale.md").read_text(), markup=False, soft_wrap=True)
        return
    found = run(measure.FULL, console, options.only)
    write(found, measure.FULL, FOLDER, stem="scale", command="python -m benchmarks.scale")
    console.print((FOLDER / "scale.md").read_text(), markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
