"""Policies: records move into the region that one treats and out of it, and no sum moves further than is stated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATE, Bounds, Policy, PolicyValue
from discreet.audit._tape import Tape
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Unit
from discreet.data.views.within import RecordsWithin, Region
from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_within import gate_within
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.fixed_point import plan_noise
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare
from discreet.testing import frozen_noise, watched

BOUNDS = Bounds(outcome=(0, 1), covariates={"x": (0, 1), "z": (-1, 1)}, propensity=(0.1, 0.9))
POLICY = Policy.declare(bounds=BOUNDS, by={"x": 4, "z": 2}, treated=[0, 1, 0, 0, 1, 1, 1, 0])
REGION = Region(POLICY.rule, (0, 1))
INSIDE, OUTSIDE = [0.8, -0.5], [0.3, 0.5]
MAPS = {
    Interval(0.0, 1.0): lambda c: c.t,
    Interval(5.0, 6.0): lambda c: 5.0 + c.t,
    Interval(-3.0, 1.0): lambda c: -3.0 + 4.0 * c.t,
    Ball(2.0, 2): lambda c: np.column_stack([4.0 * c.y, 3.0 * c.x[:, 0]]),
    Cells((4,)): lambda c: np.floor(2.0 + 2.0 * c.x[:, 0]),
    MeanSquare(0.5): lambda c: c.y,
    Gram(1.5, 2): lambda c: np.column_stack([2.0 * c.y, 2.0 * c.x[:, 1]]),
}
RELATIONS = ["replace-one", "add-remove"]


def records(one=None, n=200):
    """Outcomes, arms and covariates; one record is changed, or left out where it is False."""
    rng = np.random.default_rng(5)
    y, t, x = rng.random(n), rng.integers(0, 2, n) * 1.0, np.column_stack([rng.random(n), rng.uniform(-1, 1, n)])
    if one is False:
        return tuple(np.delete(part, 17, axis=0) for part in (y, t, x))
    if one is not None:
        y[17], t[17], x[17] = one
    return y, t, x


def sums(data, geometry, relation):
    """What is seen of a region: its number of records, and what it is asked."""
    y, t, x = data
    gate = Gate(ArrayRecords.of(y, t, x, bounds=BOUNDS), budget=Budget(epsilon=1.0, delta=1e-6), neighbours=relation)
    seen = []
    with frozen_noise(), watched(lambda _, rounds: seen.extend(rounds)):
        gate.count(0.1)
        gate_within(gate, REGION, 0.1).ask(Query("asked", 0.2, geometry, MAPS[geometry]))
    return seen[-2:]


def moved(one, other):
    weight = np.ones(one.exact.size)
    if isinstance(one.query.geometry, Gram):
        weight[one.query.geometry.dimension :] = 2.0
    return float(np.sqrt(np.sum(weight * (one.exact - other.exact).astype(np.float64) ** 2)))


VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
RECORD = st.tuples(VALUES, st.sampled_from([0.0, 1.0]), st.tuples(VALUES, st.sampled_from([-1.0, 0.0, 1.0])))


@settings(max_examples=150, deadline=None)
@given(RECORD, RECORD, st.sampled_from(list(MAPS)))
def test_a_replaced_record_moves_no_sum_of_a_region_further_than_stated(one, other, geometry):
    before, after = (sums(records(each), geometry, "replace-one") for each in (one, other))
    for left, right in zip(before, after, strict=True):
        assert left.grid.l2 == right.grid.l2
        assert moved(left, right) <= left.diameter


@settings(max_examples=100, deadline=None)
@given(RECORD, st.sampled_from(list(MAPS)))
def test_a_record_that_comes_or_goes_moves_no_sum_of_a_region_further_than_stated(one, geometry):
    before, after = (sums(records(each), geometry, "add-remove") for each in (one, False))
    for left, right in zip(before, after, strict=True):
        assert moved(left, right) <= left.diameter


def check_leaving_is_covered(geometry, relation):
    before = sums(records((1.0, 1.0, INSIDE)), geometry, relation)
    after = sums(records((1.0, 1.0, OUTSIDE)), geometry, relation)
    for left, right in zip(before, after, strict=True):
        assert 0 < moved(left, right) <= left.diameter


@pytest.mark.parametrize("geometry", MAPS, ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
def test_leaving_a_region_is_covered_too(geometry, relation):
    check_leaving_is_covered(geometry, relation)


def test_a_region_whose_number_of_records_counted_as_public_is_found(monkeypatch):
    # Sums would be centred by a number of records that nobody may know, and the gate says so.
    monkeypatch.setattr(RecordsWithin, "unit", property(lambda self: self.source.unit))
    with pytest.raises(InvalidInput, match="n is private"):
        check_leaving_is_covered(Interval(5.0, 6.0), "replace-one")


def test_a_region_knows_how_many_rows_a_unit_has():
    y, t, x = records()
    source = ArrayRecords.of(y, t, x, bounds=BOUNDS, unit=Unit("id", 3))
    assert RecordsWithin(source, REGION).unit == Unit("id", 3)
    inside = gate_within(Gate(source, budget=Budget(epsilon=1.0), neighbours="replace-one"), REGION, 0.1)
    assert inside.most_rows == 3


def test_sums_over_a_region_are_those_of_its_records_and_zeros_where_there_are_none():
    y, t, x = records(n=9_000)
    held = REGION.holds(np.column_stack([2 * x[:, 0] - 1, x[:, 1]]))
    assert 0 < held.sum() < len(held)
    for chosen in (np.ones(len(y), dtype=bool), held, ~held):
        source = ArrayRecords.of(y[chosen], t[chosen], x[chosen], bounds=BOUNDS)
        found = RecordsWithin(source, REGION).sum(lambda c: np.array([len(c.t), c.t.sum()]).astype(np.int64))
        both = chosen & held
        # An empty chunk adds as many zeros as the kernel has numbers.
        assert found.tolist() == [both.sum(), t[both].sum()]


def test_what_was_prepared_for_all_records_is_no_answer_for_a_region():
    y, t, x = records()
    source = ArrayRecords.of(y, t, x, bounds=BOUNDS)
    gate = Gate(source, budget=Budget(epsilon=1.0), neighbours="add-remove")
    question = Query("treated", 0.2, Interval(0.0, 1.0), lambda c: c.t)
    with frozen_noise():
        gate.count(0.1)
        gate.prepare(question)
        (found,) = gate_within(gate, REGION, 0.1).ask(question)
    assert float(found.value) < t.sum()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("given_", [{"propensity": 0.5}, {"delta": 1e-6}, {"delta": 1e-6, "propensity": 0.5}], ids=str)
def test_over_many_neighbours_no_round_exceeds_its_diameter(relation, given_):
    def fit(data):
        y, t, x = data
        made = PolicyValue(policy=POLICY, epsilon=20.0, bounds=BOUNDS, neighbours=relation, **given_)
        return made.fit(y, t, X=x)

    n, rng = 300, np.random.default_rng(1)
    tape, moves = Tape(fit, records((1.0, 1.0, INSIDE), n)), []
    for _ in range(40):
        one = rng.choice([0.0, 1.0]), rng.integers(0, 2), [rng.choice([0.0, 0.3, 0.8, 1.0]), rng.choice([-1.0, 1.0])]
        data = records(False, n) if relation == "add-remove" else records(one, n)
        moves.append(tape.moves(data))
    assert np.max(moves) <= 1
    if relation == "replace-one":
        assert np.max(moves, axis=0)[0] > 0.9


def test_the_shares_of_a_value_are_those_of_an_average_effect_after_the_count():
    plan_noise.cache_clear()
    y, t, x = records(n=2_000)
    with frozen_noise():
        value = PolicyValue(policy=POLICY, epsilon=1.0, delta=1e-6, bounds=BOUNDS, propensity=0.5).fit(y, t, X=x)
        whole = ATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS, propensity=0.5).fit(y, t, X=x)
    names = [event.name for event in value.guarantee_.events]
    assert names[0] == "number of records"
    assert set(names[1:]) <= {event.name for event in whole.guarantee_.events}
    assert value.release_.adjustment["shares"]["number of records"] == 0.02
