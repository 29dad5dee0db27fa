"""Canaries: what right guesses are worth."""

import math

import numpy as np
import pytest

from discreet.audit import _one_run as canaries


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
