"""Regularised logistic regression: every equation against a value computed by hand or by brute force."""

import math

import numpy as np
import pytest

from discreet.exceptions import InvalidInput
from discreet.papers.propensity import logistic

RNG = np.random.default_rng(7)


def cloud(m, d, seed):
    """Covariates inside the unit ball, and treatments."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, d))
    x *= (rng.random(m) ** (1 / d) / np.linalg.norm(x, axis=1))[:, None]
    return x, (rng.random(m) < 0.4).astype(float)


def test_equation_1_is_the_sigmoid():
    w, x = np.array([2.0, -1.0]), np.array([[1.0, 2.0], [0.5, 0.0]])
    np.testing.assert_allclose(logistic.propensity(w, x), [0.5, 1 / (1 + math.exp(-1))])


def test_equation_3_by_hand():
    w, x, t = np.array([1.0]), np.array([[1.0], [-0.5]]), np.array([1.0, 0.0])
    first, second = -math.log(1 / (1 + math.exp(-1))), -math.log(1 - 1 / (1 + math.exp(0.5)))
    assert logistic.objective(w, x, t, 0.3) == pytest.approx((first + second) / 2 + 0.15, rel=1e-14)


def test_equation_3_does_not_overflow():
    assert logistic.objective(np.array([5e3]), np.array([[1.0]]), np.array([0.0]), 1e-9) == pytest.approx(5e3, rel=0.01)


def test_the_gradient_is_that_of_equation_3():
    x, t = cloud(30, 4, 1)
    w, step = RNG.standard_normal(4), 1e-6
    by_differences = [
        (logistic.objective(w + step * e, x, t, 0.2) - logistic.objective(w - step * e, x, t, 0.2)) / (2 * step)
        for e in np.eye(4)
    ]
    np.testing.assert_allclose(logistic.gradient(w, x, t, 0.2), by_differences, atol=1e-9)


@pytest.mark.parametrize("lam", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("d", [1, 5, 40])
def test_the_minimiser_has_the_stated_gradient_and_the_least_objective(lam, d):
    x, t = cloud(200, d, d)
    found = logistic.minimise(x, t, lam, 1e-9)
    assert np.linalg.norm(logistic.gradient(found.w, x, t, lam)) < found.gradient_norm <= 1e-9
    assert np.linalg.norm(found.w) <= (1 + 1e-9) / lam
    nearby = found.w + 1e-3 * RNG.standard_normal((50, d))
    least = logistic.objective(found.w, x, t, lam)
    assert all(logistic.objective(w, x, t, lam) > least for w in nearby)


def test_scikit_learn_finds_the_same_weights():
    from sklearn.linear_model import LogisticRegression

    x, t = cloud(300, 3, 2)
    # Its objective is C times the sum of losses plus half the squared norm.
    theirs = LogisticRegression(C=1 / (300 * 0.05), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(x, t)
    np.testing.assert_allclose(logistic.minimise(x, t, 0.05, 1e-10).w, theirs.coef_[0], atol=1e-6)


def test_separable_data_have_a_minimiser_because_of_the_penalty():
    x = np.linspace(-1, 1, 50)[:, None]
    t = (x[:, 0] > 0).astype(float)
    found = logistic.minimise(x, t, 1e-6, 1e-8)
    assert 50 < found.w[0] < 1e6
    assert np.abs(logistic.gradient(found.w, x, t, 1e-6)).max() < 1e-8


def test_one_arm_alone_has_a_minimiser_too():
    x, _ = cloud(50, 2, 3)
    assert np.isfinite(logistic.minimise(x, np.ones(50), 0.01, 1e-10).w).all()


def test_a_gradient_norm_that_float64_cannot_certify_is_refused():
    x, t = cloud(100, 2, 4)
    with pytest.raises(InvalidInput, match="gradient_norm is smaller than float64 can certify"):
        logistic.minimise(x, t, 0.1, 1e-15)


def test_whether_a_gradient_norm_is_refused_does_not_depend_on_the_records():
    least = 2 * logistic.gradient_rounding(100, 2, 0.1)
    easy = np.zeros((100, 2)), np.arange(100) % 2.0  # the minimiser is 0, where the gradient is computed without error
    for x, t in (easy, cloud(100, 2, 4)):
        with pytest.raises(InvalidInput, match="can certify"):
            logistic.minimise(x, t, 0.1, 0.99 * least)
        assert logistic.minimise(x, t, 0.1, least).gradient_norm <= least


@pytest.mark.parametrize("lam", [1e-5, 1e-2, 1.0, 100.0])
def test_what_can_be_certified_is_reached_however_records_lie(lam):
    for seed in range(6):
        x, t = cloud(40 + 60 * seed, 3, seed)
        for arm in (t, np.ones_like(t), (x[:, 0] > 0) * 1.0, (x[:, 0] > x[:, 0].max() - 1e-9) * 1.0):
            g = 2 * logistic.gradient_rounding(len(t), 3, lam)
            assert logistic.minimise(x, arm, lam, g).gradient_norm <= g


def test_the_allowance_for_rounding_exceeds_the_error_of_the_gradient():
    from fractions import Fraction

    x, t = cloud(400, 3, 5)
    lam = 0.01
    w = logistic.minimise(x, t, lam, 1e-10).w
    # Exact sums of the same numbers; the sigmoid by its own float64 value at the exact index, rounded once.
    total = [Fraction(0)] * 3
    for row, arm in zip(x, t, strict=True):
        index = sum(Fraction(a) * Fraction(b) for a, b in zip(row, w, strict=True))
        residual = Fraction(1 / (1 + math.exp(-float(index)))) - Fraction(arm)
        total = [s + residual * Fraction(a) for s, a in zip(total, row, strict=True)]
    exact = np.array([float(s / 400 + Fraction(lam) * Fraction(v)) for s, v in zip(total, w, strict=True)])
    error = np.linalg.norm(logistic.gradient(w, x, t, lam) - exact)
    assert error < logistic.gradient_rounding(400, 3, lam)


def test_no_neighbour_moves_the_minimiser_further_than_the_sensitivity_and_some_go_half_way():
    lam, m, most = 2.0, 15, 0.0
    rng = np.random.default_rng(8)
    for case in range(200):
        x, t = cloud(m, 2, case)
        x[1:] *= rng.choice([0.0, 0.1, 1.0])
        other_x, other_t = x.copy(), t.copy()
        angle = rng.uniform(0, 2 * math.pi)
        turned = angle + rng.choice([0.0, math.pi / 2, math.pi])
        x[0], other_x[0] = [math.cos(angle), math.sin(angle)], [math.cos(turned), math.sin(turned)]
        t[0], other_t[0] = rng.integers(0, 2, 2)
        moved = logistic.minimise(x, t, lam, 1e-9).w - logistic.minimise(other_x, other_t, lam, 1e-9).w
        most = max(most, float(np.linalg.norm(moved)))
    assert 0.45 * logistic.sensitivity(m, lam) < most <= logistic.sensitivity(m, lam, 1e-9)


def test_inexact_minimisers_move_as_far_as_their_gradients_allow():
    # Two points of one data set whose gradients have norm g, on opposite sides: 2 g / lambda in a flat direction.
    lam, g = 0.1, 1e-3
    x, t = np.zeros((20, 1)), np.ones(20)
    for w in (g / lam, -g / lam):
        assert np.linalg.norm(logistic.gradient(np.array([w]), x, t, lam)) == pytest.approx(g)
    assert logistic.sensitivity(10**9, lam, g) >= 2 * g / lam


def test_the_sensitivity_and_the_noise_of_definition_2_by_hand():
    assert logistic.sensitivity(1000, 0.1) == pytest.approx(0.02)
    assert logistic.sensitivity(1000, 0.1, 1e-4) == pytest.approx(0.022)
    # sqrt(2 log 1.25e6) = 5.29880...
    assert logistic.output_sd(0.5, 1e-6, 1000, 0.1) == pytest.approx(math.sqrt(2 * math.log(1.25e6)) * 0.02 / 0.5)
    assert logistic.output_sd(0.5, 1e-6, 1000, 0.1) == pytest.approx(0.21195, rel=1e-4)


def test_the_noise_of_objective_perturbation_by_hand():
    assert logistic.objective_sd(2.0, math.exp(-7)) == pytest.approx(3.0)
    assert logistic.least_penalty(0.5, 100) == pytest.approx(0.01)


def test_a_tilt_moves_the_gradient_by_itself():
    x, t = cloud(100, 3, 6)
    tilt = np.array([0.1, -0.2, 0.05])
    found = logistic.minimise(x, t, 0.3, 1e-10, tilt=tilt)
    np.testing.assert_allclose(logistic.gradient(found.w, x, t, 0.3), -tilt, atol=1e-9)
