"""What is written for language models, and what is made from the code, is true of this version."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import discreet
from discreet.cli import app
from discreet.estimators.registry import REGISTRY
from discreet.testing import seeded_noise

DOCS = Path(__file__).parent.parent / "docs"
AGAIN = "run python docs/developers/write_reference.py"


def script() -> ModuleType:
    """The script that writes the reference."""
    spec = importlib.util.spec_from_file_location("write_reference", DOCS / "developers" / "write_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outside_of_blocks(text: str) -> list[str]:
    """What stands between backticks in sentences and tables."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = "\n".join(re.findall(r"```python\n(.*?)```", discreet.guide(), re.DOTALL))
    with seeded_noise(0):
        exec(compile(source, "guide.md", "exec"), {"__name__": "guide"})
    assert capsys.readouterr().out.strip()


def test_names_in_the_guide_exist():
    words = outside_of_blocks(discreet.guide())
    dotted = {found for word in words for found in re.findall(r"\b(?:dc|discreet)((?:\.\w+)+)", word)}
    assert len(dotted) > 40
    for path in dotted:
        thing: object = discreet
        for name in path.split(".")[1:]:
            thing = getattr(thing, name)
    named = {word for word in words if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", word)}
    assert named <= set(discreet.__all__)


def test_the_guide_is_short_and_names_every_estimator():
    text = discreet.guide()
    assert len(text) < 12_000
    for entry in REGISTRY.values():
        assert f".{entry.path.rpartition(':')[2]}`" in text
    assert "<!--" not in text


def test_commands_in_the_guide_exist():
    root: Any = typer.main.get_command(app)
    known = set(root.commands)
    words = [word.split() for word in outside_of_blocks(discreet.guide()) if word.startswith("discreet ")]
    assert {word[1] for word in words} - {"--help"} <= known


@pytest.mark.parametrize(
    ("name", "made"),
    [("reference/cli.md", "commands"), ("reference/service-options.md", "service_options"), ("llms.txt", "for_models")],
)
def test_what_is_made_from_the_code_is_up_to_date(name, made):
    assert (DOCS / name).read_text() == getattr(script(), made)(), AGAIN


def test_the_reference_has_every_command_and_every_option():
    parts = re.split(r"^## ", script().commands(), flags=re.MULTILINE)
    sections = {part.partition("\n")[0]: part for part in parts}

    def check(group, path):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                check(command, f"{path} {name}")
                continue
            for option in command.params:
                assert option.name.upper() in sections[f"{path} {name}"] or option.opts[0] in sections[f"{path} {name}"]
                # A reader needs a sentence for each.
                assert (option.help or "").strip(), (name, option.name)

    check(typer.main.get_command(app), "discreet")


def test_links_for_models_lead_somewhere():
    targets = re.findall(r"\]\(([^)]+)\)", (DOCS / "llms.txt").read_text())
    assert len(targets) > 20
    assert [target for target in targets if not (DOCS / target).exists()] == []
