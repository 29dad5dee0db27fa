"""Formulas and thresholds: what an engine is told is, bit for bit, what the gate's own arithmetic does."""

import cloudpickle
import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.cells import equal_steps, thresholds
from discreet.data.bounds import Bounds, Range
from discreet.data.expressions import ByCell, E, Y, by_arm, number
from discreet.data.partition import Partition
from discreet.data.records import Chunk
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate, Sums
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Cells, Interval
from discreet.privacy.sensitivity.table import CellSums, Pairs
from discreet.testing import frozen_noise, record_sums

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(FINITE, FINITE).filter(lambda ends: 1e-300 < ends[1] - ends[0] < 1e300),
    st.integers(2, 9),
    st.lists(FINITE, max_size=20),
)
def test_comparing_raw_values_with_thresholds_is_cutting_encoded_ones(ends, cuts, others):
    bounds = Bounds(outcome=(0, 1), covariates=[Range(*ends)])
    (cut,) = Partition.of({0: cuts}, bounds).cuts
    spec = bounds.columns[0]
    edges = np.array(thresholds(cut, spec))
    # Next to the largest number there is none.
    with np.errstate(over="ignore"):
        beside = [np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)]
    near = np.concatenate([edges, *beside, cut.edges, ends, others])
    near = near[np.isfinite(near)]
    np.testing.assert_array_equal(np.searchsorted(edges, near, side="right"), cut.parts(spec.encode(near.copy()), spec))


DECIMALS = st.integers(-500, 500).map(lambda tenths: tenths / 10)


@settings(max_examples=100, deadline=None)
@given(st.tuples(DECIMALS, DECIMALS).filter(lambda ends: ends[0] < ends[1]), st.integers(2, 20), st.integers(0, 2**32))
def test_dividing_by_a_width_is_comparing_with_thresholds_where_it_is_used(ends, cuts, seed):
    bounds = Bounds(outcome=(0, 1), covariates=[Range(*ends)])
    (cut,), spec = Partition.of({0: cuts}, bounds).cuts, bounds.columns[0]
    steps = equal_steps(cut, spec)
    if steps is None:
        return
    edges = np.array(thresholds(cut, spec))
    around = [np.nextafter(edges, way) for way in (-np.inf, np.inf)]
    x = np.concatenate([edges, *around, np.random.default_rng(seed).uniform(*ends, 50), [steps.low, steps.high]])
    inside = x[(steps.low <= x) & (x < steps.high)]
    parts = np.floor((inside - steps.origin) / steps.width) + steps.first
    np.testing.assert_array_equal(parts, np.searchsorted(edges, inside, side="right"))
    assert spec.low == steps.low < edges[0] <= edges[-1] < steps.high <= spec.high


def test_ranges_whose_edges_are_rounded_are_compared_with_thresholds():
    bounds = Bounds(outcome=(0, 1), covariates=[Range(0, 10), Range(0.1, 0.7), Range(0, 1), Range(0, 1)])
    cuts = Partition.of({0: 10, 1: 7, 2: 1, 3: [0, 0.5, 0.6, 1]}, bounds).cuts
    steps = [equal_steps(cut, bounds.columns[cut.column]) for cut in cuts]
    assert steps[0] is not None
    assert steps[1:] == [None, None, None]


GEOMETRIES = [
    (Pairs(6), (Y, number(1.0)), False),
    (Pairs(6), (Y, by_arm(number(0.3) / (number(1.0) - E), number(0.2) / E)), False),
    (CellSums(1.7, 6), (Y * number(2.3) + number(0.1),), False),
    (Cells((6,)), (), False),
    (Interval(0.0, 1.0), (Y * Y,), True),
    (Interval(-0.5, 0.25), (Y,), True),
]
BOUNDS = Bounds(outcome=(-1.3, 2.9), covariates={"x": (0.1, 0.7)}, propensity=(0.2, 0.7))
PARTITION = Partition.of({"x": 3}, BOUNDS)


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return {
        "y": np.where(rng.random(n) < 0.5, rng.normal(0, 3, n), rng.choice(np.array([-1.3, 2.9, 0.8, -0.0]), n)),
        "t": rng.permutation(np.arange(n) % 2),
        "x": rng.choice(np.concatenate([np.linspace(0.1, 0.7, 7), rng.random(5)]), n),
        "e": rng.uniform(0.2, 0.7, n),
    }


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(GEOMETRIES), st.sampled_from(["replace-one", "add-remove"]), st.integers(0, 10**6))
def test_engines_add_up_the_integers_of_the_grid(case, neighbours, seed):
    geometry, numbers, alone = case
    arms = geometry.dimension in (12, 6) and not alone
    map_ = ByCell(PARTITION if arms else None, arms, numbers, alone)
    found = []
    columns = rows(300, seed)
    for table in (
        pl.DataFrame(columns),
        pl.LazyFrame(columns),
        duckdb.connect().from_arrow(pl.DataFrame(columns).to_arrow()),
    ):
        with (
            open_table(table, TableSpec(outcome="y", treatment="t", bounds=BOUNDS, propensity="e")) as records,
            frozen_noise(),
            record_sums() as recorded,
        ):
            gate = Gate(records, budget=Budget(epsilon=1.0), neighbours=neighbours)
            gate.ask(Query("sums", 1.0, geometry, map_))
        found.append(recorded[0][2])
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_a_clip_is_left_out_only_where_it_does_nothing():
    assert Y.clip(-1, 1) is Y
    assert Y.clip(-0.5, 1).op == "clip"
    assert (Y * Y).clip(0, 1).op == "times"
    assert (Y + number(1.0)).clip(0, 1.9).op == "clip"
    assert E.clip(0, 1).op == "clip"
    # Zero times what overflows is NaN, which no end shows.
    huge = (Y + number(1.0)) * number(1e308) * number(1e308)
    assert (huge * number(0.0)).clip(-1, 1).op == "clip"
    assert (number(2.0) * number(3.0)).constant == 6.0


def test_dividing_by_a_power_of_two_is_multiplying():
    chunk = Chunk(np.random.default_rng(0).normal(size=1_000), np.zeros(1_000), np.empty((1_000, 0)), None)
    for power in (0.25, -0.25):
        assert (Y / number(power)).op == "times"
        np.testing.assert_array_equal((Y / number(power))(chunk), chunk.y / power)
    assert (Y / number(0.3)).op == "over"


def test_the_kernel_of_a_pass_can_be_sent_elsewhere_and_is_pure():
    chunk = Chunk(np.linspace(-1, 1, 50), np.arange(50) % 2.0, np.empty((50, 0)), None)
    query = Query("mean", 1.0, Interval(-1.0, 1.0), lambda c: c.y)
    kernel = Sums((query,), (query.geometry.grid(20, "replace-one"),))
    sent = cloudpickle.loads(cloudpickle.dumps(kernel))
    for _ in range(2):
        np.testing.assert_array_equal(sent(chunk), kernel(chunk))


def test_prepared_sums_are_asked_for_once_and_cost_nothing_before():
    class Counted:
        bounds, unit, public, n = BOUNDS, None, (), 50
        passes = 0

        def sum(self, kernel, progress=None):
            self.passes += 1
            return kernel(Chunk(np.linspace(-1, 1, 50), np.arange(50) % 2.0, np.empty((50, 0)), None))

        def group_sums(self, partition, formulas, progress=None):
            return None

    records = Counted()
    gate = Gate(records, budget=Budget(epsilon=1.0))
    first = Query("first", 0.5, Interval(-1.0, 1.0), ByCell(None, False, (Y,), alone=True))
    second = Query("second", 0.5, Pairs(1), ByCell(None, False, (Y, number(1.0))))
    gate.prepare(first, second)
    assert (records.passes, gate.spent, gate.events) == (1, 0.0, ())
    with frozen_noise():
        gate.ask(first)
        (pairs,) = gate.ask(second)
    assert records.passes == 1
    assert gate.spent == pytest.approx(1.0)
    assert pairs.value.sum() == pytest.approx(50)


def test_a_map_by_cell_without_numbers_is_the_cell_alone():
    chunk = Chunk(np.zeros(3), np.array([0.0, 1.0, 1.0]), np.array([[-1.0], [0.0], [1.0]]), None)
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1)])
    thirds = Partition.of({0: 3}, bounds)
    np.testing.assert_array_equal(ByCell(thirds, False)(chunk), [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(ByCell(thirds, True)(chunk), [0.0, 3.0, 5.0])
    np.testing.assert_array_equal(ByCell(None, True)(chunk), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(ByCell(None, False, (Y,))(chunk), np.zeros((3, 2)))


@pytest.mark.parametrize("ends", [(-1.7e308, -1e308), (1e308, 1.7e308), (-8e307, 8e307), (-1e-320, 1e-320)])
def test_thresholds_are_found_next_to_the_largest_and_the_smallest_numbers(ends):
    bounds = Bounds(outcome=(0, 1), covariates=[Range(*ends)])
    (cut,), spec = Partition.of({0: 8}, bounds).cuts, bounds.columns[0]
    edges = np.array(thresholds(cut, spec))
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), ends])
    np.testing.assert_array_equal(np.searchsorted(edges, near, side="right"), cut.parts(spec.encode(near.copy()), spec))
    assert len(edges) == 7
