"""Plans of effects on compliers and of differences in differences: the rounds of averages on what these see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from discreet.data.bounds import Bounds
from discreet.estimators.measurements.estimand import EVERYONE, TREATED
from discreet.estimators.natural_experiments.allocation import INSTRUMENT_PARTS
from discreet.estimators.planning.assumed import between
from discreet.estimators.planning.expected import Shape
from discreet.estimators.planning.setting import Found, Setting, scaled
from discreet.exceptions import InvalidInput
from discreet.releases.local_effects.fieller import Part, fieller

_COMPLIANCE, _, _OUTCOME = INSTRUMENT_PARTS


def plan_late(setting: Setting, alpha: float, options: Mapping[str, Any]) -> Found:
    """Fieller's region around an effect that the guess has found: the arms are those of the instrument."""
    moved = options.get("compliance", 0.5)
    between(moved, "compliance", "it is the expected share of people whom the instrument moves")
    declared, compliers = setting.bounds, float(moved)
    seen = Bounds(outcome=[0, 1], covariates=declared.covariates, propensity=declared.propensity)
    first = setting.within(INSTRUMENT_PARTS[_COMPLIANCE], bounds=seen, shape=Shape.events(0.5)).average()
    outcome = setting.within(INSTRUMENT_PARTS[_OUTCOME]).average()
    region = fieller(Part(0.0, outcome), Part(compliers, first), declared.outcome_width, alpha)
    low, high = region[0][0], region[-1][1]
    return Found(
        parts=scaled(outcome, 1.0 / compliers),
        without=setting.without_privacy() / compliers,
        assumptions=(
            f"{setting.treated:.0%} have the instrument",
            f"it moves {compliers:.0%} of the people to treatment; give compliance= if you know better",
            "the effect is small beside the outcome's range",
        ),
        width=high - low,
    )


def plan_difference_in_differences(setting: Setting, alpha: float, options: Mapping[str, Any]) -> Found:
    """The rounds of the effect on the treated, on changes, whose range is twice as wide as the outcome's."""
    correlation = options.get("correlation", 0.5)
    if isinstance(correlation, bool) or not isinstance(correlation, int | float) or not -1.0 < correlation < 1.0:
        raise InvalidInput("correlation must lie between -1 and 1; it is that of the outcome in both periods.")
    width = setting.bounds.outcome_width
    seen = replace(setting.bounds, outcome=(-width, width), outcome_fill=None)
    # On the range of changes, half of the outcome's deviation is that of one period.
    sd = setting.shape.sd / 2.0 * sqrt(2.0 * (1.0 - float(correlation)))
    shape = _changes(setting.shape, sd)
    changes = replace(setting, bounds=seen, shape=shape)
    wider = _on_the_treated(changes)
    return Found(
        parts=scaled(changes.average(), wider),
        without=changes.without_privacy() * wider,
        assumptions=(
            f"{setting.treated:.0%} are treated",
            f"outcomes of both periods have a correlation of {correlation:.2g}; give correlation= if you know better",
            "confounding is moderate: strong confounding makes the interval wider",
        ),
    )


def _changes(outcome: Shape, sd: float) -> Shape:
    """An ideal change: of an outcome of two values one of three, else normal."""
    if len(outcome.values) > 2:
        return Shape.normal(sd)
    # Theory: a change by half of the range has a square of a quarter.
    moved = min(4.0 * sd**2, 1.0) / 2.0
    return Shape(0.0, np.array([-0.5, 0.0, 0.5]), np.array([moved, 1.0 - 2.0 * moved, moved]))


def _on_the_treated(setting: Setting) -> float:
    """How much wider an interval is for the treated than for everybody, by the efficiency bounds."""
    e = setting.expected.probabilities
    return sqrt(float(np.mean(TREATED.inflation(e)) / np.mean(EVERYONE.inflation(e))))
