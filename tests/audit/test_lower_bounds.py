"""Lower bounds from the laws of two releases, beside values worked out by themselves."""

import math

import numpy as np
import pytest

from discreet.audit._lower_bounds import Censored, Law, least_delta, least_epsilon, shift_epsilon
from discreet.privacy.accountant import gdp_delta, gdp_epsilon


def test_noise_of_a_scale_that_depends_on_the_records_is_distinguished_in_closed_form():
    narrow, wide = Law.normal(0.0, 1.0), Law.normal(0.0, 1.5)
    # Outside [-5, 5], worked out by itself.
    p, q = math.erfc(5 / 1.5 / math.sqrt(2)), math.erfc(5 / math.sqrt(2))
    assert least_epsilon(narrow, wide, 1e-5) >= math.log((p - 1e-5) / q) - 0.05
    assert least_epsilon(narrow, wide, 1e-5) == least_epsilon(wide, narrow, 1e-5)


def test_closed_forms_of_a_shift_are_exact():
    mu, epsilon = shift_epsilon(np.array([3.0, 4.0]), 2.5, 1e-5)
    assert mu == pytest.approx(2.0)
    assert epsilon == pytest.approx(gdp_epsilon(2.0, 1e-5))
    found = least_delta(Law.normal(0.0, 1.0), Law.normal(1.0, 1.0), 0.5)
    assert found == pytest.approx(gdp_delta(1.0, 0.5), rel=1e-3)
    assert found <= gdp_delta(1.0, 0.5) * (1 + 1e-9)


def test_an_atom_from_truncation_is_an_event():
    def law(least):
        return Censored(0.0, 1.0, least, lambda width: (width - least) / 2.0, least + 16.0)

    # Half of the first law lies on its atom, where the second one never is.
    levels = np.linspace(1.0, 2.0, 2_001)
    assert least_delta(law(1.0), law(1.1), 1.0, levels) >= 0.5
    assert least_delta(law(1.0), law(1.0), 0.0, levels) == pytest.approx(0.0, abs=1e-12)
