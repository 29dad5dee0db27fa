"""Requests whose ledger keys are frozen: data without a random generator, and one call for each kind of parameter."""

import warnings

import numpy as np
import pandas as pd

from discreet import ATE, CATE, Bounds, DifferenceInMeans, PrivateKMeans, Uplift, papers

COVARIATES = {"age": (0, 1), "bp": (0, 1)}
BOUNDS = Bounds(outcome=(0, 1), covariates=COVARIATES, propensity=(0.1, 0.9))
# The first argument of every call that is answered from the golden ledger.
EPSILON = 1.0


def study(n=80):
    """Outcome, treatment and covariates of a small trial, the same on every machine."""
    k = np.arange(n)
    X = pd.DataFrame({"age": k * 37 % 80 / 80, "bp": k * 53 % 81 / 81})
    T = pd.Series(k % 2, name="treated")
    return pd.Series((k * 29 % 7 < 3 + k % 2).astype(float), name="died"), T, X


def calls():
    """Estimators by the name of their data set in the golden ledger."""
    both = {"epsilon": EPSILON, "bounds": BOUNDS}
    gaussian = both | {"delta": 1e-6}
    return {
        "ate": ATE(**gaussian),
        "ate, known propensity": ATE(**gaussian, propensity=0.5),
        "difference in means, pure": DifferenceInMeans(**both),
        "difference in means": DifferenceInMeans(**gaussian),
        "cate": CATE(**gaussian),
        "cate, DR": CATE(**gaussian, correction="DR"),
        "uplift": Uplift(**gaussian, by={"age": 2, "bp": [0.0, 0.5, 1.0]}),
        "uplift, k-means": Uplift(**gaussian, by=PrivateKMeans(clusters=2, columns=("age",))),
        "adum": papers.ADUM(**both, by={"age": 2}),
        "adum, k-means": papers.ADUM(**both, by=PrivateKMeans(clusters=2)),
        "two models": papers.TwoModel(**both, degree=2),
        "propensity": papers.PropensityIPTW(**both, delta=1e-5, xi=0.1, random_state=0),
        "private ATE": papers.PrivATE(**both, delta=1e-5, supremum="closed-form", random_state=0),
        "S-learner": papers.SLearner(**both, delta=1e-5),
        "T-learner": papers.TLearner(**both, delta=1e-5, ratios={"treated": 0.5, "control": 0.5}, random_state=0),
        "DR-learner": papers.DRLearner(**both, delta=1e-5, random_state=0),
        "R-learner": papers.RLearner(**both, delta=1e-5, random_state=0),
        "subsampled difference": papers.baselines.SubsampledDifference(**both, random_state=0),
        "DP-CATE function": papers.DPCATEFunction(**both, delta=1e-5, basis=5, random_state=0),
    }


def fit(estimator, **ledger):
    """Fit without the warning about claims."""
    Y, T, X = study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(Y, T, X=X, **ledger)
