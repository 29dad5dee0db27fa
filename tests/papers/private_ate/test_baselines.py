"""Intervals to compare with, and the private difference of means by subsample and aggregate."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from discreet import Bounds, Budget, DifferenceInMeans
from discreet.datasets import private_ci_rct
from discreet.exceptions import InvalidInput, MissingBounds
from discreet.papers.common.arrays import Rows
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.private_ate import baselines
from discreet.papers.private_ate.baselines import SubsampledDifference, group_differences
from discreet.papers.private_ate.equations import Exact
from discreet.privacy.accountant import gdp_mu
from discreet.testing import frozen_noise, record_sums, seeded_noise

EXACT = Exact(n=400, tau=1.5, sigma2=4.0, gamma=3.0)
Z95 = NormalDist().inv_cdf(0.975)


def half_width(interval):
    return (interval.high - interval.low) / 2


def centre(interval):
    return (interval.high + interval.low) / 2


def test_the_standard_interval_by_hand():
    interval = baselines.standard(EXACT, 0.05)
    assert centre(interval) == pytest.approx(1.5)
    assert half_width(interval) == pytest.approx(Z95 * 2 / 20)


def test_the_naive_interval_is_as_wide_around_another_centre():
    interval = baselines.naive(EXACT, 7.0, 0.05)
    assert centre(interval) == pytest.approx(7.0)
    assert half_width(interval) == pytest.approx(half_width(baselines.standard(EXACT, 0.05)))


def test_the_valid_naive_interval_adds_the_noise_of_theorem_4_3():
    epsilon, delta, n = 0.5, 1e-5, 400
    r = 3.0 * 5 * math.sqrt(2 * math.log(n) * math.log(2 / delta)) / (epsilon * n)
    interval = baselines.valid_naive(EXACT, 7.0, epsilon, delta, 0.05)
    assert centre(interval) == pytest.approx(7.0)
    assert half_width(interval) == pytest.approx(Z95 * math.sqrt(4 / 400 + r**2))


def test_the_bootstrap_without_a_budget_agrees_with_the_normal_interval():
    scores = np.random.default_rng(0).normal(2, 3, 2_000)
    interval = baselines.bootstrap(scores, 0.05, replicates=4_000, random_state=1)
    # Percentiles of 4,000 replicates are known to about four per cent of their distance from the centre.
    assert centre(interval) == pytest.approx(scores.mean(), abs=0.01)
    assert half_width(interval) == pytest.approx(Z95 * scores.std() / math.sqrt(2_000), rel=0.05)


def test_each_replicate_spends_its_part_of_the_budget():
    scores = np.zeros(1_000)
    budget = Budget(epsilon=1, delta=1e-5)
    with seeded_noise(2), pytest.warns(UnprovedClaim):
        interval, _ = baselines.private_bootstrap(scores, 0.05, replicates=1_000, gamma=2.0, budget=budget)
    sd = 2 * 5 * math.sqrt(2 * math.log(1_000) * math.log(2 / 1e-8)) / (1e-3 * 1_000)
    assert half_width(interval) == pytest.approx(Z95 * sd, rel=0.15)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, math.nan])
def test_levels_that_make_no_sense_are_refused(alpha):
    for make in (
        lambda: baselines.standard(EXACT, alpha),
        lambda: baselines.bootstrap(np.zeros(10), alpha),
    ):
        with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
            make()


def test_too_few_replicates_and_a_budget_without_delta_are_refused():
    with pytest.raises(InvalidInput, match="replicates must be an integer"):
        baselines.bootstrap(np.zeros(10), 0.05, replicates=1)
    with pytest.raises(InvalidInput, match="budget needs a delta"):
        baselines.private_bootstrap(np.zeros(10), 0.05, gamma=1.0, budget=Budget(epsilon=1))


def test_a_private_bootstrap_is_a_claim_and_says_so():
    with pytest.warns(UnprovedClaim, match="claimed, not proved") as caught:
        _, guarantee = baselines.private_bootstrap(
            np.zeros(50), 0.05, gamma=1.0, replicates=4, budget=Budget(epsilon=0.5, delta=1e-6)
        )
    assert caught[0].filename == __file__
    assert (guarantee.status, guarantee.epsilon, guarantee.delta) == ("claimed", 0.5, 1e-6)
    assert "the gross-error sensitivity" in guarantee.public


# --- subsample and aggregate ----------------------------------------------------------------------------------------

RCT = private_ci_rct(1_000, 3)


def subsampled(**given):
    return SubsampledDifference(**({"epsilon": 0.5, "delta": 1e-5, "bounds": RCT.bounds, "random_state": 0} | given))


def rows(study=RCT):
    return Rows.of(study.Y, study.T, study.X, study.bounds)


def test_differences_of_groups_by_brute_force():
    part = rows()
    found = group_differences(part, 7, random_state=5)
    group = np.random.RandomState(5).permutation(np.arange(1_000) % 7)
    for k in range(7):
        y, t = part.y[group == k], part.t[group == k]
        assert found[k] == pytest.approx(y[t == 1].mean() - y[t == 0].mean())


def test_a_group_without_an_arm_counts_as_no_difference():
    bounds = Bounds(outcome=(0, 1))
    part = Rows.of(np.ones(20), [1] + [0] * 19, None, bounds)
    assert np.all(group_differences(part, 10, random_state=0) == 0)


def test_without_noise_the_estimate_is_the_mean_over_groups():
    with frozen_noise():
        fitted = subsampled().fit(RCT.Y, RCT.T, X=RCT.X)
    assert fitted.ate_ == pytest.approx(2 * group_differences(rows(), 25, 0).mean(), abs=1e-6)
    assert fitted.ate_ == pytest.approx(RCT.Y[RCT.T == 1].mean() - RCT.Y[RCT.T == 0].mean(), abs=0.05)


def test_the_noise_by_hand():
    fitted = subsampled().fit(RCT.Y, RCT.T, X=RCT.X)
    # The outcome has width 4, so differences lie in [-4, 4], and 25 of them are averaged.
    assert fitted.release_.uncertainty.privacy == pytest.approx(8 / gdp_mu(0.5, 1e-5) / 25, rel=1e-4)


def test_the_guarantee_is_proved_and_the_interval_wider_than_that_of_difference_in_means():
    fitted = subsampled().fit(RCT.Y, RCT.T, X=RCT.X)
    assert (fitted.guarantee_.status, fitted.guarantee_.proof) == ("proved", "propensity.md")
    better = DifferenceInMeans(epsilon=0.5, delta=1e-5, bounds=RCT.bounds, propensity=0.5).fit(RCT.Y, RCT.T, X=RCT.X)
    wide, narrow = (high - low for low, high in (fitted.ate_interval(), better.ate_interval()))
    assert wide > 3 * narrow


def test_intervals_cover():
    covered, runs = 0, 200
    with seeded_noise(6):
        for seed in range(runs):
            study = private_ci_rct(400, seed)
            low, high = subsampled(random_state=seed).fit(study.Y, study.T, X=study.X).ate_interval(0.2)
            covered += low <= 1 <= high
    # Three standard errors below nominal, at least.
    assert covered / runs > 0.8 - 3 * math.sqrt(0.16 / runs)


def test_replacing_a_record_moves_the_sums_by_no_more_than_their_diameter():
    rng, most = np.random.default_rng(7), 0.0

    def sums(y, t):
        with frozen_noise(), record_sums() as recorded:
            subsampled(groups=50).fit(y, t, X=RCT.X[:200])
        return recorded[0][2:]

    y, t = RCT.Y[:200], RCT.T[:200]
    before, diameter = sums(y, t)
    for _ in range(100):
        place, other_y, other_t = rng.integers(0, 200), y.copy(), t.copy()
        other_y[place], other_t[place] = rng.choice([-1e9, 1e9, 0.0]), rng.integers(0, 2)
        after, _ = sums(other_y, other_t)
        most = max(most, math.dist([float(v) for v in before], [float(v) for v in after]) / diameter)
    assert 0.2 < most <= 1


@pytest.mark.parametrize("groups", [1, 0, -2, 501, 2.5, True])
def test_numbers_of_groups_that_make_no_sense_are_refused(groups):
    with pytest.raises(InvalidInput, match="groups must be an integer between 2"):
        subsampled(groups=groups).fit(RCT.Y, RCT.T, X=RCT.X)


def test_missing_bounds_are_refused():
    with pytest.raises(MissingBounds, match="SubsampledDifference needs bounds"):
        subsampled(bounds=None).fit(RCT.Y, RCT.T, X=RCT.X)


def test_the_methods_paragraph_says_that_groups_were_summed():
    text = subsampled().fit(RCT.Y, RCT.T, X=RCT.X).release_.methods()
    assert "dealt by lot into 25 groups" in text
    assert "sums over the groups" in text
    assert "All that was computed from the records are sums" not in text
