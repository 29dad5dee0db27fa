"""Numbers onto the integer grid: what the geometries share. Proofs: docs/proofs/gate.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.data._arrays import Float, IntArray, ScratchBuffer
from discreet.data.expressions import Formula
from discreet.exceptions import InvalidInput

# Numbers outside these would overflow or vanish when they are squared.
SMALLEST, LARGEST = 1e-150, 1e150
# Takes back more than floating-point arithmetic can add to a norm.
SAFE = 1 - 2.0**-40
_steps = ScratchBuffer()


@dataclass(frozen=True, slots=True, eq=False)
class ByCellSums:
    """A grid's integers as formulas, so that an engine can add them up by cell; bit for bit what ``Grid.add`` gives.

    Parameters
    ----------
    steps
        From the formulas of a map to those of whole numbers: clipped and rounded like every record in ``Grid.add``.
    arrange
        From the number of records in each cell, and the sums of the steps, to the grid's sums.
    """

    steps: Callable[[tuple[Formula, ...]], tuple[Formula, ...]]
    arrange: Callable[[IntArray, list[IntArray]], IntArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """A geometry in grid steps.

    Parameters
    ----------
    l2, l1
        Diameters: how far the integer sum can move between neighbours.
    room
        No coordinate of one record exceeds two to this power.
    units
        Size of a grid step in the map's units, one for all numbers or one each.
    shift
        What every record had subtracted before it was put on the grid, in the map's units.
    numbers
        How many numbers are released; for a symmetric matrix, all of its entries.
    full
        The first ``full`` integers get noise of the full scale, the others of scale / sqrt(2).
    add
        Exact integer sum over the rows that a map returned.
    by_cell
        The same for rows that are a cell and formulas, where that can be said: see `ByCellSums`.
    """

    l2: float
    l1: float
    grid_bits: int
    units: float | Float
    shift: float = 0.0
    numbers: int
    full: int
    add: Callable[[Any], IntArray]
    by_cell: ByCellSums | None = None

    @property
    def length(self) -> int:
        """How many integers the sum has: of a symmetric matrix, each pair of equal entries once."""
        return self.full + (self.numbers - self.full) // 2

    @property
    def unit(self) -> float:
        """Size of a grid step of the first number."""
        return self.units if isinstance(self.units, float) else float(self.units[0])


def into_ball(values: Any, radius: float, bits: int) -> Float:
    """Integers whose rows have norms of at most 2**bits; the norms are exact. Proof: docs/proofs/gate.md, lemma 6.

    They last until the next call.
    """
    v = floats(values)
    # Written so that NaN takes the long way too. Both ways give a record inside the cube the same integers.
    if not (v.max() <= radius and v.min() >= -radius):
        v = np.nan_to_num(v)
        peak = np.abs(v).max(axis=1, keepdims=True)
        v = np.where(peak > radius, v / np.where(peak > 0, peak, 1.0) * radius, v)
    edge = 2.0**bits
    steps = np.multiply(v, edge / radius, out=_steps(*v.shape))
    np.rint(steps, out=steps)
    # At most 2**53, so no order of addition and no fused multiplication can round it.
    squares = np.einsum("ij,ij->i", steps, steps)
    if squares.max() > edge * edge:
        shrink = edge * SAFE / np.sqrt(np.maximum(squares, edge * edge))
        steps *= np.where(squares > edge * edge, shrink, 1.0)[:, None]
        np.trunc(steps, out=steps)
    return steps


@lru_cache(maxsize=64)
def halves(d: int) -> tuple[IntArray, IntArray]:
    """Where each number of a symmetric matrix stands, the diagonal first, and which number stands where."""
    rows, others = np.triu_indices(d, 1)
    once = np.concatenate([np.arange(d) * (d + 1), rows * d + others])
    places = np.empty((d, d), dtype=np.int64)
    places.flat[once] = np.arange(once.size)
    places.T.flat[once] = np.arange(once.size)
    return once, places


def norm_bits(dimension: int) -> int:
    """Bits that a coordinate may have so that squared norms are exact in float64."""
    # dimension * 4**bits must not exceed 2**53.
    return (53 - (dimension - 1).bit_length()) // 2


def floats(values: Any) -> Float:
    """Whatever a map returned, as float64."""
    return np.asarray(values, dtype=np.float64)


def whole(sums: Float) -> IntArray:
    """Exact sums as int64."""
    return sums.astype(np.int64)


def up(value: float) -> float:
    """The next larger float."""
    return math.nextafter(value, math.inf)


def freeze(geometry: object, **values: object) -> None:
    """Set fields of a frozen dataclass while it is made."""
    for name, value in values.items():
        object.__setattr__(geometry, name, value)


def finite_number(argument: str, value: float) -> float:
    """The value as a float, if it is finite."""
    if isinstance(value, bool) or not math.isfinite(value):
        raise InvalidInput(f"{argument} must be a finite number; declare it or compute it from earlier releases.")
    return float(value)


def size_of(argument: str, value: float) -> float:
    """The value as a float, if its square is an ordinary number."""
    value = finite_number(argument, value)
    if not SMALLEST <= value <= LARGEST:
        raise InvalidInput(f"{argument} must lie between 1e-150 and 1e150; rescale the map.")
    return value


def count_of(argument: str, value: int) -> int:
    """The value as an int, if it counts something."""
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise InvalidInput(f"{argument} must be a positive integer.")
    return int(value)
