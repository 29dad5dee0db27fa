"""Estimators of treatment effects."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.estimators.registry import REGISTRY

__all__ = ["REGISTRY"]


def __getattr__(name: str) -> object:
    # On first use, so that a module of this package can be imported without the table of all of them.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.registry"), name)
