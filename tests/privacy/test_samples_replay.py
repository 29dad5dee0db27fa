"""Samples: records move into them and out of them, and sums move no further than docs/proofs/gate.md states."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATE, CATE, Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Unit
from discreet.data.sampling import chosen
from discreet.estimators import _allocation
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare
from discreet.testing import frozen_noise, record_sums, seeded_noise, watched

BOUNDS = Bounds(outcome=(0, 1), covariates={"x": (0, 1), "z": (-1, 1)}, propensity=(0.1, 0.9))
PART = 0.3
NUMBERS = np.arange(400.0)
# In small samples, and not even in large ones.
INSIDE, OUTSIDE = int(NUMBERS[chosen(NUMBERS, 0.02)][0]), int(NUMBERS[~chosen(NUMBERS, 0.9)][0])
MAPS = {
    Interval(0.0, 1.0): lambda c: c.t,
    Interval(5.0, 6.0): lambda c: 5.0 + c.t,
    Interval(-3.0, 1.0): lambda c: -3.0 + 4.0 * c.t,
    Ball(2.0, 2): lambda c: np.column_stack([4.0 * c.y, 3.0 * c.x[:, 0]]),
    Cells((4,)): lambda c: np.floor(2.0 + 2.0 * c.x[:, 0]),
    MeanSquare(0.5): lambda c: c.y,
    Gram(1.5, 2): lambda c: np.column_stack([2.0 * c.y, 2.0 * c.x[:, 1]]),
}


def records(changed=None):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"y": rng.random(200), "t": rng.integers(0, 2, 200), "x": rng.random(200)})
    frame = frame.assign(z=rng.uniform(-1, 1, 200), id=np.arange(200))
    if changed is not None:
        frame.loc[17, list(changed)] = list(changed.values())
    return frame


def sums(frame, geometry, neighbours):
    """Exact sums over the sample, on the grid that states how far they may move."""
    source = ArrayRecords.of(frame["y"], frame["t"], frame[["x", "z"]], bounds=BOUNDS, sample_by=frame["id"])
    gate = Gate(source, budget=Budget(epsilon=1.0, delta=1e-6), neighbours=neighbours)
    seen = []
    with frozen_noise(), watched(lambda _, rounds: seen.extend(rounds)):
        gate.count(0.1)
        some = gate.sampled(PART, 0.1)
        some.ask(Query("asked", 0.2, geometry, MAPS[geometry]))
    return seen


def moved(one, other):
    weight = np.ones(one.exact.size)
    if isinstance(one.query.geometry, Gram):
        weight[one.query.geometry.dimension :] = 2.0
    return float(np.sqrt(np.sum(weight * (one.exact - other.exact).astype(np.float64) ** 2)))


VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
NUMBER = st.sampled_from([INSIDE, OUTSIDE])
RECORD = st.fixed_dictionaries(
    {"y": VALUES, "t": st.sampled_from([0, 1]), "x": VALUES, "z": st.sampled_from([-1.0, 0.0, 1.0])}
)


@settings(max_examples=150, deadline=None)
@given(RECORD, RECORD, NUMBER, NUMBER, st.sampled_from(list(MAPS)))
def test_a_replaced_record_moves_no_sum_of_a_sample_further_than_stated(one, other, first, second, geometry):
    before = sums(records(one | {"id": first}), geometry, "replace-one")
    after = sums(records(other | {"id": second}), geometry, "replace-one")
    for left, right in zip(before, after, strict=True):
        assert left.grid.l2 == right.grid.l2
        assert moved(left, right) <= left.diameter


@settings(max_examples=100, deadline=None)
@given(RECORD, RECORD, st.sampled_from([17, 18]), st.sampled_from(list(MAPS)))
def test_a_replaced_record_stays_in_a_sample_by_place_and_moves_it_by_the_diameter_of_all(one, other, place, geometry):
    # One of the places is in the sample, the other is not.
    inside = bool(chosen(np.array([float(place)]), PART)[0])
    assert chosen(np.array([17.0, 18.0]), PART).sum() == 1
    before, after = [], []
    for changed, rounds in ((one, before), (other, after)):
        frame = records()
        frame.loc[place, list(changed)] = list(changed.values())
        source = ArrayRecords.of(frame["y"], frame["t"], frame[["x", "z"]], bounds=BOUNDS)
        gate = Gate(source, budget=Budget(epsilon=1.0, delta=1e-6))

        def note(_, asked, rounds=rounds):
            rounds.extend(asked)

        with frozen_noise(), watched(note):
            gate.sampled(PART, 0.1, by_place=True).ask(Query("asked", 0.2, geometry, MAPS[geometry]))
    # Nothing is released for the number of records, and the diameter is that of records that stay where they are.
    assert len(before) == len(after) == 1
    assert before[0].grid.l2 == geometry.grid(before[0].grid.grid_bits, "replace-one").l2
    assert moved(before[0], after[0]) <= (before[0].diameter if inside else 0.0)


@pytest.mark.parametrize("geometry", MAPS, ids=str)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_leaving_a_sample_is_covered_too(geometry, neighbours):
    largest = {"y": 1.0, "t": 1, "x": 1.0, "z": 1.0}
    before = sums(records(largest | {"id": INSIDE}), geometry, neighbours)
    after = sums(records(largest | {"id": OUTSIDE}), geometry, neighbours)
    # Last come the sample's number of records, and what it is asked; under add-remove all records are counted before.
    for left, right in zip(before[-2:], after[-2:], strict=True):
        assert 0 < moved(left, right) <= left.diameter


def test_the_diameter_of_a_public_number_of_records_would_not_do():
    # Centred by n, an interval from 5 to 6 is one wide; a record that leaves the sample moves its sum by six.
    geometry = Interval(5.0, 6.0)
    before = sums(records({"t": 1, "id": INSIDE}), geometry, "replace-one")[-1]
    after = sums(records({"t": 1, "id": OUTSIDE}), geometry, "replace-one")[-1]
    plain = geometry.grid(before.grid.grid_bits, "replace-one")
    in_units = moved(before, after) * before.grid.unit
    assert in_units == pytest.approx(6.0)
    assert in_units > plain.l2 * plain.unit * 5.9


@pytest.mark.parametrize("estimator", [ATE, CATE])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_whole_fits_stay_within_their_diameters(estimator, neighbours, monkeypatch):
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, records=1.0, information=1.0))
    rng = np.random.default_rng(8)
    n = 3_000
    frame = pd.DataFrame({"x": rng.random(n), "z": rng.uniform(-1, 1, n), "t": rng.integers(0, 2, n)})
    frame = frame.assign(y=np.clip(0.5 + 0.2 * frame["z"] + 0.1 * frame["t"], 0, 1), id=np.arange(n))
    rounds = {}
    for number in (INSIDE, OUTSIDE):
        changed = frame.copy()
        changed.loc[17, ["x", "z", "t", "y", "id"]] = [1.0, -1.0, 1, 0.0, number]
        seen = rounds[number] = []
        # The tape of the first fit answers the second, so that all rounds ask the same.
        tape = iter([each.released for each in rounds[INSIDE]]) if number == OUTSIDE else None

        def answer(_, asked, seen=seen, tape=tape):
            seen.extend(asked)
            return None if tape is None else tuple(next(tape) for _ in asked)

        with seeded_noise(2), watched(answer):
            estimator(epsilon=4, delta=1e-6, bounds=BOUNDS, neighbours=neighbours).fit_table(
                changed, outcome="y", treatment="t", sample_by="id"
            )
    names = [each.query.name for each in rounds[INSIDE]]
    assert names == [each.query.name for each in rounds[OUTSIDE]]
    assert len(names) > 8
    moves = [moved(one, other) for one, other in zip(rounds[INSIDE], rounds[OUTSIDE], strict=True)]
    assert all(move <= each.diameter for move, each in zip(moves, rounds[INSIDE], strict=True))
    assert sum(move > 0 for move in moves) > len(moves) / 2


def test_recorded_sums_name_the_samples_count_first():
    with seeded_noise(1), record_sums() as recorded:
        source = ArrayRecords.of(*_columns(records()), bounds=BOUNDS, sample_by=records()["id"])
        Gate(source, budget=Budget(epsilon=1.0, delta=1e-6)).sampled(PART, 0.1)
    assert [name for name, *_ in recorded] == ["number of records"]


def _columns(frame):
    return frame["y"], frame["t"], frame[["x", "z"]]


@pytest.mark.parametrize("column", ["id", "patient"])
def test_units_with_several_rows_stay_within_their_diameters_in_samples(column, monkeypatch):
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, records=1.0, information=1.0))
    rng = np.random.default_rng(9)
    n = 3_000
    frame = pd.DataFrame({"x": rng.random(n), "z": rng.uniform(-1, 1, n), "t": rng.integers(0, 2, n)})
    frame = frame.assign(y=np.clip(0.5 + 0.2 * frame["z"], 0, 1), id=np.arange(n), patient=np.arange(n) // 3)
    # All rows of one patient leave, so that those of others stand elsewhere, too.
    rounds, tape = [], []
    for table in (frame, frame[frame["patient"] != 0]):
        seen = []
        replayed = iter(tape) if tape else None

        def answer(_, asked, seen=seen, replayed=replayed):
            seen.extend(asked)
            if replayed is not None:
                return tuple(next(replayed) for _ in asked)
            tape.extend(each.released for each in asked)
            return None

        with seeded_noise(2), watched(answer):
            ATE(epsilon=4, delta=1e-6, bounds=BOUNDS).fit_table(
                table, outcome="y", treatment="t", sample_by=column, unit="patient", max_rows=3
            )
        rounds.append(seen)
    assert len(rounds[0]) == len(rounds[1]) > 8
    moves = [moved(one, other) / one.diameter for one, other in zip(*rounds, strict=True)]
    assert max(moves) <= 1.0
    assert sum(move > 0 for move in moves) >= 2


ROWS = 4


def visits(n=3_000):
    """Four rows for each patient; whether a patient is in a sample hangs on the patient's number alone."""
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"x": rng.random(n), "z": rng.uniform(-1, 1, n), "t": rng.integers(0, 2, n)})
    return frame.assign(y=np.clip(0.5 + 0.2 * frame["z"], 0, 1), patient=np.arange(n) // ROWS)


def neighbouring(change):
    """Tables that differ in all rows of one patient, who is in every sample."""
    frame = visits()
    own = frame["patient"] == INSIDE
    frame.loc[own, ["x", "z", "y", "t"]] = [1.0, 1.0, 1.0, 1]
    other = frame[~own] if change == "removed" else frame.copy()
    if change == "replaced":
        other.loc[own, ["x", "z", "y", "t"]] = [0.0, -1.0, 0.0, 0]
    if change == "leaves the sample":
        others = np.arange(10_000.0, 11_000.0)
        other.loc[own, "patient"] = int(others[~chosen(others, 0.9)][0])
    return frame, other


def replayed(make, tables, **options):
    """Rounds of a fit on each table, the second answered from the tape of the first."""
    rounds, tape = [], []
    for table in tables:
        seen, answers = [], iter(list(tape)) if tape else None

        def answer(_, asked, seen=seen, answers=answers):
            seen.extend(asked)
            if answers is not None:
                return tuple(next(answers) for _ in asked)
            tape.extend(each.released for each in asked)
            return None

        with seeded_noise(2), watched(answer):
            make().fit_table(table, outcome="y", treatment="t", **options)
        rounds.append(seen)
    return zip(*rounds, strict=True)


@pytest.mark.parametrize(
    ("estimator", "change"),
    # A function's effects take a while: one change is enough for them.
    [(ATE, "removed"), (ATE, "replaced"), (ATE, "leaves the sample"), (CATE, "replaced")],
)
def test_all_rows_of_a_sampled_unit_together_move_no_sum_further_than_stated(estimator, change, monkeypatch):
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, records=1.0, information=1.0))
    options = {"sample_by": "patient", "unit": "patient", "max_rows": ROWS}
    pairs = list(replayed(lambda: estimator(epsilon=4, delta=1e-6, bounds=BOUNDS), neighbouring(change), **options))
    moves = [moved(one, other) / one.diameter for one, other in pairs]
    assert len(moves) > 8
    assert max(moves) <= 1.0
    # One row's diameter would not do: the rows of this unit moved further.
    assert max(moves) > 1 / ROWS


def sums_of_units(before, after):
    """What a sample is asked, on two tables."""
    found, geometry = [], Interval(0.0, 1.0)
    for frame in (before, after):
        source = ArrayRecords.of(
            *_columns(frame), bounds=BOUNDS, sample_by=frame["patient"], unit=Unit("patient", ROWS)
        )
        seen: list[Any] = []
        with frozen_noise(), watched(lambda _, rounds, seen=seen: seen.extend(rounds)):  # type: ignore[misc]
            gate = Gate(source, budget=Budget(epsilon=1.0, delta=1e-6))
            gate.count(0.1)
            gate.sampled(PART, 0.1).ask(Query("asked", 0.2, geometry, MAPS[geometry]))
        found.append(seen)
    return zip(*found, strict=True)


@pytest.mark.parametrize("change", ["removed", "replaced", "leaves the sample"])
def test_a_gate_on_a_sample_knows_how_many_rows_a_unit_has(change):
    pairs = list(sums_of_units(*neighbouring(change)))
    assert all(moved(one, other) <= one.diameter for one, other in pairs)
    one, other = pairs[-1]
    assert moved(one, other) == pytest.approx(one.diameter, rel=1e-6)


def test_a_gate_on_a_sample_does_not_answer_from_what_was_prepared_for_all_records():
    geometry = Interval(0.0, 1.0)
    query, again = (Query("asked", 0.2, geometry, MAPS[geometry]) for _ in range(2))
    frame, seen = records(), []
    source = ArrayRecords.of(*_columns(frame), bounds=BOUNDS, sample_by=frame["id"])
    with frozen_noise(), watched(lambda _, rounds: seen.extend(rounds)):
        gate = Gate(source, budget=Budget(epsilon=1.0, delta=1e-6))
        gate.prepare(query)
        some = gate.sampled(PART, 0.1)
        some.ask(query)
        some.ask(again)
        gate.ask(query)
    _, prepared, fresh, of_all = (float(each.exact[0]) * each.grid.unit for each in seen)
    inside = chosen(frame["id"].to_numpy(dtype=np.float64), PART)
    assert prepared == fresh == pytest.approx(frame["t"][inside].sum(), abs=1e-6)
    assert of_all + len(frame) * seen[-1].grid.shift == pytest.approx(frame["t"].sum(), abs=1e-6)
    assert prepared < frame["t"].sum()
