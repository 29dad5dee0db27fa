"""Values and edges of the privacy core that mutants showed to be unprotected."""

import math

import numpy as np
import pytest

from discreet.exceptions import InvalidInput
from discreet.privacy import accountant, loss_distributions
from discreet.privacy.accountant import (
    RESERVE,
    SLACK,
    bracket,
    calibrate_mu,
    gdp_epsilon,
    gdp_mu,
    lattice_delta,
    lattice_slack,
    parallel_profile,
    profile_of,
    sets_slack_aside,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_mu,
)
from discreet.privacy.budget import ClaimedEvent, GaussianEvent, LaplaceEvent, Shares, event_from_dict


def test_slack_and_reserve_are_those_of_the_proofs():
    assert (accountant.SLACK, accountant.RESERVE) == (1e-18, 1e-6)


def test_epsilon_is_zero_where_delta_alone_is_enough():
    assert gdp_epsilon(0.01, 0.1) == 0.0
    assert zcdp_epsilon(1e-6, 0.1) == 0.0


def test_the_lattice_slack_is_a_twenty_fourth_of_the_inverse_variance():
    assert lattice_slack(10.0, 3) == 3 / 2400
    assert lattice_delta(0.0, 1.0) == 0.0
    assert lattice_delta(1e-6, 0.5) == 1e-6 * (1 + math.exp(0.5))


def test_an_order_below_two_is_used_where_it_is_the_best():
    x = 0.3865
    assert zcdp_delta(1.0, 0.5) <= math.exp(x * ((1 + x) - 0.5 - math.log1p(1 / x)) - math.log1p(x)) * (1 + 1e-9)


def test_calibration_subtracts_what_the_lattice_costs():
    usable = 1e-5 * (1 - RESERVE)
    assert calibrate_mu(1.0, 1e-5, 1e-6) == gdp_mu(1.0, usable - lattice_delta(1e-6, 1.0))


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_slack_is_set_aside_exactly_where_the_gaussian_route_allows_more(delta):
    usable = delta * (1 - RESERVE)

    def gaussian_is_better(epsilon: float) -> bool:
        left = usable - lattice_delta(SLACK, epsilon)
        return left > 0 and gdp_mu(epsilon, left) > zcdp_mu(epsilon, usable)

    last, first = bracket(gaussian_is_better, 5.0)
    assert sets_slack_aside(last, delta)
    assert not sets_slack_aside(first, delta)


@pytest.mark.parametrize("switch", [1e-200, 0.37, 1.0, 1.1, 3.0000001, 1e150])
def test_a_bracket_ends_at_neighbouring_floats(switch):
    low, high = bracket(lambda value: value < switch, 1.0)
    assert low < switch <= high == math.nextafter(low, math.inf)


def test_a_bracket_of_nothing_ends_at_zero():
    assert bracket(lambda value: False, 1.0) == (0.0, math.ulp(0.0))


def test_no_more_is_set_aside_for_the_lattice_than_it_costs():
    event = GaussianEvent(name="sums", diameter=1e8, sigma=1e8, dimension=1)
    first = gdp_epsilon(1.0, 1e-6)
    aside = (1 + 1e-9) * lattice_delta(lattice_slack(1e8, 1), first)
    assert profile_of([event]).epsilon_at(1e-6) == gdp_epsilon(1.0, 1e-6 - aside)


def test_continuous_noise_has_no_slack():
    assert profile_of([GaussianEvent(name="sum", diameter=1.0, sigma=2.0, dimension=1, lattice=False)]).slack == 0.0
    assert profile_of([LaplaceEvent(name="sum", diameter=1.0, scale=2.0, dimension=1, lattice=False)]).slack == 0.0


def test_a_laplace_event_is_pure_and_free_at_a_delta_that_its_noise_alone_reaches():
    profile = profile_of([LaplaceEvent(name="sum", diameter=0.1, scale=1.0, dimension=1, lattice=False)])
    assert profile.epsilon_at(0.5) == 0.0
    assert profile.epsilon_at(0.0) == 0.1
    assert profile.rho == 0.1**2 / 2


def test_a_claim_costs_nothing_at_a_delta_above_that_of_its_worst_mechanism():
    assert profile_of([ClaimedEvent(name="claim", epsilon=1.0, delta=1e-3)]).epsilon_at(0.9) == 0.0


def test_a_sum_of_shares_that_exceeds_one_by_rounding_is_taken_back_to_one():
    shares = Shares(a=0.5, b=0.5 + 1e-13)
    assert shares.a == 0.5 / math.fsum([0.5, 0.5 + 1e-13])
    assert math.fsum(shares.to_dict().values()) <= 1.0


def test_a_hundredth_more_is_set_aside_where_the_lattice_matters_more():
    event = GaussianEvent(name="sums", diameter=1e6, sigma=1e6, dimension=1)
    aside = 1.01 * lattice_delta(lattice_slack(1e6, 1), gdp_epsilon(1.0, 1e-6))
    assert profile_of([event]).epsilon_at(1e-6) == gdp_epsilon(1.0, 1e-6 - aside)


def test_a_claim_counts_as_its_worst_mechanism():
    assert profile_of([ClaimedEvent(name="claim", epsilon=1.0, delta=0.0)]).rho == 0.5
    risky = ClaimedEvent(name="claim", epsilon=1.0, delta=0.6)
    assert profile_of([risky]).delta_at(0.0) == pytest.approx(0.6 + 0.4 * math.tanh(0.5))
    assert profile_of([risky, risky]).delta == 1.0


def test_an_event_of_no_kind_is_refused():
    with pytest.raises(InvalidInput, match="kind None"):
        event_from_dict({"name": "sum"})


@pytest.mark.parametrize("wrong", [{"diameter": -1.0}, {"scale": 0.0}, {"dimension": True}, {"dimension": 2.5}])
def test_an_event_that_states_no_real_cost_is_refused(wrong):
    facts = {"name": "sum", "diameter": 1.0, "scale": 2.0, "dimension": 1}
    with pytest.raises(InvalidInput, match="must be a positive"):
        LaplaceEvent(**{**facts, **wrong})


def test_composed_losses_allow_for_the_rounding_of_each_part():
    def laplace(at):
        return np.maximum(0.0, -np.expm1((at - 1.0) / 2.0))

    ideal, reach = loss_distributions.composed([(laplace, 1.0), (laplace, 1.0)])
    assert reach == 2.0
    # Nothing is lost beyond the reach, so that only the allowance is left.
    assert ideal(np.array([reach]))[0] == pytest.approx(2 * loss_distributions._FOURIER, rel=1e-3, abs=0.0)
    assert 0.0 < ideal(np.array([1.0]))[0] < ideal(np.array([0.0]))[0] < 1.0


def test_a_profile_that_rounding_carries_beyond_one_is_held_at_one():
    def certain(at):
        return np.ones_like(at)

    def beyond(at):
        return np.ones_like(at) * 1.5

    at = np.array([0.0, 1.0, 2.0])
    held, over = (loss_distributions.composed([(part, 1.0), (part, 1.0)])[0] for part in (certain, beyond))
    np.testing.assert_array_equal(held(at), np.ones(3))
    np.testing.assert_array_equal(over(at), np.ones(3))


def test_composed_losses_are_those_of_one_gaussian_of_both():
    def gaussian(mu):
        return lambda at: np.array([accountant.gdp_delta(mu, epsilon) for epsilon in at])

    ideal, _ = loss_distributions.composed([(gaussian(0.3), 3.0), (gaussian(0.4), 3.0)])
    for epsilon in (0.0, 0.5, 1.5):
        exact = accountant.gdp_delta(0.5, epsilon)
        assert exact <= ideal(np.array([epsilon]))[0] <= exact * (1 + 1e-3) + 1e-6


def test_the_lattice_of_laplace_noise_costs_an_eighth_of_the_inverse_square_of_its_scale_and_at_most_one():
    def slack(scale: float, dimension: int) -> float:
        return profile_of([LaplaceEvent(name="sum", diameter=1.0, scale=scale, dimension=dimension)]).slack

    assert (slack(10.0, 3), slack(0.1, 3)) == (3 / 800, 1.0)


def test_so_large_an_epsilon_that_its_exponential_overflows_has_a_lattice_of_infinite_cost():
    assert lattice_delta(1e-18, 699.0) == 1e-18 * (1 + math.exp(699.0))
    assert lattice_delta(1e-18, 700.0) == math.inf
    assert lattice_delta(0.0, 700.0) == 0.0


@pytest.mark.parametrize(("mu", "epsilon"), [(0.01, 0.5), (0.05, 2.5), (1.0, 45.0), (3.0, 140.0), (50.0, 4000.0)])
def test_far_out_the_gaussian_profile_is_bounded_by_both_of_its_bounds(mu, epsilon):
    a = epsilon / mu - mu / 2
    assert a > 40
    density = -a * a / 2 - math.log(2 * math.pi) / 2
    assert accountant._log_gdp_delta(mu, epsilon) == density + math.log(min(mu / (1 + a * a), 1 / a))


def test_noise_without_any_gaussian_part_composes_as_it_is():
    event = LaplaceEvent(name="sum", diameter=1.0, scale=2.0, dimension=1, lattice=False)
    alone = profile_of([event])
    assert alone.ideal is not None
    np.testing.assert_array_equal(alone.ideal(np.array([0.0, 0.25])), -np.expm1((np.array([0.0, 0.25]) - 0.5) / 2))


@pytest.mark.parametrize("delta", [1.0, 1.5, -1e-9, math.nan])
def test_no_epsilon_is_stated_at_a_delta_that_promises_nothing(delta):
    for event in (
        GaussianEvent(name="sum", diameter=1.0, sigma=2.0, dimension=1),
        LaplaceEvent(name="sum", diameter=1.0, scale=2.0, dimension=1),
    ):
        with pytest.raises(InvalidInput, match="delta must lie in"):
            profile_of([event]).epsilon_at(delta)


def test_disjoint_parts_are_bounded_by_the_worst_of_them_in_every_respect():
    gaussian = profile_of([GaussianEvent(name="sum", diameter=3.0, sigma=5.0, dimension=1)])
    laplace = profile_of([LaplaceEvent(name="sum", diameter=1.0, scale=0.5, dimension=3)])
    claims = [profile_of([ClaimedEvent(name="claim", epsilon=e, delta=d)]) for e, d in ((1.0, 1e-3), (1.5, 1e-5))]
    for parts in (claims, claims[::-1], [laplace, gaussian], [gaussian, laplace, *claims], [gaussian, gaussian]):
        found = parallel_profile(parts)
        for each in ("slack", "epsilon", "delta", "rho", "reach"):
            assert getattr(found, each) == max(getattr(part, each) for part in parts), each
        for epsilon in (0.0, 0.7, 1.2, 1.5, 3.0):
            assert found.delta_at(epsilon) >= max(part.delta_at(epsilon) for part in parts)
    assert parallel_profile([gaussian, laplace]).mu is None
    assert parallel_profile([gaussian, gaussian]).mu == gaussian.mu


def test_a_sequence_adds_up_what_each_of_its_events_states():
    events = [
        LaplaceEvent(name="sum", diameter=1.0, scale=4.0, dimension=3),
        LaplaceEvent(name="sum", diameter=1.0, scale=8.0, dimension=2),
    ]
    found, parts = profile_of(events), [profile_of([event]) for event in events]
    for each in ("slack", "epsilon", "delta", "rho"):
        assert getattr(found, each) == math.fsum(getattr(part, each) for part in parts), each
    assert found.mu is None
    two = profile_of([GaussianEvent(name="sum", diameter=each, sigma=10.0, dimension=1) for each in (3.0, 4.0)])
    assert two.mu == pytest.approx(0.5, rel=1e-15)
    assert two.epsilon == math.inf


def test_no_delta_is_larger_than_one_however_coarse_the_lattice():
    coarse = LaplaceEvent(name="sum", diameter=0.01, scale=0.1, dimension=3)
    claimed = ClaimedEvent(name="claim", epsilon=1.0, delta=0.5)
    profile = profile_of([coarse, claimed])
    # Without zCDP nothing but this bound is left.
    assert (profile.slack, profile.rho) == (1.0, math.inf)
    assert profile.delta_at(0.0) == 1.0


def test_gaussian_noise_has_no_epsilon_without_a_delta():
    one = accountant.Profile(ideal=np.zeros_like, reach=1.0, mu=0.5)
    assert one.epsilon_at(0.0) == math.inf
    assert accountant.Profile(ideal=np.zeros_like, reach=1.0, mu=0.0).epsilon_at(0.0) == 0.0
