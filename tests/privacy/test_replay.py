"""Estimators on neighbouring data sets, released values held fixed: no round may move by more than its noise covers.

Rounds are adaptive, so two honest fits would ask different questions. A replay answers every question of the second
fit with what the first one released; whatever still differs came from the records, not through the gate.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATE, CATE, Bounds, DifferenceInMeans, moments, shrinkage
from discreet.gate import Gate, _plan
from discreet.geometry import Ball, Cells, Gram, Interval, MeanSquare
from discreet.testing import frozen_noise, record_sums, seeded_noise

RELATIONS = ["replace-one", "add-remove"]
BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), (0, 1), [0, 1, 2]], propensity=(0.1, 0.9))


class Data:
    """Records as arrays: outcome, treatment, three covariates and a known propensity."""

    def __init__(self, y, t, x, e):
        self.y, self.t, self.x, self.e = y, t, x, e

    def without(self, place):
        return Data(*(np.delete(part, place, axis=0) for part in (self.y, self.t, self.x, self.e)))

    def with_record(self, place, record):
        """Put a record in, before what stands at a place."""
        parts = zip((self.y, self.t, self.x, self.e), record, strict=True)
        return Data(*(np.insert(part, place, value, axis=0) for part, value in parts))

    def record(self, place):
        return self.y[place], self.t[place], self.x[place], self.e[place]

    def neighbour(self, relation, place, record):
        """Replace a record, or add one."""
        start = self.without(place) if relation == "replace-one" else self
        return start.with_record(place, record)


def ordinary(n, seed):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(0, 1.2, n), rng.random(n), rng.integers(0, 3, n)])
    e = 1 / (1 + np.exp(-0.8 * x[:, 0] + 0.5 * (x[:, 2] - 1)))
    t = (rng.random(n) < e).astype(float)
    y = 3 + x[:, 0] + x[:, 1] * t + rng.normal(0, 1, n)
    return Data(y, t, x, np.clip(e, 0.1, 0.9))


def binary(n, seed):
    data = ordinary(n, seed)
    return Data((data.y > 3).astype(float), data.t, data.x, data.e)


def concentrated(n, seed):
    """Nearly everyone is alike: scales are tiny, so that an outlier stands out as far as it can."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(0, 0.01, n), np.full(n, 0.5), np.zeros(n)])
    return Data(rng.normal(0, 0.01, n), np.arange(n) % 2.0, x, np.full(n, 0.5))


def lopsided(n, seed):
    """Few treated, heavy tails, covariates at the ends of their ranges."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.choice([-3.0, 3.0], n), rng.beta(0.2, 2.0, n), rng.choice(3, n, p=[0.9, 0.08, 0.02])])
    t = (np.arange(n) % 8 == 0).astype(float)
    return Data(rng.standard_t(1.5, n), t, x, np.full(n, 0.125))


# Sizes and budgets such that poor and rich bases both occur; 4,100 records fill more than one chunk.
DATA = {
    "ordinary": (ordinary(4_100, 1), 2.0),
    "binary": (binary(300, 2), 1.0),
    "concentrated": (concentrated(700, 3), 20.0),
    "lopsided": (lopsided(900, 4), 5.0),
    "plentiful": (ordinary(1_200, 6), 200.0),
}
# Extreme outcome, flipped treatment, leverage, far outside the bounds, mid-range, at the edges.
RECORDS = {
    "extreme outcome, treated": (10.0, 1.0, [0.0, 0.5, 1], 0.1),
    "extreme outcome, control": (-4.0, 0.0, [0.0, 0.5, 1], 0.9),
    "leverage, treated": (10.0, 1.0, [3.0, 1.0, 2], 0.1),
    "leverage, control": (10.0, 0.0, [-3.0, 0.0, 2], 0.9),
    "outside the bounds, treated": (1e12, 1.0, [-1e9, 1e9, 2], 0.1),
    "outside the bounds, control": (-1e12, 0.0, [1e9, -1e9, 0], 0.9),
    "middle": (3.0, 1.0, [0.0, 0.5, 0], 0.5),
}


def known(data, relation):
    """Each record's propensity; one for all where the number of records is private."""
    return data.e if relation == "replace-one" else 0.3


def estimators(relation, epsilon):
    given = {"epsilon": epsilon, "bounds": BOUNDS, "neighbours": relation}
    return {
        "observational": lambda data: ATE(delta=1e-6, **given),
        "known": lambda data: ATE(delta=1e-6, propensity=known(data, relation), **given),
        "means": lambda data: DifferenceInMeans(delta=1e-6, **given),
        "known means": lambda data: DifferenceInMeans(delta=1e-6, propensity=known(data, relation), **given),
        "pure means": lambda data: DifferenceInMeans(**given),
        "effects": lambda data: CATE(delta=1e-6, **given),
        "effects, doubly robust": lambda data: CATE(delta=1e-6, correction="DR", **given),
        "effects, known column": lambda data: CATE(delta=1e-6, propensity=known(data, relation), **given),
        "effects, known number": lambda data: CATE(delta=1e-6, propensity=0.3, **given),
    }


# Effect functions have a file of their own: test_cate_replay.py.
KINDS = [kind for kind in estimators("replace-one", 1.0) if not kind.startswith("effects")]
CASES = [(kind, relation, name) for kind in KINDS for relation in RELATIONS for name in DATA]


class Tape:
    """What a first fit asked and got; the exact sums of its rounds."""

    def __init__(self, kind, relation, name):
        self.data, epsilon = DATA[name]
        self.relation, self.make = relation, estimators(relation, epsilon)[kind]
        self.asked, self.answers = [], []
        tape, ask = self, Gate.ask

        def taping(gate, *queries):
            released = ask(gate, *queries)
            tape.asked.append(queries)
            tape.answers.append(released)
            return released

        with pytest.MonkeyPatch.context() as patch, seeded_noise(5), record_sums() as self.rounds:
            patch.setattr(Gate, "ask", taping)
            self.release = self.fit(self.data).release_

    def fit(self, data):
        # The public stand-in for the covariates may be small here: hundreds of fits shall take seconds.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moments, "REFERENCE", 500)
            patch.setattr(shrinkage, "_SWEEPS", 3)
            return self.make(data).fit(data.y, data.t, X=data.x)

    def replay(self, data):
        """Fit again, on other records, but with the answers of the tape; the exact sums of the second fit."""
        answers, asked, ask = iter(self.answers), iter(self.asked), Gate.ask

        def answering(gate, *queries):
            own = ask(gate, *queries)
            # Had a question depended on the records in any other way than through answers, it would show here.
            before = [(query.name, query.share, query.geometry) for query in next(asked)]
            assert [(query.name, query.share, query.geometry) for query in queries] == before
            taped = next(answers)
            for mine, theirs in zip(own, taped, strict=True):
                np.testing.assert_array_equal(mine.sd, theirs.sd)
            return taped

        with pytest.MonkeyPatch.context() as patch, frozen_noise(), record_sums() as rounds:
            patch.setattr(Gate, "ask", answering)
            release = self.fit(data).release_
        assert next(answers, None) is None
        return rounds, release


TAPES = {}


def tape_of(*case):
    if case not in TAPES:
        TAPES[case] = Tape(*case)
    return TAPES[case]


def squared_move(geometry, first, second, pure):
    """Exact squared distance in integers: L1 if pure, L2 otherwise, Frobenius for a matrix stored once."""
    steps = [int(a) - int(b) for a, b in zip(first, second, strict=True)]
    if pure:
        return sum(map(abs, steps)) ** 2
    full = geometry.dimension if isinstance(geometry, Gram) else len(steps)
    return sum(step**2 for step in steps[:full]) + 2 * sum(step**2 for step in steps[full:])


def check(first, second, pure):
    """No round moves further than its diameter; how far each moved, as a share of it."""
    shares = {}
    for (name, geometry, before, diameter), (same, _, after, again) in zip(first, second, strict=True):
        assert (name, diameter) == (same, again)
        moved, allowed = squared_move(geometry, before, after, pure), Fraction(diameter) ** 2
        assert moved <= allowed, f"{name} moved by {math.sqrt(moved / allowed):.3f} of its diameter"
        shares[name] = max(shares.get(name, 0.0), math.sqrt(moved / allowed))
    return shares


def farthest(case, neighbours):
    """Over several neighbours, how far each round moved at most."""
    tape, most = tape_of(*case), {}
    for data in neighbours:
        for name, share in check(tape.rounds, tape.replay(data)[0], case[0].startswith("pure")).items():
            most[name] = max(most.get(name, 0.0), share)
    return most


@pytest.mark.parametrize("case", CASES, ids=" / ".join)
def test_rounds_move_within_their_diameters_and_some_records_move_them_far(case):
    data, relation = DATA[case[2]][0], case[1]
    place = int(np.argmin(data.y))
    neighbours = [data.neighbour(relation, place, record) for record in RECORDS.values()]
    y, t, x, e = data.record(place)
    neighbours += [data.neighbour(relation, place, record) for record in [(y, 1 - t, x, e), data.record(place - 1)]]
    if relation == "add-remove":
        neighbours += [data.without(place), data.without(int(np.argmax(data.y)))]
    most = farthest(case, neighbours)
    assert len(most) >= 5
    assert sum(share > 0.2 for share in most.values()) > len(most) / 2, most


numbers = st.one_of(st.floats(-5, 11), st.sampled_from([-4.0, 10.0, 0.0, 1e300, -1e300, 5e-324]))
adversaries = st.tuples(
    numbers,
    st.sampled_from([0.0, 1.0]),
    st.tuples(numbers, numbers, st.sampled_from([0, 1, 2])).map(list),
    st.floats(0.1, 0.9),
)


def test_the_cases_reach_every_round():
    names = [name for name, *_ in tape_of("observational", "replace-one", "plentiful").rounds]
    assert {"calibration 1", "calibration 2", "calibration 3", "effect moments", "residual moments"} <= set(names)


@pytest.mark.parametrize(("kind", "relation"), [(kind, relation) for kind in KINDS for relation in RELATIONS])
@settings(max_examples=40)
@given(data=st.data())
def test_no_record_moves_a_round_beyond_its_diameter(kind, relation, data):
    name = data.draw(st.sampled_from(["binary", "concentrated", "lopsided"]))
    start = DATA[name][0]
    place = data.draw(st.integers(0, len(start.y) - 1))
    tape, other = tape_of(kind, relation, name), start.neighbour(relation, place, data.draw(adversaries))
    most = check(tape.rounds, tape.replay(other)[0], kind.startswith("pure"))
    assert len(most) == len(tape.rounds)


@pytest.mark.parametrize(("kind", "relation"), [(kind, relation) for kind in KINDS for relation in RELATIONS])
@pytest.mark.parametrize("name", ["lopsided", "ordinary"])
def test_with_the_same_answers_neighbours_ask_the_same_and_publish_the_same(kind, relation, name):
    tape, place = tape_of(kind, relation, name), 17
    for record in (RECORDS["leverage, treated"], RECORDS["outside the bounds, control"]):
        other = tape.data.neighbour(relation, place, record)
        rounds, release = tape.replay(other)
        check(tape.rounds, rounds, kind.startswith("pure"))
        assert any(np.any(a[2] != b[2]) for a, b in zip(tape.rounds, rounds, strict=True))
        # Post-processing sees answers only: a published number that saw a record would differ.
        assert release.to_dict() == tape.release.to_dict()


@pytest.mark.parametrize("geometry", [Ball, Cells, Gram, Interval, MeanSquare])
def test_a_diameter_stated_too_small_by_half_is_found(geometry, monkeypatch):
    # A negative control: the check must be able to fail, whichever geometry is wrong.
    case = ("observational", "add-remove", "lopsided")
    grid = geometry.grid

    def halved(self, room, neighbours):
        right = grid(self, room, neighbours)
        parts = {name: getattr(right, name) for name in ("units", "shift", "numbers", "full", "add")}
        return type(right)(l2=right.l2 / 2, l1=right.l1 / 2, **parts)

    def search():
        wrong, start = Tape(*case), DATA[case[2]][0]
        for record in RECORDS.values():
            check(wrong.rounds, wrong.replay(start.neighbour(case[1], 17, record))[0], pure=False)

    monkeypatch.setattr(geometry, "grid", halved)
    # Cached plans still have the right diameters, and must not be left with wrong ones.
    _plan.cache_clear()
    try:
        with pytest.raises(AssertionError, match="of its diameter"):
            search()
    finally:
        _plan.cache_clear()
