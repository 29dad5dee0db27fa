import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from discreet.postprocessing.magnitude import BINS, MagnitudeHistogram, _shape_cells, bin_numbers

CEILING = 4.0
RNG = np.random.default_rng(0)


def histogram(values, ceiling=CEILING):
    return np.bincount(bin_numbers(values, ceiling), minlength=BINS) / len(values)


def normal(scale, n=200_000, seed=1):
    return np.random.default_rng(seed).normal(0, scale, n)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
def test_every_magnitude_has_a_bin_and_larger_ones_have_higher_bins(values):
    numbers = bin_numbers(np.array(values), CEILING)
    assert numbers.min() >= 0
    assert numbers.max() <= BINS - 1
    order = np.argsort(np.abs(values), kind="stable")
    assert np.all(np.diff(numbers[order]) >= 0)


def test_bins_are_half_octaves_below_the_ceiling():
    values = CEILING * 2.0 ** (-0.5 * np.arange(5)) * (1 - 1e-9)
    np.testing.assert_array_equal(bin_numbers(values, CEILING), BINS - 1 - np.arange(5))
    np.testing.assert_array_equal(bin_numbers(-values, CEILING), BINS - 1 - np.arange(5))


@pytest.mark.parametrize("scale", [0.001, 0.03, 0.2, 1.0])
@pytest.mark.parametrize("sd", [1e-9, 0.003, 0.02])
def test_the_scale_of_a_normal_is_recovered(scale, sd):
    # With this much noise a single draw may be off by a quarter and more, so the middle one of several is taken.
    noise = np.random.default_rng(int(1e6 * scale)).normal(0, sd, (9, BINS))
    found = [MagnitudeHistogram.fit(fractions, sd, CEILING).scale for fractions in histogram(normal(scale)) + noise]
    # Scales are fitted to an eighth of an octave, and interpolated within half octaves: a tenth is what to expect.
    assert np.median(found) == pytest.approx(scale, rel=0.15 if sd > 0.01 else 0.12)


def test_known_factors_are_taken_out_of_the_shape_and_left_in_the_magnitude():
    factors = np.repeat([1.0, 8.0], 500)
    values = normal(0.1) * np.resize(factors, 200_000)
    magnitude = MagnitudeHistogram.fit(histogram(values), 0.003, CEILING, (factors, np.ones(factors.size)))
    np.testing.assert_allclose(magnitude.mass, histogram(values), atol=0.02)


def test_mass_is_a_distribution_even_under_much_noise():
    for seed in range(50):
        noise = np.random.default_rng(seed).normal(0, 3.0, BINS)
        magnitude = MagnitudeHistogram.fit(histogram(normal(0.1, 1000)) + noise, 3.0, CEILING)
        assert magnitude.mass.min() >= 0
        assert magnitude.mass.sum() == pytest.approx(1)
        assert 0 < magnitude.scale <= CEILING
        assert magnitude.clip(1.0) > 0
        assert magnitude.excess(np.ones(1)) >= 0


@pytest.mark.parametrize("seed", [4, 8, 57])
def test_no_mass_and_no_excess_is_negative_by_rounding(seed):
    factors = np.random.default_rng(seed).uniform(1, 9, 50)
    magnitude = MagnitudeHistogram.fit(np.zeros(BINS), 1e3, CEILING, (factors, np.ones(50)))
    assert magnitude.mass.min() >= 0
    assert magnitude.excess(np.array([1e-9])) >= 0
    assert _shape_cells((factors, np.ones(50))).min() >= 0


def test_what_stands_clear_of_the_noise_is_believed():
    values = np.concatenate([normal(0.01, 95_000), np.full(5_000, 3.0)])
    magnitude = MagnitudeHistogram.fit(histogram(values), 0.001, CEILING)
    assert 1 - magnitude.below(2.0) == pytest.approx(0.05, abs=0.005)


def test_below_and_excess_agree_with_a_normal():
    magnitude = MagnitudeHistogram.fit(histogram(normal(0.2)), 1e-6, CEILING)
    levels = 0.2 * np.array([0.5, 1.0, 2.0])
    # Within half octaves mass is even over the logarithm, which is a few per cent off.
    for level in levels:
        assert magnitude.below(level) == pytest.approx(2 * norm.cdf(level / 0.2) - 1, abs=0.03)
    z = levels / 0.2
    np.testing.assert_allclose(magnitude.excess(levels), 2 * 0.2 * (norm.pdf(z) - z * norm.sf(z)), atol=0.012)
    assert np.all(np.diff(magnitude.excess(np.linspace(0, 1, 30))) <= 0)


def test_below_is_a_distribution_function():
    magnitude = MagnitudeHistogram.fit(histogram(normal(0.2)), 1e-6, CEILING)
    values = [magnitude.below(level) for level in [0.0, *np.geomspace(1e-6, CEILING, 50)]]
    assert values == sorted(values)
    assert values[0] == 0
    assert values[-1] == pytest.approx(1)


def test_the_clip_shrinks_as_noise_grows():
    magnitude = MagnitudeHistogram.fit(histogram(normal(0.2)), 1e-6, CEILING)
    levels = [magnitude.clip(noise) for noise in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] > levels[-1]
    # A long tail is worth a wider clip.
    tailed = normal(0.2) * np.where(RNG.random(200_000) < 0.01, 20.0, 1.0)
    assert MagnitudeHistogram.fit(histogram(tailed), 1e-6, CEILING).clip(1e-3) > magnitude.clip(1e-3)


@pytest.mark.parametrize("ceiling", [1.0, 0.37, 44.0, 1e-3, 1e140])
def test_bins_are_those_that_a_search_for_them_finds(ceiling):
    edges = ceiling * 2.0 ** (-0.5 * np.arange(BINS - 1, -1, -1.0))
    beside = [np.nextafter(edges, 0.0), np.nextafter(edges, np.inf)]
    rare = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-320, 1e308]
    values = np.concatenate([edges, -edges, *beside, normal(ceiling / 5.0, 20_000), rare])
    expected = np.minimum(np.searchsorted(edges, np.abs(values)), BINS - 1)
    np.testing.assert_array_equal(bin_numbers(values, ceiling), expected)
