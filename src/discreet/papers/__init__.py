"""Published systems as their authors wrote them, beside what discreet can prove about them.

A guarantee that only a paper states has ``status="claimed"``, and fitting warns; where an option has a proof of its
own, its guarantee names the file.
"""

from importlib import import_module
from typing import TYPE_CHECKING

_HOME = {
    "ADUM": "adum",
    "DPCATE": "dp_cate",
    "DPCATEFunction": "dp_cate_function",
    "DRLearner": "learners",
    "PrivATE": "private_ci",
    "PrivateKMeans": "adum",
    "PropensityIPTW": "propensity",
    "RLearner": "learners",
    "SLearner": "learners",
    "TLearner": "learners",
    "TwoModel": "two_model",
    "UnprovedClaim": "claims",
    "anonymised_effects": "anonymity",
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
    from discreet.papers import baselines
    from discreet.papers.adum import ADUM
    from discreet.papers.anonymity import anonymised_effects
    from discreet.papers.claims import UnprovedClaim
    from discreet.papers.dp_cate import DPCATE
    from discreet.papers.dp_cate_function import DPCATEFunction
    from discreet.papers.learners import DRLearner, RLearner, SLearner, TLearner
    from discreet.papers.private_ci import PrivATE
    from discreet.papers.propensity import PropensityIPTW
    from discreet.papers.two_model import TwoModel


def __getattr__(name: str) -> object:
    if name == "baselines":
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
