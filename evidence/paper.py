"""The paper's numbers: ``python -m evidence.paper`` writes them into paper/paper.md from the pages of evidence.

Nothing is measured here. A number that a page no longer has is an error, and not an old number.
"""

# ruff: noqa: E501 (the paragraph)

from __future__ import annotations

import re
from pathlib import Path

from evidence.cache import ROOT

PAPER = ROOT / "paper" / "paper.md"
EVIDENCE = ROOT / "docs" / "evidence"
PLACE = re.compile(r"(<!-- numbers: written by python -m evidence\.paper -->\n).*?(<!-- /numbers -->)", re.DOTALL)


def cells(page: str, first: str) -> list[str]:
    """The row of a table that begins with these words."""
    for line in (EVIDENCE / page).read_text().splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and row[0] == first:
            return row
    raise SystemExit(f"{page} has no row {first!r}: look what became of it, and change evidence/paper.py.")


def all_cells(page: str, first: str) -> list[list[str]]:
    """All rows of a page that begin with these words."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in (EVIDENCE / page).read_text().splitlines()
    ]
    found = [row for row in rows if row[0] == first and len(row) > 4]
    if not found:
        raise SystemExit(f"{page} has no row {first!r}: look what became of it, and change evidence/paper.py.")
    return found


def numbers() -> str:
    """The paragraph, from the pages."""
    held = cells("real-studies.md", "all draws together")
    reached = cells("real-studies.md", "study and budget with at least .95 of the draws")
    large = cells("scale.md", "Uplift, 14,000,000 rows, over DuckDB's own GROUP BY")
    hillstrom = all_cells("real-studies.md", "Hillstrom")[0]
    nhefs = all_cells("real-studies.md", "NHEFS")[1]
    return (
        f"On eight published studies at three budgets, {_plain(held[2])} of all draws of the noise have a 95 % interval that "
        f"holds the estimate without privacy, and {_plain(reached[2])} pairs of a study and a budget reach .95. Privacy is nearly "
        f"free with many records and dear with few: at ε = {hillstrom[3]} the interval of an e-mail trial of {hillstrom[1]} people is "
        f"{hillstrom[7]} times as wide as without privacy, and at ε = {nhefs[3]} that of an observational study of {nhefs[1]} people "
        f"{nhefs[7]} times. Effects by segment of 14 million rows take {_plain(large[2]).partition(' ')[0]} times the time of the "
        "engine's own sums.\n"
    )


def _plain(figure: str) -> str:
    return figure.partition(",")[0] if "**" in figure else figure


def written(text: str) -> str:
    """The paper with its numbers."""
    assert PLACE.search(text)
    return PLACE.sub(lambda match: f"{match[1]}{numbers()}{match[2]}", text)


def main(paper: Path = PAPER) -> None:
    """Write them."""
    paper.write_text(written(paper.read_text()))


if __name__ == "__main__":
    main()
