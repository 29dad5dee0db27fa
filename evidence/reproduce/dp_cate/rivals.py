"""What stands beside DP-CATE: DP-EBM and k-anonymity (supplement E of its paper), and this project's own estimator."""

from __future__ import annotations

import warnings

import numpy as np

from discreet.data._arrays import Float
from discreet.datasets.study import Study
from discreet.estimators.cate import CATE
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.dp_cate.k_anonymity import Aggregate, anonymised_effects
from discreet.papers.meta_learners.estimators import DRLearner
from evidence.reproduce.dp_cate.runs import BUDGETS, DELTA, Split, model_of, rms
from evidence.reproduce.meta_learners.ebm_without_bounds import effects_without_bounds
from evidence.reproduce.targets import Row

KS = (2, 10, 50, 100)
ANONYMOUS_STAGES = ("forest", "nn")
AGGREGATES: tuple[Aggregate, ...] = ("covariates", "outcomes")
# DP-EBM has no switch for its noise: with this budget none is left that could be seen.
NO_NOISE = 500.0


def anonymous(split: Split, replication: int) -> Row:
    """Errors of the R-learner after Mondrian, for each k."""
    errors: Row = {}
    for stage in ANONYMOUS_STAGES:
        model = model_of(split, "R", replication).set_params(stage2=stage)
        given = {"X": split.X, "queries": split.queries}
        errors[stage] = {
            aggregate: {
                str(k): rms(anonymised_effects(model, split.Y, split.T, **given, k=k, aggregate=aggregate), split.truth)
                for k in KS
            }
            for aggregate in AGGREGATES
        }
    return errors


def boosted(split: Split, replication: int) -> Row:
    """Errors of a DR-learner of private boosting machines, and how far it is from one without noise.

    With all bounds declared, and without any, as the machines' authors ran it.
    """
    row: Row = {}
    for name, learn in {"ebm": _boosted, "ebm-unbounded": _unbounded}.items():
        found = {f"{e:g}": learn(split, e, replication) for e in BUDGETS}
        found["exact"] = learn(split, NO_NOISE, replication)
        row[name] = {
            "error": {key: rms(effects, split.truth) for key, effects in found.items()},
            "distance": {key: rms(effects, found["exact"]) for key, effects in found.items()},
        }
    return row


def flagship(split: Split) -> Row:
    """Errors of `discreet.CATE` at each budget."""
    errors = {}
    for epsilon in BUDGETS:
        model = CATE(epsilon=epsilon, delta=DELTA, bounds=split.bounds).fit(split.Y, split.T, X=split.X)
        errors[f"{epsilon:g}"] = rms(np.asarray(model.effect(split.queries)), split.truth)
    return {"discreet": {"error": errors}}


def _boosted(split: Split, epsilon: float, replication: int) -> Float:
    model = DRLearner(epsilon=epsilon, delta=DELTA, bounds=split.bounds, base="ebm", random_state=replication)
    with warnings.catch_warnings():
        # The page says it.
        warnings.simplefilter("ignore", UnprovedClaim)
        return np.asarray(model.fit(split.Y, split.T, X=split.X).effect(split.queries))


def _unbounded(split: Split, epsilon: float, replication: int) -> Float:
    study = Study(name="dataset 1", X=split.X, T=split.T, Y=split.Y, bounds=split.bounds)
    return effects_without_bounds(study, split.queries, "DR", epsilon=epsilon, delta=DELTA, seed=replication)
