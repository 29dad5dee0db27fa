"""Tables and figures of the papers live in a package of their own: a checkout finds it, an installation says where."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent


def reproduce(folder, packages, *arguments):
    """Run the command in a directory, with discreet imported from another."""
    return subprocess.run(
        [sys.executable, "-m", "discreet", "reproduce", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_checkout_lists_what_can_be_reproduced_from_any_directory(tmp_path):
    # A package of the same name in the working directory is somebody else's.
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "__init__.py").touch()
    done = reproduce(tmp_path, SOURCE.parent, "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert {line.split()[0] for line in done.stdout.splitlines()} == {
        "adum",
        "dp-cate",
        "meta-learners",
        "private-ci",
        "propensity",
    }


@pytest.mark.parametrize("arguments", [["list"], ["private-ci", "fig6"]], ids=" ".join)
def test_an_installation_says_in_one_sentence_where_the_tables_and_figures_are(arguments, tmp_path):
    packages = tmp_path / "packages"
    shutil.copytree(SOURCE, packages / "discreet", ignore=shutil.ignore_patterns("__pycache__"))
    done = reproduce(tmp_path, packages, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "discreet: reproduce needs the package discreet-evidence, which is in the folder evidence of discreet's "
        "repository: clone the repository and install it with pip install ./evidence.\n"
    )
