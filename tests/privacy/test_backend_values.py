"""Edges of sweeps and SQL that mutants showed to be unprotected."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.scan import Tally, in_order
from discreet.data.backends.sql import Sql, groups, literal
from discreet.data.bounds import Bounds, Range
from discreet.data.expressions import E, Y, by_arm, ends, is_finite, number, vanishing
from discreet.data.in_memory import ArrayRecords
from discreet.data.partition import Partition
from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput


@pytest.mark.parametrize(("one", "other", "sums"), [([1], [2], [3]), (None, [2], [2]), ([1], None, [1])])
def test_tallies_of_two_parts_add_up(one, other, sums):
    def made(rows: int, found: list[int] | None) -> Tally:
        return Tally(rows, rows - 1, 2**64 - rows, None if found is None else np.array(found, dtype=np.int64))

    both = made(3, one) + made(5, other)
    assert (both.rows, both.treated, both.checksum) == (8, 6, 2**64 - 8)
    np.testing.assert_array_equal(both.sums, sums)


def test_a_quotation_mark_in_a_text_is_doubled():
    assert literal("O'Hara") == "'O''Hara'"


def test_columns_are_taken_in_the_order_that_was_given():
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1), (0, 1)])
    assert in_order(["age", "dose"], bounds) == ("age", "dose")


N = 60
WHOLE = ["tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint"]
WIDE = ["bigint", "ubigint", "hugeint", "uhugeint"]


def opened(relation, bounds, **more):
    return open_table(relation, TableSpec(outcome="y", treatment="t", bounds=bounds, **more))


def relation(y="y", kind="DOUBLE"):
    facts = {"y": np.arange(N) * 100, "t": np.arange(N) % 2, "x": np.arange(N) / N, "z": np.arange(N) % 3}
    rows = pa.table(facts)
    return duckdb.from_arrow(rows).project(f"CAST({y} AS {kind}) AS y, t, x, z")


def sums(table, bounds, partition=None, **more):
    with opened(table, bounds, **more) as records:
        return records.group_sums(partition, [(Y * number(2.0**20)).rint()])


# So many outcomes that each is added up, and none counted by itself.
FAR = Bounds(outcome=(0, 6000), covariates={"x": (0, 1)})


def added_up(mask, partition=None):
    y, t, x = np.arange(N)[mask] * 100.0, (np.arange(N) % 2)[mask], np.arange(N)[mask] / N
    steps = np.rint((y - 3000) / 3000 * 2.0**20)
    cells = np.zeros(len(y), dtype=int) if partition is None else partition.cells(2 * x[:, None] - 1)
    count = 1 if partition is None else partition.count
    return [np.bincount(2 * cells + t, each, 2 * count).reshape(count, 2) for each in (np.ones(len(y)), steps)]


@pytest.mark.parametrize("kind", ["smallint", "integer", "bigint", "hugeint", "usmallint", "uhugeint", "double"])
def test_an_engine_adds_up_whole_numbers_of_every_width(kind):
    every = np.ones(N, dtype=bool)
    np.testing.assert_array_equal(sums(relation(kind=kind), FAR), added_up(every))
    halves = Partition.of({"x": 2}, FAR)
    np.testing.assert_array_equal(sums(relation(kind=kind), FAR, halves), added_up(every, halves))


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("bounds", [FAR, Bounds(outcome=(0, 3))], ids=["added up", "counted"])
def test_a_whole_number_that_float64_cannot_tell_from_its_neighbour_is_refused(kind, bounds):
    for value, refused in ((2**53, False), (2**53 + 1, True)):
        table = relation(f"CASE WHEN y = 500 THEN {value} ELSE y END", kind)
        if refused:
            # Arrow has no type for the widest: a sweep sees decimals, so that the engine alone objects.
            with pytest.raises(InvalidInput, match=r"beyond 2\*\*53|in two ways"):
                sums(table, bounds)
        else:
            assert sums(table, bounds)[0].sum() == N


def test_two_filters_are_both_met_in_sums_of_an_engine():
    meant = (np.arange(N) / N >= 0.25) & (np.arange(N) % 3 == 1)
    found = sums(relation(), FAR, where={"x": (0.25, None), "z": 1})
    np.testing.assert_array_equal(found, added_up(meant))


def test_types_of_whole_numbers_are_known_and_only_those_of_other_kinds_are_cast():
    types = {name: name for name in [*WHOLE, "uhugeint", "boolean", "double", "float", "decimal", "varchar"]}
    dialect = Sql(types)
    assert [name for name in types if not dialect.is_whole(name)] == ["double", "float", "decimal", "varchar"]
    assert [name for name in types if dialect.usable(name) is not None] == ["bigint", "hugeint", "ubigint", "uhugeint"]
    cast = [name for name in [*WHOLE, "boolean"] if dialect.integer(name) != f'"{name}"']
    assert cast == ["utinyint", "usmallint", "uinteger", "boolean"]


def test_rows_of_an_answer_are_put_where_their_keys_say_and_one_without_a_key_spoils_it():
    found = groups([(3, 2, 2, 7), (0, 1, 1, 5)], 2, 1)
    assert (found.usable, found.counts.tolist(), found.sums[0].tolist()) == (True, [[1, 0], [0, 2]], [[5, 0], [0, 7]])
    assert {found.counts.dtype, found.sums[0].dtype} == {np.dtype(np.int64)}
    for wrong in ((None, 2, 2, 7), (1, 2, 1, 7)):
        spoiled = groups([wrong, (0, 1, 1, 5)], 1, 1)
        assert (spoiled.usable, spoiled.counts.tolist(), spoiled.sums[0].tolist()) == (False, [[1, 0]], [[5, 0]])


@pytest.mark.parametrize(
    ("formula", "known"),
    [
        (Y * Y, (0.0, 1.0)),
        ((Y + number(3.0)) * (Y + number(3.0)), (4.0, 16.0)),
        ((Y - number(3.0)) * (Y - number(3.0)), (4.0, 16.0)),
        ((Y * number(3.0)) * (Y * number(3.0)), (0.0, 9.0)),
        ((Y + number(1.0)) * (Y + number(1.0)), (0.0, 4.0)),
        (Y * (Y + number(2.0)), (-3.0, 3.0)),
        (Y - E, (-1.75, 0.9)),
        (Y / E, (-10.0, 10.0)),
        (by_arm(Y, Y * number(3.0)), (-3.0, 3.0)),
        (by_arm(Y * number(3.0), Y), (-3.0, 3.0)),
        ((Y * number(4.0)).clip(-1.0, 2.0), (-1.0, 2.0)),
        (number(1.0) / (Y + number(2.0)), (1 / 3, 1.0)),
        (number(1.0) / (Y + number(1.0)), None),
        (number(1.0) / (Y - number(1.0)), None),
        (number(1e300) * (Y * number(1e300)), None),
    ],
    ids=str,
)
def test_the_ends_of_a_formula_are_the_least_and_largest_that_it_takes(formula, known):
    overlap = (0.1, 0.75)
    assert ends(formula, overlap) == (None if known is None else pytest.approx(known, rel=1e-12))
    assert is_finite(formula, overlap) == (known is not None)
    if known is None:
        return
    y, t, e = (grid.ravel() for grid in np.meshgrid(np.linspace(-1, 1, 41), [0.0, 1.0], np.linspace(*overlap, 5)))
    values = formula(Chunk(y, t, np.empty((len(y), 0)), e))
    assert known[0] - 1e-12 <= values.min() <= values.max() <= known[1] + 1e-12


@pytest.mark.parametrize("constant", [0.5, 1e-10, 3e-300, 5e-324, 7.0, 1e300])
def test_a_number_vanishes_exactly_up_to_the_one_that_is_named(constant):
    for sign, made in (("*", lambda x: x * constant), ("/", lambda x: x / constant), ("^", lambda x: x * x)):
        last = vanishing(sign, constant)
        assert made(last) == 0.0
        assert made(np.nextafter(last, 1.0)) != 0.0
    assert vanishing("*", 0.0) == vanishing("/", 0.0) == 0.0


def test_a_formula_looks_at_every_part_of_a_record():
    chunk = Chunk(np.array([0.5, -0.25]), np.array([0.0, 1.0]), np.empty((2, 0)), np.array([0.5, 0.25]))
    formula = by_arm(Y - E, Y * number(8.0) / E + number(1.5)).clip(-7.0, 9.0).rint()
    np.testing.assert_array_equal(formula(chunk), [0.0, -6.0])
    with pytest.raises(AssertionError, match="do not have"):
        E(chunk._replace(e=None))


def test_records_in_memory_are_added_up_as_in_an_engine():
    records = ArrayRecords.of(np.arange(N) * 100.0, np.arange(N) % 2, np.arange(N)[:, None] / N, bounds=FAR)
    step = (Y * number(2.0**20)).rint()
    found = records.sum(lambda chunk: np.bincount(chunk.t.astype(int), step(chunk)).astype(np.int64))
    np.testing.assert_array_equal(found, sums(relation(), FAR)[1][0])


def test_an_engine_fills_what_is_missing_or_nan_as_numpy_does():
    y = np.where(np.arange(N) % 5 == 0, np.nan, np.arange(N) * 100.0)
    x = np.where(np.arange(N) % 7 == 0, np.nan, np.arange(N) / N)
    bounds = Bounds(outcome=(0, 6000), outcome_fill=1500, covariates={"x": Range(0, 1, fill=0.75)})
    table, t = (
        pa.table({"y": y, "t": np.arange(N) % 2, "x": pa.array(x, mask=np.arange(N) % 14 == 0)}),
        np.arange(N) % 2,
    )
    halves = Partition.of({"x": 2}, bounds)
    found = sums(duckdb.from_arrow(table), bounds, halves)
    filled, cells = np.where(np.isnan(y), 1500, y), np.where(np.isnan(x), 0.75, x) >= 0.5
    steps = np.rint((filled - 3000) / 3000 * 2.0**20)
    expected = [np.bincount(2 * cells + t, each, 4).reshape(2, 2) for each in (np.ones(N), steps)]
    np.testing.assert_array_equal(found, expected)


def test_a_clip_has_ends_even_where_what_it_clips_has_none():
    assert ends((Y * E).clip(-1.0, 2.0)) == (-1.0, 2.0)
    assert ends(Y * E) is None


def test_dividing_by_a_power_of_two_is_multiplying_only_where_its_inverse_is_a_number():
    for power in (-1074, -1024):
        assert (Y / number(2.0**power)).op == "over"
    for power in (-1022, 1000, 1023):
        assert (Y / number(2.0**power)).op == "times"


def test_an_engine_knows_a_probability_by_design():
    bounds = Bounds(outcome=(0, 6000), propensity=(0.2, 0.7))
    with opened(relation(), bounds, propensity=0.25) as records:
        found = records.group_sums(None, [(Y * E * number(2.0**20)).rint()])
    steps = np.rint((np.arange(N) * 100.0 - 3000) / 3000 * 0.25 * 2.0**20)
    np.testing.assert_array_equal(found[1], [np.bincount(np.arange(N) % 2, steps)])
