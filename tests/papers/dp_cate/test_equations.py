"""DP-CATE's equations against the paper's own formulas, and the searches for a supremum against grids."""

import math

import numpy as np
import pytest
from sklearn.utils import check_random_state

from discreet import Bounds, InvalidInput
from discreet.papers.common.influence import dense, noise_factor, random_points, searched
from discreet.papers.dp_cate.equations import (
    DR_LEARNER,
    R_LEARNER,
    Residual,
    Weight,
    check_weight,
    extent,
    rho,
    weight_of,
    weighted_pseudo_outcome,
)
from discreet.papers.dp_cate.kernel_stage import noise_scale
from discreet.papers.dp_cate.pointwise import closed_sensitivity

BOUNDS = Bounds(outcome=(-1, 3), covariates=[(0, 1), (0, 1)], propensity=(0.1, 0.8))
GENERAL = Weight("R", lambda pi: pi * (1 - pi), lambda pi: 1 - 2 * pi)
SQUARE = Weight("squared overlap", lambda pi: (pi * (1 - pi)) ** 2, lambda pi: 2 * pi * (1 - pi) * (1 - 2 * pi))


class Smooth:
    """Nuisances that are known, and that nobody fitted."""

    def parts(self, x):
        pi = np.clip(0.45 + 0.3 * x[:, 0], 0.1, 0.8)
        return pi, np.sin(x[:, 1]), 1.0 + x[:, 0] * x[:, 1]

    def __call__(self, x):
        pi, mu0, mu1 = self.parts(x)
        return pi, (1 - pi) * mu1 + pi * mu0


def records(count=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (count, 2))
    return rng.uniform(-1, 3, count), rng.integers(0, 2, count) * 1.0, x


def test_the_r_learners_influence_is_that_of_lemma_5():
    y, a, x = records()
    pi, mu0, mu1 = Smooth().parts(x)
    g = x.sum(axis=1)
    mine = Residual(Smooth(), R_LEARNER, lambda z: z.sum(axis=1))(y, a, x)
    mu_a = np.where(a > 0, mu1, mu0)
    theirs = (a - pi) * (y - mu_a + (a - pi) * (mu1 - mu0 - g))  # (30), times the mean of lambda
    np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_the_dr_learners_influence_is_that_of_lemma_5():
    y, a, x = records()
    pi, mu0, mu1 = Smooth().parts(x)
    mine = Residual(Smooth(), DR_LEARNER, lambda z: z.sum(axis=1))(y, a, x)
    theirs = (a - pi) / (pi * (1 - pi)) * (y - np.where(a > 0, mu1, mu0)) + mu1 - mu0 - x.sum(axis=1)  # (29)
    np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_a_weight_function_given_by_hand_is_the_learner_of_the_same_name():
    y, a, x = records()
    parts = Smooth().parts(x)
    np.testing.assert_allclose(rho(a, parts[0], GENERAL), rho(a, parts[0], R_LEARNER), atol=1e-12)
    np.testing.assert_allclose(
        weighted_pseudo_outcome(y, a, parts, GENERAL), weighted_pseudo_outcome(y, a, parts, R_LEARNER), atol=1e-12
    )
    assert extent(GENERAL, BOUNDS) == pytest.approx(extent(R_LEARNER, BOUNDS))
    assert weight_of(GENERAL) is GENERAL


@pytest.mark.parametrize("weight", [R_LEARNER, DR_LEARNER, SQUARE])
def test_no_record_exceeds_the_extent_and_some_come_close(weight):
    rng = np.random.default_rng(1)
    count = 20_000
    pi = rng.choice([0.1, 0.8, *np.linspace(0.1, 0.8, 9)], count)
    ends = rng.choice([-1.0, 3.0], (3, count))
    a = rng.integers(0, 2, count) * 1.0
    reach = extent(weight, BOUNDS)
    largest = np.abs(weighted_pseudo_outcome(ends[0], a, (pi, ends[1], ends[2]), weight)).max()
    assert 0.95 * reach.pseudo * 4 <= largest <= reach.pseudo * 4 * (1 + 1e-12)
    assert rho(a, pi, weight).max() <= reach.rho * (1 + 1e-12)


def test_extents_of_the_two_learners_by_hand():
    r, dr = extent(R_LEARNER, BOUNDS), extent(DR_LEARNER, BOUNDS)
    assert r == pytest.approx((0.9, 0.81, 0.09))
    assert dr == pytest.approx((10.0, 1.0, 1.0))
    assert extent(DR_LEARNER, BOUNDS, 0.5) == pytest.approx((2.0, 1.0, 1.0))
    assert closed_sensitivity(r, 4.0, True) == pytest.approx((0.9 + 0.81) * 4 / 0.09)
    assert closed_sensitivity(dr, 4.0, True) == pytest.approx(44.0)


def test_the_noise_of_theorem_2_by_hand():
    # 4 L sqrt(2 log(2 / delta)) / ((sqrt(2 pi) h)^q lambda n epsilon), with h = 1 / sqrt(2 pi) the power is 1.
    expected = 4 * 3.0 * math.sqrt(2 * math.log(2e5)) / (0.5 * 100 * 2.0)
    assert noise_scale(3.0, 1 / math.sqrt(2 * math.pi), 7, 0.5, 100, 2.0, 1e-5) == pytest.approx(expected)
    assert noise_scale(3.0, 1.0, 2, 0.5, 100, 2.0, 1e-5) == pytest.approx(expected / (2 * math.pi))
    assert noise_factor(1_000, 0.5, 1e-5) == pytest.approx(0.1298588, rel=1e-6)


@pytest.mark.parametrize("weight", [R_LEARNER, DR_LEARNER])
def test_searches_find_the_supremum_of_a_smooth_influence(weight):
    residual = Residual(Smooth(), weight, lambda z: z.sum(axis=1))
    line = np.linspace(-1, 1, 81)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    best = max(
        np.abs(residual(np.full(len(grid), y), np.full(len(grid), a), grid)).max() for y in (-1.0, 3.0) for a in (0, 1)
    )
    assert searched(residual, BOUNDS, starts=10, rng=check_random_state(0)) == pytest.approx(best, rel=1e-3)
    assert dense(residual, BOUNDS, points=20_000, rng=check_random_state(0)) == pytest.approx(best, rel=0.02)


def test_random_points_fill_ranges_and_levels():
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 9), ["a", "b", "c"]])
    points = random_points(bounds, 500, check_random_state(0))
    assert set(points[:, 1]) == {0.0, 1.0, 2.0}
    assert -1 <= points[:, 0].min() < -0.9
    assert 0.9 < points[:, 0].max() <= 1


def test_weight_functions_that_make_no_sense_are_refused():
    with pytest.raises(InvalidInput, match="'R', 'DR' or a Weight"):
        weight_of("X")
    with pytest.raises(InvalidInput, match="weight below zero"):
        check_weight(Weight("steep", lambda pi: pi**4, lambda pi: 4 * pi**3), BOUNDS, None)
    with pytest.raises(InvalidInput, match="one finite number"):
        check_weight(Weight("nothing", lambda pi: pi * np.nan, lambda pi: pi), BOUNDS, None)
