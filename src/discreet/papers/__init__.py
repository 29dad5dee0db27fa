"""Published systems as their authors wrote them, beside what discreet can prove about them.

A guarantee that only a paper states has ``status="claimed"``, and fitting warns; where an option has a proof of its
own, its guarantee names the file.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from discreet.exceptions import MissingExtra

_HOME = {
    "ADUM": "adum.estimator",
    "DPCATE": "dp_cate.pointwise",
    "AdditiveLearner": "meta_learners.additive",
    "AnswersRelease": "dp_cate.release",
    "BaseLearner": "meta_learners.base_learner",
    "DPCATEFunction": "dp_cate.function",
    "DRLearner": "meta_learners.estimators",
    "EBMLearner": "meta_learners.ebm",
    "FunctionRelease": "dp_cate.release",
    "LearnerRelease": "meta_learners.release",
    "LinearLearner": "meta_learners.linear",
    "LogisticLearner": "meta_learners.linear",
    "Loss": "common.losses",
    "PointRelease": "propensity.release",
    "PrivATE": "private_ate.estimator",
    "PrivateKMeans": "adum.estimator",
    "PropensityIPTW": "propensity.estimator",
    "PublicLearner": "meta_learners.own",
    "RLearner": "meta_learners.estimators",
    "ReleasedModel": "meta_learners.release",
    "SLearner": "meta_learners.estimators",
    "SecretFunction": "dp_cate.interactive",
    "SegmentRelease": "adum.release",
    "TLearner": "meta_learners.estimators",
    "Task": "meta_learners.base_learner",
    "Term": "meta_learners.release",
    "TwoModel": "adum.two_model",
    "TwoModelRelease": "adum.two_model_release",
    "UnprovedClaim": "common.claims",
    "Weight": "dp_cate.equations",
    "XLearner": "meta_learners.x_learner",
    "anonymised_effects": "dp_cate.k_anonymity",
    "huber": "common.losses",
    "loss_of": "common.losses",
}
# Modules of functions that a paper defines.
_MODULES = {
    "aggregates": "adum.aggregates",
    "baselines": "private_ate.baselines",
    "error_bound": "adum.error_bound",
    "functional_mechanism": "adum.functional_mechanism",
    "iptw": "propensity.iptw",
    "k_anonymity": "dp_cate.k_anonymity",
    "logistic": "propensity.logistic",
}

# What trains scikit-learn's models; the other methods and all releases do without it.
_TRAINING = {"DPCATE", "DPCATEFunction", "PrivATE", "SecretFunction", "anonymised_effects", "baselines", "k_anonymity"}

__all__ = [
    "ADUM",
    "DPCATE",
    "AdditiveLearner",
    "AnswersRelease",
    "BaseLearner",
    "DPCATEFunction",
    "DRLearner",
    "EBMLearner",
    "FunctionRelease",
    "LearnerRelease",
    "LinearLearner",
    "LogisticLearner",
    "Loss",
    "PointRelease",
    "PrivATE",
    "PrivateKMeans",
    "PropensityIPTW",
    "PublicLearner",
    "RLearner",
    "ReleasedModel",
    "SLearner",
    "SecretFunction",
    "SegmentRelease",
    "TLearner",
    "Task",
    "Term",
    "TwoModel",
    "TwoModelRelease",
    "UnprovedClaim",
    "Weight",
    "XLearner",
    "aggregates",
    "anonymised_effects",
    "baselines",
    "error_bound",
    "functional_mechanism",
    "huber",
    "iptw",
    "k_anonymity",
    "logistic",
    "loss_of",
]

if TYPE_CHECKING:
    from discreet.estimators.clustering import PrivateKMeans
    from discreet.papers.adum import aggregates, error_bound, functional_mechanism
    from discreet.papers.adum.estimator import ADUM
    from discreet.papers.adum.release import SegmentRelease
    from discreet.papers.adum.two_model import TwoModel
    from discreet.papers.adum.two_model_release import TwoModelRelease
    from discreet.papers.common.claims import UnprovedClaim
    from discreet.papers.common.losses import Loss, huber, loss_of
    from discreet.papers.dp_cate import k_anonymity
    from discreet.papers.dp_cate.equations import Weight
    from discreet.papers.dp_cate.function import DPCATEFunction
    from discreet.papers.dp_cate.interactive import SecretFunction
    from discreet.papers.dp_cate.k_anonymity import anonymised_effects
    from discreet.papers.dp_cate.pointwise import DPCATE
    from discreet.papers.dp_cate.release import AnswersRelease, FunctionRelease
    from discreet.papers.meta_learners.additive import AdditiveLearner
    from discreet.papers.meta_learners.base_learner import BaseLearner, Task
    from discreet.papers.meta_learners.ebm import EBMLearner
    from discreet.papers.meta_learners.estimators import DRLearner, RLearner, SLearner, TLearner
    from discreet.papers.meta_learners.linear import LinearLearner, LogisticLearner
    from discreet.papers.meta_learners.own import PublicLearner
    from discreet.papers.meta_learners.release import LearnerRelease, ReleasedModel, Term
    from discreet.papers.meta_learners.x_learner import XLearner
    from discreet.papers.private_ate import baselines
    from discreet.papers.private_ate.estimator import PrivATE
    from discreet.papers.propensity import iptw, logistic
    from discreet.papers.propensity.estimator import PropensityIPTW
    from discreet.papers.propensity.release import PointRelease


def require_learners(what: str) -> None:
    """Refuse, in one sentence, what trains scikit-learn's models where it is not installed."""
    if find_spec("sklearn") is None:
        raise MissingExtra(f"{what} needs scikit-learn: install it with pip install 'discreet[papers]'.")


def __getattr__(name: str) -> object:
    if name in _TRAINING:
        require_learners(f"papers.{name}")
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
