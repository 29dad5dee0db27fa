"""The plan of an effect on a time to event: the same code on the table that constant hazards would give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import hypot, log1p, sqrt
from typing import Any, get_args

import numpy as np

from discreet.data._arrays import Float
from discreet.estimators._allocation import models_pay
from discreet.estimators.planning.assumed import between
from discreet.estimators.planning.expected import Shape
from discreet.estimators.planning.setting import Found, Setting
from discreet.estimators.survival.rules import RULE, TREATED_SHARE, check_times
from discreet.estimators.survival.trial import ArmMean, score_ends
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.postprocessing.survival.curves import Arm
from discreet.postprocessing.survival.pseudo_outcome import Measure, PseudoOutcome, mean, pseudo_outcome, remainder
from discreet.privacy.sensitivity.sets import Cells, Interval, MeanSquare
from discreet.releases.average import Uncertainty

# Choice: shares with the event and lost before the horizon, if nobody says better. By hand.
_EVENTS, _LOST = 0.5, 0.2
# Numerical: times that stand for a distribution.
_POINTS = 200


def plan_survival(setting: Setting, alpha: float, options: Mapping[str, Any]) -> Found:
    """Both arms have the same constant hazards, of the event and of being lost."""
    if setting.pure:
        raise InvalidBudget("SurvivalEffect needs delta, e.g. delta=1e-6: its rounds add Gaussian noise.")
    if "horizon" not in options:
        raise InvalidInput("the plan of survival needs horizon=, up to when events count.")
    measure, horizon = options.get("measure", "rmst"), options["horizon"]
    events, lost = options.get("events", _EVENTS), options.get("lost", _LOST)
    between(events, "events", "it is the expected share of people with the event up to the horizon")
    between(lost, "lost", "it is the expected share of people who are not followed up to the horizon")
    if measure not in get_args(Measure):
        raise InvalidInput('measure must be "rmst" or "risk": say what the arms are compared by.')
    declared = check_times(options.get("times"), horizon, setting.bounds)
    times = RULE.times(declared, float(horizon), setting.n * setting.mu)
    hazards = -log1p(-events), -log1p(-lost)
    sd = setting.noise(Cells((2 * (2 * len(times) + 1),)), RULE.share) * setting.n
    shares = 1.0 - setting.treated, setting.treated
    counts = _cells(times / horizon, *hazards)
    control, treated = (Arm.of(times, setting.n * share * counts, sd) for share in shares)
    number = pseudo_outcome((control, treated), measure)
    off = [remainder(arm, measure) for arm in (control, treated)]
    shape = _shape(number, *hazards)
    seen = replace(setting.bounds, outcome=(number.low, number.high), outcome_fill=None)
    part = setting.within(1.0 - RULE.share, bounds=seen, shape=shape)
    design, p = part.design, part.bounds.p
    if p and (design is None or models_pay(part.information, p, design)):
        found = part.average()
    else:
        means = [
            ArmMean(mean(arm, measure) - number.shifts[k], off[k].table, *number.ends(k))
            for k, arm in enumerate((control, treated))
        ]
        found = _trial(part, means)
    return Found(
        parts=replace(
            found,
            nuisance=hypot(found.nuisance, *(each.product for each in off)),
            clipping=found.clipping + sum(each.grid for each in off),
        ),
        without=part.without_privacy(),
        assumptions=(
            f"{setting.treated:.0%} are treated",
            f"{events:.0%} of the people have the event up to the horizon, and {lost:.0%} are lost before it; give "
            "events= and lost= if you know better",
            "hazards are constant and alike in both arms",
        ),
        largest=float(horizon) if measure == "rmst" else 1.0,
        guessed=False,
    )


def _cells(ends: Float, event: float, lost: float) -> Float:
    """Shares of an arm with the event in each interval, lost in each, and followed beyond; times in horizons."""
    followed = np.exp(-(event + lost) * np.append(0.0, ends))
    leave = -np.diff(followed) / (event + lost)
    return np.concatenate([event * leave, lost * leave, followed[-1:]])


def _shape(number: PseudoOutcome, event: float, lost: float) -> Shape:
    """What records count as, around its mean, in halves of its range."""
    ends = np.linspace(0.0, 1.0, _POINTS + 1)[1:]
    middles, one = ends - 0.5 / _POINTS, np.ones(_POINTS)
    times = np.concatenate([middles, middles, [2.0]])
    happened = np.concatenate([one, 0.0 * one, [0.0]])
    mass = _cells(ends, event, lost)
    values = 2.0 * (number(times, happened, 0.0 * times) - number.low) / (number.high - number.low) - 1.0
    centre = float(mass @ values)
    return Shape(centre, values - centre, mass)


def _trial(part: Setting, means: list[ArmMean]) -> Uncertainty:
    """One score, whose models come from the table."""
    share, missed, e = 1.0, 0.0, part.treated
    if part.design is None:
        share -= TREATED_SHARE
        missed = part.noise(Interval(0.0, 1.0), TREATED_SHARE)
    ends = (e, e) if part.design is None or isinstance(part.design, float) else part.bounds.propensity
    low, high = score_ends(means[0], means[1], *ends)
    noise = part.noise(MeanSquare((high - low) / 2.0), share)
    return Uncertainty(
        sampling=sqrt(part.without_privacy() ** 2 + noise * (high - low) / part.n),
        privacy=noise,
        nuisance=missed * hypot(means[0].sd / (1.0 - e), means[1].sd / e),
    )
