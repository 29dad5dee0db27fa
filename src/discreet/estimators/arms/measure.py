"""All rounds of several arms: with models of treatment and outcome, or with the arms' means alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators._allocation import LEFT_OUT, QUESTION, Allocation, models_pay
from discreet.estimators.arms.allocation import ARMS, ARMS_OF_PURE, MODELS, MODELS_PART, after_models
from discreet.estimators.arms.design import AgainstControl, AgainstRest, known_shares
from discreet.estimators.arms.scores import (
    ArmScore,
    DesignScore,
    ObservedScore,
    choose_clip,
    measure_prognosis,
    measure_score,
    measure_tails,
)
from discreet.estimators.measurements.location import Location, Pilot, locate, public_notes
from discreet.estimators.measurements.nuisances import Outcome
from discreet.estimators.measurements.score import prognosis_range
from discreet.postprocessing.diagnostics.moments import TreatmentMoments
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells, Interval
from discreet.releases.arms.release import ArmsRelease

# A share of an arm that noise hides is held above this part of the declared least probability.
_LEAST = 0.5
# How far the share of an arm may lie from its declared probability: in standard deviations, and as it is.
_DEVIATIONS, _POINTS = 5.0, 0.02


class AverageModels(NamedTuple):
    """What the rounds of `ATE` before its score leave behind: public models, and what is known of their errors."""

    gate: Gate
    model_gate: Gate
    allocation: Allocation
    location: Location
    first: Pilot
    outcome: Outcome
    remainder: float
    off: float
    trim: tuple[float, float]
    basis: str
    terms: int
    screening: TreatmentMoments | None


class _Pilot(NamedTuple):
    """Shares of the arms and guesses at their means, with the noise of both: what centres and weighs the score."""

    shares: Float
    share_noise: float
    offsets: Float
    noise: Float


# Fits models of treatment and outcome to two arms: through a gate, with a known probability or none.
FitModels = Callable[[Gate, float | None], AverageModels]


def measure_arm_means(gate: Gate, propensity: Any, kind: Literal["ate", "difference-in-means"]) -> ArmsRelease:
    """The rounds of `DifferenceInMeans` after the count, where there are several arms."""
    known = known_shares(propensity, gate.bounds)
    allocation = (ARMS_OF_PURE if gate.pure else ARMS).after_counts(gate)
    location = locate(gate.viewed(_against_control(known)), allocation["location"])
    pilot = _measure_arms(gate, allocation, location)
    shares = pilot.shares if known is None else known
    limits = prognosis_range(location)
    centre = location.centre
    score = DesignScore(
        shares=shares, offsets=pilot.offsets, prognosis=lambda c: np.full(len(c.y), centre), limits=limits
    )
    # The released share of an arm misses the true one by its noise, which matters as far as the guess is off.
    unknown = np.zeros(len(shares)) if known is not None else pilot.share_noise / shares * pilot.noise
    words = "Treatment is taken to be randomised: no covariate is adjusted for."
    if kind == "ate" and known is not None:
        words = (
            "The interval relies on the stated probabilities of the arms; records are too few for covariates to narrow "
            "it."
        )
    notes = (words, *_design_note(gate, pilot, known), *public_notes(gate.budget, gate.n, location, None))
    adjustment = {"covariates": [], "basis": "none", "terms": 1, "trim": [float(shares.min()), float(shares.max())]}
    measured = _measure(gate, allocation, score, location.atomic, unknown, pilot.noise, level=(centre, 0.0, 0.0))
    return arms_release(kind, gate, measured, known=known is not None, adjustment=adjustment, notes=notes)


def measure_arms(gate: Gate, propensity: Any, fit_models: FitModels) -> ArmsRelease:
    """The rounds of `ATE` after the count, where there are several arms."""
    known, p = known_shares(propensity, gate.bounds), gate.bounds.p
    if not p or (known is not None and not models_pay(gate.n * gate.mu, p, float(known.min()))):
        return measure_arm_means(gate, propensity, "ate")
    if known is not None:
        return _measure_trial(gate, known, fit_models)
    return _measure_observed(gate, fit_models)


def _measure_trial(gate: Gate, known: Float, fit_models: FitModels) -> ArmsRelease:
    """By one model of the outcome for all arms: where their probabilities are known it only narrows intervals."""
    view = _against_control(known)
    fitted = fit_models(GatePart(gate.viewed(view), MODELS_PART * gate.left, MODELS), view.active)
    allocation, joint = after_models(gate.left, known=True), GatePart(gate, gate.left)
    pilot = _measure_arms(joint, allocation, fitted.location)
    features, coefficients = fitted.outcome.propensity.setting.features, fitted.outcome.coefficients
    centre = fitted.location.centre

    def prognosis(c: Chunk) -> Float:
        return np.asarray(centre + features.combine(c, coefficients))

    limits = prognosis_range(fitted.location)
    score = DesignScore(shares=known, offsets=pilot.offsets, prognosis=prognosis, limits=limits)
    measured = _measure(joint, allocation, score, fitted.location.atomic, np.zeros(len(known)), pilot.noise)
    words = "The interval relies on the stated probabilities of the arms; covariates only narrow it."
    notes = (words, *_design_note(gate, pilot, known), *public_notes(gate.budget, gate.n, fitted.location, None))
    trim = (float(known.min()), float(known.max()))
    return arms_release("ate", gate, measured, known=True, adjustment=_adjustment(gate, [fitted], trim), notes=notes)


def _measure_observed(gate: Gate, fit_models: FitModels) -> ArmsRelease:
    """By models of every arm, each on an equal part of the budget."""
    labels = gate.bounds.arms.levels
    (outcome,) = gate.ask(Query("mean outcome", QUESTION * gate.left, Interval(-1.0, 1.0), lambda c: c.y))
    centre = float(np.clip(float(outcome.value) / gate.n, -1.0, 1.0))
    left = gate.left
    fitted = [
        fit_models(GatePart(gate.viewed(AgainstRest(arm, centre)), left / len(labels), f"{label}: "), None)
        for arm, label in enumerate(labels)
    ]
    shares = np.array([each.location.treated for each in fitted])
    outcomes = tuple(each.outcome for each in fitted)
    score = ObservedScore(models=outcomes, centre=centre, shares=shares / shares.sum(), limits=(-1.0, 1.0))
    allocation, joint = after_models(gate.left, known=False), GatePart(gate, gate.left)
    remainders = np.array([each.remainder for each in fitted])
    noise = np.array([each.first.noise for each in fitted])
    off = np.hypot([each.off for each in fitted], noise)
    measured = _measure(joint, allocation, score, any(each.location.atomic for each in fitted), remainders, off)
    # What the models leave out is taken to be a part of what they took away.
    plain = centre + np.array([each.first.effect for each in fitted])
    moved = np.maximum(np.abs(measured.level + measured.relative - plain) - noise, 0.0)
    measured = measured._replace(nuisance=measured.nuisance + np.diag((LEFT_OUT * moved) ** 2))
    trim = (min(each.trim[0] for each in fitted), max(each.trim[1] for each in fitted))
    notes = (
        "The interval assumes that treatment is as good as random among people with the same declared covariates, and "
        f"that the adjustment ({fitted[0].basis}, for each arm) captures what they do.",
        f"Fitted probabilities of an arm are held between {trim[0]:.3g} and {trim[1]:.3g}.",
        *public_notes(gate.budget, gate.n, fitted[0].location, None),
    )
    return arms_release("ate", gate, measured, known=False, adjustment=_adjustment(gate, fitted, trim), notes=notes)


def _against_control(known: Float | None) -> AgainstControl:
    return AgainstControl(None if known is None else float(1.0 - known[0]))


def _measure_arms(gate: Gate, allocation: Allocation, location: Location) -> _Pilot:
    """How many records each arm has, and about where its outcomes are, residuals clipped alike."""
    arms = len(gate.bounds.arms.levels)
    reach = (1.0 + location.centre, 1.0 - location.centre)
    clip = location.tails.clip(gate.noise_sd(Ball(1.0, arms), allocation["arm means"]) / gate.n, reach)
    radius = max(clip.low, clip.high) / 2.0
    centre = location.centre

    def rows(c: Chunk) -> Float:
        inside = (c.t[:, None] == np.arange(arms)).astype(np.float64)
        return np.asarray(inside * np.clip(c.y - centre, -clip.low / 2.0, clip.high / 2.0)[:, None])

    counts, sums = gate.ask(
        Query("arm counts", allocation["arm counts"], Cells((arms,)), lambda c: c.t.astype(np.int64)),
        Query("arm means", allocation["arm means"], Ball(radius, arms), rows),
    )
    found = counts.value / gate.n
    shares = np.maximum(found, _LEAST * gate.bounds.propensity[0])
    # No further from the mean of all than a prognosis may be: noise would only widen the range of residuals.
    low, high = prognosis_range(location)
    means = np.clip(sums.value / gate.n / shares, max(low - centre, -radius), min(high - centre, radius))
    noise = float(sums.sd) / gate.n / shares
    return _Pilot(shares / shares.sum(), float(counts.sd) / gate.n, means, noise)


class Measured(NamedTuple):
    """Means of the arms with everything that a release says of them; on [-1, 1]."""

    relative: Float
    """means less that of the common prognosis"""
    level: float
    sampling: Float
    privacy: Float
    nuisance: Float
    hidden: float
    hidden_of_means: float


def _measure(
    gate: Gate,
    allocation: Allocation,
    score: ArmScore,
    atomic: bool,
    remainders: Float,
    off: Float,
    level: tuple[float, float, float] | None = None,
) -> Measured:
    """The last rounds: tails, where to clip, the scores, and the mean prognosis unless it is public."""
    tails = measure_tails(gate, allocation["residual tails"], score, atomic=atomic)
    share = allocation["score of all arms"]
    clip = choose_clip(gate, allocation["clipped excess"], score, tails, share)
    found = measure_score(gate, share, score, clip)
    at, varies, noise = measure_prognosis(gate, allocation["mean prognosis"], score) if level is None else level
    together = np.ones_like(found.sampling)
    # Of records that are clipped the mean stays behind where its centre is off.
    stays = clip.lost * np.hypot(off, np.sqrt(np.diag(found.sampling)))
    return Measured(
        found.means,
        at,
        found.sampling + varies * together,
        found.privacy + noise * together,
        np.diag(remainders**2 + stays**2),
        clip.hidden,
        clip.hidden / tails.bias_of_excess,
    )


def _design_note(gate: Gate, pilot: _Pilot, known: Float | None) -> tuple[str, ...]:
    """Whether about as many records are in each arm as a design says."""
    if known is None:
        return ()
    far = np.maximum(_DEVIATIONS * np.hypot(pilot.share_noise, np.sqrt(known * (1.0 - known) / gate.n)), _POINTS)
    labels = gate.bounds.arms.levels
    wrong = [str(label) for label, beyond in zip(labels, np.abs(pilot.shares - known) > far, strict=True) if beyond]
    if not wrong:
        return ()
    return (
        f"By a noisy count, the share of the records in arm {', '.join(wrong)} is far from the declared probability: "
        "check the probabilities and that no records were dropped after treatment was drawn.",
    )


def _adjustment(gate: Gate, fitted: list[AverageModels], trim: tuple[float, float]) -> dict[str, Any]:
    first = fitted[0]
    return {"covariates": list(gate.bounds.names), "basis": first.basis, "terms": first.terms, "trim": list(trim)}


def arms_release(
    kind: Literal["ate", "difference-in-means"],
    gate: Gate,
    measured: Measured,
    *,
    known: bool,
    adjustment: dict[str, Any],
    notes: tuple[str, ...],
) -> ArmsRelease:
    """What is published of several arms; everything in it is computed from released numbers and public facts."""
    bounds, unit = gate.bounds, gate.bounds.outcome_width / 2.0
    public = ["the declared bounds"]
    public += [] if gate.counts_rows else ["the number of records"]
    public += ["the probabilities of the arms"] if known else []
    means = bounds.outcome_middle + unit * np.clip(measured.level + measured.relative, -1.0, 1.0)
    parts = {"sampling": measured.sampling, "privacy": measured.privacy, "nuisance": measured.nuisance}
    return ArmsRelease(
        kind=kind,
        estimates=tuple(means.tolist()),
        covariances={name: (unit * unit * part).tolist() for name, part in parts.items()},
        clipping=unit * measured.hidden,
        clipping_of_means=unit * measured.hidden_of_means,
        n=gate.n,
        guarantee=gate.guarantee(proof="arms.md", public=tuple(public)),
        bounds=bounds,
        design="known propensity" if known else "observational",
        adjustment=adjustment | {"shares": gate.spent_on},
        notes=notes + _clip_note(measured),
    )


def _clip_note(measured: Measured) -> tuple[str, ...]:
    """What a release says of clipped scores, where that matters."""
    variance = float(np.max(np.diag(measured.sampling + measured.privacy + measured.nuisance)))
    if measured.hidden**2 < 0.1 * variance:
        return ()
    return ("Rare extreme scores (poor overlap or heavy tails) were clipped; the interval is wider to allow for it.",)
