"""Covariates as small whole numbers: cells of a range that follow its records, and levels.

A record's code depends on public edges alone. Everything that is fitted later is a function of codes, so that values
which many records share, long tails and ranges declared far too wide are what their cells say they are.
Post-processing, but for `Coding.codes`, which is a function of one record at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float, IntArray
from discreet.data.columns import Levels, Range

Column = Range | Levels
# Equal cells of a range in the first histogram, and cells of the second one that are shared out by what the first says.
CELLS, FINER = 64, 64
# Cells whose mass is not so many standard deviations clear of noise join a neighbour, and those below this mass as well.
_CLEAR, _SMALLEST = 3.0, 1.0 / 128.0


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """One covariate as codes.

    Parameters
    ----------
    edges
        Where one code ends and the next begins, on [-1, 1]; none for levels, whose codes are their positions.
    value
        A value for every code.
    mass
        Share of the records with each code.
    ordered
        Whether codes have an order.
    """

    edges: Float
    value: Float
    mass: Float
    ordered: bool

    def codes(self, x: Float) -> IntArray:
        """Code of each value."""
        return np.searchsorted(self.edges, x, side="right") if self.ordered else x.astype(np.int64)

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


def first_edges(column: Column) -> Float | None:
    """Edges of equal cells; None for levels."""
    return None if isinstance(column, Levels) else np.linspace(-1.0, 1.0, CELLS + 1)[1:-1]


def finer_edges(edges: Float, fractions: Float, sd: float) -> Float:
    """Cells of a second histogram: crowded ones are divided, empty ones joined."""
    mass = _believed(fractions, sd)
    ends = np.concatenate([[-1.0], edges, [1.0]])
    parts = np.maximum(1, np.rint(mass * FINER)).astype(int)
    inner: list[float] = []
    for low, high, count, own in zip(ends[:-1], ends[1:], parts, mass, strict=True):
        inside = np.linspace(low, high, count + 1)[1:]
        # The end of an empty cell is dropped, unless the next one is not empty.
        inner += list(inside if own > 0.0 or not inner else inside[:-1] if len(inside) > 1 else inside)
    found = np.unique(np.array(inner))
    return found[found < 1.0]


def coding(column: Column, edges: Float | None, fractions: Float, sd: float) -> Coding:
    """Codes of a column by a noisy histogram over its cells, small cells joined."""
    if edges is None:
        mass = np.maximum(fractions, 0.25 * sd + 0.1 / len(fractions))
        return Coding(np.empty(0), np.arange(len(mass), dtype=np.float64), mass / mass.sum(), False)
    ends = np.concatenate([[-1.0], edges, [1.0]])
    kept: list[float] = []
    mass_of: list[float] = []
    value_of: list[float] = []
    mass, weighted, total, number = 0.0, 0.0, 0.0, 0
    for low, high, own in zip(ends[:-1], ends[1:], fractions, strict=True):
        mass, number = mass + own, number + 1
        share = max(own, 0.1 * sd)
        weighted, total = weighted + share * (low + high) / 2.0, total + share
        # A crowded cell is a code whatever noise the empty ones before it add up to.
        if max(own, mass / number**0.5) >= _CLEAR * sd and max(own, mass) >= _SMALLEST:
            mass = max(mass, own)
            kept.append(float(high))
            mass_of.append(mass)
            value_of.append(weighted / total)
            mass, weighted, total, number = 0.0, 0.0, 0.0, 0
    if not kept:
        return Coding(np.empty(0), np.zeros(1), np.ones(1), True)
    # What is left over at the upper end belongs to the last code.
    mass_of[-1] += max(mass, 0.0)
    shares = np.array(mass_of)
    return Coding(np.array(kept[:-1]), np.array(value_of), shares / shares.sum(), True)


def _believed(fractions: Float, sd: float) -> Float:
    """Noisy shares as shares: what noise alone would often show counts as nothing."""
    mass = np.where(fractions > _CLEAR * sd, fractions, 0.0)
    return np.asarray(mass / mass.sum()) if mass.sum() > 0.0 else np.full(len(mass), 1.0 / len(mass))


def code_numbers(x: Float, columns: Sequence[Column], edges: Sequence[Float | None]) -> IntArray:
    """Cell of each record in each column."""
    numbers = np.empty(x.shape, dtype=np.int64, order="F")
    for j, own in enumerate(edges):
        numbers[:, j] = x[:, j] if own is None else np.searchsorted(own, x[:, j], side="right")
    return numbers
