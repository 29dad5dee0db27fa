"""Estimators on neighbouring data sets, released values held fixed: no round may move by more than its noise covers.

The tape is the audit's: `discreet.audit._tape` says how it works.
"""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATC, ATE, ATO, ATT, CATE, Bounds, DifferenceInMeans
from discreet.audit._tape import Tape, Unlike
from discreet.postprocessing import reference_population as moments
from discreet.privacy.sensitivity.fixed_point import plan_noise
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare
from discreet.testing import seeded_noise

RELATIONS = ["replace-one", "add-remove"]
BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), (0, 1), [0, 1, 2]], propensity=(0.1, 0.9))


class Data:
    """Records as arrays: outcome, treatment, three covariates and a known propensity."""

    def __init__(self, y, t, x, e):
        self.y, self.t, self.x, self.e = y, t, x, e

    def frame(self):
        """The same as a table, whose columns can be named."""
        return pd.DataFrame({"y": self.y, "t": self.t, "e": self.e} | {f"x{j}": self.x[:, j] for j in range(3)})

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
        "treated": lambda data: ATT(delta=1e-6, **given),
        "controls, known": lambda data: ATC(delta=1e-6, propensity=known(data, relation), **given),
        "overlap": lambda data: ATO(delta=1e-6, **given),
        "means": lambda data: DifferenceInMeans(delta=1e-6, **given),
        "known means": lambda data: DifferenceInMeans(delta=1e-6, propensity=known(data, relation), **given),
        "pure means": lambda data: DifferenceInMeans(**given),
        "effects": lambda data: CATE(delta=1e-6, **given),
        "effects, doubly robust": lambda data: CATE(delta=1e-6, correction="DR", **given),
        "effects, known column": lambda data: CATE(delta=1e-6, propensity="e", **given),
        "effects, known number": lambda data: CATE(delta=1e-6, propensity=0.3, **given),
    }


# Effect functions have a file of their own: test_cate_replay.py.
KINDS = [kind for kind in estimators("replace-one", 1.0) if not kind.startswith("effects")]
CASES = [(kind, relation, name) for kind in KINDS for relation in RELATIONS for name in DATA]


def fitting(kind, relation, name):
    """From a data set to a fitted estimator."""
    make = estimators(relation, DATA[name][1])[kind]

    def fit(data):
        # The public stand-in for the covariates may be small here: hundreds of fits shall take seconds.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moments, "REFERENCE", 500)
            if kind == "effects, known column":
                names = [f"x{j}" for j in range(3)]
                return make(data).fit_table(data.frame(), outcome="y", treatment="t", covariates=names)
            return make(data).fit(data.y, data.t, X=data.x)

    return fit


@cache
def tape_of(kind, relation, name):
    return Tape(fitting(kind, relation, name), DATA[name][0])


def release_of(*case):
    with seeded_noise(5):
        return fitting(*case)(DATA[case[2]][0]).release_


def farthest(tape, neighbours):
    """Over several neighbours, how far each round moved at most; none moves further than its diameter."""
    most = {}
    for data in neighbours:
        # Other questions, or another release after the same answers, raise here.
        for name, share in zip(tape.names, tape.moves(data), strict=True):
            assert share <= 1, f"{name} moved by {share:.3f} of its diameter"
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
    most = farthest(tape_of(*case), neighbours)
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
    names = set(tape_of("observational", "replace-one", "plentiful").names)
    cycles = ("propensity refinement", "residual magnitude", "residual moments")
    refined = {f"{kind} {number}" for kind in cycles for number in (1, 2, 3)}
    assert refined | {"correlations", "effect moment", "residual tails", "clipped excess", "score"} <= names


@pytest.mark.parametrize(("kind", "relation"), [(kind, relation) for kind in KINDS for relation in RELATIONS])
@settings(max_examples=40)
@given(data=st.data())
def test_no_record_moves_a_round_beyond_its_diameter(kind, relation, data):
    name = data.draw(st.sampled_from(["binary", "concentrated", "lopsided"]))
    start = DATA[name][0]
    place = data.draw(st.integers(0, len(start.y) - 1))
    tape, other = tape_of(kind, relation, name), start.neighbour(relation, place, data.draw(adversaries))
    assert len(farthest(tape, [other])) == len(tape.rounds)


@pytest.mark.parametrize(("kind", "relation"), [(kind, relation) for kind in KINDS for relation in RELATIONS])
@pytest.mark.parametrize("name", ["lopsided", "ordinary"])
def test_with_the_same_answers_neighbours_ask_the_same_and_publish_the_same(kind, relation, name):
    tape, place = tape_of(kind, relation, name), 17
    for record in (RECORDS["leverage, treated"], RECORDS["outside the bounds, control"]):
        # Post-processing sees answers only: a published number that saw a record would differ, and raise.
        assert max(farthest(tape, [tape.table.neighbour(relation, place, record)]).values()) > 0


def test_a_release_that_saw_a_record_is_found():
    case = ("means", "replace-one", "binary")
    fit = fitting(*case)

    def leaking(data):
        fitted = fit(data)
        return SimpleNamespace(release_={"mean": float(np.mean(data.y))}, guarantee_=fitted.guarantee_)

    start = DATA[case[2]][0]
    with pytest.raises(Unlike, match="without noise"):
        Tape(leaking, start).moves(start.neighbour(case[1], 17, (1.0 - start.y[17], *start.record(17)[1:])))


def test_a_question_that_saw_a_record_is_found():
    case = ("means", "replace-one", "binary")
    start = DATA[case[2]][0]

    def asking(data):
        # The scale of the noise follows a record.
        return DifferenceInMeans(epsilon=1.0 + 1e-3 * float(data.y[17]), bounds=BOUNDS).fit(data.y, data.t, X=data.x)

    with pytest.raises(Unlike, match="another question"):
        Tape(asking, start).moves(start.neighbour(case[1], 17, (1.0 - start.y[17], *start.record(17)[1:])))


@pytest.mark.parametrize("geometry", [Ball, Cells, Gram, Interval, MeanSquare])
def test_a_diameter_stated_too_small_by_half_is_found(geometry, monkeypatch):
    # A negative control: the check must be able to fail, whichever geometry is wrong.
    case = ("observational", "add-remove", "lopsided")
    grid = geometry.grid

    def halved(self, grid_bits, neighbours):
        right = grid(self, grid_bits, neighbours)
        return replace(right, l2=right.l2 / 2, l1=right.l1 / 2)

    def search():
        start = DATA[case[2]][0]
        farthest(Tape(fitting(*case), start), [start.neighbour(case[1], 17, record) for record in RECORDS.values()])

    monkeypatch.setattr(geometry, "grid", halved)
    # Cached plans still have the right diameters, and must not be left with wrong ones.
    plan_noise.cache_clear()
    try:
        with pytest.raises(AssertionError, match="of its diameter"):
            search()
    finally:
        plan_noise.cache_clear()
