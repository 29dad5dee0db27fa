"""Values and edges of the gate and its sensitivity sets that mutants showed to be unprotected."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.data._arrays import IntArray
from discreet.data.expressions import ByCell, Y, number
from discreet.data.partition import Partition
from discreet.data.records import Chunk, Unit
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy import gate as gate_module
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import audit_of
from discreet.privacy.noise import MIN_SCALE
from discreet.privacy.query import Query
from discreet.privacy.sensitivity import fixed_point, sets, table
from discreet.privacy.sensitivity.fixed_point import (
    LARGEST,
    SMALLEST,
    _least_scale,
    capacity_bits,
    noise_sd,
    plan_noise,
    sd_of,
    size_of,
)
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare, Statistic
from discreet.privacy.sensitivity.table import MOST_NUMBERS, CellSums, Pairs
from discreet.testing import frozen_noise
from tests.privacy import test_gate
from tests.privacy.test_gate import RECORDS, Counted


def test_every_record_counts_as_one():
    def ones(chunk: Chunk) -> IntArray:
        return np.array([(gate_module.COUNTED(chunk) == 1.0).sum()], dtype=np.int64)

    assert RECORDS.sum(ones) == [RECORDS.n]


def test_the_ends_of_what_can_be_squared_are_allowed():
    assert (size_of("radius", SMALLEST), size_of("radius", LARGEST)) == (1e-150, 1e150)
    for value in (SMALLEST / 2, LARGEST * 2):
        with pytest.raises(InvalidInput, match="radius"):
            size_of("radius", value)


def test_a_record_may_have_as_many_numbers_as_are_said_to_be_exact():
    assert CellSums(1.0, 2, MOST_NUMBERS).width == 4096
    with pytest.raises(InvalidInput, match="radius"):
        CellSums(0.0, 2)
    with pytest.raises(InvalidInput, match="width"):
        CellSums(1.0, 2, MOST_NUMBERS + 1)


def test_bits_are_counted_for_the_number_of_records_itself():
    assert [capacity_bits("replace-one", n) for n in (1, 2**20, 2**20 + 1)] == [0, 20, 21]


def test_a_gate_of_single_records_has_one_row_to_a_unit():
    assert Gate(RECORDS, budget=Budget(epsilon=1.0)).most_rows == 1


def test_a_sample_is_asked_for_by_its_part_and_its_expected_size(monkeypatch):
    asked = []
    monkeypatch.setattr(type(RECORDS), "sample", lambda *arguments, **more: asked.append((*arguments, more)))
    assert Gate(RECORDS, budget=Budget(epsilon=1.0)).sampled(0.25, 0.1) is None
    assert asked == [(RECORDS, 0.25, 0.25 * RECORDS.n, None, {"by_place": False})]


def test_arms_are_kept_or_added_up_as_a_map_says():
    cells = np.array([[1, 2], [3, 4]])
    for arms, sums in ((True, [4, 6]), (False, [10])):
        np.testing.assert_array_equal(gate_module._by_arm(cells, ByCell(None, arms)), sums)


def test_a_statistic_far_from_zero_has_a_coarser_grid_and_states_what_float64_cannot_tell_apart():
    grid = Statistic(1.0, 2.0**30, 1, "gate.md").grid(40, "replace-one")
    assert grid.grid_bits == 31
    assert grid.l2 == math.nextafter(2.0**31 + 2 * (1 + 2.0**11), math.inf)


THREE_Y = Y * number(3.0)
# Not symmetric, lest sums of both arms be zero.
CHUNK = SimpleNamespace(y=np.linspace(-1, 0.6, 501), t=np.arange(501) % 2.0, x=np.zeros((501, 0)), e=None)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("geometry", "formulas", "rows"),
    [
        (Interval(-0.5, 0.75), (Y,), CHUNK.y),
        (CellSums(0.7, 2), (Y,), np.column_stack([CHUNK.t, CHUNK.y])),
        (Pairs(2), (THREE_Y, Y), np.column_stack([CHUNK.t, 3 * CHUNK.y, CHUNK.y])),
        (Pairs(2), (Y, THREE_Y), np.column_stack([CHUNK.t, CHUNK.y, 3 * CHUNK.y])),
        (Cells((2,)), (), CHUNK.t),
    ],
    ids=lambda value: type(value).__name__,
)
def test_formulas_by_cell_add_up_to_the_integers_of_the_grid(geometry, formulas, rows, neighbours):
    grid = geometry.grid(20, neighbours)
    cells = CHUNK.t.astype(np.int64)
    sums = [np.bincount(cells, step(CHUNK)).astype(np.int64) for step in grid.by_cell.steps(formulas)]
    np.testing.assert_array_equal(grid.by_cell.arrange(np.bincount(cells), sums), grid.add(rows))


def test_one_whole_weight_is_all_steps_of_a_grid():
    grid = Pairs(1).grid(20, "add-remove")
    assert grid.units == 2.0**-20
    np.testing.assert_array_equal(grid.add(np.array([[0.0, 1.0, 1.0]])), [2**20, 0])


def test_noise_is_never_finer_than_the_samplers_take_on_both_halves_of_a_matrix():
    grid = Interval(0, 1).grid(20, "add-remove")
    assert _least_scale(grid, 1.0, pure=True, aside=True) == MIN_SCALE
    assert _least_scale(grid, 1.0, pure=False, aside=False) == 2 * MIN_SCALE


def test_what_is_taken_back_from_norms_is_that_of_the_proof():
    assert fixed_point.SAFE == 1 - 2.0**-40 < 1
    assert ((1 + math.sqrt(5)) / 2) ** 2.5 / 2 == sets._FREE


def test_one_record_is_in_one_cell_of_every_factor():
    assert (Cells((2, 3)).l1("add-remove"), Cells((2, 3)).l1("replace-one")) == (2.0, 4.0)


@pytest.mark.parametrize("make", [lambda: CellSums(1.0, 2, 0), lambda: CellSums(1.0, 0), lambda: Pairs(0)])
def test_nothing_can_be_counted_in_no_cells(make):
    with pytest.raises(InvalidInput, match="positive integer"):
        make()


@pytest.mark.parametrize("low", [True, math.nan, -math.inf])
def test_an_end_of_an_interval_is_a_finite_number(low):
    with pytest.raises(InvalidInput, match="low must be a finite number"):
        Interval(low, 2.0)


def test_planned_noise_hides_the_lattice_however_large_the_budget():
    facts = Interval(0, 1), 1.0, 1e6, False, "replace-one"
    assert noise_sd(*facts, 10) == sd_of(*plan_noise(*facts, 4, True), False)
    assert noise_sd(*facts, 10) > sd_of(*plan_noise(*facts, 4, False), False)


def test_a_statistic_is_clipped_on_both_sides_and_nan_is_zero():
    grid = Statistic(1.0, 2.0, 3, "gate.md").grid(20, "replace-one")
    np.testing.assert_array_equal(grid.add(np.array([[5.0, -5.0, math.nan]])) * grid.units, [2.0, -2.0, 0.0])


def test_a_statistic_moves_further_in_l1_by_the_root_of_its_dimension():
    grid = Statistic(1.0, 2.0, 4, "gate.md").grid(20, "replace-one")
    assert grid.l1 == math.nextafter(2 * grid.l2, math.inf)


class Grouped(Counted):
    """Records whose engine adds up by cell."""

    def group_sums(self, partition, formulas, on_rows=None):
        chunk = SimpleNamespace(y=test_gate.Y, t=test_gate.T, x=test_gate.X, e=None)
        tables = [np.ones(self.n), *(formula(chunk) for formula in formulas)]
        return [np.bincount(chunk.t, table).astype(np.int64)[None, :] for table in tables]


def test_sums_of_an_engine_are_released_as_those_of_a_pass():
    query = Query("outcome", 0.5, Interval(-0.5, 0.75), ByCell(None, False, (Y,), alone=True))
    with frozen_noise():
        values = [
            float(Gate(records, budget=Budget(epsilon=1.0, delta=1e-6)).ask(query)[0].value)
            for records in (Grouped(), Counted())
        ]
    assert values[0] == values[1] != 0.0


def test_a_gate_of_units_knows_their_most_rows_and_names_the_audit_of_its_proof():
    frame = test_gate.RECORDS
    units = replace(frame, unit=Unit("patient", 4))
    assert Gate(units, budget=Budget(epsilon=1.0)).most_rows == 4
    with frozen_noise():
        gate = Gate(frame, budget=Budget(epsilon=1.0, delta=1e-6))
        gate.ask(Query("sum", 1.0, Interval(-1.0, 1.0), lambda chunk: chunk.y))
        assert gate.guarantee(proof="ate.md").audit == audit_of("ate.md", "replace-one", pure=False) is not None


def test_mean_and_square_move_less_under_add_remove():
    one = MeanSquare(2.0)
    assert one.l1("add-remove") == 2.0 * (1 + sets._FREE)
    assert one.l1("replace-one") == 2.0 * (1 + sets._FREE + 1 / (4 * sets._FREE))


def test_an_interval_that_reaches_too_far_below_zero_is_refused_too():
    with pytest.raises(InvalidInput):
        Interval(-2 * LARGEST, 0.0)


FREE = ((1 + math.sqrt(5)) / 2) ** 2.5 / 2
# Of each set: how far sums of neighbours are apart in L2 and in L1, by replacing and by adding a record.
MOVES = [
    (Interval(-0.5, 0.75), (1.25, 1.25), (0.75, 0.75)),
    (Interval(-3.0, 0.75), (3.75, 3.75), (3.0, 3.0)),
    (Ball(1.5, 4), (3.0, 6.0), (1.5, 3.0)),
    (Cells((2, 3)), (2.0, 4.0), (math.sqrt(2), 2.0)),
    (MeanSquare(2.0), (4.0, 2 * (1 + FREE + 1 / (4 * FREE))), (2 * math.hypot(1, FREE), 2 * (1 + FREE))),
    (CellSums(1.5, 3, 2), (3.0, 3.0), (1.5, 1.5)),
    (Pairs(3), (math.sqrt(2), 2.0), (1.0, 1.0)),
]


@pytest.mark.parametrize(("geometry", "replaced", "added"), MOVES, ids=lambda value: type(value).__name__)
def test_sums_move_as_far_as_the_proofs_say_and_grids_round_that_up_by_little(geometry, replaced, added):
    for neighbours, (l2, l1) in (("replace-one", replaced), ("add-remove", added)):
        assert (geometry.l2(neighbours), geometry.l1(neighbours)) == pytest.approx((l2, l1), rel=1e-12)
        grid = geometry.grid(20, neighbours)
        # In steps of the grid, of which there are about a million to the largest number.
        steps = np.min(np.asarray(grid.units, dtype=float)) if not isinstance(geometry, MeanSquare) else grid.units[0]
        assert 2.0**-22 < steps / getattr(geometry, "radius", getattr(geometry, "bound", 1.0)) < 2.0**-17
        for stated, moved in ((grid.l2, l2), (grid.l1, l1)):
            assert moved / steps <= stated * (1 + 1e-12)
            assert stated <= moved / steps + 4.0


def test_grids_of_cells_have_two_to_the_bits_steps_to_their_radius():
    assert CellSums(1.5, 3, 2).grid(20, "add-remove").units == 1.5 * 2.0**-20
    assert MeanSquare(2.0).grid(20, "add-remove").l2 == 2.0**19 * math.hypot(1, FREE) + 1
    assert MeanSquare(2.0).grid(20, "replace-one").l2 == 2.0**20 + 2


def test_a_statistic_within_twice_its_move_keeps_all_bits_and_a_small_move_needs_more():
    bits = sets._STATISTIC_BITS
    assert Statistic(1.0, 1.0, 1, "gate.md").grid(bits, "replace-one").grid_bits == bits
    assert Statistic(0.001, 2.0, 1, "gate.md").grid(bits, "replace-one").grid_bits == bits - 11


@pytest.mark.parametrize("ends", [(math.nan, 1.0), (0.0, True), (0.0, math.nan), (0.0, math.inf)])
def test_both_ends_of_an_interval_are_numbers(ends):
    with pytest.raises(InvalidInput, match="must be a finite number"):
        Interval(*ends)


def test_an_interval_may_be_as_short_as_can_be_squared():
    assert Interval(0, SMALLEST).high == SMALLEST
    assert isinstance(Interval(0, 1).high, float)
    with pytest.raises(InvalidInput):
        Interval(0.0, math.nextafter(SMALLEST, 0.0))


def test_rows_beyond_a_ball_end_just_inside_it_and_those_on_it_stay():
    # The last one is beyond it by less than any rounding, so that only what the proof takes back brings it inside.
    rows = np.array([[3.0, 4.0], [0.6, 0.8], [1.0, 0.0], [0.0, -1.0], [0.3, 0.1], [1.0, 1.0], [1.0, 2.0**-20]])
    steps = fixed_point.into_ball(rows, 1.0, 20).copy()
    squares = (steps * steps).sum(axis=1)
    assert squares.max() <= 2.0**40
    np.testing.assert_array_equal(steps[2:5], np.rint(rows[2:5] * 2.0**20))
    # Rounded towards zero, each number loses less than a step.
    assert (2.0**20 - np.sqrt(squares[[0, 1, 5]]) < 2.0).all()
    np.testing.assert_allclose(steps[[0, 5]], np.array([[0.6, 0.8], [0.5**0.5, 0.5**0.5]]) * 2.0**20, atol=1.01)


def test_rows_beyond_an_octahedron_end_just_inside_it_and_those_on_it_stay():
    edge = 2.0**20
    rows = np.array([[0.5, -0.5], [0.75, 0.75], [-2.0, 2.0], [0.25, 0.25], [math.nan, 1.0], [1.0, 2.0**-20]])
    found = table._into_octahedron(rows, 1.0, edge)
    np.testing.assert_array_equal(found[[0, 3, 4]], np.array([[0.5, -0.5], [0.25, 0.25], [0.0, 1.0]]) * edge)
    sizes = np.abs(found).sum(axis=1)
    assert (sizes <= edge).all()
    assert (edge - sizes[[1, 2, 5]] <= 4.0).all()


def test_a_scale_may_be_as_large_as_samplers_take(monkeypatch):
    facts = Interval(0, 1), 1.0, 1e-3, False, "replace-one", 10, False
    grid, scale = plan_noise.__wrapped__(*facts)
    monkeypatch.setattr(fixed_point, "MAX_SCALE", scale)
    assert plan_noise.__wrapped__(*facts)[0].grid_bits == grid.grid_bits
    monkeypatch.setattr(fixed_point, "MAX_SCALE", math.nextafter(scale, 0.0))
    assert plan_noise.__wrapped__(*facts)[0].grid_bits == grid.grid_bits - 1


class Asked(Counted):
    """Records whose engine says what it was asked for, and answers with what a pass would find."""

    def group_sums(self, partition, formulas, on_rows=None):
        self.asked = partition
        chunk = SimpleNamespace(y=test_gate.Y, t=test_gate.T, x=test_gate.X, e=None)
        cells = np.zeros(self.n, dtype=np.int64) if partition is None else partition.cells(test_gate.X)
        count = 1 if partition is None else partition.count
        tables = [np.ones(self.n), *(formula(chunk) for formula in formulas)]
        keys = 2 * cells + test_gate.T
        return np.stack([np.bincount(keys, each, 2 * count).astype(np.int64).reshape(count, 2) for each in tables])


def by(cuts):
    return Partition.of({0: cuts}, RECORDS.bounds)


def cells_of(partition, name="cells"):
    return Query(name, 0.25, Cells((partition.count,)), ByCell(partition, False))


class Drawn:
    """Cells that no engine knows of: those of something that was released, say."""

    def cells(self, x):
        return (x[:, 0] > 0.25).astype(np.int64)


NOT_BY_CELL = {
    "cells that no engine knows of": (Query("cells", 0.25, Cells((2,)), ByCell(Drawn(), False)),),
    "two partitions": (cells_of(by(2), "first"), cells_of(by(3), "second")),
    "a function": (cells_of(by(2)), Query("sum", 0.25, Interval(-1.0, 1.0), lambda chunk: chunk.y)),
    "a set that has no such sums": (Query("sum", 0.25, MeanSquare(1.0), ByCell(None, False, (Y,), alone=True)),),
}


@pytest.mark.parametrize("queries", NOT_BY_CELL.values(), ids=NOT_BY_CELL)
def test_an_engine_adds_up_by_one_partition_and_what_it_cannot_is_left_to_a_pass(queries):
    records, plain = Asked(), Counted()
    with frozen_noise():
        found = Gate(records, budget=Budget(epsilon=1.0, delta=1e-6)).ask(*queries)
        expected = Gate(plain, budget=Budget(epsilon=1.0, delta=1e-6)).ask(*queries)
    assert not hasattr(records, "asked")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.value, other.value)


def test_an_engine_is_asked_by_the_partition_of_the_maps():
    records, plain = Asked(), Counted()
    queries = (cells_of(by(2)), Query("sum", 0.25, Interval(-1.0, 1.0), ByCell(None, False, (Y,), alone=True)))
    with frozen_noise():
        found = Gate(records, budget=Budget(epsilon=1.0, delta=1e-6)).ask(*queries)
        expected = Gate(plain, budget=Budget(epsilon=1.0, delta=1e-6)).ask(*queries)
    assert records.asked == by(2)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.value, other.value)


def test_a_record_is_added_to_its_own_cell_and_to_the_nearest_where_there_is_none():
    cells = [-3.0, 0.0, 1.0, 2.0, 9.0, math.nan]
    numbers, sizes = [1.0, 0.5, 0.25, -0.5, 0.125, 0.25], np.array([3, 1, 2]) * 2**20
    sums = np.array([1.75, 0.25, -0.375]) * 2**20
    np.testing.assert_array_equal(CellSums(1.0, 3).grid(20, "add-remove").add(np.column_stack([cells, numbers])), sums)
    pairs = Pairs(3).grid(20, "add-remove").add(np.column_stack([cells, numbers, np.full(6, 0.5)])).reshape(3, 2)
    np.testing.assert_array_equal(pairs.sum(axis=1), sizes / 2)
    np.testing.assert_array_equal(pairs @ [1, -1], sums / 2)
    np.testing.assert_array_equal(Cells((3,)).grid(20, "add-remove").add(np.array(cells)[:, None]), sizes)


# Of each set: how many numbers are released with noise of their own, and how many are published.
NUMBERS = [
    (Interval(0, 1), 1, 1),
    (Ball(1.0, 4), 4, 4),
    (Cells((2, 3)), 5, 5),
    (MeanSquare(1.0), 2, 2),
    (CellSums(1.0, 3, 2), 6, 6),
    (Pairs(3), 6, 6),
    (Statistic(1.0, 2.0, 3, "gate.md"), 3, 3),
]


@pytest.mark.parametrize(("geometry", "drawn", "published"), NUMBERS, ids=lambda value: type(value).__name__)
def test_the_lattice_is_paid_for_in_every_number_that_is_released(geometry, drawn, published):
    grid = geometry.grid(20, "replace-one")
    assert (grid.numbers, grid.full, geometry.dimension) == (drawn, published, drawn)
    assert grid.grid_bits <= 20


def test_a_gate_adds_up_what_it_has_released():
    gate = Gate(RECORDS, budget=Budget(epsilon=1.0, delta=1e-6))
    with frozen_noise():
        for name, share in (("first", 0.25), ("second", 0.5)):
            gate.ask(Query(name, share, Interval(-1.0, 1.0), lambda chunk: chunk.y))
    assert [event.name for event in gate.events] == ["first", "second"]
    assert gate.spent == pytest.approx(0.75)


def test_bits_of_grids_are_those_of_the_proof():
    assert (fixed_point.GRID_BITS, fixed_point.CAPACITY_BITS, fixed_point.SUM_BITS) == (40, 27, 61)
    assert fixed_point.ROUNDING == 1e-9
    assert sets._STATISTIC_BITS == 61


def test_an_interval_states_how_far_replacing_moves_it_only_where_it_is_not_centred():
    assert Interval(-0.5, 0.75).grid(20, "replace-one").replaced is None
    assert Interval(-0.5, 0.75).grid(20, "add-remove").replaced == 2.0**20 - np.rint(-0.5 / 0.75 * 2.0**20)


def test_only_cells_of_one_factor_are_those_of_a_partition():
    assert Cells((2,)).grid(20, "replace-one").by_cell is not None
    assert Cells((2, 3)).grid(20, "replace-one").by_cell is None
    assert CellSums(1.0, 3, 2).grid(20, "replace-one").by_cell is None


def test_a_statistic_states_a_move_and_a_radius_that_are_numbers():
    made = Statistic(1, 2, 3, "gate.md")
    assert (type(made.move), type(made.radius)) == (float, float)
    for move, radius in ((0.0, 1.0), (1.0, 0.0), (math.inf, 1.0), (1.0, math.nan)):
        with pytest.raises(InvalidInput):
            Statistic(move, radius, 3, "gate.md")


def test_a_gram_matrix_has_half_of_the_bits_rounded_down():
    odd, even = (Gram(1.5, 3).grid(bits, "add-remove") for bits in (21, 20))
    np.testing.assert_array_equal(odd.units, even.units)
    assert odd.l2 == even.l2


@pytest.mark.parametrize("dimension", [0, 2.5, True])
def test_a_statistic_has_a_whole_number_of_numbers(dimension):
    with pytest.raises(InvalidInput, match="dimension"):
        Statistic(1.0, 2.0, dimension, "gate.md")


def test_rows_beyond_an_octahedron_of_the_finest_grid_end_inside_it_too():
    edge = 2.0**40
    found = table._into_octahedron(np.array([[1.0, 2.0**-40], [1.0, 2.0**-39]]), 1.0, edge)
    assert (np.abs(found).sum(axis=1) <= edge).all()


def test_grids_have_eight_bits_at_least_and_a_budget_too_small_for_them_is_refused(monkeypatch):
    facts = Interval(0, 1), 1.0, 1e-9, False, "replace-one", 10, False
    coarsest = math.nextafter(Interval(0, 1).grid(8, "replace-one").l2 / 1e-9, math.inf)
    monkeypatch.setattr(fixed_point, "MAX_SCALE", coarsest)
    grid, scale = plan_noise.__wrapped__(*facts)
    assert (grid.grid_bits, scale) == (8, coarsest)
    monkeypatch.setattr(fixed_point, "MAX_SCALE", math.nextafter(coarsest, 0.0))
    with pytest.raises(InvalidBudget, match="so small a budget"):
        plan_noise.__wrapped__(*facts)


@pytest.mark.parametrize(
    ("unit", "neighbours", "said"),
    [(None, "add-remove", "neighbours='add-remove'"), (Unit("id", 2), "replace-one", "unit")],
)
def test_where_rows_are_counted_no_more_are_taken_than_their_grid_has_room_for(unit, neighbours, said):
    def made(n):
        return Gate(SimpleNamespace(n=n, unit=unit), budget=Budget(epsilon=1.0), neighbours=neighbours)

    assert made(2**27).counts_rows
    with pytest.raises(InvalidInput, match=f"^{said} takes at most"):
        made(2**27 + 1)
    assert not Gate(SimpleNamespace(n=2**27 + 1, unit=None), budget=Budget(epsilon=1.0)).counts_rows


class Reporting(Grouped):
    """Records whose engine says how far it is."""

    def group_sums(self, partition, formulas, on_rows=None):
        if on_rows is not None:
            on_rows(self.n)
        return super().group_sums(partition, formulas)


def test_an_engine_tells_how_far_it_is_to_whoever_asked_the_gate():
    seen = []
    query = Query("outcome", 0.5, Interval(-1.0, 1.0), ByCell(None, False, (Y,), alone=True))
    with frozen_noise():
        Gate(Reporting(), budget=Budget(epsilon=1.0, delta=1e-6), progress=seen.append).ask(query)
    assert seen == [RECORDS.n]


@pytest.mark.parametrize("proof", ["trust me", None])
def test_a_statistic_names_the_file_that_proves_how_far_it_moves(proof):
    with pytest.raises(InvalidInput, match="proof"):
        Statistic(1.0, 1.0, 2, proof)
