"""Numbers that estimation rests on: ``python -m evidence.constants`` counts them by module.

A *tuned constant* is a choice that changes statistics and that no theorem, unit or limit of a machine settles. Counted
are numbers that modules of `discreet.estimators` and `discreet.postprocessing` (and releases of segments) name at their
top or in a class, tables and rules included, and those written inside functions. Not counted:

* 0, 1, 2 and one half, of either sign, inside functions, and as operands of arithmetic at the top of a module;
* whole numbers inside functions that are not operands of arithmetic or of a comparison: places, shapes, steps;
* the level ``alpha`` of an interval, which a reader chooses;
* subscripts.

What a number is, the comment right above it says by its first word: above its own line where it is one of several in a
table, or else above its statement (or above the first of several lines that follow one another). A number whose comment
says nothing of the kind counts as a choice.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src" / "discreet"
PACKAGES = ("estimators", "postprocessing")
# What widens intervals of segments stands where they are made. Other releases have no numbers but those of pictures.
RELEASES = ("releases/segments.py",)
AIM = 40
CHOICE = "Choice"
KINDS = {
    CHOICE: "changes statistics, and only a comparison or a hand settles it",
    "Theory": "follows from a theorem, a definition or an optimum that the comment names",
    "Unit": "is part of a unit, of a definition of what is reported, or of the format of files",
    "Numerical": "keeps arithmetic safe, or a search or an integral exact enough that more of it changes nothing",
    "Memory": "bounds memory or time, or refuses what is larger than any real request",
    "Registry": "is public and no part of an estimate: what an audit asks for by default",
}
_LABEL = re.compile(rf"#\s*({'|'.join(KINDS)}):")
_PLAIN = (0.0, 0.5, 1.0, 2.0)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Arithmetic = ast.BinOp | ast.Compare | ast.AugAssign


class Number(NamedTuple):
    """One number of the source: where it is, what it is and what is written above it."""

    module: str
    line: int
    value: float
    kind: str
    comment: str
    inside: bool
    """whether it is written inside a function"""

    @property
    def labelled(self) -> bool:
        """Whether the comment says what kind it is."""
        return _LABEL.match(self.comment) is not None


def modules() -> list[Path]:
    """The files that are counted."""
    of_packages = [module for package in PACKAGES for module in sorted((SOURCE / package).rglob("*.py"))]
    return [*of_packages, *(SOURCE / module for module in RELEASES)]


def numbers(module: Path) -> list[Number]:
    """All numbers of a module that count."""
    text = module.read_text()
    name = module.relative_to(SOURCE).as_posix() if module.is_relative_to(SOURCE) else module.name
    lines, found = text.splitlines(), []
    for node, statement, inside in _constants(ast.parse(text)):
        comment = _comment(lines, statement, node.lineno)
        label = _LABEL.match(comment)
        kind = label[1] if label else CHOICE
        found.append(Number(name, node.lineno, float(node.value), kind, comment, inside))  # type: ignore[arg-type]
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[ast.Constant, ast.stmt, bool]]:
    """Numbers, the statements that they are in, and whether these are inside functions."""
    pending: list[tuple[ast.AST, ast.AST | None, ast.stmt | None, bool]] = [(tree, None, None, False)]
    while pending:
        node, parent, statement, inside = pending.pop()
        if isinstance(node, ast.Subscript):
            pending.append((node.value, node, statement, inside))
            continue
        if isinstance(node, ast.arguments):
            pending += [(each, node, statement, True) for each in _defaults(node)]
            continue
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            # A sign belongs to its number.
            node = node.operand
        if isinstance(node, ast.Constant):
            if statement is not None and _counts(node, parent, statement, inside):
                yield node, statement, inside
            continue
        if isinstance(node, ast.stmt):
            statement = node
        inside = inside or isinstance(node, _Function)
        pending += [(child, node, statement, inside) for child in reversed(list(ast.iter_child_nodes(node)))]


def _defaults(arguments: ast.arguments) -> Iterator[ast.expr]:
    """Values of arguments that are left out, but for the level of an interval."""
    some = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(some[len(some) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    yield from (value for name, value in pairs if name.arg != "alpha")


def _counts(node: ast.Constant, parent: ast.AST | None, statement: ast.stmt, inside: bool) -> bool:
    """Whether a constant is a number that is neither plain nor a place."""
    if type(node.value) not in (int, float):
        return False
    plain = float(node.value) in _PLAIN  # type: ignore[arg-type]
    calculated = isinstance(parent, _Arithmetic)
    if inside:
        return not plain and (type(node.value) is float or calculated)
    return isinstance(statement, ast.Assign | ast.AnnAssign) and not (plain and calculated)


def _comment(lines: list[str], statement: ast.stmt, line: int) -> str:
    """What is written right above a number's line inside its statement, or else above its statement."""
    own = _above(lines, line) if line > statement.lineno else ""
    if _LABEL.match(own):
        return own
    first = statement.lineno
    while first > 1 and lines[first - 2].strip() and not lines[first - 2].strip().startswith("#"):
        # Lines of one paragraph at the top of a module have one comment.
        if lines[statement.lineno - 1][:1].isspace():
            break
        first -= 1
    return _above(lines, first)


def _above(lines: list[str], line: int) -> str:
    """The comment right above a line, from the last of its lines on that says a kind."""
    above: list[str] = []
    while line >= 2 and lines[line - 2].strip().startswith("#") and not (above and _LABEL.match(above[-1])):
        line -= 1
        above.append(lines[line - 1].strip())
    return " ".join(reversed(above))


def table() -> list[tuple[str, Counter[str]]]:
    """How many numbers of each kind every module has that has any."""
    rows = [(module.relative_to(SOURCE).as_posix(), numbers(module)) for module in modules()]
    return [(name, Counter(each.kind for each in found)) for name, found in rows if found]


def main() -> None:
    """Print the table."""
    rows = table()
    rows.append(("all", sum((counts for _, counts in rows), Counter())))
    print(f"{'':<45}{''.join(f'{kind:>11}' for kind in KINDS)}")
    for name, counts in rows:
        print(f"{name:<45}{''.join(f'{counts[kind] or str():>11}' for kind in KINDS)}")
    print(f"{'wanted at most':<45}{AIM:>11}\n")
    print("\n".join(f"{kind + ':':<11}{words}" for kind, words in KINDS.items()))


if __name__ == "__main__":
    main()
