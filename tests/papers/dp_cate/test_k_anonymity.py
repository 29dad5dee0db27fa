"""k-anonymity by Mondrian, and the learner behind it."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from discreet import Bounds, InvalidInput
from discreet.datasets import dp_cate
from discreet.papers import DPCATE
from discreet.papers.dp_cate.k_anonymity import anonymised, anonymised_effects, groups

MIXED = Bounds(outcome=(0, 1), covariates=[(0, 1), ["a", "b", "c"]])


def mixed(count=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-1, 1, count), rng.integers(0, 3, count)])


@pytest.mark.parametrize("k", [1, 2, 7, 150, 300])
def test_every_group_has_k_records_and_every_record_one_group(k):
    found = groups(np.random.default_rng(1).random((300, 3)), k)
    assert sorted(np.concatenate(found)) == list(range(300))
    assert min(map(len, found)) >= k
    assert max(map(len, found)) < max(4 * k, 3)


def test_records_of_a_group_cannot_be_distinguished_by_their_covariates():
    coarse = anonymised(mixed(), MIXED, 10)
    _, counts = np.unique(coarse, axis=0, return_counts=True)
    assert counts.min() >= 10
    assert set(coarse[:, 1]) <= {0.0, 1.0, 2.0}


def test_one_anonymous_record_is_the_record():
    x = mixed()
    np.testing.assert_allclose(anonymised(x, MIXED, 1), x)


def test_values_that_most_records_share_are_no_obstacle():
    x = np.concatenate([np.full(90, 1.0), np.linspace(-1, 0, 30)])[:, None]
    assert min(map(len, groups(x, 5))) >= 5
    assert len(groups(x, 5)) > 2


def test_the_same_learner_loses_accuracy_with_k():
    study = dp_cate(1, 1_500, 3)
    model = DPCATE(
        epsilon=1,
        delta=1e-5,
        bounds=study.bounds,
        stage2="linear",
        model_regression=LinearRegression(),
        model_propensity=LogisticRegression(),
    )
    errors = []
    for k in (1, 1_500):
        found = anonymised_effects(model, study.Y, study.T, X=study.X, queries=study.X[:200], k=k)
        errors.append(np.sqrt(np.mean((found - study.effects[:200]) ** 2)))
    assert errors[0] < 0.95 * errors[1]
    assert not hasattr(model, "release_")


def test_outcomes_averaged_over_both_arms_hide_the_effect():
    study = dp_cate(1, 1_500, 3)
    model = DPCATE(
        epsilon=1,
        delta=1e-5,
        bounds=study.bounds,
        stage2="linear",
        model_regression=LinearRegression(),
        model_propensity=LogisticRegression(),
    )
    given = {"X": study.X, "queries": study.X[:200], "k": 50}
    kept, lost = (
        anonymised_effects(model, study.Y, study.T, **given, aggregate=what) for what in ("covariates", "outcomes")
    )
    assert np.abs(lost).mean() < 0.2 * np.abs(kept).mean()
    with pytest.raises(InvalidInput, match="aggregate must be"):
        anonymised_effects(model, study.Y, study.T, **given, aggregate="records")


@pytest.mark.parametrize("k", [0, 301, 2.5, True])
def test_a_k_that_cannot_be_is_refused(k):
    with pytest.raises(InvalidInput, match="k must be"):
        anonymised(mixed(), MIXED, k)
