"""Treatment effects from sensitive records, published under differential privacy."""

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
    "PrivateKMeans": "estimators.clustering",
    "Range": "data.columns",
    "Release": "releases.average",
    "Shares": "privacy.budget",
    "UnsupportedRelease": "exceptions",
    "Uplift": "estimators.uplift",
    "UpliftRelease": "releases.segments",
    "load": "releases",
    "plan": "estimators.planning",
}

__all__ = [
    "ATE",
    "CATE",
    "Bounds",
    "Budget",
    "BudgetExceeded",
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
    "PrivateKMeans",
    "Range",
    "Release",
    "Shares",
    "UnsupportedRelease",
    "Uplift",
    "UpliftRelease",
    "__version__",
    "audit",
    "load",
    "plan",
]

if TYPE_CHECKING:
    from discreet.audit import audit
    from discreet.data.bounds import Bounds
    from discreet.data.columns import Levels, Range
    from discreet.estimators.ate import ATE
    from discreet.estimators.cate import CATE
    from discreet.estimators.clustering import PrivateKMeans
    from discreet.estimators.difference_in_means import DifferenceInMeans
    from discreet.estimators.planning import plan
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
        UnsupportedRelease,
    )
    from discreet.ledger import Ledger
    from discreet.privacy.budget import Budget, Shares
    from discreet.privacy.guarantee import Guarantee
    from discreet.releases import load
    from discreet.releases.average import Release
    from discreet.releases.function import EffectRelease
    from discreet.releases.segments import UpliftRelease


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
