"""Shells complete commands and options, and the page says how to switch that on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

INDEX = Path(__file__).parents[2] / "docs" / "index.md"


def completed(shell, words, number, folder):
    """What a shell is offered."""
    settings = os.environ | {"_DISCREET_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    # Fish asks for the words or whether there are any, by a further variable.
    settings |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    settings |= {"PYTHONPATH": str(Path(discreet.__file__).parents[1])}
    # As the installed command is called, which names the variable.
    script = "import sys; sys.argv[0] = 'discreet'; from discreet.cli import app; app(prog_name='discreet')"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=settings, capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_are_completed(shell, tmp_path):
    shown = completed(shell, "discreet at", 1, tmp_path)
    assert all(name in shown for name in ("ate", "att", "atc", "ato"))
    assert "survival" not in shown


def test_options_are_completed(tmp_path):
    shown = completed("bash", "discreet ate --eps", 2, tmp_path)
    assert shown.split() == ["--epsilon"]


def test_the_page_says_how_to_switch_it_on():
    assert "discreet --install-completion" in INDEX.read_text()
