"""Coefficients of an effect from noisy moments: what information says, and how far it is shrunk at its limits."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.data._arrays import Float
from discreet.postprocessing.coding import Coding
from discreet.postprocessing.effect_shrinkage import (
    Information,
    Shrunk,
    effect_groups,
    guessed_variance,
    level_variance,
    shrink_effect,
    unit_variance,
)
from discreet.postprocessing.kernel_basis import CodedBasis

EVEN = Coding(np.linspace(-1.0, 1.0, 17)[1:-1], np.linspace(-0.94, 0.94, 16), np.full(16, 1 / 16), True)
BASIS = CodedBasis.build((EVEN, EVEN), np.full(2, 0.5), 24)
M = 12
# The constant's own is not used.
UNIT = np.concatenate([[0.0], 1.0 / np.arange(1.0, M) ** 2])
GROUPS = np.array([0, *np.repeat([1, 2, 3], [4, 4, 3])])


def positive(m: int, seed: int) -> Float:
    mix = np.random.default_rng(seed).normal(size=(3 * m, m))
    return np.asarray(mix.T @ mix / (3 * m))


def seen(truth: Float, sd: float, seed: int = 0) -> Information:
    """Noisy moments of correlated features."""
    rng, slope = np.random.default_rng(seed), positive(len(truth), 7)
    return Information.of(slope @ truth + sd * rng.normal(size=len(truth)), sd, slope)


def shrunk(known: Information, level: float = 9.0) -> Shrunk:
    return shrink_effect(known, UNIT, level, GROUPS)


# --- information ----------------------------------------------------------------------------------------------------


def test_moments_say_what_least_squares_says() -> None:
    rng = np.random.default_rng(0)
    slope, value = rng.normal(size=(9, 4)), rng.normal(size=9)
    known = Information.of(value, 0.3, slope)
    np.testing.assert_allclose(np.linalg.solve(known.precision, known.target), np.linalg.lstsq(slope, value)[0])
    np.testing.assert_allclose(np.linalg.inv(known.precision), 0.09 * np.linalg.inv(slope.T @ slope))


def test_information_of_two_rounds_is_that_of_all_moments_at_once() -> None:
    rng = np.random.default_rng(1)
    slope, value = rng.normal(size=(10, 4)), rng.normal(size=10)
    both = Information.of(value[:5], 0.3, slope[:5]) + Information.of(value[5:], 0.3, slope[5:])
    whole = Information.of(value, 0.3, slope)
    np.testing.assert_allclose(both.precision, whole.precision)
    np.testing.assert_allclose(both.target, whole.target)
    nothing = whole + Information.nothing(4)
    np.testing.assert_array_equal(nothing.target, whole.target)


def test_what_counts_from_a_point_is_moved_by_it() -> None:
    rng = np.random.default_rng(2)
    slope, truth, point = rng.normal(size=(8, 4)), rng.normal(size=4), rng.normal(size=4)
    # Moments of what a first function leaves.
    moved = Information.of(slope @ (truth - point), 0.1, slope).around(point)
    np.testing.assert_allclose(np.linalg.solve(moved.precision, moved.target), truth)


def test_sampling_and_noise_add_up() -> None:
    noise, records = 50.0 * positive(5, 1), 20.0 * positive(5, 2)
    target = np.random.default_rng(3).normal(size=5)
    found = Information(noise, target).sampled(records)
    np.testing.assert_allclose(np.linalg.inv(found.precision), np.linalg.inv(noise) + np.linalg.inv(records), rtol=1e-6)
    # The best guess is the same: records are where they are.
    np.testing.assert_allclose(np.linalg.solve(found.precision, found.target), np.linalg.solve(noise, target))
    np.testing.assert_array_equal(found.precision, found.precision.T)


def test_of_what_no_moment_was_asked_nothing_is_known_of_the_population() -> None:
    half = np.diag([5.0, 0.0, 3.0])
    found = Information(half, np.array([1.0, 0.0, 2.0])).sampled(positive(3, 4))
    assert np.abs(found.precision[1]).max() < 1e-12
    assert abs(found.target[1]) < 1e-12


def test_endless_records_change_nothing_and_endless_budgets_leave_their_precision() -> None:
    noise, records = positive(4, 5), positive(4, 6)
    target = np.ones(4)
    np.testing.assert_allclose(Information(noise, target).sampled(1e9 * records).precision, noise, rtol=1e-6)
    np.testing.assert_allclose(Information(1e9 * noise, target).sampled(records).precision, records, rtol=1e-6)


# --- shrinking ------------------------------------------------------------------------------------------------------


def test_nothing_known_leaves_the_prior() -> None:
    found = shrunk(Information.nothing(M))
    np.testing.assert_array_equal(found.mean, 0.0)
    assert found.covariance[0, 0] == pytest.approx(9.0)
    assert np.all(np.diff(np.diag(found.covariance)[1:]) < 0.0)
    # An effect that varies is as likely as one that does not.
    assert found.varies == pytest.approx(0.5)


def test_overwhelming_information_is_believed() -> None:
    truth = np.random.default_rng(4).normal(size=M)
    found = shrunk(seen(truth, 1e-7))
    np.testing.assert_allclose(found.mean, truth, atol=1e-4)
    assert np.abs(found.covariance).max() < 1e-8
    assert found.varies > 1.0 - 1e-9


def test_pure_noise_is_shrunk_to_almost_nothing() -> None:
    small, plain, varies = 0.0, 0.0, []
    for seed in range(20):
        known = seen(np.zeros(M), 0.01, seed)
        found = shrunk(known)
        small += float(np.sum(found.mean[1:] ** 2))
        plain += float(np.sum(np.linalg.solve(known.precision, known.target)[1:] ** 2))
        varies.append(found.varies)
    assert small < 0.02 * plain
    assert np.median(varies) < 0.2


@pytest.mark.parametrize("place", [1, 5, M - 1])
def test_one_strong_coefficient_survives_among_many(place: int) -> None:
    truth = np.zeros(M)
    truth[place] = 0.5
    found = shrunk(seen(truth, 0.01))
    assert found.mean[place] == pytest.approx(0.5, abs=0.05)
    assert np.delete(np.abs(found.mean), [0, place]).max() < 0.05


@pytest.mark.parametrize("place", [1, 5, M - 1])
def test_an_effect_varies_where_one_coefficient_is_clear_of_its_noise(place: int) -> None:
    truth = np.zeros(M)
    truth[place] = 0.5
    assert shrunk(seen(truth, 0.01)).varies > 0.95


def test_signs_do_not_matter() -> None:
    known = seen(np.random.default_rng(5).normal(size=M) * UNIT, 0.05)
    one, other = (shrunk(each) for each in (known, Information(known.precision, -known.target)))
    np.testing.assert_allclose(one.mean, -other.mean, atol=1e-12)
    np.testing.assert_allclose(one.covariance, other.covariance, atol=1e-12)
    assert one.varies == pytest.approx(other.varies)
    # Nor does the sign of one feature.
    flip = np.where(np.arange(M) == 3, -1.0, 1.0)
    turned = shrunk(Information(known.precision * np.outer(flip, flip), known.target * flip))
    np.testing.assert_allclose(turned.mean, flip * one.mean, atol=1e-12)


@pytest.mark.parametrize("level", [-2.0, 3.0])
def test_the_constant_is_not_shrunk_where_the_rest_is(level: float) -> None:
    # Independent moments: what the others do does not reach it.
    known = Information.of(np.array([level, *([0.01] * (M - 1))]), 0.1, np.eye(M))
    found = shrunk(known, 1e4)
    assert found.mean[0] == pytest.approx(level, rel=1e-5)
    assert np.abs(found.mean[1:]).max() < 0.002
    assert found.covariance[0, 0] == pytest.approx(0.01, rel=1e-5)
    # Its size says nothing of whether the effect varies.
    same = shrunk(Information(known.precision, known.target * (np.arange(M) > 0)), 1e4)
    assert found.varies == pytest.approx(same.varies)


@pytest.mark.parametrize("sd", [1e-4, 0.05, 10.0])
def test_covariances_are_symmetric_and_positive(sd: float) -> None:
    truth = np.zeros(M)
    truth[:4] = 1.0, 0.5, -0.2, 0.1
    covariance = shrunk(seen(truth, sd)).covariance
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-12 * np.abs(covariance).max())
    assert np.linalg.eigvalsh(covariance).min() > -1e-12


def test_shrinking_errs_less_than_least_squares_and_than_no_effect() -> None:
    errors = np.zeros(3)
    for seed in range(40):
        truth = np.sqrt(0.05 * UNIT) * np.random.default_rng(seed).standard_t(3, M)
        known = seen(truth, 0.05, seed)
        guesses = shrunk(known).mean, np.linalg.solve(known.precision, known.target), np.zeros(M)
        errors += [np.sum((guess - truth)[1:] ** 2) for guess in guesses]
    assert errors[0] < 0.7 * errors[1:].min()


def test_a_faint_coefficient_is_believed_sooner_where_others_of_its_group_are_large() -> None:
    value = np.zeros(M)
    value[[1, 2, 3]] = 0.5
    value[[4, 8]] = 0.05
    found = shrunk(Information.of(value, 0.05, np.eye(M)))
    # Of the fourth function of either covariate; prior variances fall with the number.
    assert found.mean[4] > 2.0 * found.mean[8] > 0.0
    alone = shrink_effect(Information.of(value, 0.05, np.eye(M)), UNIT, 9.0, np.arange(M))
    assert found.mean[4] / found.mean[8] > alone.mean[4] / alone.mean[8]


def test_groups_are_shrunk_alike_wherever_they_stand() -> None:
    unit, groups = unit_variance(BASIS), effect_groups(BASIS)
    first, last = (BASIS.members.index(((j, 0),)) for j in (0, 1))
    value = np.zeros(BASIS.m)
    value[[first, last]] = 0.15
    found = shrink_effect(Information.of(value, 0.1, np.eye(BASIS.m)), unit, 9.0, groups)
    assert found.mean[first] == pytest.approx(found.mean[last])


def test_covariates_have_groups_of_their_own_and_so_have_products_and_the_constant() -> None:
    basis = CodedBasis.build((EVEN, EVEN, EVEN), np.full(3, 1 / 3), 90)
    groups = effect_groups(basis)
    kinds = [(len(member), member[0][0] if len(member) == 1 else None) for member in basis.members]
    assert {0, 1, 2, 3} == {size for size, _ in kinds}
    for one, kind in zip(groups, kinds, strict=True):
        assert [kinds[k] for k in np.flatnonzero(groups == one)] == [kind] * kinds.count(kind)


# --- prior variances ------------------------------------------------------------------------------------------------


def test_prior_variances_are_those_of_the_models_less_for_joint_effects_and_none_of_the_constant() -> None:
    unit = unit_variance(BASIS)
    # Of features without their weights.
    plain = unit * BASIS.weight**2 / BASIS.variance
    sizes = np.array([len(member) for member in BASIS.members])
    assert unit[0] == 0.0
    np.testing.assert_allclose(plain[sizes == 1], 1.0)
    assert np.all(plain[sizes > 1] == pytest.approx(plain[sizes > 1][0]))
    assert 0.0 < plain[sizes > 1][0] < 1.0
    assert {1, 2} <= set(sizes)


def test_prior_variances_grow_with_the_square_of_the_outcomes_scale() -> None:
    np.testing.assert_allclose(guessed_variance(BASIS, 0.3), 9.0 * guessed_variance(BASIS, 0.1))
    assert guessed_variance(BASIS, 0.3)[0] == level_variance(BASIS, 0.3)
    assert np.all(guessed_variance(BASIS, 0.3)[1:] < level_variance(BASIS, 0.3))
