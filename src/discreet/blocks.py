"""A few numbers of one record, put into the block of its cell: what sums over cells, arms and clusters are made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.columns import Float, IntArray
from discreet.errors import InvalidInput
from discreet.guarantee import Neighbours
from discreet.lattice import SAFE, Grid, count_of, floats, freeze, size_of, whole

# A record may have this many numbers: times 2**40 steps, their absolute sum is exact in float64.
MOST_NUMBERS = 4_096


@dataclass(frozen=True, slots=True)
class Blocks:
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

    def grid(self, room: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**room."""
        edge = 2.0**room
        diameter = edge * (2 if neighbours == "replace-one" else 1)

        def add(values: Any) -> IntArray:
            rows = floats(values)
            cell = np.fmin(np.fmax(rows[:, 0], 0), self.cells - 1).astype(np.int64)
            steps = _into_octahedron(rows[:, 1:], self.radius, edge)
            # Integers below 2**53 in all: no order of addition can round them.
            sums = [np.bincount(cell, steps[:, j], self.cells) for j in range(self.width)]
            return whole(np.column_stack(sums).ravel().astype(np.float64))

        return Grid(
            l2=diameter,
            l1=diameter,
            units=self.radius / edge,
            numbers=self.dimension,
            full=self.dimension,
            add=add,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in: one row per cell."""
        return noisy.reshape(self.cells, self.width)


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
