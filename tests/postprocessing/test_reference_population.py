import numpy as np
import pytest

from discreet.data.bounds import Levels, Range
from discreet.postprocessing.basis import Basis, Size
from discreet.postprocessing.marginals import BINS
from discreet.postprocessing.reference_population import REFERENCE, Reference, SteadyGram, reference_points

RNG = np.random.default_rng(0)
COLUMNS = (Range(0, 1), Range(0, 1), Levels((0, 1)))
MARGINALS = (np.full(BINS, 1 / BINS), np.full(BINS, 1 / BINS), np.array([0.5, 0.5]))
BASIS = Basis(COLUMNS, MARGINALS, Size(degree=2, pairs=True, curved=False))
CORRELATION = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]])


def gram_of(x):
    features, weight = BASIS(x)
    return (features * weight[:, None]).T @ features / len(x)


def correlated_gram():
    return gram_of(reference_points(COLUMNS, MARGINALS, CORRELATION, 20_000))


def noisy(gram, sd, seed=1):
    """Noise as the gate adds it: sd on the diagonal, sd / sqrt(2) off it."""
    noise = np.random.default_rng(seed).normal(0, sd / np.sqrt(2), gram.shape)
    upper = np.triu(noise, 1)
    return gram + upper + upper.T + np.diag(np.sqrt(2) * np.diag(noise))


# --- the public stand-in --------------------------------------------------------------------------------------------


def test_reference_points_have_the_marginals_and_the_correlation():
    columns = (Range(0, 1), Range(0, 1), Levels((0, 1, 2)))
    correlation = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, 0.0], [0.0, 0.0, 1.0]])
    bell = np.exp(-0.5 * (((2 * np.arange(BINS) + 1) / BINS - 1) / 0.33) ** 2)
    bell /= bell.sum()
    marginals = (MARGINALS[0], bell, np.array([0.5, 0.3, 0.2]))
    x = reference_points(columns, marginals, correlation, 6_000)
    # Evenly distributed points: far nearer than 1 / sqrt(6000).
    assert np.abs(np.histogram(x[:, 1], BINS, (-1, 1))[0] / 6_000 - bell).max() < 0.01
    assert np.abs(np.bincount(x[:, 2].astype(int)) / 6_000 - marginals[2]).max() < 0.01
    assert np.corrcoef(x[:, 0], x[:, 1])[0, 1] == pytest.approx(0.7, abs=0.05)
    np.testing.assert_array_equal(x, reference_points(columns, marginals, correlation, 6_000))


def test_the_reference_takes_its_correlations_from_the_released_matrix():
    exact = correlated_gram()
    reference = Reference.draw(BASIS, exact, 1e-9)
    assert reference.features.shape == (REFERENCE, BASIS.m)
    # Within what a copula on a few thousand even points can do.
    assert np.abs(reference.gram - exact).max() < 0.1
    independent = gram_of(reference_points(COLUMNS, MARGINALS, np.eye(3), 20_000))
    assert np.abs(reference.gram - exact).max() < 0.3 * np.abs(independent - exact).max()


def test_a_matrix_that_is_all_noise_leaves_the_reference_nearly_independent():
    independent = gram_of(reference_points(COLUMNS, MARGINALS, np.eye(3), 20_000))
    far = [np.abs(Reference.draw(BASIS, noisy(independent, 5.0, k), 5.0).gram - independent).max() for k in range(9)]
    assert np.median(far) < 0.2


@pytest.mark.parametrize("p", [0, 1])
def test_few_covariates_have_no_correlations_to_estimate(p):
    basis = Basis(COLUMNS[:p], MARGINALS[:p], Size(degree=2, pairs=False, curved=False))
    reference = Reference.draw(basis, np.eye(basis.m), 0.1)
    assert np.isfinite(reference.gram).all()
    assert reference.weight.sum() <= 1 + 1e-9


def test_the_response_is_the_derivative_of_its_own_mean():
    reference = Reference.draw(BASIS, correlated_gram(), 1e-9)
    theta, step = RNG.normal(0, 0.3, BASIS.m), 1e-6 * RNG.normal(size=BASIS.m)
    value, slope = reference.response(theta, 0.4)
    moved, _ = reference.response(theta + step, 0.4)
    np.testing.assert_allclose(moved - value, slope @ step, atol=1e-10)
    # No more treatment than the centre says, for a constant model at that centre.
    np.testing.assert_allclose(reference.response(np.zeros(BASIS.m), 0.4)[0], 0, atol=1e-12)


# --- a steady matrix ------------------------------------------------------------------------------------------------


def test_a_matrix_without_noise_is_kept_and_one_of_noise_is_replaced():
    exact = correlated_gram()
    reference = Reference.draw(BASIS, exact, 1e-9)
    kept = SteadyGram.of(exact, 1e-9, reference, BASIS)
    np.testing.assert_allclose(reference.gram + kept.apart, exact, atol=1e-6)
    replaced = SteadyGram.of(noisy(reference.gram, 3.0), 3.0, reference, BASIS)
    assert np.abs(replaced.apart).max() < np.abs(noisy(reference.gram, 3.0) - reference.gram).max() / 2


def test_a_steady_matrix_errs_less_than_the_released_one():
    exact = correlated_gram()
    before = after = 0.0
    for seed in range(20):
        released = noisy(exact, 0.2, seed)
        reference = Reference.draw(BASIS, released, 0.2)
        steady = SteadyGram.of(released, 0.2, reference, BASIS)
        before += np.sum((released - exact) ** 2)
        after += np.sum((reference.gram + steady.apart - exact) ** 2)
    assert after < before


@pytest.mark.parametrize("sd", [1e-9, 0.1, 10.0])
def test_the_solid_matrix_can_be_inverted_whatever_the_noise(sd):
    released = noisy(correlated_gram(), sd)
    solid = SteadyGram.of(released, sd, Reference.draw(BASIS, released, sd), BASIS).solid
    np.testing.assert_allclose(solid, solid.T, atol=1e-9)
    assert np.linalg.eigvalsh(solid / np.outer(BASIS.weight, BASIS.weight)).min() > 0.01
