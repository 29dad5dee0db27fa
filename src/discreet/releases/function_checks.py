"""What a release of an effect function refuses: levels, windows, sizes and rows that no such release has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from discreet.data.bounds import Levels, Range
from discreet.exceptions import InvalidInput
from discreet.postprocessing.basis import Size
from discreet.postprocessing.marginals import NARROWEST, Window


def checked_level(alpha: float) -> float:
    """A level of an interval."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InvalidInput("alpha must lie between 0 and 1; 0.05 asks for a 95 % interval.")
    return alpha


def checked_limits(ends: Any) -> tuple[float, float]:
    """Lowest and highest effect of a function."""
    low, high = map(float, ends)
    if not -math.inf < low <= high < math.inf:
        raise InvalidInput("limits must be two finite numbers, the lower first; check the file.")
    return low, high


def fits(window: Window | None, column: Levels | Range) -> bool:
    """Whether there is no window, or one of a range: inside it, and no narrower than two rounds make it."""
    if window is None:
        return True
    middle, half = window
    return isinstance(column, Range) and half >= NARROWEST - 1e-9 and abs(middle) + half <= 1.0 + 1e-9


def read_size(facts: Mapping[str, Any]) -> Size:
    """A size whose fields have the right types."""
    size = Size(**facts)
    for part in fields(size):
        expected = int if part.name in {"degree", "jumps"} else bool
        if type(getattr(size, part.name)) is not expected:
            raise InvalidInput("size has a field of the wrong type; check the file.")
    return size


def some_rows(X: Any) -> Any:
    """Rows to average over, if there are any."""
    if hasattr(X, "__len__") and not len(X):
        raise InvalidInput("X has no rows, so that there is nothing to average over: give at least one.")
    return X
