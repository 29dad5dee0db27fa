"""The treatment effect as a function of covariates, with a proved (epsilon, delta) and pointwise intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from numbers import Real
from typing import Any, ClassVar, get_args

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.columns import Range
from discreet.data.records import Records
from discreet.estimators import _base as fitted
from discreet.estimators._base import (
    Progress,
    after_count,
    count_first,
    open_gate,
    open_model_gate,
    sample_note,
    trimmed,
)
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
from discreet.postprocessing.basis import MOST_CURVED_PAIRS, MOST_PAIRS, Basis, Size
from discreet.postprocessing.group_shrinkage import profile
from discreet.postprocessing.marginals import Column
from discreet.privacy.budget import Budget, Shares
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.releases.average import Release
from discreet.releases.function import EffectRelease

# Below this n mu (as it is, and for six covariates) no noisy function beats a constant.
_CONSTANT, _CONSTANT_SCALED = 350.0, 150.0
# Highest power by n mu (for six covariates); pairs, curved pairs and jumps from so much on.
_DEGREES = ((0.0, 2), (200.0, 3), (350.0, 4), (3000.0, 5))
_PAIRS, _CURVED, _JUMPS = 400.0, 3000.0, 3000.0
# Points of the reference over which standard deviations are averaged.
_POINTS = 2_000
# Intervals are so many times as wide as the shrunk posterior would have them, at least and at most: it knows nothing of
# what first-order formulas miss, and what is believed against it is not without limit.
_TIMES = (2.0, 2.4)
# Shares of the first look and of the effect's rounds by n mu: where there is enough of it, a round more takes out what
# the slopes of others had wrong.
_EFFECT_SHARES: tuple[tuple[float, float, tuple[float, ...]], ...] = (
    (300.0, 0.16, (0.13, 0.13, 0.24)),
    (0.0, 0.22, (0.18, 0.26)),
)


class CATE(BaseEstimator):  # type: ignore[misc]
    """Treatment effect as a function of the declared covariates, from observational records or a known design.

    Rounds through the gate: where the outcome and the covariates are; a first look at outcome and contrast; the
    propensity; then outcome and effect in turn, each corrected by orthogonal moments of residuals. Coefficients are
    shrunk block by block, so that covariates that do not matter drop out. No sample is split.

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

    fit, fit_table = fitted.fit, fitted.fit_table
    summary, guarantee_ = fitted.summary, property(fitted.guarantee_)
    samples = True

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

    def _released(self) -> EffectRelease:
        release: EffectRelease = fitted.released(self)
        return release

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget("CATE needs delta, e.g. delta=1e-6: its rounds add Gaussian noise.")
        if self.correction not in get_args(Correction):
            raise InvalidInput('correction must be "R" or "DR": choose the moments that correct the effect.')

    def _fit(self, records: Records, progress: Progress | None) -> CATE:
        gate = open_gate(self, records, progress)
        count_first(gate)
        strength = gate.n * gate.mu
        design = Design.of(strength, gate.n, gate.bounds.columns, self.propensity)
        if not design.varying:
            # All of the budget goes to the average effect, by the rounds that are made for it.
            average = {name: value for name, value in self.get_params().items() if name != "correction"}
            self.release_ = _constant(ATE(**average)._fit_through(gate).release_)
            return self
        # All rounds but the last go through this one: on all records, or on a sample of very many.
        some = open_model_gate(gate, Basis.flat(gate.bounds.columns, design.size).m)
        share = after_count(gate, design.shares)
        marginals = closer_questions(gate.bounds.columns, share["marginals"])
        where = locate(some, share["location"], *marginals)
        pilot = pilot_effect(some, share["pilot"], where)
        basis = build_closer_basis(some, marginals, share["marginals"], design.size)
        spread = initial_magnitude_question(0.2 * share["looks"], where, pilot)
        setting = measure_gram(some, share["gram"], Features(basis, some.n), spread)
        asked = treatment_question(some, share["treatment"], setting, where) if "treatment" in share else None
        beside = () if asked is None else (asked.query,)
        look = measure_initial_moments(some, share["first look"], spread, setting, where, pilot, *beside)
        propensity = self._propensity(some, share, asked, setting, where, some.n * gate.mu)
        models = combine_moments(look, propensity, where, pilot)
        for number in range(1, design.rounds + 1):
            to_look, to_effect = 0.5 / design.rounds * share["looks"], share[f"effect {number}"]
            if number <= 2:
                models = outcome_round(some, number, share[f"outcome {number}"], 0.15 * share["looks"], models)
            last = number == design.rounds
            # What a sample says of the effect is forgotten beside what all records say.
            models = effect_round(
                gate if last else some,
                number,
                to_effect,
                to_look,
                models,
                correction=self.correction,
                last=last,
                alone=number == 1 or (last and some is not gate),
            )
        release = _release(gate, design, models, where, share, self.correction)
        self.release_ = replace(release, notes=release.notes + sample_note(gate, some))
        return self

    def _propensity(
        self,
        gate: Gate,
        share: dict[str, float],
        asked: TreatmentQuestion | None,
        setting: Setting,
        where: Location,
        strength: float,
    ) -> Propensity:
        """The probability of treatment: public, modelled from a public column, or estimated and calibrated."""
        if asked is None:
            return known_constant(setting, float(self.propensity), gate.bounds.propensity)
        known = self.propensity is not None
        trim = gate.bounds.propensity if known else trimmed(gate.bounds, where.treated, strength)
        model, information = assign(gate, asked, setting, where, trim, known=known)
        return model if known else refine_propensity(gate, share["calibration"], model, information)


@dataclass(frozen=True, slots=True)
class Design:
    """Size of the basis, number of rounds and shares of the budget: public rules in n mu and the declared columns."""

    size: Size
    varying: bool
    rounds: int
    shares: Shares

    @classmethod
    def of(cls, strength: float, n: float, columns: tuple[Column, ...], propensity: Any) -> Design:
        """By n mu (``strength``), the number of records, the columns, and whether the propensity is known."""
        scaled = strength / sqrt(max(len(columns), 2) / 6.0)
        first, effects = next((first, effects) for level, first, effects in _EFFECT_SHARES if scaled >= level)
        parts = {"location": 0.03, "pilot": 0.01, "marginals": 0.04, "gram": 0.03, "first look": first, "looks": 0.05}
        parts |= {"outcome 1": 0.06, "outcome 2": 0.04, "treatment": 0.06, "calibration": 0.02}
        parts |= {f"effect {number}": part for number, part in enumerate(effects, 1)}
        last = f"effect {len(effects)}"
        if propensity is not None:
            parts[last] += parts.pop("calibration")
            if isinstance(propensity, Real):
                parts[last] += parts.pop("treatment")
        varying = strength >= _CONSTANT and scaled >= _CONSTANT_SCALED and bool(columns)
        return cls(effect_size(scaled, n, columns), varying, len(effects), Shares(**parts))


def effect_size(scaled: float, n: float, columns: tuple[Column, ...]) -> Size:
    """Public rule for the size of the basis; plainer while there are not ten records to a feature."""
    terms = [1 if isinstance(column, Range) else len(column.levels) - 1 for column in columns]
    products, pairs = (sum(terms) ** 2 - sum(k * k for k in terms)) // 2, len(columns) * (len(columns) - 1) // 2
    degree = max(degree for level, degree in _DEGREES if scaled >= level)
    few = 0 < products <= MOST_PAIRS
    sizes = [
        Size(
            degree=degree,
            pairs=few and scaled >= _PAIRS,
            curved=few and 0 < pairs <= MOST_CURVED_PAIRS and scaled >= _CURVED,
            jumps=_jumps(len(columns)) if scaled >= _JUMPS else 0,
        )
    ]
    sizes += [Size(degree=k, pairs=False, curved=False) for k in range(degree, 0, -1)]
    return next((size for size in sizes if 10 * Basis.flat(columns, size).m <= n), sizes[-1])


def _jumps(p: int) -> int:
    """Ranks at which each covariate may jump: fewer where there are many covariates."""
    return 11 if p <= 6 else 3 if p <= 12 else 0


def _release(
    gate: Gate, design: Design, models: Models, where: Location, share: dict[str, float], correction: Correction
) -> EffectRelease:
    """What is published: everything in it is computed from released numbers and public facts."""
    unit, setting = gate.bounds.outcome_width / 2.0, models.setting
    basis, known = setting.basis, models.propensity.known
    constant = np.zeros(basis.m)
    constant[0] = models.pilot / basis.weight[0]
    coefficients = unit * (constant + models.effect)
    average = setting.reference.features.mean(axis=0)
    spread = setting.second - np.outer(average, average)
    importance = _importance(basis, coefficients, spread, gate.bounds.names)
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
            "shares": share,
        },
        notes=_notes(gate.bounds, design.size, known, models.fitted.any_special),
        reference={
            "unadjusted": unit * models.pilot,
            "treated_share": where.treated,
            "sd_of_effect": float(np.sqrt(max(float(coefficients @ spread @ coefficients), 0.0))),
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


def _importance(basis: Basis, coefficients: Float, spread: Float, names: tuple[str, ...]) -> dict[str, float]:
    """Covariance of each covariate's part with the whole effect, over the whole's variance; products are halved."""
    shares = coefficients * (spread @ coefficients)
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
