"""The nuisance models of the PrivATE paper's configurations."""

from __future__ import annotations

from typing import Any

from discreet.exceptions import InvalidInput


def preset(name: str) -> tuple[Any, Any]:
    """Outcome regressor and treatment classifier of the paper's two configurations (supplement C.2)."""
    # Imported when used: scikit-learn's models take a second to import.
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    if name == "kernel":
        return KernelRidge(kernel="rbf", alpha=0.1), LogisticRegression()
    if name == "nn":
        layers = {"hidden_layer_sizes": (32,), "activation": "tanh", "solver": "sgd", "alpha": 0.1}
        return MLPRegressor(**layers), MLPClassifier(**layers)
    raise InvalidInput(
        "nuisance must be 'kernel' or 'nn'; for other models give model_regression and model_propensity."
    )
