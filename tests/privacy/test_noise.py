import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.exceptions import InvalidInput
from discreet.privacy.noise import (
    MAX_SUM,
    discrete_gaussian,
    discrete_laplace,
    drawing_is_seeded,
    published_gamma,
    published_gaussian,
    published_laplace,
)
from discreet.testing import frozen_noise, seeded_noise

DRAWERS = [discrete_gaussian, discrete_laplace]
SCALE = 2.0**40
N = 20_000


def standardised(draw, *, seed=None):
    zeros = np.zeros(N, dtype=np.int64)
    if seed is None:
        return draw(zeros, SCALE) / SCALE
    with seeded_noise(seed):
        return draw(zeros, SCALE) / SCALE


# Tolerances are six standard errors of each statistic for N independent draws: a false alarm in 500 million runs.
@pytest.mark.parametrize("seed", [None, 7])
def test_gaussian_noise_has_the_mean_spread_and_kurtosis_of_a_gaussian(seed):
    z = standardised(discrete_gaussian, seed=seed)
    assert abs(z.mean()) < 6 / np.sqrt(N)
    assert abs((z**2).mean() - 1) < 6 * np.sqrt(2 / N)
    assert abs((z**4).mean() - 3) < 6 * np.sqrt(96 / N)


@pytest.mark.parametrize("seed", [None, 7])
def test_laplace_noise_has_the_mean_spread_and_absolute_mean_of_a_laplace(seed):
    z = standardised(discrete_laplace, seed=seed)
    assert abs(z.mean()) < 6 * np.sqrt(2 / N)
    assert abs(np.abs(z).mean() - 1) < 6 / np.sqrt(N)
    assert abs((z**2).mean() - 2) < 6 * np.sqrt(20 / N)


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("draw", DRAWERS)
def test_neighbouring_coordinates_get_unrelated_noise(draw, seed):
    z = standardised(draw, seed=seed)
    lagged = np.mean(z[1:] * z[:-1]) / np.mean(z**2)
    assert abs(lagged) < 6 / np.sqrt(N)


@pytest.mark.parametrize("draw", DRAWERS)
def test_noise_is_added_to_the_sums(draw):
    sums = np.full(100, 2**55, dtype=np.int64)
    drawn = draw(sums, 2.0**24)
    assert drawn.dtype == np.int64
    assert np.all(np.abs(drawn - sums) < 2**31)
    assert np.all(sums == 2**55)


@pytest.mark.parametrize("draw", DRAWERS)
def test_real_noise_differs_between_two_calls_and_ignores_numpys_seed(draw):
    zeros = np.zeros(20, dtype=np.int64)
    np.random.seed(0)
    first = draw(zeros, SCALE)
    np.random.seed(0)
    second = draw(zeros, SCALE)
    assert not np.any(first == second)


@pytest.mark.parametrize("draw", DRAWERS)
def test_seeded_noise_repeats_itself_and_depends_on_the_seed(draw):
    first, again, other = (standardised(draw, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.any(first == other)


@pytest.mark.parametrize("draw", DRAWERS)
def test_successive_seeded_draws_are_fresh(draw):
    zeros = np.zeros(20, dtype=np.int64)
    with seeded_noise(0):
        assert not np.any(draw(zeros, SCALE) == draw(zeros, SCALE))


def test_the_seed_ends_with_its_block_even_after_an_error():
    assert not drawing_is_seeded()
    with pytest.raises(InvalidInput, match="sigma"), seeded_noise(0):
        discrete_gaussian(np.zeros(2, dtype=np.int64), 0.0)
    assert not drawing_is_seeded()


def test_an_inner_seed_leaves_the_outer_one_in_place():
    zeros = np.zeros(3, dtype=np.int64)
    with seeded_noise(0):
        plain = discrete_gaussian(zeros, SCALE)
    with seeded_noise(0):
        with seeded_noise(1):
            inner = discrete_gaussian(zeros, SCALE)
        assert drawing_is_seeded()
        outer = discrete_gaussian(zeros, SCALE)
    assert np.array_equal(plain, outer)
    assert not np.any(inner == outer)


def test_a_thread_that_did_not_ask_for_seeded_noise_draws_real_noise():
    seen = []
    with seeded_noise(0):
        thread = threading.Thread(target=lambda: seen.append(drawing_is_seeded()))
        thread.start()
        thread.join()
    assert seen == [False]


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("draw", DRAWERS)
@pytest.mark.parametrize("scale", [0.0, 1e-300, 2.0**24 - 1, 2.0**57 * 1.01, float("inf"), float("nan"), -(2.0**30)])
def test_scales_that_would_break_the_promise_are_refused(draw, scale, seed):
    zeros = np.zeros(2, dtype=np.int64)
    argument = "sigma" if draw is discrete_gaussian else "scale"
    if seed is None:
        with pytest.raises(InvalidInput, match=argument):
            draw(zeros, scale)
    else:
        with seeded_noise(seed), pytest.raises(InvalidInput, match=argument):
            draw(zeros, scale)


@pytest.mark.parametrize("draw", DRAWERS)
@pytest.mark.parametrize("extreme", [MAX_SUM + 1, -MAX_SUM - 1, 2**63 - 1, -(2**63)])
def test_sums_that_could_leave_64_bits_are_refused_without_being_printed(draw, extreme):
    with pytest.raises(InvalidInput, match=r"2\*\*62") as caught:
        draw(np.array([0, extreme], dtype=np.int64), SCALE)
    assert str(abs(extreme)) not in str(caught.value)


@pytest.mark.parametrize("draw", DRAWERS)
@pytest.mark.parametrize("sums", [np.zeros(2), np.zeros((2, 2), dtype=np.int64), np.zeros(2, dtype=np.int32), [0, 1]])
def test_anything_but_a_flat_int64_array_is_refused(draw, sums):
    with pytest.raises(InvalidInput, match="int64"):
        draw(sums, SCALE)


@pytest.mark.parametrize("draw", DRAWERS)
def test_an_empty_array_stays_empty(draw):
    assert draw(np.zeros(0, dtype=np.int64), SCALE).shape == (0,)


@pytest.mark.parametrize("draw", DRAWERS)
@given(edge=st.sampled_from([MAX_SUM, -MAX_SUM]), seed=st.integers(0, 50))
def test_seeded_noise_never_wraps_around(draw, edge, seed):
    sums = np.full(1000, edge, dtype=np.int64)
    with seeded_noise(seed):
        drawn = draw(sums, 2.0**57)
    assert np.all(np.sign(drawn) == np.sign(edge))


@pytest.mark.parametrize("draw", DRAWERS)
def test_exact_noise_accepts_a_strided_view(draw):
    sums = np.arange(40, dtype=np.int64)[::2] * 2**50
    assert np.all(np.abs(draw(sums, 2.0**24) - sums) < 2**31)


def test_published_noise_has_the_stated_spread_and_is_seeded_only_on_request():
    drawn = published_gaussian(20_000, 3.0)
    assert drawn.std() == pytest.approx(3.0, rel=0.03)
    assert not np.array_equal(drawn, published_gaussian(20_000, 3.0))
    with seeded_noise(1):
        first = published_gaussian((2, 3), 1.0)
    with seeded_noise(1):
        np.testing.assert_array_equal(first, published_gaussian((2, 3), 1.0))
    with frozen_noise():
        assert not published_gaussian(5, 1.0).any()
    assert not published_gaussian(5, 0.0).any()


@pytest.mark.parametrize("sd", [-1.0, float("nan"), float("inf")])
def test_published_noise_of_no_size_is_refused(sd):
    with pytest.raises(InvalidInput, match="sd must be a finite number"):
        published_gaussian(1, sd)


def test_published_laplace_noise_has_the_stated_scale_and_is_seeded_only_on_request():
    drawn = published_laplace(20_000, 3.0)
    # The mean absolute value of a Laplace number is its scale.
    assert np.abs(drawn).mean() == pytest.approx(3.0, rel=0.04)
    assert not np.array_equal(drawn, published_laplace(20_000, 3.0))
    with seeded_noise(1):
        first = published_laplace((2, 3), 1.0)
    with seeded_noise(1):
        np.testing.assert_array_equal(first, published_laplace((2, 3), 1.0))
    with frozen_noise():
        assert not published_laplace(5, 1.0).any()


def test_a_published_vector_has_a_gamma_length_and_no_direction():
    drawn = np.array([published_gamma(4, 0.5) for _ in range(4_000)])
    lengths = np.linalg.norm(drawn, axis=1)
    assert lengths.mean() == pytest.approx(4 * 0.5, rel=0.04)
    assert lengths.std() == pytest.approx(np.sqrt(4) * 0.5, rel=0.06)
    assert np.abs(drawn.mean(axis=0)).max() < 5 * drawn.std() / np.sqrt(4_000)
    with frozen_noise():
        assert not published_gamma(5, 1.0).any()


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf")])
def test_published_noise_of_no_scale_is_refused(scale):
    for draw in (published_laplace, published_gamma):
        with pytest.raises(InvalidInput, match="scale must be a finite number"):
            draw(1, scale)
