"""The public stand-in for the covariates, and a released matrix that is shrunk towards its own."""

import numpy as np
import pytest

from discreet.postprocessing.coding import Coding
from discreet.postprocessing.kernel_basis import CodedBasis
from discreet.postprocessing.reference_population import (
    REFERENCE,
    Reference,
    SteadyGram,
    latent_correlation,
    treatment_moments,
)

RNG = np.random.default_rng(0)
EVEN = Coding(np.linspace(-1.0, 1.0, 17)[1:-1], np.linspace(-0.94, 0.94, 16), np.full(16, 1 / 16), True)
BELL = Coding(np.array([-0.4, 0.0, 0.4]), np.array([-0.6, -0.2, 0.2, 0.6]), np.array([0.1, 0.4, 0.4, 0.1]), True)
LEVELS = Coding(np.array([0.5, 1.5]), np.arange(3.0), np.array([0.5, 0.3, 0.2]), False)
CODINGS = (EVEN, BELL, LEVELS)
BASIS = CodedBasis.build(CODINGS, np.full(3, 1 / 3), 20)
FIRST = CodedBasis.of_singles(CODINGS, 1)
CORRELATION = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, 0.0], [0.0, 0.0, 1.0]])
EXACT = Reference.of_codes(BASIS, CORRELATION)


def noisy(gram, sd, seed=1):
    """Noise as the gate adds it: sd on the diagonal, sd / sqrt(2) off it."""
    noise = np.random.default_rng(seed).normal(0, sd / np.sqrt(2), gram.shape)
    upper = np.triu(noise, 1)
    return gram + upper + upper.T + np.diag(np.sqrt(2) * np.diag(noise))


def first_functions(correlation):
    """Second moments of each covariate's first function."""
    features = (Reference.of_codes(FIRST, correlation).features / FIRST.weight)[:, 1:]
    return features.T @ features / len(features)


# --- the public stand-in --------------------------------------------------------------------------------------------


def test_points_have_the_distribution_of_the_codes_and_their_correlation():
    # Features are orthonormal to the distribution of codes. Evenly distributed points: far nearer than 1 / sqrt(6000).
    plain = EXACT.features / BASIS.weight
    assert EXACT.features.shape == (REFERENCE, BASIS.m)
    single = [k for k, member in enumerate(BASIS.members) if len(member) == 1]
    assert np.abs(plain[:, single].mean(axis=0)).max() < 0.01
    assert np.abs((plain[:, single] ** 2).mean(axis=0) - 1.0).max() < 0.05
    assert first_functions(CORRELATION)[0, 1] == pytest.approx(0.7, abs=0.1)
    np.testing.assert_array_equal(EXACT.features, Reference.of_codes(BASIS, CORRELATION).features)


def test_points_beyond_the_radius_are_weighed_down():
    norm = np.sqrt(np.sum(EXACT.features**2, axis=1))
    assert np.max(norm * np.sqrt(EXACT.weight * REFERENCE)) <= BASIS.radius * (1 + 1e-9)
    assert 0.5 < EXACT.weight.sum() <= 1.0 + 1e-9
    np.testing.assert_allclose(EXACT.gram, EXACT.features.T @ (EXACT.features * EXACT.weight[:, None]), atol=1e-12)


def test_correlations_come_back_from_second_moments_of_first_functions():
    found = latent_correlation(FIRST, first_functions(CORRELATION), 1e-9)
    assert np.abs(found - CORRELATION).max() < 0.1
    # Codes are coarser than what is behind them, and look less correlated.
    assert found[0, 1] > first_functions(CORRELATION)[0, 1]


def test_moments_that_are_all_noise_say_nothing_of_correlations():
    far = [latent_correlation(FIRST, noisy(np.eye(3), 5.0, k), 5.0) - np.eye(3) for k in range(9)]
    assert np.median([np.abs(each).max() for each in far]) < 0.2
    assert max(np.abs(each).max() for each in far) <= 0.98


@pytest.mark.parametrize("p", [0, 1])
def test_few_covariates_have_no_correlations(p):
    basis = CodedBasis.build(CODINGS[:p], np.full(p, 1.0), 5)
    reference = Reference.of_codes(basis, np.eye(p))
    assert np.isfinite(reference.gram).all()
    assert reference.weight.sum() <= 1 + 1e-9


def test_the_response_is_the_derivative_of_its_own_mean():
    theta, step = RNG.normal(0, 0.3, BASIS.m), 1e-6 * RNG.normal(size=BASIS.m)
    value, slope = EXACT.response(theta, 0.4)
    moved, _ = EXACT.response(theta + step, 0.4)
    np.testing.assert_allclose(moved - value, slope @ step, atol=1e-10)
    # No more treatment than the centre says, for a constant model at that centre.
    np.testing.assert_allclose(EXACT.response(np.zeros(BASIS.m), 0.4)[0], 0, atol=1e-12)


def test_moments_of_treatment_have_the_slope_of_the_reference_where_records_are_like_it():
    theta = RNG.normal(0, 0.3, BASIS.m)
    value, slope = EXACT.response(theta, 0.4)
    moments = treatment_moments(EXACT, SteadyGram.of(EXACT.gram, 1e-9, EXACT, BASIS), value, 0.01, 0.4, 1e4)
    np.testing.assert_allclose(moments.response(theta)[1], slope, atol=1e-9)


# --- a steady matrix ------------------------------------------------------------------------------------------------


def independent():
    return Reference.of_codes(BASIS, np.eye(3))


def test_a_matrix_without_noise_is_kept_and_one_of_noise_is_replaced():
    reference = independent()
    kept = SteadyGram.of(EXACT.gram, 1e-9, reference, BASIS)
    np.testing.assert_allclose(reference.gram + kept.apart, EXACT.gram, atol=1e-6)
    replaced = SteadyGram.of(noisy(reference.gram, 3.0), 3.0, reference, BASIS)
    assert np.abs(replaced.apart).max() < np.abs(noisy(reference.gram, 3.0) - reference.gram).max() / 2


def test_a_steady_matrix_errs_less_than_the_released_one():
    before = after = 0.0
    reference = independent()
    for seed in range(20):
        released = noisy(EXACT.gram, 0.2, seed)
        steady = SteadyGram.of(released, 0.2, reference, BASIS)
        before += np.sum((released - EXACT.gram) ** 2)
        after += np.sum((reference.gram + steady.apart - EXACT.gram) ** 2)
    assert after < before


@pytest.mark.parametrize("sd", [1e-9, 0.1, 10.0])
def test_the_solid_matrix_can_be_inverted_whatever_the_noise(sd):
    solid = SteadyGram.of(noisy(EXACT.gram, sd), sd, independent(), BASIS).solid
    np.testing.assert_allclose(solid, solid.T, atol=1e-9)
    assert np.linalg.eigvalsh(solid / np.outer(BASIS.weight, BASIS.weight)).min() > 0.01
