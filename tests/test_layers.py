"""The rules that the source as a whole keeps."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"

# A package imports from those before it, and from itself; `discreet` alone opens lazily what it exports.
ORDER = (
    "exceptions",
    "data",
    "data.backends",
    "privacy",
    "postprocessing",
    "releases",
    "ledger",
    "estimators",
    "papers",
    "datasets",
    "testing",
    "audit",
    "client",
    "serve",
    "cli",
)
# What post-processing may know: names of arrays and declared facts. Neither records nor the gate.
PUBLIC_FACTS = {"exceptions", "data._arrays", "data.bounds", "data.columns", "data.expressions"}
DOORS = {"", "__main__"}
# Files and packages that may draw at random.
RANDOM = ("privacy/noise.py", "privacy/public_draws.py", "testing/", "datasets/")


def module_of(path):
    """The dotted name of a file, without the name of the library."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def modules():
    """All files by their dotted names."""
    return list(MODULES.items())


def layer(module):
    """The package of ORDER that a module belongs to: the longest name that fits."""
    return max((name for name in ("", *ORDER) if f"{module}.".startswith(f"{name}.")), key=len, default="")


def imported(path):
    """Modules of discreet that a file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports in full"
            home = node.module or ""
            names = [f"{home}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("discreet.") in MODULES else home for name in names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            head, _, rest = name.partition(".")
            if head == "discreet" and rest:
                assert rest in MODULES, f"{path.name}: {name} is not a module"
                yield rest


INSIDE = [(name, path) for name, path in modules() if name not in DOORS]


def test_every_module_has_its_place_in_the_order():
    assert [name for name, _ in INSIDE if not layer(name)] == []


@pytest.mark.parametrize(("name", "path"), INSIDE)
def test_packages_import_only_from_those_before_them(name, path):
    before = ORDER[: ORDER.index(layer(name)) + 1]
    assert {other for other in imported(path) if layer(other) not in before} == set()


@pytest.mark.parametrize(("name", "path"), [case for case in INSIDE if layer(case[0]) == "postprocessing"])
def test_post_processing_sees_neither_records_nor_the_gate(name, path):
    others = {other for other in imported(path) if layer(other) != "postprocessing"}
    assert others <= PUBLIC_FACTS


def test_no_two_modules_import_each_other():
    edges = {name: set(imported(path)) for name, path in modules()}
    assert [(name, other) for name in edges for other in edges[name] if name < other and name in edges[other]] == []


def test_every_proof_that_the_source_names_exists():
    text = "\n".join(path.read_text() for _, path in modules())
    named = set(re.findall(r"docs/proofs/([\w-]+\.md)", text)) | set(re.findall(r"proof=\"([\w-]+\.md)\"", text))
    assert "gate.md" in named
    assert [name for name in sorted(named) if not (ROOT / "docs" / "proofs" / name).is_file()] == []


def test_only_papers_release_what_is_no_sum():
    users = {
        path for name, path in modules() if layer(name) != "papers" and "Statistic" in re.findall(r"\w+", code(path))
    }
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
