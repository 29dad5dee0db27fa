"""Several arms on neighbouring data sets: neither set is wider than stated, and no round moves beyond its diameter."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATE, Bounds, DifferenceInMeans
from discreet.audit._tape import Tape
from discreet.exceptions import InvalidInput
from discreet.postprocessing import reference_population as moments
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.fixed_point import plan_noise
from discreet.privacy.sensitivity.moments import ArmMoments, VectorMoments
from tests.privacy.test_replay import Data, farthest

RELATIONS = ["replace-one", "add-remove"]
BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), (0, 1), [0, 1, 2]], treatment=[0, 1, 2], propensity=(0.1, 0.8))
NUMBERS = st.floats(-1e3, 1e3) | st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1e300])


def distance(geometry, first, second, relation, bits=24):
    """How far sums of two single records are apart, or how long one is, over the stated diameters."""
    grid = geometry.grid(bits, relation)
    moved = grid.add(np.array([first])).astype(float)
    if relation == "replace-one":
        moved = moved - grid.add(np.array([second])).astype(float)
    return np.linalg.norm(moved) / grid.l2, np.abs(moved).sum() / grid.l1


@pytest.mark.parametrize("relation", RELATIONS)
@given(st.lists(NUMBERS, min_size=3, max_size=3), st.lists(NUMBERS, min_size=3, max_size=3))
def test_a_vector_and_its_products_stay_within_their_diameter(relation, first, second):
    assert distance(VectorMoments(2.5, 3), first, second, relation)[0] <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("low", "high", "weight"), [(1, 1, 1), (0.1, 2, 0.5), (0, 3, 0.5), (2, 0.7, 0.8), (1, 1, 0.25)]
)
@given(st.integers(-1, 4) | st.just(np.nan), NUMBERS, st.integers(-1, 4), NUMBERS)
def test_a_number_in_its_arm_stays_within_its_diameters(relation, low, high, weight, arm, s, other, w):
    l2, l1 = distance(ArmMoments(low, high, 3, weight), [arm, s], [other, w], relation)
    assert l2 <= 1.0
    assert l1 <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_diameters_are_attained(relation):
    opposite = distance(VectorMoments(2.5, 3), [2.5, 0, 0], [-2.5, 0, 0], relation)
    assert opposite[0] > 0.999999
    for low, high, weight in [(1, 1, 1), (0.1, 2, 0.5), (2, 0.7, 0.8)]:
        far = high if high > low else -low
        ends = [[0, far], [1, far], [0, high], [0, -low]]
        found = [distance(ArmMoments(low, high, 3, weight), a, b, relation) for a in ends for b in ends]
        assert max(l2 for l2, _ in found) > 0.999999
        assert max(l1 for _, l1 in found) > 0.999999


def test_no_direction_leads_further_than_stated():
    """What the mutants of these sets are given: opposite and orthogonal vectors, and numbers at and beyond the ends."""
    vectors = [*np.eye(3) * 9.0, *-np.eye(3) * 9.0, np.ones(3), -np.ones(3), np.array([1.0, 1.0, -1.0])]
    numbers_ = [(arm, s) for arm in (0, 1) for s in (-9.0, 0.0, 0.05, 9.0)]
    for relation in RELATIONS:
        assert max(distance(VectorMoments(1.0, 3), a, b, relation)[0] for a in vectors for b in vectors) <= 1.0
        sets = ArmMoments(0.1, 2.0, 3, 0.5), ArmMoments(1.0, 1.0, 3, 1.0)
        assert max(distance(each, a, b, relation)[0] for each in sets for a in numbers_ for b in numbers_) <= 1.0


def test_sums_and_products_are_those_of_the_records():
    rng = np.random.default_rng(1)
    v = rng.normal(0.0, 0.4, (500, 3))
    geometry = VectorMoments(2.5, 3)
    grid = geometry.grid(36, "replace-one")
    sums, products = geometry.divided(grid.add(v) * grid.units)
    np.testing.assert_allclose(sums, v.sum(axis=0), atol=1e-4)
    np.testing.assert_allclose(products, v.T @ v, atol=1e-4)
    arm, s = rng.integers(0, 3, 500), rng.uniform(-0.5, 2.0, 500)
    by_arm = ArmMoments(0.5, 2.0, 3, 0.5)
    grid = by_arm.grid(36, "replace-one")
    table = by_arm.natural(grid.add(np.column_stack([arm, s])) * grid.units)
    np.testing.assert_allclose(table[:, 0], np.bincount(arm, s), atol=1e-6)
    np.testing.assert_allclose(table[:, 1], np.bincount(arm, s * s), atol=1e-6)


def test_products_have_no_laplace_noise():
    from discreet.data.in_memory import ArrayRecords

    data = ordinary(40, 0)
    gate = Gate(ArrayRecords.of(data.y, data.t, data.x, bounds=BOUNDS), budget=Budget(epsilon=1.0))
    with pytest.raises(InvalidInput, match="Laplace"):
        gate.ask(Query("products", 1.0, VectorMoments(1.0, 3), lambda c: c.x))


def test_sets_refuse_what_is_no_size():
    with pytest.raises(InvalidInput, match="dimension"):
        VectorMoments(1.0, 1_000)
    with pytest.raises(InvalidInput, match="not negative"):
        ArmMoments(-1.0, 2.0, 3, 0.5)


def ordinary(n, seed):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(0, 1.2, n), rng.random(n), rng.integers(0, 3, n)])
    t = (rng.random(n) + 0.15 * x[:, 0] * (rng.random(n) < 0.5) > 0.5).astype(float) + (rng.random(n) < 0.3)
    y = 3 + x[:, 0] + x[:, 1] * t + rng.normal(0, 1, n)
    return Data(y, t, x, np.full(n, 0.5))


def lopsided(n, seed):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.choice([-3.0, 3.0], n), rng.beta(0.2, 2.0, n), rng.choice(3, n, p=[0.9, 0.08, 0.02])])
    t = np.where(np.arange(n) % 8 == 0, 1.0 + (np.arange(n) // 8) % 2, 0.0)
    return Data(rng.standard_t(1.5, n), t, x, np.full(n, 0.5))


DATA = {"ordinary": (ordinary(700, 1), 5.0), "lopsided": (lopsided(900, 4), 20.0)}
SHARES = [0.5, 0.25, 0.25]
KINDS = {
    "observational": lambda **given: ATE(delta=1e-6, **given),
    "trial": lambda **given: ATE(delta=1e-6, propensity=SHARES, **given),
    "means": lambda **given: DifferenceInMeans(delta=1e-6, **given),
    "known means": lambda **given: DifferenceInMeans(delta=1e-6, propensity=SHARES, **given),
    "pure means": lambda **given: DifferenceInMeans(**given),
}
CASES = [(kind, relation, name) for kind in KINDS for relation in RELATIONS for name in DATA]
RECORDS = [
    (10.0, 2.0, [0.0, 0.5, 1], 0.5),
    (-4.0, 0.0, [3.0, 1.0, 2], 0.5),
    (10.0, 1.0, [-3.0, 0.0, 2], 0.5),
    (1e12, 2.0, [-1e9, 1e9, 0], 0.5),
]


def fitting(kind, relation, name):
    """From a data set to a fitted estimator."""

    def fit(data):
        # The public stand-in for the covariates may be small here: many fits shall take seconds.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moments, "REFERENCE", 500)
            made = KINDS[kind](epsilon=DATA[name][1], bounds=BOUNDS, neighbours=relation)
            return made.fit(data.y, data.t, X=data.x)

    return fit


@cache
def tape_of(kind, relation, name):
    return Tape(fitting(kind, relation, name), DATA[name][0])


@pytest.mark.parametrize("case", CASES, ids=" / ".join)
def test_rounds_move_within_their_diameters_and_some_records_move_them_far(case):
    data, relation = DATA[case[2]][0], case[1]
    neighbours = [data.neighbour(relation, 16, record) for record in RECORDS]
    if relation == "add-remove":
        neighbours += [data.without(16)]
    most = farthest(tape_of(*case), neighbours)
    assert any(name.startswith("score of all arms") for name in most)
    assert sum(share > 0.2 for share in most.values()) > len(most) / 2, most


numbers = st.one_of(st.floats(-5, 11), st.sampled_from([-4.0, 10.0, 0.0, 1e300, -1e300, 5e-324]))
adversaries = st.tuples(
    numbers,
    st.sampled_from([0.0, 1.0, 2.0]),
    st.tuples(numbers, numbers, st.sampled_from([0, 1, 2])).map(list),
    st.just(0.5),
)


@pytest.mark.parametrize(("kind", "relation"), [(kind, relation) for kind in KINDS for relation in RELATIONS])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_no_record_moves_a_round_beyond_its_diameter(kind, relation, data):
    start = DATA["lopsided"][0]
    place = data.draw(st.integers(0, len(start.y) - 1))
    tape, other = tape_of(kind, relation, "lopsided"), start.neighbour(relation, place, data.draw(adversaries))
    assert len(farthest(tape, [other])) == len(tape.rounds)


@pytest.mark.parametrize(("geometry", "kind"), [(ArmMoments, "means"), (VectorMoments, "observational")])
def test_a_diameter_stated_too_small_by_half_is_found(geometry, kind, monkeypatch):
    grid = geometry.grid
    halved = lambda self, bits, relation: replace(  # noqa: E731
        grid(self, bits, relation), l2=grid(self, bits, relation).l2 / 4
    )
    monkeypatch.setattr(geometry, "grid", halved)
    plan_noise.cache_clear()
    case = (kind, "add-remove", "lopsided")
    start = DATA["lopsided"][0]
    try:
        with pytest.raises(AssertionError, match="of its diameter"):
            farthest(Tape(fitting(*case), start), [start.neighbour("add-remove", 16, record) for record in RECORDS])
    finally:
        plan_noise.cache_clear()
