"""Treatment effects from sensitive records, published under differential privacy."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Public names are imported on first use, so that `import discreet` and `discreet --help` start at once.
_HOME = {
    "Bounds": "bounds",
    "Budget": "budget",
    "BudgetExceeded": "errors",
    "DiscreetError": "errors",
    "Guarantee": "guarantee",
    "InvalidBudget": "errors",
    "InvalidInput": "errors",
    "Levels": "columns",
    "MissingBounds": "errors",
    "MissingExtra": "errors",
    "NotFitted": "errors",
    "Range": "columns",
    "Shares": "budget",
    "UnsupportedRelease": "errors",
}

__all__ = [
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "DiscreetError",
    "Guarantee",
    "InvalidBudget",
    "InvalidInput",
    "Levels",
    "MissingBounds",
    "MissingExtra",
    "NotFitted",
    "Range",
    "Shares",
    "UnsupportedRelease",
    "__version__",
]

if TYPE_CHECKING:
    from discreet.bounds import Bounds
    from discreet.budget import Budget, Shares
    from discreet.columns import Levels, Range
    from discreet.errors import (
        BudgetExceeded,
        DiscreetError,
        InvalidBudget,
        InvalidInput,
        MissingBounds,
        MissingExtra,
        NotFitted,
        UnsupportedRelease,
    )
    from discreet.guarantee import Guarantee


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
