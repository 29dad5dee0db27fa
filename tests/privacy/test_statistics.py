"""Vectors of whole data sets through the gate: integers move no further than stated, whatever the vector holds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import OneVector
from discreet.privacy.accountant import gdp_mu
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.noise import MAX_SUM
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Statistic
from discreet.testing import frozen_noise, record_sums, seeded_noise

BOUNDS = Bounds(outcome=(0, 1))
BUDGET = Budget(epsilon=1, delta=1e-6)


def released(vector, geometry, budget=BUDGET, neighbours="replace-one"):
    gate = Gate(OneVector(vector=np.asarray(vector, dtype=float), bounds=BOUNDS), budget=budget, neighbours=neighbours)
    (answer,) = gate.ask(Query("vector", 1.0, geometry, lambda chunk: chunk.x))
    return answer, gate


def steps(vector, geometry):
    with frozen_noise(), record_sums() as recorded:
        released(vector, geometry)
    ((_, _, integers, diameter),) = recorded
    return integers, diameter


coordinates = st.floats(-2, 2) | st.sampled_from([2.0, -2.0, 0.0, 5e-324])


@given(data=st.data(), d=st.integers(1, 6), move=st.sampled_from([1e-9, 1e-3, 0.5, 4.0]))
def test_vectors_that_lie_within_the_stated_distance_stay_within_the_diameter(data, d, move):
    geometry = Statistic(move=move, radius=2.0, dimension=d, proof="propensity.md")
    first = np.array(data.draw(st.lists(coordinates, min_size=d, max_size=d)))
    direction = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=d, max_size=d)))
    norm = np.linalg.norm(direction)
    second = first + direction * (move * (1 - 1e-12) / norm if norm > 1e-3 else 0.0)
    (a, diameter), (b, _) = steps(first, geometry), steps(second, geometry)
    # The sum of two floats is rounded: exact distances decide whether the premise holds.
    apart = sum((Fraction(u) - Fraction(v)) ** 2 for u, v in zip(first, second, strict=True))
    if apart <= Fraction(move) ** 2:
        assert sum((int(u) - int(v)) ** 2 for u, v in zip(a, b, strict=True)) <= Fraction(diameter) ** 2


@pytest.mark.parametrize("vector", [[math.nan, 0.0], [math.inf, -math.inf], [1e308, -1e308]])
def test_whatever_the_vector_holds_the_integers_stay_in_range(vector):
    integers, _ = steps(vector, Statistic(move=1e-12, radius=2.0, dimension=2, proof="propensity.md"))
    assert np.abs(integers).max() <= MAX_SUM


@pytest.mark.parametrize("move", [1e-9, 1e-3, 4.0])
def test_the_noise_is_calibrated_exactly_and_no_grid_adds_to_it(move):
    answer, gate = released([0.5, -0.5], Statistic(move=move, radius=2.0, dimension=2, proof="propensity.md"))
    assert answer.sd == pytest.approx(move / gdp_mu(1.0, 1e-6), rel=1e-5)
    assert gate.guarantee(proof="propensity.md").delta_at(1.0) == pytest.approx(1e-6, rel=1e-3)


def test_the_released_vector_has_the_stated_noise():
    geometry = Statistic(move=0.1, radius=2.0, dimension=2000, proof="propensity.md")
    with seeded_noise(1):
        answer, _ = released(np.full(2000, 1.5), geometry)
    assert answer.value.mean() == pytest.approx(1.5, abs=4 * answer.sd / math.sqrt(2000))
    assert answer.value.std() == pytest.approx(answer.sd, rel=0.07)


def test_a_pure_budget_gets_laplace_noise_for_the_l1_distance():
    answer, gate = released(
        [0.0] * 4, Statistic(move=0.1, radius=2.0, dimension=4, proof="propensity.md"), budget=Budget(epsilon=2)
    )
    assert answer.sd == pytest.approx(math.sqrt(2) * 0.1 * 2 / 2, rel=1e-6)
    assert gate.guarantee(proof="propensity.md").delta == 0


def test_a_statistic_has_no_add_remove_distance():
    with pytest.raises(InvalidInput, match="no add-remove distance"):
        released([0.0], Statistic(move=0.1, radius=2.0, dimension=1, proof="propensity.md"), neighbours="add-remove")


def test_several_records_are_refused():
    class Two(OneVector):
        n = 2

        def sum(self, kernel, progress=None):
            from discreet.data.records import Chunk

            return kernel(Chunk(y=np.zeros(2), t=np.zeros(2), x=np.zeros((2, 1)), e=None))

    gate = Gate(Two(vector=np.zeros(1), bounds=BOUNDS), budget=BUDGET)
    with frozen_noise(), pytest.raises(InvalidInput, match="takes one record"):
        gate.ask(
            Query(
                "vector",
                1.0,
                Statistic(move=0.1, radius=1.0, dimension=1, proof="propensity.md"),
                lambda chunk: chunk.x,
            )
        )


@pytest.mark.parametrize("wrong", [{"move": 0.0}, {"move": math.nan}, {"radius": -1.0}, {"dimension": 0}])
def test_sizes_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidInput):
        Statistic(**({"move": 0.1, "radius": 1.0, "dimension": 1, "proof": "propensity.md"} | wrong))


def test_a_move_without_a_proof_is_refused():
    with pytest.raises(TypeError, match="proof"):
        Statistic(move=0.1, radius=1.0, dimension=1)  # type: ignore[call-arg]
    for nothing in ("", None, "trust me"):
        with pytest.raises(InvalidInput, match="Statistic needs proof="):
            Statistic(move=0.1, radius=1.0, dimension=1, proof=nothing)
