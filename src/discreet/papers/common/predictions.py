"""What fitted models predict, fast for many calls with a few points each.

The search for the supremum asks for thousands of predictions. For the models of the paper's two configurations they
are written out here, to rounding as scikit-learn computes them, because its checks of input would take most of the
time; any other model is asked itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput

Predict: TypeAlias = Callable[[Float], Float]
"""From features, one row for each point, to one number for each point."""


def outcomes(regression: Any) -> Predict:
    """What a fitted regressor predicts."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.neural_network import MLPRegressor

    # Types, not instances: a subclass may predict otherwise.
    if type(regression) is KernelRidge and regression.kernel == "rbf" and regression.dual_coef_.ndim == 1:
        return _gaussian_kernel(regression)
    if type(regression) is MLPRegressor and _hyperbolic(regression) and regression.out_activation_ == "identity":
        return _network(regression)
    return lambda features: _one_each(_asked("model_regression", regression.predict, features), len(features))


def probabilities(classifier: Any) -> Predict:
    """What a fitted classifier of 0 and 1 takes the probability of 1 to be."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    if type(classifier) is LogisticRegression and classifier.coef_.shape[0] == 1:
        weights, intercept = classifier.coef_[0], classifier.intercept_[0]
        return lambda features: expit(features @ weights + intercept)
    if type(classifier) is MLPClassifier and _hyperbolic(classifier) and classifier.out_activation_ == "logistic":
        score = _network(classifier)
        return lambda features: expit(score(features))
    ask = classifier.predict_proba
    return lambda features: _of_treated(_asked("model_propensity", ask, features), len(features))


def _asked(name: str, predict: Callable[[Float], Any], features: Float) -> Any:
    try:
        return predict(features)
    except Exception as error:
        # What the model says may quote records.
        raise InvalidInput(
            f"{name} could not predict ({type(error).__name__}); try it on made-up records, or give another."
        ) from None


def _one_each(predicted: Any, n: int) -> Float:
    """Predictions as a vector; some models return a column."""
    found = np.asarray(predicted, dtype=np.float64)
    if found.shape not in ((n,), (n, 1)):
        raise InvalidInput("model_regression must predict one number for each record; give another regressor.")
    return found.reshape(n)


def _of_treated(predicted: Any, n: int) -> Float:
    found = np.asarray(predicted, dtype=np.float64)
    if found.shape != (n, 2):
        raise InvalidInput("model_propensity must predict two probabilities for each record; give another classifier.")
    return np.asarray(found[:, 1])


def _gaussian_kernel(regression: Any) -> Predict:
    centres, weights = regression.X_fit_, regression.dual_coef_
    gamma = 1.0 / centres.shape[1] if regression.gamma is None else regression.gamma
    twice = np.ascontiguousarray(2.0 * gamma * centres.T)
    norms = gamma * np.einsum("ij,ij->i", centres, centres)

    def predict(features: Float) -> Float:
        exponents = features @ twice
        exponents -= norms
        exponents -= gamma * np.einsum("ij,ij->i", features, features)[:, None]
        # No distance is below zero, whatever rounding says.
        np.minimum(exponents, 0.0, out=exponents)
        return np.asarray(np.exp(exponents, out=exponents) @ weights)

    return predict


def _hyperbolic(model: Any) -> bool:
    return bool(model.activation == "tanh" and model.n_outputs_ == 1)


def _network(model: Any) -> Predict:
    """The last layer's input, for one output."""
    *hidden, last = list(zip(model.coefs_, model.intercepts_, strict=True))

    def predict(features: Float) -> Float:
        for weights, intercepts in hidden:
            features = np.tanh(features @ weights + intercepts)
        return np.asarray((features @ last[0] + last[1])[:, 0])

    return predict
