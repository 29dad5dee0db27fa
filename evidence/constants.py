"""Numbers that estimation rests on: ``python -m evidence.constants`` counts them by module.

Counted are numbers that modules of `discreet.estimators` and `discreet.postprocessing` name at their top, tables and
rules included; those with a comment or a ``provenance`` that names the studies of evidence/population which chose them
are counted apart. Numbers inside functions are not counted.
"""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "discreet"
AIM = 40
_CHOSEN = ("evidence/population", "evidence.population")


def numbers(module: Path) -> tuple[int, int]:
    """How many numbers a module names at its top, and how many of these say which studies chose them."""
    text = module.read_text()
    lines, tree = text.splitlines(), ast.parse(text)
    provenance = {
        each.targets[0].id: any(word in ast.unparse(each.value) for word in _CHOSEN)
        for each in tree.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    }
    found = chosen = 0
    for each in tree.body:
        if not isinstance(each, ast.Assign | ast.AnnAssign) or each.value is None:
            continue
        count = sum(
            isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in ast.walk(each.value)
        )
        named = any(provenance.get(part.id, False) for part in ast.walk(each.value) if isinstance(part, ast.Name))
        found += count
        chosen += count if named or any(word in _comment(lines, each.lineno) for word in _CHOSEN) else 0
    return found, chosen


def _comment(lines: list[str], line: int) -> str:
    """The comment right above a line."""
    above = []
    while line >= 2 and lines[line - 2].startswith("#"):
        line -= 1
        above.append(lines[line - 1])
    return " ".join(reversed(above))


def main() -> None:
    """Print the table."""
    rows = []
    for package in ("estimators", "postprocessing"):
        for module in sorted((SOURCE / package).rglob("*.py")):
            found, chosen = numbers(module)
            if found:
                rows.append((str(module.relative_to(SOURCE)), found, chosen))
    for name, found, chosen in rows:
        print(f"{name:<45}{found:>5}{chosen:>5}")
    print(f"{'all, and by studies of the population':<45}{sum(r[1] for r in rows):>5}{sum(r[2] for r in rows):>5}")
    print(f"{'wanted at most':<45}{AIM:>5}")


if __name__ == "__main__":
    main()
