"""Edges of the noise that mutants showed to be unprotected."""

import numpy as np

from discreet.privacy.noise import MAX_SUM, _rounded


def test_seeded_noise_beyond_64_bits_saturates_on_its_own_side():
    limit = np.iinfo(np.int64).max - MAX_SUM
    drawn = _rounded(np.zeros(3, dtype=np.int64), np.array([-1e30, 0.6, 1e30]))
    np.testing.assert_array_equal(drawn, [-limit, 1, limit])
