"""Raw results on disk, so that an interrupted run continues, and never under code that has changed since."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# How results are presented does not change a number.
PRESENTATION: tuple[str, ...] = (
    "discreet.__main__",
    "discreet.cli",
    "discreet.estimators.planning",
    "discreet.estimators.planning.expected",
    "discreet.estimators.planning.plan",
    "discreet.releases.function_plots",
    "discreet.releases.plots",
    "discreet.releases.page",
    "discreet.releases.report",
    "evidence.reproduce.pages",
)
# Estimators of this project's own, which pages show beside what was published.
FLAGSHIP = tuple(f"discreet.estimators.{name}" for name in ("ate", "cate", "difference_in_means", "uplift"))
# Libraries that numbers may depend on; interpret is an extra.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "opendp", "pyarrow", "narwhals", "interpret-core")


def settings(files: Iterable[Path]) -> tuple[str, ...]:
    """Versions of Python and of libraries, and what the data files hold: results under others are not used."""
    versions = [f"{name} {_version(name)}" for name in LIBRARIES]
    hashes = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    return (f"python {sys.version_info[0]}.{sys.version_info[1]}", *versions, *hashes)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def code(settings: object, module: str, *, flagship: bool) -> str:
    """Fingerprint of a module of runs and of all that it imports, directly or not.

    The project's own estimators, and what only they need, count for their own cells only (``flagship``): published
    systems do not depend on them. An import through a package that opens its names lazily leads nowhere: modules of
    runs name the module itself.
    """
    left_out = PRESENTATION if flagship else PRESENTATION + FLAGSHIP
    return fingerprint(settings, _imported(module, left_out), ROOT)


def file_of(module: str) -> Path | None:
    """The file of a module of this project; None for those of others."""
    parts = module.split(".")
    home = {"discreet": ROOT / "src", "evidence": ROOT}.get(parts[0])
    if home is None:
        return None
    path = home.joinpath(*parts)
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path if path.is_file() else None


def within(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of these, or inside one of them."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def package_files(left_out: tuple[str, ...]) -> list[Path]:
    """Files of the package, without these modules and packages."""
    source = ROOT / "src"
    named = {path: ".".join(path.relative_to(source).with_suffix("").parts) for path in source.rglob("*.py")}
    return [path for path, name in named.items() if not within(name.removesuffix(".__init__"), left_out)]


def _imported(module: str, left_out: tuple[str, ...]) -> set[Path]:
    """Files of the project that a module needs, itself included."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if path is None or path in found or within(name, left_out):
            continue
        found.add(path)
        waiting += _names(ast.parse(path.read_text()))
    return found


def _names(tree: ast.Module) -> list[str]:
    """Modules that a module may import; what only a type checker reads is left out."""
    names: list[str] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        waiting += ast.iter_child_nodes(node)
    return names


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
    """A module without its docstrings, and without what its warnings quote: that was measured by such runs."""
    tree.body = [node for node in tree.body if not _quotes(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _quotes(node: ast.stmt) -> bool:
    names = (
        [target.id for target in node.targets if isinstance(target, ast.Name)] if isinstance(node, ast.Assign) else []
    )
    return bool({"MEASURED", "_MEASURED"} & set(names))
