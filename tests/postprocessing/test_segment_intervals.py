"""Intervals of segments: they cover whatever the others say, lean where those help, and know the tails of noise."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from discreet.data.bounds import Bounds
from discreet.postprocessing.segment_intervals import Own, assisted, each_level, quantile, without_own
from discreet.postprocessing.segment_means import OutcomeMoments, Table, arm_means

MANY = 20_000


def own(value, variance=1.0, peaked=0.0, unseen=0.0):
    value = np.atleast_1d(np.asarray(value, dtype=float))
    return Own(value, *(np.full_like(value, part) for part in (variance, peaked, unseen)))


@pytest.mark.parametrize("truth", [-3.0, 0.0, 0.7, 2.0, 8.0])
@pytest.mark.parametrize("sure", [0.01, 0.5, 3.0])
def test_intervals_cover_at_their_level_however_wrong_the_other_segments_are(truth, sure):
    value = np.random.default_rng(0).normal(truth, 1.0, MANY)
    low, high = assisted(own(value), np.zeros(MANY), np.full(MANY, sure**2), 0.05)
    # Four standard errors of a share.
    assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / MANY))


def test_other_segments_that_are_right_make_intervals_narrower_and_ignorant_ones_leave_them_alone():
    value = np.random.default_rng(1).normal(0.0, 1.0, MANY)
    plain = 2 * norm.isf(0.025)
    low, high = assisted(own(value), np.zeros(MANY), np.full(MANY, 0.04), 0.05)
    assert np.mean(high - low) < 0.9 * plain
    low, high = assisted(own(value), np.zeros(MANY), np.full(MANY, 1e12), 0.05)
    np.testing.assert_allclose(low, value - plain / 2, atol=1e-4)
    np.testing.assert_allclose(high, value + plain / 2, atol=1e-4)


@pytest.mark.parametrize("peaked", [0.0, 0.9])
def test_a_smaller_alpha_gives_an_interval_around_that_of_a_larger_one(peaked):
    rng = np.random.default_rng(2)
    value, mean = rng.normal(0.0, 3.0, (2, 300))
    sure = np.exp(rng.uniform(-6.0, 3.0, 300))
    ends = [assisted(own(value, 1.0, peaked, 0.1), mean, sure, alpha) for alpha in (0.5, 0.1, 0.05, 0.003)]
    for (low, high), (lower, higher) in pairwise(ends):
        assert np.all(lower < low)
        assert np.all(high < higher)


def test_quantiles_are_normal_without_laplace_noise_and_those_of_laplace_noise_alone():
    assert quantile(own(0.0), 0.05) == pytest.approx(norm.isf(0.025))
    for alpha in (0.3, 0.05, 0.001):
        # A Laplace variable of variance one has the scale 1 / sqrt(2).
        assert quantile(own(0.0, 1.0, 1.0), alpha) == pytest.approx(np.log(1 / alpha) / np.sqrt(2), rel=1e-3)
    rng = np.random.default_rng(3)
    mixed = np.sqrt(0.4) * rng.normal(size=400_000) + rng.laplace(0.0, np.sqrt(0.3), 400_000)
    assert quantile(own(0.0, 1.0, 0.6), 0.05) == pytest.approx(np.quantile(mixed, 0.975), rel=0.02)


def test_independent_intervals_cover_all_at_once_at_the_level_that_is_asked_for():
    assert (1 - each_level(0.05, 8)) ** 8 == pytest.approx(0.95)
    assert each_level(0.05, 1) == pytest.approx(0.05)


def test_a_segment_is_left_out_as_if_it_had_not_been_there():
    rng = np.random.default_rng(4)
    kernels = [np.eye(5) + 0.5, 4 * np.exp(-np.abs(np.subtract.outer(np.arange(5), np.arange(5))) / 3.0)]
    value, variance = rng.normal(0.0, 2.0, 5), rng.uniform(0.5, 2.0, 5)

    def of(kernel, kept, at):
        total = kernel[np.ix_(kept, kept)] + np.diag(variance[kept])
        gain = kernel[np.ix_(at, kept)] @ np.linalg.inv(total)
        density = -0.5 * (value[kept] @ np.linalg.solve(total, value[kept]) + np.linalg.slogdet(total)[1])
        return gain @ value[kept], np.diag(kernel[np.ix_(at, at)] - gain @ kernel[np.ix_(kept, at)]), density

    every = np.arange(5)
    means, variances, evidence = (np.array(part) for part in zip(*(of(k, every, every) for k in kernels), strict=True))
    mean, spread = without_own(value, variance, means, variances, evidence)
    for k in every:
        found = [of(kernel, np.delete(every, k), np.array([k])) for kernel in kernels]
        weight = np.exp(np.array([each[2] for each in found]) - found[0][2])
        weight /= weight.sum()
        wanted = sum(w * each[0][0] for w, each in zip(weight, found, strict=True))
        second = sum(w * (each[1][0] + each[0][0] ** 2) for w, each in zip(weight, found, strict=True))
        assert mean[k] == pytest.approx(wanted)
        assert spread[k] == pytest.approx(second - wanted**2)


def test_a_segment_with_more_events_has_more_variance_and_none_that_was_seen_is_not_none():
    counts, events = np.full((3, 2), 1_000.0), np.array([[0.0, 0.0], [10.0, 10.0], [200.0, 200.0]])
    table = Table(counts, 2 * events - counts, 1e-6, 1e-6)
    mean = float(table.sums.sum() / counts.sum())
    moments = OutcomeMoments(6_000.0, mean, 1.0, 1e-6)
    found = arm_means(table, moments, Bounds(outcome=(0, 1)), weighted=False, pure=False).own
    share = events[:, 0] / 1_000
    # In units of half the range, a mean of events has four times the variance of their share; two arms, twice that.
    np.testing.assert_allclose(found.variance, 8 * share * (1 - share) / 1_000, atol=1e-9)
    np.testing.assert_allclose(found.unseen[0], 8 / 1_000**2, rtol=1e-6)


def test_laplace_noise_is_known_by_its_kurtosis():
    table = Table(np.full((1, 2), 1_000.0), np.full((1, 2), -1_000.0), 10.0, 10.0)
    given = table, OutcomeMoments(2_000.0, -1.0, 1.0, 1e-6), Bounds(outcome=(0, 1))
    assert arm_means(*given, weighted=False, pure=False).own.peaked == 0.0
    # With all outcomes at one end, one number of each pair moves the mean: two Laplace variables of equal variance.
    each = (2 * 10.0 / np.sqrt(2) / 1_000) ** 2
    assert arm_means(*given, weighted=False, pure=True).own.peaked == pytest.approx(each * np.sqrt(2))
