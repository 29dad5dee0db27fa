"""Effect functions on neighbouring data sets, released values held fixed: see test_replay.py."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.privacy.test_replay import DATA, RECORDS, RELATIONS, adversaries, farthest, release_of, tape_of

KINDS = ["effects", "effects, doubly robust", "effects, known column", "effects, known number"]
CASES = [(kind, relation, "lopsided") for kind in KINDS for relation in RELATIONS]
CASES += [("effects", "replace-one", "plentiful"), ("effects", "add-remove", "concentrated")]
# Too small a budget for a function: the constant's rounds, after the count.
CASES += [("effects", "add-remove", "binary")]


@pytest.mark.parametrize("case", CASES, ids=" / ".join)
def test_rounds_move_within_their_diameters_and_some_records_move_them_far(case):
    data, relation = DATA[case[2]][0], case[1]
    place = int(np.argmin(data.y))
    y, t, x, e = data.record(place)
    neighbours = [data.neighbour(relation, place, record) for record in [*RECORDS.values(), (y, 1 - t, x, e)]]
    if relation == "add-remove":
        neighbours.append(data.without(place))
    most = farthest(tape_of(*case), neighbours)
    assert len(most) >= (10 if case[2] == "binary" else 14)
    assert sum(share > 0.2 for share in most.values()) > len(most) / 2, most


def test_the_cases_reach_every_round():
    names = set(tape_of("effects", "replace-one", "plentiful").names)
    rounds = {"marginals", "marginals within windows", "initial moments", "average: propensity refinement 1"}
    rounds |= {"outcome moments 1", "outcome moments 2", *(f"effect moments {number}" for number in (1, 2, 3))}
    assert rounds <= names
    assert not release_of("effects", "add-remove", "binary").varies
    assert "jumps" in str(release_of("effects", "replace-one", "plentiful").size)
    number = set(tape_of("effects, known number", "replace-one", "lopsided").names)
    assert "treatment moments" in tape_of("effects, known column", "replace-one", "lopsided").names
    assert not {"treatment moments", "average: propensity refinement 1"} & number


@pytest.mark.parametrize(("kind", "relation"), [("effects", "replace-one"), ("effects, known column", "add-remove")])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_no_record_moves_a_round_beyond_its_diameter(kind, relation, data):
    start = DATA["lopsided"][0]
    place = data.draw(st.integers(0, len(start.y) - 1))
    tape, other = tape_of(kind, relation, "lopsided"), start.neighbour(relation, place, data.draw(adversaries))
    assert len(farthest(tape, [other])) == len(tape.rounds)


@pytest.mark.parametrize("relation", RELATIONS)
def test_with_the_same_answers_neighbours_ask_the_same_and_publish_the_same(relation):
    tape = tape_of("effects", relation, "lopsided")
    for record in (RECORDS["leverage, treated"], RECORDS["outside the bounds, control"]):
        # Post-processing sees answers only: a published number that saw a record would differ, and raise.
        assert max(farthest(tape, [tape.table.neighbour(relation, 17, record)]).values()) > 0
