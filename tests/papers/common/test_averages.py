"""A mean and its uncertainty from released moments."""

import numpy as np
import pytest

from discreet.papers.common.averages import average
from discreet.privacy.query import Released


def test_mean_and_uncertainty_by_hand():
    released = Released(np.array([50.0, 400.0]), np.array([10.0, 25.0]), "score")
    mean, uncertainty = average(released, 100, unit=2.0)
    assert mean == pytest.approx(1.0)
    # The variance is 4 + 0.25 - 0.25.
    assert uncertainty.sampling == pytest.approx(2.0 * np.sqrt(4.0 / 100))
    assert uncertainty.privacy == pytest.approx(2.0 * 0.1)


def test_a_variance_that_noise_made_negative_counts_as_zero():
    released = Released(np.array([100.0, -400.0]), np.array([10.0, 25.0]), "score")
    assert average(released, 100)[1].sampling == 0.0
