"""Treatment effects from sensitive records, published under differential privacy."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Public names are imported on first use, so that `import discreet` and `discreet --help` start at once.
_HOME = {
    "ATE": "estimators.ate",
    "CATE": "estimators.cate",
    "Bounds": "data.bounds",
    "Budget": "privacy.budget",
    "BudgetExceeded": "exceptions",
    "Curve": "releases.function",
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
    "MissingBounds": "exceptions",
    "MissingExtra": "exceptions",
    "NotFitted": "exceptions",
    "Overlap": "releases.diagnostics.released",
    "Plan": "estimators.planning",
    "PrivateKMeans": "estimators.clustering",
    "Range": "data.columns",
    "Release": "releases.average",
    "Sensitivity": "releases.diagnostics.sensitivity",
    "Shares": "privacy.budget",
    "SourceFailed": "exceptions",
    "Uncertainty": "releases.average",
    "UnsupportedRelease": "exceptions",
    "Uplift": "estimators.uplift",
    "UpliftCurve": "releases.segments",
    "UpliftRelease": "releases.segments",
    "guide": "estimators.planning.guide",
    "load": "releases",
    "parallel": "privacy.guarantee",
    "plan": "estimators.planning",
    "render_page": "releases.report",
    "save_page": "releases.report",
    "sequential": "privacy.guarantee",
}

__all__ = [
    "ATE",
    "CATE",
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "Curve",
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
    "MissingBounds",
    "MissingExtra",
    "NotFitted",
    "Overlap",
    "Plan",
    "PrivateKMeans",
    "Range",
    "Release",
    "Sensitivity",
    "Shares",
    "SourceFailed",
    "Uncertainty",
    "UnsupportedRelease",
    "Uplift",
    "UpliftCurve",
    "UpliftRelease",
    "__version__",
    "audit",
    "guide",
    "load",
    "parallel",
    "plan",
    "render_page",
    "save_page",
    "sequential",
]

if TYPE_CHECKING:
    from discreet.audit import audit
    from discreet.data.bounds import Bounds
    from discreet.data.columns import Levels, Range
    from discreet.estimators.ate import ATE
    from discreet.estimators.cate import CATE
    from discreet.estimators.clustering import PrivateKMeans
    from discreet.estimators.difference_in_means import DifferenceInMeans
    from discreet.estimators.planning import Plan, plan
    from discreet.estimators.planning.guide import guide
    from discreet.estimators.uplift import Uplift
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
    from discreet.releases.average import Release, Uncertainty
    from discreet.releases.diagnostics.released import Overlap
    from discreet.releases.diagnostics.sensitivity import Sensitivity
    from discreet.releases.function import Curve, EffectRelease
    from discreet.releases.report import render_page, save_page
    from discreet.releases.segments import UpliftCurve, UpliftRelease


# Modules that are reached as attributes of the package, `discreet.testing.seeded_noise`; `audit` can be called.
_SUBPACKAGES = {"audit", "datasets", "papers", "testing"}


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
