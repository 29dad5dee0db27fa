"""Request keys as they were before estimators had ids, so that what was paid for then is not paid for again.

Frozen: neither table is ever changed, whatever becomes of the classes. Old keys named a class by its module and held
all of its constructor's parameters; values that are dataclasses went in by class name with all of their fields.
"""

from __future__ import annotations

from typing import NamedTuple


class LegacyName(NamedTuple):
    """What an old key called a class, and the parameters (or fields) that it held."""

    name: str
    parameters: tuple[str, ...]


_AVERAGE = ("bounds", "delta", "epsilon", "neighbours", "propensity")
_TWO_STAGE = ("base", "bounds", "clip", "delta", "epsilon", "random_state", "ratios", "shuffle", "trim")

ESTIMATORS = {
    "discreet/ate": LegacyName("discreet.ate.ATE", _AVERAGE),
    "discreet/difference-in-means": LegacyName("discreet.ate.DifferenceInMeans", _AVERAGE),
    "discreet/cate": LegacyName("discreet.cate.CATE", (*_AVERAGE, "correction")),
    "discreet/uplift": LegacyName("discreet.uplift.Uplift", (*_AVERAGE, "by")),
    "discreet/papers/adum": LegacyName(
        "discreet.papers.adum.ADUM", ("bounds", "by", "epsilon", "means", "neighbours", "outcome_bound")
    ),
    "discreet/papers/dp-cate": LegacyName(
        "discreet.papers.dp_cate.DPCATE",
        (
            "bounds",
            "delta",
            "epsilon",
            "learner",
            "model_propensity",
            "model_regression",
            "normalised",
            "points",
            "propensity",
            "random_state",
            "stage2",
            "starts",
            "supremum",
        ),
    ),
    "discreet/papers/dp-cate-function": LegacyName(
        "discreet.papers.dp_cate_function.DPCATEFunction",
        (
            "as_printed",
            "bandwidth",
            "basis",
            "bounds",
            "calibration",
            "delta",
            "epsilon",
            "knee",
            "lam",
            "learner",
            "loss",
            "model_propensity",
            "model_regression",
            "penalty",
            "propensity",
            "random_state",
            "scaling",
            "split",
            "state",
        ),
    ),
    "discreet/papers/s-learner": LegacyName(
        "discreet.papers.learners.SLearner", ("base", "bounds", "delta", "epsilon")
    ),
    "discreet/papers/t-learner": LegacyName(
        "discreet.papers.learners.TLearner",
        ("base", "bounds", "delta", "epsilon", "random_state", "ratios", "shuffle"),
    ),
    "discreet/papers/dr-learner": LegacyName("discreet.papers.learners.DRLearner", _TWO_STAGE),
    "discreet/papers/r-learner": LegacyName("discreet.papers.learners.RLearner", _TWO_STAGE),
    "discreet/papers/propensity-iptw": LegacyName(
        "discreet.papers.propensity.PropensityIPTW",
        (
            "bounds",
            "delta",
            "epsilon",
            "gradient_norm",
            "lam",
            "m",
            "norm_bound",
            "perturbation",
            "protect",
            "random_state",
            "shuffle",
            "xi",
        ),
    ),
    "discreet/papers/private-ate": LegacyName(
        "discreet.papers.private_ci.PrivATE",
        (
            "bounds",
            "calibration",
            "clip",
            "delta",
            "delta1",
            "delta2",
            "epsilon",
            "epsilon1",
            "epsilon2",
            "model_propensity",
            "model_regression",
            "nuisance",
            "propensity",
            "random_state",
            "split",
            "starts",
            "supremum",
        ),
    ),
    "discreet/papers/two-model": LegacyName(
        "discreet.papers.two_model.TwoModel",
        ("bounds", "degree", "epsilon", "gradient_norm", "lam", "model", "neighbours", "perturbation"),
    ),
    "discreet/papers/subsampled-difference": LegacyName(
        "discreet.papers.baselines.SubsampledDifference", ("bounds", "delta", "epsilon", "groups", "random_state")
    ),
}
"""Estimators by ``method_id``."""

VALUES = {"discreet/private-k-means": LegacyName("PrivateKMeans", ("clusters", "columns", "random_state", "rounds"))}
"""Dataclasses that parameters may hold, by ``method_id``."""
