"""What a suggestion of bounds asks the gate: one cell per record and column, in rounds that zoom in.

Diameters: docs/proofs/bounds.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from discreet.data._arrays import IntArray
from discreet.data.bounds import Levels
from discreet.data.records import Chunk
from discreet.estimators._allocation import SUGGESTION
from discreet.postprocessing.ranges.grids import CellGrid, Frame, HalvedCells
from discreet.postprocessing.ranges.histogram import ALARM, Histogram, alarm_level
from discreet.postprocessing.ranges.stages import Closest, FoundRange, closer, found_range, frame, inside
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query, Released
from discreet.privacy.sensitivity.sets import Cells
from discreet.releases.suggested.columns import SuggestedLevels

FIRST, CLOSER, INSIDE, AROUND = SUGGESTION


@dataclass(frozen=True, slots=True)
class CellsOf:
    """The map of a column: one cell for each record. It can be pickled, and sees no other record."""

    place: int
    grid: CellGrid | HalvedCells

    def __call__(self, chunk: Chunk) -> IntArray:
        """The cell of each record."""
        return self.grid(chunk.x[:, self.place])


@dataclass(frozen=True, slots=True)
class PlaceOf:
    """The map of a column of categories, which come as places of their candidates."""

    place: int

    def __call__(self, chunk: Chunk) -> IntArray:
        """The place of each record's level."""
        return chunk.x[:, self.place].astype(int)


@dataclass(slots=True)
class _Column:
    """A column of numbers on its way through the rounds; it holds released numbers only."""

    name: str
    place: int
    first: Histogram | None = None
    whole: bool = False
    grid: CellGrid | None = None
    """what is asked next"""
    seen: Histogram | None = None
    spent: list[str] = field(default_factory=list)

    def query(self, question: str, share: float, grid: CellGrid | HalvedCells) -> Query:
        self.spent.append(question)
        return Query(f"{question}: {self.name}", share, Cells((grid.size,)), CellsOf(self.place, grid))


class Rounds:
    """The rounds of a suggestion, each of which is one pass over the records for all columns together.

    Parameters
    ----------
    gate
        Where they are asked; the number of records has been released if it is private.
    names
        All columns, in the order of the records' covariates.
    categories
        Those that have candidates for their levels.
    share
        Of the budget, for each column.
    """

    def __init__(self, gate: Gate, names: tuple[str, ...], categories: Mapping[str, Levels], share: float) -> None:
        self._gate, self._share, self._categories = gate, share, categories
        self._places = {name: place for place, name in enumerate(names)}
        self._columns = [_Column(name, place) for name, place in self._places.items() if name not in categories]

    def ranges_and_levels(self) -> tuple[dict[str, FoundRange], dict[str, SuggestedLevels]]:
        """What all columns hold, by name."""
        levels = self._first()
        self._zoom(CLOSER)
        for column in self._columns:
            column.grid = inside(column.seen) if column.seen is not None else None
        self._zoom(INSIDE)
        return self._last(), levels

    def _first(self) -> dict[str, SuggestedLevels]:
        """Powers of ten, and whether numbers are whole; the levels of categories with all of their share."""
        public = CellGrid.public()
        queries = [each.query(FIRST, self._share * SUGGESTION[FIRST], HalvedCells(public)) for each in self._columns]
        queries += [
            Query(f"levels: {name}", self._share, Cells((len(spec.levels) + 2,)), PlaceOf(self._places[name]))
            for name, spec in self._categories.items()
        ]
        released = iter(self._gate.ask(*queries))
        for column in self._columns:
            answer = next(released)
            n = self._gate.n
            column.first, column.whole = Histogram.joined(
                public, answer.value / n, float(answer.sd) / n, n, self._gate.pure
            )
            column.grid = closer(column.first, column.whole)
        return {name: self._levels(name, next(released)) for name in self._categories}

    def _levels(self, name: str, answer: Released) -> SuggestedLevels:
        n = self._gate.n
        clear = alarm_level(float(answer.sd) / n, self._gate.pure, ALARM)
        return SuggestedLevels.of(name, self._categories[name], answer.value / n, clear)

    def _zoom(self, question: str) -> None:
        """One more histogram of those columns that have cells to look into."""
        asking = [column for column in self._columns if column.grid is not None]
        grids = [column.grid for column in asking if column.grid is not None]
        if not asking:
            return
        share = self._share * SUGGESTION[question]
        queries = [column.query(question, share, grid) for column, grid in zip(asking, grids, strict=True)]
        for column, grid, answer in zip(asking, grids, self._gate.ask(*queries), strict=True):
            column.seen, column.grid = self._histogram(grid, answer), None

    def _last(self) -> dict[str, FoundRange]:
        """Cells around the middle, with all that is left of each column's share."""
        frames: dict[str, Frame] = {each.name: frame(each.seen) for each in self._columns if each.seen is not None}
        asking = [column for column in self._columns if column.name in frames]
        grids = [frames[column.name].grid(column.whole) for column in asking]
        queries = []
        for column, grid in zip(asking, grids, strict=True):
            left = 1.0 - sum(SUGGESTION[question] for question in column.spent)
            queries.append(column.query(AROUND, self._share * left, grid))
        last: dict[str, Closest] = {}
        if queries:
            for column, grid, answer in zip(asking, grids, self._gate.ask(*queries), strict=True):
                last[column.name] = Closest(frames[column.name], self._histogram(grid, answer))
        return {
            column.name: found_range(column.first, last.get(column.name))
            for column in self._columns
            if column.first is not None
        }

    def _histogram(self, grid: CellGrid, answer: Released) -> Histogram:
        n = self._gate.n
        return Histogram(grid, answer.value / n, float(answer.sd) / n, n, self._gate.pure)
