"""What could be reported without any privacy: boosted AIPW for the average, a boosted DR-learner for the function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.datasets import Study
from evidence.average.nonprivate import Estimate, boosted, boosted_aipw, boosted_scores, difference_of_means, folds
from evidence.population import random_study
from evidence.trust.designs import JUDGED

Row = dict[str, Any]
# They see so many records of a study at most: boosting is slow, and their intervals are judged beside their own n.
MOST = 30_000
# Below so many records in an arm nothing is boosted.
FEWEST = 30


def aipw(number: int, largest: int) -> Row:
    """Boosted AIPW on a random study; the difference of means where there are no covariates."""
    made = random_study(number, largest=largest)
    study = _cut(made.study)
    if _arm(study) < FEWEST:
        return {"refused": f"fewer than {FEWEST} records in an arm"}
    found = difference_of_means(study) if study.X is None else boosted_aipw(study, number)
    efficiency = made.efficiency * np.sqrt(made.study.n / study.n)
    return interval(found) | {"efficiency": float(efficiency)}


def dr_learner(number: int, largest: int) -> Row:
    """Root mean square error of a boosted DR-learner over a study's covariates, out of fold in both stages."""
    study = _cut(random_study(number, largest=largest).study)
    if study.X is None or _arm(study) < FEWEST:
        return {"refused": f"no covariates, or fewer than {FEWEST} records in an arm"}
    scores, effects = boosted_scores(study, number), np.empty(study.n)
    # Scores are far noisier than outcomes: smaller trees, larger leaves, shorter steps.
    options: dict[str, Any] = {"num_leaves": 7, "min_data_in_leaf": max(20, study.n // 100), "learning_rate": 0.05}
    for train, test in folds(study.n, number + 1):
        effects[test] = boosted(study.X, scores, train, test, **options)
    assert study.effects is not None
    return {"error": float(np.sqrt(np.mean((effects - study.effects)[:JUDGED] ** 2)))}


def interval(found: Estimate) -> Row:
    """An estimate with its 95 % interval."""
    half = ndtri(0.975) * found.se
    return {"estimate": found.estimate, "low": float(found.estimate - half), "high": float(found.estimate + half)}


def _arm(study: Study) -> int:
    return int(min(study.T.sum(), study.n - study.T.sum()))


def _cut(study: Study) -> Study:
    """The first records of a study."""
    if study.n <= MOST:
        return study
    some = slice(None, MOST)
    return replace(
        study,
        X=None if study.X is None else study.X[some],
        T=study.T[some],
        Y=study.Y[some],
        effects=None if study.effects is None else study.effects[some],
        propensity=None if study.propensity is None else study.propensity[some],
    )
