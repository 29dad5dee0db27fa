"""The treatment effect as a function of covariates, with a proved (epsilon, delta) and pointwise intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

from sklearn.base import BaseEstimator

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.estimators._allocation import Allocation, information_per_covariate
from discreet.estimators._base import (
    ROWS_ALIKE,
    ROWS_JOINED,
    Progress,
    TableFits,
    count_first,
    open_model_gate,
    sample_note,
)
from discreet.estimators._effect_allocation import AVERAGE, EFFECT, shares_of_parts
from discreet.estimators.ate import ATE
from discreet.estimators.measurements.calibration import Calibration, calibrate
from discreet.estimators.measurements.covariates import Setting
from discreet.estimators.measurements.effect_models import Models
from discreet.estimators.measurements.effect_release import anchored, constant_release, function_release
from discreet.estimators.measurements.heterogeneity import (
    Correction,
    TreatmentQuestion,
    assign,
    combine_moments,
    effect_round,
    initial_magnitude_question,
    known_constant,
    measure_initial_moments,
    outcome_round,
    treatment_question,
)
from discreet.estimators.measurements.location import Location, locate, pilot_effect
from discreet.estimators.measurements.nuisances import Propensity
from discreet.estimators.measurements.polynomials import (
    Features,
    build_closer_basis,
    closer_questions,
    measure_gram,
)
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.postprocessing.basis import Basis, Size
from discreet.postprocessing.marginals import Column
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.guarantee import Neighbours
from discreet.releases.function import EffectRelease

_OF_AVERAGE = "Of the average effect: "
_AT_POINTS = (
    " Effects at points take rows as independent: if rows of one {unit} are alike, their intervals are too narrow."
)


class CATE(TableFits[EffectRelease], BaseEstimator):  # type: ignore[misc]
    """Treatment effect as a function of the declared covariates, from observational records or a known design.

    Rounds through the gate: those of `ATE`, for the average effect; then where the outcome and the covariates are,
    initial moments of outcome and contrast, the propensity, and outcome and effect in turn, each corrected by
    orthogonal moments of residuals. Coefficients are shrunk group by group, so that covariates that do not matter drop
    out. A last round says how much of the function the records bear out. No sample is split.

    Parameters
    ----------
    epsilon, delta : float
        The budget. A delta is needed: the rounds are Gaussian.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design (a randomised trial).
    correction : {"R", "DR"}
        Orthogonal moments that correct the effect: those of the R-learner, which trust records where both arms are
        common, or of the doubly robust score, which count all records alike and cost more noise where an arm is rare.
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.

    Attributes
    ----------
    release_ : EffectRelease
        The only thing that fitting leaves behind; it may be published, and answers any number of queries.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under the stated relation, for every data set. Public: the
    bounds, the number of records under replace-one, a known propensity. Proof: docs/proofs/cate.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=4_000, seed=1)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     cate = dc.CATE(epsilon=4.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
    >>> cate.effect([[0.1, 0.5], [0.4, 0.5]]).round(0)
    array([3., 5.])
    >>> low, high = cate.ate_interval()
    >>> bool(low < study.ate < high)
    True
    """

    method_id: ClassVar[str] = "discreet/cate"
    release_types: ClassVar = (EffectRelease,)
    one_gate: ClassVar[bool] = True
    unit_notes: ClassVar[tuple[str, str]] = (
        _OF_AVERAGE + ROWS_ALIKE + _AT_POINTS,
        _OF_AVERAGE + ROWS_JOINED + _AT_POINTS,
    )
    samples: ClassVar[bool] = True

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        propensity: Any = None,
        correction: Correction = "R",
        neighbours: Neighbours = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.propensity = propensity
        self.correction = correction
        self.neighbours = neighbours

    def effect(self, X: Any = None) -> Float:
        """Effect for each row of X, as often as you like: it costs nothing."""
        return self._released().effect(X)

    def effect_interval(self, X: Any = None, alpha: float = 0.05) -> tuple[Float, Float]:
        """Pointwise intervals at level ``1 - alpha``: see `EffectRelease.effect_interval` for what they cover."""
        return self._released().effect_interval(X, alpha)

    def ate(self) -> float:
        """Average effect, measured as `ATE` measures it."""
        return self._released().ate()

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the average effect at level ``1 - alpha``: that of `ATE` with its part of the budget."""
        return self._released().ate_interval(alpha)

    def effect_on(self, X: Any) -> float:
        """Average effect over the rows of X."""
        return self._released().effect_on(X)

    def effect_on_interval(self, X: Any, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the average effect over the rows of X."""
        return self._released().effect_on_interval(X, alpha)

    def importance(self) -> dict[str, float]:
        """Share of the effect's variance that goes with each covariate; all zero where the effect is a constant."""
        return dict(self._released().importance)

    def plot(self, feature: str | int, ax: Any = None) -> Any:
        """Draw the effect along one covariate, the others averaged, with pointwise bands (needs matplotlib)."""
        from discreet.releases.plots import plot_effect

        return plot_effect(self._released(), feature, ax=ax)

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget("CATE needs delta, e.g. delta=1e-6: its rounds add Gaussian noise.")
        if self.correction not in get_args(Correction):
            raise InvalidInput('correction must be "R" or "DR": choose the moments that correct the effect.')

    def _fit(self, records: Records, progress: Progress | None) -> None:
        gate = self._open_gate(records, progress)
        count_first(gate)
        counts, left = gate.spent, gate.left
        average = ATE(**{name: value for name, value in self.get_params().items() if name != "correction"})
        parts = {AVERAGE: EFFECT.average * left, "": (1.0 - EFFECT.average) * left}
        own = GatePart(gate, parts[""])
        design = Design.of(own.n * own.mu, gate.n, gate.bounds.columns, self.propensity)
        if not design.varying:
            # All of the budget goes to the average effect, by the rounds that are made for it.
            self.release_ = constant_release(average._measure(gate))
            return
        measured, assigned = average._measure_with_models(GatePart(gate, parts[AVERAGE], AVERAGE))
        function, calibration = self._measure_function(own, design, measured.estimate, assigned)
        shares = {AVERAGE: measured.adjustment["shares"], "": function.adjustment["shares"]}
        self.release_ = anchored(function, calibration, measured, shares_of_parts(counts, parts, shares))

    def _measure_function(
        self, gate: Gate, design: Design, average: float, assigned: Propensity | None
    ) -> tuple[EffectRelease, Calibration]:
        """All rounds of the function, and how much of it the records bear out."""
        # All rounds but the last go through this one: on all records, or on a sample of very many.
        model_gate = open_model_gate(gate, Basis.flat(gate.bounds.columns, design.size).m)
        allocation = design.allocation.after_counts(gate)
        location, models = self._first_models(gate, model_gate, design, allocation, assigned)
        for number in range(1, design.rounds + 1):
            if number <= 2:
                shares = allocation[f"outcome moments {number}"], allocation[f"outcome residual magnitude {number}"]
                models = outcome_round(model_gate, number, *shares, models)
            last = number == design.rounds
            # What a sample says of the effect is forgotten beside what all records say.
            models = effect_round(
                gate if last else model_gate,
                number,
                allocation[f"effect moments {number}"],
                allocation[f"effect residual magnitude {number}"],
                models,
                correction=self.correction,
                last=last,
                alone=number == 1 or (last and model_gate is not gate),
            )
        calibration = calibrate(
            gate, allocation["calibration"], models, location, average / (gate.bounds.outcome_width / 2.0)
        )
        release = function_release(gate, models, location, allocation, self.correction)
        return replace(release, notes=release.notes + sample_note(gate, model_gate)), calibration

    def _first_models(
        self, gate: Gate, model_gate: Gate, design: Design, allocation: Allocation, assigned: Propensity | None
    ) -> tuple[Location, Models]:
        """Where outcome and covariates are, the propensity, and the models that initial moments give."""
        marginals = closer_questions(gate.bounds.columns, allocation["marginals"])
        location = locate(model_gate, allocation["location"], *marginals)
        pilot = pilot_effect(model_gate, allocation["arm means"], location).effect
        basis = build_closer_basis(model_gate, marginals, allocation["marginals"], design.size)
        magnitude = initial_magnitude_question(allocation["initial residual magnitude"], location, pilot)
        setting = measure_gram(model_gate, allocation["second moments"], Features(basis, model_gate.n), magnitude)
        asked = None
        if "treatment moments" in allocation:
            asked = treatment_question(model_gate, allocation["treatment moments"], setting, location)
        beside = () if asked is None else (asked.query,)
        initial = measure_initial_moments(
            model_gate, allocation["initial moments"], magnitude, setting, location, pilot, *beside
        )
        propensity = self._propensity(model_gate, asked, setting, location, assigned)
        return location, combine_moments(initial, propensity, location, pilot)

    def _propensity(
        self,
        gate: Gate,
        asked: TreatmentQuestion | None,
        setting: Setting,
        location: Location,
        assigned: Propensity | None,
    ) -> Propensity:
        """The probability of treatment: as the average's rounds fitted it, one number, or that of a public column."""
        if assigned is not None:
            return Propensity.elsewhere(assigned, setting)
        if asked is None:
            return known_constant(setting, float(self.propensity), gate.bounds.propensity)
        return assign(gate, asked, setting, location, gate.bounds.propensity)


@dataclass(frozen=True, slots=True)
class Design:
    """Size of the basis, number of rounds and shares of the budget: public rules in n mu and the declared columns."""

    size: Size
    varying: bool
    rounds: int
    allocation: Allocation

    @classmethod
    def of(cls, information: float, n: float, columns: tuple[Column, ...], propensity: Any) -> Design:
        """By n mu, the number of records, the columns, and whether the propensity is known."""
        each = information_per_covariate(information, len(columns))
        allocation, rounds = EFFECT.allocation(each, columns, propensity)
        return cls(EFFECT.size(each, n, columns), EFFECT.varies(information, columns), rounds, allocation)
