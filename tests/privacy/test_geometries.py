"""Neighbouring tables through the gate: exact integer sums must move by no more than the stated diameter."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.bounds import Bounds
from discreet.data.records import CHUNK_ROWS, Chunk
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.fixed_point import CAPACITY_BITS, GRID_BITS, SUM_BITS, norm_bits
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare
from discreet.privacy.sensitivity.table import CellSums, Pairs
from discreet.testing import frozen_noise, record_sums

BOUNDS = Bounds(outcome=(0, 1))
GAUSSIAN, PURE = Budget(epsilon=1, delta=1e-6), Budget(epsilon=1)
RELATIONS = ["replace-one", "add-remove"]
GEOMETRIES = [
    Interval(-1, 3),
    Interval(5, 7),
    Interval(-0.3, -0.1),
    Ball(1.0, 1),
    Ball(0.37, 3),
    Ball(7.0, 25),
    CellSums(11.0, 6),
    CellSums(3.0, 4, 5),
    CellSums(0.7, 1, 12),
    Pairs(1),
    Pairs(6),
    Cells((2,)),
    Cells((4, 2, 3)),
    MeanSquare(1.0),
    MeanSquare(0.123),
    Gram(1.0, 1),
    Gram(1.7, 2),
    Gram(0.9, 12),
]
AWKWARD = [math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1e308, -1e308, 1.7e308, 0.0, -0.0, 1e-160, 2.0**53]


class Table:
    """Records that hold the rows of a map, in chunks of a given size."""

    bounds = BOUNDS

    unit, public = None, ()

    def __init__(self, rows, *, chunk=CHUNK_ROWS, n=None):
        self.rows = np.asarray(rows)
        self.chunk = chunk
        self.n = len(self.rows) if n is None else n

    def group_sums(self, partition, formulas, progress=None):
        return None

    def sum(self, kernel, progress=None):
        total = 0
        for start in range(0, len(self.rows), self.chunk):
            x = self.rows[start : start + self.chunk]
            total = total + kernel(Chunk(y=np.zeros(len(x)), t=np.zeros(len(x)), x=x, e=None))
        return total


def sums(geometry, table, *, neighbours, budget=GAUSSIAN):
    """Integer sums before the noise, and the diameter that the noise was scaled to."""

    def mapped(chunk):
        return chunk.x if geometry.columns else chunk.x[:, 0]

    with frozen_noise(), record_sums() as recorded:
        Gate(table, budget=budget, neighbours=neighbours).ask(Query("sum", 0.5, geometry, mapped))
    ((_, _, exact, diameter),) = recorded
    return [int(number) for number in exact], diameter


def moved(geometry, first, second, *, pure):
    """Exact distance: squared L2 (Frobenius for matrices), or L1."""
    steps = [a - b for a, b in zip(first, second, strict=True)]
    if pure:
        return sum(abs(step) for step in steps)
    twice = geometry.dimension if isinstance(geometry, Gram) else len(steps)
    return sum(step**2 for step in steps[:twice]) + 2 * sum(step**2 for step in steps[twice:])


def allowed(diameter, *, pure):
    return Fraction(diameter) if pure else Fraction(diameter) ** 2


def size(geometry):
    """A length at which the geometry clips."""
    for name in ("radius", "bound", "high"):
        if hasattr(geometry, name):
            return abs(getattr(geometry, name))
    if isinstance(geometry, Pairs):
        return 1.0
    return max(geometry.sizes)


def record(geometry, seed):
    """A record of ordinary, extreme and impossible numbers, as a row."""
    rng, edge, columns = np.random.default_rng(seed), size(geometry), geometry.columns or 1
    ordinary = edge * rng.normal(0, rng.choice([0.1, 1.0, 1e3]), columns)
    extreme = rng.choice([*AWKWARD, edge, -edge, np.nextafter(edge, 9e9), edge / 2, edge / math.sqrt(columns)], columns)
    return np.where(rng.random(columns) < rng.choice([0.0, 0.2, 1.0]), extreme, ordinary)


def records(geometry):
    # Few columns are drawn number by number, so that a failure shrinks to a small one; many columns from a seed.
    columns = geometry.columns or 1
    seeded = st.integers(0, 2**32).map(lambda seed: record(geometry, seed))
    number = st.one_of(st.sampled_from([*AWKWARD, size(geometry), -size(geometry)]), st.floats(), st.floats(-5, 5))
    return seeded | st.lists(number, min_size=columns, max_size=columns) if columns <= 3 else seeded


CASES = [
    pytest.param(geometry, neighbours, pure, id=f"{geometry}-{neighbours}-{'pure' if pure else 'gaussian'}")
    for geometry in GEOMETRIES
    for neighbours in RELATIONS
    for pure in (False, True)
    if not (pure and isinstance(geometry, Gram))
]


@pytest.mark.parametrize(("geometry", "neighbours", "pure"), CASES)
@settings(max_examples=30)
@given(data=st.data())
def test_one_record_moves_the_sums_by_no_more_than_the_diameter(geometry, neighbours, pure, data):
    table = data.draw(st.lists(records(geometry), min_size=2, max_size=6))
    place = data.draw(st.integers(0, len(table) - 1))
    chunk = data.draw(st.sampled_from([1, 2, 5, CHUNK_ROWS]))
    if neighbours == "replace-one":
        other = [*table[:place], data.draw(records(geometry)), *table[place + 1 :]]
    else:
        other = table[:place] + table[place + 1 :]
    budget = PURE if pure else GAUSSIAN
    first, diameter = sums(geometry, Table(table, chunk=chunk), neighbours=neighbours, budget=budget)
    second, again = sums(geometry, Table(other, chunk=chunk), neighbours=neighbours, budget=budget)
    # The noise of the two tables must be the same, or it would tell them apart by itself.
    assert diameter == again
    assert moved(geometry, first, second, pure=pure) <= allowed(diameter, pure=pure)


def extremes(geometry):
    """Records among which two lie furthest apart, or nearly so."""
    edge, columns = size(geometry), geometry.columns or 1
    if isinstance(geometry, Cells):
        return [np.zeros(columns), np.array(geometry.sizes) - 1.0]
    if isinstance(geometry, CellSums):
        shapes = [np.zeros(geometry.width), edge * np.eye(geometry.width)[0], np.full(geometry.width, edge)]
        return [np.append(cell, sign * v) for v in shapes for cell in (0, geometry.cells - 1) for sign in (1, -1)]
    if isinstance(geometry, Pairs):
        return [[cell, y, w] for cell in (0.0, geometry.cells - 1.0) for y in (-1.0, 0.0, 1.0) for w in (1.0, 0.3, 0.0)]
    if isinstance(geometry, Interval):
        return [[geometry.low], [geometry.high]]
    if isinstance(geometry, MeanSquare):
        return [[s * edge] for s in np.linspace(-1, 1, 41)]
    even = np.full(columns, 1 / math.sqrt(columns))
    return [np.zeros(columns), edge * np.eye(columns)[0], edge * np.eye(columns)[-1], edge * even, -edge * even]


@pytest.mark.parametrize(("geometry", "neighbours", "pure"), CASES)
def test_a_directed_search_nearly_reaches_the_diameter_and_never_exceeds_it(geometry, neighbours, pure):
    budget, filler = PURE if pure else GAUSSIAN, extremes(geometry)[0]
    reached = []
    for row in extremes(geometry):
        rows = [filler, row] if neighbours == "replace-one" else [row]
        reached.append(sums(geometry, Table(rows, n=16), neighbours=neighbours, budget=budget))
    diameter = reached[0][1]
    distances = [
        moved(geometry, first, second, pure=pure)
        for first, _ in reached
        for second, _ in (reached if neighbours == "replace-one" else [([0] * len(first), diameter)])
    ]
    furthest = Fraction(max(distances)) / allowed(diameter, pure=pure)
    assert furthest <= 1
    assert furthest >= (Fraction(9, 10) if pure else Fraction(81, 100))


@pytest.mark.parametrize(("geometry", "neighbours", "pure"), CASES)
@pytest.mark.parametrize("n", [10, 3_000, 10**6, 14 * 10**6, 10**9])
def test_the_diameter_on_the_grid_is_the_stated_one(geometry, neighbours, pure, n):
    grid_bits = min(GRID_BITS, SUM_BITS - (n - 1).bit_length())
    grid = geometry.grid(grid_bits, neighbours)
    on_grid, stated = (grid.l1, geometry.l1) if pure else (grid.l2, geometry.l2)
    # A few grid steps more at most, and never less than what exact arithmetic gives.
    assert on_grid * grid.unit == pytest.approx(stated(neighbours), rel=4 * 2.0 ** -min(grid_bits, 40))
    assert on_grid * grid.unit >= stated(neighbours) * (1 - 1e-15)


@pytest.mark.parametrize(("geometry", "neighbours", "pure"), CASES)
@pytest.mark.parametrize("bits", [4, 20, 24, CAPACITY_BITS, 33])
def test_sums_of_all_records_stay_below_two_to_the_61(geometry, neighbours, pure, bits):
    # As many records as the grid is laid out for, all of them as far out as they can be.
    n = 2**bits if neighbours == "replace-one" else 2**CAPACITY_BITS
    for row in extremes(geometry):
        table = Table([row], n=n)
        exact, _ = sums(geometry, table, neighbours=neighbours, budget=PURE if pure else GAUSSIAN)
        assert max(abs(number) for number in exact) * n <= 2**61


@pytest.mark.parametrize("geometry", GEOMETRIES)
@settings(max_examples=20)
@given(data=st.data())
def test_a_full_chunk_of_the_same_record_is_that_many_times_the_record(geometry, data):
    row = data.draw(records(geometry))
    values = np.asarray([row] if geometry.columns else row)
    grid = geometry.grid(GRID_BITS, "replace-one")
    one, many = grid.add(values), grid.add(np.repeat(values, CHUNK_ROWS, axis=0))
    assert [int(number) * CHUNK_ROWS for number in one] == [int(number) for number in many]


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("wide", [0.5, 3.0])
def test_sums_are_bit_identical_in_any_order_chunking_and_memory_layout(geometry, neighbours, wide):
    rng = np.random.default_rng(3)
    rows = rng.normal(0, wide * size(geometry), (5_000, geometry.columns or 1))
    rows[rng.random(rows.shape) < 0.01] = np.nan
    rows[rng.random(rows.shape) < 0.01] = np.inf
    expected, _ = sums(geometry, Table(rows), neighbours=neighbours)
    for other in (rows[rng.permutation(len(rows))], np.asfortranarray(rows), rows[::-1]):
        for chunk in (1_237, CHUNK_ROWS):
            assert sums(geometry, Table(other, chunk=chunk), neighbours=neighbours)[0] == expected
    assert sums(geometry, Table(rows[:50], chunk=1), neighbours=neighbours) == sums(
        geometry, Table(rows[:50]), neighbours=neighbours
    )


def test_under_add_remove_the_grid_does_not_depend_on_the_number_of_records():
    rows = [[0.5, 0.5]]
    few, many = (sums(Ball(1.0, 2), Table(rows, n=n), neighbours="add-remove") for n in (10, 2**CAPACITY_BITS))
    assert few == many
    few, many = (sums(Ball(1.0, 2), Table(rows, n=n), neighbours="replace-one") for n in (10, 2**CAPACITY_BITS))
    assert few != many


def test_the_second_moment_is_free_and_no_larger_factor_would_be():
    s = np.linspace(-1, 1, 2_001)
    golden = (1 + math.sqrt(5)) / 2

    def diameter(factor):
        return np.sqrt(((s[:, None] - s) ** 2 + factor**2 * (s[:, None] ** 2 - s**2) ** 2).max())

    assert diameter(golden**2.5 / 2) == pytest.approx(2, abs=1e-12)
    assert diameter(1.01 * golden**2.5 / 2) > 2.001


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("pure", [False, True])
def test_rounding_a_second_moment_is_paid_for_on_every_pair_of_a_small_grid(neighbours, pure):
    grid_bits, geometry = 9, MeanSquare(1.0)
    grid = geometry.grid(grid_bits, neighbours)
    points = np.array([grid.add(np.array([s])) for s in np.arange(-256, 257) / 256])
    others = points if neighbours == "replace-one" else np.zeros((1, 2), dtype=np.int64)
    steps = np.abs(points[:, None] - others)
    if pure:
        furthest, radius = Fraction(int(steps.sum(axis=2).max())), grid.l1
    else:
        furthest, radius = Fraction(int((steps**2).sum(axis=2).max())), grid.l2
    assert furthest <= allowed(radius, pure=pure)
    # Without the steps that rounding is charged, some pairs would be too far apart.
    if neighbours == "replace-one" and not pure:
        assert furthest > (2 * 256) ** 2


@pytest.mark.parametrize("dimension", [1, 2, 3, 60, 64, 65, 1_000, 8_192, 8_193, 10**6])
def test_norms_are_exact_in_float64_in_any_dimension(dimension):
    bits = norm_bits(dimension)
    assert dimension * 4**bits <= 2**53 < dimension * 4 ** (bits + 2)
