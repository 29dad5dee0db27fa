"""Other systems for private sums, each in a virtual environment of its own, which is made here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.scale.data import CACHE
from benchmarks.scale.worker import Failed


class Rival(NamedTuple):
    """What to install, and the module that runs there."""

    title: str
    package: str
    module: str
    needs_java: bool


RIVALS = {
    "opendp": Rival("OpenDP, polars interface", "opendp[polars]==0.16.0", "benchmarks.scale.rivals.opendp", False),
    "tumult": Rival("Tumult Analytics", "tmlt.analytics==0.21.0", "benchmarks.scale.rivals.tumult", True),
}


def interpreter(name: str, limit: float = 900.0) -> Path:
    """The Python of a rival's environment; made first where there is none."""
    rival, home = RIVALS[name], CACHE / "envs" / name
    python, stamp = home / "bin" / "python", home / ".installed"
    if rival.needs_java and shutil.which("java") is None:
        raise Failed("needs Java, which is not installed")
    if not (stamp.exists() and stamp.read_text() == rival.package):
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", rival.package]
        for command in ([sys.executable, "-m", "venv", "--clear", str(home)], install):
            _run(command, limit)
        stamp.write_text(rival.package)
    return python


def versions(name: str) -> str:
    """The rival's own version and that of the engine below it."""
    code = (
        "from importlib.metadata import distributions as d\n"
        "names = ('opendp', 'polars', 'tmlt.analytics', 'pyspark')\n"
        "print(', '.join(sorted(f'{x.name} {x.version}' for x in d() if x.name in names)))"
    )
    done = subprocess.run([str(interpreter(name)), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _run(command: list[str], limit: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failed(f"could not be installed within {limit:.0f} seconds") from None
    if done.returncode:
        words = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Failed(f"could not be installed: {words[-1].removeprefix('ERROR: ') if words else 'pip failed'}"[:200])
