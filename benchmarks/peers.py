"""What a person would do without privacy: EconML's linear learner, and an AIPW estimate with as many terms as ours."""

from __future__ import annotations

from typing import Any

import numpy as np


def linear_dr_learner(Y: Any, T: Any, X: Any, *, modifies: bool) -> None:
    """EconML's LinearDRLearner with linear and logistic nuisances and its default cross-fitting, and an interval.

    Covariates modify the effect, or are controls alone, as for one average effect.
    """
    from econml.dr import LinearDRLearner
    from sklearn.linear_model import LinearRegression, LogisticRegression

    learner = LinearDRLearner(
        model_regression=LinearRegression(), model_propensity=LogisticRegression(), random_state=0
    )
    if modifies:
        learner.fit(Y, T.astype(int), X=X)
    else:
        learner.fit(Y, T.astype(int), X=None, W=X).ate_interval()


def aipw(Y: Any, T: Any, X: Any, terms: int) -> float:
    """Ridge and logistic regression by scikit-learn on polynomials of so many terms, cross-fitted in two folds."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.preprocessing import PolynomialFeatures

    degree = next(d for d in range(1, 12) if PolynomialFeatures(d).fit(X[:2]).n_output_features_ > terms or d == 11)
    features = PolynomialFeatures(degree, include_bias=False).fit_transform(X)[:, : max(terms - 1, 1)]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    folds, scores = np.arange(len(Y)) % 2, np.empty(len(Y))
    for fold in (0, 1):
        fit, held = folds != fold, folds == fold
        logistic = LogisticRegression(max_iter=50).fit(features[fit], T[fit])
        e = logistic.predict_proba(features[held])[:, 1].clip(0.02, 0.98)
        arms = [fit & treated for treated in (T < 0.5, T > 0.5)]
        mu = [Ridge().fit(features[arm], Y[arm]).predict(features[held]) for arm in arms]
        y, t = Y[held], T[held]
        scores[held] = mu[1] - mu[0] + t * (y - mu[1]) / e - (1 - t) * (y - mu[0]) / (1 - e)
    return float(scores.mean())
