"""How finely answers are counted and how much noise they get: grids and scales, from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from discreet.data.records import Unit
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.accountant import SLACK
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.noise import MAX_SCALE, MIN_SCALE
from discreet.privacy.sensitivity.fixed_point import Grid
from discreet.privacy.sensitivity.sets import GRID_BITS, Geometry, Interval

# Under add-remove the number of records is private, so that the grid is laid out for this many (docs/proofs/gate.md).
CAPACITY_BITS = 27
# Sums stay below 2**SUM_BITS: int64 cannot overflow, and there is room for the noise.
SUM_BITS = 61
# By how much shares may exceed one that were added up in floating point.
ROUNDING = 1e-9


def noise_sd(
    geometry: Geometry, share: float, mu_or_epsilon: float, pure: bool, neighbours: Neighbours, n: int
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
    geometry: Geometry,
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
    strength = total * share if pure else total * math.sqrt(share)
    for grid_bits in range(min(GRID_BITS, SUM_BITS - bits), 7, -1):
        grid = (
            geometry.grid(grid_bits, neighbours)
            if unit is None
            else unit_grid(geometry, grid_bits, neighbours, unit.max_rows)
        )
        diameter = grid.l1 if pure else grid.l2
        # Huge budgets on long tables would ask for less noise than hides the lattice: they get a little more.
        scale = max(math.nextafter(diameter / strength, math.inf), _least_scale(grid, share, pure, aside))
        if scale <= MAX_SCALE:
            return grid, scale
    raise InvalidBudget("so small a budget asks for more noise than 64-bit integers can hold: raise it.")


def unit_grid(geometry: Geometry, grid_bits: int, neighbours: Neighbours, rows: int) -> Grid:
    """A grid whose diameters are those of units with up to ``rows`` rows. Proof: docs/proofs/units.md, lemma 2.

    The number of rows is private under both relations, so that nothing is centred.
    """
    grid = geometry.grid(grid_bits, "add-remove")
    l2, l1 = grid.l2, grid.l1
    if neighbours == "replace-one":
        if isinstance(geometry, Interval):
            # The interval's integers, which are not centred here: those of its two ends are furthest apart.
            ends = grid.add(np.array([geometry.low])), grid.add(np.array([geometry.high]))
            wide = float(ends[1][0] - ends[0][0])
            l2, l1 = max(l2, wide), max(l1, wide)
        else:
            replaced = geometry.grid(grid_bits, "replace-one")
            l2, l1 = max(l2, replaced.l2), max(l1, replaced.l1)
    return replace(grid, l2=_times(rows, l2), l1=_times(rows, l1))


def _times(rows: int, diameter: float) -> float:
    return diameter if rows == 1 else math.nextafter(rows * diameter, math.inf)


def _least_scale(grid: Grid, share: float, pure: bool, aside: bool) -> float:
    """With it, lattice_slack of all shares adds up to at most SLACK, where calibrate_mu has set that aside.

    Where it has not (docs/proofs/gate.md, lemma 11), and under pure budgets, nothing hangs on the lattice.
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
