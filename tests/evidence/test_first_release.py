"""The ways from the landing page: few steps, and read off the page to the letter."""

import subprocess
import sys
from pathlib import Path

import pytest

from evidence.first_release import DOORS, MOST_COMMANDS, PAGE, Step, page, section, steps, way
from evidence.installation import page as installation_page

TEXT = PAGE.read_text()


@pytest.mark.parametrize("door", DOORS)
def test_a_door_is_few_commands_from_an_empty_folder_to_a_release(door):
    found = way(door, TEXT)
    assert 3 <= len(found) <= MOST_COMMANDS
    assert "activate" in found[0].text
    assert found[1].text == "pip install ."
    assert any(".json" in step.text for step in found[2:])


@pytest.mark.parametrize("door", DOORS)
def test_what_stands_behind_a_door_runs_and_leaves_a_release(door, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    (tmp_path / "bin").mkdir()
    for name, words in (("discreet", "-m discreet "), ("python", "")):
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for step in steps(section(TEXT, door)):
        command = ["python", "-c", step.text] if step.python else ["sh", "-c", step.text]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (step.text, done.stderr[-500:])
    assert list(tmp_path.glob("*.json"))


def test_lines_are_commands_and_blocks_are_cells():
    text = "# A\n\n```sh\none \\\n  two\nthree\n```\n\n```python\nx = 1\ny = 2\n```\n\n"
    text += "```text\nno\n```\n\n# B\n\n```sh\nfour\n```\n"
    found = steps(section(text, "A"))
    assert found == [Step("one    two", False), Step("three", False), Step("x = 1\ny = 2\n", True)]


def test_a_way_that_takes_too_long_is_said_to():
    timed = [(Step("pip install .", False), 301.0)]
    text = page({"I hold records": (timed, ["effect.json"])})
    assert "**missed**" in text
    assert "**missed**" not in page({"I hold records": ([(timed[0][0], 20.0)], ["effect.json"])})


def test_an_installation_that_is_too_large_is_said_to_be():
    first = {"loaded": ["opendp", "numpy"]}
    bare = {"opendp": 275.0, "numpy": 75.0, "pip": 17.0, "sqlalchemy": 300.0}
    text = installation_page(bare, {"plots": {"matplotlib": 40.0}}, first, [2.0, 1.0, 9.0])
    assert "667 MB, **missed**" in text
    assert "| ≤ 3 s | 2.0 s |" in text
    assert "matplotlib 40" in text
