"""Published systems as their authors wrote them, beside what discreet can prove about them.

A guarantee that only a paper states has ``status="claimed"``, and fitting warns; where an option has a proof of its
own, its guarantee names the file.
"""

from importlib import import_module
from typing import TYPE_CHECKING

_HOME = {
    "ADUM": "adum.estimator",
    "DPCATE": "dp_cate.pointwise",
    "DPCATEFunction": "dp_cate.function",
    "DRLearner": "meta_learners.estimators",
    "PrivATE": "private_ate.estimator",
    "PrivateKMeans": "adum.estimator",
    "PropensityIPTW": "propensity.estimator",
    "RLearner": "meta_learners.estimators",
    "SLearner": "meta_learners.estimators",
    "TLearner": "meta_learners.estimators",
    "TwoModel": "adum.two_model",
    "UnprovedClaim": "common.claims",
    "anonymised_effects": "dp_cate.k_anonymity",
}

__all__ = [
    "ADUM",
    "DPCATE",
    "DPCATEFunction",
    "DRLearner",
    "PrivATE",
    "PrivateKMeans",
    "PropensityIPTW",
    "RLearner",
    "SLearner",
    "TLearner",
    "TwoModel",
    "UnprovedClaim",
    "anonymised_effects",
    "baselines",
]

if TYPE_CHECKING:
    from discreet.estimators.clustering import PrivateKMeans
    from discreet.papers.adum.estimator import ADUM
    from discreet.papers.adum.two_model import TwoModel
    from discreet.papers.common.claims import UnprovedClaim
    from discreet.papers.dp_cate.function import DPCATEFunction
    from discreet.papers.dp_cate.k_anonymity import anonymised_effects
    from discreet.papers.dp_cate.pointwise import DPCATE
    from discreet.papers.meta_learners.estimators import DRLearner, RLearner, SLearner, TLearner
    from discreet.papers.private_ate import baselines
    from discreet.papers.private_ate.estimator import PrivATE
    from discreet.papers.propensity.estimator import PropensityIPTW


def __getattr__(name: str) -> object:
    if name == "baselines":
        return import_module(f"{__name__}.private_ate.baselines")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
