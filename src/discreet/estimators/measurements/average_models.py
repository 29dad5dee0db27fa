"""What the rounds of an average effect before its score leave behind."""

from __future__ import annotations

from typing import NamedTuple

from discreet.estimators._allocation import Allocation
from discreet.estimators.measurements.location import Location, Pilot
from discreet.estimators.measurements.nuisances import Outcome
from discreet.postprocessing.diagnostics.moments import TreatmentMoments
from discreet.privacy.gate import Gate


class AverageModels(NamedTuple):
    """Public models, and what is known of their errors."""

    gate: Gate
    model_gate: Gate
    allocation: Allocation
    location: Location
    first: Pilot
    outcome: Outcome
    remainder: float
    off: float
    trim: tuple[float, float]
    basis: str
    terms: int
    screening: TreatmentMoments | None
