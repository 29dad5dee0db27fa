"""What a release of an average effect tells its readers to look at, from released and declared numbers alone."""

from __future__ import annotations

from math import hypot, sqrt
from numbers import Real
from typing import Any

import numpy as np

from discreet.estimators.measurements.location import Location
from discreet.privacy.budget import Budget

# A budget beyond this promises little.
_LARGE_EPSILON = 10.0
# An outcome that varies by less than this part of its declared range.
_NARROW = 1.0 / 50.0
# Outcomes apart from the most common one that an arm should have, where most have that one.
_FEW_EVENTS, _COMMON = 30.0, 0.5
# How far the share of treated may lie from a declared probability: in standard deviations, and as it is.
_DEVIATIONS, _POINTS = 5.0, 0.02


def public_notes(budget: Budget, n: float, location: Location, propensity: Any) -> tuple[str, ...]:
    """All notes that apply; ``n`` is the number of records where it is public, and otherwise the released one."""
    return (*_budget_notes(budget, n), *_outcome_notes(n, location), *_design_note(n, location, propensity))


def _budget_notes(budget: Budget, n: float) -> tuple[str, ...]:
    notes = []
    if budget.delta is not None and budget.delta > 1.0 / n:
        notes.append(
            "Delta is above one over the number of records, so that it allows to publish somebody's record outright: "
            "choose a delta far below that."
        )
    if budget.epsilon > _LARGE_EPSILON:
        notes.append(
            f"An epsilon above {_LARGE_EPSILON:g} promises little: ask discreet.plan how small an epsilon would do."
        )
    return tuple(notes)


def _outcome_notes(n: float, location: Location) -> tuple[str, ...]:
    """Of outcomes that are mostly one value, how few have another; of others, whether they use their range."""
    totals = location.ends.sum(axis=0)
    common = 0 if totals[0] >= totals[2] else 2
    if totals[common] > _COMMON:
        others = n * (location.ends.sum(axis=1) - location.ends[:, common])
        if float(np.min(others)) < _FEW_EVENTS:
            return (
                f"By a noisy count, an arm has fewer than {_FEW_EVENTS:g} outcomes apart from the most common one: the "
                "interval rests on a few events. Take more records, a longer period or a more frequent outcome.",
            )
        return ()
    # Half of the range is the unit of scales.
    if not location.atomic and location.magnitude.scale / 2.0 < _NARROW:
        return (
            "Outcomes use a small part of their declared range, and noise is made for all of it: declare a narrower "
            "range next time if public knowledge allows it, or the logarithm of the outcome.",
        )
    return ()


def _design_note(n: float, location: Location, propensity: Any) -> tuple[str, ...]:
    """Whether about as many are treated as a design says."""
    if isinstance(propensity, bool) or not isinstance(propensity, Real):
        return ()
    declared = float(propensity)
    found = 0.5 + float(location.ends[1].sum() - location.ends[0].sum()) / 2.0
    chance = hypot(location.treated_noise, sqrt(declared * (1.0 - declared) / n))
    if abs(found - declared) <= max(_DEVIATIONS * chance, _POINTS):
        return ()
    return (
        f"About {found:.0%} of the records are treated (by a noisy count), far from the declared probability of "
        f"{declared:.3g}: check the probability and that no records were dropped after treatment was drawn.",
    )
