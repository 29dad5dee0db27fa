"""Later rounds through the gate: each turns a share of the budget into a public model that the next one uses.

Outcomes are on [-1, 1] here, covariates as `Bounds` encodes them. The proof of every round is its geometry; the list
with all diameters is in docs/proofs/ate.md. What a round computes from its noisy sums is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators._allocation import MODELS, MODELS_OF_KNOWN_DESIGN
from discreet.estimators.measurements.coded_features import CodedFeatures
from discreet.estimators.measurements.covariates import Setting
from discreet.estimators.measurements.estimand import EVERYONE, Estimand, RecordWeights
from discreet.estimators.measurements.location import Location, measure_magnitude
from discreet.postprocessing.diagnostics.moments import Calibration, TreatmentMoments
from discreet.postprocessing.feature_selection import (
    Belief,
    FeatureSelection,
    Moments,
    allot,
    beside_constant_effect,
    shrink,
)
from discreet.postprocessing.kernel_basis import NORM_CAP
from discreet.postprocessing.magnitude import Factors, arm_factors
from discreet.postprocessing.reference_population import treatment_moments
from discreet.privacy.compiled.products import Products
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Interval

# Weights of single records in the prognosis stop here: beyond, they add noise and no information.
_MOST_WEIGHT = 3.0
# Guessed square of a unit feature's coefficient where it matters, in squared scales of the outcome.
_SIZE_OUTCOME = 0.5
# Choice: standard deviation of the correlation between errors of both models with six covariates, which grows with the
# root of the root of their number. Of .25, .35, .5, .7 and 1 by the rule of `python -m evidence.tuning`, whose page has
# the studies; that it grows was chosen on the same and some 870 others (not, a quarter, a half and in proportion).
_TOGETHER, _SIX = 0.5, 6.0
# Part of a coefficient's prior variance that a stand-in for the records leaves uncertain, relative uncertainty of a
# model's scale, and part of the prior variance along the other model. By hand, on studies 2000 to 2239 of
# evidence/population.
_GRAM_MISFIT, _SCALE_MISFIT, _OTHER_MISFIT = 0.01, 0.3, 0.02
# By how many prior variances the prognosis is freed before its last correction. Of 0, 1, 4, 16 and 64 the one with the
# smallest errors and widths on the observational studies among 3000 to 3239 of evidence/population; 0, 16 and 64 came
# out the same way on 6500 to 6859.
_FREED = 16.0


@dataclass(frozen=True, slots=True, eq=False)
class Propensity:
    """Public logistic model of treatment, trimmed; or the known design. Coefficients count from the logit ``start``."""

    setting: Setting
    theta: Float
    covariance: Float
    low: float
    high: float
    known: bool = False
    start: float = 0.0

    @classmethod
    def by_design(cls, setting: Setting, low: float, high: float) -> Propensity:
        """Probabilities that come with the records."""
        m = setting.basis.m
        return cls(setting, np.zeros(m), np.zeros((m, m)), low, high, known=True)

    def __call__(self, c: Chunk) -> Float:
        return self.trimmed(self.setting.features.combine(c, self.theta)) if c.e is None else c.e

    @property
    def reach(self) -> float:
        """Largest |t - e|."""
        return max(self.high, 1.0 - self.low)

    def trimmed(self, linear: Float) -> Float:
        """Probabilities at values of the linear predictor."""
        return np.asarray(expit(np.clip(self.start + linear, logit(self.low), logit(self.high))))

    @property
    def on_reference(self) -> Float:
        """Probabilities of the reference points."""
        return self.trimmed(self.setting.reference.features @ self.theta)

    def factors(self, of: Callable[[Float, Float], Float]) -> Factors:
        """Values of a weight ``of(t, e)`` over the reference points, each with its probability in either arm."""
        return arm_factors(self.on_reference, of)


class Answers(NamedTuple):
    """Propensity, prognosis and effect of each record."""

    e: Float
    prognosis: Float
    effect: Float

    def residual(self, c: Chunk) -> Float:
        """What prognosis and effect leave unexplained, in either arm."""
        return c.y - self.prognosis - (c.t - 1.0 + self.e) * self.effect


def mean_model(location: Location, effect: float) -> Callable[[Chunk], Answers]:
    """Models without covariates: the share of treated, or the known design, and the arms' means."""

    def look_up(c: Chunk) -> Answers:
        e = c.e if c.e is not None else np.full(len(c.t), location.treated)
        return Answers(e, location.centre + (1.0 - location.treated - e) * effect, np.full(len(e), effect))

    return look_up


@dataclass(frozen=True, eq=False)
class Outcome:
    """Public model of the prognosis f = (1 - e) mu_1 + e mu_0: features, and an effect that may change with e.

    ``covariance`` is that of the coefficients' error; ``prior_variances`` are those of both models' coefficients.
    ``left_out`` is the size of the product of what the basis leaves out of both models. ``shrunk`` are coefficients
    that err less, with the covariance of their error, but together with those of the propensity. Residuals are
    taken to be no smaller than ``least_scale``, and are not clipped below ``least_clip``, weighted as they are.
    The effect is ``effect + slope * (e - treated)``: where one arm is rare, f is that arm's mean, and an effect that is
    taken to be the same everywhere would put it where the other arm's is.
    ``assignment`` and ``calibration`` are first and last moments of the treatment, for diagnostics.
    ``estimand`` says which average the prognosis is for. ``weights``
    are those of single records, beside it.
    """

    propensity: Propensity
    centre: float
    treated: float
    coefficients: Float
    covariance: Float
    effect: float
    prior_variances: tuple[Float, Float]
    slope: float = 0.0
    least_scale: float = 0.0
    least_clip: float = 0.0
    left_out: float = 0.0
    shrunk: Belief | None = None
    assignment: TreatmentMoments | None = None
    calibration: Calibration | None = None
    estimand: Estimand = EVERYONE
    weights: RecordWeights | None = None

    def for_functions(self) -> Outcome:
        """The same with the prognosis that errs least by itself: an average needs one whose errors have no sign."""
        if self.shrunk is None:
            return self
        return replace(self, coefficients=self.shrunk.mean, covariance=self.shrunk.covariance, shrunk=None)

    def answers(self, c: Chunk) -> Answers:
        """What both models say of each record."""
        e = self.propensity(c)
        explained = self.propensity.setting.features.combine(c, self.coefficients)
        effect = self.effect + self.slope * (e - self.treated)
        return Answers(e, self.centre + explained + (1.0 - self.treated - e) * effect, effect)

    def counted(self, c: Chunk, values: Float) -> Float:
        """Numbers of records with the weights that these have."""
        return values if self.weights is None else self.weights(c) * values


class NuisanceQuestions(NamedTuple):
    """What `fit_nuisances` asks, and where residuals are clipped."""

    clip: float
    queries: tuple[Query, ...]


def nuisance_questions(
    gate: Gate, share: float, features: CodedFeatures, location: Location, pilot: float, known: bool
) -> NuisanceQuestions:
    """Moments of treatment and outcome with all features; they need no second moments, and can be prepared with them.

    Treatment enters as t - (share of treated), which a wrong guess of the features' means spares. A known design has
    no model of treatment.
    """
    basis, treated = features.basis, location.treated
    parts = MODELS_OF_KNOWN_DESIGN if known else MODELS
    to_moments, to_contrast = parts["outcome moments"], parts["outcome contrast"]
    unit = gate.noise_sd(Ball(basis.radius, basis.m), to_moments * share) / gate.n
    clip = max(location.magnitude.clip(unit), location.least_clip)
    reach = max(treated, 1.0 - treated)

    def residual(c: Chunk) -> Float:
        return np.clip(c.y - location.centre - (c.t - treated) * pilot, -clip, clip) * features.weights(c)

    def outcome(c: Chunk) -> Float | Products:
        return features.times(c, residual(c))

    def contrast(c: Chunk) -> Float:
        return (c.t - treated) * residual(c)

    def treatment(c: Chunk) -> Float | Products:
        return features.times(c, (c.t - treated) * features.weights(c))

    queries = [
        Query("outcome moments", to_moments * share, Ball(clip * basis.radius, basis.m), outcome),
        Query("outcome contrast", to_contrast * share, Interval(-clip * reach, clip * reach), contrast),
    ]
    if not known:
        name, ball = "treatment moments", Ball(reach * basis.radius, basis.m)
        queries.append(Query(name, parts[name] * share, ball, treatment))
    return NuisanceQuestions(clip, tuple(queries))


def fit_nuisances(
    gate: Gate,
    asked: NuisanceQuestions,
    setting: Setting,
    location: Location,
    pilot: float,
    trim: tuple[float, float],
    known: bool,
) -> Outcome:
    """Models of treatment and outcome from their moments with all features, and what these say together."""
    basis, solid = setting.basis, setting.gram.solid
    n, treated, scale = gate.n, location.treated, location.scale
    moments, gap, *assignment = gate.ask(*asked.queries)
    seen = max(location.below(asked.clip), 0.7)
    noise = (float(moments.sd) / n / seen) ** 2 * np.eye(basis.m) + scale**2 / n * solid
    # How much covariates explain of it is a matter of where most outcomes are; how much they vary, of all of them.
    size = _SIZE_OUTCOME * location.magnitude.scale**2
    y = Moments(moments.value / n / seen, lambda b: (solid @ b, solid), noise, size, (3.0 * scale) ** 2)
    fitted = shrink(y, basis)
    if known:
        model, assigned, implied, seen_of = Propensity.by_design(setting, *trim), fitted, np.zeros(basis.m), None
    else:
        value, sd = assignment[0].value / n, float(assignment[0].sd) / n
        t = treatment_moments(setting.reference, setting.gram, value, sd, treated, n)
        assigned, seen_of = shrink(t, basis), TreatmentMoments(basis, value, sd)
        # Counted from the share of treated: how records differ from the reference is known of deviations alone.
        model = Propensity(setting, assigned.mean, assigned.covariance, *trim, start=float(logit(treated)))
        # Moments of the treatment that the propensity implies.
        implied = (setting.reference.weight * (model.on_reference - treated)) @ setting.reference.features
    varies = treated * (1.0 - treated) * float(solid[0, 0]) / float(basis.weight[0]) ** 2
    coefficients, step = beside_constant_effect(fitted, y, implied, float(gap.value) / n / seen, varies, 3.0 * scale)
    variances = assigned.scales, fitted.scales
    left_out = float(np.sqrt(assigned.left_out * fitted.left_out))
    return Outcome(
        model,
        location.centre,
        treated,
        coefficients,
        fitted.covariance,
        pilot + step,
        variances,
        least_scale=scale if location.atomic else 0.0,
        least_clip=location.least_clip,
        left_out=left_out,
        assignment=seen_of,
    )


def refine_propensity(gate: Gate, name: str, share: float, outcome: Outcome) -> Outcome:
    """Newton step on the records themselves, by the moments of t - e, where the prognosis is uncertain as well."""
    model, setting, n = outcome.propensity, outcome.propensity.setting, gate.n
    e = model.on_reference
    varies = e * (1.0 - e)
    unit = gate.noise_sd(Ball(NORM_CAP**0.5 * model.reach, 1), share) / n / float(np.mean(varies))
    loss_weight, variance = (
        setting.size * np.diag(covariance) for covariance in (outcome.covariance, model.covariance)
    )
    selection = FeatureSelection.of(allot(loss_weight, variance, unit**2), setting.size)
    selection = selection.beside(setting.second, outcome.coefficients, model.theta)

    def rows(c: Chunk) -> Float | Products:
        return setting.features.selected(c, selection, c.t - model(c))

    (moments,) = gate.ask(Query(name, share, Ball(selection.radius * model.reach, selection.m), rows))
    slope, square = setting.slope_and_square(selection, varies)
    noise = (float(moments.sd) / n) ** 2 * np.eye(selection.m) + square / n
    misfit = _misfit(
        outcome.prior_variances[0], setting.second, (model.theta, _SCALE_MISFIT), (outcome.coefficients, None)
    )
    before, seen = Belief(model.theta, model.covariance + misfit), moments.value / n
    belief = before.update(seen, slope, noise, setting.second, 1.0)
    better = replace(model, theta=belief.mean, covariance=belief.covariance)
    return replace(
        outcome, propensity=better, calibration=Calibration(selection, seen, slope, noise, e, before.covariance)
    )


def _misfit(variances: Float, gram: Float, *directions: tuple[Float, float | None]) -> Float:
    """Variance that earlier rounds cannot have taken away: their slopes were those of a stand-in for the records.

    A part of each coefficient's prior variance, and along functions that matter most: the model's own, whose size may
    be off by a part, and the other model's.
    """
    found = _GRAM_MISFIT * np.diag(variances)
    total = float(variances[1:] @ np.diag(gram)[1:])
    for direction, part in directions:
        plain = direction.copy()
        plain[0] = 0.0
        square = max(float(plain @ gram @ plain), 1e-12)
        size = part**2 if part is not None else _OTHER_MISFIT * total / square
        found = found + size * np.outer(plain, plain)
    return np.asarray(found)


def correct_outcome(
    gate: Gate, number: int, share: float, magnitude_share: float, outcome: Outcome, *, last: bool
) -> tuple[Outcome, float]:
    """Correct the prognosis by the moments of weighted residuals, where the propensity is uncertain as well.

    Shrinking takes from both models what they have in common, and the product of what is missing then has a sign. The
    last correction hardly shrinks: what it leaves is mostly its own noise, which has none.

    Returns the better prognosis, and the remainder that both models then leave.
    """
    model, setting, n, estimand = outcome.propensity, outcome.propensity.setting, gate.n, outcome.estimand
    freed = _FREED if last else 0.0

    def residual(c: Chunk) -> Float:
        answers = outcome.answers(c)
        return outcome.counted(c, estimand.balancing(c.t, answers.e, _MOST_WEIGHT) * answers.residual(c))

    factors = model.factors(lambda t, e: estimand.balancing(t, e, _MOST_WEIGHT))
    magnitude = measure_magnitude(gate, f"residual magnitude {number}", magnitude_share, residual, 4.0, factors)
    unit = gate.noise_sd(Ball(NORM_CAP**0.5, 1), share) / n
    clip, scale = max(magnitude.clip(unit), outcome.least_clip), max(magnitude.scale, outcome.least_scale)
    if estimand.one_arm:
        # Residuals of the other arm hardly count: what most are smaller than says nothing about those that do.
        scale = max(scale, sqrt(magnitude.clipped_square(clip)))
    e = model.on_reference
    # Beside the remainder, an error of the prognosis adds to the score's variance.
    loss_weight = setting.size * np.diag(model.covariance) + float(np.mean(estimand.inflation(e))) / n
    uncertain = freed * outcome.prior_variances[1] if last else np.diag(outcome.covariance)
    selection = FeatureSelection.of(
        allot(loss_weight, setting.size * uncertain, (unit * clip) ** 2), setting.size
    ).beside(setting.second, outcome.coefficients, model.theta)
    # The selected features share the norm, so that each has so much more noise: clip by that.
    clip = max(magnitude.clip(unit * np.sqrt(selection.m)), outcome.least_clip)

    def rows(c: Chunk) -> Float | Products:
        return setting.features.selected(c, selection, np.clip(residual(c), -clip, clip))

    (moments,) = gate.ask(Query(f"residual moments {number}", share, Ball(clip * selection.radius, selection.m), rows))
    seen = max(magnitude.below(clip), 0.7)
    everywhere = np.ones(len(e))
    slope, square = setting.slope_and_square(selection, everywhere)
    noise = (float(moments.sd) / n / seen) ** 2 * np.eye(selection.m) + square * scale**2 / n
    misfit = _misfit(
        outcome.prior_variances[1], setting.second, (outcome.coefficients, _SCALE_MISFIT), (model.theta, None)
    )
    before = Belief(outcome.coefficients, outcome.covariance + misfit)
    free = Belief(before.mean, before.covariance + freed * np.diag(outcome.prior_variances[1]))
    shrunk, belief = (
        each.update(moments.value / n / seen, slope, noise, setting.second, 2.0 * scale) for each in (before, free)
    )
    better = replace(outcome, coefficients=belief.mean, covariance=belief.covariance, shrunk=shrunk)
    return better, _remainder(better, float(np.sum((belief.mean - before.mean) ** 2)), freed)


def _remainder(outcome: Outcome, step: float, freed: float) -> float:
    """Standard deviation of E[(pi - e)(f* - f)/(e(1 - e))], the second-order error of the score's mean.

    ``step`` is the square of the last correction, and ``freed`` says by how many prior variances it was freed.

    Errors of both models may go together in all features, as they do where one cause moves treatment and outcome: then
    products add up, and do not cancel.
    """
    setting, assigned = outcome.propensity.setting, outcome.propensity.covariance
    gram = setting.weighted(outcome.estimand.weigh(outcome.propensity.on_reference)) + setting.gram.apart
    error = gram @ outcome.covariance @ gram + setting.gram.variance * step * np.eye(setting.basis.m)
    apart = float(np.sum(assigned * error))
    # Of a coefficient's variance P under a prior variance V, P squared over V is what shrinking left behind.
    left = [
        np.diag(own) / np.sqrt(prior)
        for own, prior in zip((assigned, outcome.covariance), outcome.prior_variances, strict=True)
    ]
    together = float(np.sum((left[0] * left[1] * setting.size)[1:])) / (1.0 + freed) + outcome.left_out
    together *= _TOGETHER * (len(setting.basis.codings) / _SIX) ** 0.25
    return float(np.sqrt(max(apart, 0.0) + together**2))
