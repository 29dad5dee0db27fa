"""Parts of an effect function's release: its average as rounds of its own measured it, and what files may hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.exceptions import InvalidInput
from discreet.releases.average import Release, Uncertainty


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAverage:
    """An average effect and where its error comes from, in the outcome's unit: as in a `Release`.

    Parameters
    ----------
    estimate
        The average of the doubly robust score.
    uncertainty
        Parts of its error.
    """

    estimate: float
    uncertainty: Uncertainty

    def __post_init__(self) -> None:
        parts = self.uncertainty.to_dict().values()
        if not all(map(math.isfinite, (self.estimate, *parts))) or min(parts) < 0.0:
            raise InvalidInput("a measured average must be finite, its errors not negative; check the file.")

    @classmethod
    def of(cls, release: Release) -> MeasuredAverage:
        """That of a release of `ATE`."""
        return cls(estimate=release.estimate, uncertainty=release.uncertainty)

    def interval(self, alpha: float, most: float) -> tuple[float, float]:
        """As `Release.interval`; no effect can exceed ``most``, the width of the outcome's range."""
        low, high = self.uncertainty.interval(self.estimate, alpha)
        return min(max(low, -most), self.estimate), max(min(high, most), self.estimate)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"estimate": self.estimate, "uncertainty": self.uncertainty.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> MeasuredAverage:
        """Read it back."""
        if set(plain) != {"estimate", "uncertainty"}:
            raise InvalidInput("a measured average has an estimate and its uncertainty; check the file.")
        return cls(estimate=float(plain["estimate"]), uncertainty=Uncertainty.from_dict(plain["uncertainty"]))


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


def some_rows(X: Any) -> Any:
    """Rows to average over, if there are any."""
    if hasattr(X, "__len__") and not len(X):
        raise InvalidInput("X has no rows, so that there is nothing to average over: give at least one.")
    return X
