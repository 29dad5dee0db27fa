"""Uplift metrics: values that can be worked out by hand, and what a ranking at random gets."""

import numpy as np
import pytest

from discreet.datasets import criteo_shaped
from discreet.datasets.metrics import auuc, pehe, qini, qini_curve, uplift_curve
from discreet.exceptions import InvalidInput

Y = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
T = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])


def test_pehe_is_a_mean_squared_error():
    assert pehe([1.0, 2.0], [1.0, 4.0]) == 2.0


def test_an_uplift_curve_by_hand():
    curve = uplift_curve(Y, T, [6, 5, 4, 3, 2, 1])
    np.testing.assert_allclose(curve.share, np.arange(7) / 6)
    # Differences of means among the first k: nothing known, 1 - 0, 1 - 0, 1 - 1/2, 2/3 - 1/2, 2/3 - 1/3.
    np.testing.assert_allclose(curve.value, [0, 0, 2 / 6, 3 / 6, 4 / 6 * 0.5, 5 / 6 / 6, 1 / 3])


def test_a_qini_curve_by_hand():
    curve = qini_curve(Y, T, [6, 5, 4, 3, 2, 1])
    np.testing.assert_allclose(curve.value, np.array([0, 1, 1, 2, 2 - 1, 2 - 1.5, 2 - 1]) / 3)


def test_areas_are_those_under_the_curves_with_the_random_ranking_s_beside():
    area = auuc(Y, T, [6, 5, 4, 3, 2, 1])
    curve = uplift_curve(Y, T, [6, 5, 4, 3, 2, 1])
    assert area.value == pytest.approx(np.sum((curve.value[1:] + curve.value[:-1]) / 2) / 6)
    assert area.chance == pytest.approx(1 / 6)
    assert area.gain == pytest.approx(area.value - 1 / 6)
    assert qini(Y, T, [6, 5, 4, 3, 2, 1]).chance == pytest.approx(1 / 6)


def test_equal_scores_gain_nothing_and_their_order_does_not_matter():
    for area in (auuc(Y, T, np.zeros(6)), qini(Y, T, np.zeros(6))):
        assert area.gain == pytest.approx(0.0)
    rng = np.random.default_rng(0)
    study = criteo_shaped(2_000, 0)
    score = rng.integers(0, 5, 2_000)
    order = rng.permutation(2_000)
    assert auuc(study.Y, study.T, score) == pytest.approx(auuc(study.Y[order], study.T[order], score[order]))


def test_the_last_point_is_the_average_effect():
    study = criteo_shaped(5_000, 1)
    effect = study.Y[study.T == 1].mean() - study.Y[study.T == 0].mean()
    assert uplift_curve(study.Y, study.T, study.effects).value[-1] == pytest.approx(effect)
    assert qini_curve(study.Y, study.T, study.effects).value[-1] == pytest.approx(effect)


def test_the_truth_ranks_better_than_chance_and_its_opposite_worse():
    study = criteo_shaped(60_000, 2)
    for metric in (auuc, qini):
        assert metric(study.Y, study.T, study.effects).gain > 0.001
        assert metric(study.Y, study.T, -study.effects).gain < -0.001


def test_random_scores_get_the_random_value_on_average():
    study, rng = criteo_shaped(20_000, 3), np.random.default_rng(1)
    gains = [auuc(study.Y, study.T, rng.normal(size=study.n)).gain for _ in range(60)]
    assert abs(np.mean(gains)) < 4 * np.std(gains) / np.sqrt(60)


@pytest.mark.parametrize(
    ("y", "t", "score", "words"),
    [
        (Y, T, [1.0], "align their lengths"),
        (Y, np.ones(6), Y, "T must hold 0 and 1"),
        (Y, T + 1, Y, "T must hold 0 and 1"),
        (Y, T, [np.nan] * 6, "score must be a column of finite numbers"),
        (Y[:, None], T, Y, "Y must be a column"),
        ([], [], [], "Y must be a column"),
    ],
)
def test_what_cannot_be_ranked_is_refused(y, t, score, words):
    for metric in (auuc, qini):
        with pytest.raises(InvalidInput, match=words):
            metric(y, t, score)


def test_effects_have_to_be_of_the_same_records():
    with pytest.raises(InvalidInput, match="truth and estimate"):
        pehe([1.0, 2.0], [1.0])


def test_docstrings_say_that_nothing_here_is_private():
    for function in (pehe, uplift_curve, qini_curve, auuc, qini):
        assert "Not private" in function.__doc__
