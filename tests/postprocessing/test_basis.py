import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from discreet.data.bounds import Levels, Range
from discreet.data.columns import ScratchBuffer
from discreet.data.records import CHUNK_ROWS
from discreet.postprocessing.basis import Basis, Size, size_for
from discreet.postprocessing.kernel_basis import combine
from discreet.postprocessing.marginals import BINS

RICH = Size(degree=3, pairs=True, curved=True)
STEPS = Size(degree=2, pairs=True, curved=True, steps=True)
ADDITIVE = Size(degree=3, pairs=False, curved=False)
UNIFORM = np.full(BINS, 1 / BINS)
CENTRES = (2 * np.arange(BINS) + 1) / BINS - 1
BELL = np.exp(-0.5 * (CENTRES / 0.4) ** 2)
BELL /= BELL.sum()
SKEWED = np.exp(-3.0 * (CENTRES + 1))
SKEWED /= SKEWED.sum()
COLUMNS = (Range(0, 1), Range(-3, 3), Levels(("a", "b", "c")))
MARGINALS = (UNIFORM, BELL, np.array([0.5, 0.3, 0.2]))


def points(n, seed=0):
    """Covariates as bounds encode them: ranges on [-1, 1] with both ends, levels as their positions."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.uniform(-1, 1, n), rng.uniform(-1, 1, n), rng.integers(0, 3, n)])
    x[:2, :2] = [[-1, 1], [1, -1]]
    return x


# A skewed marginal is unrolled to normal scores, where a few nodes to a bin are no longer exact.
@pytest.mark.parametrize(
    ("marginal", "off"), [(UNIFORM, 1e-4), (BELL, 1e-4), (SKEWED, 0.05)], ids=["uniform", "bell", "skewed"]
)
def test_polynomials_are_orthonormal_under_their_marginal(marginal, off):
    basis = Basis((Range(0, 1),), (marginal,), ADDITIVE)
    # The histogram as a density: piecewise uniform, so that fine equal steps within each bin integrate it.
    fine = np.linspace(-1, 1, 400 * BINS + 1)
    middle = (fine[1:] + fine[:-1]) / 2
    mass = np.repeat(marginal / 400, 400)
    features, _ = basis(middle[:, None])
    plain = features / basis.weight
    gram = (plain * mass[:, None]).T @ plain
    np.testing.assert_allclose(gram, np.eye(basis.m), atol=off)


@pytest.mark.parametrize("marginal", [UNIFORM, BELL, SKEWED], ids=["uniform", "bell", "skewed"])
def test_a_step_and_a_kink_follow_the_polynomials_and_are_orthonormal_to_them(marginal):
    basis = Basis((Range(0, 1),), (marginal,), Size(degree=2, pairs=False, curved=False, steps=True))
    assert basis.m == 5
    fine = np.linspace(-1, 1, 400 * BINS + 1)
    middle = (fine[1:] + fine[:-1]) / 2
    features, _ = basis(middle[:, None])
    plain = features / basis.weight
    gram = (plain * np.repeat(marginal / 400, 400)[:, None]).T @ plain
    np.testing.assert_allclose(gram, np.eye(basis.m), atol=0.08)
    # Bounded in the tails, unlike a cube, and together with the others they make a step out of low powers.
    assert np.abs(plain[:, 3:]).max() < np.abs(middle).max() * 40
    step = np.where(np.cumsum(np.repeat(marginal / 400, 400)) > 0.5, 1.0, -1.0)
    mass = np.repeat(marginal / 400, 400)
    without, with_ = (mass @ (step - plain[:, :k] @ (plain[:, :k].T @ (mass * step))) ** 2 for k in (3, 4))
    assert with_ < 0.8 * without


def test_products_of_steps_come_with_the_curved_ones():
    basis = Basis(COLUMNS, MARGINALS, STEPS)
    plain = basis(points(50))[0] / basis.weight
    own = 1 + 4 + 4 + 2
    # Both ranges' first terms, squares and steps, in both orders; then contrasts are left alone.
    for at, (a, b) in zip(range(own + 5, own + 9), [(2, 5), (1, 6), (3, 5), (1, 7)], strict=True):
        np.testing.assert_allclose(plain[:, at], plain[:, a] * plain[:, b])


def test_polynomials_are_exact_for_a_uniform_marginal():
    basis = Basis((Range(0, 1),), (UNIFORM,), ADDITIVE)

    def feature(u, k):
        return float(basis(np.array([[u]]))[0][0, k] / basis.weight[k])

    for k in range(basis.m):
        # Legendre polynomials, up to their sign and norm.
        legendre = np.polynomial.legendre.Legendre.basis(k)
        inner = quad(lambda u, k=k, legendre=legendre: feature(u, k) * legendre(u) / 2, -1, 1)[0]
        assert abs(inner) == pytest.approx(1 / math.sqrt(2 * k + 1), rel=1e-9)


@pytest.mark.parametrize("frequency", [[0.5, 0.5], [0.3, 0.3, 0.4], [0.25] * 4, [0.4, 0.2, 0.2, 0.1, 0.1]])
def test_contrasts_of_levels_are_orthonormal_under_their_frequencies(frequency):
    levels = len(frequency)
    basis = Basis((Levels(tuple(range(levels))),), (np.array(frequency),), ADDITIVE)
    features, _ = basis(np.arange(levels, dtype=float)[:, None])
    plain = features / basis.weight
    np.testing.assert_allclose((plain * np.array(frequency)[:, None]).T @ plain, np.eye(levels), atol=1e-12)


def test_a_rare_level_stays_bounded():
    basis = Basis((Levels(("a", "b")),), (np.array([1.0, 0.0]),), ADDITIVE)
    features, _ = basis(np.array([[0.0], [1.0]]))
    assert np.isfinite(features).all()
    assert np.abs(features).max() < 10


def test_products_are_products_of_first_terms():
    basis = Basis(COLUMNS, MARGINALS, Size(degree=1, pairs=True, curved=False))
    features, _ = basis(points(50))
    plain = features / basis.weight
    # Constant, two ranges, two contrasts; then range x range and each range x each contrast.
    assert basis.m == 1 + 2 + 2 + 1 + 2 + 2
    np.testing.assert_allclose(plain[:, 5], plain[:, 1] * plain[:, 2], rtol=1e-12)
    np.testing.assert_allclose(plain[:, 6], plain[:, 1] * plain[:, 3], rtol=1e-12)


@pytest.mark.parametrize("marginals", [MARGINALS, (SKEWED, SKEWED, MARGINALS[2])], ids=["even", "skewed"])
def test_features_do_not_depend_on_the_place_of_a_record_bit_for_bit(marginals):
    basis = Basis(COLUMNS, marginals, RICH)
    x = points(CHUNK_ROWS)
    coefficients = np.random.default_rng(1).normal(size=basis.m)
    features, weight = basis(x)
    total = combine(features, coefficients)
    shuffled = np.random.default_rng(2).permutation(CHUNK_ROWS)
    # Chunks are column by column in memory; rows handed over one by one are not.
    for rows in (shuffled, [0], [17], np.arange(1, 8), np.arange(5, CHUNK_ROWS, 3)):
        for part in (np.asfortranarray(x[rows]), np.ascontiguousarray(x[rows])):
            again, other = basis(part)
            np.testing.assert_array_equal(again, features[rows])
            np.testing.assert_array_equal(other, weight[rows])
            np.testing.assert_array_equal(combine(again, coefficients), total[rows])


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 2)), min_size=1, max_size=20))
def test_weighted_features_stay_within_the_radius(rows):
    basis = Basis(COLUMNS, (SKEWED, BELL, np.array([0.98, 0.01, 0.01])), RICH)
    features, weight = basis(np.array(rows, dtype=float))
    assert np.all((weight > 0) & (weight <= 1))
    norms = np.linalg.norm(features, axis=1)
    # Both w phi and sqrt(w) phi, as docs/proofs/ate.md says; the gate does not rely on it.
    assert np.all(np.sqrt(weight) * norms <= basis.radius * (1 + 1e-12))
    assert np.all(weight * norms <= basis.radius * (1 + 1e-12))


def test_without_covariates_there_is_a_constant():
    basis = Basis((), (), RICH)
    features, weight = basis(np.empty((4, 0)))
    assert basis.m == 1
    np.testing.assert_array_equal(features, np.full((4, 1), basis.weight[0]))
    assert len(set(weight)) == 1
    assert 0 < weight[0] <= 1


def test_combine_is_a_matrix_product():
    rng = np.random.default_rng(3)
    features, coefficients = rng.normal(size=(30, 7)), rng.normal(size=7)
    np.testing.assert_allclose(combine(features, coefficients), features @ coefficients, rtol=1e-12, atol=1e-12)


@given(st.floats(1e-3, 1e9), st.floats(1.0, 100.0), st.integers(0, 120))
def test_a_basis_only_grows_with_information(information, factor, p):
    small, large = size_for(information, p), size_for(information * factor, p)
    assert small.degree <= large.degree
    assert small.pairs <= large.pairs
    assert small.curved <= large.curved
    assert not (large.pairs and p < 2)
    assert str(large)


@pytest.mark.parametrize("size", [RICH, STEPS, ADDITIVE], ids=str)
def test_features_are_the_same_in_memory_that_was_used_before(size):
    basis = Basis(COLUMNS, MARGINALS, size)
    scratch = ScratchBuffer()
    for rows, seed in ((50, 1), (31, 2)):
        x = points(rows, seed)
        features, weight = basis(x)
        again = basis.features(x, scratch(rows, basis.m))
        np.testing.assert_array_equal(again, features)
        np.testing.assert_array_equal(basis.held(again), weight)
        assert np.shares_memory(again, scratch(rows, basis.m))
