"""The rules that the source as a whole keeps."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"

# A module imports only from modules above it.
ORDER = [
    "exceptions",
    "data",
    "privacy",
    "postprocessing",
    "skeleton",
    "testing",
    "files",
    "ledger",
    "estimators",
    "releases",
    "comparisons",
    "datasets",
    "papers",
    "demo_effects",
    "audit",
    "demo",
    "serve",
    "console",
    "cli_sources",
    "cli_audit",
    "cli_effects",
    "cli_ledger",
    "cli_uplift",
    "cli_serve",
    "cli",
]
# The front door imports everything, lazily.
DOORS = {"__init__", "__main__"}
# Files and packages that may draw at random.
RANDOM = ("privacy/noise.py", "testing.py", "datasets/")


def modules():
    """Files by the module or package of ORDER that they belong to."""
    return [(path.relative_to(SOURCE).parts[0].removesuffix(".py"), path) for path in sorted(SOURCE.rglob("*.py"))]


def imported(path):
    """Modules of discreet that a file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports in full"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "discreet" and len(parts) > 1 and parts[1] in ORDER:
                yield parts[1]


def test_every_module_has_its_place_in_the_order():
    assert {name for name, _ in modules()} - DOORS <= set(ORDER)


@pytest.mark.parametrize(("name", "path"), [case for case in modules() if case[0] not in DOORS])
def test_modules_import_only_from_those_above_them(name, path):
    above = ORDER[: ORDER.index(name) + 1]
    assert set(imported(path)) <= set(above), f"{path.name} imports from below"


def test_every_proof_that_the_source_names_exists():
    text = "\n".join(path.read_text() for _, path in modules())
    named = set(re.findall(r"docs/proofs/([\w-]+\.md)", text)) | set(re.findall(r"proof=\"([\w-]+\.md)\"", text))
    assert "gate.md" in named
    assert [name for name in sorted(named) if not (ROOT / "docs" / "proofs" / name).is_file()] == []


def test_only_papers_release_what_is_no_sum():
    users = {path for name, path in modules() if name != "papers" and "Statistic" in re.findall(r"\w+", code(path))}
    assert users == {SOURCE / "privacy" / "sensitivity" / "sets.py"}


def draws(path):
    """Whether a file may draw at random."""
    return path.relative_to(SOURCE).as_posix().startswith(RANDOM)


def code(path):
    """The code of a file without its comments and docstrings."""
    return re.sub(r'"""[^"]*"""', "", ast.unparse(ast.parse(path.read_text())))


def test_every_lemma_that_the_source_names_exists():
    text = "\n".join(path.read_text() for _, path in modules())
    for file, number in re.findall(r"docs/proofs/([\w-]+\.md), lemma (\d+)", text):
        assert f"**Lemma {number} " in (ROOT / "docs" / "proofs" / file).read_text()


@pytest.mark.parametrize(("name", "path"), [case for case in modules() if not draws(case[1])])
def test_only_noise_draws_at_random(name, path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"random", "default_rng", "rvs"}, f"{path.name}:{node.lineno} draws by itself"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            assert not {"random", "secrets", "numpy.random", "default_rng", "opendp"} & set(names), (
                f"{path.name}:{node.lineno} draws by itself"
            )
