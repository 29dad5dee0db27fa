"""Treatment effects from sensitive records, published under differential privacy."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

# Public names are imported on first use, so that `import discreet` and `discreet --help` start at once.
_HOME = {
    "ATC": "estimators.weighted.atc",
    "ATE": "estimators.ate",
    "ArmSegmentsRelease": "releases.arms.segments",
    "ArmsRelease": "releases.arms.release",
    "ATO": "estimators.weighted.ato",
    "ATT": "estimators.weighted.att",
    "CATE": "estimators.cate",
    "LATE": "estimators.natural_experiments.late",
    "Bounds": "data.bounds",
    "Budget": "privacy.budget",
    "BudgetExceeded": "exceptions",
    "CombinedRelease": "releases.combined.release",
    "Contrast": "releases.arms.release",
    "Curve": "releases.function",
    "DifferenceInDifferences": "estimators.natural_experiments.did",
    "DifferenceInMeans": "estimators.difference_in_means",
    "DiscreetError": "exceptions",
    "EffectRelease": "releases.function",
    "Guarantee": "privacy.guarantee",
    "InvalidBudget": "exceptions",
    "InvalidInput": "exceptions",
    "Ledger": "ledger",
    "LedgerCorrupt": "exceptions",
    "LedgerRefused": "exceptions",
    "LedgerUnavailable": "exceptions",
    "Levels": "data.columns",
    "LocalEffectRelease": "releases.local_effects.release",
    "MissingBounds": "exceptions",
    "MissingExtra": "exceptions",
    "NotFitted": "exceptions",
    "Overlap": "releases.diagnostics.released",
    "Plan": "estimators.planning",
    "Policy": "releases.policies.policy",
    "PolicyValue": "estimators.policies.value",
    "PolicyValueRelease": "releases.policies.value",
    "PrivateKMeans": "estimators.clustering",
    "Range": "data.columns",
    "Release": "releases.average",
    "SegmentContrast": "releases.arms.segments",
    "Sensitivity": "releases.diagnostics.sensitivity",
    "Shares": "privacy.budget",
    "SourceFailed": "exceptions",
    "SuggestedBounds": "releases.suggested.release",
    "SurvivalEffect": "estimators.survival.effect",
    "SurvivalRelease": "releases.survival.release",
    "Uncertainty": "releases.average",
    "UnsupportedRelease": "exceptions",
    "Uplift": "estimators.uplift",
    "UpliftCurve": "releases.segments",
    "UpliftRelease": "releases.segments",
    "combine": "releases.combined.combining",
    "guide": "estimators.planning.guide",
    "load": "releases",
    "parallel": "privacy.guarantee",
    "plan": "estimators.planning",
    "render_page": "releases.report",
    "save_page": "releases.report",
    "sequential": "privacy.guarantee",
    "suggest_bounds": "estimators.suggestions.suggest",
}

__all__ = [
    "ATC",
    "ATE",
    "ATO",
    "ATT",
    "CATE",
    "LATE",
    "ArmSegmentsRelease",
    "ArmsRelease",
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "CombinedRelease",
    "Contrast",
    "Curve",
    "DifferenceInDifferences",
    "DifferenceInMeans",
    "DiscreetError",
    "EffectRelease",
    "Guarantee",
    "InvalidBudget",
    "InvalidInput",
    "Ledger",
    "LedgerCorrupt",
    "LedgerRefused",
    "LedgerUnavailable",
    "Levels",
    "LocalEffectRelease",
    "MissingBounds",
    "MissingExtra",
    "NotFitted",
    "Overlap",
    "Plan",
    "Policy",
    "PolicyValue",
    "PolicyValueRelease",
    "PrivateKMeans",
    "Range",
    "Release",
    "SegmentContrast",
    "Sensitivity",
    "Shares",
    "SourceFailed",
    "SuggestedBounds",
    "SurvivalEffect",
    "SurvivalRelease",
    "Uncertainty",
    "UnsupportedRelease",
    "Uplift",
    "UpliftCurve",
    "UpliftRelease",
    "__version__",
    "audit",
    "combine",
    "guide",
    "load",
    "parallel",
    "plan",
    "render_page",
    "save_page",
    "sequential",
    "suggest_bounds",
]

if TYPE_CHECKING:
    from discreet.audit import audit
    from discreet.data.bounds import Bounds
    from discreet.data.columns import Levels, Range
    from discreet.estimators.ate import ATE
    from discreet.estimators.cate import CATE
    from discreet.estimators.clustering import PrivateKMeans
    from discreet.estimators.difference_in_means import DifferenceInMeans
    from discreet.estimators.natural_experiments.did import DifferenceInDifferences
    from discreet.estimators.natural_experiments.late import LATE
    from discreet.estimators.planning import Plan, plan
    from discreet.estimators.planning.guide import guide
    from discreet.estimators.policies.value import PolicyValue
    from discreet.estimators.suggestions.suggest import suggest_bounds
    from discreet.estimators.survival.effect import SurvivalEffect
    from discreet.estimators.uplift import Uplift
    from discreet.estimators.weighted.atc import ATC
    from discreet.estimators.weighted.ato import ATO
    from discreet.estimators.weighted.att import ATT
    from discreet.exceptions import (
        BudgetExceeded,
        DiscreetError,
        InvalidBudget,
        InvalidInput,
        LedgerCorrupt,
        LedgerRefused,
        LedgerUnavailable,
        MissingBounds,
        MissingExtra,
        NotFitted,
        SourceFailed,
        UnsupportedRelease,
    )
    from discreet.ledger import Ledger
    from discreet.privacy.budget import Budget, Shares
    from discreet.privacy.guarantee import Guarantee, parallel, sequential
    from discreet.releases import load
    from discreet.releases.arms.release import ArmsRelease, Contrast
    from discreet.releases.arms.segments import ArmSegmentsRelease, SegmentContrast
    from discreet.releases.average import Release, Uncertainty
    from discreet.releases.combined.combining import combine
    from discreet.releases.combined.release import CombinedRelease
    from discreet.releases.diagnostics.released import Overlap
    from discreet.releases.diagnostics.sensitivity import Sensitivity
    from discreet.releases.function import Curve, EffectRelease
    from discreet.releases.local_effects.release import LocalEffectRelease
    from discreet.releases.policies.policy import Policy
    from discreet.releases.policies.value import PolicyValueRelease
    from discreet.releases.report import render_page, save_page
    from discreet.releases.segments import UpliftCurve, UpliftRelease
    from discreet.releases.suggested.release import SuggestedBounds
    from discreet.releases.survival.release import SurvivalRelease


# Modules that are reached as attributes of the package, `discreet.testing.seeded_noise`; `audit` can be called.
_SUBPACKAGES = {"audit", "client", "datasets", "papers", "testing"}


def __getattr__(name: str) -> object:
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Moved:
    """Says what to do about a module that is not here: pickles of earlier versions name the files they were made in."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Asked last, when nobody else knows the module."""
        if name.startswith(f"{__name__}."):
            raise ModuleNotFoundError(
                f"there is no module {name!r} in discreet {__version__}: import public names from discreet itself. "
                "If a pickle asks for it, unpickle it with the version that wrote it, save its release_ there and read "
                "that file with discreet.load.",
                name=name,
            )


sys.meta_path.append(_Moved)
