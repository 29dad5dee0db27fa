"""Differences of the arms' means with a proved guarantee."""

from __future__ import annotations

from functools import partial
from math import hypot, sqrt
from numbers import Real
from typing import Any, ClassVar, cast

from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.estimators._allocation import MEANS, MEANS_OF_PURE, Allocation, beside
from discreet.estimators._base import ROWS_ALIKE, ROWS_JOINED, Progress, count_first
from discreet.estimators._parameters import Parameters
from discreet.estimators._releasing import average_release, clip_note, uncertainty_of, with_arms
from discreet.estimators._results import AverageResult
from discreet.estimators.arms.measure import measure_arm_means
from discreet.estimators.measurements.cap import Cap, check_cap, measure_capped
from discreet.estimators.measurements.estimand import EVERYONE, Estimand, RecordWeights
from discreet.estimators.measurements.level import level_rounds, measure_score
from discreet.estimators.measurements.location import Location, locate, pilot_effect, public_notes
from discreet.estimators.measurements.nuisances import mean_model
from discreet.estimators.measurements.score import ScoreRounds, design_strata, prognosis_range
from discreet.estimators.missing.measure import measure_by_arm
from discreet.estimators.missing.reading import AdjustsMissing, MissingOutcome
from discreet.estimators.missing.survey import measure_weighted
from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.releases.arms.release import ArmsRelease
from discreet.releases.average import Kind, Release

_RANDOMISED = "Treatment is taken to be randomised: no covariate is adjusted for."
_FEW = (
    "The interval relies on the stated probabilities of treatment; records are too few, or noise is too much, for "
    "covariates to narrow it."
)


class DifferenceInMeans(AdjustsMissing, AverageResult, Parameters):
    """Difference of the arms' means, for randomised trials; pure epsilon (no delta) or (epsilon, delta).

    Covariates are ignored. In an observational study the difference of means is confounded: use `ATE`.

    Parameters
    ----------
    epsilon, delta : float
        The budget; without a delta all noise is Laplace noise and the guarantee is pure.
    bounds : Bounds
        Public facts; only outcome, treatment and overlap are used.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design; otherwise the share of treated is released. Of several
        arms a dictionary from their labels to numbers, or a list of numbers.
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike.
    cap : float or "auto", optional
        Larger outcomes count as this number, and the effect is that on the capped outcome: noise is made for what lies
        below it. With "auto" it is chosen by a noisy histogram, so that about one in a hundred of the outcomes above
        the lower end of their range exceeds it.
    missing_outcome : {"refuse", "adjust"}
        What to do about outcomes that are missing (NaN or NULL). With "adjust" they are taken to be missing at random
        within each arm, and how many of either arm are missing is released; where covariates say who is missing, use
        `ATE`. A known propensity is then not used.

    Attributes
    ----------
    release_ : Release
        The only thing that fitting leaves behind; it may be published. Of several declared arms an `ArmsRelease`.

    Privacy
    -------
    Protects every record's outcome and treatment under the stated relation, for every data set. Public: the bounds,
    the number of records under replace-one, a known propensity. Proof: docs/proofs/ate.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=2_000, seed=1)
    >>> means = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds, propensity=0.5)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     _ = means.fit(trial.Y, trial.T, X=trial.X)
    >>> round(means.ate_, 1), means.guarantee_.delta
    (1.0, 0.0)
    """

    method_id: ClassVar[str] = "discreet/difference-in-means"
    release_types: ClassVar = (Release, ArmsRelease)
    one_gate: ClassVar[bool] = True
    several_arms: ClassVar[bool] = True
    unit_notes: ClassVar[tuple[str, str]] = (ROWS_ALIKE, ROWS_JOINED)
    # Subclasses whose constructors are older than the parameter do not set it.
    cap: Cap = None

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        propensity: Any = None,
        neighbours: Neighbours = "replace-one",
        cap: Cap = None,
        missing_outcome: MissingOutcome = "refuse",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.propensity = propensity
        self.neighbours = neighbours
        self.cap = cap
        self.missing_outcome = missing_outcome

    def _check_budget(self, budget: Budget) -> None:
        """Any budget will do: without a delta the gate draws Laplace noise."""
        if self.cap is not None:
            check_cap(self.cap, self.bounds)
        self._check_missing()
        if self._adjusts and not isinstance(self.propensity, Real | None):
            raise InvalidInput(
                "propensity must be one number, or left out, where missing_outcome='adjust': with probabilities that "
                "differ between records use ATE."
            )

    def _fit(self, records: Records, progress: Progress | None) -> None:
        gate = self._open_gate(records, progress)
        count_first(gate)
        self.release_ = self._measure(gate) if self.cap is None else measure_capped(gate, self.cap, self._measure)

    def _measure(self, gate: Gate) -> Release:
        if gate.bounds.several_arms:
            # Typed as what two arms give: several give an `ArmsRelease`, whoever fits them.
            return cast(Release, measure_arm_means(gate, self.propensity, "difference-in-means"))
        if self._adjusts:
            return measure_by_arm(gate, _fit_observed)
        if self._weighs:
            return measure_weighted(gate, partial(_fit_weighted, gate, self.propensity))
        return measure_means(gate, self.propensity, "difference-in-means", level=True)


def _fit_observed(gate: Gate) -> Release:
    """The difference of the observed outcomes: the share of treated among them is not that of a design."""
    return measure_means(gate, None, "difference-in-means", level=True)


def _fit_weighted(gate: Gate, propensity: Any, weights: RecordWeights) -> tuple[Release, float]:
    """The difference of weighted means, and that of the arms as they are, from which its score counts."""
    release = measure_means(gate, propensity, "difference-in-means", weights=weights)
    return release, release.reference["unadjusted"]


def means_allocation(gate: Gate, estimand: Estimand, *, level: bool) -> Allocation:
    """Shares of a difference of means, before anything but counts was asked."""
    allocation = MEANS_OF_PURE if gate.pure else MEANS
    allocation = allocation.beside(
        beside(weighted=estimand.weighted, level=level, pure=gate.pure, joined=gate.joins_rows)
    )
    return allocation.after_counts(gate)


def measure_means(
    gate: Gate,
    propensity: Any,
    kind: Kind,
    estimand: Estimand = EVERYONE,
    *,
    level: bool = False,
    located: tuple[Allocation, Location] | None = None,
    weights: RecordWeights | None = None,
) -> Release:
    """The rounds of a difference of means after the count; without the first ones if the outcome is ``located``.

    Then that is the allocation as it was before them, and where the outcome is.
    """
    known = propensity is not None
    if located is None:
        allocation = means_allocation(gate, estimand, level=level)
        located = allocation, locate(gate, allocation["location"])
    allocation, location = located
    treated, pilot = location.treated, pilot_effect(gate, allocation["arm means"], location)
    overlap = design_strata(propensity if known else treated, gate.bounds, estimand)
    overlap = overlap if weights is None else overlap.divided(weights.least, weights.most)
    rounds = ScoreRounds(
        look_up=mean_model(location, pilot.effect),
        effect=pilot.effect,
        overlap=overlap,
        prognosis=prognosis_range(location),
        estimand=estimand,
        treated=treated,
        weights=weights,
    )
    tails = rounds.measure_tails(gate, allocation["residual tails"], atomic=location.atomic, randomised=True)
    clip = rounds.choose_clip(gate, allocation["clipped excess"], tails, allocation["score"])
    asked = level_rounds(allocation, rounds, location, clip, tails.bias_of_excess)
    score, means = measure_score(gate, allocation, rounds, clip, asked)
    # The released share of treated misses the true one by its noise, which matters as far as the prognosis is off.
    off = location.noise / min(treated, 1.0 - treated)
    remainder = 0.0 if known else location.treated_noise * off / (treated * (1.0 - treated))
    remainder = hypot(remainder, score.lost * hypot(pilot.noise, sqrt(score.variance / gate.n)))
    uncertainty = uncertainty_of(gate, score, remainder)
    checks = public_notes(gate.budget, gate.n, location, propensity)
    release = average_release(
        kind,
        gate,
        score,
        uncertainty,
        known=known,
        adjustment={
            "covariates": [],
            "basis": "none",
            "terms": 1,
            "trim": [overlap.low, overlap.high],
            "shares": allocation.shares,
        },
        notes=(_RANDOMISED if kind == "difference-in-means" else _FEW, *clip_note(uncertainty), *checks),
        reference={"unadjusted": gate.bounds.outcome_width / 2.0 * pilot.effect, "treated_share": treated},
    )
    return with_arms(release, gate, means)
