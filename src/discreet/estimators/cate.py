"""The treatment effect as a function of covariates, with a proved (epsilon, delta) and pointwise intervals."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.estimators._allocation import Allocation
from discreet.estimators._base import (
    ROWS_ALIKE,
    ROWS_JOINED,
    Progress,
    TableFits,
    coded_gates,
    count_first,
    open_model_gate,
)
from discreet.estimators._effect_allocation import (
    AVERAGE,
    AVERAGE_PART,
    EFFECT_ROUNDS,
    effect_allocation,
    effect_terms,
    shares_of_parts,
)
from discreet.estimators._parameters import Parameters
from discreet.estimators._releasing import sample_note
from discreet.estimators.ate import ATE
from discreet.estimators.measurements.effect_function import (
    Correction,
    EffectFunction,
    choose_features,
    measure_effect,
    measure_probabilities,
)
from discreet.estimators.measurements.effect_release import constant_release, function_release
from discreet.estimators.measurements.location import Location, public_notes
from discreet.estimators.measurements.nuisances import Outcome
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.guarantee import Neighbours
from discreet.releases.function import EffectRelease
from discreet.releases.policies.policy import Policy

_OF_AVERAGE = "Of the average effect: "
_AT_POINTS = (
    " Effects at points take rows as independent: if rows of one {unit} are alike, their intervals are too narrow."
)


class CATE(TableFits[EffectRelease], Parameters):
    """Treatment effect as a function of the declared covariates, from observational records or a known design.

    Rounds through the gate: those of `ATE`, for the average effect and for public models of treatment and outcome; then
    three that correct the effect by orthogonal moments of what these models leave, with the models' own features.
    Coefficients are shrunk, so that what does not matter drops out. No sample is split.

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
        Where the propensity is a column or an array, the latter in any case.
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
    array([2., 5.])
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

    def policy(self, *, cost: float = 0.0, capacity: float | None = None, X: Any = None) -> Policy:
        """Whom to treat: people whose effect exceeds the cost; `Policy.of` says what a capacity needs ``X`` for."""
        return Policy.of(self._released(), cost=cost, capacity=capacity, X=X)

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
        if not gate.bounds.p:
            # All of the budget goes to the average effect.
            self.release_ = constant_release(average._measure(gate))
            return
        parts = {AVERAGE: AVERAGE_PART * left, "": (1.0 - AVERAGE_PART) * left}
        measured, location, models = average._measure_with_models(GatePart(gate, parts[AVERAGE], AVERAGE))
        own: Gate = GatePart(gate, parts[""])
        basis = models.propensity.setting.basis
        own, model_gate = coded_gates(own, open_model_gate(own, basis.m), basis.codings)
        allocation = effect_allocation(self.propensity).after_counts(own)
        function = self._measure_function(
            own, model_gate, allocation, models.for_functions(), location, measured.estimate
        )
        shares = {AVERAGE: measured.adjustment["shares"], "": allocation.shares}
        notes = public_notes(own.budget, own.n, location, self.propensity) + self._notes(function, own, model_gate)
        self.release_ = function_release(own, function, measured, shares_of_parts(counts, parts, shares), notes)

    def _notes(self, function: EffectFunction, gate: Gate, model_gate: Gate) -> tuple[str, ...]:
        notes = sample_note(gate, model_gate, "All rounds of the function but its last")
        if function.correction != self.correction:
            notes += ("Probabilities of treatment come with the records: the doubly robust correction was used.",)
        return notes

    def _measure_function(
        self, gate: Gate, model_gate: Gate, allocation: Allocation, models: Outcome, location: Location, average: float
    ) -> EffectFunction:
        """All rounds of the function: on all records, or all but the last on a sample of very many."""
        correction, e = self.correction, models.propensity.on_reference
        if "probabilities of treatment" in allocation:
            # Of probabilities that differ between records nothing is known but how they are distributed: weights that
            # count all records alike have slopes that do not depend on them.
            correction = "DR"
            e = measure_probabilities(model_gate, allocation["probabilities of treatment"], models.propensity)
        level = average / (gate.bounds.outcome_width / 2.0)
        function = EffectFunction.constant(models, location, e, level, correction)
        shares = allocation["effect moments 1"], allocation["effect residual magnitude 1"]
        function = choose_features(model_gate, 1, *shares, function, effect_terms(models.propensity.setting.basis.m))
        for number in range(2, EFFECT_ROUNDS + 1):
            last = number == EFFECT_ROUNDS
            if last and model_gate is not gate:
                # What a sample says of the effect is forgotten beside what all records say.
                function = function.forgotten()
            shares = allocation[f"effect moments {number}"], allocation[f"effect residual magnitude {number}"]
            function = measure_effect(gate if last else model_gate, number, *shares, function)
        return function
