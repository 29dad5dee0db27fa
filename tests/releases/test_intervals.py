import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from discreet.releases.average import Uncertainty, folded_critical

biases = st.one_of(st.floats(0, 20), st.floats(1e-12, 1e-3), st.just(0.0))
levels = st.floats(1e-6, 0.9)


def coverage(critical, bias):
    """P(|Z + bias| <= critical)."""
    return ndtr(critical - bias) - ndtr(-critical - bias)


@given(biases, levels)
def test_the_critical_value_covers_exactly_at_the_worst_bias_and_more_at_smaller_ones(bias, alpha):
    critical = folded_critical(bias, alpha)
    assert coverage(critical, bias) == pytest.approx(1 - alpha, abs=1e-9)
    for smaller in (0.0, 0.3 * bias, 0.9 * bias, -bias):
        assert coverage(critical, smaller) >= 1 - alpha - 1e-9


@given(biases, st.floats(0, 5), levels)
def test_the_critical_value_grows_with_the_bias_and_stays_between_its_limits(bias, more, alpha):
    z = float(ndtri(1 - alpha / 2))
    critical = folded_critical(bias, alpha)
    assert critical <= folded_critical(bias + more, alpha) + 1e-9
    assert z - 1e-9 <= critical <= z + bias + 1e-9
    # One tail alone gives a lower limit, which a large bias attains.
    assert critical >= bias + ndtri(1 - alpha) - 1e-9


def test_familiar_values():
    assert folded_critical(0.0, 0.05) == pytest.approx(1.959964, abs=1e-6)
    assert folded_critical(10.0, 0.05) == pytest.approx(11.644854, abs=1e-6)


def test_intervals_cover_by_simulation_whatever_the_bias_below_its_limit():
    uncertainty = Uncertainty(sampling=0.3, privacy=0.4, nuisance=1.2, clipping=0.9)
    assert uncertainty.se == pytest.approx(1.3)
    rng, draws = np.random.default_rng(0), 6_000
    for bias in (-0.9, 0.0, 0.5, 0.9):
        estimates = 2.0 + bias + rng.normal(0, uncertainty.se, draws)
        ends = np.array([uncertainty.interval(estimate, 0.1) for estimate in estimates])
        covered = np.mean((ends[:, 0] <= 2.0) & (ends[:, 1] >= 2.0))
        # Three standard errors of a simulated coverage.
        assert covered > 0.9 - 3 * math.sqrt(0.09 / draws)
        if abs(bias) == 0.9:
            assert covered == pytest.approx(0.9, abs=3 * math.sqrt(0.09 / draws))


def test_intervals_are_centred_and_narrow_with_alpha():
    uncertainty = Uncertainty(sampling=1.0, privacy=1.0, clipping=0.2)
    halves = []
    for alpha in (0.01, 0.05, 0.2, 0.5):
        low, high = uncertainty.interval(3.0, alpha)
        assert (low + high) / 2 == pytest.approx(3.0)
        halves.append(high - low)
    assert halves == sorted(halves, reverse=True)


def test_without_any_error_only_the_bias_is_left():
    assert Uncertainty(sampling=0.0, privacy=0.0, clipping=0.25).interval(1.0) == (0.75, 1.25)


def test_shares_add_up_and_the_dictionary_comes_back():
    uncertainty = Uncertainty(sampling=1.0, privacy=2.0, nuisance=2.0, clipping=4.0)
    assert uncertainty.share() == {"sampling": 0.04, "privacy": 0.16, "nuisance": 0.16, "clipping": 0.64}
    assert Uncertainty.from_dict(uncertainty.to_dict()) == uncertainty
    assert set(Uncertainty(sampling=0.0, privacy=0.0).share().values()) == {0.0}
