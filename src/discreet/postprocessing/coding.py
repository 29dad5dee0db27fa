"""Covariates as small whole numbers: cells of a range that follow its records, and levels.

A record's code depends on public edges alone. Everything that is fitted later is a function of codes, so that values
which many records share, long tails and ranges declared far too wide are what their cells say they are.
Post-processing, but for `Coding.codes`, which is a function of one record at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float, IntArray
from discreet.data.columns import Levels, Range

Column = Range | Levels
# Equal cells of a range in the first histogram. What the second one adds is shared out by what the first says: as many
# as have so many standard deviations of noise in mass, as many as in the first at least, and at most so many.
CELLS, FINEST, _PER_CELL = 64, 256, 5.0
# Cells are seen where their mass, or that of neighbours together, is so many standard deviations clear of noise, and
# codes have at least one standard deviation in mass: where nothing is seen, they divide the declared range evenly. By
# hand.
_CLEAR = 3.0
# Steps of a table that finds cells, 32 KB; and for each edge, where there are very many.
_MOST_STEPS, _STEPS_PER_EDGE = 4_096, 2
# Edges closer together than this have no table: positions in it might not be whole numbers of 64 bits.
_NARROW = 1e-6


class CellFinder:
    """Cell of each value between edges: as `numpy.searchsorted` with ``side="right"``, in a fraction of the time.

    A table over equal steps says how many edges lie below a step; those within it are compared. Subtracting,
    multiplying and rounding down are monotone, in floating point as well, so that the answer is exact.
    """

    def __init__(self, edges: Float) -> None:
        self.edges = edges
        self._low, self._scale, self._most = (float(edges[0]) if len(edges) else 0.0), 0.0, len(edges)
        self._below: IntArray = np.zeros(1, dtype=np.int64)
        width = float(edges[-1]) - self._low if len(edges) else 0.0
        steps = 1 << max(len(edges) - 1, 1).bit_length() - 1
        most = max(_MOST_STEPS, _STEPS_PER_EDGE * len(edges))
        while width > _NARROW and self._most > 1 and steps < most:
            steps *= 2
            self._scale = steps / width
            inside = np.bincount(self._steps(edges))
            self._below, self._most = np.cumsum(inside) - inside, int(inside.max())
        self._ends = np.append(edges, np.inf)

    def __reduce__(self) -> tuple[type[CellFinder], tuple[Float]]:
        return CellFinder, (self.edges,)

    def _steps(self, x: Float) -> IntArray:
        return ((x - self._low) * self._scale).astype(np.int64)

    def __call__(self, x: Float) -> IntArray:
        """Number of edges that each value reaches."""
        found: IntArray = self._below.take(self._steps(x), mode="clip")
        for _ in range(self._most):
            found += x >= self._ends.take(found)
        return found


class Scale(NamedTuple):
    """Mean and variance of a range's encoded values by a noisy histogram.

    ``within`` is the part of the variance that codes do not see, ``noise`` the standard deviation of the variance's.
    """

    mean: float
    variance: float
    within: float
    noise: float


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """One covariate as codes.

    Parameters
    ----------
    edges
        Where one code ends and the next begins.
    value
        A value for every code.
    mass
        Share of the records with each code.
    ordered
        Whether codes have an order.
    noise
        Standard deviation of the noise in a share that was released.
    scale
        Mean and variance of a range's values; None for levels.
    """

    edges: Float
    value: Float
    mass: Float
    ordered: bool
    noise: float = 0.0
    scale: Scale | None = None
    codes: CellFinder = field(init=False, repr=False)
    """Code of each value."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", CellFinder(self.edges))

    @property
    def count(self) -> int:
        """Number of codes."""
        return len(self.mass)

    @property
    def scores(self) -> Float:
        """Mean of a normal variable over the ranks of every code."""
        above = np.concatenate([[0.0], np.cumsum(self.mass)])
        above /= above[-1]
        z = ndtri(above)
        density = np.exp(-0.5 * np.where(np.isfinite(z), z, 0.0) ** 2) / np.sqrt(2.0 * np.pi) * np.isfinite(z)
        return np.asarray(-np.diff(density) / np.maximum(np.diff(above), 1e-12))


def first_edges(column: Column) -> Float:
    """Edges of equal cells of a range on [-1, 1], or between the positions of levels."""
    if isinstance(column, Levels):
        return np.arange(0.5, len(column.levels) - 1.0)
    return np.asarray(np.linspace(-1.0, 1.0, CELLS + 1)[1:-1], dtype=np.float64)


def finer_edges(column: Column, edges: Float, fractions: Float, sd: float) -> Float:
    """Cells of a second histogram: crowded ones of a range are divided, and empty ones joined; levels stay."""
    if isinstance(column, Levels):
        return edges
    ends = np.concatenate([[-1.0], edges, [1.0]])
    inner: list[float] = []
    cells = min(max(1.0 / (_PER_CELL * max(sd, 1e-9)), CELLS), FINEST)
    for low, high, own in zip(ends[:-1], ends[1:], _steady(fractions, sd), strict=True):
        parts = max(1, round(float(own) * cells))
        # Of neighbouring empty cells the first edge is enough.
        if own > 0.0 or not inner or inner[-1] == low:
            inner += np.linspace(low, high, parts + 1)[1:].tolist() if parts > 1 else [high]
    return np.array([edge for edge in inner if edge < 1.0])


def _steady(fractions: Float, sd: float) -> Float:
    """A noisy histogram in which neighbouring cells share what they have together, where none of them stands clear.

    What lies between two clear cells and does not stand clear together has what it seems to have.
    """
    mass, start, found = np.zeros(len(fractions)), 0, 0.0
    for cell, own in enumerate([*fractions.tolist(), np.inf]):
        alone, size = own > _CLEAR * sd, cell + 1 - start
        if alone:
            mass[start:cell] = max(found, 0.0) / max(size - 1, 1)
            mass[cell : cell + 1] = own
        elif found + own > _CLEAR * sd * size**0.5:
            mass[start : cell + 1] = (found + own) / size
        else:
            found += own
            continue
        start, found = cell + 1, 0.0
    return np.asarray(mass / mass.sum()) if mass.sum() > 0.0 else np.full(len(fractions), 1.0 / len(fractions))


def coding(column: Column, edges: Float, fractions: Float, sd: float) -> Coding:
    """Codes of a column by a noisy histogram over its cells; small cells of a range are joined."""
    if isinstance(column, Levels):
        mass = np.maximum(fractions, 0.25 * sd + 0.1 / len(fractions))
        return Coding(edges, np.arange(len(mass), dtype=np.float64), mass / mass.sum(), False, sd)
    ends = np.concatenate([[-1.0], edges, [1.0]])
    least = max(sd, 1.0 / FINEST)
    kept: list[float] = []
    mass_of: list[float] = []
    value_of: list[float] = []
    found, weighted, total = 0.0, 0.0, 0.0
    steady = _steady(fractions, sd)
    for low, high, own in zip(ends[:-1].tolist(), ends[1:].tolist(), steady.tolist(), strict=True):
        found, share = found + own, max(own, 1e-9)
        weighted, total = weighted + share * (low + high) / 2.0, total + share
        if found >= least:
            kept.append(high)
            mass_of.append(found)
            value_of.append(weighted / total)
            found, weighted, total = 0.0, 0.0, 0.0
    if not kept:
        return Coding(np.empty(0), np.zeros(1), np.ones(1), True, sd, _scale(ends, steady, sd, np.zeros(1), np.ones(1)))
    # What is left over at the upper end belongs to the last code.
    mass_of[-1] += found
    shares = np.array(mass_of)
    values, mass = np.array(value_of), shares / shares.sum()
    return Coding(np.array(kept[:-1]), values, mass, True, sd, _scale(ends, steady, sd, values, mass))


def _scale(ends: Float, steady: Float, sd: float, value: Float, mass: Float) -> Scale:
    """Mean and variance by cells, in each of which values are taken to lie evenly."""
    share, middles, widths = steady / steady.sum(), (ends[:-1] + ends[1:]) / 2.0, np.diff(ends)
    mean = float(share @ middles)
    squares = (middles - mean) ** 2
    variance = float(share @ (squares + widths**2 / 12.0))
    seen = float(mass @ (value - mass @ value) ** 2)
    noise = sd * float(np.sqrt(np.sum((squares - variance) ** 2)))
    return Scale(mean, variance, max(variance - seen, 0.0), noise)


def code_numbers(x: Float, cells: Sequence[CellFinder]) -> IntArray:
    """Cell of each record in each column."""
    numbers = np.empty(x.shape, dtype=np.int64, order="F")
    for j, own in enumerate(cells):
        numbers[:, j] = own(x[:, j])
    return numbers
