"""Rounds through the gate that measure how an effect varies: each turns a share of the budget into better models.

Outcomes are on [-1, 1] here, covariates as `Bounds` encodes them. The proof of every round is its geometry; the list
with all diameters is in docs/proofs/cate.md. What a round computes from its noisy sums is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import logit

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators.measurements.covariates import Setting
from discreet.estimators.measurements.effect_models import (
    Models,
    fit_treatment,
    joint_groups,
    prior_variance,
    single_groups,
)
from discreet.estimators.measurements.location import Location, RowMap, measure_sides, read_sides, sides_question
from discreet.estimators.measurements.nuisances import Propensity
from discreet.postprocessing.feature_selection import FeatureSelection, allot
from discreet.postprocessing.group_shrinkage import Information
from discreet.postprocessing.kernel_basis import NORM_CAP
from discreet.postprocessing.magnitude import MagnitudeHistogram
from discreet.postprocessing.reference_population import weighted_gram
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball

Correction = Literal["R", "DR"]

# Residuals are clipped at so many scales: little is lost, since the moments are compared with what clipping leaves.
_CLIP_FIRST, _CLIP, _CLIP_LAST = 1.0, 1.8, 2.2
# A clip hides at most this part of the mean magnitude, however far out it has to be: an effect on a rare event moves
# the number of large residuals, not their place, and would be lost with them.
_HIDDEN_FIRST, _HIDDEN = 0.1, 0.03
# Relative error of the models behind the moments, and of the initial moments, whose residual has no model yet.
_MODEL_ERROR, _INITIAL_MODEL_ERROR = 0.15, 0.3
# Part of the prior variance of an effect's coefficients that the initial moments leave in any case.
_UNSEEN = 0.02
# Weight of the initial information on the outcome beside that of a later round.
_KEPT = 0.2
# Steps in which the initial contrast is freed of confounding, and Newton steps of the propensity.
_ALTERNATE, _NEWTON = 3, 6
# Longest step on the logit, and by how much it may leave more unexplained than before.
_STEP, _WORSE = 1.0, 1.05
# Points of the reference by which a selection's norm cap is chosen.
_POINTS = 2_000
# A residual exceeds twice the outcome's half range only where the models are off.
_CEILING = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class InitialMoments:
    """Moments of a residual without models, with all features: its level, and its contrast between the arms.

    ``sampling`` is the precision of the records' mean of a unit feature's moment, beside that of the population.
    """

    selection: FeatureSelection
    level: Float
    contrast: Float
    sd: float
    sampling: float
    treated: float


def _pilot_residual(location: Location, pilot: float) -> RowMap:
    """What a constant effect leaves of each record's outcome."""
    return lambda c: c.y - location.centre - (c.t - location.treated) * pilot


def initial_magnitude_question(share: float, location: Location, pilot: float) -> Query:
    """How large the residual beside a constant effect is: asked before the initial moments, without features."""
    return sides_question("initial residual magnitude", share, _pilot_residual(location, pilot), _CEILING)


def measure_initial_moments(
    gate: Gate, share: float, asked: Query, setting: Setting, location: Location, pilot: float, *beside: Query
) -> InitialMoments:
    """Moments r psi and 2 (t - p) r psi of the residual r beside a constant effect, whose magnitude is ``asked`` first.

    Their pass prepares what will be asked ``beside``.
    """
    n, p, basis = gate.n, location.treated, setting.basis
    residual = _pilot_residual(location, pilot)
    magnitude = read_sides(gate, asked, _CEILING)
    clip = magnitude.clip_at_scales(_CLIP_FIRST, _HIDDEN_FIRST)
    seen = max(magnitude.below(clip), 0.15)
    scale = location.magnitude.scale
    groups = joint_groups(basis, p)
    prior = prior_variance(groups, scale**2, (0.5 * scale) ** 2 / float(basis.weight[0]) ** 2)
    sampling = n * seen / magnitude.clipped_square(clip)
    selection = _select(setting, prior[: basis.m], _unit(gate, 0.5 * share) * clip / seen, sqrt(1.0 / sampling))
    reach = max(p, 1.0 - p)

    def rows(c: Chunk) -> Float:
        both = setting.features.scratch(len(c.t), 2 * selection.m)
        level, weight = selection(setting.features(c), both[:, : selection.m])
        level *= (np.clip(residual(c), -clip, clip) * weight)[:, None]
        np.multiply(level, (2.0 * (c.t - p))[:, None], out=both[:, selection.m :])
        return both

    radius = clip * selection.radius * sqrt(1.0 + 4.0 * reach**2)
    question = Query("initial moments", share, Ball(radius, 2 * selection.m), rows)
    gate.prepare(question, *beside)
    (moments,) = gate.ask(question)
    values = moments.value / n / seen
    return InitialMoments(
        selection, values[: selection.m], values[selection.m :], float(moments.sd) / n / seen, sampling, p
    )


class TreatmentQuestion(NamedTuple):
    """The moments (e - p) psi, and the features that they are of."""

    selection: FeatureSelection
    query: Query


def treatment_question(gate: Gate, share: float, setting: Setting, location: Location) -> TreatmentQuestion:
    """What `assign` asks: a known probability that differs between records, in the place of t."""
    p = location.treated
    varies, reach = p * (1.0 - p), max(p, 1.0 - p)
    noise, sampling = _unit(gate, share) * reach / varies, sqrt(1.0 / (gate.n * varies))
    selection = _select(setting, prior_variance(single_groups(setting.basis), 0.25, 4.0), noise, sampling)

    def rows(c: Chunk) -> Float:
        return setting.features.selected(c, selection, _known(c) - p)

    return TreatmentQuestion(
        selection, Query("treatment moments", share, Ball(reach * selection.radius, selection.m), rows)
    )


def _known(c: Chunk) -> Float:
    assert c.e is not None
    return c.e


def assign(
    gate: Gate,
    asked: TreatmentQuestion,
    setting: Setting,
    location: Location,
    trim: tuple[float, float],
) -> Propensity:
    """Logistic model of a known design from the moments (e - p) psi.

    Records bring their own probability: the model only says what it is on the reference.
    """
    n, p, basis, selection = gate.n, location.treated, setting.basis, asked.selection
    groups, varies = single_groups(basis), p * (1.0 - p)
    (moments,) = gate.ask(asked.query)
    value, sd = moments.value / n, float(moments.sd) / n
    psi, weight = selection(setting.reference.features)
    apart = varies * selection.scale[:, None] * setting.gram.apart[selection.kept]
    # The share of treated is where to start, and what it leaves unexplained is what steps are judged by.
    start = np.zeros(basis.m)
    start[0] = logit(np.clip(p, *trim)) / basis.weight[0]
    model = Propensity(setting, start, np.zeros((basis.m, basis.m)), *trim, known=True)
    off = value - (psi * (weight * (model.on_reference - p))[:, None]).mean(axis=0)
    for _ in range(_NEWTON):
        e = model.on_reference
        slope = setting.slope(selection, e * (1.0 - e))
        seen = Information.seen(off, sd, slope, 0.0).around(model.theta)
        fitted = fit_treatment(seen, _sampled(setting, selection, n, e * (1.0 - e)), groups, model.theta)
        # A full step may overshoot where probabilities are trimmed or features are nearly collinear.
        for part in (1.0, 0.5, 0.25, 0.125):
            step = _limited(setting, part * (fitted.mean - model.theta))
            stepped = replace(model, theta=model.theta + step, covariance=fitted.covariance)
            left = value - (psi * (weight * (stepped.on_reference - p))[:, None]).mean(axis=0) - apart @ stepped.theta
            if float(left @ left) <= _WORSE * float(off @ off) + selection.m * sd**2:
                model, off = stepped, left
                break
        else:
            break
    return model


def known_constant(setting: Setting, probability: float, trim: tuple[float, float]) -> Propensity:
    """One public probability for everyone: nothing has to be asked."""
    theta = np.zeros(setting.basis.m)
    theta[0] = logit(probability) / setting.basis.weight[0]
    return Propensity(setting, theta, np.zeros((len(theta), len(theta))), *trim, known=True)


def _limited(setting: Setting, step: Float) -> Float:
    """A step on the logit that moves nobody's far, on average over the reference."""
    length = sqrt(max(float(step @ setting.second @ step), 0.0))
    return np.asarray(step * min(1.0, _STEP / max(length, 1e-300)))


def combine_moments(initial: InitialMoments, model: Propensity, location: Location, pilot: float) -> Models:
    """Models of outcome and effect from the initial moments (post-processing).

    Its level holds the pilot effect of those who are treated more often than others, and its contrast holds the
    outcome's model where these differ; both are computed on the reference and taken out, in a few alternations.
    """
    setting, p = model.setting, initial.treated
    e = model.on_reference
    psi, weight = initial.selection(setting.reference.features)

    def mean(values: Float) -> Float:
        return np.asarray((psi * (weight * values)[:, None]).mean(axis=0))

    level = initial.level + pilot * mean(e - p)
    slope = setting.slope(initial.selection, _everywhere(setting))
    of_outcome = Information.seen(level, initial.sd, slope, _INITIAL_MODEL_ERROR)
    slope = setting.slope(initial.selection, 2.0 * e * (1.0 - e))
    sampling = initial.sampling * setting.second, initial.sampling * _second(setting, e * (1.0 - e))
    groups = joint_groups(setting.basis, p)
    off = np.zeros(len(level))
    for _ in range(_ALTERNATE):
        sd = hypot(initial.sd, _INITIAL_MODEL_ERROR * sqrt(float(np.mean(off**2))))
        of_effect = Information.seen(initial.contrast - off, sd, slope, _INITIAL_MODEL_ERROR)
        models = Models.first(
            model, groups, location.centre, pilot, location.magnitude.scale, of_outcome, of_effect, sampling
        )
        explained = setting.reference.features @ models.outcome
        off = 2.0 * mean((e - p) * explained - (e - p) ** 2 * pilot)
    return models


def outcome_round(gate: Gate, number: int, share: float, magnitude_share: float, models: Models) -> Models:
    """Correct the outcome's model by the moments r psi of its residuals, where it is uncertain."""
    setting, n = models.setting, gate.n
    magnitude = measure_sides(gate, f"outcome residual magnitude {number}", magnitude_share, models.residual, _CEILING)
    clip = magnitude.clip_at_scales(_CLIP, _HIDDEN)
    seen = max(magnitude.below(clip), 0.3)
    precision = n * seen / magnitude.clipped_square(clip)
    selection = _select(setting, models.variance(effect=False), _unit(gate, share) * clip / seen, sqrt(1.0 / precision))

    def rows(c: Chunk) -> Float:
        return setting.features.selected(c, selection, np.clip(models.residual(c), -clip, clip))

    (moments,) = gate.ask(Query(f"outcome moments {number}", share, Ball(clip * selection.radius, selection.m), rows))
    everywhere = _everywhere(setting)
    value, sd = moments.value / n / seen, float(moments.sd) / n / seen
    more = Information.seen(value, sd, setting.slope(selection, everywhere), _MODEL_ERROR).around(models.outcome)
    before = models.known_outcome.weakened(_KEPT) if number == 1 else models.known_outcome
    return models.with_outcome(before + more, _sampled(setting, selection, precision, everywhere))


def effect_round(
    gate: Gate,
    number: int,
    share: float,
    magnitude_share: float,
    models: Models,
    *,
    correction: Correction,
    last: bool,
    alone: bool,
) -> Models:
    """Correct the effect's model by the moments w (t - e) r psi, orthogonal to errors of the outcome's model.

    With w = 1 these are the R-learner's, which count records where both arms are common; with w = 1 / (e (1 - e)) those
    of the doubly robust score, which count all records alike. The product is clipped, which lowers the slope where
    one arm is rare: the released distribution of |r| says by how much. ``alone`` drops earlier information on the
    effect: that of the initial moments was confounded.
    """
    setting, n = models.setting, gate.n
    magnitude = measure_sides(gate, f"effect residual magnitude {number}", magnitude_share, models.residual, _CEILING)
    e = models.propensity.on_reference
    arms = _Arms(e, _weight(e, correction))
    clip = arms.clip(magnitude, _CLIP_LAST if last else _CLIP)
    varies = arms.seen(magnitude, clip)
    level = arms.level(clip)
    precision = n * magnitude.below(level) / magnitude.clipped_square(level) * arms.balance
    typical = float(np.mean(varies))
    noise, sampling = _unit(gate, share) * clip / typical, sqrt(1.0 / (precision * typical))
    variance = models.variance(effect=True)
    if number == 1:
        # The initial contrast was of residuals without any model: what it has not seen may be there.
        prior = prior_variance(models.groups, models.scale**2, models.scale**2)[setting.basis.m :]
        variance = np.maximum(variance, _UNSEEN * prior)
    selection = _select(setting, variance, noise, sampling)

    def rows(c: Chunk) -> Float:
        e = models.propensity(c)
        w = _weight(e, correction)
        most = clip / _reach(e, w)
        product = w * (c.t - e) * np.clip(models.residual(c), -most, most)
        return setting.features.selected(c, selection, np.clip(product, -clip, clip))

    (moments,) = gate.ask(Query(f"effect moments {number}", share, Ball(clip * selection.radius, selection.m), rows))
    slope = setting.slope(selection, varies)
    more = Information.seen(moments.value / n, float(moments.sd) / n, slope, _MODEL_ERROR).around(models.effect)
    known = more if alone else models.known_effect + more
    return models.with_effect(known, _sampled(setting, selection, precision, varies), last=last)


def _weight(e: Float, correction: Correction) -> Float:
    return np.ones_like(e) if correction == "R" else 1.0 / (e * (1.0 - e))


def _reach(e: Float, weight: Float) -> Float:
    """What multiplies the residual in the rarer arm. Both arms are clipped by it, lest the tails of one be missed."""
    return np.maximum(np.maximum(e, 1.0 - e) * weight, 1e-6)


class _Arms:
    """How weighted products (t - e) r behave over the reference's probabilities."""

    def __init__(self, e: Float, weight: Float) -> None:
        self.varies, self.square = e * (1.0 - e) * weight, e * (1.0 - e) * weight**2
        self.reach = _reach(e, weight)

    @property
    def balance(self) -> float:
        """Mean of the slope over that of the square: one for the R-learner, whose weights are the best ones."""
        return float(np.mean(self.varies) / np.mean(self.square))

    def level(self, clip: float) -> float:
        """Where residuals are clipped, on average over the slope."""
        return clip * float(np.mean(self.varies / self.reach) / np.mean(self.varies))

    def clip(self, magnitude: MagnitudeHistogram, scales: float) -> float:
        """That of the residual where one factor in either arm would do: see `clip_at_scales`."""
        return magnitude.clip_at_scales(scales, _HIDDEN) / self.level(1.0)

    def seen(self, magnitude: MagnitudeHistogram, clip: float) -> Float:
        """Slope of each point's product to its effect, less what clipping hides."""
        return np.asarray(self.varies * magnitude.below_each(clip / self.reach))


def _select(setting: Setting, variance: Float, noise: float, sampling: float) -> FeatureSelection:
    """Features by the variance that is left in each; every feature's part of the function counts alike.

    ``noise`` and ``sampling`` are the standard deviations of a unit feature's moment.
    """
    selection = FeatureSelection.of(
        allot(np.ones(len(variance)), setting.size * variance, NORM_CAP * noise**2), setting.size
    )
    return selection.with_best_norm_cap(setting.reference.features[:_POINTS], noise**2, sampling**2)


def _unit(gate: Gate, share: float) -> float:
    """Noise, over n, of moments of selected features times a quantity within [-1, 1], at a norm cap of one."""
    return gate.noise_sd(Ball(1.0, 1), share) / gate.n


def _sampled(setting: Setting, selection: FeatureSelection, precision: float, varies: Float) -> Float:
    """Precision with which these records stand for others, less what is lost by weighing some of them down."""
    efficiency = selection.efficiency(setting.reference.features[:_POINTS])
    root = np.full(setting.basis.m, sqrt(float(np.mean(efficiency))))
    root[selection.kept] = np.sqrt(efficiency)
    return np.asarray(precision * root[:, None] * _second(setting, varies) * root)


def _second(setting: Setting, varies: Float) -> Float:
    """Second moments of all features on the reference, its points weighted."""
    return weighted_gram(setting.reference.features, varies) / len(varies)


def _everywhere(setting: Setting) -> Float:
    return np.ones(len(setting.reference.weight))
