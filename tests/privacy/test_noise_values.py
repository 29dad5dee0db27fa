"""Edges of the noise that mutants showed to be unprotected."""

import numpy as np
import pytest

from discreet.exceptions import InvalidInput
from discreet.privacy.noise import MAX_SUM, _rounded, published_gamma, published_gaussian, published_laplace


def test_seeded_noise_beyond_64_bits_saturates_on_its_own_side():
    limit = np.iinfo(np.int64).max - MAX_SUM
    drawn = _rounded(np.zeros(3, dtype=np.int64), np.array([-1e30, 0.6, 1e30]))
    np.testing.assert_array_equal(drawn, [-limit, 1, limit])


def test_the_largest_sum_and_the_largest_noise_stay_inside_64_bits():
    # As a float, the limit is one more than itself: noise of that size would carry the sum around to the other end.
    largest = np.array([MAX_SUM, -MAX_SUM])
    for noise in (2.0**62, np.nextafter(2.0**62, 0.0), np.nextafter(2.0**62, np.inf)):
        drawn = _rounded(largest, np.array([noise, -noise]))
        assert np.sign(drawn).tolist() == [1, -1]
        assert [int(each) for each in drawn] == [s * (2**62 + min(int(noise), 2**62 - 1)) for s in (1, -1)]


@pytest.mark.parametrize("draw", [published_gamma, published_gaussian, published_laplace])
def test_published_noise_may_be_none_at_all_and_never_less(draw):
    assert not draw(5, 0.0).any()
    for scale in (-1e-300, np.inf, np.nan):
        with pytest.raises(InvalidInput):
            draw(5, scale)
