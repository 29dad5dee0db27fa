"""What tests of commands share."""

import os
import re
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.data.bounds import Bounds

BOUNDS = Bounds(outcome=(0, 10), covariates={"age": (0, 1), "sex": ["f", "m"]}, propensity=(0.1, 0.9))
ESTIMATE = ["--outcome", "days", "--treatment", "drug", "--bounds", "bounds.toml", "--epsilon", "5", "--delta", "1e-6"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def python(*arguments):
    """A fresh interpreter, wherever the test has gone to."""
    source = Path(discreet.__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env)


def plain(text):
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", text).split())


def refused(result, sentence):
    """One sentence on standard error, nothing on standard output, exit code 2."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr
    assert result.stderr.startswith("discreet: ")
    assert result.stderr.count("\n") == 1
