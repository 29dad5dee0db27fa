"""From the landing page to a first release: ``python -m evidence.first_release`` writes docs/evidence/first-release.md.

For each of the three doors a copy of the sources is put into an empty folder, and what docs/index.md shows is done to
the letter: the commands of *Install*, then the door's own blocks in their order. A line of a shell is one command, and a
block of Python one cell. Nothing is left out and nothing is added.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import NamedTuple

import discreet
from evidence.average.report import grid
from evidence.cache import ROOT

DOORS = ("I hold records", "I ask questions", "I do research")
MOST_SECONDS, MOST_COMMANDS = 300, 10
PAGE = ROOT / "docs" / "index.md"


class Step(NamedTuple):
    """A command or a cell, and whether it is Python."""

    text: str
    python: bool


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def steps(text: str) -> list[Step]:
    """Commands and cells in their order."""
    out = []
    for kind, block in re.findall(r"^```(sh|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if kind == "python":
            out.append(Step(block, True))
        else:
            out += [Step(line, False) for line in block.replace("\\\n", " ").splitlines() if line.strip()]
    return out


def way(door: str, text: str) -> list[Step]:
    """All steps through a door."""
    return [*steps(section(text, "Install")), *steps(section(text, door))]


def walk(door: str, folder: Path) -> tuple[list[tuple[Step, float]], list[str]]:
    """Do it; seconds of each step, and the releases that are there afterwards."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    before = {path.name for path in folder.glob("*.json")}
    settings = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    }
    settings |= {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_QUIET": "1"}
    # A first command of the page may be another name for this interpreter.
    settings["PATH"] = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{settings['PATH']}"
    timed = []
    for step in way(door, PAGE.read_text()):
        command = ["python", "-c", step.text] if step.python else ["sh", "-c", step.text]
        start = time.monotonic()
        subprocess.run(command, cwd=folder, env=settings, check=True, stdout=subprocess.DEVNULL, timeout=1_200)
        timed.append((step, time.monotonic() - start))
        if "activate" in step.text:
            # What activation does to a shell, for the steps that follow.
            settings["PATH"] = f"{next(folder.glob('*/bin/activate')).parent}{os.pathsep}{settings['PATH']}"
    return timed, sorted({path.name for path in folder.glob("*.json")} - before)


def page(walked: dict[str, tuple[list[tuple[Step, float]], list[str]]]) -> str:
    """The page, in Markdown."""
    rows, details = [], []
    for door, (timed, releases) in walked.items():
        seconds = sum(each for _, each in timed)
        reached = seconds <= MOST_SECONDS and len(timed) <= MOST_COMMANDS
        rows.append(
            [
                door,
                f"{seconds:.0f}",
                str(len(timed)),
                ", ".join(f"`{name}`" for name in releases),
                "reached" if reached else "**missed**",
            ]
        )
        lines = [[f"`{_shown(step)}`", f"{each:.1f}"] for step, each in timed]
        details += [f"## {door}", grid(["command or cell", "seconds"], lines)]
    parts = [
        "# From the landing page to a first release",
        f"Written by `python -m evidence.first_release` on {date.today().isoformat()}; do not edit. discreet {discreet.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end: other work shared them. "
        "Each door begins with an empty folder and no environment; packages come from the index or from pip's cache.",
        f"Wanted: at most {MOST_SECONDS} seconds and {MOST_COMMANDS} commands or cells, from the first command of *Install* to a release on disk.",
        grid(["door", "seconds", "commands and cells", "releases", ""], rows),
        *details,
    ]
    return "\n\n".join(parts) + "\n"


def _shown(step: Step) -> str:
    text = " ".join(step.text.split()).replace("`", "").replace("|", "/")
    return (text[:77] + "...") if len(text) > 80 else text


def main() -> None:
    """Walk through the doors, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/evidence/first-release.md"))
    wanted = parser.parse_args()
    walked = {}
    for door in DOORS:
        with tempfile.TemporaryDirectory() as folder:
            walked[door] = walk(door, Path(folder))
        print(f"{door}: {sum(each for _, each in walked[door][0]):.0f} s, {len(walked[door][0])} commands", flush=True)
    wanted.out.write_text(page(walked))


if __name__ == "__main__":
    main()
