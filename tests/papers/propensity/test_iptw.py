"""Inverse probability weights: every equation, lemma and theorem against a hand-computed or brute-force value."""

import math

import numpy as np
import pytest

from discreet.papers.propensity import iptw, logistic


def study(n, d, seed, *, positive):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    x /= np.linalg.norm(x, axis=1).max()
    w = rng.standard_normal(d)
    t = (rng.random(n) < logistic.propensity(w, x)).astype(float)
    y = x @ rng.standard_normal(d) + t + 0.1 * rng.standard_normal(n)
    return (np.abs(y) if positive else y), t, x, w


def test_equations_2_and_5_by_hand():
    y, t, pi = np.array([3.0, 5.0, -2.0]), np.array([1.0, 0.0, 1.0]), np.array([0.5, 0.2, 0.8])
    index = np.log(pi / (1 - pi))
    assert iptw.iptw(y, t, index) == pytest.approx((3 / 0.5 - 2 / 0.8 - 5 / 0.8) / 3)


def test_the_trimmed_estimate_by_hand():
    y, t, pi = np.array([3.0, 5.0, -2.0]), np.array([1.0, 0.0, 1.0]), np.array([0.1, 0.9, 0.8])
    index = np.log(pi / (1 - pi))
    assert iptw.iptw(y, t, index, xi=0.25) == pytest.approx((3 / 0.25 - 2 / 0.8 - 5 / 0.25) / 3)
    # max(xi, pi) as printed.
    treated = y[t == 1] / np.maximum(0.25, pi[t == 1])
    control = y[t == 0] / np.maximum(0.25, 1 - pi[t == 0])
    assert iptw.iptw(y, t, index, xi=0.25) == pytest.approx((treated.sum() - control.sum()) / 3)


def test_equation_6_is_equation_5_with_noisy_weights():
    y, t, x, w = study(50, 3, 1, positive=False)
    z = np.array([0.3, -0.2, 0.5])
    noisy = logistic.propensity(w + z, x)
    assert iptw.iptw(y, t, x @ (w + z)) == pytest.approx(np.mean(y * t / noisy - y * (1 - t) / (1 - noisy)))
    mu1 = np.sum((y * (1 + np.exp(-x @ w) * np.exp(-x @ z)))[t == 1]) / 50
    mu0 = np.sum((y * (1 + np.exp(x @ w) * np.exp(x @ z)))[t == 0]) / 50
    assert iptw.iptw(y, t, x @ (w + z)) == pytest.approx(mu1 - mu0)


def test_no_record_weighs_more_than_its_bound_and_the_bound_is_reached():
    rng = np.random.default_rng(2)
    y, t, index = rng.uniform(-4, 4, 10_000), rng.integers(0, 2, 10_000) * 1.0, rng.normal(0, 10, 10_000)
    largest = np.abs(iptw.iptw_scores(y, t, index, 0.1)).max()
    assert 0.99 * iptw.iptw_bound(4, 0.1) < largest <= iptw.iptw_bound(4, 0.1) == 40.0


@pytest.mark.parametrize("sigma", [0.05, 0.5, 1.5])
def test_lemma_3_against_the_expectation_by_quadrature(sigma):
    y, t, x, w = study(40, 4, 3, positive=False)
    # z'x is N(0, sigma^2 |x|^2): integrate each record's weight over that single number.
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    sd = sigma * np.linalg.norm(x, axis=1)
    expected = sum(
        weight * iptw.iptw(y, t, x @ w + node * sd) for node, weight in zip(nodes, weights, strict=True)
    ) / math.sqrt(2 * math.pi)
    assert iptw.iptw(y, t, x @ w) + iptw.bias(y, t, x, w, sigma) == pytest.approx(expected, rel=1e-10)


def test_lemma_3_against_drawn_noise():
    y, t, x, w = study(40, 4, 4, positive=False)
    z = 0.6 * np.random.default_rng(5).standard_normal((40_000, 4))
    drawn = np.array([np.mean(iptw.iptw_scores(y, t, index)) for index in (x @ w + z @ x.T)])
    error = drawn.std() / math.sqrt(len(drawn))
    assert drawn.mean() == pytest.approx(iptw.iptw(y, t, x @ w) + iptw.bias(y, t, x, w, 0.6), abs=4 * error)


def test_equation_7_as_printed():
    y, t, x, w = study(40, 4, 6, positive=False)
    epsilon, m, lam, delta = 0.3, 500, 0.1, 1e-6
    signs = (-1.0) ** (1 - t)
    alpha = signs * y * np.exp(-signs * (x @ w))
    exponent = 4 * math.log(1.25 / delta) * (x**2).sum(axis=1) / (epsilon**2 * m**2 * lam**2)
    printed = np.mean(alpha * (np.exp(exponent) - 1))
    assert iptw.bias(y, t, x, w, logistic.output_sd(epsilon, delta, m, lam)) == pytest.approx(printed)


def test_the_bias_vanishes_with_m_and_with_epsilon():
    y, t, x, w = study(200, 4, 7, positive=True)

    def size(epsilon, m):
        return abs(iptw.bias(y, t, x, w, logistic.output_sd(epsilon, 1e-6, m, 0.1)))

    assert size(0.1, 1000) > size(0.3, 1000) > size(0.9, 1000) > size(0.9, 5000) > 0
    assert size(0.9, 10**7) < 1e-9


def test_lemma_4_by_hand():
    y, t, x, w = np.array([2.0, 1.0]), np.array([1.0, 0.0]), np.array([[1.0], [0.5]]), np.array([math.log(4.0)])
    zeta = 0.1 * math.sqrt(2 * math.log(2 / 0.05))
    assert iptw.noise_reach(0.1, 1, 0.05) == pytest.approx(zeta)
    # exp(-w x) = 1/4 for the treated, exp(w x) = 2 for the other.
    assert iptw.largest_difference(y, t, x, w, 0.1, 0.05) == pytest.approx(2 / 2 * math.sinh(zeta) * (2 / 4 + 1 * 2))


@pytest.mark.parametrize(("positive", "published"), [(True, True), (True, False), (False, False)])
def test_lemma_4_bounds_the_difference_of_two_draws(positive, published):
    y, t, x, w = study(60, 5, 8, positive=positive)
    sigma, gamma, draws = 0.4, 0.1, 4_000
    xi = iptw.largest_difference(y, t, x, w, sigma, gamma, published=published)
    z = sigma * np.random.default_rng(9).standard_normal((2, draws, 5))
    first, second = ([iptw.iptw(y, t, x @ w + x @ noise) for noise in part] for part in z)
    beyond = np.mean(np.abs(np.subtract(first, second)) > xi)
    assert beyond <= gamma + 3 * math.sqrt(gamma / draws)


def test_lemma_4_as_printed_fails_where_outcomes_have_both_signs():
    # Outcomes cancel in its sum, and two draws differ all the same.
    y, t = np.array([1.0, -1.0]), np.array([1.0, 1.0])
    x, w = np.array([[1.0], [-1.0]]), np.zeros(1)
    assert iptw.largest_difference(y, t, x, w, 0.5, 0.05) == pytest.approx(0)
    assert iptw.iptw(y, t, x @ np.array([0.3])) != pytest.approx(iptw.iptw(y, t, x @ np.array([-0.3])))
    assert iptw.largest_difference(y, t, x, w, 0.5, 0.05, published=False) > 1


def test_theorem_5_by_hand():
    assert iptw.sign_error_bound(1.0, 0.5, 3.0) == pytest.approx(math.exp(-0.5))
    assert iptw.sign_error_bound(1.0, -1.5, 3.0) == 1.0


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_theorem_5_bounds_how_often_the_sign_flips(sigma, seed):
    y, t, x, w = study(80, 3, 20 + seed, positive=False)
    y = y + 0.3 * t
    tau = iptw.iptw(y, t, x @ w)
    if tau < 0:
        y, tau = -y, -tau
    gamma, draws = 0.05, 2_000
    xi = iptw.largest_difference(y, t, x, w, sigma, gamma, published=False)
    bound = iptw.sign_error_bound(tau, iptw.bias(y, t, x, w, sigma), xi)
    z = sigma * np.random.default_rng(seed).standard_normal((draws, 3))
    flipped = np.mean([iptw.iptw(y, t, x @ (w + noise)) <= 0 for noise in z])
    assert flipped <= bound + gamma + 3 * math.sqrt(0.25 / draws)


def test_noise_beyond_all_numbers_makes_the_bound_say_nothing_and_fails_nowhere():
    y, t, x, w = study(80, 3, 1, positive=True)
    for published in (True, False):
        xi = iptw.largest_difference(y, t, x, w, 1e6, 0.05, published=published)
        assert xi == math.inf
        assert iptw.sign_error_bound(1.0, math.inf, xi) == 1.0
    assert iptw.largest_difference(np.zeros(80), t, x, w, 1e6, 0.05) == 0.0
    assert iptw.sign_error_bound(1e300, 0.0, 1e-8) == 0.0
