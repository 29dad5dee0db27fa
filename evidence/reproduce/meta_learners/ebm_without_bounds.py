"""The sample-splitting learners with DP-EBM as its authors called it: without bounds. Not private, for simulations.

Without bounds interpret takes the extremes of covariates and targets from the records, which no privacy guarantee
covers, and its noise fits them closely. Beside `discreet.papers` with ``base="ebm"``, where all of them are declared,
this says what declaring them costs. The partition and the trimming are the same in both.

interpret 0.7 divides a step of boosting by the weights in a bin. The releases that the authors can have run (0.2, of
2021) divided by the number of records there. Without weights that is the same; with the R-learner's, which are
e (1 - e) on average, it makes steps, and the noise in them, about four times shorter.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.in_memory import ArrayRecords
from discreet.datasets.study import Study
from discreet.papers.common.arrays import gather, in_own_unit
from discreet.papers.common.queries import encode_queries
from discreet.papers.meta_learners._base import TRIM
from discreet.papers.meta_learners.ebm import require
from discreet.papers.meta_learners.estimators import RATIOS
from discreet.papers.meta_learners.stages import dr_outcome, overlap_of, partition, r_outcome

Predict = Callable[[Float], Float]
# interpret's default step.
RATE = 0.01


def effects_without_bounds(
    study: Study,
    X: Any,
    learner: str,
    *,
    epsilon: float,
    delta: float,
    trim: float = TRIM,
    seed: int,
    steps_by_records: bool = False,
) -> Float:
    """Effects at X by the DR-, R- or S-learner, each model with its own seed.

    Parameters
    ----------
    steps_by_records
        Whether steps of the R-learner are divided by records, as in 2021, and not by their weights.
    """
    require()
    at, rows = encode_queries(X, study.bounds), gather(ArrayRecords.of(study.Y, study.T, study.X, bounds=study.bounds))
    machines = _Machines({"epsilon": epsilon, "delta": delta, "composition": "gdp", "n_jobs": 1}, 3 * seed)
    y = in_own_unit(rows.y, study.bounds)
    if learner == "S":
        mu = machines.regression(np.column_stack([rows.t, rows.x]), y)
        return _arm(mu, 1.0, at) - _arm(mu, 0.0, at)
    parts = partition(rows._replace(y=y), RATIOS, shuffle=True, random_state=seed)
    first, second, third = parts["propensity"], parts["outcome"], parts["effect"]
    propensity = machines.probability(first.x, first.t)
    e = np.clip(propensity(third.x), *overlap_of(study.bounds, trim))
    if learner == "R":
        eta = machines.regression(second.x, second.y)
        quotient, weight = r_outcome(third.y, third.t, e, eta(third.x))
        shorter = float(weight.mean()) if steps_by_records else 1.0
        return machines.regression(third.x, quotient, weight, shorter)(at)
    mu = machines.regression(np.column_stack([second.t, second.x]), second.y)
    psi = dr_outcome(third.y, third.t, e, _arm(mu, 1.0, third.x), _arm(mu, 0.0, third.x))
    return machines.regression(third.x, psi)(at)


def _arm(mu: Predict, arm: float, x: Float) -> Float:
    return mu(np.column_stack([np.full(len(x), arm), x]))


class _Machines:
    """Boosting machines with the same settings, and a seed for each."""

    def __init__(self, given: dict[str, Any], seed: int) -> None:
        self._given, self._seed = given, seed

    def regression(self, x: Float, y: Float, weight: Float | None = None, shorter: float = 1.0) -> Predict:
        from interpret.privacy import DPExplainableBoostingRegressor

        machine = self._fit(DPExplainableBoostingRegressor, x, y, weight, learning_rate=RATE * shorter)
        return lambda at: np.asarray(machine.predict(at))

    def probability(self, x: Float, t: Float) -> Predict:
        from interpret.privacy import DPExplainableBoostingClassifier

        machine = self._fit(DPExplainableBoostingClassifier, x, t.astype(np.int64), None)
        return lambda at: np.asarray(machine.predict_proba(at)[:, 1])

    def _fit(self, kind: Any, x: Float, y: Any, weight: Float | None, **further: float) -> Any:
        self._seed += 1
        machine = kind(**self._given, **further, feature_types=["continuous"] * x.shape[1], random_state=self._seed)
        with warnings.catch_warnings():
            # interpret says that extremes of the records leak, and that seeds do. Both are on purpose here.
            warnings.simplefilter("ignore", UserWarning)
            return machine.fit(x, y, sample_weight=weight)
