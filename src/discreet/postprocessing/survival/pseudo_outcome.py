"""What a record's time and event count as: a number that every record has, whose mean is that of the full times.

For a weight h(u), public constants, and cumulative hazards L of the event, a record that was followed up to u counts as
m - [event] h(u) + (the integral of h dL up to u). With h = r/G, where r(u) is what is left to expect at u and G the
probability of not having been censored, it is the efficient score of the mean under independent censoring: errors of G
and errors of L multiply. Its steps are tabulated, so that the number of a record is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet.data._arrays import Float
from discreet.postprocessing.survival.curves import LEAST_FOLLOWED, Arm

Measure: TypeAlias = Literal["rmst", "risk"]
# Numerical: steps of the tables; between them numbers are interpolated.
STEPS = 2_048
# Numerical: hazards of a step below this are as good as none.
_NO_HAZARD = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PseudoOutcome:
    """Numbers of records, by arm, whether they had the event, and time.

    Parameters
    ----------
    low, high
        No number lies below or above.
    tables
        Numbers at every step from zero to the horizon, by arm (control first): of those censored there, and of those
        with an event.
    shifts
        What was taken from the numbers of each arm, so that those of all who were followed to the horizon are the same:
        whoever looks at outcomes sees that many have one value.
    """

    low: float
    high: float
    tables: Float
    shifts: tuple[float, float]

    @property
    def apart(self) -> float:
        """What the difference of the arms lacks by this."""
        return self.shifts[1] - self.shifts[0]

    def ends(self, arm: int) -> tuple[float, float]:
        """Least and largest number of an arm, control being 0."""
        own = self.tables[2 * arm : 2 * arm + 2]
        return float(own.min()), float(own.max())

    def __call__(self, time: Float, event: Float, treated: Float) -> Float:
        """Numbers of records; time is in horizons, and who was followed beyond the horizon has no event before it."""
        place = np.fmin(np.fmax(time, 0.0), 1.0) * STEPS
        step = np.fmin(np.floor(place), STEPS - 1).astype(np.int64)
        row = 2 * (treated > 0.5).astype(np.int64) + ((event > 0.5) & (time <= 1.0)).astype(np.int64)
        left, right = self.tables[row, step], self.tables[row, step + 1]
        between = np.where(place < STEPS, left + (place - step) * (right - left), right)
        return np.asarray(np.fmin(np.fmax(between, self.low), self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """What errors of the released hazards may have done to one arm's mean.

    Parameters
    ----------
    table
        Standard deviation of the error of the mean by the table alone.
    product
        Of the product of errors of both hazards, which is left in the mean of the numbers of records.
    grid
        Most that hazards which change within an interval can do to the latter.
    """

    table: float
    product: float
    grid: float


def pseudo_outcome(arms: tuple[Arm, Arm], measure: Measure) -> PseudoOutcome:
    """The numbers that records count as, given hazards of both arms."""
    own = [_tables(arm, measure) for arm in arms]
    followed = [float(each[0, -1]) for each in own]
    shifts = 0.0, followed[1] - followed[0]
    # Set, as taking the difference away again may leave a rounding error.
    own[1] -= shifts[1]
    own[1][0, -1] = followed[0]
    tables = np.concatenate(own)
    return PseudoOutcome(low=float(tables.min()), high=float(tables.max()), tables=tables, shifts=shifts)


def mean(arm: Arm, measure: Measure) -> float:
    """Restricted mean time or risk of an arm, by its released table alone."""
    return _Steps.of(arm).mean(measure)


def remainder(arm: Arm, measure: Measure) -> Remainder:
    """The errors that are left in an arm's mean: docs/proofs/survival.md says why there are no others."""
    steps, times = _Steps.of(arm), arm.times / arm.times[-1]
    middle = (np.append(0.0, times[:-1]) + times) / 2.0
    weight = np.interp(middle, steps.time, steps.survival * steps.left(measure))
    followed = np.interp(middle, steps.time, np.exp(-steps.lost))
    # Where the probability of being followed is held at its floor, its error is at least what that takes away.
    off = np.hypot(arm.followed_sd, 1.0 - followed / np.maximum(followed, LEAST_FOLLOWED))
    product = float(np.sqrt(np.sum(weight**2 * off**2 * np.maximum(np.diag(arm.event_covariance), 0.0))))
    table = float(np.sqrt(max(float(weight @ arm.event_covariance @ weight), 0.0)))
    return Remainder(table=table, product=product, grid=float(np.sum(weight * arm.events * arm.lost) / 2.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """Hazards at every step; times are in horizons."""

    time: Float
    horizon: float
    events: Float
    lost: Float

    @classmethod
    def of(cls, arm: Arm) -> _Steps:
        horizon = float(arm.times[-1])
        time, ends = np.linspace(0.0, 1.0, STEPS + 1), np.append(0.0, arm.times) / horizon
        return cls(
            time, horizon, *(np.interp(time, ends, np.append(0.0, np.cumsum(h))) for h in (arm.events, arm.lost))
        )

    @property
    def survival(self) -> Float:
        return np.asarray(np.exp(-self.events))

    def area(self) -> Float:
        """What the curve holds between each step and the horizon."""
        s, hazard = self.survival, np.diff(self.events)
        # Exact where the hazard is constant within a step.
        each = np.where(hazard > _NO_HAZARD, -np.diff(s) / np.maximum(hazard, _NO_HAZARD), s[:-1]) / STEPS
        return np.asarray(self.horizon * np.append(np.cumsum(each[::-1])[::-1], 0.0))

    def mean(self, measure: Measure) -> float:
        return float(self.area()[0]) if measure == "rmst" else float(1.0 - self.survival[-1])

    def left(self, measure: Measure) -> Float:
        """What an event takes away, of the mean time that is left, or of the chance to be without one."""
        return (self.area() if measure == "rmst" else self.survival[-1]) / self.survival


def _tables(arm: Arm, measure: Measure) -> Float:
    steps = _Steps.of(arm)
    weight = steps.left(measure) / np.maximum(np.exp(-steps.lost), LEAST_FOLLOWED)
    taken = np.append(0.0, np.cumsum((weight[1:] + weight[:-1]) / 2.0 * np.diff(steps.events)))
    sign = 1.0 if measure == "rmst" else -1.0
    censored = steps.mean(measure) + sign * taken
    return np.vstack([censored, censored - sign * weight])
