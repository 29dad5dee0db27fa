import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from discreet.data.bounds import Levels, Range
from discreet.postprocessing.coding import coding
from discreet.postprocessing.feature_selection import (
    Belief,
    FeatureSelection,
    Moments,
    allot,
    inverse_of_lower,
    screened,
    shrink,
)
from discreet.postprocessing.kernel_basis import NORM_CAP, CodedBasis
from discreet.postprocessing.reference_population import Reference

RNG = np.random.default_rng(0)
EDGES = np.linspace(-1, 1, 9)[1:-1]
CODINGS = (
    *(coding(Range(0, 1), EDGES, np.full(8, 1 / 8), 1e-6) for _ in range(3)),
    coding(Levels(("a", "b", "c")), np.array([0.5, 1.5]), np.array([0.5, 0.3, 0.2]), 1e-6),
)
BASIS = CodedBasis.build(CODINGS, np.full(4, 0.25), 24)
REFERENCE = Reference.of_codes(BASIS, np.eye(4))
GRAM = REFERENCE.gram
UNIT = BASIS.weight**2


def linear(truth, sd, rng, size=1.0, cap=1.0):
    """Moments of a linear model with noise of a given size."""
    moments = GRAM @ truth + rng.normal(0, sd, BASIS.m)
    return Moments(moments, lambda b: (GRAM @ b, GRAM), sd**2 * np.eye(BASIS.m), size, cap)


def logistic(theta):
    """Moments that a logistic model implies, and their slope."""
    return REFERENCE.response(theta, 0.5)


def drawn(rng, size=1.0):
    """Coefficients by the law that the prior guesses."""
    truth = rng.normal(0, 1, BASIS.m) * np.sqrt(size * BASIS.variance) / BASIS.weight
    truth[0] = rng.normal(0, 0.3)
    return truth


def test_screening_finds_a_covariate_by_a_function_that_is_no_line_and_gives_it_that_function():
    edges = np.linspace(-1, 1, 33)[1:-1]
    codings = [coding(Range(0, 1), edges, np.full(32, 1 / 32), 1e-6) for _ in range(6)]
    basis = CodedBasis.of_singles(codings, 8)
    noise = np.full((2, basis.m), 0.02**2)
    value = np.sqrt(noise) * np.random.default_rng(1).normal(size=noise.shape)
    wave = basis.members.index(((4, 5),))
    value[:, wave] += 0.3
    importance, curves = screened(basis, value, noise)
    assert importance.sum() == pytest.approx(1.0)
    assert importance[4] > 0.7
    assert abs(curves[4].table[:, 0] @ basis.curves[4].table[:, 5]) / 32 > 0.9
    # A covariate of which nothing was found keeps its functions.
    assert abs(curves[1].table[:, 0] @ basis.curves[1].table[:, 0]) / 32 > 0.95
    value[:, wave] = 0.0
    _, curves = screened(basis, value, noise)
    assert abs(curves[4].table[:, 0] @ basis.curves[4].table[:, 0]) / 32 > 0.8
    hidden = CodedBasis.of_singles([coding(Range(0, 1), edges[:0], np.ones(1), 1.0)] * 2, 8)
    assert screened(hidden, np.zeros((2, 1)), np.ones((2, 1)))[0].tolist() == [0.5, 0.5]


def test_at_little_noise_coefficients_are_recovered():
    truth = drawn(RNG)
    np.testing.assert_allclose(shrink(linear(truth, 1e-5, RNG), BASIS).mean, truth, atol=5e-3)


def test_noise_alone_is_shrunk_to_almost_nothing():
    small = 0
    for seed in range(20):
        model = linear(np.zeros(BASIS.m), 0.5, np.random.default_rng(seed))
        fitted = shrink(model, BASIS)
        plain = np.linalg.solve(GRAM, model.value)
        small += np.linalg.norm(fitted.mean[1:]) < 0.3 * np.linalg.norm(plain[1:])
    # Noise is taken for a signal now and then, not more often.
    assert small >= 18


def test_shrinking_comes_closer_to_the_truth():
    plain = shrunk = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = drawn(rng)
        model = linear(truth, 0.1, rng)
        shrunk += np.sum(UNIT * (shrink(model, BASIS).mean - truth) ** 2)
        plain += np.sum(UNIT * (np.linalg.solve(GRAM, model.value) - truth) ** 2)
    assert shrunk < 0.65 * plain


@pytest.mark.parametrize("sd", [0.002, 0.02, 0.2])
def test_errors_are_about_as_large_as_their_covariance_says(sd):
    errors, stated = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = drawn(rng)
        moments = REFERENCE.response(truth, 0.5)[0] + rng.normal(0, sd, BASIS.m)
        model = Moments(moments, logistic, sd**2 * np.eye(BASIS.m), 1.0, 4.0)
        fitted = shrink(model, BASIS)
        assert np.linalg.eigvalsh(fitted.covariance).min() > 0
        errors.append(float(np.sum((UNIT * (fitted.mean - truth) ** 2)[1:])))
        stated.append(float(np.sum((UNIT * np.diag(fitted.covariance))[1:])))
    assert 0.5 < np.mean(errors) / np.mean(stated) < 1.7


def test_a_logistic_model_is_recovered_from_its_moments():
    truth = drawn(np.random.default_rng(2))
    moments, _ = REFERENCE.response(truth, 0.5)
    model = Moments(moments, logistic, 1e-10 * np.eye(BASIS.m), 1.0, 4.0)
    np.testing.assert_allclose(shrink(model, BASIS).mean, truth, atol=0.02)


@pytest.mark.parametrize("m", [1, 2, 32, 33, 100])
def test_triangular_matrices_are_inverted_whatever_their_size(m):
    lower = np.tril(np.random.default_rng(m).normal(size=(m, m))) / m + np.eye(m)
    np.testing.assert_allclose(inverse_of_lower(lower) @ lower, np.eye(m), atol=1e-10)


def test_public_functions_beside_selected_features_share_their_norm():
    share = np.zeros(BASIS.m)
    share[[1, 4, 7]] = 1 / 3
    plain = FeatureSelection.of(share, np.diag(GRAM))
    direction = drawn(np.random.default_rng(3))
    both = plain.beside(GRAM, direction, np.zeros(BASIS.m))
    # A function that is nothing is no feature.
    assert (plain.m, both.m) == (3, 4)
    narrow, weight = both(REFERENCE.features)
    assert np.linalg.norm(narrow * weight[:, None], axis=1).max() <= both.radius * (1 + 1e-12)
    np.testing.assert_allclose(narrow, REFERENCE.features @ both.linear(BASIS.m), atol=1e-9)
    direction[0] = 0.0
    assert np.corrcoef(narrow[:, 3], REFERENCE.features @ direction)[0, 1] == pytest.approx(1)


# --- which features the next moments are of, and what these then say ---

DRAWS = np.random.default_rng(0)
positive = st.floats(0, 1e12)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=30), st.floats(1e-12, 1e12))
def test_shares_are_shares(pairs, noise):
    loss_weight, variance = (np.array(column) for column in zip(*pairs, strict=True))
    share = allot(loss_weight, variance, noise)
    assert share.min() >= 0
    assert share.sum() == pytest.approx(1)


def test_no_other_shares_leave_less_loss():
    loss_weight, variance, noise = DRAWS.gamma(1, 1, 6), DRAWS.gamma(1, 1, 6), 0.3

    def left(share):
        return float(np.sum(loss_weight / (1 / variance + share / noise)))

    best = allot(loss_weight, variance, noise)
    softmax = minimize(lambda z: left(np.exp(z) / np.exp(z).sum()), np.zeros(6), method="BFGS")
    assert left(best) <= softmax.fun + 1e-6
    for _ in range(200):
        assert left(best) <= left(DRAWS.dirichlet(np.ones(6))) + 1e-9


def test_what_is_known_or_does_not_matter_gets_nothing():
    share = allot(np.array([1.0, 1.0, 1e-12]), np.array([1.0, 1e-9, 1.0]), 0.01)
    np.testing.assert_allclose(share, [1, 0, 0], atol=1e-6)


def test_some_feature_is_always_selected():
    assert FeatureSelection.of(np.full(5000, 1 / 5000), np.ones(5000)).m == 5000
    share = allot(np.array([1e-40, 1.0, 1.0]), np.array([1e-40, 1.0, 2.0]), 0.1)
    selection = FeatureSelection.of(share, np.array([1e-38, 1.0, 1.0]))
    assert list(selection.kept) == [1, 2]
    assert np.isfinite(selection.scale).all()


def test_selected_features_are_held_to_the_radius_and_do_not_depend_on_their_place():
    features = DRAWS.normal(0, 3, (500, 8))
    features[0] = 0.0
    selection = FeatureSelection.of(np.array([0.5, 0, 0.3, 0, 0, 0.2, 1e-5, 0]), np.full(8, 9.0))
    assert list(selection.kept) == [0, 2, 5]
    narrow, weight = selection(features)
    assert np.all(weight <= 1)
    assert np.linalg.norm(narrow * weight[:, None], axis=1).max() <= selection.radius * (1 + 1e-12)
    assert np.mean(np.sum(narrow**2, axis=1)) == pytest.approx(1, rel=0.2)
    assert selection.radius == pytest.approx(NORM_CAP**0.5)
    shuffled = DRAWS.permutation(500)
    again, weight_again = selection(np.ascontiguousarray(features[shuffled]))
    np.testing.assert_array_equal(again, narrow[shuffled])
    np.testing.assert_array_equal(weight_again, weight[shuffled])


def test_the_norm_cap_is_large_where_noise_is_small_and_small_where_it_is_not():
    features = DRAWS.normal(0, 1, (4_000, 6))
    selection = FeatureSelection.of(np.full(6, 1 / 6), np.ones(6))
    noisy, quiet = selection.with_best_norm_cap(features, 1.0, 1e-4), selection.with_best_norm_cap(features, 1e-8, 1.0)
    assert noisy.norm_cap <= 1.0 < quiet.norm_cap
    assert quiet.radius == pytest.approx(quiet.norm_cap**0.5)
    for chosen in (noisy, quiet):
        narrow, weight = chosen(features)
        assert np.linalg.norm(narrow * weight[:, None], axis=1).max() <= chosen.radius * (1 + 1e-12)


def test_a_release_moves_a_belief_as_bayes_says():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    slope, noise, seen = np.array([[1.0, -1.0]]), np.array([[0.5]]), np.array([0.7])
    after = Belief(np.array([1.0, 2.0]), covariance).update(seen, slope, noise, np.eye(2), np.inf)
    precision = np.linalg.inv(covariance) + slope.T @ slope / 0.5
    np.testing.assert_allclose(after.covariance, np.linalg.inv(precision))
    np.testing.assert_allclose(after.mean, [1.0, 2.0] + np.linalg.inv(precision) @ slope.T @ (seen / 0.5))


def test_a_surprising_release_is_believed_and_leaves_more_variance():
    before = Belief(np.zeros(3), 0.01 * np.eye(3))
    expected = before.update(np.full(3, 0.1), np.eye(3), 0.01 * np.eye(3), np.eye(3), np.inf)
    surprised = before.update(np.full(3, 5.0), np.eye(3), 0.01 * np.eye(3), np.eye(3), np.inf)
    assert np.trace(surprised.covariance) > np.trace(expected.covariance)
    assert np.all(surprised.mean > 4.5)


def test_no_step_moves_predictions_beyond_its_limit():
    gram = np.diag([1.0, 4.0])
    after = Belief(np.zeros(2), 100 * np.eye(2)).update(np.full(2, 50.0), np.eye(2), np.eye(2), gram, 1.5)
    assert np.sqrt(after.mean @ gram @ after.mean) == pytest.approx(1.5)
