"""The view in which larger outcomes count as a cap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.data.bounds import Bounds
from discreet.data.records import Chunk


@dataclass(frozen=True, slots=True)
class Capped:
    """Larger outcomes count as a cap: to all that is asked of the records, the range ends there."""

    cap: float
    at: float
    """the cap on [-1, 1], as the source encodes it"""

    @classmethod
    def of(cls, declared: Bounds, cap: float) -> Capped:
        """A cap above the lower end of the outcome's range, and no higher than its upper end."""
        return cls(cap, float(declared.outcome_range.encode(np.array([cap], dtype=np.float64))[0]))

    @property
    def keeps_arms(self) -> bool:
        """Outcomes alone are others."""
        return True

    def bounds(self, declared: Bounds) -> Bounds:
        """The range ends at the cap."""
        return declared.capped(self.cap)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records with their outcomes capped."""
        # From -1 up to the cap, mapped onto [-1, 1] anew.
        below = np.minimum((chunk.y + 1.0) / ((self.at + 1.0) / 2.0) - 1.0, 1.0)
        return chunk._replace(y=np.where(chunk.y >= self.at, 1.0, below))
