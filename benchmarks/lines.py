"""Lines of the page on time and memory: a figure, what was wanted of it, and what it was measured with."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

COLUMNS = ("part", "measured", "what", "figure", "unit", "most", "least", "terms")


class Line(NamedTuple):
    """One figure."""

    what: str
    figure: float
    unit: str = ""
    most: float | None = None
    """the largest that was wanted"""
    least: float | None = None
    """the smallest"""
    terms: str = ""
    """terms of the basis, or whatever else the figure goes with"""

    @property
    def wanted(self) -> str:
        """What was wanted, in words."""
        signs = (("≤", self.most), ("≥", self.least))
        return "".join(f"{sign} {limit:g}{self._unit}" for sign, limit in signs if limit is not None)

    @property
    def word(self) -> str:
        """Whether that was reached; nothing where nothing was wanted."""
        if self.most is None and self.least is None:
            return ""
        low = self.least is None or self.figure >= self.least
        return "reached" if low and (self.most is None or self.figure <= self.most) else "**not reached**"

    @property
    def shown(self) -> str:
        """The figure in words."""
        return f"{self.figure:,.{2 if abs(self.figure) < 10 else 1 if abs(self.figure) < 100 else 0}f}{self._unit}"

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""

    def row(self) -> list[str]:
        """Cells of its row on the page."""
        return [self.what, self.terms, self.wanted, self.shown, self.word]


class Measured(NamedTuple):
    """The lines of a part, and the day on which they were measured."""

    day: str
    lines: tuple[Line, ...]


def load(path: Path) -> dict[str, Measured]:
    """What was measured before."""
    if not path.exists():
        return {}
    found: dict[str, Measured] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            most, least = (float(row[name]) if row[name] else None for name in ("most", "least"))
            line = Line(row["what"], float(row["figure"]), row["unit"], most, least, row["terms"])
            known = found.get(row["part"], Measured(row["measured"], ()))
            found[row["part"]] = known._replace(lines=(*known.lines, line))
    return found


def save(path: Path, found: dict[str, Measured], order: Iterable[str]) -> None:
    """Everything that was measured, part by part."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for part in order:
            for line in found[part].lines if part in found else ():
                ends = ("" if end is None else f"{end:g}" for end in (line.most, line.least))
                writer.writerow([part, found[part].day, line.what, f"{line.figure:.6g}", line.unit, *ends, line.terms])
