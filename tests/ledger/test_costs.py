"""What requests cost, and which sequences of them a cap admits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from discreet import ATE, CATE, Bounds, Budget, DifferenceInMeans, InvalidBudget, Uplift
from discreet.ledger.composition import MOST_REQUESTS, Cost, Total, admits, gaussian_limit, pure_mu, within_quota
from discreet.privacy.accountant import calibrate_mu, gdp_delta, lattice_slack
from discreet.testing import seeded_noise

CAP = Budget(epsilon=2, delta=1e-5)
SMALL = Cost.of(Budget(epsilon=0.1, delta=1e-7), one_gate=True)


def most(cap, composition, cost):
    """How many requests of one cost are admitted."""
    low, high = 0, 2 * MOST_REQUESTS
    while high - low > 1:
        middle = (low + high) // 2
        fits = admits(cap, composition, Total.of([cost] * middle))
        low, high = (middle, high) if fits else (low, middle)
    return low


@given(st.floats(1e-6, 30))
def test_a_pure_mechanism_is_gaussian_exactly_where_two_trade_offs_touch(epsilon):
    p = 1 / (1 + math.exp(epsilon))
    mu = pure_mu(epsilon)
    # The Gaussian trade-off goes through (p, p), and never above the chords of the pure one.
    assert norm.cdf(norm.isf(p) - mu) == pytest.approx(p, rel=1e-6)
    alphas = np.linspace(0, 1, 400)
    pure = np.maximum(1 - math.exp(epsilon) * alphas, math.exp(-epsilon) * (1 - alphas)).clip(0)
    assert np.all(norm.cdf(norm.isf(alphas) - mu) <= pure + 1e-9)


def test_gaussian_requests_add_up_in_squares_and_many_more_of_them_fit():
    assert most(CAP, "plain", SMALL) == 20
    assert most(CAP, "gaussian", SMALL) == math.floor((gaussian_limit(CAP, "gaussian") / SMALL.mu) ** 2) > 150
    # Half of delta costs little.
    assert 0.9 * most(CAP, "gaussian", SMALL) < most(CAP, "either", SMALL) < most(CAP, "gaussian", SMALL)


@given(st.floats(0.01, 25), st.floats(1e-12, 1e-2), st.sampled_from(["gaussian", "either"]))
def test_what_gaussian_requests_may_add_up_to_keeps_to_the_cap(epsilon, delta, composition):
    mu = gaussian_limit(Budget(epsilon=epsilon, delta=delta), composition)
    allowed = delta if composition == "gaussian" else delta / 2
    held = min(epsilon, max(0.0, math.log(allowed / (4e-18 * MOST_REQUESTS))))
    assert mu == 0 or gdp_delta(mu, held) + (1 + math.exp(held)) * MOST_REQUESTS * 1e-18 <= allowed


@given(st.floats(0.1, 20), st.floats(0.1, 20), st.floats(1e-12, 1e-3), st.floats(1e-12, 1e-3))
def test_filters_of_larger_caps_contain_those_of_smaller_ones(epsilon, more, delta, rest):
    small, large = Budget(epsilon=epsilon, delta=delta), Budget(epsilon=epsilon + more, delta=delta + rest)
    for composition in ("gaussian", "either"):
        assert gaussian_limit(small, composition) <= gaussian_limit(large, composition)


def test_mixed_requests_fit_plainly_with_half_of_delta_and_in_squares_only_if_all_have_a_mu():
    pure, published = Cost(epsilon=0.5), Cost(epsilon=0.5, delta=1e-6)
    assert admits(CAP, "either", Total.of([pure, published, SMALL]))
    assert not admits(CAP, "gaussian", Total.of([published]))
    assert admits(CAP, "gaussian", Total.of([Cost(epsilon=0.01)] * 300))
    assert not admits(CAP, "either", Total.of([Cost(epsilon=0.1, delta=6e-6)]))
    assert admits(CAP, "plain", Total.of([Cost(epsilon=0.1, delta=6e-6)]))


def test_a_pure_cap_admits_pure_requests_up_to_their_sum():
    cap = Budget(epsilon=0.3)
    assert admits(cap, "plain", Total.of([Cost(epsilon=0.1), Cost(epsilon=0.2)]))
    assert not admits(cap, "plain", Total.of([Cost(epsilon=0.1), Cost(epsilon=0.2000001)]))
    assert not admits(cap, "plain", Total.of([SMALL]))


def test_no_more_requests_fit_than_the_lattice_was_set_aside_for():
    tiny = Cost.of(Budget(epsilon=1e-4, delta=1e-7), one_gate=True)
    assert most(Budget(epsilon=8, delta=1e-2), "gaussian", tiny) == MOST_REQUESTS


def test_an_analysts_cap_is_used_up_by_one_request_of_that_size():
    assert within_quota(CAP, Total.of([Cost.of(CAP, one_gate=True)]))
    assert not within_quota(CAP, Total.of([Cost.of(CAP, one_gate=True), SMALL]))


@pytest.mark.parametrize("kind", [ATE, CATE, DifferenceInMeans, Uplift])
def test_the_cost_of_a_fit_is_what_its_events_spend(kind):
    rng = np.random.default_rng(0)
    X, T, Y = rng.uniform(size=(300, 2)), rng.integers(0, 2, 300), rng.uniform(size=300)
    by = {"by": {0: 4}} if kind is Uplift else {}
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1), (0, 1)], propensity=(0.1, 0.9))
    with seeded_noise(0):
        events = kind(epsilon=1, delta=1e-6, bounds=bounds, **by).fit(Y, T, X=X).guarantee_.events
    cost = Cost.of(Budget(epsilon=1, delta=1e-6), one_gate=True)
    assert cost.mu == calibrate_mu(1, 1e-6)
    assert 0.99 * cost.mu < math.hypot(*(event.mu for event in events)) <= cost.mu * (1 + 1e-12)
    assert math.fsum(lattice_slack(event.sigma, event.dimension) for event in events) <= 1e-18


@pytest.mark.parametrize("mu", [0, -1, math.nan, math.inf])
def test_a_mu_that_is_no_number_is_refused(mu):
    with pytest.raises(InvalidBudget, match="mu must be a positive number"):
        Cost(epsilon=1, delta=1e-6, mu=mu)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-17, 1e-8, 9.99e-5, 1e-4, 1e-3])
def test_a_small_pure_epsilon_is_never_rounded_down(epsilon):
    # The tangent at zero, less what the curve bends: a fiftieth of the square and smaller terms.
    exact = epsilon * math.sqrt(math.pi / 2) * (1 - (1 / 12 - math.pi / 48) * epsilon**2)
    assert exact * (1 + 5e-10) < pure_mu(epsilon) < exact * (1 + 2e-9) + 1e-320


def test_mu_is_concave_in_a_pure_epsilon():
    grid = np.geomspace(1e-4, 30, 400)
    slopes = np.diff([pure_mu(float(each)) for each in grid]) / np.diff(grid)
    assert np.all(np.diff(slopes) <= 1e-6)
