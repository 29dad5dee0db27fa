import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import fftconvolve

from discreet.exceptions import InvalidInput
from discreet.privacy import loss_distributions
from discreet.privacy.accountant import (
    SLACK,
    calibrate_mu,
    gdp_delta,
    gdp_epsilon,
    lattice_slack,
    parallel_profile,
    profile_of,
    sequential_profile,
)
from discreet.privacy.budget import ClaimedEvent, GaussianEvent, LaplaceEvent, ParallelEvent, event_from_dict

GRID = 2.0**50
EPSILONS = [0.0, 0.1, 0.5, 1.0, 2.0]
DELTAS = [1e-7, 1e-4]


def gaussian(mu, *, dimension=1):
    return GaussianEvent(name="sums", diameter=mu * GRID, sigma=GRID, dimension=dimension)


def laplace(epsilon, *, dimension=1):
    return LaplaceEvent(name="counts", diameter=epsilon * GRID, scale=GRID, dimension=dimension)


def claimed(epsilon, delta=0.0):
    return ClaimedEvent(name="paper", epsilon=epsilon, delta=delta)


def parallel(*parts):
    return ParallelEvent(name="folds", parts=parts)


def theirs(events):
    """What dp-accounting says, with its own events."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    def one(event):
        if isinstance(event, GaussianEvent):
            return pld.from_gaussian_mechanism(1 / event.mu)
        if isinstance(event, LaplaceEvent):
            return pld.from_laplace_mechanism(1 / event.epsilon)
        return pld.from_privacy_parameters(common.DifferentialPrivacyParameters(event.epsilon, event.delta))

    first, *rest = map(one, events)
    for other in rest:
        first = first.compose(other)
    return first


MIXTURES = {
    "one Gaussian": [gaussian(0.2681)],
    "three Gaussians": [gaussian(0.1), gaussian(0.5), gaussian(0.9)],
    "one Laplace": [laplace(0.7)],
    "two Laplaces": [laplace(0.3), laplace(0.7)],
    "ten Laplaces": [laplace(0.1 + 0.01 * i) for i in range(10)],
    "Gaussian and Laplace": [gaussian(0.2681), laplace(0.5)],
    "Gaussians and Laplaces": [gaussian(0.1), laplace(0.2), gaussian(0.3), laplace(0.2)],
    "Gaussian and claim": [gaussian(0.3), claimed(0.5, 1e-6)],
    "two claims": [claimed(0.5, 1e-6), claimed(0.25, 1e-7)],
    "all three": [claimed(0.25, 1e-6), laplace(0.3), gaussian(0.25)],
}


@pytest.mark.parametrize("events", MIXTURES.values(), ids=MIXTURES.keys())
def test_profiles_agree_with_dp_accounting(events):
    profile, reference = profile_of(events), theirs(events)
    for epsilon in EPSILONS:
        assert profile.delta_at(epsilon) == pytest.approx(reference.get_delta_for_epsilon(epsilon), abs=1e-6)
    for delta in DELTAS:
        reference_epsilon = reference.get_epsilon_for_delta(delta)
        if math.isinf(reference_epsilon):
            assert profile.epsilon_at(delta) == math.inf
        else:
            assert profile.epsilon_at(delta) == pytest.approx(reference_epsilon, rel=1e-6)


def test_the_epsilon_for_a_delta_keeps_that_delta():
    for events in MIXTURES.values():
        profile = profile_of(events)
        for delta in DELTAS:
            epsilon = profile.epsilon_at(delta)
            assert epsilon == math.inf or profile.delta_at(epsilon) <= delta * (1 + 1e-9)


def exact_delta(pairs, epsilon):
    """Hockey-stick divergence between two products of discrete distributions, summed outcome by outcome."""
    p, q = (np.multiply.outer(*side) if len(pairs) == 2 else side[0] for side in zip(*pairs, strict=True))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def discrete(kind, scale, shift):
    k = np.arange(-40 * scale, 40 * scale + 1)
    logs = [-((k - s) ** 2) / (2 * scale**2) if kind == "gaussian" else -np.abs(k - s) / scale for s in (0, shift)]
    # Cut where the other side's mass would be cut too: both sums are then over the same outcomes.
    return tuple(np.exp(log) / np.exp(log).sum() for log in logs)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize(("scale", "shift"), [(3, 1), (10, 8), (20, 25)])
def test_profiles_bound_the_exact_divergence_of_discrete_noise(scale, shift, epsilon):
    normal = GaussianEvent(name="sums", diameter=shift, sigma=scale, dimension=1)
    double = LaplaceEvent(name="counts", diameter=shift, scale=scale, dimension=1)
    assert exact_delta([discrete("gaussian", scale, shift)], epsilon) <= profile_of([normal]).delta_at(epsilon)
    assert exact_delta([discrete("laplace", scale, shift)], epsilon) <= profile_of([double]).delta_at(epsilon) + 1e-15
    both = exact_delta([discrete("gaussian", scale, shift), discrete("laplace", scale, shift)], epsilon)
    assert both <= profile_of([normal, double]).delta_at(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shifts", [(10, 10), (16, 4), (19, 1)])
def test_a_laplace_vector_is_worst_when_one_coordinate_moves_alone(shifts, epsilon):
    event = LaplaceEvent(name="counts", diameter=20, scale=20, dimension=2)
    spread = exact_delta([discrete("laplace", 20, shift) for shift in shifts], epsilon)
    assert spread <= profile_of([event]).delta_at(epsilon) + 1e-15


def test_fourier_transforms_are_off_by_less_than_is_set_aside():
    # Two atoms each, as claims have them, are the worst case: nothing averages out.
    p, q = np.zeros(99_999), np.zeros(33_333)
    p[[0, -1]], q[[0, -1]] = (0.4, 0.6), (0.45, 0.55)
    exact = np.zeros(p.size + q.size - 1)
    for i, j in [(0, 0), (0, -1), (-1, 0), (-1, -1)]:
        exact[(i % p.size) + (j % q.size)] += p[i] * q[j]
    assert np.abs(fftconvolve(p, q) - exact).sum() < loss_distributions._FOURIER


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=6), st.floats(0, 5))
def test_gaussians_add_up_in_squares(mus, epsilon):
    profile = profile_of([gaussian(mu) for mu in mus])
    together = math.sqrt(sum(mu**2 for mu in mus))
    assert profile.delta_at(epsilon) == pytest.approx(gdp_delta(together, epsilon), rel=1e-9)
    assert profile.epsilon_at(1e-6) == pytest.approx(gdp_epsilon(together, 1e-6), rel=1e-6)


@given(
    st.floats(-2, 4).map(lambda exponent: 10**exponent),
    st.floats(-30, -1).map(lambda exponent: 10**exponent),
    st.floats(30, 60).map(lambda exponent: 2**exponent),
    st.lists(st.floats(0.01, 1), min_size=1, max_size=5),
)
@settings(max_examples=60)
def test_calibrated_rounds_never_spend_more_than_was_asked(epsilon, delta, diameter, weights):
    mu = calibrate_mu(epsilon, delta)
    total = sum(weights)
    sigmas = [diameter / (mu * math.sqrt(weight / total)) for weight in weights]
    # The gate refuses grids so coarse that the lattice would cost more than was set aside.
    coarse = max(1.0, math.sqrt(len(weights) / SLACK) / min(sigmas))
    events = [
        GaussianEvent(name="round", diameter=diameter * coarse, sigma=sigma * coarse, dimension=3) for sigma in sigmas
    ]
    assert sum(lattice_slack(event.sigma, event.dimension) for event in events) <= SLACK
    profile = profile_of(events)
    assert profile.delta_at(epsilon) <= delta
    assert profile.epsilon_at(delta) <= epsilon


def test_the_lattice_costs_delta_and_zcdp_takes_over_where_it_would_cost_too_much():
    rough = GaussianEvent(name="sums", diameter=2.0**24, sigma=2.0**24, dimension=100)
    smooth = GaussianEvent(name="sums", diameter=2.0**24, sigma=2.0**24, dimension=100, lattice=False)
    slack = lattice_slack(2.0**24, 100)
    for epsilon in [0.5, 3.0]:
        cost = profile_of([rough]).delta_at(epsilon) - profile_of([smooth]).delta_at(epsilon)
        assert cost == pytest.approx((1 + math.exp(epsilon)) * slack, rel=1e-2)
    assert profile_of([rough]).delta_at(30.0) < 1e-150
    assert profile_of([rough]).delta_at(1000.0) < 1e-300
    assert profile_of([rough]).epsilon_at(1e-30) < 13


def test_laplace_events_are_pure_and_their_epsilons_add_up():
    profile = profile_of([laplace(0.1), laplace(0.2), laplace(0.4)])
    assert profile.epsilon_at(0.0) == pytest.approx(0.7, rel=1e-15)
    assert profile.delta_at(0.7 * (1 + 1e-15)) == 0.0
    assert profile.epsilon_at(1e-3) < 0.7
    assert profile_of([laplace(0.5), gaussian(0.1)]).epsilon_at(0.0) == math.inf


def test_claims_add_up_at_worst():
    profile = profile_of([claimed(0.5, 1e-6), claimed(1.0, 1e-7)])
    assert profile.delta_at(1.5) == pytest.approx(1.1e-6)
    assert profile.epsilon_at(1.1e-6) <= 1.5
    assert profile.epsilon_at(1e-6) == math.inf


def test_no_events_spend_nothing():
    assert profile_of([]).delta_at(0.0) == 0.0
    assert profile_of([]).epsilon_at(0.0) == 0.0


def test_disjoint_gaussian_parts_cost_the_largest_mu_alone_and_in_sequence():
    folds = parallel([gaussian(0.3), gaussian(0.4)], [gaussian(0.2)])
    for epsilon in EPSILONS:
        assert profile_of([folds]).delta_at(epsilon) == pytest.approx(gdp_delta(0.5, epsilon), rel=1e-12)
        assert profile_of([folds, gaussian(1.2)]).delta_at(epsilon) == pytest.approx(gdp_delta(1.3, epsilon), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_disjoint_parts_of_different_kinds_cost_the_larger_delta_at_every_epsilon(epsilon):
    parts = [[gaussian(0.4)], [laplace(0.9)], [gaussian(0.1), claimed(0.2, 1e-4)]]
    apart = [profile_of(part).delta_at(epsilon) for part in parts]
    assert profile_of([parallel(*parts)]).delta_at(epsilon) == pytest.approx(max(apart), abs=1e-12)
    assert parallel_profile([profile_of(part) for part in parts]).delta_at(epsilon) == pytest.approx(
        max(apart), abs=1e-12
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_sequence_with_disjoint_parts_costs_between_its_worst_part_and_all_of_them(epsilon):
    folds = parallel([gaussian(0.4)], [laplace(0.9)])
    mixed = profile_of([folds, laplace(0.3)]).delta_at(epsilon)
    each = [profile_of([part, laplace(0.3)]).delta_at(epsilon) for part in (gaussian(0.4), laplace(0.9))]
    everything = profile_of([gaussian(0.4), laplace(0.9), laplace(0.3)]).delta_at(epsilon)
    assert max(each) - 1e-9 <= mixed <= everything + 1e-9


def test_identical_disjoint_parts_cost_as_much_as_one_of_them():
    part = [laplace(0.5), gaussian(0.2)]
    once = profile_of([*part, laplace(0.1)])
    folded = profile_of([parallel(part, part, part), laplace(0.1)])
    for epsilon in EPSILONS:
        assert folded.delta_at(epsilon) == pytest.approx(once.delta_at(epsilon), abs=1e-8)


def test_profiles_compose_in_sequence_like_their_events():
    events = [gaussian(0.3), laplace(0.4)]
    composed = sequential_profile([profile_of([event]) for event in events])
    assert composed.delta_at(0.5) == pytest.approx(profile_of(events).delta_at(0.5), rel=1e-12)


def test_questions_that_make_no_sense_are_refused():
    profile = profile_of([gaussian(1.0)])
    with pytest.raises(InvalidInput, match="epsilon must not be negative"):
        profile.delta_at(-0.1)
    with pytest.raises(InvalidInput, match="epsilon must not be negative"):
        profile.delta_at(math.nan)
    with pytest.raises(InvalidInput, match="delta must lie"):
        profile.epsilon_at(1.0)
    with pytest.raises(InvalidInput, match="at least one profile"):
        parallel_profile([])


@pytest.mark.parametrize(
    "event", [gaussian(0.5, dimension=7), laplace(0.5), claimed(1.0, 1e-5), parallel((gaussian(1.0),), (laplace(1.0),))]
)
def test_events_survive_json_and_are_frozen(event):
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    with pytest.raises(FrozenInstanceError, match="name"):
        event.name = "other"


@pytest.mark.parametrize("field", ["diameter", "sigma"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_an_event_without_a_real_cost_is_refused(field, value):
    numbers = {"diameter": 1.0, "sigma": 1.0} | {field: value}
    with pytest.raises(InvalidInput, match=field):
        GaussianEvent(name="sums", dimension=1, **numbers)


def test_events_that_make_no_sense_are_refused():
    with pytest.raises(InvalidInput, match="scale"):
        LaplaceEvent(name="counts", diameter=1.0, scale=0.0, dimension=1)
    with pytest.raises(InvalidInput, match="dimension"):
        GaussianEvent(name="sums", diameter=1.0, sigma=1.0, dimension=0)
    with pytest.raises(InvalidInput, match="needs a name"):
        GaussianEvent(name="", diameter=1.0, sigma=1.0, dimension=1)
    with pytest.raises(InvalidInput, match="delta"):
        claimed(1.0, 1.0)
    with pytest.raises(InvalidInput, match="at least one event"):
        parallel((), (gaussian(1.0),))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"kind": "staircase"}, "kind 'staircase'"), ({"kind": None}, "kind"), ({"extra": 1}, "exactly the fields")],
)
def test_events_of_an_unknown_kind_or_shape_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        event_from_dict(gaussian(1.0).to_dict() | change)
