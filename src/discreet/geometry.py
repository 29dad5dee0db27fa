"""The set that one record's contribution lies in, and how it is put on a grid of integers.

A geometry turns whatever a map returns for a few thousand records (NaN and infinities included) into an exact integer
sum, and knows how far that sum can move when one record changes. Every step is either elementwise or a sum of integers
that float64 holds exactly, so a record contributes the same integers wherever it stands. Proofs: docs/proofs/gate.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

import numpy as np

from discreet.columns import Float, IntArray
from discreet.errors import InvalidInput
from discreet.guarantee import Neighbours

# No coordinate of one record exceeds 2**ROOM grid steps: times 4,096 rows, chunk sums stay exact in float64.
ROOM = 40
# Numbers outside these would overflow or vanish when they are squared.
_SMALLEST, _LARGEST = 1e-150, 1e150
# Takes back more than floating-point arithmetic can add to a norm.
_SAFE = 1 - 2.0**-40
_GOLDEN = (1 + math.sqrt(5)) / 2
# lambda C: (s, lambda s^2) is no wider than s alone (docs/proofs/gate.md, lemma 5).
_FREE: float = _GOLDEN**2.5 / 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """A geometry in grid steps.

    Parameters
    ----------
    l2, l1
        Diameters: how far the integer sum can move between neighbours.
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
    """

    l2: float
    l1: float
    units: float | Float
    shift: float = 0.0
    numbers: int
    full: int
    add: Callable[[Any], IntArray]

    @property
    def unit(self) -> float:
        """Size of a grid step of the first number."""
        return self.units if isinstance(self.units, float) else float(self.units[0])


@dataclass(frozen=True, slots=True)
class Interval:
    """One number per record, clipped to [low, high]; NaN counts as low. Released: its sum."""

    columns: ClassVar[int | None] = None
    low: float
    high: float

    def __post_init__(self) -> None:
        _freeze(self, low=_finite("low", self.low), high=_finite("high", self.high))
        if not (self.high - self.low >= _SMALLEST and max(-self.low, self.high) <= _LARGEST):
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

    def grid(self, room: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**room."""
        # Centring uses the number of records, which is public under replace-one only.
        replace = neighbours == "replace-one"
        middle = self.low + (self.high - self.low) / 2 if replace else 0.0
        radius = (self.high - self.low) / 2 if replace else max(abs(self.low), abs(self.high))
        edge = 2.0**room
        diameter = 2 * edge if replace else edge

        def add(values: Any) -> IntArray:
            inside = np.fmin(np.fmax(_floats(values), self.low), self.high)
            steps = np.rint((inside - middle) * (edge / radius))
            # Integers, so that the bound is exact whatever was rounded on the way.
            return _whole(np.clip(steps, -edge, edge, out=steps).sum(keepdims=True))

        return Grid(l2=diameter, l1=diameter, units=radius / edge, shift=middle, numbers=1, full=1, add=add)

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        return noisy.reshape(())


@dataclass(frozen=True, slots=True)
class Ball:
    """A vector per record, clipped to an L2 norm of at most the radius; NaN counts as 0. Released: its sum."""

    radius: float
    dimension: int

    def __post_init__(self) -> None:
        _freeze(self, radius=_size("radius", self.radius), dimension=_count("dimension", self.dimension))

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

    def grid(self, room: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**room."""
        bits = min(room, _norm_bits(self.dimension))
        diameter = 2.0**room * (2 if neighbours == "replace-one" else 1)

        def add(values: Any) -> IntArray:
            steps = _into_ball(values, self.radius, bits)
            return _whole(np.ones(len(steps)) @ steps) << (room - bits)

        return Grid(
            l2=diameter,
            l1=_up(diameter * math.sqrt(self.dimension)),
            units=self.radius / 2.0**room,
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
        _freeze(self, sizes=tuple(_count("sizes", size) for size in self.sizes))
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

    def grid(self, room: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**room."""
        top = np.array(self.sizes) - 1
        first = np.cumsum((0, *self.sizes[:-1]))

        def add(values: Any) -> IntArray:
            cells = np.asarray(values).reshape(-1, len(self.sizes))
            cells = np.fmin(np.fmax(cells, 0), top).astype(np.int64) + first
            return np.bincount(cells.ravel(), minlength=self.dimension).astype(np.int64) << room

        edge = 2.0**room
        return Grid(
            l2=_up(edge * self.l2(neighbours)),
            l1=edge * self.l1(neighbours),
            units=1 / edge,
            numbers=self.dimension,
            full=self.dimension,
            add=add,
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
        _freeze(self, bound=_size("bound", self.bound))

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

    def grid(self, room: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**room."""
        # lambda s^2 reaches 1.67 times as far as s.
        edge = 2.0 ** (room - 1)
        # The second number is off its place by at most 0.51 steps (docs/proofs/gate.md, lemma 6).
        rounding = 2 if neighbours == "replace-one" else 1

        def add(values: Any) -> IntArray:
            s = _floats(values)
            inside = np.fmin(np.fmax(np.where(np.isnan(s), 0.0, s), -self.bound), self.bound)
            steps = np.rint(inside * (edge / self.bound))
            squares = np.rint(steps * steps * (_FREE / edge))
            return _whole(np.array([steps.sum(), squares.sum()]))

        return Grid(
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
        _freeze(self, radius=_size("radius", self.radius), dimension=_count("dimension", self.dimension))

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

    def grid(self, room: int, neighbours: Neighbours) -> Grid:
        """On integers up to 2**room."""
        d = self.dimension
        bits = min(room // 2, _norm_bits(d))
        once, _ = _halves(d)

        def add(values: Any) -> IntArray:
            steps = _into_ball(values, self.radius, bits)
            return _whole((steps.T @ steps).ravel()[once])

        edge = 4.0**bits
        return Grid(
            l2=_up(edge * self.l2(neighbours) / self.radius**2),
            l1=math.inf,
            units=self.radius**2 / edge,
            # Numbers with less noise weigh more in the lattice's slack: both halves count.
            numbers=d * d,
            full=d,
            add=add,
        )

    def natural(self, noisy: Float) -> Float:
        """The release in the shape that it is published in."""
        _, places = _halves(self.dimension)
        return noisy[places]


Geometry: TypeAlias = Interval | Ball | Cells | MeanSquare | Gram


def _into_ball(values: Any, radius: float, bits: int) -> Float:
    """Integers whose rows have norms of at most 2**bits; the norms are exact. Proof: docs/proofs/gate.md, lemma 6."""
    v = _floats(values)
    # Written so that NaN takes the long way too. Both ways give a record inside the cube the same integers.
    if not (v.max() <= radius and v.min() >= -radius):
        v = np.nan_to_num(v)
        peak = np.abs(v).max(axis=1, keepdims=True)
        v = np.where(peak > radius, v / np.where(peak > 0, peak, 1.0) * radius, v)
    edge = 2.0**bits
    steps: Float = v * (edge / radius)
    np.rint(steps, out=steps)
    # At most 2**53, so no order of addition and no fused multiplication can round it.
    squares = np.einsum("ij,ij->i", steps, steps)
    if squares.max() > edge * edge:
        shrink = edge * _SAFE / np.sqrt(np.maximum(squares, edge * edge))
        steps *= np.where(squares > edge * edge, shrink, 1.0)[:, None]
        np.trunc(steps, out=steps)
    return steps


@lru_cache(maxsize=64)
def _halves(d: int) -> tuple[IntArray, IntArray]:
    """Where each number of a symmetric matrix stands, the diagonal first, and which number stands where."""
    rows, others = np.triu_indices(d, 1)
    once = np.concatenate([np.arange(d) * (d + 1), rows * d + others])
    places = np.empty((d, d), dtype=np.int64)
    places.flat[once] = np.arange(once.size)
    places.T.flat[once] = np.arange(once.size)
    return once, places


def _norm_bits(dimension: int) -> int:
    # dimension * 4**bits must not exceed 2**53.
    return (53 - (dimension - 1).bit_length()) // 2


def _floats(values: Any) -> Float:
    return np.asarray(values, dtype=np.float64)


def _whole(sums: Float) -> IntArray:
    return sums.astype(np.int64)


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)


def _freeze(geometry: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(geometry, name, value)


def _finite(argument: str, value: float) -> float:
    if isinstance(value, bool) or not math.isfinite(value):
        raise InvalidInput(f"{argument} must be a finite number; declare it or compute it from earlier releases.")
    return float(value)


def _size(argument: str, value: float) -> float:
    value = _finite(argument, value)
    if not _SMALLEST <= value <= _LARGEST:
        raise InvalidInput(f"{argument} must lie between 1e-150 and 1e150; rescale the map.")
    return value


def _count(argument: str, value: int) -> int:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise InvalidInput(f"{argument} must be a positive integer.")
    return int(value)
