"""Tutorials are programs: they run from top to bottom, and print what the pages show."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "tutorials"
NAMES = ["auditing", "curators-house", "e-mails", "first-release", "for-whom", "hospital", "rare-events"]
NAMES += ["several-hospitals"]
AGAIN = "run python docs/developers/run_tutorials.py"


def script() -> ModuleType:
    """The script that runs the tutorials."""
    spec = importlib.util.spec_from_file_location("run_tutorials", FOLDER.parent / "developers" / "run_tutorials.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(text: str) -> list[str]:
    """What is left of an output that numbers, and the advice that follows from them, may not change."""
    lines = [re.sub(r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?", "#", line) for line in text.splitlines()]
    return [re.sub(r"\s+", " ", line).strip() for line in lines]


def test_all_tutorials_are_programs_and_on_the_list() -> None:
    assert [page.stem for page in script().pages()] == sorted(NAMES)
    listed = (FOLDER / "index.md").read_text()
    assert all(f"]({name}.md)" in listed for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_runs_and_prints_what_its_page_shows(name, tmp_path, monkeypatch):
    run = script()
    if name == "curators-house":
        pytest.importorskip("fastapi")
    monkeypatch.chdir(tmp_path)
    page = FOLDER / f"{name}.md"
    printed = run.outputs(page)
    shown = [out for _, out in run.cells(page.read_text())]
    assert len(printed) == len(shown) > 3
    for number, (new, old) in enumerate(zip(printed, shown, strict=True), start=1):
        # Numbers may differ in their last digits between machines, and with them what a summary advises.
        assert words(new)[:1] == words(old)[:1], f"block {number}: {AGAIN} {name}"
        assert bool(new) == bool(old), f"block {number}: {AGAIN} {name}"
    assert any(shown)


def test_a_page_becomes_a_notebook_with_its_outputs(tmp_path):
    run = script()
    run.write_notebooks(tmp_path)
    assert sorted(path.stem for path in tmp_path.glob("*.ipynb")) == sorted(NAMES)
    for path in tmp_path.glob("*.ipynb"):
        made = json.loads(path.read_text())
        code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
        assert made["nbformat"] == 4
        assert [cell["source"] for cell in code] == [source.rstrip("\n") for source, _ in run.cells(page_of(path))]
        assert any(cell["outputs"] for cell in code)
        assert not re.search(r"\]\([\w./-]+\.md", json.dumps(made))


def page_of(notebook: Path) -> str:
    """The text of the page that a notebook was made of."""
    return (FOLDER / f"{notebook.stem}.md").read_text()


def test_outputs_replace_those_that_a_page_had_and_leave_everything_else():
    run = script()
    text = "# Page\n\n```python\nprint(1)\n```\n\n```text\nold\n```\n\nWords.\n\n"
    text += "```python\nx = 2\n```\n\n```text\ngone\n```\n"
    new = run.with_outputs(text, ["1", ""])
    assert new == "# Page\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nWords.\n\n```python\nx = 2\n```\n"
    assert run.with_outputs(new, ["1", ""]) == new
