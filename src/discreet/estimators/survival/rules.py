"""Public rules of effects on a time to event: which share the table has, and how fine its grid of times is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, sqrt
from numbers import Real
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput

# More intervals than these are refused: a table of noise.
MOST_TIMES = 200
# Numerical: a horizon is at least this part of the outcome's range: nearer to zero, encoded times lose digits.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRule:
    """The table of times and events by arm.

    Parameters
    ----------
    share
        Its share of what the count leaves of the budget; the effect has the rest.
    per_root
        Intervals of a grid that nobody declared, times the root of n mu.
    fewest, most
        There are no fewer of them, and no more.
    """

    share: float
    per_root: float
    fewest: int
    most: int
    provenance: str

    def times(self, declared: tuple[float, ...] | None, horizon: float, information: float) -> Float:
        """Ends of the grid's intervals: those that were declared up to the horizon, or as many as n mu supports."""
        if declared is not None:
            return np.array([*(time for time in declared if time < horizon), horizon], dtype=np.float64)
        count = int(min(max(self.per_root * sqrt(information), self.fewest), self.most))
        return np.linspace(0.0, horizon, count + 1)[1:]


# Choice: chosen as the provenance says.
RULE = TableRule(
    share=0.3,
    per_root=0.5,
    fewest=4,
    most=48,
    provenance="Chosen by hand: noise of the table reaches the effect only in products of errors, so that its share "
    "serves the curves; more intervals make these noisier, and fewer make the allowance for the grid larger.",
)


# Choice: in a trial whose design is not declared, share of the number of treated in what the table leaves. By hand.
TREATED_SHARE = 0.05


def check_times(times: Any, horizon: Any, bounds: Bounds) -> tuple[float, ...] | None:
    """Refuse a horizon or a grid that the declared range of times does not hold."""
    if bounds.binary or bounds.outcome[0] != 0.0:
        raise InvalidInput(
            "SurvivalEffect needs Bounds(outcome=(0, longest)), the range of the times: declare it from zero."
        )
    longest = bounds.outcome[1]
    if not _number(horizon) or not _LEAST * longest <= horizon <= longest:
        raise InvalidInput(
            f"horizon must be a time above zero and up to {longest:g}, the end of the declared range of the times: "
            "choose one inside."
        )
    if times is None:
        return None
    if isinstance(times, str | bytes) or not hasattr(times, "__iter__") or not all(map(_number, times)):
        raise InvalidInput("times must be a list of numbers, the ends of the grid's intervals: give numbers.")
    grid = [float(time) for time in times]
    if not grid or grid[0] <= 0.0 or any(late <= early for early, late in pairwise(grid)):
        raise InvalidInput("times must increase, and begin above zero: sort them, and give each once.")
    if grid[-1] > longest:
        raise InvalidInput("times must lie in the declared range of the times: leave out what is beyond.")
    if len(grid) > MOST_TIMES:
        raise InvalidInput(f"times has more than {MOST_TIMES} intervals, most of which would be noise: take fewer.")
    return tuple(grid)


def _number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and isfinite(float(value))
