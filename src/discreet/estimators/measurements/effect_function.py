"""Rounds through the gate that measure how an effect varies, beside models of treatment and outcome that are public.

With f = (1 - e) mu_1 + e mu_0, an outcome is y = f(x) + (t - 1 + e(x)) tau(x) + noise, and (t - e)(t - 1 + e) is
e (1 - e) whatever t is: moments of (t - e)(y - f) with the features identify tau, and an error of f disturbs them only
by its product with an error of e. Outcomes are on [-1, 1] here. The proof of every round is its geometry; the list with
all diameters is in docs/proofs/cate.md. What a round computes from its noisy sums is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.records import Chunk
from discreet.estimators.measurements.covariates import Setting, screened_functions
from discreet.estimators.measurements.location import Location, measure_sides
from discreet.estimators.measurements.nuisances import Outcome, Propensity
from discreet.estimators.measurements.score import prognosis_range
from discreet.postprocessing.effect_shrinkage import (
    Information,
    Shrunk,
    effect_groups,
    guessed_variance,
    level_variance,
    shrink_effect,
    unit_variance,
)
from discreet.postprocessing.feature_selection import FeatureSelection, allot, effect_importance
from discreet.postprocessing.kernel_basis import NORM_CAP, CodedBasis
from discreet.postprocessing.magnitude import MagnitudeHistogram
from discreet.postprocessing.reference_population import weighted_gram
from discreet.privacy.compiled.products import Products
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells

Correction = Literal["R", "DR"]

# Residuals are clipped at so many scales: little is lost, since slopes are those that clipping leaves.
_CLIP = 2.2
# A clip hides at most this part of the mean magnitude, however far out it has to be: an effect on a rare event moves
# the number of large residuals, not their place, and would be lost with them.
_HIDDEN = 0.03
# A residual exceeds twice the outcome's half range only where the models are off.
_CEILING = 2.0
# Points of the reference by which a selection's norm cap is chosen.
_POINTS = 2_000
# Cells of a public column of probabilities.
_PROBABILITIES = 16


@dataclass(frozen=True, slots=True, eq=False)
class EffectFunction:
    """A public effect function beside public models: a level, and coefficients of the models' own features.

    Parameters
    ----------
    models, location
        What was measured before.
    setting
        The features that it is made of, and what is known of their distribution.
    e
        Probabilities of treatment of the reference's points.
    level
        A public average effect, from which the function counts.
    correction
        The moments that it is from.
    kept
        Features that it is made of, the constant first.
    settled
        Whether these are final: nothing will be asked about others.
    known
        What noisy moments say of the records' coefficients.
    fitted
        Coefficients of the features kept.
    """

    models: Outcome
    location: Location
    setting: Setting
    e: Float
    level: float
    correction: Correction
    kept: IntArray
    known: Information
    fitted: Shrunk
    settled: bool = False

    @classmethod
    def constant(
        cls, models: Outcome, location: Location, e: Float, level: float, correction: Correction
    ) -> EffectFunction:
        """The same effect for everyone, before anything is asked, among functions of the models' own features."""
        setting = models.propensity.setting
        m, guess = setting.basis.m, np.diag(guessed_variance(setting.basis, location.magnitude.scale))
        nothing = Information.nothing(m), Shrunk(np.zeros(m), guess, 0.0)
        return cls(models, location, setting, e, level, correction, np.arange(m), *nothing)

    def of_features(self, basis: CodedBasis) -> EffectFunction:
        """The same effect for everyone, among functions of other features of the same codes."""
        m, guess = basis.m, np.diag(guessed_variance(basis, self.location.magnitude.scale))
        return replace(
            self,
            setting=self.setting.with_features(basis),
            kept=np.arange(m),
            known=Information.nothing(m),
            fitted=Shrunk(np.zeros(m), guess, 0.0),
        )

    @property
    def coefficients(self) -> Float:
        """Of all features, beside the level."""
        return self._of_all(self.fitted.mean)

    @property
    def variance(self) -> Float:
        """What is left of each coefficient's."""
        return self._of_all(np.diag(self.fitted.covariance))

    def residual(self, c: Chunk, e: Float) -> Float:
        """What the models and the function leave unexplained of each record's outcome."""
        prognosis = np.clip(self.models.answers(c).prognosis, *prognosis_range(self.location))
        return c.y - prognosis - (c.t - 1.0 + e) * (self.level + self.setting.features.combine(c, self.coefficients))

    def weight(self, e: Float) -> Float:
        """What multiplies (t - e): one, or the doubly robust score's weight."""
        return np.ones_like(e) if self.correction == "R" else 1.0 / (e * (1.0 - e))

    def forgotten(self) -> EffectFunction:
        """The same function, as if nothing were known but how large its coefficients may be."""
        guess = np.diag(np.diag(self.fitted.covariance) + self.fitted.mean**2)
        return replace(
            self, known=Information.nothing(self.setting.basis.m), fitted=self.fitted._replace(covariance=guess)
        )

    def corrected(self, asked: Asked, kept: IntArray) -> EffectFunction:
        """After more is known, as a function of those features that are ``kept``."""
        features, inside = self.setting.reference.features, np.ix_(kept, kept)
        slope = (asked.psi * asked.seen[:, None]).T @ features / len(features)
        known = self.known + Information.of(asked.value, asked.sd, slope).around(self.coefficients)
        sampling = asked.sampling * weighted_gram(features, asked.seen) / len(features)
        now = Information(known.precision[inside], known.target[kept]).sampled(sampling[inside])
        basis, scale = self.setting.basis, self.location.magnitude.scale
        fitted = shrink_effect(
            now, scale**2 * unit_variance(basis)[kept], level_variance(basis, scale), effect_groups(basis)[kept]
        )
        return replace(self, kept=kept, known=known, fitted=fitted)

    def _of_all(self, values: Float) -> Float:
        found = np.zeros(self.setting.basis.m)
        found[self.kept] = values
        return found


def measure_probabilities(gate: Gate, share: float, propensity: Propensity) -> Float:
    """Probabilities of treatment of the reference's points where a public column has them: distributed alike."""
    low, width = propensity.low, propensity.high - propensity.low

    def cells(c: Chunk) -> IntArray:
        return np.clip((propensity(c) - low) / max(width, 1e-12) * _PROBABILITIES, 0, _PROBABILITIES - 1).astype(int)

    (counts,) = gate.ask(Query("probabilities of treatment", share, Cells((_PROBABILITIES,)), cells))
    mass = np.maximum(counts.value / gate.n, 0.0) + 1e-6
    middles = low + width * (np.arange(_PROBABILITIES) + 0.5) / _PROBABILITIES
    points = len(propensity.setting.reference.weight)
    # Multiples of the golden ratio are spread evenly, and have nothing to do with the points' covariates.
    even = np.arange(1, points + 1) * (5.0**0.5 - 1.0) / 2.0 % 1.0
    return np.asarray(middles[np.searchsorted(np.cumsum(mass) / mass.sum(), even).clip(0, _PROBABILITIES - 1)])


class Asked(NamedTuple):
    """Moments of what a function leaves, over the number of records, and the noise that they have.

    ``psi`` are the features that they are moments of, weighted, on the reference's points, ``selected`` which of the
    function's these are, and ``seen`` is the slope of each point's product to its effect. ``sampling`` times the mean
    of ``seen`` times any features' second moments is the precision with which records stand for the population.
    """

    value: Float
    sd: float
    psi: Float
    selected: IntArray
    seen: Float
    sampling: float


def choose_features(
    gate: Gate, number: int, share: float, magnitude_share: float, function: EffectFunction, m: int
) -> EffectFunction:
    """A function of ``m`` features that matter for the effect, by moments of each covariate's own functions.

    What matters for treatment and outcome need not be what matters for the effect. What these moments say is carried
    over to the features that are chosen.
    """
    codings = function.setting.basis.codings
    single = function.of_features(CodedBasis.of_singles(codings, screened_functions(gate, len(codings))))
    asked = _ask(gate, number, share, magnitude_share, single, single.variance)
    found, weight = single.corrected(asked, asked.selected), single.setting.basis.weight
    importance = effect_importance(single.setting.basis, weight * found.coefficients, weight**2 * found.variance)
    chosen = function.of_features(CodedBasis.build(codings, importance, m))
    return chosen.corrected(asked, np.arange(chosen.setting.basis.m))


def measure_effect(
    gate: Gate, number: int, share: float, magnitude_share: float, function: EffectFunction
) -> EffectFunction:
    """Correct the function by the moments w (t - e) r psi of what it leaves, where it is uncertain.

    The first correction settles what the function is made of: the features that it asks about.
    """
    if function.settled:
        asked = _ask(gate, number, share, magnitude_share, function, function.variance)
        return function.corrected(asked, function.kept)
    guess = guessed_variance(function.setting.basis, function.location.magnitude.scale)
    asked = _ask(gate, number, share, magnitude_share, function, guess)
    return replace(function.corrected(asked, asked.selected), settled=True)


def _ask(
    gate: Gate, number: int, share: float, magnitude_share: float, function: EffectFunction, uncertain: Float
) -> Asked:
    """The moments w (t - e) r psi of what a function leaves, of features whose coefficients are ``uncertain``.

    With w = 1 these are the R-learner's, which count records where both arms are common; with w = 1 / (e (1 - e)) those
    of the doubly robust score, which count all records alike. The residual is clipped further in where one arm is
    rarer: the released distribution of |r| says how much of the slope is left.
    """
    propensity, setting, n = function.models.propensity, function.setting, gate.n

    def residual(c: Chunk) -> Float:
        return function.residual(c, propensity(c))

    magnitude = measure_sides(gate, f"effect residual magnitude {number}", magnitude_share, residual, _CEILING)
    arms = _Arms(function, magnitude)
    noise = gate.noise_sd(Ball(1.0, 1), share) / n * arms.clip / arms.typical
    loss = setting.size * uncertain
    selection = FeatureSelection.of(allot(np.ones(len(loss)), loss, NORM_CAP * noise**2), setting.size)
    selection = selection.with_best_norm_cap(
        setting.reference.features[:_POINTS], noise**2, arms.square / n / arms.typical**2
    )

    def rows(c: Chunk) -> Float | Products:
        e = propensity(c)
        w = function.weight(e)
        most = arms.clip / _reach(e, w)
        product = w * (c.t - e) * np.clip(function.residual(c, e), -most, most)
        return setting.features.selected(c, selection, np.clip(product, -arms.clip, arms.clip))

    ball = Ball(arms.clip * selection.radius, selection.m)
    (moments,) = gate.ask(Query(f"effect moments {number}", share, ball, rows))
    psi, weight = selection(setting.reference.features)
    selected = np.union1d([0], selection.kept)
    sampling = n * arms.typical / arms.square
    return Asked(moments.value / n, float(moments.sd) / n, psi * weight[:, None], selected, arms.seen, sampling)


def _reach(e: Float, weight: Float) -> Float:
    """What multiplies the residual in the rarer arm. Both arms are clipped by it, lest the tails of one be missed."""
    return np.maximum(np.maximum(e, 1.0 - e) * weight, 1e-6)


class _Arms:
    """How clipped products w (t - e) r behave over the reference's probabilities.

    ``seen`` is the slope of each point's product to its effect, less what clipping hides, and ``typical`` its mean;
    ``square`` is the mean square of the product.
    """

    def __init__(self, function: EffectFunction, magnitude: MagnitudeHistogram) -> None:
        e, weight = function.e, function.weight(function.e)
        varies, reach = e * (1.0 - e) * weight, _reach(e, weight)
        usual = float(np.mean(varies / reach) / np.mean(varies))
        self.clip = magnitude.clip_at_scales(_CLIP, _HIDDEN) / usual
        self.seen = varies * magnitude.below_each(self.clip / reach)
        self.typical = float(np.mean(self.seen))
        self.square = float(np.mean(varies * weight)) * magnitude.clipped_square(self.clip * usual)
