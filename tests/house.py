"""The figures that keep the source in order: `python -m tests.house` prints them, a test holds them to their limits."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
GLOSSARY = ROOT / "docs" / "developers" / "glossary.md"
# Whose attributes may be missing: objects of other libraries, and of users.
FOREIGN = ("X", "estimator", "os", "route", "self.frame.sparkSession", "table", "values")
# What the glossary's table of retired words comes to: parts of names, and whole names.
RETIRED_PARTS = {"room", "rooms", "look", "looks", "told", "spread", "focus", "strength", "doubt", "stake", "fear"}
RETIRED_PARTS |= {"lean", "likeness", "coincidence"}
RETIRED_NAMES = {"on_rows", "said", "described", "meant", "Words", "Block", "Blocks", "Halves"}
KEPT_NAMES = {"look_up"}
RETIRED_PHRASES = re.compile(
    r"\bfirst look|\bhang(?:s|ing)? on\b|\b(?:told|tells?|telling) \w*\s?apart\b|\bin vain\b", re.IGNORECASE
)
# Folders of pages that commands write.
OUTPUTS = {"evidence"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Figure(NamedTuple):
    """What was counted, the most that there may be, and where there is most of it."""

    name: str
    value: int
    limit: int
    where: str


def files(root: Path = SOURCE) -> list[Path]:
    """Python files of the library."""
    return sorted(root.rglob("*.py"))


def name_of(path: Path) -> str:
    """The place of a file below the library's folder."""
    return path.relative_to(SOURCE).as_posix()


def functions() -> Iterator[tuple[str, Function]]:
    """All functions of the library, and where they are."""
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                yield f"{name_of(path)}:{node.name}", node


def parameters(node: Function) -> int:
    """How many arguments a function names, itself aside."""
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len(named) - (bool(named) and named[0].arg in ("self", "cls"))


def root_entries() -> Figure:
    """Modules and packages directly below the library; what Python itself asks for does not count."""
    entries = [each for each in SOURCE.iterdir() if each.suffix == ".py" or (each / "__init__.py").exists()]
    return Figure("root entries", len([each for each in entries if not each.stem.startswith("__")]), 14, "discreet")


def modules_per_package() -> Figure:
    """Modules of the largest package; its __init__ does not count."""
    sizes = Counter(path.parent for path in files() if path.name != "__init__.py")
    package, count = sizes.most_common(1)[0]
    return Figure("modules of a package", count, 12, name_of(package))


def longest_module() -> Figure:
    """Lines of the longest file."""
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in files()}
    name = max(lengths, key=lambda each: lengths[each])
    return Figure("lines of a module", lengths[name], 400, name)


def longest_function() -> Figure:
    """Lines of the longest function."""
    lengths = {name: (node.end_lineno or node.lineno) - node.lineno + 1 for name, node in functions()}
    name = max(lengths, key=lambda each: lengths[each])
    return Figure("lines of a function", lengths[name], 60, name)


def most_parameters() -> Figure:
    """Arguments of the public function that has most; constructors and commands aside."""
    counts = {
        name: parameters(node)
        for name, node in functions()
        if not node.name.startswith("_") and not name.startswith("cli/")
    }
    name = max(counts, key=lambda each: counts[each])
    return Figure("parameters of a public function", counts[name], 8, name)


def imports(path: Path, known: set[str]) -> set[str]:
    """Modules of the library that a file imports, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known


def two_way_imports() -> Figure:
    """Pairs of modules that import each other."""
    named = {f"discreet.{name_of(path)[:-3].replace('/', '.')}".removesuffix(".__init__"): path for path in files()}
    edges = {name: imports(path, set(named)) for name, path in named.items()}
    pairs = [(one, other) for one in edges for other in edges[one] if one < other and one in edges[other]]
    return Figure("two-way imports", len(pairs), 0, ", ".join(f"{one} and {other}" for one, other in pairs))


def guessed_attributes() -> Figure:
    """Calls of getattr with a default on objects of the library itself."""
    calls = [
        (f"{name_of(path)}:{node.lineno}", node)
        for path in files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and len(node.args) == 3
    ]
    found = [place for place, node in calls if ast.unparse(node.args[0]) not in FOREIGN]
    return Figure("getattr with a default", len(found), 0, ", ".join(found))


def glossary_names() -> set[str]:
    """Names in the first column of the glossary's retired words."""
    return set(re.findall(r"^\| `(\w+)` \|", GLOSSARY.read_text().partition("## Retired words")[2], re.M))


def retired_names() -> Figure:
    """Names in the source that the glossary has retired: whole words of names, as in `first_look` and `FirstLook`."""
    found: Counter[str] = Counter()
    for path in files():
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type != tokenize.NAME or token.string in KEPT_NAMES:
                continue
            parts = re.findall(r"[a-z]+", re.sub(r"([A-Z])", r" \1", token.string).lower())
            if set(parts) & RETIRED_PARTS or token.string in RETIRED_NAMES:
                found[f"{token.string} in {name_of(path)}"] += 1
    return Figure("retired names", found.total(), 0, ", ".join(name for name, _ in found.most_common(12)))


def retired_phrases() -> Figure:
    """Phrases that people read in messages, docstrings and documentation; what commands wrote is left as it is."""
    places = [*files(), *SOURCE.rglob("*.html"), ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"]
    places += [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in OUTPUTS and path != GLOSSARY]
    places = [path for path in places if not {"evidence", "_build"} & set(path.relative_to(ROOT).parts)]
    found = Counter({str(path.relative_to(ROOT)): len(RETIRED_PHRASES.findall(path.read_text())) for path in places})
    found = +found
    return Figure("retired phrases", found.total(), 0, ", ".join(name for name, _ in found.most_common(12)))


FIGURES = (
    root_entries,
    modules_per_package,
    longest_module,
    longest_function,
    most_parameters,
    two_way_imports,
    guessed_attributes,
    retired_names,
    retired_phrases,
)


if __name__ == "__main__":
    for measure in FIGURES:
        figure = measure()
        print(f"{figure.name:<34}{figure.value:>6}  (at most {figure.limit})  {figure.where}")
