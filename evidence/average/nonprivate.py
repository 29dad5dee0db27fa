"""What an analyst without any privacy would report: the yardsticks for widths and coverage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from discreet.data.bounds import Range
from discreet.datasets import Study
from discreet.datasets.study import Float

Mask = NDArray[np.bool_]
_FOLDS, _TREES = 3, 100
_BOOSTING = {
    "num_leaves": 15,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "max_bin": 63,
    "num_threads": 1,
    "deterministic": True,
    "verbose": -1,
}


class Estimate(NamedTuple):
    """A point and its standard error."""

    estimate: float
    se: float


class LinearNuisances(NamedTuple):
    """Coefficients, intercept first, of two outcome regressions and one logistic propensity on `design_matrix`."""

    control: Float
    treated: Float
    propensity: Float


def boosted_aipw(study: Study, seed: int) -> Estimate:
    """Cross-fitted AIPW with gradient-boosted nuisances; ``seed`` draws the folds."""
    return _mean(boosted_scores(study, seed))


def boosted_scores(study: Study, seed: int) -> Float:
    """AIPW scores of all records, by boosted nuisances that were fitted to other records."""
    mu0, mu1, pi = np.empty(study.n), np.empty(study.n), np.empty(study.n)
    for train, test in folds(study.n, seed):
        pi[test] = boosted(study.X, study.T, train, test, "binary")
        mu0[test] = boosted(study.X, study.Y, train & (study.T == 0), test)
        mu1[test] = boosted(study.X, study.Y, train & (study.T == 1), test)
    return aipw_scores(study.Y, study.T, mu0, mu1, np.clip(pi, *study.bounds.propensity))


def folds(n: int, seed: int) -> Iterator[tuple[Mask, Mask]]:
    """Records to fit, and records to predict."""
    fold = np.random.default_rng(seed).permutation(n) % _FOLDS
    yield from ((fold != k, fold == k) for k in range(_FOLDS))


def boosted(X: Any, target: Float, train: Mask, test: Mask, objective: str = "l2", **options: float) -> Float:
    """Predictions of boosted trees; ``options`` are LightGBM's, in place of the usual ones."""
    import lightgbm

    x = np.asarray(X, dtype=np.float64)
    data = lightgbm.Dataset(x[train], target[train])
    model = lightgbm.train({**_BOOSTING, **options, "objective": objective}, data, num_boost_round=_TREES)
    return np.asarray(model.predict(x[test]))


def linear_aipw(study: Study) -> Estimate:
    """AIPW with least-squares outcomes and a logistic propensity, fitted on all records."""
    return _mean(linear_scores(study, linear_nuisances(study)))


def difference_of_means(study: Study) -> Estimate:
    """Treated minus control, as if treatment had been drawn by lot."""
    treated, control = study.Y[study.T == 1], study.Y[study.T == 0]
    variance = treated.var(ddof=1) / treated.size + control.var(ddof=1) / control.size
    return Estimate(float(treated.mean() - control.mean()), float(np.sqrt(variance)))


def linear_nuisances(study: Study) -> LinearNuisances:
    """Fit both outcome regressions and the propensity."""
    Z, treated = design_matrix(study), study.T == 1
    mu0, mu1 = (np.linalg.lstsq(Z[arm], study.Y[arm])[0] for arm in (~treated, treated))
    return LinearNuisances(mu0, mu1, _logistic(Z, study.T))


def linear_scores(study: Study, nuisances: LinearNuisances) -> Float:
    """AIPW scores of all records, the propensity clipped to the public overlap."""
    Z = design_matrix(study)
    pi = np.clip(expit(Z @ nuisances.propensity), *study.bounds.propensity)
    return aipw_scores(study.Y, study.T, Z @ nuisances.control, Z @ nuisances.treated, pi)


def aipw_scores(y: Float, t: Float, mu0: Float, mu1: Float, pi: Float) -> Float:
    """Doubly robust score of each record."""
    return np.asarray(mu1 - mu0 + t * (y - mu1) / pi - (1 - t) * (y - mu0) / (1 - pi))


def design_matrix(study: Study) -> Float:
    """Intercept, ranges mapped onto [-1, 1], and an indicator for each level but the first."""
    X = np.asarray(study.X)
    columns = [np.ones(study.n)]
    for j, spec in enumerate(study.bounds.columns):
        codes = spec.encode(X[:, j])
        columns += [codes] if isinstance(spec, Range) else [codes == k for k in range(1, len(spec.levels))]
    return np.column_stack(columns).astype(np.float64)


def _logistic(Z: Float, t: Float) -> Float:
    # Newton's method; the tiny ridge only matters where an indicator is constant.
    beta = np.zeros(Z.shape[1])
    for _ in range(25):
        p = expit(Z @ beta)
        hessian = (Z * (p * (1 - p))[:, None]).T @ Z + 1e-8 * len(Z) * np.eye(Z.shape[1])
        step = np.linalg.solve(hessian, Z.T @ (t - p) - 1e-8 * len(Z) * beta)
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    return beta


def _mean(scores: Float) -> Estimate:
    return Estimate(float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(scores.size)))
