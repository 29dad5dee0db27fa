"""The level of the outcome beside the effect, in the same pass: both arms' means follow from the two.

With psi_0 and psi_1, the doubly robust scores of the arms' means, the effect is the mean of psi_1 - psi_0, and the
level that of q psi_1 + (1 - q) psi_0. With q near the share of treated its weights are near one, so that it is bounded
by little more than the outcome's own range, and is hardly correlated with the effect. Diameters: docs/proofs/ate.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators._allocation import CROSS, LEVEL, WEIGHTS, Allocation
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import Outcome
from discreet.estimators.measurements.score import (
    Score,
    ScoreRounds,
    Total,
    total_of,
    weighted_score,
    weights_query,
    with_count,
)
from discreet.postprocessing.effect_shrinkage import guessed_variance
from discreet.postprocessing.tails import Clip
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query, Released
from discreet.privacy.sensitivity.sets import Interval, MeanSquare

# Choice: a prognosis counts in the level up to so many scales of the outcome from its centre. By hand.
_FAR = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Mean of a level on [-1, 1], with its errors.

    Parameters
    ----------
    mean
        q times the mean of treated plus (1 - q) times that of controls.
    part
        q.
    variance, noise, hidden
        As in `Score`.
    covariance
        Least and largest covariance of a record's level and effect, as far as noise lets it be seen.
    """

    mean: float
    part: float
    variance: float
    noise: float
    hidden: float
    covariance: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRounds:
    """Questions about the level, by the models that the score has.

    Parameters
    ----------
    score
        The score.
    location
        Where the outcome is.
    part
        q.
    clip
        Where residuals are clipped, alike in level and effect.
    bias_of_excess
        By how much the mean excess beyond it was multiplied, for the effect.
    """

    score: ScoreRounds
    location: Location
    part: float
    clip: Clip
    bias_of_excess: float

    @property
    def window(self) -> tuple[float, float]:
        """Lowest and highest level of one record, counted from the outcome's centre. Proof: docs/proofs/ate.md."""
        overlap, effect = self.score.overlap, abs(self.score.effect)
        low, high = (end - self.location.centre for end in self.score.prognosis)
        moved = effect * max(abs(self.part - 1.0 + e) for e in (overlap.low, overlap.high))
        # In clip units the weights of an arm are no larger than the score's, times the arm's part of the level.
        treated, control = (-float(overlap.ends(*np.array(pair))[0]) for pair in ((1.0, 0.0), (0.0, 1.0)))
        far, most = _FAR * self.location.scale, max(self.part * treated, (1.0 - self.part) * control)
        bottom = max(min(low, 0.0) - moved, -far) - most * self.clip.low
        top = min(max(high, 0.0) + moved, far) + most * self.clip.high
        if self.part in (0.0, 1.0) or overlap.low == overlap.high == self.part:
            # Weights are one: the level is the outcome, but for a part of the effect.
            bottom = max(bottom, -1.0 - self.location.centre - effect)
            top = min(top, 1.0 - self.location.centre + effect)
        return bottom, top

    def rows(self, c: Chunk) -> Float:
        """Levels of records, counted from the outcome's centre."""
        answers, estimand, q = self.score.look_up(c), self.score.estimand, self.part
        prognosis = np.clip(answers.prognosis, *self.score.prognosis) - self.location.centre
        expected = prognosis + (q - 1.0 + answers.e) * self.score.effect
        if estimand.counted is not None:
            expected = estimand.counted(c.t, answers.e) * expected
        weight = np.where(c.t > 0.0, q, q - 1.0) * estimand.weight(c.t, answers.e)
        return np.clip(expected + weight * self.score.clipped(c, answers, self.clip), *self.window)

    def queries(self, gate: Gate, allocation: Allocation) -> tuple[Query, ...]:
        """What is asked: the level, and its product with the effect's score where rows of a unit are not joined."""
        bottom, top = self.window
        middle, half = (bottom + top) / 2.0, (top - bottom) / 2.0
        if gate.joins_rows:
            ball = MeanSquare(gate.most_rows * max(top, -bottom))
            return (Query(LEVEL, allocation[LEVEL], ball, self.rows, True),)
        low, high = (float(end) for end in self.score.overlap.ends(np.array(self.clip.low), np.array(self.clip.high)))
        most = max(high, -low) * half

        def product(c: Chunk) -> Float:
            answers = self.score.look_up(c)
            added = self.score.estimand.weight(c.t, answers.e) * self.score.clipped(c, answers, self.clip)
            return added * (self.rows(c) - middle)

        return (
            Query(LEVEL, allocation[LEVEL], MeanSquare(half), lambda c: self.rows(c) - middle),
            Query(CROSS, allocation[CROSS], Interval(-most, most), product),
        )

    def read(self, gate: Gate, found: tuple[Released, ...], score: Score, total: Total) -> Level:
        """The level that the answers say; ``score`` is the effect before it is divided by a sum of weights."""
        bottom, top = (0.0, 0.0) if gate.joins_rows else self.window
        middle, alike = (bottom + top) / 2.0, 1 if gate.joins_rows else gate.most_rows
        mean, square = found[0].value / gate.n
        own, square_noise = np.asarray(found[0].sd) / gate.n
        # Where levels are divided by a sum of weights, it is the middle that does not scale with the number of records.
        noise = with_count(gate, float(own), middle if self.score.estimand.weighted else float(mean))
        variance = alike * (max(float(square - mean**2), 0.0) + float(square_noise))
        most = sqrt(variance * score.variance)
        low, high = -most, most
        if len(found) > 1:
            about = alike * (float(found[1].value) / gate.n - float(mean) * (score.mean - self.score.effect))
            unseen = alike * float(found[1].sd) / gate.n
            low, high = (float(np.clip(end, -most, most)) for end in (about - unseen, about + unseen))
        added = (middle + float(mean)) / total.mean
        return Level(
            mean=self.location.centre + added,
            part=self.part,
            variance=(variance + added**2 * total.variance) / total.mean**2,
            noise=hypot(noise, added * total.noise) / total.mean,
            hidden=score.hidden / self.bias_of_excess / total.mean,
            covariance=(low / total.mean**2, high / total.mean**2),
        )


def level_rounds(
    allocation: Allocation, rounds: ScoreRounds, location: Location, clip: Clip, bias_of_excess: float
) -> LevelRounds | None:
    """Questions about the level, where it has a share: about the share of treated, or as the average prescribes."""
    if LEVEL not in allocation:
        return None
    low, high = rounds.overlap.low, rounds.overlap.high
    part = rounds.estimand.level
    if part is None:
        part = low if low == high else location.treated
    return LevelRounds(score=rounds, location=location, part=part, clip=clip, bias_of_excess=bias_of_excess)


class Measured(NamedTuple):
    """The effect, and the level where it was asked for."""

    score: Score
    level: Level | None


def measure_score(
    gate: Gate, allocation: Allocation, rounds: ScoreRounds, clip: Clip, level: LevelRounds | None
) -> Measured:
    """The last questions, in one pass: the score, the sum of its weights and the level."""
    question = rounds.question(gate, allocation["score"], clip)
    weights = (weights_query(rounds, allocation[WEIGHTS]),) if rounds.estimand.weighted else ()
    levels = () if level is None else level.queries(gate, allocation)
    if weights or levels:
        gate.prepare(question.query, *weights, *levels)
    score = rounds.read(gate, question, clip)
    total = total_of(gate, rounds, gate.ask(*weights)[0]) if weights else Total(1.0, 0.0, 0.0)
    found = None if level is None else level.read(gate, gate.ask(*levels), score, total)
    return Measured(weighted_score(rounds, score, total), found)


def level_remainder(outcome: Outcome, location: Location) -> float:
    """Standard deviation of E[(pi - e)(tau(x) - tau)]: a level takes the effect for a constant.

    By the errors of the propensity, and by how much effects vary before anything is known of it.
    """
    setting, e = outcome.propensity.setting, outcome.propensity.on_reference
    varies = e * (1.0 - e)
    gram = float(np.mean(varies)) * setting.weighted(varies)
    effects = guessed_variance(setting.basis, location.magnitude.scale)
    # The constant is the effect that was taken.
    effects[0] = 0.0
    return sqrt(max(float(np.sum(outcome.propensity.covariance * ((gram * effects) @ gram))), 0.0))
