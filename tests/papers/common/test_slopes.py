"""Slopes that are written out, against differences of the models' own predictions."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.utils import check_random_state

from discreet import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.papers.common.arrays import gather
from discreet.papers.common.nuisances import train
from discreet.papers.common.predictions import outcomes, probabilities
from discreet.papers.common.slopes import local_outcome, local_probability

RNG = np.random.default_rng(0)
X = RNG.random((200, 5))
Y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
T = (RNG.random(200) < X[:, 3]).astype(int)
STEP = 1e-5
NETWORK = {"hidden_layer_sizes": (8, 4), "activation": "tanh", "solver": "lbfgs", "random_state": 0, "max_iter": 5_000}
REGRESSIONS = [KernelRidge(kernel="rbf", alpha=0.1), KernelRidge(kernel="rbf", gamma=3.0), LinearRegression(), Ridge()]
REGRESSIONS += [MLPRegressor(**NETWORK)]
CLASSIFIERS = [LogisticRegression(), MLPClassifier(**NETWORK)]


def by_differences(predict, x):
    """The value and its derivative from both sides."""
    points = np.vstack([x, x + STEP * np.eye(len(x)), x - STEP * np.eye(len(x))])
    found = predict(points)
    up, down = np.split(found[1:], 2)
    return found[0], (up - down) / (2 * STEP)


@pytest.mark.parametrize("model", [*REGRESSIONS, *CLASSIFIERS], ids=str)
def test_slopes_are_those_of_the_predictions(model):
    regression = model in REGRESSIONS
    fitted = model.fit(X, Y if regression else T)
    local: Any
    local, predict = (local_outcome, outcomes) if regression else (local_probability, probabilities)
    for x in X[:5]:
        found, (value, by) = local(fitted)(x), by_differences(predict(fitted), x)
        assert found.value == pytest.approx(value, rel=1e-10, abs=1e-12)
        # The second-order rest of a difference from both sides, and its rounding.
        assert found.by == pytest.approx(by, rel=1e-5, abs=1e-7)


def test_models_with_kinks_and_unknown_ones_are_left_to_differences():
    rectified = MLPRegressor(**NETWORK | {"activation": "relu"}).fit(X, Y)

    class Own(LinearRegression):
        """May predict otherwise."""

    for model in (
        RandomForestRegressor(5).fit(X, Y),
        rectified,
        Own().fit(X, Y),
        LinearRegression().fit(X, Y[:, None]),
    ):
        assert local_outcome(model) is None


@pytest.mark.parametrize("known", [None, 0.4])
@pytest.mark.parametrize("clipped", [True, False])
def test_nuisances_around_a_record_are_those_at_the_record(known, clipped):
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1), ["a", "b", "c"], (0, 1), (0, 1)], propensity=(0.3, 0.6))
    levels = np.array(["a", "b", "c"])[RNG.integers(0, 3, 200)]
    frame = [X[:, 0], levels, X[:, 1], X[:, 3]]
    records = ArrayRecords.of(Y, T, np.array(frame, dtype=object).T, bounds=bounds)
    rows = gather(records)
    models = train(
        rows, bounds, REGRESSIONS[0], CLASSIFIERS[0], known=known, clipped=clipped, rng=check_random_state(0)
    )
    around: Any = models.local()
    ranges = [0, 2, 3]
    clips = 0
    for x in rows.x[:40]:
        for k, found in enumerate(around(x)):

            def predict(points, k=k, x=x):
                full = np.tile(x, (len(points), 1))
                full[:, ranges] = points
                return models.parts(full)[k]

            value, by = by_differences(predict, x[ranges])
            assert found.value == pytest.approx(value, rel=1e-10)
            assert found.by == pytest.approx(by, rel=1e-5, abs=1e-7)
            clips += not found.by.any()
    # Some propensities lie outside the declared overlap, and some outcomes outside their range.
    assert clips > 0 or (known is None and not clipped)
