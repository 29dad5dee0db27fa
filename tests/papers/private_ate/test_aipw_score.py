"""PrivATE's score: doubly robust, and within its bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.papers.private_ate.equations import aipw_score, aipw_score_bound

shares = st.floats(0.02, 0.98)
values = st.floats(-1, 1)


def of(*numbers):
    return (np.array([number], dtype=float) for number in numbers)


def score(y, t, e, f):
    return float(aipw_score(*of(y, t, e, f))[0])


@given(shares, shares, values, values, values)
def test_the_mean_of_the_score_is_the_effect_plus_a_product_of_errors(pi, e, mu0, mu1, f):
    # Equation (1) of docs/proofs/ate.md: the score is linear in y, so its mean given x needs the arms' means only.
    mean = pi * score(mu1, 1, e, f) + (1 - pi) * score(mu0, 0, e, f)
    best = (1 - e) * mu1 + e * mu0
    assert mean == pytest.approx(mu1 - mu0 + (pi - e) * (best - f) / (e * (1 - e)), abs=1e-9)


@given(shares, shares, values, values, values)
def test_it_is_doubly_robust(pi, e, mu0, mu1, f):
    right_propensity = pi * score(mu1, 1, pi, f) + (1 - pi) * score(mu0, 0, pi, f)
    assert right_propensity == pytest.approx(mu1 - mu0, abs=1e-9)
    best = (1 - e) * mu1 + e * mu0
    right_outcome = pi * score(mu1, 1, e, best) + (1 - pi) * score(mu0, 0, e, best)
    assert right_outcome == pytest.approx(mu1 - mu0, abs=1e-9)


@given(values, st.sampled_from([0, 1]), shares, values, values)
def test_it_is_the_usual_augmented_score(y, t, e, mu0, mu1):
    usual = mu1 - mu0 + t * (y - mu1) / e - (1 - t) * (y - mu0) / (1 - e)
    assert score(y, t, e, (1 - e) * mu1 + e * mu0) == pytest.approx(usual, abs=1e-9)


@given(values, st.sampled_from([0, 1]), st.floats(0.01, 0.5), st.floats(0, 1), values)
def test_no_score_exceeds_the_bound(y, t, least, part, f):
    e = least + part * (1 - 2 * least)
    assert abs(score(y, t, e, f)) <= aipw_score_bound(2.0, least) * (1 + 1e-9)


@pytest.mark.parametrize("least", [0.01, 0.1, 0.5])
def test_the_bound_is_attained_in_either_arm(least):
    bound = aipw_score_bound(2.0, least)
    assert score(1.0, 1, least, -1.0) == pytest.approx(bound)
    assert score(1.0, 0, 1 - least, -1.0) == pytest.approx(-bound)
