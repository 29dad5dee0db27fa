"""The set that one record's contribution lies in, and how it is put on a grid of integers.

A geometry turns whatever a map returns for a few thousand records (NaN and infinities included) into an exact integer
sum, and knows how far that sum can move when one record changes. Every step is either elementwise or a sum of integers
that float64 holds exactly, so a record contributes the same integers wherever it stands. Proofs: docs/proofs/gate.md.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.expressions import Formula, number
from discreet.exceptions import InvalidInput
from discreet.privacy.compiled.products import second_moments
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.fixed_point import (
    LARGEST,
    SMALLEST,
    ByCellSums,
    Grid,
    count_of,
    finite_number,
    floats,
    freeze,
    halves,
    into_ball,
    norm_bits,
    size_of,
    sum_in_ball,
    up,
    whole,
)

_GOLDEN = (1 + math.sqrt(5)) / 2
# lambda C: (s, lambda s^2) is no wider than s alone (docs/proofs/gate.md, lemma 5).
_FREE: float = _GOLDEN**2.5 / 2
# A statistic stays below two to this power, in steps, which leaves space for the noise.
_STATISTIC_BITS = 61


@dataclass(frozen=True, slots=True)
class Interval:
    """One number per record, clipped to [low, high]; NaN counts as low. Released: its sum."""

    columns: ClassVar[int | None] = None
    low: float
    high: float

    def __post_init__(self) -> None:
        freeze(self, low=finite_number("low", self.low), high=finite_number("high", self.high))
        if not (self.high - self.low >= SMALLEST and max(-self.low, self.high) <= LARGEST):
            raise InvalidInput("Interval needs low < high, of a size between 1e-150 and 1e150; rescale the map.")

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return 1

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of neighbours. Proof: docs/proofs/gate.md, lemma 1."""
        return self.high - self.low if neighbours == "replace-one" else max(abs(self.low), abs(self.high))

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the sums of neighbours."""
        return self.l2(neighbours)

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        # Centring uses the number of records, which is public under replace-one only.
        replace = neighbours == "replace-one"
        middle = self.low + (self.high - self.low) / 2 if replace else 0.0
        radius = (self.high - self.low) / 2 if replace else max(abs(self.low), abs(self.high))
        edge = 2.0**grid_bits
        diameter = 2 * edge if replace else edge

        def add(values: Any) -> IntArray:
            inside = np.fmin(np.fmax(floats(values), self.low), self.high)
            steps = np.rint((inside - middle) * (edge / radius))
            # Integers, so that the bound is exact whatever was rounded on the way.
            return whole(np.clip(steps, -edge, edge, out=steps).sum(keepdims=True))

        def steps(numbers: tuple[Formula, ...]) -> tuple[Formula, ...]:
            inside = numbers[0].clip(self.low, self.high)
            return (((inside - number(middle)) * number(edge / radius)).rint().clip(-edge, edge),)

        by_cell = ByCellSums(steps, lambda _, sums: sums[0].sum(keepdims=True))
        # The integers of the two ends are furthest apart.
        replaced = None if replace else float(add(np.array([self.high]))[0] - add(np.array([self.low]))[0])
        return Grid(
            grid_bits=grid_bits,
            l2=diameter,
            l1=diameter,
            units=radius / edge,
            shift=middle,
            numbers=1,
            full=1,
            add=add,
            by_cell=by_cell,
            replaced=replaced,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        return noisy.reshape(())


@dataclass(frozen=True, slots=True)
class Ball:
    """A vector per record, clipped to an L2 norm of at most the radius; NaN counts as 0. Released: its sum."""

    radius: float
    dimension: int

    def __post_init__(self) -> None:
        freeze(self, radius=size_of("radius", self.radius), dimension=count_of("dimension", self.dimension))

    @property
    def columns(self) -> int:
        """How many columns the map returns."""
        return self.dimension

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of neighbours. Proof: docs/proofs/gate.md, lemma 2."""
        return self.radius * (2 if neighbours == "replace-one" else 1)

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the sums of neighbours."""
        return self.l2(neighbours) * math.sqrt(self.dimension)

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        bits = min(grid_bits, norm_bits(self.dimension))
        diameter = 2.0**grid_bits * (2 if neighbours == "replace-one" else 1)

        def add(values: Any) -> IntArray:
            return sum_in_ball(values, self.radius, bits) << (grid_bits - bits)

        return Grid(
            grid_bits=grid_bits,
            l2=diameter,
            l1=up(diameter * math.sqrt(self.dimension)),
            units=self.radius / 2.0**grid_bits,
            numbers=self.dimension,
            full=self.dimension,
            add=add,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        return noisy


@dataclass(frozen=True, slots=True)
class Cells:
    """One cell number per factor and record, clipped into range; NaN counts as 0. Released: all counts, in a row."""

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        freeze(self, sizes=tuple(count_of("sizes", size) for size in self.sizes))
        if not self.sizes:
            raise InvalidInput("Cells needs at least one factor; give sizes=(number of cells, ...).")

    @property
    def columns(self) -> int:
        """How many columns the map returns; a single factor may also come as a vector."""
        return len(self.sizes)

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return sum(self.sizes)

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of neighbours. Proof: docs/proofs/gate.md, lemma 3."""
        return math.sqrt(self.l1(neighbours))

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the sums of neighbours."""
        return len(self.sizes) * (2.0 if neighbours == "replace-one" else 1.0)

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        top = np.array(self.sizes) - 1
        first = np.cumsum((0, *self.sizes[:-1]))

        def add(values: Any) -> IntArray:
            cells = np.asarray(values).reshape(-1, len(self.sizes))
            cells = np.fmin(np.fmax(cells, 0), top).astype(np.int64) + first
            return np.bincount(cells.ravel(), minlength=self.dimension).astype(np.int64) << grid_bits

        edge = 2.0**grid_bits
        return Grid(
            grid_bits=grid_bits,
            l2=up(edge * self.l2(neighbours)),
            l1=edge * self.l1(neighbours),
            units=1 / edge,
            numbers=self.dimension,
            full=self.dimension,
            add=add,
            by_cell=ByCellSums(lambda _: (), lambda counts, _: counts << grid_bits) if len(self.sizes) == 1 else None,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        return noisy


@dataclass(frozen=True, slots=True)
class MeanSquare:
    """One number s per record, clipped to [-bound, bound]; NaN counts as 0. Released: the sums of s and of s^2.

    Under replace-one the second moment is free: the pair is as far apart at most as s alone.
    """

    columns: ClassVar[int | None] = None
    bound: float

    def __post_init__(self) -> None:
        freeze(self, bound=size_of("bound", self.bound))

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return 2

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the sums of (s, lambda s^2). Proof: docs/proofs/gate.md, lemma 5."""
        return self.bound * (2 if neighbours == "replace-one" else math.hypot(1, _FREE))

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the sums of (s, lambda s^2)."""
        return self.bound * (1 + _FREE + 1 / (4 * _FREE) if neighbours == "replace-one" else 1 + _FREE)

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        # lambda s^2 reaches 1.67 times as far as s.
        edge = 2.0 ** (grid_bits - 1)
        # The second number is off its place by at most 0.51 steps (docs/proofs/gate.md, lemma 6).
        rounding = 2 if neighbours == "replace-one" else 1

        def add(values: Any) -> IntArray:
            s = floats(values)
            inside = np.fmin(np.fmax(np.where(np.isnan(s), 0.0, s), -self.bound), self.bound)
            steps = np.rint(inside * (edge / self.bound))
            squares = np.rint(steps * steps * (_FREE / edge))
            return whole(np.array([steps.sum(), squares.sum()]))

        return Grid(
            grid_bits=grid_bits,
            l2=edge * self.l2(neighbours) / self.bound + rounding,
            l1=edge * self.l1(neighbours) / self.bound + rounding,
            units=np.array([self.bound / edge, self.bound * self.bound / (edge * _FREE)]),
            numbers=2,
            full=2,
            add=add,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        return noisy


@dataclass(frozen=True, slots=True)
class Gram:
    """A vector phi per record, clipped to an L2 norm of at most the radius; NaN counts as 0.

    Released: the symmetric matrix that sums phi phi', with noise of scale sigma on the diagonal and sigma / sqrt(2)
    off it. It has Gaussian noise only.
    """

    radius: float
    dimension: int

    def __post_init__(self) -> None:
        freeze(self, radius=size_of("radius", self.radius), dimension=count_of("dimension", self.dimension))

    @property
    def columns(self) -> int:
        """How many columns the map returns."""
        return self.dimension

    def l2(self, neighbours: Neighbours) -> float:
        """Largest Frobenius distance between the sums of neighbours. Proof: docs/proofs/gate.md, lemma 4."""
        # With one feature there is no direction to change.
        wide = neighbours == "replace-one" and self.dimension > 1
        return self.radius**2 * (math.sqrt(2) if wide else 1.0)

    def l1(self, neighbours: Neighbours) -> float:
        """None that would be of use: the gate refuses a matrix with Laplace noise."""
        return math.inf

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**grid_bits."""
        d = self.dimension
        bits = min(grid_bits // 2, norm_bits(d))
        once, _ = halves(d)

        def add(values: Any) -> IntArray:
            steps = into_ball(values, self.radius, bits)
            sums = second_moments(steps)
            return whole((steps.T @ steps).ravel()[once]) if sums is None else sums

        edge = 4.0**bits
        return Grid(
            grid_bits=grid_bits,
            l2=up(edge * self.l2(neighbours) / self.radius**2),
            l1=math.inf,
            units=self.radius**2 / edge,
            # Numbers with less noise weigh more in the lattice's slack: both halves count.
            numbers=d * d,
            full=d,
            add=add,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        _, places = halves(self.dimension)
        return noisy[places]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One vector of a whole data set, such as the minimiser of an objective; NaN counts as 0. Released: that vector.

    It is no sum of records, so the gate cannot enforce how far one record moves it: whoever asks has to prove, in the
    file of docs/proofs that ``proof`` names, that replacing a record moves it by an L2 distance of at most ``move``.
    The gate's records are a single one, which holds the vector; its coordinates are clipped to the radius.
    """

    move: float
    radius: float
    dimension: int
    proof: str

    def __post_init__(self) -> None:
        if not isinstance(self.proof, str) or not self.proof.endswith(".md"):
            raise InvalidInput("Statistic needs proof=, the file of docs/proofs that bounds its move: write it first.")
        freeze(self, move=size_of("move", self.move), radius=size_of("radius", self.radius))
        freeze(self, dimension=count_of("dimension", self.dimension))

    @property
    def columns(self) -> int:
        """How many columns the map returns."""
        return self.dimension

    def l2(self, neighbours: Neighbours) -> float:
        """Largest L2 distance between the vectors of neighbours: what was proved about them."""
        if neighbours != "replace-one":
            raise InvalidInput("Statistic has no add-remove distance: use neighbours='replace-one'.")
        return self.move

    def l1(self, neighbours: Neighbours) -> float:
        """Largest L1 distance between the vectors of neighbours."""
        return self.l2(neighbours) * math.sqrt(self.dimension)

    def grid(self, grid_bits: int, neighbours: Neighbours) -> Grid:
        """On integers such that the vector moves by about 2**grid_bits steps. Proof: docs/proofs/gate.md, lemma 14."""
        grid_bits = min(grid_bits, _STATISTIC_BITS - math.ceil(math.log2(max(1.0, self.radius / self.l2(neighbours)))))
        unit = math.ldexp(self.move, -grid_bits)
        # One step for rounding to integers, and what float64 cannot distinguish so far from zero.
        off = math.sqrt(self.dimension) * (1 + self.radius / unit * 2.0**-50)
        diameter = up(2.0**grid_bits + 2 * off)

        def add(values: Any) -> IntArray:
            vector = floats(values)
            if len(vector) != 1:
                raise InvalidInput("Statistic takes one record, which holds the vector: release sums otherwise.")
            inside = np.clip(np.where(np.isnan(vector), 0.0, vector), -self.radius, self.radius)
            return whole(np.rint(inside[0] / unit))

        return Grid(
            grid_bits=grid_bits,
            l2=diameter,
            l1=up(diameter * math.sqrt(self.dimension)),
            units=unit,
            numbers=self.dimension,
            full=self.dimension,
            add=add,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        return noisy
