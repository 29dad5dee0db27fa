"""One fit of an estimator to a study with its truth, as a row of numbers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from discreet import ATE, CATE, DifferenceInMeans
from discreet.datasets import Study
from discreet.datasets.study import Float
from discreet.privacy.accountant import gdp_mu
from discreet.testing import seeded_noise
from evidence.trust.designs import JUDGED

Row = dict[str, Any]
ALPHA = 0.05
# Of pointwise intervals, and of those of groups.
POINTWISE = 0.1
# Groups are by so many covariates, and have at least so many members.
_COVARIATES, _GROUP = 3, 50


def fitted(estimator: Any, study: Study, seed: int) -> tuple[Any, Row]:
    """The fitted estimator with its row: estimate, 95 % interval, seconds; or the reason why there is none."""
    before = time.perf_counter()
    try:
        with threadpool_limits(1), seeded_noise(seed):
            estimator.fit(study.Y, study.T, X=study.X)
    except Exception as reason:  # a long run goes on, and the page counts what failed
        return None, {"refused": f"{type(reason).__name__}: {reason}"}
    seconds = time.perf_counter() - before
    low, high = estimator.ate_interval(alpha=ALPHA)
    estimate = estimator.ate() if isinstance(estimator, CATE) else estimator.ate_
    return estimator, {"estimate": float(estimate), "low": float(low), "high": float(high), "seconds": seconds}


def average(study: Study, seed: int, *, epsilon: float, delta: float, propensity: Any = None) -> tuple[Any, Row]:
    """A fit of `ATE`."""
    return fitted(ATE(epsilon=epsilon, delta=delta, bounds=study.bounds, propensity=propensity), study, seed)


def means(study: Study, seed: int, *, epsilon: float, delta: float, propensity: float) -> Row:
    """A fit of `DifferenceInMeans`."""
    estimator = DifferenceInMeans(epsilon=epsilon, delta=delta, bounds=study.bounds, propensity=propensity)
    return fitted(estimator, study, seed)[1]


def function(study: Study, seed: int, *, epsilon: float, delta: float, propensity: Any = None) -> tuple[Any, Row]:
    """A fit of `CATE`."""
    return fitted(CATE(epsilon=epsilon, delta=delta, bounds=study.bounds, propensity=propensity), study, seed)


def function_errors(cate: Any, constant: float, study: Study) -> Row:
    """Errors of an effect function and of a constant over a study's own covariates, and pointwise intervals."""
    truth = judged_effects(study)
    x = study.X[:JUDGED]
    low, high = cate.effect_interval(x, alpha=POINTWISE)
    return {
        "error": _root_mean_square(cate.effect(x) - truth),
        "constant": _root_mean_square(constant - truth),
        "sd": float(truth.std()),
        "inside": float(np.mean((low <= truth) & (truth <= high))),
        "width": float(np.mean(high - low)),
        "varies": bool(cate.release_.varies),
        "groups": _groups_inside(cate, x, truth),
    }


def _groups_inside(cate: Any, x: Float, truth: Float) -> float:
    """Part of some groups whose average effect is inside its interval: below and above the middles of covariates."""
    inside = []
    for column in np.asarray(x).T[:_COVARIATES]:
        values = column.astype(np.float64)
        for members in (values <= np.median(values), values > np.median(values)):
            if np.sum(members) >= _GROUP:
                low, high = cate.effect_on_interval(x[members], alpha=POINTWISE)
                inside.append(low <= float(truth[members].mean()) <= high)
    return float(np.mean(inside)) if inside else float("nan")


def judged_effects(study: Study) -> Float:
    """True effects of the records by which functions are judged."""
    assert study.effects is not None
    return study.effects[:JUDGED]


def mu_of(epsilon: float, delta: float) -> float:
    """The Gaussian parameter of a budget: n times it is what a study can tell under privacy."""
    return gdp_mu(epsilon, delta)


def _root_mean_square(errors: Float) -> float:
    return float(np.sqrt(np.mean(errors**2)))
