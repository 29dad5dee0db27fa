"""Effect functions on neighbouring data sets, released values held fixed: see test_replay.py."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.estimators._effect_allocation import AVERAGE, AVERAGE_PART, EFFECT_ROUNDS
from discreet.privacy.accountant import calibrate_mu
from tests.privacy.test_replay import DATA, RECORDS, RELATIONS, adversaries, farthest, release_of, tape_of

KINDS = ["effects", "effects, doubly robust", "effects, known column", "effects, known number"]
CASES = [(kind, relation, "lopsided") for kind in KINDS for relation in RELATIONS]
CASES += [("effects", "replace-one", "plentiful"), ("effects", "add-remove", "concentrated")]
# A small budget: there is a function in any case.
CASES += [("effects", "add-remove", "binary")]
NUMBERS = range(1, EFFECT_ROUNDS + 1)
ROUNDS = [f"effect {kind} {number}" for number in NUMBERS for kind in ("residual magnitude", "moments")]


@pytest.mark.parametrize("case", CASES, ids=" / ".join)
def test_rounds_move_within_their_diameters_and_some_records_move_them_far(case):
    data, relation = DATA[case[2]][0], case[1]
    place = int(np.argmin(data.y))
    y, t, x, e = data.record(place)
    neighbours = [data.neighbour(relation, place, record) for record in [*RECORDS.values(), (y, 1 - t, x, e)]]
    if relation == "add-remove":
        neighbours.append(data.without(place))
    most = farthest(tape_of(*case), neighbours)
    assert len(most) >= 14
    assert sum(share > 0.2 for share in most.values()) > 0.9 * len(most), most
    assert min(most[name] for name in ROUNDS) > 0.25, most


def test_the_cases_reach_every_round():
    names = tape_of("effects", "replace-one", "plentiful").names
    own = len(ROUNDS)
    assert names[-own:] == ROUNDS
    assert all(name.startswith(AVERAGE) for name in names[:-own])
    assert {f"{AVERAGE}marginals", f"{AVERAGE}propensity refinement 1", f"{AVERAGE}score"} <= set(names)
    assert set(ROUNDS) <= set(tape_of("effects", "add-remove", "binary").names)
    number = tape_of("effects, known number", "replace-one", "lopsided").names
    column = tape_of("effects, known column", "replace-one", "lopsided").names
    assert (number[-own - 1], column[-own - 1]) == (f"{AVERAGE}score", "probabilities of treatment")
    assert not {f"{AVERAGE}treatment moments", f"{AVERAGE}propensity refinement 1"} & {*number, *column}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_rounds_add_up_to_the_budget_and_the_function_has_its_part(kind, relation):
    release = release_of(kind, relation, "lopsided")
    shares, events = release.adjustment["shares"], release.guarantee.events
    assert {event.name for event in events} == set(shares)
    assert sum(shares.values()) == pytest.approx(1.0)
    counts = shares.get("number of records", 0.0)
    assert (counts > 0.0) == (relation == "add-remove")
    own = {name: share for name, share in shares.items() if not name.startswith((AVERAGE, "number of records"))}
    assert sum(own.values()) == pytest.approx((1.0 - AVERAGE_PART) * (1.0 - counts))
    assert set(own) - {"probabilities of treatment"} == set(ROUNDS)
    whole = calibrate_mu(DATA["lopsided"][1], 1e-6) ** 2
    # A large matrix has a little more noise than its share asks for; no round has less.
    for event in events:
        assert event.mu**2 <= shares[event.name] * whole * (1.0 + 1e-9), event.name
    assert 0.98 * whole < sum(event.mu**2 for event in events) <= whole * (1.0 + 1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_record_moves_a_round_beyond_its_diameter(kind, relation, data):
    start = DATA["lopsided"][0]
    place = data.draw(st.integers(0, len(start.y) - 1))
    tape, other = tape_of(kind, relation, "lopsided"), start.neighbour(relation, place, data.draw(adversaries))
    assert len(farthest(tape, [other])) == len(tape.rounds)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", ["effects", "effects, known column"])
def test_with_the_same_answers_neighbours_ask_the_same_and_publish_the_same(kind, relation):
    tape = tape_of(kind, relation, "lopsided")
    for record in (RECORDS["leverage, treated"], RECORDS["outside the bounds, control"]):
        # Post-processing sees answers only: a published number that saw a record would differ, and raise.
        assert max(farthest(tape, [tape.table.neighbour(relation, 17, record)]).values()) > 0
