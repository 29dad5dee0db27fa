"""The plan of what a policy gains: an average effect among the share of the records that it treats."""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot
from typing import Any

from discreet.data.records import MIN_ROWS
from discreet.estimators._allocation import COUNT
from discreet.estimators.planning.assumed import between
from discreet.estimators.planning.setting import Found, Setting
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.sensitivity.sets import Interval
from discreet.releases.average import Uncertainty


def plan_policy_value(setting: Setting, alpha: float, options: Mapping[str, Any]) -> Found:
    """Errors of the effect among those whom the policy treats count by their share."""
    share = options.get("share", 0.5)
    between(share, "share", "it is the expected share of people whom the policy treats")
    if setting.pure and setting.design is None:
        raise InvalidBudget("PolicyValue needs delta, e.g. delta=1e-6, or a propensity known by design.")
    inside = round(setting.n * float(share))
    if inside < MIN_ROWS:
        raise InvalidInput(f"share leaves fewer than {MIN_ROWS} records whom the policy treats: plan with more.")
    part = setting.within(1.0 - COUNT, n=inside, adjusts=not setting.pure)
    among, counted = part.average(), setting.noise(Interval(0.0, 1.0), COUNT)
    return Found(
        parts=Uncertainty(
            sampling=share * among.sampling,
            privacy=hypot(share * among.privacy, among.se * counted),
            nuisance=share * among.nuisance,
            clipping=share * among.clipping,
        ),
        without=share * part.without_privacy(),
        assumptions=(
            f"{setting.treated:.0%} are treated",
            f"the policy treats {share:.0%} of the people; give share= if you know better",
            "the effect among them is near the cost: else how many they are matters too",
        ),
    )
