"""Time and memory, beside peers that are not private: ``python -m benchmarks.run``, or a part of it with ``--only``."""

# ruff: noqa: E501 (the page's sentences)

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

import discreet
from benchmarks.lines import Line, Measured, load, save
from benchmarks.parts import PARTS
from evidence.reproduce.pages import grid

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "evidence"
HEADER = ["what", "with", "wanted", "figure", ""]


def page(found: Mapping[str, Measured]) -> str:
    """All parts in Markdown; those that were not measured say so."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "opendp", "duckdb", "econml") if find_spec(name)
    )
    lines = [
        "# Time and memory",
        "Written by `python -m benchmarks.run`; do not edit. A part alone is measured again by `python -m benchmarks.run --only` and its name, and the others stay as they were: each has its day. "
        f"Seconds depend on the machine: trust the ratios. discreet {discreet.__version__}, Python {platform.python_version()}, {packages}; one of {os.cpu_count()} cores, one thread. All figures are in [bench.csv](bench.csv).",
    ]
    for name, part in PARTS.items():
        lines += [f"## {part.title}"]
        if name not in found:
            lines += [f"`{name}`: not measured yet; about {part.about}."]
            continue
        lines += [f"`{name}`, measured on {found[name].day}. {part.words}", table(found[name].lines)]
    return "\n\n".join(lines) + "\n"


def table(lines: Sequence[Line]) -> str:
    """Figures, what was wanted of them, and whether that was reached."""
    return grid(HEADER, [line.row() for line in lines])


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Time and memory.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few records, printed and not written")
    parser.add_argument("--list", action="store_true", help="what parts there are, and how long they take")
    options = parser.parse_args(arguments)
    console = Console()
    if options.list:
        for name, part in PARTS.items():
            console.print(f"{name}: {part.title}; about {part.about}", markup=False, highlight=False)
        return
    path = FOLDER / "bench.csv"
    for name in options.only:
        with console.status(PARTS[name].title):
            lines = tuple(PARTS[name].measure(options.quick))
        # What other runs have measured since is read again.
        found = {} if options.quick else load(path)
        found[name] = Measured(date.today().isoformat(), lines)
        console.print(f"{name}\n{table(lines)}\n", markup=False, soft_wrap=True, highlight=False)
        if not options.quick:
            # Kept after each part, so that a run can be interrupted.
            save(path, found, PARTS)
            (FOLDER / "bench.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
