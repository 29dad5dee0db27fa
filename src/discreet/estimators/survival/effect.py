"""Effects on a time to event, with a proved (epsilon, delta), an interval and a survival curve per arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import hypot
from typing import Any, ClassVar, NamedTuple, Self, get_args

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.columns import Levels, numbers
from discreet.data.frames import vector
from discreet.data.records import Records
from discreet.estimators._allocation import models_pay
from discreet.estimators._base import ROWS_ALIKE, ROWS_JOINED, Progress, TableFits, count_first
from discreet.estimators._parameters import NO_COLUMNS, Parameters, Role
from discreet.estimators._results import EffectResult
from discreet.estimators.ate import ATE
from discreet.estimators.measurements.location import budget_notes
from discreet.estimators.survival.rules import RULE, check_times
from discreet.estimators.survival.seen import Seen, TimeCells, curve_notes
from discreet.estimators.survival.trial import ArmMean, compare_arms
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.postprocessing.survival.curves import Arm, Band
from discreet.postprocessing.survival.pseudo_outcome import (
    Measure,
    Remainder,
    mean,
    pseudo_outcome,
    remainder,
)
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.query import Query, Released
from discreet.privacy.sensitivity.sets import Cells
from discreet.releases.average import Uncertainty
from discreet.releases.survival.release import SurvivalRelease

TABLE = "times and events by arm"
EVENT = Role(
    name="event",
    argument="event",
    help="1 where the time is that of the event, and 0 where the record was followed no longer",
    declared=lambda _: Levels((0, 1)),
)
_RANDOMISED = "Treatment is taken to be randomised: no covariate is adjusted for."


class SurvivalEffect(TableFits[SurvivalRelease], EffectResult[SurvivalRelease], Parameters):
    """Effect of a treatment on a time to event that may be censored, and a survival curve per arm.

    A table of times and events by arm goes through the gate first; hazards of the event and of censoring, and curves
    with bands, follow from it. Given these, every record counts as one number, its efficient score under independent
    censoring, whose mean is the arm's restricted mean time or risk: errors of the two hazards multiply. In a
    trial these numbers are compared by one score; where covariates are adjusted for, by the rounds of `ATE`.

    Parameters
    ----------
    epsilon, delta : float
        The budget. A delta is needed: the rounds are Gaussian.
    bounds : Bounds
        Public facts: ``outcome=(0, longest)`` is the range of the times; covariates, overlap.
    horizon : float
        Up to when: later events do not count.
    measure : {"rmst", "risk"}
        The difference in the restricted mean time without the event up to the horizon, or in the probability of the
        event up to there (that of survival, with the other sign). Treated less control.
    times : list of float, optional
        Ends of the intervals in which hazards are released, and where curves are known; the horizon is added. By
        default equal intervals, as many as the number of records and the budget support.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design (a randomised trial).
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.

    Attributes
    ----------
    release_ : SurvivalRelease
        The only thing that fitting leaves behind; it may be published.

    Notes
    -----
    Censoring is taken to be independent of the time to the event within each arm. ``fit(time, T, event=event, X=X)``
    and ``fit_table(table, outcome="time", event="died", ...)`` take the column that says which times are events. Times
    beyond the declared range count as its end, and in a table negative ones as zero.

    Privacy
    -------
    Protects every record's time, event, treatment and covariates under the stated relation, for every data set.
    Public: the bounds, the horizon and the grid, the number of records under replace-one, a known propensity. Proof:
    docs/proofs/survival.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import survival_trial
    >>> trial = survival_trial(n=4_000, seed=1)
    >>> effect = dc.SurvivalEffect(epsilon=1.0, delta=1e-6, bounds=trial.bounds, horizon=365)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     _ = effect.fit(trial.time, trial.T, event=trial.event, X=trial.X)
    >>> low, high = effect.interval(alpha=0.05)
    >>> low < trial.rmst < high
    True
    """

    method_id: ClassVar[str] = "discreet/survival"
    release_types: ClassVar = (SurvivalRelease,)
    one_gate: ClassVar[bool] = True
    unit_notes: ClassVar[tuple[str, str]] = (ROWS_ALIKE, ROWS_JOINED)
    samples: ClassVar[bool] = True
    roles: ClassVar[tuple[Role, ...]] = (EVENT,)

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        horizon: float,
        delta: float | None = None,
        measure: Measure = "rmst",
        times: Any = None,
        propensity: Any = None,
        neighbours: Neighbours = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.horizon = horizon
        self.delta = delta
        self.measure = measure
        self.times = times
        self.propensity = propensity
        self.neighbours = neighbours

    def curves(self, alpha: float = 0.05, simultaneous: bool = False) -> dict[str, Band]:
        """The survival curve of each arm with a band: see `SurvivalRelease.curves`."""
        return self._released().curves(alpha, simultaneous)

    def plot(self, ax: Any = None) -> Any:
        """Draw the survival curves of both arms with their bands (needs matplotlib)."""
        return self._released().plot(ax)

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget("SurvivalEffect needs delta, e.g. delta=1e-6: its rounds add Gaussian noise.")
        if self.measure not in get_args(Measure):
            raise InvalidInput('measure must be "rmst" or "risk": say what the arms are compared by.')
        check_times(self.times, self.horizon, self.bounds)

    def _fit_arrays(
        self, Y: Any, T: Any, X: Any, progress: Progress | None, further: Mapping[Role, Any] = NO_COLUMNS
    ) -> Self:
        self.check()
        if np.any(numbers(vector(Y, "Y"), "Y") < 0.0):
            raise InvalidInput("Y must hold times from zero on, and some are negative: check when the clock starts.")
        return super()._fit_arrays(Y, T, X, progress, further)

    def _fit(self, records: Records, progress: Progress | None) -> None:
        gate = self._open_gate(records, progress)
        count_first(gate)
        left, horizon = gate.left, float(self.horizon)
        times = RULE.times(check_times(self.times, horizon, self.bounds), horizon, gate.n * gate.mu)
        ends = gate.bounds.outcome_range.encode(times.copy())
        sizes = (2 * (2 * len(times) + 1),)
        (noisy,) = gate.ask(Query(TABLE, RULE.share * left, Cells(sizes), TimeCells(ends)))
        sd, alike = float(noisy.sd), gate.most_rows
        control, treated = noisy.value.reshape(2, -1)
        arms = Arm.of(times, control, sd, alike), Arm.of(times, treated, sd, alike)
        number, off = pseudo_outcome(arms, self.measure), [remainder(arm, self.measure) for arm in arms]
        part = GatePart(gate, (1.0 - RULE.share) * left).viewed(Seen(number, float(ends[-1])))
        if gate.bounds.p and (self.propensity is None or models_pay(part.n * part.mu, gate.bounds.p, self.propensity)):
            found = self._adjust(part, arms)
        else:
            means = (
                ArmMean(mean(arm, self.measure) - number.shifts[k], each.table, *number.ends(k))
                for k, (arm, each) in enumerate(zip(arms, off, strict=True))
            )
            found = _Found(
                *compare_arms(part, self.propensity, *means),
                {"covariates": []},
                (_RANDOMISED, *budget_notes(gate.budget, gate.n)),
            )
        found = found._replace(estimate=found.estimate + number.apart)
        self.release_ = self._release(gate, times, noisy, found, off, curve_notes(arms, float(noisy.sd)))

    def _adjust(self, gate: Gate, arms: tuple[Arm, Arm]) -> _Found:
        """The average effect on what records count as, by models of treatment and of that."""
        average = ATE(
            epsilon=self.epsilon,
            bounds=gate.bounds,
            delta=self.delta,
            propensity=self.propensity,
            neighbours=self.neighbours,
        )
        release = average._measure(gate)
        parts = release.uncertainty
        if self.propensity is None:
            # Errors of censoring's hazard stand beside what the arms differ in otherwise, and not beside noise alone.
            moved = abs(release.estimate - release.reference["unadjusted"])
            censoring = max(float(arm.followed_sd.max()) for arm in arms)
            parts = replace(parts, nuisance=hypot(parts.nuisance, moved * censoring))
        return _Found(release.estimate, parts, release.adjustment, release.notes)

    def _release(
        self,
        gate: Gate,
        times: Float,
        noisy: Released,
        found: _Found,
        off: list[Remainder],
        notes: tuple[str, ...],
    ) -> SurvivalRelease:
        most = float(self.horizon) if self.measure == "rmst" else 1.0
        known = ("the probability of treatment",) if self.propensity is not None else ()
        counted = () if gate.counts_rows else ("the number of records",)
        public = ("the declared bounds", "the horizon and the grid of times", *counted, *known)
        parts = found.uncertainty
        return SurvivalRelease(
            measure=self.measure,
            horizon=float(self.horizon),
            times=tuple(times.tolist()),
            counts=tuple(tuple(row.tolist()) for row in noisy.value.reshape(2, -1)),
            count_sd=float(noisy.sd),
            estimate=min(max(found.estimate, -most), most),
            uncertainty=replace(
                parts,
                nuisance=hypot(parts.nuisance, *(each.product for each in off)),
                clipping=float(parts.clipping) + sum(each.grid for each in off),
            ),
            n=gate.n,
            guarantee=gate.guarantee(proof="survival.md", public=public),
            bounds=gate.bounds,
            design="observational" if self.propensity is None else "known propensity",
            adjustment=found.adjustment,
            notes=(*notes, *found.notes),
            rows=gate.most_rows,
        )


class _Found(NamedTuple):
    """The difference of the arms, before what the table adds to its uncertainty."""

    estimate: float
    uncertainty: Uncertainty
    adjustment: dict[str, Any]
    notes: tuple[str, ...]
