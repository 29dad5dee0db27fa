"""The page for users of R runs in R."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "use-from-r.md"
SOURCE = Path(__file__).parent.parent / "src"


def has_reticulate() -> bool:
    """Whether R is here with its bridge to Python: Debian's r-base-core and r-cran-reticulate."""
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", "quit(status = !all(c('reticulate', 'jsonlite') %in% rownames(installed.packages())))"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def parts() -> list[str]:
    """R on the page: what goes through reticulate, and what through files; each is a program."""
    halves = PAGE.read_text().split("## Through files")
    return ["\n".join(re.findall(r"```r\n(.*?)```", half, re.DOTALL)) for half in halves]


def test_the_page_has_both_ways():
    bridge, files = parts()
    assert "fit_table(r_to_py(patients)" in bridge
    assert "system2(command" in files
    assert "reticulate" not in files


def run(source, folder, **more):
    """What a program of R prints."""
    (folder / "page.R").write_text(source)
    settings = os.environ | {"PYTHONPATH": str(SOURCE)} | more
    done = subprocess.run(
        ["Rscript", "page.R"], cwd=folder, env=settings, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


needs_r = pytest.mark.skipif(
    not has_reticulate(), reason="needs R with reticulate: apt-get install r-base-core r-cran-reticulate"
)


@needs_r
def test_the_page_runs_in_r_by_reticulate(tmp_path):
    printed = run(parts()[0], tmp_path, RETICULATE_PYTHON=sys.executable)
    assert "Average treatment effect" in printed
    assert "ATE needs bounds=Bounds" in printed
    assert discreet.load(tmp_path / "effect.json").guarantee.status == "proved"


@needs_r
def test_the_page_runs_in_r_by_files(tmp_path):
    command = tmp_path / "discreet"
    # R names its own libraries to all that it starts, and an interpreter that is one would be taken for another.
    command.write_text(f'#!/bin/sh\nunset LD_LIBRARY_PATH\nexec "{sys.executable}" -m discreet "$@"\n')
    command.chmod(0o755)
    printed = run(parts()[1], tmp_path, DISCREET=str(command))
    release = discreet.load(tmp_path / "from-shell.json")
    assert float(printed.split()[-1]) == pytest.approx(release.estimate, rel=1e-5)
