"""What smooth models predict at one point, and how that changes with the features.

The search for a supremum climbs. By differences each step of it takes a prediction for every feature, and a prediction
takes as long as there are features: a time that grows with their square. For the models that are written out here one
step takes little more than one prediction. Models with kinks are left to differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from discreet.data._arrays import Float


class Slope(NamedTuple):
    """A prediction, and its derivative by each feature."""

    value: float
    by: Float


Local: TypeAlias = Callable[[Float], Slope]
"""From the features of one point to the prediction there."""


def local_outcome(regression: Any) -> Local | None:
    """What a fitted regressor predicts around a point; None for a model that is not known here."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import LinearRegression, Ridge
    from sklearn.neural_network import MLPRegressor

    # Types, not instances: a subclass may predict otherwise.
    kind = type(regression)
    if kind is KernelRidge and regression.kernel == "rbf" and regression.dual_coef_.ndim == 1:
        return _gaussian_kernel(regression)
    if kind in (LinearRegression, Ridge) and np.ndim(regression.coef_) == 1:
        return _line(regression.coef_, float(regression.intercept_))
    if kind is MLPRegressor and _is_smooth(regression) and regression.out_activation_ == "identity":
        return _network(regression)
    return None


def local_probability(classifier: Any) -> Local | None:
    """The same for a classifier's probability of 1."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    kind = type(classifier)
    if kind is LogisticRegression and classifier.coef_.shape[0] == 1:
        return _logistic(_line(classifier.coef_[0], float(classifier.intercept_[0])))
    if kind is MLPClassifier and _is_smooth(classifier) and classifier.out_activation_ == "logistic":
        return _logistic(_network(classifier))
    return None


def constant(value: float) -> Local:
    """What is the same for everyone."""
    return lambda features: Slope(value, np.zeros(len(features)))


def _line(weights: Float, intercept: float) -> Local:
    return lambda features: Slope(float(features @ weights) + intercept, weights)


def _logistic(score: Local) -> Local:
    def local(features: Float) -> Slope:
        at = score(features)
        value = float(expit(at.value))
        return Slope(value, value * (1.0 - value) * at.by)

    return local


def _gaussian_kernel(regression: Any) -> Local:
    centres, weights = np.ascontiguousarray(regression.X_fit_), regression.dual_coef_
    gamma = 1.0 / centres.shape[1] if regression.gamma is None else regression.gamma
    norms = np.einsum("ij,ij->i", centres, centres)

    def local(features: Float) -> Slope:
        distances = norms - 2.0 * (centres @ features) + features @ features
        # No distance is below zero, whatever rounding says.
        parts = weights * np.exp(-gamma * np.maximum(distances, 0.0))
        value = float(parts.sum())
        return Slope(value, 2.0 * gamma * (parts @ centres - value * features))

    return local


def _is_smooth(model: Any) -> bool:
    return bool(model.activation == "tanh" and model.n_outputs_ == 1)


def _network(model: Any) -> Local:
    """The last layer's input, for one output."""
    *hidden, (last, intercepts) = list(zip(model.coefs_, model.intercepts_, strict=True))

    def local(features: Float) -> Slope:
        steep = []
        for weights, constants in hidden:
            features = np.tanh(features @ weights + constants)
            steep.append(1.0 - features**2)
        by = last[:, 0]
        for (weights, _), slope in zip(reversed(hidden), reversed(steep), strict=True):
            by = weights @ (slope * by)
        return Slope(float(features @ last[:, 0] + intercepts[0]), by)

    return local
