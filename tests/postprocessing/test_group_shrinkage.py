"""Group-wise shrinkage: what it does at its limits, and that its parts are what they say."""

import numpy as np
import pytest

from discreet.postprocessing.group_shrinkage import CoefficientGroup, profile, shrink

RNG = np.random.default_rng(0)


def groups_of(count, width=3, kind="own"):
    """An intercept, then groups of equal width with three shapes."""
    order = np.arange(1.0, width + 1.0)
    shapes = (np.diag(1 / order), np.diag(1 / order**2), np.diag(np.where(order == 1, 1.0, 1e-3)))
    return (
        CoefficientGroup(np.array([0]), "intercept"),
        *(CoefficientGroup(1 + width * k + np.arange(width), kind, shapes) for k in range(count)),
    )


def information(truth, noise, seed=0):
    """Precision and target of a noisy view, features correlated."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(4 * len(truth), len(truth)))
    gram = mix.T @ mix / len(mix)
    root = np.linalg.cholesky(gram)
    return gram / noise**2, gram @ truth / noise**2 + root @ rng.normal(size=len(truth)) / noise


def test_without_noise_nothing_is_shrunk():
    truth = RNG.normal(size=13)
    found = shrink(*information(truth, 1e-6), groups_of(4), scale=1.0, cap=9.0)  # type: ignore[misc]
    np.testing.assert_allclose(found.mean, truth, atol=1e-3)
    assert np.all(found.matters[1:] > 0.99)


def test_pure_noise_is_shrunk_to_almost_nothing():
    rms = []
    for seed in range(20):
        precision, target = information(np.zeros(31), 0.05, seed)
        found = shrink(precision, target, groups_of(10), scale=1.0, cap=9.0)
        plain = np.linalg.solve(precision, target)
        rms.append((np.sum(found.mean[1:] ** 2), np.sum(plain[1:] ** 2)))
    shrunk, unshrunk = np.mean(rms, axis=0)
    assert shrunk < 0.1 * unshrunk


def test_groups_that_matter_stand_out_and_the_others_do_not():
    truth = np.zeros(31)
    truth[4:7] = 1.0, -0.5, 0.25
    found = shrink(*information(truth, 0.03), groups_of(10), scale=1.0, cap=9.0)  # type: ignore[misc]
    assert np.argmax(found.matters[1:]) == 1
    assert found.matters[2] > 0.99
    assert np.median(found.matters[1:]) < 0.3
    np.testing.assert_allclose(found.mean[4:7], truth[4:7], atol=0.15)


def test_chances_are_probabilities_and_are_learned_from_groups_of_a_kind():
    truth = np.zeros(61)
    few = shrink(*information(truth, 0.05), groups_of(20), scale=1.0, cap=9.0).chances["own"]  # type: ignore[misc]
    many = shrink(*information(RNG.normal(size=61), 0.05), groups_of(20), scale=1.0, cap=9.0).chances["own"]  # type: ignore[misc]
    for chances in (few, many):
        assert chances.min() > 0
        assert chances.sum() == pytest.approx(1.0)
    # One half is expected to be zero before anything is seen.
    assert few[0] > 0.6
    assert many[0] < 0.2


def test_nothing_seen_leaves_the_prior():
    groups = groups_of(2)
    found = shrink(np.zeros((7, 7)), np.zeros(7), groups, scale=1.0, cap=9.0)
    np.testing.assert_array_equal(found.mean, 0.0)
    assert found.covariance[0, 0] == pytest.approx(9.0)
    assert found.matters[1] == pytest.approx(0.5)
    assert found.covariance[1, 1] > found.covariance[2, 2] > found.covariance[3, 3] > 0


def joint(count):
    """Groups of two models' coefficients: in the first only, or in both (special)."""
    m = 1 + count
    one = np.array([[1.0], [0.0]]), np.array([[0.5, 0.5], [1.0, -1.0]])
    made = [CoefficientGroup(np.array([0, m]), "intercept")]
    made += [CoefficientGroup(np.array([k, m + k]), "own", one, (0.5, 0.5), (False, True)) for k in range(1, m)]
    return tuple(made)


def test_a_joint_group_lends_the_second_model_what_is_seen_of_the_first():
    # The second model is seen poorly; where the first shows nothing, a faint sign in the second is believed less.
    precision = np.diag([1e4] * 3 + [4.0] * 3)
    seen = np.array([0.0, 1.0, 0.0, 0.0, 0.8, 0.8])
    found = shrink(precision, precision @ seen, joint(2), scale=1.0, cap=9.0)
    assert found.mean[4] > 1.5 * found.mean[5] > 0


@pytest.mark.parametrize(("size", "varies"), [(0.0, False), (1.0, True)])
def test_special_shapes_are_weighed_together(size, varies):
    m = 9
    precision = np.diag([400.0] * (2 * m))
    seen = np.zeros(2 * m)
    seen[1:m] = 1.0
    seen[m + 3] = size
    seen += 0.05 * np.random.default_rng(3).normal(size=2 * m)
    apart = shrink(precision, precision @ seen, joint(m - 1), scale=1.0, cap=9.0)
    found = shrink(precision, precision @ seen, joint(m - 1), scale=1.0, cap=9.0, together=True)
    assert apart.any_special == 1.0
    assert (found.any_special > 0.99) if varies else (found.any_special < 0.5)
    if not varies:
        assert np.sum(found.mean[m + 1 :] ** 2) < 0.3 * np.sum(apart.mean[m + 1 :] ** 2)


def test_overwhelming_evidence_does_not_overflow():
    precision = np.diag([1e12] * 6)
    found = shrink(precision, precision @ np.arange(6.0), joint(2), scale=1.0, cap=9.0, together=True)
    np.testing.assert_allclose(found.mean, np.arange(6.0), rtol=1e-6)
    assert found.any_special == 1.0


@pytest.mark.parametrize("noise", [1e-3, 0.1, 10.0])
def test_covariances_are_positive(noise):
    truth = np.zeros(13)
    truth[1:4] = 1.0, 0.5, 0.2
    precision, target = information(truth, noise)
    groups = groups_of(4)
    found = shrink(precision, target, groups, scale=1.0, cap=9.0)
    wide = profile(precision, target, groups, found, scale=1.0, cap=9.0)
    for covariance in (found.covariance, wide):
        np.testing.assert_allclose(covariance, covariance.T, atol=1e-12 * np.abs(covariance).max())
        assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.abs(covariance).max()


def test_the_profile_is_wider_than_the_posterior_and_covers():
    hits, total, wider = 0, 0, 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = np.zeros(13)
        truth[1:4] = rng.normal(size=3) / np.arange(1, 4)
        truth[0] = rng.normal()
        precision, target = information(truth, 0.3, seed)
        groups = groups_of(4)
        found = shrink(precision, target, groups, scale=1.0, cap=9.0)
        wide = profile(precision, target, groups, found, scale=1.0, cap=9.0)
        hits += np.sum(np.abs(wide @ target - truth)[:4] < 1.645 * np.sqrt(np.diag(wide))[:4])
        total += 4
        wider += np.trace(wide) / np.trace(found.covariance) / 60
    assert wider > 1.2
    assert hits / total > 0.8
