"""Cells of numbers of which nothing is known: public or released edges, and what each record's cell is.

The first grid is public: zero, one, and powers of ten of either sign from 1e-9 to 1e15. Later ones follow from released
counts. Every number has a cell, and so has a missing one: nothing is refused, and nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.data._arrays import Float, IntArray

SMALLEST, LARGEST = 1e-9, 1e15
# By their names in decimals, which are the nearest floats on every machine; powers computed need not be.
_POWERS = tuple(float(f"1e{k}") for k in range(-9, 16))
# The values that many columns have in common by themselves: each is a cell of its own.
ATOMS = (0.0, 1.0)


@dataclass(frozen=True)
class CellGrid:
    """Half-open cells between edges, one below the first, one from the last on, and one for what is missing.

    Parameters
    ----------
    edges
        Strictly increasing.
    whole
        Whether values are whole numbers, which lie in the middle of cells.

    Examples
    --------
    >>> import numpy as np
    >>> grid = CellGrid((0.0, 10.0))
    >>> grid.size, grid(np.array([-3.0, 0.0, 9.9, 10.0, np.inf, np.nan])).tolist()
    (4, [0, 1, 1, 2, 2, 3])
    """

    edges: tuple[float, ...]
    whole: bool = False

    @classmethod
    def of(cls, edges: Float, whole: bool = False) -> CellGrid:
        """Cells between these edges, in which the usual values of their own stand alone."""
        alone = [end for atom in ATOMS for end in (atom, float(np.nextafter(atom, np.inf)))]
        if whole:
            edges, alone = np.rint(np.clip(edges, -LARGEST, LARGEST)) - 0.5, [-0.5, 0.5]
        return cls(tuple(np.unique(np.concatenate([edges, alone])).tolist()), whole)

    @classmethod
    def public(cls) -> CellGrid:
        """The grid that nothing has to be known for."""
        powers = np.array(_POWERS)
        return cls.of(np.concatenate([-powers, powers]))

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.edges) + 2

    @cached_property
    def _edges(self) -> Float:
        return np.array(self.edges)

    def __call__(self, values: Float) -> IntArray:
        """The cell of each number."""
        cells: IntArray = np.searchsorted(self._edges, values, side="right").astype(np.int64)
        cells[np.isnan(values)] = self.size - 1
        return cells

    @cached_property
    def ends(self) -> tuple[Float, Float]:
        """Lower and upper end of every cell but the last, held inside the sizes that are told from another."""
        inside = np.clip(self._edges, -LARGEST, LARGEST)
        return np.concatenate([[-LARGEST], inside]), np.concatenate([inside, [LARGEST]])

    @property
    def atoms(self) -> tuple[int, ...]:
        """Cells that hold a single value."""
        alone = ATOMS[:1] if self.whole else ATOMS
        return tuple(int(np.searchsorted(self._edges, atom, side="right")) for atom in alone)

    @property
    def rest(self) -> IntArray:
        """All other cells, the missing one aside."""
        return np.setdiff1d(np.arange(self.size - 1), self.atoms)


@dataclass(frozen=True)
class HalvedCells:
    """Cells of a grid, each divided into whole numbers and others: twice the cells, and one to a record still."""

    grid: CellGrid

    @property
    def size(self) -> int:
        """Number of cells."""
        return 2 * self.grid.size

    def __call__(self, values: Float) -> IntArray:
        """The cell of each number."""
        cells: IntArray = self.grid(values) + self.grid.size * (np.rint(values) != values)
        return cells


def evenly(low: float, high: float, cells: int) -> Float:
    """Edges of cells of one width."""
    return np.linspace(low, high, cells + 1)


@dataclass(frozen=True)
class Frame:
    """Where a column's numbers are, roughly, from earlier releases."""

    centre: float
    scale: float

    def grid(self, whole: bool) -> CellGrid:
        """Even cells up to two scales on either side of the centre, then ever wider ones up to a thousand.

        Few and wide: noise is the same in each, and tails have to stand out of it.
        """
        distance = np.concatenate([np.arange(0.5, 2.0, 0.5), 2.0 * 1.6 ** np.arange(14)])
        return CellGrid.of(self.centre + self.scale * np.concatenate([-distance[::-1], [0.0], distance]), whole)
