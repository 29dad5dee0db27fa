"""Times to an event on neighbouring data sets: no record moves a round beyond its diameter, whatever it holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Bounds, SurvivalEffect
from discreet.audit._tape import Tape
from discreet.data.records import Chunk
from discreet.datasets import survival_trial
from discreet.estimators.survival.seen import Seen, TimeCells
from discreet.postprocessing.survival.curves import Arm
from discreet.postprocessing.survival.pseudo_outcome import pseudo_outcome
from discreet.testing import frozen_noise

RELATIONS = ("replace-one", "add-remove")
BOUNDS = Bounds(outcome=(0, 730), propensity=(0.1, 0.9))
WIDE = Bounds(outcome=(0, 730), covariates=[(-1, 1)] * 3, propensity=(0.1, 0.9))


class Data:
    """Records as arrays."""

    def __init__(self, time, event, t, x):
        self.parts = time, event, t, x

    def neighbour(self, relation, place, record):
        """Replace a record, or add one."""
        rest = self.parts if relation == "add-remove" else [np.delete(part, place, axis=0) for part in self.parts]
        return Data(*(np.insert(part, place, value, axis=0) for part, value in zip(rest, record, strict=True)))


def fitting(relation, bounds, **given):
    def fit(data):
        time, event, t, x = data.parts
        made = SurvivalEffect(epsilon=2.0, delta=1e-6, bounds=bounds, horizon=365, neighbours=relation, **given)
        return made.fit(time, t, event=event, X=x if bounds.p else None)

    return fit


def tape_of(relation, bounds, **given):
    trial = survival_trial(n=300, seed=3)
    data = Data(trial.time, trial.event, trial.T, trial.X)
    return Tape(fitting(relation, bounds, **given), data)


TAPES = {
    (relation, words): tape_of(relation, bounds, **given)
    for relation in RELATIONS
    for words, bounds, given in (
        ("trial", BOUNDS, {"propensity": 0.5}),
        ("share released", BOUNDS, {"measure": "risk"}),
        ("adjusted", WIDE, {}),
    )
}
times = st.one_of(st.floats(0, 800), st.sampled_from([0.0, 5e-324, 365.0, np.nextafter(365.0, 400.0), 730.0, 1e300]))
adversaries = st.tuples(
    times,
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0, 1.0]),
    st.lists(st.sampled_from([-1e9, -1.0, 0.0, 0.5, 1.0]), min_size=3, max_size=3),
)


def check_moves(case, record, place=17):
    """How far each round moved; none beyond its diameter."""
    tape = TAPES[case]
    moved = tape.moves(tape.table.neighbour(case[0], place, record))
    assert max(moved) <= 1.0
    return moved


@pytest.mark.parametrize("case", TAPES, ids=" / ".join)
@settings(max_examples=25)
@given(record=adversaries, place=st.integers(0, 299))
def test_no_record_moves_a_round_beyond_its_diameter(case, record, place):
    assert len(check_moves(case, record, place)) == len(TAPES[case].rounds)


def check_the_table_and_the_score_are_moved_as_far_as_they_say():
    """By some record; by none further."""
    for relation in RELATIONS:
        found = [
            check_moves((relation, "trial"), (time, event, t, [0.0] * 3), place)
            for time in (0.0, 200.0, 365.0, 730.0)
            for event in (0.0, 1.0)
            for t in (0.0, 1.0)
            for place in range(3)
        ]
        *_, table, score = np.max(found, axis=0)
        assert [each.query.name for each in TAPES[relation, "trial"].rounds][-2:] == [
            "times and events by arm",
            "score",
        ]
        assert min(table, score) > 0.95


def test_the_table_and_the_score_are_moved_as_far_as_they_say():
    check_the_table_and_the_score_are_moved_as_far_as_they_say()


def check_a_record_is_seen_alike_whatever_stands_beside_it():
    """Cells, and what records count as, record by record and all at once; the latter within the bounds of the view."""
    rng = np.random.default_rng(4)
    y = np.concatenate([rng.uniform(-1, 1, 500), [-1.0, 0.0, 1.0, np.nextafter(0.0, 1.0)] * 4])
    event, t = rng.integers(0, 2, len(y)).astype(float), rng.integers(0, 2, len(y)).astype(float)
    chunk = Chunk(y, t, np.empty((len(y), 0)), None, more={"event": event})
    times, horizon = np.array([100.0, 365.0]), 0.0
    counts = [np.array([30.0, 20.0, 10.0, 15.0, 25.0]), np.array([10.0, 20.0, 20.0, 5.0, 45.0])]
    arms = tuple(Arm.of(times, each, 3.0) for each in counts)
    view = Seen(pseudo_outcome(arms, "rmst"), horizon)
    cells = TimeCells(np.array([-0.5, horizon]))
    whole, seen = cells(chunk), view(chunk)
    assert np.all((whole >= 0) & (whole <= 9))
    assert np.all(np.abs(seen.y) <= 1.0)
    assert view.bounds(BOUNDS).outcome == (view.number.low, view.number.high)
    # Who was followed to the horizon counts as the same in both arms.
    assert len(np.unique(seen.y[(y > horizon)])) == 1
    for place in range(len(y)):
        own = slice(place, place + 1)
        alone = Chunk(y[own], t[own], chunk.x[own], None, more={"event": event[own]})
        assert cells(alone)[0] == whole[place]
        assert view(alone).y[0] == seen.y[place]


def test_a_record_is_seen_alike_whatever_stands_beside_it():
    check_a_record_is_seen_alike_whatever_stands_beside_it()


@pytest.mark.parametrize("relation", RELATIONS)
def test_with_the_same_answers_neighbours_publish_the_same(relation):
    with frozen_noise():
        assert max(check_moves((relation, "adjusted"), (10.0, 1.0, 1.0, [1.0, -1.0, 1.0]))) > 0
