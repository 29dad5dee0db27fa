"""Distinguishing two data sets by runs: bounds that hold, and that are not idle."""

import math

import numpy as np
import pytest

from discreet.audit._black_box import bounds_of, clopper_pearson, distinguish, most_epsilon
from discreet.exceptions import InvalidInput
from discreet.privacy.accountant import gdp_epsilon


def test_clopper_pearson_bounds_are_those_of_the_beta_law():
    low, high = clopper_pearson(0, 100, 0.025)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / 100))
    low, high = clopper_pearson(100, 100, 0.025)
    assert high == 1.0
    assert low == pytest.approx(0.025 ** (1 / 100))


def test_counts_prove_no_more_than_they_can():
    found = bounds_of(((500, 500), (0, 500)), 1.0, 1e-5, 0.95)
    p, q = 0.025 ** (1 / 500), 1 - 0.025 ** (1 / 500)
    assert found.epsilon == pytest.approx(math.log((p - 1e-5) / q))
    assert found.delta == pytest.approx(p - math.e * q)
    assert bounds_of(((50, 100), (50, 100)), 1.0, 0.0, 0.95) == (0.0, 0.0)


def test_no_more_can_be_shown_than_so_many_runs_can_show():
    one, other = np.zeros((200, 1)), np.ones((200, 1))
    found = distinguish(one, other, 1.0, 1e-5, 0.999)
    assert found.epsilon_lower == pytest.approx(most_epsilon(200, 1e-5, 0.999))
    assert most_epsilon(2, 0.0, 0.999) == 0.0
    assert most_epsilon(2_000, 0.0, 0.999) > most_epsilon(200, 0.0, 0.999) > 2.0


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_a_mechanism_that_keeps_its_promise_is_hardly_ever_accused(law):
    rng = np.random.default_rng(5)
    epsilon, delta, shift = (1.0, 0.0, 1.0) if law == "laplace" else (gdp_epsilon(0.6, 1e-2), 1e-2, 0.6)
    accused = 0
    for _ in range(60):
        one, other = (getattr(rng, law)(mean, 1.0, (200, 1)) for mean in (0.0, shift))
        found = distinguish(one, other, epsilon, delta, 0.95)
        accused += found.epsilon_lower > epsilon or found.delta_lower > delta
    # At most three are expected; nine would be more than four standard errors above.
    assert accused <= 9


def test_half_the_noise_and_another_variance_and_atoms_are_distinguished():
    rng = np.random.default_rng(6)
    shifted = distinguish(rng.laplace(0, 0.2, (600, 1)), rng.laplace(1, 0.2, (600, 1)), 1.0, 0.0)
    assert shifted.epsilon_lower > 2.5
    wider = distinguish(rng.normal(0, 1, (600, 30)), rng.normal(0, 3, (600, 30)), 1.0, 1e-5)
    assert wider.epsilon_lower > 3.0
    atoms = rng.normal(0, 1, (600, 1))
    atoms[rng.random(600) < 0.5] = 0.25
    found = distinguish(atoms, rng.normal(0, 1, (600, 1)), 1.0, 0.0)
    assert found.delta_lower > 0.3
    assert "is exactly 0.25" in found.event


def test_the_second_half_alone_is_counted():
    one, other = np.zeros((40, 1)), np.zeros((40, 1))
    # Whatever the first half suggests, the other must confirm it.
    one[0::2] = 1.0
    assert distinguish(one, other, 1.0, 0.0).epsilon_lower == 0.0


@pytest.mark.parametrize("confidence", [0.0, 0.4, 1.0, math.nan, True])
def test_a_level_that_says_nothing_is_refused(confidence):
    with pytest.raises(InvalidInput, match="confidence must lie"):
        distinguish(np.zeros((30, 1)), np.zeros((30, 1)), 1.0, 0.0, confidence)
