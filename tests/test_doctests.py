"""Every public name shows how it is used, and what it shows is what happens."""

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import discreet

ROOT = Path(__file__).parent.parent
PACKAGES = ["discreet", "discreet.papers", "discreet.datasets", "discreet.testing", "discreet.audit", "discreet.client"]
# Exceptions are compared by their names: sentences may be improved, and modules may move.
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


def modules() -> list[str]:
    """All modules of the package; those that start a program when they are imported apart."""
    found = (module.name for module in pkgutil.walk_packages(discreet.__path__, "discreet."))
    return ["discreet", *(name for name in found if not name.endswith("__main__"))]


def own_names(module: Any) -> list[str]:
    """What a module without ``__all__`` defines itself and does not hide."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and inspect.getmodule(value) is module
        and (inspect.isroutine(value) or inspect.isclass(value))
    ]


def named_by_packages() -> Iterator[Any]:
    """What the public packages offer."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", own_names(module)):
            yield getattr(module, name)


def named_by_the_reference() -> Iterator[Any]:
    """What the reference lists, module by module and class by class."""
    text, current = (ROOT / "docs" / "reference" / "api.md").read_text(), "discreet"
    for kind, name, options in re.findall(r"\.\. (current|auto)(\w+:: \S+)((?:\n +\S[^\n]*)*)", text):
        directive, _, target = name.partition(":: ")
        if directive == "module":
            current = target
            members = re.search(r":members:((?:.*\n?)*)", options)
            listed = re.findall(r"\w+", members[1]) if members else []
            module = importlib.import_module(target)
            if kind == "auto":
                yield from (getattr(module, each) for each in listed or own_names(module))
        else:
            yield pkgutil.resolve_name(target if target.startswith("discreet.") else f"{current}.{target}")


def public() -> dict[str, Any]:
    """Public classes and functions by where they are defined."""
    things = [*named_by_packages(), *named_by_the_reference()]
    return {
        f"{thing.__module__}.{thing.__qualname__}": thing
        for thing in things
        if inspect.isclass(thing) or inspect.isfunction(thing)
    }


PUBLIC = public()


def test_the_reference_is_read_to_its_end() -> None:
    names = {path.rpartition(".")[2] for path in PUBLIC}
    assert {"ATE", "Ledger", "DiscreetError", "load", "minimise", "frozen_noise", "tcga"} <= names
    assert len(PUBLIC) > 140


@pytest.mark.parametrize("path", sorted(PUBLIC))
def test_a_public_name_has_an_example(path: str) -> None:
    words = inspect.getdoc(PUBLIC[path]) or ""
    section = re.search(r"^Examples\n-{8}\n>>> ", words, re.MULTILINE)
    assert section, f"{path}: end its docstring with a section Examples that can be run."


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    told: list[str] = []
    for number, example in enumerate(doctest.DocTestFinder(exclude_empty=True).find(module, name)):
        # Files that an example writes are its own.
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        runner.run(example, out=told.append)
    assert runner.failures == 0, "".join(told)
