"""Records some of whose outcomes are missing, as those who ask about the missing ones see them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.data.views.presence import PRESENT

# Choice: an outcome is taken to be observed with at least this probability, and at most that one. By hand.
_OVERLAP = (0.05, 0.999)


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Records as declared: what missing outcomes were read as is nobody's, and a design is not that of the observed."""

    @property
    def keeps_arms(self) -> bool:
        """Every record stays in its arm."""
        return True

    def bounds(self, declared: Bounds) -> Bounds:
        """Those that were declared."""
        return replace(declared, outcome_fill=None)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records of a chunk."""
        return chunk._replace(e=None)


@dataclass(frozen=True, slots=True)
class WhetherObserved:
    """Records with an outcome in one arm, and those without one in the other, whatever their treatment.

    Outcomes that are missing count as the middle of their range. Models of treatment are then of whether an outcome is
    observed, with the covariates that matter to it and to the outcome.
    """

    @property
    def keeps_arms(self) -> bool:
        """Arms are others than those that engines count by."""
        return False

    def bounds(self, declared: Bounds) -> Bounds:
        """The same outcome, and how likely it is to be observed."""
        return replace(declared, treatment=None, propensity=_OVERLAP)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records of a chunk."""
        there = chunk.more[PRESENT]
        return chunk._replace(y=np.where(there > 0.0, chunk.y, 0.0), t=there, e=None)
