"""A few numbers of one record, put into the block of its cell: what sums over cells, arms and clusters are made of."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.expressions import Formula, number
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.fixed_point import (
    SAFE,
    ByCellSums,
    Grid,
    count_of,
    floats,
    freeze,
    size_of,
    up,
    whole,
)

# A record may have this many numbers: times 2**40 steps, their absolute sum is exact in float64.
MOST_NUMBERS = 4_096


@dataclass(frozen=True, slots=True)
class CellSums:
    """A cell number and ``width`` numbers per record, whose absolute values add up to at most the radius.

    The map's first column is the cell number, clipped into range; NaN counts as 0 everywhere. Numbers that are too
    large together are scaled down together. Released: the sums of every cell, one cell after the other.
    """

    radius: float
    cells: int
    width: int = 1

    def __post_init__(self) -> None:
        freeze(self, radius=size_of("radius", self.radius), cells=count_of("cells", self.cells))
        freeze(self, width=count_of("width", self.width))
        if self.width > MOST_NUMBERS:
            raise InvalidInput(f"width may be at most {MOST_NUMBERS}; release fewer numbers per record.")

    @property
    def columns(self) -> int:
        """How many columns the map returns."""
        return 1 + self.width

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return self.cells * self.width

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of neighbours. Proof: docs/proofs/adum.md, lemma 1."""
        return self.radius * (2 if neighbours == "replace-one" else 1)

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the sums of neighbours: attained inside one block, as the L2 distance is."""
        return self.l2(neighbours)

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        edge = 2.0**grid_bits
        diameter = edge * (2 if neighbours == "replace-one" else 1)

        def add(values: Any) -> IntArray:
            rows = floats(values)
            cell = np.fmin(np.fmax(rows[:, 0], 0), self.cells - 1).astype(np.int64)
            steps = _into_octahedron(rows[:, 1:], self.radius, edge)
            # Integers below 2**53 in all: no order of addition can round them.
            sums = [np.bincount(cell, steps[:, j], self.cells) for j in range(self.width)]
            return whole(np.column_stack(sums).ravel().astype(np.float64))

        def steps(numbers: tuple[Formula, ...]) -> tuple[Formula, ...]:
            inside = numbers[0].clip(-self.radius, self.radius)
            return ((inside * number(edge / self.radius)).rint().clip(-edge, edge),)

        return Grid(
            grid_bits=grid_bits,
            l2=diameter,
            l1=diameter,
            units=self.radius / edge,
            numbers=self.dimension,
            full=self.dimension,
            add=add,
            # One number of a record cannot be too large together with others.
            by_cell=ByCellSums(steps, lambda _, sums: sums[0]) if self.width == 1 else None,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in: one row per cell."""
        return noisy.reshape(self.cells, self.width)


@dataclass(frozen=True, slots=True)
class Pairs:
    """A cell number, a number y in [-1, 1] and a weight w in [0, 1] per record, all clipped; NaN counts as 0.

    The record adds w (1 + y) / 2 and w (1 - y) / 2 to the pair of its cell. Released: all pairs, one row per cell. The
    sum of a pair is the weight of its cell, and the difference the weighted sum of y; both have the same noise.
    """

    cells: int

    def __post_init__(self) -> None:
        freeze(self, cells=count_of("cells", self.cells))

    @property
    def columns(self) -> int:
        """How many columns the map returns."""
        return 3

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return 2 * self.cells

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of neighbours. Proof: docs/proofs/uplift.md, lemma 1."""
        return math.sqrt(self.l1(neighbours))

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the sums of neighbours."""
        return 2.0 if neighbours == "replace-one" else 1.0

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        edge = 2.0**grid_bits

        def add(values: Any) -> IntArray:
            cell, y, weight = np.where(np.isnan(rows := floats(values)), 0.0, rows).T
            cell = np.clip(cell, 0, self.cells - 1).astype(np.int64)
            whole_weight = np.rint(np.clip(weight, 0.0, 1.0) * edge)
            # The other half is what is left, so that a pair adds up to the weight exactly.
            plus = np.rint(whole_weight * ((1.0 + np.clip(y, -1.0, 1.0)) / 2))
            halves = [np.bincount(cell, part, self.cells) for part in (plus, whole_weight - plus)]
            return whole(np.column_stack(halves).ravel().astype(np.float64))

        def steps(numbers: tuple[Formula, ...]) -> tuple[Formula, ...]:
            y, weight = numbers
            whole_weight = (weight.clip(0.0, 1.0) * number(edge)).rint()
            plus = (whole_weight * ((number(1.0) + y.clip(-1.0, 1.0)) / number(2.0))).rint()
            return plus, whole_weight

        def arrange(_: IntArray, sums: list[IntArray]) -> IntArray:
            plus, weight = sums
            return np.column_stack([plus, weight - plus]).ravel()

        return Grid(
            grid_bits=grid_bits,
            l2=up(edge * self.l2(neighbours)),
            l1=edge * self.l1(neighbours),
            units=1 / edge,
            numbers=self.dimension,
            full=self.dimension,
            add=add,
            by_cell=ByCellSums(steps, arrange),
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in: one row per cell."""
        return noisy.reshape(self.cells, 2)


def _into_octahedron(values: Float, radius: float, edge: float) -> Float:
    """Integers whose absolute values add up to at most ``edge`` in every row. Proof: docs/proofs/adum.md, lemma 1."""
    inside = np.clip(np.where(np.isnan(values), 0.0, values), -radius, radius)
    steps: Float = np.rint(inside * (edge / radius))
    np.clip(steps, -edge, edge, out=steps)
    sizes = np.abs(steps).sum(axis=1)
    if sizes.max() > edge:
        shrink = edge * SAFE / np.maximum(sizes, edge)
        steps *= np.where(sizes > edge, shrink, 1.0)[:, None]
        np.trunc(steps, out=steps)
    return steps
