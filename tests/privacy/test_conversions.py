import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from discreet.exceptions import InvalidBudget
from discreet.privacy.accountant import (
    SLACK,
    calibrate_mu,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    lattice_delta,
    lattice_slack,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_mu,
)

epsilons = st.floats(-6, 7).map(lambda exponent: 10**exponent)
deltas = st.floats(-300, math.log10(0.5)).map(lambda exponent: 10**exponent)

# (mu, epsilon, delta), computed with 700 decimal digits.
REFERENCE = [
    (1e-09, 0.0, 3.98942280401433e-10),
    (2.75e-08, 1e-06, 6.04057268707607e-299),
    (1e-07, 1e-06, 7.47456399187038e-32),
    (0.001, 0.01, 7.5120257223582e-28),
    (0.0999, 0.5, 6.66828798675206e-9),
    (0.1001, 0.5, 7.04964311411523e-9),
    (1.0, 1.0, 0.126936737506644),
    (0.5, 3.0, 3.40091173567353e-10),
    (3.0, 0.0, 0.866385597462284),
    (20.0, 100.0, 0.999999614668556),
    (40.0, 1000.0, 2.53629651495655e-7),
    (4467.0, 1e7, 1.38005761377429e-7),
    (4435.0, 1e7, 1.12033355152423e-304),
    (4480.0, 1e7, 0.999999999999998),
]


@pytest.mark.parametrize(("mu", "epsilon", "delta"), REFERENCE)
def test_gdp_delta_agrees_with_many_digits_from_one_end_to_the_other(mu, epsilon, delta):
    assert gdp_delta(mu, epsilon) == pytest.approx(delta, rel=1e-10)


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.1422), (1, 0.2681), (5, 1.1212)])
def test_the_largest_mu_is_the_known_one(epsilon, mu):
    assert gdp_mu(epsilon, 1e-5) == pytest.approx(mu, abs=5e-5)
    assert calibrate_mu(epsilon, 1e-5) == pytest.approx(mu, abs=5e-5)


def test_the_analytic_gaussian_mechanism_needs_the_known_sigma():
    assert 1 / gdp_mu(1, 1e-5) == pytest.approx(3.7306, abs=5e-5)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5, 20])
@pytest.mark.parametrize("mu", [0.01, 0.1, 0.5, 1, 3, 10])
def test_gdp_delta_agrees_with_dp_accounting(mu, epsilon):
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    theirs = GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
    assert gdp_delta(mu, epsilon) == pytest.approx(theirs, rel=1e-6, abs=1e-15)


@given(epsilons, deltas)
def test_the_largest_mu_fits_and_a_larger_one_does_not(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert gdp_delta(mu, epsilon) <= delta * (1 + 1e-12)
    assert gdp_delta(mu * (1 + 1e-9), epsilon) > delta * (1 - 1e-12)


@given(epsilons, deltas)
def test_epsilon_and_mu_invert_each_other_on_the_private_side(epsilon, delta):
    back = gdp_epsilon(gdp_mu(epsilon, delta), delta)
    # Near delta = 1/2 and epsilon = 0 delta hardly depends on epsilon, so only its absolute error is small.
    assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-12)


@given(st.floats(1e-6, 1e4), deltas)
def test_the_smallest_epsilon_is_enough(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    assert epsilon >= 0
    assert gdp_delta(mu, epsilon) <= delta * (1 + 1e-12)


@given(st.floats(1e-6, 1e3), st.floats(0, 1e3), st.floats(1, 2))
def test_delta_grows_with_mu_and_falls_with_epsilon(mu, epsilon, factor):
    delta = gdp_delta(mu, epsilon)
    assert 0 < delta <= 1
    assert gdp_delta(mu * factor, epsilon) >= delta * (1 - 1e-10)
    assert gdp_delta(mu, epsilon * factor) <= delta * (1 + 1e-10)


def test_a_gaussian_release_is_never_pure_and_no_release_is():
    assert gdp_delta(1e-3, 1e6) > 0
    assert zcdp_delta(1e-6, 1e6) > 0
    assert gdp_delta(0.0, 0.0) == zcdp_delta(0.0, 0.0) == 0.0


@pytest.mark.parametrize(("rho", "epsilon"), [(0.01, 0.5), (0.05, 1.0), (1.0, 5.0), (10.0, 40.0), (1e-8, 1e-3)])
def test_zcdp_delta_is_the_best_over_a_fine_grid_of_orders(rho, epsilon):
    orders = 1 + np.exp(np.linspace(-10, 15, 200_000))
    exponents = (orders - 1) * (orders * rho - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    assert zcdp_delta(rho, epsilon) == pytest.approx(math.exp(exponents.min()), rel=1e-6)


@given(epsilons, deltas)
@settings(max_examples=50)
def test_zcdp_allows_less_than_gaussian_dp_and_inverts_on_the_private_side(epsilon, delta):
    mu = zcdp_mu(epsilon, delta)
    assert mu <= gdp_mu(epsilon, delta)
    assert zcdp_delta(mu * mu / 2, epsilon) <= delta * (1 + 1e-12)
    back = zcdp_epsilon(mu * mu / 2, delta)
    assert zcdp_delta(mu * mu / 2, back) <= delta * (1 + 1e-12)
    assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-12)


def test_zcdp_promises_nothing_when_rho_dwarfs_epsilon():
    assert zcdp_delta(1e6, 1e-3) == pytest.approx(1.0)


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 2.0, 10.0, 100.0])
def test_the_lattice_slack_bounds_the_distance_between_discrete_and_rounded_gaussians(sigma):
    k = np.arange(-math.ceil(40 * sigma) - 40, math.ceil(40 * sigma) + 41)
    discrete = np.exp(-(k**2) / (2 * sigma**2))
    discrete /= discrete.sum()
    upper = norm.sf(np.abs(k) - 0.5, scale=sigma) - norm.sf(np.abs(k) + 0.5, scale=sigma)
    distance = np.abs(discrete - upper).sum() / 2
    assert distance <= lattice_slack(sigma, 1)
    assert sigma < 2 or lattice_slack(sigma, 1) <= 2.2 * distance


def test_the_lattice_slack_grows_with_the_dimension_up_to_one():
    assert lattice_slack(2.0**30, 1000) == pytest.approx(1000 * lattice_slack(2.0**30, 1))
    assert lattice_slack(1.0, 1000) == 1.0


@given(epsilons, deltas)
@settings(max_examples=50)
def test_calibration_leaves_room_for_the_lattice_on_one_of_its_two_routes(epsilon, delta):
    mu = calibrate_mu(epsilon, delta)
    gaussian = gdp_delta(mu, epsilon) + lattice_delta(SLACK, epsilon)
    assert min(gaussian, zcdp_delta(mu * mu / 2, epsilon)) <= delta * (1 - 1e-7)
    assert mu <= gdp_mu(epsilon, delta)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
def test_calibration_costs_less_than_a_ten_thousandth_in_ordinary_use(epsilon, delta):
    assert calibrate_mu(epsilon, delta) >= gdp_mu(epsilon, delta) * (1 - 1e-4)


def test_calibration_takes_the_zcdp_route_at_large_epsilon():
    assert calibrate_mu(50, 1e-6) == zcdp_mu(50, 1e-6 * (1 - 1e-6))
    assert calibrate_mu(5, 1e-6) > 1.02 * zcdp_mu(5, 1e-6)


@pytest.mark.parametrize("convert", [gdp_mu, zcdp_mu, calibrate_mu])
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_an_epsilon_that_is_not_positive_and_finite_is_refused(convert, epsilon):
    with pytest.raises(InvalidBudget, match="epsilon"):
        convert(epsilon, 1e-5)


@pytest.mark.parametrize("convert", [gdp_mu, zcdp_mu, calibrate_mu, gdp_epsilon, zcdp_epsilon])
@pytest.mark.parametrize("delta", [0.0, -1e-5, 1.0, math.nan, math.inf])
def test_a_delta_outside_zero_and_one_is_refused(convert, delta):
    with pytest.raises(InvalidBudget, match="delta"):
        convert(1.0, delta)
