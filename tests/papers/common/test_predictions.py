"""Predictions that are written out, against scikit-learn's own."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from discreet import InvalidInput
from discreet.papers.common.predictions import outcomes, probabilities
from discreet.papers.private_ate.presets import preset

RNG = np.random.default_rng(0)
X, NEW = RNG.random((200, 5)), RNG.random((40, 5))
Y, A = np.sin(3 * X[:, 0]) + X[:, 1], (RNG.random(200) < X[:, 2]).astype(int)


class Halved(KernelRidge):
    """Predicts otherwise than its parent."""

    def predict(self, X):
        return super().predict(X) / 2


REGRESSORS = [
    preset("kernel")[0],
    preset("nn")[0],
    KernelRidge(kernel="rbf", gamma=3.0),
    KernelRidge(kernel="laplacian"),
    Halved(kernel="rbf"),
    MLPRegressor(hidden_layer_sizes=(8, 4), activation="tanh", random_state=0),
    MLPRegressor(hidden_layer_sizes=(8,), activation="relu", random_state=0),
    MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", loss="poisson", random_state=0),
    LinearRegression(),
]
CLASSIFIERS = [
    preset("kernel")[1],
    preset("nn")[1],
    LogisticRegression(fit_intercept=False),
    MLPClassifier(hidden_layer_sizes=(8, 4), activation="tanh", random_state=0),
    MLPClassifier(hidden_layer_sizes=(8,), activation="relu", random_state=0),
]


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
@pytest.mark.parametrize("model", REGRESSORS, ids=repr)
def test_outcomes_are_what_the_model_predicts(model):
    model.fit(X, Y)
    np.testing.assert_allclose(outcomes(model)(NEW), model.predict(NEW), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
def test_probabilities_are_what_the_model_predicts(model):
    model.fit(X, A)
    np.testing.assert_allclose(probabilities(model)(NEW), model.predict_proba(NEW)[:, 1], rtol=0, atol=1e-12)


def test_a_kernel_with_weights_of_the_records_predicts_as_scikit_learn_does_at_its_own_centres():
    model = KernelRidge(kernel="rbf", alpha=1e-3).fit(X, Y)
    np.testing.assert_allclose(outcomes(model)(X), model.predict(X), rtol=0, atol=1e-10)


class Talkative(LinearRegression):
    """Quotes what it is shown."""

    def predict(self, X):
        raise ValueError(f"unknown category {X[0, 0]}")

    predict_proba = predict


@pytest.mark.parametrize("ask", [outcomes, probabilities])
def test_what_a_model_says_of_records_is_not_passed_on(ask):
    with pytest.raises(InvalidInput, match=r"could not predict \(ValueError\)") as refused:
        ask(Talkative())(NEW)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
    assert str(NEW[0, 0]) not in str(refused.value)
