"""What rounds that were asked for other reasons say about balance and overlap (docs/proofs/ate.md): it is free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.data.bounds import Bounds
from discreet.data.columns import Levels
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import Outcome, Propensity
from discreet.postprocessing.diagnostics.balance import Arms, Difference, Fitted, differences
from discreet.postprocessing.diagnostics.moments import TreatmentMoments
from discreet.postprocessing.diagnostics.overlap import overlap

# Unit: digits of numbers in files.
_DIGITS = 6
# Numerical: shares of treated nearer to zero or one than this say nothing about differences of arms.
_LEAST = 1e-3


def diagnostics_of(
    bounds: Bounds,
    numbers: tuple[float, float],
    location: Location,
    models: Outcome,
    screening: TreatmentMoments | None,
    design: float | None,
) -> dict[str, Any]:
    """Plain JSON of what a release says about its arms.

    ``numbers`` are how many records there are and how many of them the models have seen, ``design`` is a known
    probability that is the same for everyone.
    """
    half = bounds.outcome_width / 2.0
    found: dict[str, Any] = {
        "outcome": {"mean": bounds.outcome_middle + half * location.centre, "sd": half * location.deviation}
    }
    model = models.propensity
    moments = [each for each in (screening, models.assignment) if each is not None]
    if bounds.p and moments:
        found["balance"] = _rows(bounds, _differences(numbers, location, models, moments, design))
    if not model.known and bounds.p:
        found["overlap"] = overlap(model.on_reference, model.low, model.high, _logit_sd(model))
    return found


def _differences(
    numbers: tuple[float, float],
    location: Location,
    models: Outcome,
    moments: Sequence[TreatmentMoments],
    design: float | None,
) -> list[Difference]:
    model = models.propensity
    share = 0.5 + float(location.ends[1].sum() - location.ends[0].sum()) / 2.0
    arms = Arms(*numbers, float(np.clip(share, _LEAST, 1.0 - _LEAST)), location.treated_noise)
    # Where probabilities come with the records, nothing is known of how they go with covariates.
    centre = np.full(len(model.on_reference), location.treated)
    fitted = Fitted(centre if model.known else model.on_reference, design is not None, models.calibration)
    return differences(model.setting.basis.codings, model.setting.reference, moments, fitted, arms)


def _rows(bounds: Bounds, found: Sequence[Difference]) -> dict[str, list[Any]]:
    """A table by its columns."""
    names, specs = bounds.names, bounds.columns
    levels = [
        None if each.level is None or not isinstance(spec := specs[each.covariate], Levels) else spec.levels[each.level]
        for each in found
    ]
    halves = [1.0 if isinstance(spec := specs[each.covariate], Levels) else spec.width / 2.0 for each in found]
    columns: dict[str, list[Any]] = {
        "covariate": [names[each.covariate] for each in found],
        "level": levels,
        "scale": [each.scale * half for each, half in zip(found, halves, strict=True)],
        "before": [each.before for each in found],
        "before_sd": [each.before_sd for each in found],
        "after": [each.after for each in found],
        "after_sd": [each.after_sd for each in found],
    }
    return {name: [_short(value) for value in column] for name, column in columns.items()}


def _short(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _logit_sd(model: Propensity) -> float:
    """The usual standard deviation of a fitted logit's error."""
    features = model.setting.reference.features
    return float(np.sqrt(np.median(np.sum((features @ model.covariance) * features, axis=1).clip(0.0))))
