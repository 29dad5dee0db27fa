"""Nuisance functions of PrivATE: any scikit-learn models, or models that went through the gate.

Either way the score needs two functions of the covariates: the propensity, and the prognosis
f = (1 - pi) mu_1 + pi mu_0, in which alone the outcome regressions enter it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from discreet.basis import size_for
from discreet.bounds import Bounds
from discreet.budget import Shares
from discreet.columns import Float, Range
from discreet.errors import InvalidInput
from discreet.gate import Gate
from discreet.papers.private_ci_predictions import Predict, outcomes, probabilities
from discreet.papers.rows import in_own_unit
from discreet.records import Chunk
from discreet.rounds import first_look
from discreet.survey import build_basis, locate, measure_gram, pilot_effect

Surfaces: TypeAlias = Callable[[Float], tuple[Float, Float]]
"""From covariates as `Bounds` encodes them to propensity and prognosis, the latter in the outcome's unit."""

PRIVATE_SHARES = Shares(location=0.08, pilot=0.04, marginals=0.06, gram=0.16, models=0.66)
PRIVATE_SHARES_BY_DESIGN = Shares(location=0.12, pilot=0.06, marginals=0.08, gram=0.24, models=0.50)

_SAME = 1e-6


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


def check_models(regression: Any, classifier: Any) -> None:
    """Refuse models that cannot be what they are needed for, before a record is looked at."""
    for name, model in (("model_regression", regression), ("model_propensity", classifier)):
        if isinstance(model, type):
            raise InvalidInput(f"{name} is a class; give an instance of it, with its settings in brackets.")
    if not (hasattr(regression, "fit") and hasattr(regression, "predict")):
        raise InvalidInput("model_regression needs fit and predict; give a scikit-learn regressor.")
    if not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        raise InvalidInput(
            "model_propensity needs fit and predict_proba; give a scikit-learn classifier that returns probabilities."
        )
    for name, model in (("model_regression", regression), ("model_propensity", classifier)):
        if not hasattr(model, "get_params"):
            raise InvalidInput(f"{name} cannot be copied, as it has no get_params; derive it from BaseEstimator.")


@dataclass(frozen=True, eq=False)
class Models:
    """Fitted scikit-learn models as surfaces.

    ``classifier`` is a number where the propensity is known by design. Propensities are clipped to the declared
    overlap; predicted outcomes to their declared range if ``clipped``.
    """

    bounds: Bounds
    control: Any
    treated: Any
    classifier: Any
    clipped: bool

    def __call__(self, x: Float) -> tuple[Float, Float]:
        features = design(x, self.bounds)
        control, treated, classifier = self._predict
        mu0, mu1 = control(features), treated(features)
        if self.clipped:
            mu0, mu1 = np.clip(mu0, *self.bounds.outcome), np.clip(mu1, *self.bounds.outcome)
        if isinstance(classifier, float):
            pi = np.full(len(x), classifier)
        else:
            pi = np.clip(classifier(features), *self.bounds.propensity)
        return pi, (1.0 - pi) * mu1 + pi * mu0

    @cached_property
    def _predict(self) -> tuple[Predict, Predict, Predict | float]:
        known = isinstance(self.classifier, float)
        propensity = self.classifier if known else probabilities(self.classifier)
        return outcomes(self.control), outcomes(self.treated), propensity


def train(
    rows: Chunk, bounds: Bounds, regression: Any, classifier: Any, *, known: float | None, clipped: bool, rng: Any
) -> Models:
    """One outcome regression for each arm, and a classifier of the treatment unless its probability is known."""
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning

    features, y = design(rows.x, bounds), in_own_unit(rows.y, bounds)
    # Records are clipped numbers already: no need to look for others again in every batch of a network.
    with warnings.catch_warnings(), config_context(assume_finite=True):
        # The paper stops gradient descent after a fixed number of steps, too.
        warnings.simplefilter("ignore", ConvergenceWarning)
        arms = [rows.t == arm for arm in (0.0, 1.0)]
        control, treated = (_fit("model_regression", _copy(regression, rng), features[arm], y[arm]) for arm in arms)
        model = known
        if known is None:
            model = _fit("model_propensity", _copy(classifier, rng), features, rows.t.astype(int))
    return Models(bounds, control, treated, model, clipped)


def _fit(name: str, model: Any, features: Float, target: Any) -> Any:
    try:
        return model.fit(features, target)
    except Exception as error:
        # What the model says may quote records.
        raise InvalidInput(
            f"{name} could not be fitted ({type(error).__name__}); try it on made-up records, or give another."
        ) from None


def check_finite(*predicted: Float) -> None:
    """Refuse models that return what is no number; for public predictions, or where nothing is proved."""
    if not all(np.isfinite(values).all() for values in predicted):
        raise InvalidInput("a nuisance model predicts missing or infinite values; give models that return numbers.")


def check_row_wise(surfaces: Surfaces, x: Float) -> None:
    """Refuse models whose prediction for one record depends on the others: docs/proofs/private_ci.md, premise (b).

    Looks at a few rows, which must be public.
    """
    together = np.array(surfaces(x))
    check_finite(together)
    alone = np.concatenate([np.array(surfaces(row[None, :])) for row in x], axis=1)
    if not np.allclose(together, alone, rtol=_SAME, atol=_SAME * (1.0 + np.abs(together).max())):
        raise InvalidInput(
            "a nuisance model predicts differently for one record alone and among others; give models whose predict "
            "treats rows one by one."
        )


def private_surfaces(gate: Gate, known: float | None) -> Surfaces:
    """Logistic propensity and linear prognosis on a bounded basis, from noisy sums that spend the whole gate."""
    share = PRIVATE_SHARES if known is None else PRIVATE_SHARES_BY_DESIGN
    where = locate(gate, share["location"])
    pilot = pilot_effect(gate, share["pilot"], where)
    size = size_for(gate.n * gate.mu, gate.bounds.p)
    setting = measure_gram(gate, share["gram"], build_basis(gate, share["marginals"], size))
    outcome = first_look(gate, share["models"], setting, where, pilot, gate.bounds.propensity, known is not None)
    bounds = gate.bounds

    def surfaces(x: Float) -> tuple[Float, Float]:
        nobody = np.zeros(len(x))
        chunk = Chunk(y=nobody, t=nobody, x=x, e=None if known is None else np.full(len(x), known))
        pi = outcome.propensity(chunk)
        return pi, in_own_unit(np.clip(outcome.prognosis(chunk, pi), -1.0, 1.0), bounds)

    return surfaces


def design(x: Float, bounds: Bounds) -> Float:
    """What models see: ranges on [0, 1], as in the paper's data, and an indicator for each level."""
    if all(isinstance(spec, Range) for spec in bounds.columns):
        return (x + 1.0) / 2.0
    columns = []
    for spec, column in zip(bounds.columns, x.T, strict=True):
        if isinstance(spec, Range):
            columns.append((column[:, None] + 1.0) / 2.0)
        else:
            columns.append((column[:, None] == np.arange(len(spec.levels))).astype(np.float64))
    return np.hstack(columns)


def _copy(model: Any, rng: Any) -> Any:
    from sklearn.base import clone

    fresh = clone(model)
    if "random_state" in fresh.get_params() and fresh.get_params()["random_state"] is None:
        fresh.set_params(random_state=int(rng.randint(2**31 - 1)))
    return fresh
