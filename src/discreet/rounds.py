"""Later rounds through the gate: each turns a share of the budget into a public model that the next one uses.

Outcomes are on [-1, 1] here, covariates as `Bounds` encodes them. The proof of every round is its geometry; the list
with all diameters is in docs/proofs/ate.md. What a round computes from its noisy sums is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from discreet.columns import Float
from discreet.gate import Gate, Query
from discreet.geometry import Ball, Interval, MeanSquare
from discreet.moments import LOGIT_CAP, newton_step, shrink
from discreet.records import Chunk
from discreet.scores import aipw_score, balancing_weight
from discreet.spread import Factors
from discreet.survey import Location, RowMap, Setting, measure_spread

# Weights of single records in the prognosis stop here: beyond, they add noise and no information.
_MOST_WEIGHT = 5.0
# How much of what clipping hides is feared to be bias, when a clip is chosen; and what the interval allows for.
_FEAR, _ALLOW = 0.4, 0.3
# Coefficients of the correction are a priori about the residual's size: only hopeless directions are shrunk.
_PRIOR = 1.0

# The remainder is worked out as if errors of the two models were unrelated; they are, but for what both miss.
_CAUTION = 1.2

# Relative error of the reference's moments; and how far (squared) a coefficient may be off after a look at them.
_DOUBT, _LEFT = 0.01, 0.0005


@dataclass(frozen=True, slots=True, eq=False)
class Propensity:
    """Public logistic model of treatment, trimmed; or the known design."""

    setting: Setting
    theta: Float
    covariance: Float
    low: float
    high: float
    known: bool = False

    @classmethod
    def by_design(cls, setting: Setting, low: float, high: float) -> Propensity:
        """Probabilities that come with the records."""
        m = setting.basis.m
        return cls(setting, np.zeros(m), np.zeros((m, m)), low, high, known=True)

    def __call__(self, c: Chunk) -> Float:
        return self._trimmed(self.setting.features.combine(c, self.theta)) if c.e is None else c.e

    def _trimmed(self, linear: Float) -> Float:
        return np.asarray(expit(np.clip(linear, logit(self.low), logit(self.high))))

    @property
    def on_reference(self) -> Float:
        """Probabilities of the reference points."""
        return self._trimmed(self.setting.reference.features @ self.theta)

    def factors(self, of: Callable[[Float, Float], Float]) -> Factors:
        """Values of a weight ``of(t, e)`` over the reference points, each with its probability in either arm."""
        return arm_factors(self.on_reference, of)


def arm_factors(e: Float, of: Callable[[Float, Float], Float]) -> Factors:
    """Values of a weight ``of(t, e)`` in either arm, each with its probability."""
    return np.concatenate([of(np.ones_like(e), e), of(np.zeros_like(e), e)]), np.concatenate([e, 1.0 - e])


def fit_propensity(
    gate: Gate, share: float, setting: Setting, treated: float, trim: tuple[float, float], calibrations: int
) -> Propensity:
    """Logistic model from the moments of (t - share of treated), which a wrong guess of the features' means spares.

    ``calibrations`` rounds spend a quarter of the share on the same moments of the fitted probabilities, and take
    Newton steps that make up for what the reference got wrong.
    """
    basis, features, reference, n = setting.basis, setting.features, setting.reference, gate.n
    ball = Ball(basis.radius * max(treated, 1.0 - treated), basis.m)

    def centred(c: Chunk) -> Float:
        phi, weight = features(c)
        return phi * ((c.t - treated) * weight)[:, None]

    (moments,) = gate.ask(Query("treatment moments", (0.75 if calibrations else 1.0) * share, ball, centred))
    sampling = (
        treated * (1.0 - treated) / n * (reference.features * (reference.weight**2 * len(reference.weight))[:, None]).T
    )
    sampling = sampling @ reference.features
    wanted, own_noise = moments.value / n, (float(moments.sd) / n) ** 2

    # The reference is not the records, and its moments are doubted. Without the doubt a large budget would chase
    # moments that no model reaches on the reference; calibration then looks at the records themselves.
    covariance = own_noise * np.eye(basis.m) + sampling + _DOUBT**2 * reference.gram
    fitted = shrink(wanted, lambda theta: reference.response(theta, treated), covariance, basis, LOGIT_CAP)
    model = Propensity(setting, fitted.mean, fitted.covariance, *trim)
    for _ in range(calibrations):
        seen, noise = _fitted_moments(gate, 0.25 * share / calibrations, model, treated)
        _, slope = reference.response(model.theta, treated)
        spread = (own_noise + noise) * np.eye(basis.m) + sampling
        step, left = newton_step(wanted - seen, slope, spread, np.maximum(fitted.scales, _LEFT))
        model = Propensity(setting, model.theta + step, left, *trim)
    return model


def _fitted_moments(gate: Gate, share: float, model: Propensity, treated: float) -> tuple[Float, float]:
    """Treatment moments that the model expects on the records, and the variance of their noise."""
    features, basis = model.setting.features, model.setting.basis
    reach = max(model.high - treated, treated - model.low)

    def expected(c: Chunk) -> Float:
        phi, weight = features(c)
        return phi * ((model(c) - treated) * weight)[:, None]

    (seen,) = gate.ask(Query("expected treatment moments", share, Ball(basis.radius * reach, basis.m), expected))
    return seen.value / gate.n, (float(seen.sd) / gate.n) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Public model of the prognosis f = (1 - e) mu_1 + e mu_0: features, and a constant effect."""

    propensity: Propensity
    centre: float
    treated: float
    coefficients: Float
    effect: float

    def prognosis(self, c: Chunk, e: Float) -> Float:
        """Prognosis of each record."""
        explained = self.propensity.setting.features.combine(c, self.coefficients)
        return self.centre + explained + (1.0 - self.treated - e) * self.effect

    def residual(self, c: Chunk, e: Float) -> Float:
        """What prognosis and constant effect leave unexplained, in either arm."""
        return c.y - self.prognosis(c, e) - (c.t - 1.0 + e) * self.effect


def fit_outcome(gate: Gate, share: float, where: Location, pilot: float, model: Propensity) -> Outcome:
    """First look at the outcome: a shrunken regression on the features and treatment."""
    setting, n, scale = model.setting, gate.n, where.spread.scale
    basis, features, reference, solid = setting.basis, setting.features, setting.reference, setting.gram.solid
    unit = gate.noise_sd(Ball(basis.radius, basis.m), 0.7 * share) / n
    clip, _ = where.spread.clip(unit, 1.0)

    def residual(c: Chunk) -> Float:
        return np.clip(c.y - where.centre - (c.t - where.treated) * pilot, -clip, clip) * features(c)[1]

    reach = clip * max(where.treated, 1.0 - where.treated)
    moments, contrast = gate.ask(
        Query(
            "outcome moments",
            0.7 * share,
            Ball(clip * basis.radius, basis.m),
            lambda c: features(c)[0] * residual(c)[:, None],
        ),
        Query("outcome contrast", 0.3 * share, Interval(-reach, reach), lambda c: (c.t - where.treated) * residual(c)),
    )
    seen = max(where.spread.below(clip), 0.7)
    target, noise = moments.value / n / seen, (float(moments.sd) / n / seen) ** 2
    gap = float(contrast.value) / n / seen
    covariance = noise * np.eye(basis.m) + scale**2 / n * solid
    # Moments of the treatment that the propensity implies: with a known one, its average will do for this first look.
    implied = model.on_reference if not model.known else np.full(len(reference.weight), where.treated)
    treated = (reference.weight * (implied - where.treated)) @ reference.features
    varies = where.treated * (1.0 - where.treated) * float(solid[0, 0]) / float(basis.weight[0]) ** 2
    step, coefficients = 0.0, np.zeros(basis.m)
    for _ in range(4):
        coefficients = shrink(
            target - treated * step, lambda b: (solid @ b, solid), covariance, basis, (3.0 * scale) ** 2, linear=True
        ).mean
        new = float(np.clip((gap - treated @ coefficients) / varies, -3.0 * scale, 3.0 * scale))
        if abs(new - step) < 0.01 * scale:
            break
        step = new
    return Outcome(model, where.centre, where.treated, coefficients, pilot + step)


def refine_effect(gate: Gate, share: float, scale: float, outcome: Outcome) -> tuple[Outcome, float]:
    """Move the constant effect by the orthogonal moment (t - e) residual; returns the noise that it then has, too."""
    model, clip = outcome.propensity, scale

    def rows(c: Chunk) -> Float:
        e = model(c)
        return (c.t - e) * outcome.residual(c, e)

    (moment,) = gate.ask(Query("effect moment", share, Interval(-clip, clip), rows))
    e = np.array([outcome.treated]) if model.known else model.on_reference
    varies = float(np.mean(e * (1.0 - e)))
    step = float(np.clip(float(moment.value) / gate.n / varies, -3.0 * scale, 3.0 * scale))
    return replace(outcome, effect=outcome.effect + step), float(moment.sd) / gate.n / varies


def correct_outcome(gate: Gate, share: float, look: float, outcome: Outcome) -> tuple[Outcome, float]:
    """Correct the prognosis by the moments of weighted residuals, hardly shrunk: its noise is then known and centred.

    Returns
    -------
    outcome : Outcome
    remainder : float
        Standard deviation of E[(pi - e)(f* - f)/(e(1 - e))], the second-order error of the score's mean.
    """
    model = outcome.propensity
    setting, n = model.setting, gate.n
    basis, features, gram = setting.basis, setting.features, setting.gram

    def residual(c: Chunk) -> Float:
        e = model(c)
        return balancing_weight(c.t, e, _MOST_WEIGHT) * outcome.residual(c, e)

    factors = model.factors(lambda t, e: balancing_weight(t, e, _MOST_WEIGHT))
    spread = measure_spread(gate, "spread of the residuals", look, residual, 4.0, factors)
    unit = gate.noise_sd(Ball(basis.radius, basis.m), share) / n
    clip, _ = spread.clip(unit, 1.0)

    def rows(c: Chunk) -> Float:
        phi, weight = features(c)
        return phi * (np.clip(residual(c), -clip, clip) * weight)[:, None]

    (moments,) = gate.ask(Query("residual moments", share, Ball(clip * basis.radius, basis.m), rows))
    seen = max(spread.below(clip), 0.7)
    target, noise = moments.value / n / seen, (float(moments.sd) / n / seen) ** 2
    prior = (_PRIOR * spread.scale / basis.weight) ** 2
    solve = np.linalg.inv(gram.solid @ gram.solid + np.diag(noise / prior)) @ gram.solid
    step = solve @ target
    better = replace(outcome, coefficients=outcome.coefficients + step)
    passed = gram.matrix @ solve
    held_back = gram.matrix - passed @ gram.matrix
    error = noise * passed @ passed.T + (held_back * prior) @ held_back.T
    error += gram.variance * float(step @ step) * np.eye(basis.m)
    return better, _CAUTION * float(np.sqrt(np.sum(model.covariance * error)))


@dataclass(frozen=True, slots=True)
class Score:
    """Mean and variance of the clipped score, the noise of the mean, and what clipping may have hidden.

    ``lost`` is the part of the score's size that was clipped: by so much the mean stays behind when its centre is off.
    """

    mean: float
    variance: float
    noise: float
    hidden: float
    lost: float


def measure_score(
    gate: Gate, share: float, look: float, rows: RowMap, centre: float, ceiling: float, factors: Factors | None = None
) -> Score:
    """The last round: the score around a public centre, clipped where its spread says, with its free second moment."""
    n = gate.n
    spread = measure_spread(gate, "spread of the score", look, lambda c: rows(c) - centre, ceiling, factors)
    clip, hidden = spread.clip(gate.noise_sd(MeanSquare(1.0), share) / n, _FEAR)
    clip = min(clip, ceiling)
    (sums,) = gate.ask(Query("score", share, MeanSquare(clip), lambda c: rows(c) - centre))
    mean, square = sums.value / n
    # The second moment is noisy: never below what a clip of this size would be chosen for.
    variance = max(float(square - mean**2), 0.004 * clip**2)
    noise = float(np.asarray(sums.sd)[0]) / n
    return Score(centre + float(mean), variance, noise, _ALLOW * hidden, min(1.0, hidden / spread.mean))


def small_sample_error(gate: Gate, where: Location) -> float:
    """Allowance for what first-order formulas miss where the budget is small for the smaller arm (a public rule).

    It falls with the third power of n mu times the smaller arm's share, and is negligible from a few hundred on.
    """
    strength = gate.n * (gate.budget.epsilon if gate.pure else gate.mu)
    smaller = 2.0 * strength * min(where.treated, 1.0 - where.treated)
    # Half of the outcome's range says all there is to say.
    return min(where.spread.scale * (60.0 / max(smaller, 1.0)) ** 3, 1.0)


def score_factor(t: Float, e: Float) -> Float:
    """What the score multiplies a residual by."""
    return np.abs((t - e) / (e * (1.0 - e)))


def score_rows(outcome: Outcome) -> RowMap:
    """AIPW score of each record, prognosis held to a little more than the outcome's range."""

    def rows(c: Chunk) -> Float:
        e = outcome.propensity(c)
        return aipw_score(c.y, c.t, e, np.clip(outcome.prognosis(c, e), -1.2, 1.2))

    return rows
