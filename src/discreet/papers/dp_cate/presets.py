"""The learners of the DP-CATE paper's experiments (supplement H.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput

# "Optimized via Adam at a learning rate of 0.01 and batch size 128", ReLU activations.
_TRAINING = {"activation": "relu", "solver": "adam", "learning_rate_init": 0.01, "batch_size": 128}


def first_stage(regression: Any, classifier: Any) -> tuple[Any, Any]:
    """Outcome regressor and treatment classifier: those that were given, or networks with one layer of width 32."""
    # Imported when used: scikit-learn's models take a second to import.
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    # Not "or": ensembles that have not been fitted have no truth value.
    regression = MLPRegressor(hidden_layer_sizes=(32,), **_TRAINING) if regression is None else regression
    return regression, MLPClassifier(hidden_layer_sizes=(32,), **_TRAINING) if classifier is None else classifier


def second_stage(stage2: Any) -> Any:
    """The regressor of pseudo-outcomes, by the paper's name or as it was given."""
    if not isinstance(stage2, str):
        return stage2
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor

    if stage2 == "forest":
        return RandomForestRegressor()
    if stage2 == "linear":
        return LinearRegression()
    if stage2 == "nn":
        return MLPRegressor(hidden_layer_sizes=(32, 32), **_TRAINING)
    raise InvalidInput("stage2 must be 'forest', 'nn' or 'linear', or a scikit-learn regressor: choose one.")


def predictor(model: Any) -> Callable[[Float], Float]:
    """Predictions of a fitted regressor; those of forests without threads, which cost more than a search's few rows."""
    from sklearn.ensemble import RandomForestRegressor

    if type(model) is not RandomForestRegressor:
        return lambda features: np.asarray(model.predict(features), dtype=np.float64)
    trees = [estimator.tree_ for estimator in model.estimators_]

    def average(features: Float) -> Float:
        rows = np.ascontiguousarray(features, dtype=np.float32)
        total = np.zeros(len(rows))
        for tree in trees:
            total += tree.predict(rows)[:, 0]
        return total / len(trees)

    return average


def check_second_stage(model: Any, *, weighted: bool) -> None:
    """Refuse a model that cannot be a second stage, before a record is read."""
    if not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InvalidInput("stage2 needs fit and predict; give a scikit-learn regressor.")
    from sklearn.utils.validation import has_fit_parameter

    if weighted and not has_fit_parameter(model, "sample_weight"):
        raise InvalidInput("stage2 must take sample_weight in fit for this learner; choose another, or learner='DR'.")
