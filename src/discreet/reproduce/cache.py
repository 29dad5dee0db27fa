"""Raw results on disk, so that an interrupted run continues, and never under code that has changed since."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent
# What results look like to people does not change a number.
PRESENTATION = {"__main__", "cli", "demo", "planning", "plots", "report", "skeleton"}
# Libraries that numbers may depend on.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "opendp", "pyarrow", "narwhals")


def settings(files: Iterable[Path]) -> tuple[str, ...]:
    """Versions of Python and of libraries, and what the data files hold: results under others are not used."""
    versions = [f"{name} {version(name)}" for name in LIBRARIES]
    hashes = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    return (f"python {sys.version_info[0]}.{sys.version_info[1]}", *versions, *hashes)


def code(settings: object) -> str:
    """Fingerprint of everything in the package that a number may depend on; of this folder, the files of runs."""
    paths = [
        path
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0].removesuffix(".py") not in PRESENTATION
        and (path.parent.name != "reproduce" or path.name.endswith("_runs.py"))
    ]
    return fingerprint(settings, paths, SOURCE)


def fingerprint(settings: object, paths: Iterable[Path], root: Path) -> str:
    """Twelve hexadecimal digits that change with the settings and with code, but not with docstrings and comments."""
    digest = hashlib.sha256(repr(settings).encode())
    for path in sorted(paths):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(ast.dump(_without_docstrings(ast.parse(path.read_text()))).encode())
    return digest.hexdigest()[:12]


class Results:
    """One JSON object per line, keyed by its replication."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[int, dict[str, Any]] = {}
        text = path.read_text() if path.exists() else ""
        whole, _, half = text.rpartition("\n")
        for line in whole.splitlines():
            row = json.loads(line)
            self.rows[row["replication"]] = row
        if half:  # a run was killed while it wrote this; it is computed again
            path.write_text(whole + "\n" if whole else "")

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, on disk first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows[row["replication"]] = row


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree
