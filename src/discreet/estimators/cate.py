"""The treatment effect as a function of covariates, with a proved (epsilon, delta) and pointwise intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.estimators._allocation import TRIM, Allocation, information_per_covariate
from discreet.estimators._base import Progress, TableFits, count_first, open_model_gate, sample_note
from discreet.estimators._effect_allocation import EFFECT
from discreet.estimators.ate import ATE
from discreet.estimators.measurements.covariates import (
    Features,
    Setting,
    build_closer_basis,
    closer_questions,
    measure_gram,
)
from discreet.estimators.measurements.effect_models import Models
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
    refine_propensity,
    treatment_question,
)
from discreet.estimators.measurements.location import Location, locate, pilot_effect
from discreet.estimators.measurements.nuisances import Propensity
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.postprocessing.basis import Basis, Size
from discreet.postprocessing.group_shrinkage import profile
from discreet.postprocessing.marginals import Column
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.releases.average import Release
from discreet.releases.function import EffectRelease

# Points of the reference over which standard deviations are averaged.
_POINTS = 2_000
# Intervals are so many times as wide as the shrunk posterior would have them, at least and at most: it knows nothing of
# what first-order formulas miss, and what is believed against it is not without limit.
_TIMES = (2.0, 2.4)


class CATE(TableFits[EffectRelease], BaseEstimator):  # type: ignore[misc]
    """Treatment effect as a function of the declared covariates, from observational records or a known design.

    Rounds through the gate: where the outcome and the covariates are; initial moments of outcome and contrast; the
    propensity; then outcome and effect in turn, each corrected by orthogonal moments of residuals. Coefficients are
    shrunk group by group, so that covariates that do not matter drop out. No sample is split.

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
    array([2., 5.])
    >>> low, high = cate.ate_interval()
    >>> bool(low < study.ate < high)
    True
    """

    method_id: ClassVar[str] = "discreet/cate"
    release_types: ClassVar = (EffectRelease,)
    one_gate: ClassVar[bool] = True
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
        """Average effect over the released distribution of the covariates."""
        return self._released().ate()

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the average effect at level ``1 - alpha``."""
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
        design = Design.of(gate.n * gate.mu, gate.n, gate.bounds.columns, self.propensity)
        if not design.varying:
            # All of the budget goes to the average effect, by the rounds that are made for it.
            average = {name: value for name, value in self.get_params().items() if name != "correction"}
            self.release_ = _constant(ATE(**average)._measure(gate))
            return
        # All rounds but the last go through this one: on all records, or on a sample of very many.
        model_gate = open_model_gate(gate, Basis.flat(gate.bounds.columns, design.size).m)
        allocation = design.allocation.after_counts(gate)
        location, models = self._first_models(gate, model_gate, design, allocation)
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
        release = _release(gate, design, models, location, allocation, self.correction)
        self.release_ = replace(release, notes=release.notes + sample_note(gate, model_gate))

    def _first_models(
        self, gate: Gate, model_gate: Gate, design: Design, allocation: Allocation
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
        information = model_gate.n * gate.mu
        propensity = self._propensity(model_gate, allocation, asked, setting, location, information)
        return location, combine_moments(initial, propensity, location, pilot)

    def _propensity(
        self,
        gate: Gate,
        allocation: Allocation,
        asked: TreatmentQuestion | None,
        setting: Setting,
        location: Location,
        information: float,
    ) -> Propensity:
        """The probability of treatment: public, modelled from a public column, or estimated and refined."""
        if asked is None:
            return known_constant(setting, float(self.propensity), gate.bounds.propensity)
        known = self.propensity is not None
        trim = gate.bounds.propensity if known else TRIM.interval(gate.bounds, location.treated, information)
        model, seen = assign(gate, asked, setting, location, trim, known=known)
        return model if known else refine_propensity(gate, allocation["propensity refinement"], model, seen)


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


def _release(
    gate: Gate, design: Design, models: Models, location: Location, allocation: Allocation, correction: Correction
) -> EffectRelease:
    """What is published: everything in it is computed from released numbers and public facts."""
    unit, setting = gate.bounds.outcome_width / 2.0, models.setting
    basis, known = setting.basis, models.propensity.known
    constant = np.zeros(basis.m)
    constant[0] = models.pilot / basis.weight[0]
    coefficients = unit * (constant + models.effect)
    average = setting.reference.features.mean(axis=0)
    covariance = setting.second - np.outer(average, average)
    importance = _importance(basis, coefficients, covariance, gate.bounds.names)
    public = ["the declared bounds"]
    public += [] if gate.counts_rows else ["the number of records"]
    public += ["the probability of treatment"] if known else []
    return EffectRelease(
        n=gate.n,
        guarantee=gate.guarantee(proof="cate.md", public=tuple(public)),
        bounds=gate.bounds,
        design="known propensity" if known else "observational",
        size=basis.size,
        marginals=basis.marginals,
        windows=basis.windows,
        coefficients=coefficients,
        factor=unit * _factor(models),
        average=average,
        importance=importance,
        adjustment={
            "correction": correction,
            "terms": basis.m,
            "trim": [models.propensity.low, models.propensity.high],
            "shares": allocation.shares,
        },
        notes=_notes(gate.bounds, design.size, known, models.fitted.any_special),
        reference={
            "unadjusted": unit * models.pilot,
            "treated_share": location.treated,
            "sd_of_effect": float(np.sqrt(max(float(coefficients @ covariance @ coefficients), 0.0))),
            "mean_posterior_sd": unit * _mean_sd(models, models.fitted.covariance[basis.m :, basis.m :]),
            "chance_that_it_varies": models.fitted.any_special,
        },
    )


def _factor(models: Models) -> Float:
    """A triangular factor of the covariance of the effect's coefficients, for intervals about the estimate."""
    m, cap = models.setting.basis.m, (3.0 * models.scale) ** 2
    covariance = profile(*models.information, models.groups, models.fitted, scale=models.scale**2, cap=cap)[m:, m:]
    times = _mean_sd(models, covariance) / max(_mean_sd(models, models.fitted.covariance[m:, m:]), 1e-300)
    values, vectors = np.linalg.eigh(covariance)
    root = float(np.clip(times, *_TIMES)) / max(times, 1e-300) * vectors * np.sqrt(np.maximum(values, 0.0))
    # F F' is the covariance for any rotation of F's columns: take the one that is triangular.
    return np.asarray(np.linalg.qr(root.T, mode="r")).T


def _mean_sd(models: Models, covariance: Float) -> float:
    """Mean standard deviation of the effect over the reference, for a covariance of its coefficients."""
    features = models.setting.reference.features[:_POINTS]
    return float(np.mean(np.sqrt(np.maximum(np.sum((features @ covariance) * features, axis=1), 0.0))))


def _importance(basis: Basis, coefficients: Float, covariance: Float, names: tuple[str, ...]) -> dict[str, float]:
    """Covariance of each covariate's part with the whole effect, over the whole's variance; products are halved."""
    shares = coefficients * (covariance @ coefficients)
    parts = np.zeros(len(names))
    owner = {k: j for j in range(len(names)) for k in basis.covariate_features(j)}
    for k, j in owner.items():
        parts[j] += shares[k]
    for k, (a, b) in enumerate(basis.products, basis.m - len(basis.products)):
        parts[owner[a]] += shares[k] / 2.0
        parts[owner[b]] += shares[k] / 2.0
    parts = np.maximum(parts, 0.0)
    total = float(parts.sum())
    return {name: float(part / total) if total > 0.0 else 0.0 for name, part in zip(names, parts, strict=True)}


def _constant(average: Release) -> EffectRelease:
    """A function that is a constant, from a release of the average effect."""
    bounds, size = average.bounds, Size(degree=1, pairs=False, curved=False)
    basis = Basis.flat(bounds.columns, size)
    first = np.zeros(basis.m)
    first[0] = 1.0 / basis.weight[0]
    # As wide as it is before it ends where the outcome's range does: about another estimate it would end elsewhere.
    low, high = average.uncertainty.interval(average.estimate)
    reason = (
        "This budget and number of records cannot support an effect that varies: a constant is released. More records, "
        "a larger epsilon or fewer covariates would help."
        if bounds.p
        else "No covariates were declared: the effect is a constant."
    )
    return EffectRelease(
        n=average.n,
        guarantee=average.guarantee,
        bounds=bounds,
        design=average.design,
        size=size,
        marginals=basis.marginals,
        coefficients=average.estimate * first,
        # The interval of the average, clipping included, at its 95 % level.
        factor=(high - low) / (2.0 * float(ndtri(0.975))) * np.outer(first, np.eye(basis.m)[0]),
        average=basis.weight * np.eye(basis.m)[0],
        importance=dict.fromkeys(bounds.names, 0.0),
        adjustment=average.adjustment,
        notes=(reason, *average.notes),
        reference=average.reference | {"sd_of_effect": 0.0, "chance_that_it_varies": 0.0},
    )


def _notes(bounds: Bounds, size: Size, known: bool, chance: float) -> tuple[str, ...]:
    notes = []
    if known:
        notes.append("The function relies on the stated probabilities of treatment.")
    else:
        notes.append(
            "The function assumes that treatment is as good as random among people with the same declared covariates."
        )
    notes.append(f"The function is an approximation by {size}, shrunk towards a constant where evidence is faint.")
    if chance < 0.5:
        notes.append("The evidence is in favour of an effect that is the same for everyone.")
    if bounds.p > 1 and not size.pairs:
        notes.append("Joint effects of two covariates are not part of the function.")
    return tuple(notes)
