"""Treatment effects from sensitive records, published under differential privacy."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Public names are imported on first use, so that `import discreet` and `discreet --help` start at once.
_HOME = {
    "Bounds": "bounds",
    "BudgetExceeded": "errors",
    "DiscreetError": "errors",
    "InvalidBudget": "errors",
    "InvalidInput": "errors",
    "Levels": "columns",
    "MissingBounds": "errors",
    "MissingExtra": "errors",
    "NotFitted": "errors",
    "Range": "columns",
    "UnsupportedRelease": "errors",
}

__all__ = [
    "Bounds",
    "BudgetExceeded",
    "DiscreetError",
    "InvalidBudget",
    "InvalidInput",
    "Levels",
    "MissingBounds",
    "MissingExtra",
    "NotFitted",
    "Range",
    "UnsupportedRelease",
    "__version__",
]

if TYPE_CHECKING:
    from discreet.bounds import Bounds
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


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
