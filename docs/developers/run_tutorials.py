"""Run the tutorials, and write below each block what it printed: ``python docs/developers/run_tutorials.py [NAME]``.

A block of text that follows a block of Python is the block's output. The tests run the same blocks and compare.
``--notebooks FOLDER`` writes each page as a notebook instead, with its outputs; the build of the documentation does so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "tutorials"
# Python, and the text that follows it at once.
CELL = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def pages() -> list[Path]:
    """Tutorials that are programs."""
    return [page for page in sorted(FOLDER.glob("*.md")) if "```python" in page.read_text()]


def outputs(page: Path) -> list[str]:
    """What each block prints, one after the other, in a folder of its own that is the current one."""
    from discreet.testing import seeded_noise

    scope: dict[str, Any] = {"__name__": "tutorial"}
    printed = []
    with seeded_noise(0):
        for number, (source, _) in enumerate(cells(page.read_text())):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(source, f"{page.name}, block {number + 1}", "exec"), scope)
            printed.append("\n".join(line.rstrip() for line in out.getvalue().splitlines()))
    return printed


def cells(text: str) -> list[tuple[str, str]]:
    """Blocks of Python, and the output that the page shows for each."""
    return [(match[1], (match[2] or "").rstrip("\n")) for match in CELL.finditer(text)]


def with_outputs(text: str, printed: list[str]) -> str:
    """The page with these outputs in place of those that it has."""
    left = iter(printed)

    def cell(match: re.Match[str]) -> str:
        out = next(left)
        return f"```python\n{match[1]}```\n" + (f"\n```text\n{out}\n```\n" if out else "")

    return CELL.sub(cell, text)


def notebook(text: str) -> dict[str, Any]:
    """The page as a notebook."""
    made: list[dict[str, Any]] = []
    place = 0
    for match in CELL.finditer(text):
        made += [_words(part) for part in [text[place : match.start()].strip()] if part]
        shown = match[2]
        made.append(
            {
                "cell_type": "code", "metadata": {}, "execution_count": None, "source": match[1].rstrip("\n"),
                "outputs": [] if shown is None else [{"output_type": "stream", "name": "stdout", "text": shown}],
            }
        )  # fmt: skip
        place = match.end()
    made += [_words(part) for part in [text[place:].strip()] if part]
    for number, each in enumerate(made):
        each["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _words(text: str) -> dict[str, Any]:
    # Other pages are pages, and not notebooks.
    return {
        "cell_type": "markdown",
        "metadata": {},
        "source": re.sub(r"\]\((\.\./[\w/-]+|[\w-]+)\.md", r"](\1.html", text),
    }


def write_notebooks(folder: Path) -> None:
    """All tutorials as notebooks."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages():
        (folder / f"{page.stem}.ipynb").write_text(json.dumps(notebook(page.read_text()), indent=1) + "\n")


@contextlib.contextmanager
def elsewhere() -> Iterator[Path]:
    """A folder of its own as the current one."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def main() -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pages without .md; all of them by default")
    parser.add_argument("--notebooks", type=Path, help="write notebooks into this folder, and run nothing")
    wanted = parser.parse_args()
    if wanted.notebooks is not None:
        write_notebooks(wanted.notebooks)
        return
    for page in pages():
        if wanted.names and page.stem not in wanted.names:
            continue
        with elsewhere() as folder:
            printed = outputs(page)
            for picture in folder.glob("*.png"):
                shutil.copy(picture, FOLDER / picture.name)
        page.write_text(with_outputs(page.read_text(), printed))
        print(page.name)


if __name__ == "__main__":
    main()
