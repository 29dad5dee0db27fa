import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from discreet.postprocessing.basis import NORM_CAP
from discreet.postprocessing.feature_selection import FeatureSelection, allot
from discreet.postprocessing.gaussian_update import Belief

RNG = np.random.default_rng(0)
positive = st.floats(0, 1e12)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=30), st.floats(1e-12, 1e12))
def test_shares_are_shares(pairs, noise):
    stake, doubt = (np.array(column) for column in zip(*pairs, strict=True))
    share = allot(stake, doubt, noise)
    assert share.min() >= 0
    assert share.sum() == pytest.approx(1)


def test_no_other_shares_leave_less_doubt():
    stake, doubt, noise = RNG.gamma(1, 1, 6), RNG.gamma(1, 1, 6), 0.3

    def left(share):
        return float(np.sum(stake / (1 / doubt + share / noise)))

    best = allot(stake, doubt, noise)
    softmax = minimize(lambda z: left(np.exp(z) / np.exp(z).sum()), np.zeros(6), method="BFGS")
    assert left(best) <= softmax.fun + 1e-6
    for _ in range(200):
        assert left(best) <= left(RNG.dirichlet(np.ones(6))) + 1e-9


def test_what_is_known_or_does_not_matter_gets_nothing():
    share = allot(np.array([1.0, 1.0, 1e-12]), np.array([1.0, 1e-9, 1.0]), 0.01)
    np.testing.assert_allclose(share, [1, 0, 0], atol=1e-6)


def test_something_is_always_looked_at():
    assert FeatureSelection.of(np.full(5000, 1 / 5000), np.ones(5000)).m == 5000
    share = allot(np.array([1e-40, 1.0, 1.0]), np.array([1e-40, 1.0, 2.0]), 0.1)
    focus = FeatureSelection.of(share, np.array([1e-38, 1.0, 1.0]))
    assert list(focus.kept) == [1, 2]
    assert np.isfinite(focus.scale).all()


def test_focused_features_are_held_to_the_radius_and_do_not_depend_on_their_place():
    features = RNG.normal(0, 3, (500, 8))
    features[0] = 0.0
    focus = FeatureSelection.of(np.array([0.5, 0, 0.3, 0, 0, 0.2, 1e-5, 0]), np.full(8, 9.0))
    assert list(focus.kept) == [0, 2, 5]
    narrow, weight = focus(features)
    assert np.all(weight <= 1)
    assert np.linalg.norm(narrow * weight[:, None], axis=1).max() <= focus.radius * (1 + 1e-12)
    assert np.mean(np.sum(narrow**2, axis=1)) == pytest.approx(1, rel=0.2)
    assert focus.radius == pytest.approx(NORM_CAP**0.5)
    shuffled = RNG.permutation(500)
    again, weight_again = focus(np.ascontiguousarray(features[shuffled]))
    np.testing.assert_array_equal(again, narrow[shuffled])
    np.testing.assert_array_equal(weight_again, weight[shuffled])


def test_a_look_gets_more_room_where_noise_is_small_and_none_is_wasted_where_it_is_not():
    features = RNG.normal(0, 1, (4_000, 6))
    focus = FeatureSelection.of(np.full(6, 1 / 6), np.ones(6))
    noisy, quiet = focus.with_best_norm_cap(features, 1.0, 1e-4), focus.with_best_norm_cap(features, 1e-8, 1.0)
    assert noisy.norm_cap <= 1.0 < quiet.norm_cap
    assert quiet.radius == pytest.approx(quiet.norm_cap**0.5)
    for chosen in (noisy, quiet):
        narrow, weight = chosen(features)
        assert np.linalg.norm(narrow * weight[:, None], axis=1).max() <= chosen.radius * (1 + 1e-12)


def test_weighing_records_down_costs_precision_as_a_regression_would_feel_it():
    rng = np.random.default_rng(3)
    features = rng.normal(0, 1, (200_000, 1)) ** 3
    focus = FeatureSelection.of(np.ones(1), np.array([float(np.mean(features**2))]))
    (efficiency,) = focus.efficiency(features)
    narrow, weight = focus(features)
    # Sampling variance of sum(w z r) / sum(w z z), beside that of least squares.
    weighed = np.mean(weight**2 * narrow[:, 0] ** 2) / np.mean(weight * narrow[:, 0] ** 2) ** 2
    assert efficiency == pytest.approx(1 / np.mean(narrow[:, 0] ** 2) / weighed, rel=1e-9)
    assert efficiency < 0.9


def test_a_look_moves_a_belief_as_bayes_says():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    slope, noise, seen = np.array([[1.0, -1.0]]), np.array([[0.5]]), np.array([0.7])
    after = Belief(np.array([1.0, 2.0]), covariance).update(seen, slope, noise, np.eye(2), np.inf)
    precision = np.linalg.inv(covariance) + slope.T @ slope / 0.5
    np.testing.assert_allclose(after.covariance, np.linalg.inv(precision))
    np.testing.assert_allclose(after.mean, [1.0, 2.0] + np.linalg.inv(precision) @ slope.T @ (seen / 0.5))


def test_a_surprising_look_is_believed_and_leaves_more_doubt():
    before = Belief(np.zeros(3), 0.01 * np.eye(3))
    expected = before.update(np.full(3, 0.1), np.eye(3), 0.01 * np.eye(3), np.eye(3), np.inf)
    surprised = before.update(np.full(3, 5.0), np.eye(3), 0.01 * np.eye(3), np.eye(3), np.inf)
    assert np.trace(surprised.covariance) > np.trace(expected.covariance)
    assert np.all(surprised.mean > 4.5)


def test_no_step_moves_predictions_beyond_its_limit():
    gram = np.diag([1.0, 4.0])
    after = Belief(np.zeros(2), 100 * np.eye(2)).update(np.full(2, 50.0), np.eye(2), np.eye(2), gram, 1.5)
    assert np.sqrt(after.mean @ gram @ after.mean) == pytest.approx(1.5)
