"""The reference lists what the public packages export, and the public packages export what the reference lists."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

REFERENCE = (Path(__file__).parent.parent / "docs" / "reference" / "api.md").read_text()
PACKAGES = {
    name: importlib.import_module(name)
    for name in (
        "discreet",
        "discreet.audit",
        "discreet.client",
        "discreet.datasets",
        "discreet.ledger",
        "discreet.papers",
        "discreet.testing",
    )
}
# Modules that are listed as a whole, and whose names are exported one by one.
EXPORTED_BY_NAME = {"discreet.exceptions": "discreet"}


def directives() -> Iterator[tuple[str, str]]:
    """What the reference documents: kind of directive and full name."""
    current = "discreet"
    for kind, target in re.findall(r"^\.\. (currentmodule|auto\w+|py:data):: (\S+)", REFERENCE, re.MULTILINE):
        if kind in ("currentmodule", "automodule"):
            current = target
        if kind != "currentmodule":
            yield kind, target if target.startswith("discreet.") else f"{current}.{target}"


def exported(package: str) -> dict[str, object]:
    """Names of a public package, other than public packages themselves (`discreet.audit` can be called)."""
    module = PACKAGES[package]
    names = [name for name in module.__all__ if name != "__version__" and f"{package}.{name}" not in PACKAGES]
    return {f"{package}.{name}": getattr(module, name) for name in names}


EXPORTED = {path: value for package in PACKAGES for path, value in exported(package).items()}
# Modules by the names under which they are exported.
MODULES = {path: value for path, value in EXPORTED.items() if isinstance(value, ModuleType)}
LISTED = list(directives())


def own_names(module: ModuleType) -> list[object]:
    """Public classes and functions that a module defines."""
    return [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]


@pytest.mark.parametrize(("kind", "path"), LISTED)
def test_what_the_reference_lists_is_exported_by_a_public_package(kind: str, path: str) -> None:
    if kind != "automodule":
        home, _, name = path.rpartition(".")
        # Listed under its public name, or as a part of a module that is public itself.
        assert path in EXPORTED or hasattr(MODULES.get(home), name)
        return
    module = importlib.import_module(path)
    if path in EXPORTED_BY_NAME:
        assert all(value in exported(EXPORTED_BY_NAME[path]).values() for value in own_names(module))
    else:
        assert module in MODULES.values()


@pytest.mark.parametrize("path", EXPORTED)
def test_what_a_public_package_exports_is_in_the_reference(path: str) -> None:
    documented = []
    for kind, target in LISTED:
        if kind == "automodule":
            module = importlib.import_module(target)
            documented += [module, *own_names(module)]
        else:
            home, _, name = target.rpartition(".")
            parent = PACKAGES.get(home) or MODULES.get(home)
            documented.append(getattr(parent, name))
    assert any(value is EXPORTED[path] for value in documented)
