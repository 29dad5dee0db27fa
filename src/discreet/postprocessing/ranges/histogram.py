"""A released histogram of one column, and what stands out of its noise.

Post-processing: everything here is computed from released counts and public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import log_ndtr, ndtri

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.ranges.grids import ATOMS, CellGrid

# Choice: the chance of a false alarm in a cell, where records are looked for, and where one would move an end of the
# range. By hand: a hundred cells are looked at.
ALARM, ALARM_TAIL, _NEARLY = 1e-3, 1e-4, 5e-3
# Choice: values are whole numbers where a smaller part than this of what is seen is not.
_WHOLE = 0.1


def alarm_level(sd: float, pure: bool, alarm: float) -> float:
    """What noise of this standard deviation exceeds with probability ``alarm``: Laplace noise if pure."""
    return sd * (-log(2.0 * alarm) / 2.0**0.5 if pure else -float(ndtri(alarm)))


@dataclass(frozen=True, eq=False)
class Histogram:
    """Released shares of the records in the cells of a grid, and the noise of each."""

    grid: CellGrid
    fractions: Float
    sd: float
    n: float
    pure: bool

    @classmethod
    def joined(cls, grid: CellGrid, fractions: Float, sd: float, n: float, pure: bool) -> tuple[Histogram, bool]:
        """From the shares of `HalvedCells`: those of the grid, and whether values are whole numbers."""
        whole, others = np.split(fractions, 2)
        # What is missing equals nothing, itself included.
        seen = cls(grid, whole + others, 2.0**0.5 * sd, n, pure)
        clear = seen.clear
        return seen, bool(clear.size and others[clear].sum() < _WHOLE * (whole + others)[clear].sum())

    def level(self, alarm: float) -> float:
        """The share that noise alone exceeds with this probability."""
        return alarm_level(self.sd, self.pure, alarm)

    @property
    def missing(self) -> float:
        """Share of missing values, where it stands out."""
        return self._clear(self.grid.size - 1)

    @property
    def atoms(self) -> dict[float, float]:
        """Shares of zeros and ones, where they stand out."""
        shares = {atom: self._clear(cell) for atom, cell in zip(ATOMS, self.grid.atoms, strict=False)}
        return {atom: share for atom, share in shares.items() if share}

    @property
    def clear(self) -> IntArray:
        """Cells of more than one value that stand out; the largest if it nearly does."""
        rest = self.grid.rest
        found = rest[self.fractions[rest] > self.level(ALARM)]
        if found.size:
            return found
        best = rest[np.argmax(self.fractions[rest])]
        return np.array([best] if self.fractions[best] > self.level(_NEARLY) else [], dtype=np.int64)

    def _clear(self, cell: int) -> float:
        share = float(self.fractions[cell])
        return share if share > self.level(ALARM) else 0.0

    def surprise(self, off: Float, expected: Float) -> Float:
        """Minus the log likelihood, up to a constant, of shares ``off`` the expected ones: noise and chance."""
        chance = np.maximum(expected, 0.0) / self.n
        if not self.pure:
            total = chance + self.sd**2
            return np.asarray(np.sum(off**2 / total + np.log(total / self.sd**2), axis=-1) / 2.0)
        # The density of a normal and a Laplace number's sum.
        scale, sd = self.sd / 2.0**0.5, np.sqrt(chance) + 1e-12
        size, ratio = np.abs(off), sd / (self.sd / 2.0**0.5)
        near = -size / scale + log_ndtr(size / sd - ratio)
        far = size / scale + log_ndtr(-size / sd - ratio)
        return np.asarray(-np.sum(np.logaddexp(near, far) + ratio**2 / 2.0, axis=-1))
