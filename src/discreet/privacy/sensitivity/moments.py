"""Scores of several arms: sums of one record's numbers together with those of their squares or products."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.fixed_point import (
    Grid,
    count_of,
    finite_number,
    floats,
    freeze,
    halves,
    into_ball,
    norm_bits,
    size_of,
    up,
    whole,
)

# lambda R: (v, lambda v v') is no wider than v alone while its square is at most one half: docs/proofs/arms.md, lemma
# 1.
_FREE = 0.7
# Products are off their place by at most 0.51 steps each, of either record (docs/proofs/arms.md, lemma 1).
_ROUNDING = 1.02
# What rounding a number and its square to steps adds to a distance (docs/proofs/arms.md, lemma 2).
_STEPS = 3.0
# Products of this many numbers fit into a chunk's memory.
_MOST = 64


@dataclass(frozen=True, slots=True)
class VectorMoments:
    """A vector v per record, clipped to an L2 norm of at most the radius; NaN counts as 0.

    Released: the sum of v, then that of the products of its numbers with each other. Under replace-one the products
    are free: together the two are as far apart at most as v alone. They have Gaussian noise only.
    """

    radius: float
    dimension: int

    def __post_init__(self) -> None:
        freeze(self, radius=size_of("radius", self.radius), dimension=count_of("dimension", self.dimension))
        if self.dimension > _MOST:
            raise InvalidInput(f"dimension may be at most {_MOST}; release fewer numbers per record.")

    @property
    def columns(self) -> int:
        """How many columns the map returns."""
        return self.dimension

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of (v, lambda v v'). Proof: docs/proofs/arms.md, lemma 1."""
        return self.radius * (2.0 if neighbours == "replace-one" else math.hypot(1.0, _FREE))

    def l1(self, neighbours: Neighbours) -> float:
        """None that would be of use: the gate refuses products with Laplace noise."""
        return math.inf

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        d, edge = self.dimension, 2.0**grid_bits
        bits = min(grid_bits, norm_bits(d))
        once, _ = halves(d)
        first, second = np.divmod(once, d)
        # Off the diagonal a product stands for two equal entries of the matrix.
        weight = _FREE * np.where(first == second, 1.0, math.sqrt(2.0))

        def add(values: Any) -> IntArray:
            steps = into_ball(values, self.radius, bits)
            products = np.rint(steps[:, first] * steps[:, second] * (weight * (edge / 4.0**bits)))
            ones = np.ones(len(steps))
            return np.concatenate([whole(ones @ steps) << (grid_bits - bits), whole(products.sum(axis=0))])

        return Grid(
            grid_bits=grid_bits,
            l2=up(edge * self.l2(neighbours) / self.radius + _ROUNDING * math.sqrt(len(once))),
            l1=math.inf,
            units=np.concatenate([np.full(d, self.radius / edge), self.radius * self.radius / (edge * weight)]),
            numbers=d + len(once),
            full=d + len(once),
            add=add,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in: `divided` takes it apart."""
        return noisy

    def divided(self, released: Float) -> tuple[Float, Float]:
        """The sum of vectors, and the symmetric matrix of their products."""
        _, places = halves(self.dimension)
        return released[: self.dimension], released[self.dimension :][places]


@dataclass(frozen=True, slots=True)
class ArmMoments:
    """An arm's number and a number s in [-low, high] per record, both clipped; NaN counts as 0.

    The record adds s and ``weight`` s^2 / max(low, high) to the pair of its arm. Released: both sums for every arm, one
    row per arm, the second in units of s^2. Nothing is added to other arms, so that numbers that are far from zero on
    one side only are closer together than in a ball.
    """

    low: float
    high: float
    arms: int
    weight: float

    def __post_init__(self) -> None:
        freeze(self, arms=count_of("arms", self.arms), weight=size_of("weight", self.weight))
        freeze(self, low=finite_number("low", self.low), high=finite_number("high", self.high))
        size_of("high", self._most)
        if min(self.low, self.high) < 0.0 or self.weight > 1.0:
            raise InvalidInput("ArmMoments needs low and high that are not negative, and a weight of at most 1.")

    @property
    def _most(self) -> float:
        return max(self.low, self.high)

    @property
    def columns(self) -> int:
        """How many columns the map returns."""
        return 2

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return 2 * self.arms

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of neighbours. Proof: docs/proofs/arms.md, lemma 2."""
        return float(arm_diameter(self.low, self.high, self.weight, neighbours))

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the sums of neighbours. Proof: docs/proofs/arms.md, lemma 2."""
        # Numbers of one arm are no further apart than numbers of two.
        return self._most * (1.0 + self.weight) * (2.0 if neighbours == "replace-one" else 1.0)

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        edge, most = 2.0**grid_bits, self._most

        def add(values: Any) -> IntArray:
            arm, s = np.where(np.isnan(rows := floats(values)), 0.0, rows).T
            arm = np.clip(arm, 0, self.arms - 1).astype(np.int64)
            steps = np.rint(np.clip(s, -self.low, self.high) * (edge / most))
            squares = np.rint(steps * steps * (self.weight / edge))
            sums = [np.bincount(arm, part, self.arms) for part in (steps, squares)]
            return whole(np.column_stack(sums).ravel().astype(np.float64))

        units = np.array([most / edge, most * most / (edge * self.weight)])
        return Grid(
            grid_bits=grid_bits,
            l2=up(edge * self.l2(neighbours) / most + _STEPS),
            l1=up(edge * self.l1(neighbours) / most + _STEPS),
            units=np.tile(units, self.arms),
            numbers=self.dimension,
            full=self.dimension,
            add=add,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in: one row per arm."""
        return noisy.reshape(self.arms, 2)


def arm_diameter(low: Any, high: Any, weight: float, neighbours: Neighbours) -> Any:
    """L2 diameter of pairs (s, weight s^2 / most) by arm, over ``most``. Proof: docs/proofs/arms.md, lemma 2."""
    most = np.maximum(low, high)
    if neighbours == "add-remove":
        return most * math.hypot(1.0, weight)
    rest = np.minimum(low, high)
    across = most * math.sqrt(2.0) * math.hypot(1.0, weight)
    within = (most + rest) * np.sqrt(1.0 + (weight * (1.0 - rest / np.maximum(most, 1e-300))) ** 2)
    return np.maximum(across, within)
