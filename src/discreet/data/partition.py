"""Partitions of the covariates that a person declares: cuts, levels, groups of levels, and their crossings.

This is the one place that knows which cell a record is in. A cell number follows from the encoded covariates of that
record alone (`Chunk.x`), so that SUM and COUNT by cell can run wherever records are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.columns import finite
from discreet.exceptions import InvalidInput

# A noisy table of more cells says nothing about any of them.
MOST_CELLS = 65_536

By: TypeAlias = Mapping[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How one covariate is divided.

    Parameters
    ----------
    column
        Its place among the covariates.
    edges
        For a range: where cells meet, in the covariate's own unit; a cell holds its lower end.
    groups
        For levels: the group of each level, in the order of the levels.
    """

    column: int
    edges: tuple[float, ...] | None = None
    groups: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """Number of parts."""
        return len(self.edges) + 1 if self.edges is not None else max(self.groups or (0,)) + 1

    def parts(self, x: Float, spec: Range | Levels) -> IntArray:
        """The part of each encoded value."""
        if self.edges is not None:
            # Edges are encoded like values, so that a value on an edge is on it afterwards, too.
            edges = spec.encode(np.array(self.edges, dtype=np.float64)) if self.edges else np.empty(0)
            return np.searchsorted(edges, x, side="right")
        return np.array(self.groups, dtype=np.int64)[x.astype(np.int64)]

    def labels(self, name: str, spec: Range | Levels) -> list[str]:
        """What the parts are called."""
        if isinstance(spec, Range):
            ends = [spec.low, *(self.edges or ()), spec.high]
            last = len(ends) - 2
            return [f"{name} [{a:g}, {b:g}{']' if k == last else ')'}" for k, (a, b) in enumerate(pairwise(ends))]
        groups = self.groups or ()
        members = [
            [
                f"{level:g}" if isinstance(level, float) else str(level)
                for level, group in zip(spec.levels, groups, strict=True)
                if group == k
            ]
            for k in range(self.count)
        ]
        return [f"{name} {' or '.join(levels)}" for levels in members]


@dataclass(frozen=True, slots=True)
class Partition:
    """Cells by one or more covariates; several are crossed, the last one running fastest."""

    cuts: tuple[Cut, ...]
    bounds: Bounds

    @classmethod
    def of(cls, by: By, bounds: Bounds) -> Partition:
        """Check a declaration against the bounds.

        Parameters
        ----------
        by : mapping
            From a covariate (its name, or its position) to a number of equal cuts, a list of edges from the range's
            low to its high end, "levels", or a list of groups of levels.
        bounds : Bounds
            What is declared about the covariates.
        """
        if not isinstance(by, Mapping) or not by:
            raise InvalidInput("by must map covariates to cuts, for example by={'age': 20} or by={0: 20}: declare it.")
        columns = [_column(key, bounds) for key in by]
        if len(set(columns)) < len(columns):
            raise InvalidInput("by names a covariate twice, by name and by position: cut it once.")
        cuts = tuple(_cut(j, bounds, given) for j, given in zip(columns, by.values(), strict=True))
        if math.prod(cut.count for cut in cuts) > MOST_CELLS:
            raise InvalidInput(
                f"by makes more than {MOST_CELLS:,} cells: cut more coarsely, or cross fewer covariates."
            )
        return cls(cuts, bounds)

    @property
    def columns(self) -> tuple[int, ...]:
        """Covariates that are cut."""
        return tuple(cut.column for cut in self.cuts)

    @property
    def count(self) -> int:
        """Number of cells."""
        return math.prod(cut.count for cut in self.cuts)

    def cells(self, x: Float) -> IntArray:
        """The cell of each row of encoded covariates."""
        cell = np.zeros(len(x), dtype=np.int64)
        for cut in self.cuts:
            cell = cell * cut.count + cut.parts(x[:, cut.column], self.bounds.columns[cut.column])
        return cell

    def places(self, x: Float) -> list[Float]:
        """Where each row of encoded covariates stands along every cut: from 0 to 1 in a range, or its group."""
        return [
            (x[:, cut.column] + 1) / 2
            if cut.edges is not None
            else cut.parts(x[:, cut.column], self.bounds.columns[cut.column]).astype(np.float64)
            for cut in self.cuts
        ]

    def ends(self) -> list[Float | None]:
        """Where the parts of every cut begin and end, a range being from 0 to 1; None for groups of levels."""
        return [
            None
            if cut.edges is None
            else np.array([0.0, *_inner(cut.edges, self.bounds.columns[cut.column]), 1.0], dtype=np.float64)
            for cut in self.cuts
        ]

    def labels(self) -> list[str]:
        """What the cells are called, in order."""
        names, specs = self.bounds.names, self.bounds.columns
        parts = [cut.labels(names[cut.column], specs[cut.column]) for cut in self.cuts]
        return [", ".join(words) for words in product(*parts)]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = []
        for cut in self.cuts:
            how = {"edges": list(cut.edges)} if cut.edges is not None else {"groups": list(cut.groups or ())}
            plain.append({"column": cut.column} | how)
        return {"kind": "declared", "cuts": plain}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], bounds: Bounds) -> Partition:
        """Read back what ``to_dict`` wrote, as if it were declared again."""
        try:
            return cls.of(
                {cut["column"]: _declared(cut, bounds.columns[cut["column"]]) for cut in plain["cuts"]}, bounds
            )
        except (InvalidInput, IndexError, KeyError, TypeError, ValueError):
            raise InvalidInput("partition does not fit the bounds; check the file.") from None


def _declared(cut: Mapping[str, Any], spec: Range | Levels) -> list[Any]:
    if isinstance(spec, Range):
        return [spec.low, *cut["edges"], spec.high]
    members = list(zip(spec.levels, cut["groups"], strict=True))
    # No more groups than levels, whatever the file says.
    count = min(max(cut["groups"]) + 1, len(members))
    return [[level for level, group in members if group == k] for k in range(count)]


def _inner(edges: tuple[float, ...], spec: Range | Levels) -> Float:
    return (spec.encode(np.array(edges, dtype=np.float64)) + 1) / 2 if edges else np.empty(0)


def column_places(keys: Any, bounds: Bounds) -> tuple[int, ...]:
    """Places of covariates that are given by name or by position."""
    return tuple(_column(key, bounds) for key in keys)


def _column(key: object, bounds: Bounds) -> int:
    if isinstance(key, str) and key in bounds.names:
        return bounds.names.index(key)
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < bounds.p:
        return key
    known = ", ".join(bounds.names) or "none"
    raise InvalidInput(f"by names a covariate {key!r} that the bounds do not declare: choose from {known}.")


def _cut(column: int, bounds: Bounds, given: object) -> Cut:
    name, spec = bounds.names[column], bounds.columns[column]
    if isinstance(spec, Levels):
        return Cut(column=column, groups=_groups(name, spec, given))
    if isinstance(given, int) and not isinstance(given, bool):
        if not 1 <= given <= MOST_CELLS:
            raise InvalidInput(f"by cuts {name!r} into too many cells, or into none: choose from 1 to {MOST_CELLS:,}.")
        return Cut(column=column, edges=tuple(np.linspace(spec.low, spec.high, given + 1)[1:-1].tolist()))
    if not isinstance(given, list | tuple) or len(given) < 2:
        raise InvalidInput(
            f"by needs a number of cuts or a list of edges for {name!r}, which is a range: for example 20."
        )
    edges = [finite(edge, f"an edge of {name!r}") for edge in given]
    if any(low >= high for low, high in pairwise(edges)):
        raise InvalidInput(f"the edges of {name!r} must increase: sort them, and give each once.")
    if edges[0] > spec.low or edges[-1] < spec.high:
        raise InvalidInput(f"the edges of {name!r} do not cover its range: begin at its low and end at its high end.")
    return Cut(column=column, edges=tuple(edge for edge in edges if spec.low < edge < spec.high))


def _groups(name: str, spec: Levels, given: object) -> tuple[int, ...]:
    if given == "levels":
        return tuple(range(len(spec.levels)))
    if not isinstance(given, list | tuple) or not all(isinstance(group, list | tuple) and group for group in given):
        raise InvalidInput(f"by needs 'levels' or groups of levels for {name!r}, such as [['a', 'b'], ['c']].")
    place = {level: k for k, group in enumerate(given) for level in group}
    if len(place) < sum(len(group) for group in given):
        raise InvalidInput(f"the groups of {name!r} hold a level twice: put each in one group.")
    if set(place) != set(spec.levels):
        raise InvalidInput(f"the groups of {name!r} do not cover its declared levels: put each of them in a group.")
    return tuple(place[level] for level in spec.levels)
