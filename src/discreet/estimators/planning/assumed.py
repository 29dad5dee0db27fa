"""What a plan assumes of records that nobody has seen: an ideal outcome, a design, and what was guessed of either."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt
from numbers import Real
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.estimators.measurements.cap import check_cap
from discreet.estimators.planning.expected import Shape
from discreet.exceptions import InvalidInput

# Choice: standard deviation of an outcome that nothing is known of, in its range. Chosen on studies 4,000 to 4,199 of
# evidence.population.
GUESS = 0.1
# Theory: no distribution with one mode has a larger standard deviation, in its range (Jacobson 1969): the outcome is
# mostly at both ends.
_ENDS = 1.0 / 3.0
# Numerical: known probabilities of treatment are planned with at so many places.
_PLACES = 60


def capped(estimator: str, bounds: Bounds, cap: Any) -> Bounds:
    """The bounds that noise is made for."""
    if cap is None:
        return bounds
    if estimator not in ("ate", "difference-in-means") or isinstance(cap, str):
        raise InvalidInput(
            "cap must be a number, for 'ate' or 'difference-in-means': one that the records choose cannot be planned."
        )
    check_cap(cap, bounds)
    return bounds.capped(float(cap))


def design_of(propensity: Any) -> float | Float | None:
    """Known probabilities of treatment: none, one, or some that are equally common."""
    if propensity is None:
        return None
    if isinstance(propensity, Real | str) or np.ndim(propensity) != 1 or len(propensity) == 0:
        between(propensity, "propensity", "it is the known probability of treatment")
        return float(propensity)
    found = np.asarray(propensity, dtype=float)
    if not ((found > 0.0) & (found < 1.0)).all():
        raise InvalidInput("propensity must lie between 0 and 1; it is the known probability of treatment.")
    return np.asarray(np.quantile(found, (np.arange(_PLACES) + 0.5) / _PLACES))


def shape_of(bounds: Bounds, options: Mapping[str, Any]) -> tuple[Shape, str]:
    """An ideal outcome, and what is said of it."""
    sd, prevalence = options.get("outcome_sd"), options.get("prevalence")
    mean: Any = options.get("outcome_mean")
    low, high = bounds.outcome_range.low, bounds.outcome_range.high
    two = bounds.binary or (low, high) == (0.0, 1.0)
    if prevalence is not None:
        between(prevalence, "prevalence", "it is the share of events")
        if sd is not None or mean is not None:
            raise InvalidInput("prevalence says what outcome_sd and outcome_mean would say: give one or the others.")
        if not two:
            raise InvalidInput(
                "prevalence belongs to an outcome of two values: declare outcome=[0, 1], or give outcome_sd."
            )
        return Shape.events(float(prevalence)), f"{prevalence:.3g} of the records have the event"
    if mean is not None and not (isinstance(mean, Real) and low < float(mean) < high):
        raise InvalidInput("outcome_mean must lie inside the outcome's range; it is the mean of the outcome.")
    if sd is None and mean is None and two:
        return Shape.events(0.5), "half of the records have the event; give prevalence= if you know better"
    if bounds.binary and mean is not None:
        raise InvalidInput("outcome_mean of an outcome of two values is its prevalence: give prevalence=.")
    known = GUESS * (high - low) if sd is None else positive(sd, "outcome_sd")
    part = known / (high - low)
    if part > 0.5:
        raise InvalidInput("outcome_sd exceeds half of the outcome's range, which no outcome can: correct one of them.")
    words = f"outcomes vary by about {known:.4g} (sd)"
    words += "" if sd is not None else "; give outcome_sd= if you know better"
    if mean is not None:
        return Shape.crowded(2.0 * (float(mean) - low) / (high - low) - 1.0, 2.0 * part), words
    if bounds.binary or part > _ENDS:
        # Theory: the share of events whose variance that is.
        return Shape.events((1.0 - sqrt(1.0 - 4.0 * part**2)) / 2.0), words
    return Shape.normal(2.0 * part), words


def between(value: Any, name: str, meaning: str) -> None:
    """Refuse what is no share or probability."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise InvalidInput(f"{name} must lie between 0 and 1; {meaning}.")


def positive(value: Any, name: str) -> float:
    """A positive number, or a refusal."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < inf:
        raise InvalidInput(f"{name} must be a positive number, in units of the outcome.")
    return float(value)
