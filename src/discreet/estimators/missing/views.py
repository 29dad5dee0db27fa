"""Records some of whose outcomes are missing, as those who ask about the missing ones see them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.data.bounds import Bounds
from discreet.data.presence import PRESENT
from discreet.data.records import Chunk
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import Outcome
from discreet.estimators.measurements.score import prognosis_range

# Public: an outcome is taken to be observed with at least this probability, and at most that one.
_OVERLAP = (0.02, 0.999)


@dataclass(frozen=True, slots=True)
class WithoutDesign:
    """Records without their known probabilities of treatment, which say nothing of those who are observed."""

    @property
    def keeps_arms(self) -> bool:
        """Every record stays in its arm."""
        return True

    def bounds(self, declared: Bounds) -> Bounds:
        """As declared."""
        return declared

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records of a chunk."""
        return chunk._replace(e=None)


@dataclass(frozen=True, slots=True, eq=False)
class EffectOfObserved:
    """Observed records against missing ones: the outcome is what an observed one adds to the effect, else zero.

    What it adds is w r: a residual, clipped, times its inverse weight. Given covariates its mean among the observed is
    the effect there less a public one, if either of the two models is right: docs/proofs/missing.md.

    Parameters
    ----------
    models
        Public models of treatment and outcome among the observed.
    location
        Where their outcomes are.
    reach
        The most that a record counts for, on the scale of [-1, 1].
    """

    models: Outcome
    location: Location
    reach: float

    @property
    def keeps_arms(self) -> bool:
        """Arms are others than those that engines count by."""
        return False

    def bounds(self, declared: Bounds) -> Bounds:
        """What a record can add, and the probability that an outcome is there."""
        half = self.reach * declared.outcome_width / 2.0
        return replace(declared, outcome=(-half, half), outcome_fill=None, treatment=None, propensity=_OVERLAP)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records of a chunk."""
        there, answers = chunk.more[PRESENT], self.models.answers(chunk)
        prognosis = np.clip(answers.prognosis, *prognosis_range(self.location))
        residual = chunk.y - prognosis - (chunk.t - 1.0 + answers.e) * answers.effect
        weight = np.where(chunk.t > 0.0, 1.0 / answers.e, -1.0 / (1.0 - answers.e))
        added = np.clip(weight * residual / self.reach, -1.0, 1.0)
        return chunk._replace(y=np.where(there > 0.0, added, 0.0), t=there)
