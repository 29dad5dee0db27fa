"""Units with several rows: whole units are replaced, added and removed, and sums move as far as docs/proofs say."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATE, CATE, Bounds, DifferenceInMeans, Uplift, UpliftRelease
from discreet.data import in_memory
from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.backends.memory import open_records
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Held, Unit
from discreet.data.views.capped import Capped
from discreet.data.views.viewed import ViewedRecords
from discreet.exceptions import InvalidInput
from discreet.papers import ADUM
from discreet.privacy.budget import Budget
from discreet.privacy.gate import COUNTED, Gate
from discreet.privacy.query import Query, unit_sums
from discreet.privacy.sensitivity.fixed_point import CAPACITY_BITS, unit_grid
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare, Statistic
from discreet.privacy.sensitivity.table import CellSums, Pairs
from discreet.testing import frozen_noise, record_sums, seeded_noise, watched

GEOMETRIES = [
    Interval(0.0, 1.0),
    Interval(-3.0, 1.0),
    Interval(5.0, 6.0),
    Ball(2.0, 3),
    Cells((4,)),
    Cells((2, 3)),
    MeanSquare(0.7),
    Gram(1.5, 2),
    CellSums(2.0, 3, 2),
    Pairs(3),
]
# Rows whose integers are furthest apart, or furthest from nothing, in L2.
FURTHEST = {
    Interval(0.0, 1.0): ([1.0], [0.0]),
    Interval(-3.0, 1.0): ([-3.0], [1.0]),
    Interval(5.0, 6.0): ([6.0], []),
    Ball(2.0, 3): ([[2.0, 0, 0]], [[-2.0, 0, 0]]),
    Cells((4,)): ([0.0], [3.0]),
    Cells((2, 3)): ([[0.0, 0]], [[1.0, 2]]),
    MeanSquare(0.7): ([0.7], [-0.7]),
    Gram(1.5, 2): ([[1.5, 0]], [[0, 1.5]]),
    CellSums(2.0, 3, 2): ([[0, 2.0, 0]], [[0, -2.0, 0]]),
    Pairs(3): ([[0, 1.0, 1.0]], [[1, 1.0, 1.0]]),
}


def added(grid, geometry, rows):
    """Exact sum over a unit's rows; none is a row of zeros."""
    if not len(rows):
        return np.zeros(grid.length)
    return grid.add(np.asarray(rows, dtype=np.float64)).astype(np.float64)


def apart(difference, geometry):
    """L2 distance, where a matrix's entries off the diagonal count twice."""
    weight = np.ones(difference.size)
    if isinstance(geometry, Gram):
        weight[geometry.dimension :] = 2.0
    return float(np.sqrt(np.sum(weight * difference**2)))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_replacing_a_unit_moves_no_sum_further_than_stated(data):
    geometry = data.draw(st.sampled_from(GEOMETRIES))
    neighbours = data.draw(st.sampled_from(["replace-one", "add-remove"]))
    k = data.draw(st.integers(1, 6))
    columns = 1 if geometry.columns is None else geometry.columns
    number = st.one_of(st.floats(-8, 8), st.sampled_from([np.nan, np.inf, -np.inf, 1e308, 0.0, 1.0, -1.0, 6.0]))
    row = st.lists(number, min_size=columns, max_size=columns)
    units = [data.draw(st.lists(row, min_size=0, max_size=k)) for _ in range(2)]
    if neighbours == "add-remove":
        units[1] = []
    if geometry.columns is None:
        units = [[value for (value,) in unit] for unit in units]
    grid = unit_grid(geometry, 20, neighbours, k)
    moved = added(grid, geometry, units[0]) - added(grid, geometry, units[1])
    assert apart(moved, geometry) <= grid.l2
    assert np.abs(moved).sum() <= grid.l1


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_the_stated_distance_is_reached_and_that_of_single_rows_would_not_do(geometry, k):
    grid = unit_grid(geometry, 20, "replace-one", k)
    first, second = FURTHEST[geometry]
    moved = apart(added(grid, geometry, first * k) - added(grid, geometry, second * k), geometry)
    assert 0.999 * grid.l2 <= moved <= grid.l2
    if k > 1:
        assert moved > unit_grid(geometry, 20, "replace-one", 1).l2 * 1.9


def test_one_row_to_a_unit_under_add_remove_is_the_gate_as_it_was():
    for geometry in GEOMETRIES:
        plain, unit = geometry.grid(20, "add-remove"), unit_grid(geometry, 20, "add-remove", 1)  # type: ignore[attr-defined]
        assert (plain.l2, plain.l1, plain.grid_bits) == (unit.l2, unit.l1, unit.grid_bits)


def test_a_statistic_of_a_whole_data_set_has_no_units():
    with pytest.raises(InvalidInput, match="no add-remove distance"):
        unit_grid(Statistic(1.0, 1.0, 2, "gate.md"), 20, "replace-one", 2)


BOUNDS = Bounds(outcome=(0, 1), covariates={"x": (0, 1)}, propensity=(0.2, 0.8))
ROWS = 3


def visits(people, seed=0, changed=None):
    """A few rows for each of some people, one of whom may be somebody else altogether."""
    rng = np.random.default_rng(seed)
    frames = []
    for person in range(people):
        n = int(rng.integers(1, ROWS + 1))
        y, t, x = rng.random(n), rng.integers(0, 2, n), rng.random(n)
        if person == 5 and changed is not None:
            y, t, x = np.array(changed, dtype=np.float64).reshape(-1, 3).T  # type: ignore[assignment]
        frames.append(pd.DataFrame({"person": person, "y": y, "t": t.astype(int), "x": x}))
    return pd.concat(frames, ignore_index=True)


ESTIMATORS = {
    "ate": lambda **more: ATE(epsilon=1, delta=1e-6, bounds=BOUNDS, **more),
    "means": lambda **more: DifferenceInMeans(epsilon=1, bounds=BOUNDS, **more),
    "cate": lambda **more: CATE(epsilon=1, delta=1e-6, bounds=BOUNDS, **more),
    "uplift": lambda **more: Uplift(epsilon=1, bounds=BOUNDS, by={"x": 4}, **more),
    "adum": lambda **more: ADUM(epsilon=1, bounds=BOUNDS, by={"x": 4}, **more),
}


def fitted(estimator, table):
    with seeded_noise(1), record_sums() as recorded:
        estimator.fit_table(table, outcome="y", treatment="t", unit="person", max_rows=ROWS)
    return recorded


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_unit_moves_the_first_rounds_of_an_estimator_no_further_than_stated(name, neighbours):
    """Rounds after the first depend on its noisy numbers, which differ; the first question is the same for both."""
    worst = 0.0
    one_of_two = [(0.0, 0, 0.0)] * ROWS if neighbours == "replace-one" else []
    before = fitted(ESTIMATORS[name](neighbours=neighbours), visits(40, changed=one_of_two))
    for rows in ([(1.0, 1, 1.0)] * ROWS, [(1.0, 0, 0.0)] * ROWS, [(1.0, 1, 0.99)]):
        after = fitted(ESTIMATORS[name](neighbours=neighbours), visits(40, changed=rows))
        (_, geometry, one, diameter), (_, _, other, again) = before[0], after[0]
        assert diameter == again
        moved = (one - other).astype(np.float64)
        pure = ESTIMATORS[name]().delta is None  # type: ignore[attr-defined]
        size = np.abs(moved).sum() if pure else apart(moved, geometry)
        worst = max(worst, size / diameter)
    # Some unit of three rows moves the sums further than a single row ever could.
    assert 1.0 / ROWS < worst <= 1.0


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_number_of_rows_is_private_and_the_release_says_whose_they_are(name, neighbours):
    estimator = ESTIMATORS[name](neighbours=neighbours)
    recorded = fitted(estimator, visits(60))
    guarantee = estimator.release_.guarantee  # type: ignore[attr-defined]
    assert guarantee.unit == "one person with at most 3 rows"
    assert guarantee.proof is not None
    assert guarantee.proof.endswith("units.md")
    assert "the number of records" not in guarantee.public
    assert not guarantee.counts_public
    note = estimator.release_.notes[-1]  # type: ignore[attr-defined]
    assert ("if rows of one person are alike" in note) == (name in ("cate", "adum"))
    assert ("as if all 3 rows of one person were alike" in note) == (name == "uplift")
    assert ("sums over all rows of one person" in note) == (name in ("ate", "means", "cate"))
    if name in ("ate", "means", "cate"):
        assert recorded[0][0] == "number of records"


def test_grids_do_not_depend_on_the_number_of_rows():
    for geometry in (Interval(0.0, 1.0), Pairs(2)):
        assert unit_grid(geometry, 61 - CAPACITY_BITS, "replace-one", 2).grid_bits == 61 - CAPACITY_BITS
    few, many = (fitted(ESTIMATORS["uplift"](), visits(n)) for n in (40, 400))
    assert [diameter for *_, diameter in few] == [diameter for *_, diameter in many]


PURE = Budget(epsilon=1.0)
GAUSSIAN = Budget(epsilon=1.0, delta=1e-6)


def together(frame, neighbours="replace-one", budget=GAUSSIAN, bound=0.7, chunk_rows=8):
    """One question about units, of records in chunks that are too short for most units to fit in at random."""
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_memory, "CHUNK_ROWS", chunk_rows)
        columns = TableSpec(outcome="y", treatment="t", bounds=BOUNDS, unit="person", max_rows=ROWS).columns()
        gate = Gate(open_records(frame, columns, Options()), budget=budget, neighbours=neighbours)
        assert gate.joins_rows
        with frozen_noise(), watched(lambda _, rounds: seen.extend(rounds)):
            gate.ask(Query("sums", 1.0, MeanSquare(bound), lambda c: c.y, of_units=True))
    return seen[0]


NUMBER = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])
UNIT = st.lists(st.tuples(NUMBER, st.sampled_from([0, 1]), NUMBER), min_size=0, max_size=ROWS)


@settings(max_examples=60, deadline=None)
@given(UNIT, UNIT, st.sampled_from(["replace-one", "add-remove"]), st.sampled_from([PURE, GAUSSIAN]))
def test_a_unit_moves_sums_over_units_no_further_than_stated(one, other, neighbours, budget):
    other = [] if neighbours == "add-remove" else other
    before, after = (together(visits(30, changed=rows), neighbours, budget) for rows in (one, other))
    assert before.diameter == after.diameter
    moved = np.abs(before.exact - after.exact).astype(np.float64)
    assert (moved.sum() if before.pure else np.sqrt((moved**2).sum())) <= before.diameter


def test_the_distance_of_sums_over_units_is_reached_and_is_that_of_one_contribution():
    for bound in (0.5, float(ROWS)):
        one, other = (together(visits(30, changed=[(y, 0, 0.5)] * ROWS), bound=bound) for y in (0.0, 1.0))
        moved = float(np.sqrt(((one.exact - other.exact).astype(np.float64) ** 2).sum()))
        assert 0.999 * one.diameter <= moved <= one.diameter
        assert one.diameter == unit_grid(MeanSquare(bound), one.grid.grid_bits, "replace-one", 1).l2


def check_units_are_whole():
    frame = visits(50).sample(frac=1, random_state=3)
    found = together(frame, bound=float(ROWS)).released.value
    sums = (2.0 * frame["y"] - 1.0).groupby(frame["person"]).sum()
    assert found == pytest.approx([sums.sum(), (sums**2).sum()], rel=1e-6)


def test_units_are_not_divided_between_chunks_and_the_order_of_rows_does_not_matter():
    check_units_are_whole()
    frame = visits(50)
    one, other = together(frame), together(frame.sample(frac=1, random_state=5))
    np.testing.assert_array_equal(one.exact, other.exact)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=60), st.integers(5, 12))
def test_chunks_end_where_units_do_and_are_as_long_as_they_may_be(sizes, longest):
    units = np.repeat(np.arange(len(sizes)), sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_memory, "CHUNK_ROWS", longest)
        edges = in_memory._edges(units)
    assert (edges[0], edges[-1]) == (0, len(units))
    assert all(units[edge - 1] != units[edge] for edge in edges[1:-1])
    for start, stop in pairwise(edges):
        assert 0 < stop - start <= longest
        # The next unit would not have fitted in.
        assert stop == len(units) or stop - start + sizes[units[stop]] > longest


def test_where_rows_stay_apart_a_question_about_units_is_refused():
    frame = visits(30)
    rows = ArrayRecords.of(frame["y"], frame["t"], frame[["x"]], bounds=BOUNDS, unit=Unit("person", ROWS))
    gate = Gate(rows, budget=GAUSSIAN)
    assert not gate.joins_rows
    with seeded_noise(0), pytest.raises(InvalidInput, match="cannot be brought together"):
        gate.ask(Query("sums", 1.0, MeanSquare(1.0), lambda c: c.y, of_units=True))
    assert gate.spent == 0
    # An engine that adds up by itself adds up rows, which move sums further than one contribution of a unit does.
    columns = TableSpec(outcome="y", treatment="t", bounds=BOUNDS, unit="person", max_rows=ROWS)
    with open_table(duckdb.connect().from_arrow(pa.Table.from_pandas(frame)), columns, Options()) as table:
        gate = Gate(table, budget=GAUSSIAN)
        assert not gate.joins_rows
        with seeded_noise(0), pytest.raises(InvalidInput, match="cannot be brought together"):
            gate.ask(Query("sums", 1.0, Interval(0, 1), COUNTED, of_units=True))
        assert gate.spent == 0
    many = replace(rows, units=frame["person"].to_numpy(), unit=Unit("person", 4_097))
    assert many.by_unit() is None
    with pytest.raises(InvalidInput, match="query 'it' of units needs one number per row"):
        unit_sums("it", np.zeros((3, 2)), np.arange(3))


@pytest.mark.parametrize("name", ["ate", "means"])
def test_with_sums_over_units_the_sampling_error_is_that_of_units(name, tmp_path):
    """Half of what a row says is its unit's: between independent rows and rows that are all alike."""
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(1_500), ROWS)
    t = rng.integers(0, 2, 1_500)[person]
    y = 0.3 + 0.2 * t + 0.1 * rng.normal(size=1_500)[person] + 0.1 * rng.normal(size=len(person))
    frame = pd.DataFrame({"person": person, "y": y.clip(0, 1), "t": t, "x": rng.random(len(person))})
    frame.to_parquet(tmp_path / "it.parquet")
    found = {}
    for where, table in (("memory", frame), ("file", str(tmp_path / "it.parquet"))):
        estimator: Any = ESTIMATORS[name](propensity=0.5).set_params(epsilon=1e3)  # type: ignore[attr-defined]
        fitted(estimator, table)
        found[where] = estimator.release_
    units = frame.groupby("person")["y"].mean()
    by_units = np.sqrt(4.0 * units.groupby(frame.groupby("person")["t"].first()).var().mean() / 1_500)
    assert found["memory"].uncertainty.sampling == pytest.approx(by_units, rel=0.05)
    assert 1.1 * by_units < found["file"].uncertainty.sampling < 1.4 * by_units
    assert found["memory"].estimate == pytest.approx(found["file"].estimate, abs=1e-3)
    assert "sums over all rows of one person" in found["memory"].notes[-1]
    assert "as if all 3 rows of one person were alike" in found["file"].notes[-1]


def repeated(people, rows):
    """People whose rows are all alike: as good as one row for each of them, and no better."""
    rng = np.random.default_rng(3)
    t, x = rng.integers(0, 2, people), rng.random(people)
    one = pd.DataFrame({"person": np.arange(people), "y": 0.2 + 0.3 * t + 0.5 * rng.random(people), "t": t, "x": x})
    return pd.concat([one] * rows, ignore_index=True)


@pytest.mark.parametrize("name", ["ate", "means", "uplift", "cate"])
def test_rows_that_are_all_alike_say_no_more_than_one_of_them(name):
    estimators: list[Any] = [ESTIMATORS[name](propensity=0.5) for _ in range(2)]
    once, often = (estimator.set_params(epsilon=1e4) for estimator in estimators)
    with seeded_noise(1):
        once.fit_table(repeated(1_000, 1), outcome="y", treatment="t", unit="person", max_rows=1)
        often.fit_table(repeated(1_000, 4), outcome="y", treatment="t", unit="person", max_rows=4)
    low, high = np.array([once.ate_interval(), often.ate_interval()]).T
    assert (high - low)[1] == pytest.approx((high - low)[0], rel=0.1)
    if name == "uplift":
        widths = [np.subtract(*each.release_.interval()) for each in (often, once)]
        np.testing.assert_allclose(widths[0], widths[1], rtol=0.1)


def test_the_number_of_rows_of_a_unit_is_in_a_file_of_segments_where_there_are_several(tmp_path):
    for rows in (1, 3):
        with seeded_noise(1):
            segments = Uplift(epsilon=1, bounds=BOUNDS, by={"x": 4}).fit_table(
                repeated(200, rows), outcome="y", treatment="t", unit="person", max_rows=rows
            )
        segments.release_.save(tmp_path / "it.json")
        plain = json.loads((tmp_path / "it.json").read_text())["outcome_moments"]
        assert plain.get("rows", 1.0) == rows
        assert ("rows" in plain) == (rows > 1)
        again = UpliftRelease.load(tmp_path / "it.json")
        np.testing.assert_array_equal(again.interval(), segments.release_.interval())


def tables(frame, tmp_path):
    frame.to_parquet(tmp_path / "it.parquet")
    frame.to_csv(tmp_path / "it.csv", index=False)
    table = pa.Table.from_pandas(frame)
    return [
        frame,
        table,
        pl.from_arrow(table),
        pl.from_arrow(table).lazy(),
        duckdb.connect().from_arrow(table),
        str(tmp_path / "it.parquet"),
        str(tmp_path / "it.csv"),
    ]


def test_a_unit_with_more_rows_than_declared_is_refused_before_anything_is_spent(tmp_path):
    frame = visits(40)
    frame.loc[:3, "person"] = 999
    for table in tables(frame, tmp_path):
        estimator = DifferenceInMeans(epsilon=1, bounds=BOUNDS)
        with pytest.raises(
            InvalidInput, match="max_rows: a value of column 'person' has more rows than the 3"
        ) as refusal:
            fitted(estimator, table)
        assert "999" not in str(refusal.value)
        # Rows that are not meant do not count.
        with seeded_noise(0):
            estimator.fit_table(
                table, outcome="y", treatment="t", unit="person", max_rows=ROWS, where={"person": (0, 900)}
            )


def test_rows_of_nobody_are_refused(tmp_path):
    frame = visits(40).astype({"person": "Int64"})
    frame.loc[3, "person"] = pd.NA
    for table in tables(frame, tmp_path):
        with pytest.raises(InvalidInput, match="column 'person' has missing values, but says whose row it is"):
            fitted(DifferenceInMeans(epsilon=1, bounds=BOUNDS), table)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"unit": "person"}, "unit and max_rows belong together"),
        ({"max_rows": 3}, "unit and max_rows belong together"),
        ({"unit": "person", "max_rows": 0}, "max_rows must be a whole number from 1"),
        ({"unit": "person", "max_rows": 2.0}, "max_rows must be a whole number from 1"),
        ({"unit": "nobody", "max_rows": 2}, "no column 'nobody'"),
        ({"unit": "x", "max_rows": 2}, "column 'x' must hold whole numbers or text"),
        ({"unit": 3, "max_rows": 2}, "unit must be the name of a column"),
    ],
)
def test_units_that_make_no_sense_are_refused(arguments, reason):
    frame = visits(40)
    for table in (frame, pl.from_pandas(frame).lazy(), duckdb.connect().from_arrow(pa.Table.from_pandas(frame))):
        with pytest.raises(InvalidInput, match=reason):
            DifferenceInMeans(epsilon=1, bounds=BOUNDS).fit_table(table, outcome="y", treatment="t", **arguments)


def test_rows_brought_together_keep_their_probabilities_and_sample_numbers():
    held = Held(y=np.arange(4.0), t=np.array([0, 1, 0, 1]), x=(), e=np.arange(4.0) / 10, k=np.arange(4.0))
    moved = in_memory._taken(held, np.array([2, 0, 3, 1]))
    np.testing.assert_array_equal([moved.y, moved.k], [[2, 0, 3, 1]] * 2)
    np.testing.assert_array_equal(moved.e, [0.2, 0.0, 0.3, 0.1])


def test_a_capped_sample_is_that_of_the_source_as_it_was_asked_for():
    asked = []

    class Source:
        bounds = Bounds(outcome=(0, 10))

        def sample(self, part, rows, progress=None, *, by_place=False):
            asked.append((part, rows, progress))

    assert ViewedRecords(Source(), Capped.of(Source.bounds, 5.0)).sample(0.5, 100.0, print) is None
    assert asked == [(0.5, 100.0, print)]
