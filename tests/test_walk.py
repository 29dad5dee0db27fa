"""A row's walk from a CSV file to a release is short, and the page about it is right."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from discreet.privacy.noise import drawing_is_seeded

ROOT = Path(__file__).parent.parent
HOME = ROOT / "docs" / "developers"
# Modules that one record passes. Lower it whenever modules are merged. Codes in memory, compiled loops, the arms'
# means, balance and overlap each took some, as the modules that they would have fitted into were full; and so did rules
# by which fields of text become values, of which a longer module knew only some, what bounds say of missing covariates,
# and the round that moves an effect.
LIMIT = 58


def script(name: str) -> ModuleType:
    """A script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(f"developers_{name}", HOME / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def seen():
    """One walk, with real noise. Whatever watches the tests goes on watching afterwards."""
    assert not drawing_is_seeded()
    watcher = sys.getprofile()
    try:
        return script("walk").walk()
    finally:
        sys.setprofile(watcher)


def test_a_row_passes_no_more_modules_than_it_used_to(seen):
    assert len(seen.modules) <= LIMIT, f"{len(seen.modules)} modules: {', '.join(seen.modules)}"


def test_the_walk_draws_its_noise_where_all_noise_is_drawn_and_not_for_tests(seen):
    assert {"discreet.privacy.gate", "discreet.privacy.noise", "discreet.releases.io"} <= seen.modules.keys()
    assert "discreet.testing" not in seen.modules


def test_the_page_about_the_walk_names_exactly_the_modules_on_it(seen):
    text = (HOME / "architecture.md").read_text().partition("## The walk of one record")[2]
    named = re.findall(r"^\| `([\w/]+)\.py` \|", text, re.MULTILINE)
    assert len(named) == len(set(named))
    dotted = {"discreet." + name.replace("/", ".").removesuffix(".__init__") for name in named}
    assert dotted == seen.modules.keys(), "bring the table in docs/developers/architecture.md up to date"


def test_the_script_prints_modules_and_calls():
    done = subprocess.run(
        [sys.executable, HOME / "walk.py", "--modules"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "", "OMP_NUM_THREADS": "1"},
    )
    first, *names = done.stdout.splitlines()
    found = re.fullmatch(r"(\d+) modules, (\d+) calls from one module into another", first)
    assert found
    assert int(found[1]) == len(names) <= LIMIT
    assert int(found[2]) > len(names)
