"""The statistics of the audit: bounds that hold, and that are not idle."""

import math

import numpy as np
import pytest

from discreet.audit import one_run as canaries
from discreet.audit.attacks.floats import reachable
from discreet.audit.black_box import bounds_of, clopper_pearson, distinguish, most_epsilon
from discreet.audit.lower_bounds import Censored, Law, least_delta, least_epsilon, shift_epsilon
from discreet.exceptions import InvalidInput
from discreet.privacy.accountant import gdp_delta, gdp_epsilon
from discreet.privacy.noise import published_laplace
from discreet.testing import seeded_noise


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
    told = distinguish(one, other, 1.0, 1e-5, 0.999)
    assert told.epsilon_lower == pytest.approx(most_epsilon(200, 1e-5, 0.999))
    assert most_epsilon(2, 0.0, 0.999) == 0.0
    assert most_epsilon(2_000, 0.0, 0.999) > most_epsilon(200, 0.0, 0.999) > 2.0


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_a_mechanism_that_keeps_its_promise_is_hardly_ever_accused(law):
    rng = np.random.default_rng(5)
    epsilon, delta, shift = (1.0, 0.0, 1.0) if law == "laplace" else (gdp_epsilon(0.6, 1e-2), 1e-2, 0.6)
    accused = 0
    for _ in range(60):
        one, other = (getattr(rng, law)(mean, 1.0, (200, 1)) for mean in (0.0, shift))
        told = distinguish(one, other, epsilon, delta, 0.95)
        accused += told.epsilon_lower > epsilon or told.delta_lower > delta
    # At most three are expected; nine would be more than four standard errors above.
    assert accused <= 9


def test_half_the_noise_and_another_spread_and_atoms_are_told_apart():
    rng = np.random.default_rng(6)
    shifted = distinguish(rng.laplace(0, 0.2, (600, 1)), rng.laplace(1, 0.2, (600, 1)), 1.0, 0.0)
    assert shifted.epsilon_lower > 2.5
    spread = distinguish(rng.normal(0, 1, (600, 30)), rng.normal(0, 3, (600, 30)), 1.0, 1e-5)
    assert spread.epsilon_lower > 3.0
    atoms = rng.normal(0, 1, (600, 1))
    atoms[rng.random(600) < 0.5] = 0.25
    told = distinguish(atoms, rng.normal(0, 1, (600, 1)), 1.0, 0.0)
    assert told.delta_lower > 0.3
    assert "is exactly 0.25" in told.event


def test_the_second_half_alone_is_counted():
    one, other = np.zeros((40, 1)), np.zeros((40, 1))
    # Whatever the first half suggests, the other must confirm it.
    one[0::2] = 1.0
    assert distinguish(one, other, 1.0, 0.0).epsilon_lower == 0.0


def test_noise_of_a_scale_that_depends_on_the_records_is_told_apart_in_closed_form():
    narrow, wide = Law.normal(0.0, 1.0), Law.normal(0.0, 1.5)
    # Outside [-5, 5], worked out by itself.
    p, q = math.erfc(5 / 1.5 / math.sqrt(2)), math.erfc(5 / math.sqrt(2))
    assert least_epsilon(narrow, wide, 1e-5) >= math.log((p - 1e-5) / q) - 0.05
    assert least_epsilon(narrow, wide, 1e-5) == least_epsilon(wide, narrow, 1e-5)


def test_closed_forms_of_a_shift_are_exact():
    mu, epsilon = shift_epsilon(np.array([3.0, 4.0]), 2.5, 1e-5)
    assert mu == pytest.approx(2.0)
    assert epsilon == pytest.approx(gdp_epsilon(2.0, 1e-5))
    found = least_delta(Law.normal(0.0, 1.0), Law.normal(1.0, 1.0), 0.5)
    assert found == pytest.approx(gdp_delta(1.0, 0.5), rel=1e-3)
    assert found <= gdp_delta(1.0, 0.5) * (1 + 1e-9)


def test_an_atom_from_truncation_is_an_event():
    def law(least):
        return Censored(0.0, 1.0, least, lambda width: (width - least) / 2.0, least + 16.0)

    # Half of the first law lies on its atom, where the second one never is.
    levels = np.linspace(1.0, 2.0, 2_001)
    assert least_delta(law(1.0), law(1.1), 1.0, levels) >= 0.5
    assert least_delta(law(1.0), law(1.0), 0.0, levels) == pytest.approx(0.0, abs=1e-12)


def test_right_guesses_are_worth_what_coins_are():
    found = canaries.Guesses(1_000, 1_000, 1_000)
    epsilon = canaries.least_epsilon(found, 0.0, 0.95)
    # p^1000 = 0.05 at p = e^epsilon / (1 + e^epsilon).
    p = 0.05 ** (1 / 1_000)
    assert epsilon == pytest.approx(math.log(p / (1 - p)), abs=2e-3)
    assert canaries.least_epsilon(found, 1e-5, 0.95) <= epsilon
    assert canaries.least_epsilon(canaries.Guesses(1_000, 1_000, 520), 0.0, 0.95) == 0.0
    assert canaries.least_delta(found, 1.0, 0.95) > 0.0


def test_randomised_response_is_hardly_ever_accused_by_canaries():
    rng, accused = np.random.default_rng(7), 0
    p = 1 / (1 + math.exp(-1.0))
    for _ in range(200):
        right = int(rng.binomial(300, p))
        accused += canaries.least_epsilon(canaries.Guesses(300, 300, right), 0.0, 0.95) > 1.0
    # Ten are expected at most.
    assert accused <= 22


def test_abstaining_is_learnt_from_other_runs():
    rng = np.random.default_rng(8)
    secrets = rng.integers(0, 2, 600)
    scores = np.where(secrets == 1, 1.0, -1.0) * rng.choice([0.1, 3.0], 600) + rng.normal(0, 0.3, 600)
    least = canaries.choose_least(scores, secrets, 0.0, 1)
    assert 0.2 < least < 3.0
    assert canaries.guess(scores, secrets, least).right > 0.95 * canaries.guess(scores, secrets, least).guessed


def test_outputs_of_floating_point_noise_can_be_drawn_and_others_cannot():
    with seeded_noise(3):
        outputs = 1.0 + published_laplace(2_000, 0.7)
    assert reachable(outputs, 1.0, 0.7).all()
    near = np.abs(outputs - 1.0) < 0.35
    assert (~reachable(outputs[near], 0.0, 0.7)).mean() > 0.3


@pytest.mark.parametrize("confidence", [0.0, 0.4, 1.0, math.nan, True])
def test_a_level_that_says_nothing_is_refused(confidence):
    with pytest.raises(InvalidInput, match="confidence must lie"):
        distinguish(np.zeros((30, 1)), np.zeros((30, 1)), 1.0, 0.0, confidence)
