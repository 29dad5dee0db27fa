"""Numbers onto the integer grid, and how much noise their sums need: from public numbers alone.

This is what all sensitivity sets share. Proofs: docs/proofs/gate.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from discreet.data._arrays import Float, IntArray, ScratchBuffer
from discreet.data.expressions import Formula
from discreet.data.records import Unit
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.accountant import SLACK
from discreet.privacy.compiled.products import Products
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.noise import MAX_SCALE, MIN_SCALE

# Numbers outside these would overflow or vanish when they are squared.
SMALLEST, LARGEST = 1e-150, 1e150
# Takes back more than floating-point arithmetic can add to a norm.
SAFE = 1 - 2.0**-40
# No coordinate of one record exceeds 2**GRID_BITS grid steps: times 4,096 rows, chunk sums stay exact in float64.
GRID_BITS = 40
# Under add-remove the number of records is private, so that the grid is laid out for this many (docs/proofs/gate.md).
CAPACITY_BITS = 27
# Sums stay below 2**SUM_BITS: int64 cannot overflow, and leave space for the noise.
SUM_BITS = 61
# By how much shares may exceed one that were added up in floating point.
ROUNDING = 1e-9
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
    grid_bits
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
    replaced
        How far replacing a record moves sums that replace-one would centre and this grid does not.
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
    replaced: float | None = None

    @property
    def length(self) -> int:
        """How many integers the sum has: of a symmetric matrix, each pair of equal entries once."""
        return self.full + (self.numbers - self.full) // 2

    @property
    def unit(self) -> float:
        """Size of a grid step of the first number."""
        return self.units if isinstance(self.units, float) else float(self.units[0])


class SensitivitySet(Hashable, Protocol):
    """A set that one record's contribution is forced into, and how far a sum over records can move.

    It is a public value: frozen, and compared by its numbers.
    """

    @property
    def columns(self) -> int | None:
        """How many columns the map returns; None for one number a record."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers are released, or the number of rows of a symmetric matrix."""
        ...

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of neighbours, in the map's units."""
        ...

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the sums of neighbours; infinite where Laplace noise will not do."""
        ...

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """The same on integers up to 2**grid_bits."""
        ...

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        ...


def into_ball(values: Any, radius: float, bits: int) -> Float:
    """Integers whose rows have norms of at most 2**bits; the norms are exact. Proof: docs/proofs/gate.md, lemma 6.

    They last until the next call.
    """
    edge = 2.0**bits
    if isinstance(values, Products) and (found := values.steps(radius, edge, edge * SAFE)) is not None:
        return found
    v = floats(values)
    # Written so that NaN takes the long way too. Both ways give a record inside the cube the same integers.
    if not (v.max() <= radius and v.min() >= -radius):
        v = np.nan_to_num(v)
        peak = np.abs(v).max(axis=1, keepdims=True)
        v = np.where(peak > radius, v / np.where(peak > 0, peak, 1.0) * radius, v)
    steps = np.multiply(v, edge / radius, out=_steps(*v.shape))
    np.rint(steps, out=steps)
    # At most 2**53, so no order of addition and no fused multiplication can round it.
    squares = np.einsum("ij,ij->i", steps, steps)
    if squares.max() > edge * edge:
        shrink = edge * SAFE / np.sqrt(np.maximum(squares, edge * edge))
        steps *= np.where(squares > edge * edge, shrink, 1.0)[:, None]
        np.trunc(steps, out=steps)
    return steps


def sum_in_ball(values: Any, radius: float, bits: int) -> IntArray:
    """The sum of these integers over all rows."""
    edge = 2.0**bits
    if isinstance(values, Products) and (found := values.sums(radius, edge, edge * SAFE)) is not None:
        return found
    steps = into_ball(values, radius, bits)
    return whole(np.ones(len(steps)) @ steps)


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


def noise_sd(
    geometry: SensitivitySet, share: float, mu_or_epsilon: float, pure: bool, neighbours: Neighbours, n: int
) -> float:
    """Noise of a release in the map's units: a public number. Of the first number for `MeanSquare`.

    Parameters
    ----------
    geometry, share
        As in a query.
    mu_or_epsilon
        The whole budget: ``calibrate_mu(epsilon, delta)``, or epsilon if pure.
    pure
        Whether the noise is Laplace noise; Gaussian noise is taken to need the lattice's slack, as it does at any usual
        epsilon.
    neighbours, n
        The relation, and the number of records, which plays no part under add-remove.
    """
    check_share(share)
    return sd_of(
        *plan_noise(geometry, share, mu_or_epsilon, pure, neighbours, capacity_bits(neighbours, n), True), pure
    )


def sd_of(grid: Grid, scale: float, pure: bool) -> float:
    """Standard deviation of the noise, in the map's units."""
    return scale * grid.unit * (math.sqrt(2) if pure else 1.0)


@lru_cache(maxsize=4096)
def plan_noise(
    geometry: SensitivitySet,
    share: float,
    total: float,
    pure: bool,
    neighbours: Neighbours,
    bits: int,
    aside: bool,
    unit: Unit | None = None,
) -> tuple[Grid, float]:
    """Grid and noise scale of a release, from public numbers alone."""
    if pure and math.isinf(geometry.l1(neighbours)):
        raise InvalidInput("Gram has no Laplace noise: give the budget a delta, or release cells or an interval.")
    spendable = total * share if pure else total * math.sqrt(share)
    for grid_bits in range(min(GRID_BITS, SUM_BITS - bits), 7, -1):
        grid = (
            geometry.grid(grid_bits, neighbours)
            if unit is None
            else unit_grid(geometry, grid_bits, neighbours, unit.max_rows)
        )
        diameter = grid.l1 if pure else grid.l2
        # Huge budgets on long tables would ask for less noise than hides the lattice: they get a little more.
        scale = max(math.nextafter(diameter / spendable, math.inf), _least_scale(grid, share, pure, aside))
        if scale <= MAX_SCALE:
            return grid, scale
    raise InvalidBudget("so small a budget asks for more noise than 64-bit integers can hold: raise it.")


def unit_grid(geometry: SensitivitySet, grid_bits: int, neighbours: Neighbours, rows: int) -> Grid:
    """A grid whose diameters are those of units with up to ``rows`` rows. Proof: docs/proofs/units.md, lemma 2.

    The number of rows is private under both relations, so that nothing is centred.
    """
    grid = geometry.grid(grid_bits, "add-remove")
    l2, l1 = grid.l2, grid.l1
    if neighbours == "replace-one":
        if grid.replaced is not None:
            l2, l1 = max(l2, grid.replaced), max(l1, grid.replaced)
        else:
            replaced = geometry.grid(grid_bits, "replace-one")
            l2, l1 = max(l2, replaced.l2), max(l1, replaced.l1)
    return replace(grid, l2=_times(rows, l2), l1=_times(rows, l1))


def _times(rows: int, diameter: float) -> float:
    return diameter if rows == 1 else math.nextafter(rows * diameter, math.inf)


def _least_scale(grid: Grid, share: float, pure: bool, aside: bool) -> float:
    """With it, lattice_slack of all shares adds up to at most SLACK, where calibrate_mu has set that aside.

    Where it has not (docs/proofs/gate.md, lemma 11), and under pure budgets, nothing depends on the lattice.
    """
    if pure:
        return MIN_SCALE
    return max(2 * MIN_SCALE, math.sqrt(grid.numbers / (24 * SLACK * share)) if aside else 0.0)


def capacity_bits(neighbours: Neighbours, n: int) -> int:
    """Bits of the number of records that a grid is laid out for."""
    return CAPACITY_BITS if neighbours == "add-remove" else (n - 1).bit_length()


def check_share(share: float) -> None:
    """Refuse a share that is no part of a budget."""
    # Written so that NaN is refused too.
    if isinstance(share, bool) or not 0 < share <= 1 + ROUNDING:
        raise InvalidBudget("a share must be a positive number of at most 1.")
