"""The last round through the gate: mean and variance of the doubly robust score, by models that are public then.

Diameters: docs/proofs/ate.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators.measurements.location import Location, RowMap, measure_magnitude
from discreet.estimators.measurements.nuisances import Outcome
from discreet.postprocessing.magnitude import Factors
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import MeanSquare


def aipw_score(y: Float, t: Float, propensity: Float, prognosis: Float) -> Float:
    """Augmented inverse-propensity score, (t - e)(y - f) / (e (1 - e)).

    With f = (1 - e) mu_1 + e mu_0 this is the usual doubly robust score; its mean is the average effect if either e
    or f is right, and otherwise misses by E[(pi - e)(f* - f) / (e (1 - e))]: docs/proofs/ate.md.
    """
    return (t - propensity) / (propensity * (1.0 - propensity)) * (y - prognosis)


def aipw_score_bound(outcome_width: float, min_propensity: float) -> float:
    """Largest |score| of one record when outcome and prognosis are clipped. Proof: docs/proofs/ate.md."""
    return outcome_width / min_propensity


# Part of the mean that lies beyond the clip which the interval allows for as a bias.
_ALLOW = 0.35
# Largest ratio of noise to sampling error at which a score goes unclipped.
_FREE_NOISE = 0.3


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
    gate: Gate,
    share: float,
    magnitude_share: float,
    rows: RowMap,
    centre: float,
    ceiling: float,
    factors: Factors | None = None,
) -> Score:
    """The last round: the score around a public centre, clipped by its magnitude, with its free second moment."""
    n = gate.n
    magnitude = measure_magnitude(
        gate, "score magnitude", magnitude_share, lambda c: rows(c) - centre, ceiling, factors
    )
    clip, hidden = magnitude.clip(gate.noise_sd(MeanSquare(1.0), share) / n, lopsided=True)
    clip = min(clip, ceiling)
    # The second moment is noisy: never far below what the histogram says.
    least = min(0.004 * clip**2, 0.25 * magnitude.scale**2)
    score = _score_within(gate, share, rows, centre, clip, least)
    return replace(score, hidden=_ALLOW * hidden, lost=min(1.0, hidden / magnitude.mean))


def clips_nothing(gate: Gate, share: float, ceiling: float, location: Location) -> bool:
    """Whether noise for the largest possible score would be small beside the sampling error (a public rule)."""
    noise = gate.noise_sd(MeanSquare(ceiling), share) / gate.n
    varies = location.treated * (1.0 - location.treated)
    return noise <= _FREE_NOISE * float(np.sqrt(location.magnitude.clipped_square(2.0) / (gate.n * varies)))


def unclipped_score(gate: Gate, share: float, rows: RowMap, centre: float, ceiling: float, location: Location) -> Score:
    """The last round where `clips_nothing` says so: its magnitude is not released, and nothing is hidden."""
    return _score_within(gate, share, rows, centre, ceiling + abs(centre), 0.25 * location.magnitude.scale**2)


def _score_within(gate: Gate, share: float, rows: RowMap, centre: float, clip: float, least: float) -> Score:
    """Mean of the clipped score, the noise of the mean, and the variance, which is at least what is given."""
    (sums,) = gate.ask(Query("score", share, MeanSquare(clip), lambda c: rows(c) - centre))
    mean, square = sums.value / gate.n
    noise = float(np.asarray(sums.sd)[0]) / gate.n
    return Score(centre + float(mean), max(float(square - mean**2), least), noise, 0.0, 0.0)


def small_sample_error(gate: Gate, location: Location) -> float:
    """Allowance for what first-order formulas miss where the budget is small for the smaller arm (a public rule).

    It falls with the third power of n mu times the smaller arm's share, and is negligible from a few hundred on.
    """
    information = gate.n * (gate.budget.epsilon if gate.pure else gate.mu)
    smaller = 2.0 * information * min(location.treated, 1.0 - location.treated)
    # The outcome's range says all there is to say.
    return min(location.magnitude.scale * (45.0 / max(smaller, 1.0)) ** 3, 2.0)


def score_factor(t: Float, e: Float) -> Float:
    """What the score multiplies a residual by."""
    return np.abs((t - e) / (e * (1.0 - e)))


def score_rows(outcome: Outcome) -> RowMap:
    """AIPW score of each record, prognosis held to a little more than the outcome's range."""
    look_up = outcome.answers

    def rows(c: Chunk) -> Float:
        e, prognosis, _ = look_up(c)
        return aipw_score(c.y, c.t, e, np.clip(prognosis, -1.2, 1.2))

    return rows
