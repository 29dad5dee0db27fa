"""Average treatment effects with a proved (epsilon, delta) and a confidence interval."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, cast

from discreet.data.bounds import Bounds
from discreet.estimators._results import AverageResult
from discreet.estimators.arms.measure import AverageModels, measure_arms
from discreet.estimators.measurements.cap import Cap
from discreet.estimators.measurements.estimand import EVERYONE, Estimand, RecordWeights
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import (
    Outcome,
    Propensity,
)
from discreet.estimators.missing.measure import measure_observed
from discreet.estimators.missing.reading import AdjustsMissing, MissingOutcome
from discreet.estimators.missing.survey import centred, measure_weighted
from discreet.estimators.weighted.average import AverageEffect
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.releases.arms.release import ArmsRelease
from discreet.releases.average import Release


class ATE(AdjustsMissing, AverageResult, AverageEffect):
    """Average treatment effect, doubly robust, from observational records or a known design.

    Three kinds of rounds through the gate: where the outcome and the covariates are; public models of treatment and
    outcome from noisy moments; the mean and variance of the clipped AIPW score. No sample is split.

    Parameters
    ----------
    epsilon, delta : float
        The budget. A delta is needed: the rounds are Gaussian.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design (a randomised trial).
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.
    cap : float or "auto", optional
        Larger outcomes count as this number, and the effect is that on the capped outcome: noise is made for what lies
        below it. With "auto" it is chosen by a noisy histogram, so that about one in a hundred of the outcomes above
        the lower end of their range exceeds it.
    missing_outcome : {"refuse", "adjust"}
        What to do about outcomes that are missing (NaN or NULL). With "adjust" they are taken to be missing at random
        given treatment and covariates, and how many of either arm are missing is released: docs/proofs/missing.md. A
        known propensity is then not used, as it says nothing about whose outcomes are observed.

    Attributes
    ----------
    release_ : Release
        The only thing that fitting leaves behind; it may be published.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under the stated relation, for every data set. Public:
    the bounds, the number of records under replace-one, a known propensity. Proof: docs/proofs/ate.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import draw
    >>> study = draw("private-ci-1", n=4_000, seed=1)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     ate = dc.ATE(epsilon=1.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
    >>> round(ate.ate_, 1)
    1.0
    >>> low, high = ate.ate_interval(alpha=0.05)
    >>> low < 1.0 < high
    True
    """

    method_id: ClassVar[str] = "discreet/ate"
    estimand: ClassVar[Estimand] = EVERYONE
    release_types: ClassVar[tuple[type[Any], ...]] = (Release, ArmsRelease)
    several_arms: ClassVar[bool] = True

    def _fit_two_arms(self, gate: Gate, propensity: float | None) -> AverageModels:
        """Models of two arms that several are seen as, with a known probability of the second or none."""
        return ATE(**(self.get_params(deep=False) | {"propensity": propensity}))._fit_models(gate)

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
        super().__init__(
            epsilon=epsilon, bounds=bounds, delta=delta, propensity=propensity, neighbours=neighbours, cap=cap
        )
        self.missing_outcome = missing_outcome

    def _check_budget(self, budget: Budget) -> None:
        super()._check_budget(budget)
        self._check_missing()

    def _measure(self, gate: Gate, *, level: bool = False) -> Release:
        """All rounds after the count, of two arms or of several; they fit into what it leaves of the budget."""
        if gate.bounds.several_arms:
            # Typed as what two arms give: several give an `ArmsRelease`, whoever fits them.
            return cast(Release, measure_arms(gate, self.propensity, self._fit_two_arms))
        if self._adjusts:
            return measure_observed(gate, partial(self._fit_counting, propensity=None), self._fit_missing)
        if self._weighs:
            return measure_weighted(gate, lambda weights: centred(*self._fit_counting(gate, weights)))
        return super()._measure(gate, level=level)

    def _fit_counting(
        self, gate: Gate, weights: RecordWeights | None, **given: Any
    ) -> tuple[Release, Location, Outcome]:
        """All rounds by models, where records count by weights."""
        other = ATE(**self.get_params(deep=False) | {"missing_outcome": "refuse"} | given)
        other._weights = weights
        return other._measure_with_models(gate)

    def _fit_missing(self, gate: Gate) -> Propensity:
        """The probability that an outcome is observed."""
        return ATE(epsilon=self.epsilon, bounds=gate.bounds, delta=self.delta)._fit_models(gate).outcome.propensity
