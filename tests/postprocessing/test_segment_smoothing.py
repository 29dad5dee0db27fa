"""Smoothing of noisy tables: it borrows where it may, and says how unsure it is."""

import numpy as np
import pytest

from discreet.postprocessing import segment_smoothing as smoothing
from discreet.postprocessing.segment_intervals import Own, assisted
from discreet.postprocessing.segment_smoothing import Factor, posterior


def ordered(count):
    return Factor(count, np.arange(count + 1) / count)


def table(effect, sd, seed=0, level=0.0):
    """Means of both arms with errors, and their variances."""
    means = np.column_stack([np.full(len(effect), level), level + effect])
    return means + np.random.default_rng(seed).normal(0, sd, means.shape), np.full(means.shape, sd**2)


def test_exact_tables_are_believed():
    effect = np.array([0.1, -0.3, 0.25, 0.0])
    for factor in (ordered(4), Factor(4)):
        found = posterior((factor,), *table(effect, 1e-5))
        np.testing.assert_allclose(found.mean, effect, atol=1e-3)
        assert np.diag(found.covariance).max() < 1e-6


def test_noise_alone_is_drawn_towards_the_mean():
    found = posterior((Factor(8),), *table(np.full(8, 0.2), 0.1))
    raw = np.diff(table(np.full(8, 0.2), 0.1)[0])[:, 0]
    assert np.std(found.mean) < 0.6 * np.std(raw)
    assert found.mean.mean() == pytest.approx(raw.mean(), abs=0.05)


def test_neighbours_on_a_range_help_more_than_segments_without_order():
    truth = 0.2 * np.sin(np.linspace(-1.5, 1.5, 12))
    errors = {
        name: np.mean([np.mean((posterior((f,), *table(truth, 0.05, s)).mean - truth) ** 2) for s in range(12)])
        for name, f in {"ordered": ordered(12), "not": Factor(12)}.items()
    }
    assert errors["ordered"] < 0.5 * errors["not"]


def test_a_level_that_is_the_same_everywhere_is_learnt_from_all_segments():
    truth = 0.3 * np.sin(np.linspace(-1.5, 1.5, 8))
    joint, apart = [], []
    for seed in range(12):
        means, variances = table(truth, 0.05, seed, level=0.4)
        joint.append(posterior((ordered(8),), means, variances).mean - truth)
        difference, both = np.diff(means), variances.sum(axis=1, keepdims=True)
        apart.append(posterior((ordered(8),), difference, both).mean - truth)
    assert np.mean(np.square(joint)) < 0.9 * np.mean(np.square(apart))


def covered(truth, tables=25):
    """Shares of segments whose 90 % interval holds the truth: the posterior's, and by the segment with the others."""
    held, assisted_held = [], []
    for seed in range(tables):
        means, variances = table(truth, 0.04, seed)
        found = posterior((ordered(len(truth)),), means, variances)
        held.append(np.abs(found.mean - truth) < 1.645 * np.sqrt(np.diag(found.covariance)))
        own = Own(means[:, 1] - means[:, 0], variances.sum(axis=1), *np.zeros((2, len(truth))))
        low, high = assisted(own, found.others_mean, found.others_variance, 0.1)
        assisted_held.append((low <= truth) & (truth <= high))
    return np.mean(held), np.mean(assisted_held)


@pytest.mark.parametrize("truth", [0.2 * np.sin(3 * np.linspace(-1, 1, 8)), np.full(8, 0.1)], ids=["wave", "flat"])
def test_intervals_cover_segments_about_as_often_as_they_say(truth):
    # 25 tables whose eight segments are dependent: allow for them as for 50 independent ones.
    assert min(covered(truth)) > 0.9 - 3 * np.sqrt(0.09 / 50)


def test_a_jump_of_a_few_standard_errors_is_covered_less_often_by_the_posterior_but_not_by_the_segment_itself():
    smoothed, own = covered(0.2 * (np.linspace(-1, 1, 8) > 0.2))
    assert 0.6 < smoothed < 0.8
    assert own > 0.9 - 3 * np.sqrt(0.09 / 200)


def test_crossed_factors_share_what_they_have_in_common():
    truth = np.add.outer(np.linspace(-0.2, 0.2, 6), [0.0, 0.1]).ravel()
    factors = (ordered(6), Factor(2))
    errors, raw = [], []
    for seed in range(10):
        means, variances = table(truth, 0.05, seed)
        found = posterior(factors, means, variances)
        errors.append(found.mean - truth)
        raw.append(np.diff(means)[:, 0] - truth)
    assert found.smooth.shape == (13, 2)
    assert found.rough.shape == (6, 2)
    assert np.mean(np.square(errors)) < 0.6 * np.mean(np.square(raw))


def test_many_factors_are_searched_one_after_the_other():
    factors = (ordered(4), ordered(4), ordered(3), Factor(2))
    truth = np.repeat(np.linspace(-0.2, 0.2, 4), 24)
    found = posterior(factors, *table(truth, 0.05))
    assert np.mean((found.mean - truth) ** 2) < 0.5 * 2 * 0.05**2


def test_one_segment_is_its_own_mean():
    found = posterior((ordered(1),), np.array([[0.1, 0.3]]), np.full((1, 2), 1e-4))
    assert found.mean == pytest.approx([0.2], abs=1e-3)
    assert found.smooth.shape == (3,)


def test_many_factors_may_be_measured_almost_exactly():
    factors = (ordered(4), ordered(3), ordered(3), Factor(2))
    effect = np.random.default_rng(1).normal(0, 0.05, 72)
    found = posterior(factors, *table(effect, 1e-5, level=0.1))
    np.testing.assert_allclose(found.mean, effect, atol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_likelihoods_of_all_sizes_are_those_of_a_normal_distribution(n):
    rng = np.random.default_rng(n)
    white = rng.normal(size=n)
    roots = [rng.normal(size=(n, columns)) for columns in (0, 1, n, n + 1)]
    for root, row in zip(roots, smoothing._likelihoods(roots, white), strict=True):
        matrix = root @ root.T
        for size, found in zip(smoothing.SIZES, row, strict=True):
            covariance = np.eye(n) + size**2 * matrix
            wanted = -0.5 * (white @ np.linalg.solve(covariance, white) + np.linalg.slogdet(covariance)[1])
            assert found == pytest.approx(wanted, rel=1e-9)


def test_products_are_centred_have_a_variance_of_one_and_are_what_their_roots_say():
    factors = (ordered(5), Factor(3))
    for crossed in smoothing._products([factor.kernels(False) for factor in factors]):
        segments = crossed.segments
        np.testing.assert_allclose(segments.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(crossed.root @ crossed.root.T, segments, atol=1e-13)
        if crossed.root.shape[1]:
            assert np.diag(segments).mean() == pytest.approx(1.0)
            assert crossed.across.shape == (11 * 3, 15)
            assert crossed.nodes.shape == (11 * 3,)
        else:
            assert not segments.any()


def test_smooth_products_have_few_columns():
    choices = [ordered(10).kernels(False)] * 2
    columns = [crossed.root.shape[1] for crossed in smoothing._products(choices)]
    assert columns[0] == 0
    assert max(columns[1:4]) <= 10
    assert columns[-1] == pytest.approx(99, abs=1)
