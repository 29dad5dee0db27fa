"""The last rounds through the gate: residuals and the doubly robust score, by models that are public then.

Diameters: docs/proofs/ate.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.estimators._allocation import COUNT
from discreet.estimators.measurements.estimand import EVERYONE, Estimand, RecordWeights
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import Answers
from discreet.postprocessing.tails import SIDES, Clip, Strata, Tails, signed_bins
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query, Released
from discreet.privacy.sensitivity.sets import Ball, Cells, Interval, MeanSquare

# Choice: a prognosis is held below this many times the outcome's mean, counted from the nearer end of its range. Of 5
# and 20, on 260 observational studies among 170,000 to 171,099 of evidence/population: where covariates explain rare
# events or spending well, the lower one cut off what the model knew.
_PROGNOSIS = 20.0
# Largest ratio of noise to sampling error at which a score goes unclipped.
_FREE_NOISE = 0.3
# Choice: ratio of noise to sampling error from which on a known design goes without models: they have a quarter of the
# budget, and would have to explain a tenth of the outcome only to make up for it. By hand, after looking at the cells
# of the page on trials in which adjusted intervals were wider.
_NOISY = 0.6
# Choice: a sum of weights counts as no smaller than two standard deviations of its noise. By hand.
_CLEAR = 2.0


@dataclass(frozen=True, slots=True)
class Score:
    """Mean and variance of the clipped score, the noise of the mean, and what clipping may have hidden.

    Where a unit has several rows, the variance is the one that as many independent rows would need to have.
    ``lost`` is the part of the records that were clipped: by so much the mean stays behind when its centre is off.
    """

    mean: float
    variance: float
    noise: float
    hidden: float
    lost: float


class ScoreQuestion(NamedTuple):
    """The question, what its rows count from, and how many rows may be alike."""

    query: Query
    middle: float
    alike: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRounds:
    """The doubly robust score (t - e)(y - f) / (e (1 - e)), its residuals clipped alike in both arms.

    With f = (1 - e) mu_1 + e mu_0 it is the usual one; its mean is the average effect if either e or f is right, and
    otherwise misses by E[(pi - e)(f* - f) / (e (1 - e))]. It equals effect + w r with r = y - f - (t - 1 + e) effect,
    for any number called effect and w = (t - e) / (e (1 - e)): docs/proofs/ate.md, equation 1. What is clipped is
    r / min(e, 1 - e), to [-low, high] in both arms, so that what is estimated remains an effect: that on an outcome
    whose residuals are capped. Other averages weigh both by h(e): docs/proofs/att.md.

    Parameters
    ----------
    look_up
        Public models of each record.
    effect
        A public guess at the effect.
    overlap
        Strata of the probability of treatment by these models.
    prognosis
        Lowest and highest prognosis.
    estimand
        Whose average is meant.
    treated
        A public guess at the share of treated.
    weights
        How much single records count for; all alike without it.
    """

    look_up: Callable[[Chunk], Answers]
    effect: float
    overlap: Strata
    prognosis: tuple[float, float]
    estimand: Estimand = EVERYONE
    treated: float = 0.5
    weights: RecordWeights | None = None

    @property
    def reach(self) -> tuple[float, float]:
        """Largest residual below and above zero: outcomes and models are clipped."""
        low, high = self.prognosis
        return 1.0 + high + abs(self.effect), 1.0 - low + abs(self.effect)

    def residual(self, c: Chunk, answers: Answers) -> Float:
        """What prognosis and effect leave unexplained."""
        return c.y - np.clip(answers.prognosis, *self.prognosis) - (c.t - 1.0 + answers.e) * self.effect

    def unit(self, c: Chunk, answers: Answers) -> Float:
        """What residuals are clipped in multiples of: the inverse of the largest weight that a record can have."""
        unit = self.estimand.clip_unit(answers.e)
        return unit if self.weights is None else self.weights.divided(unit, c)

    def counted(self, c: Chunk, answers: Answers) -> Float:
        """How much a record counts for."""
        weight = self.estimand.weigh(answers.e)
        return weight if self.weights is None else self.weights(c) * weight

    def measure_tails(self, gate: Gate, share: float, *, atomic: bool, randomised: bool) -> Tails:
        """How residuals are distributed."""
        ceiling, strata = max(self.reach), self.overlap

        def rows(c: Chunk) -> IntArray:
            answers = self.look_up(c)
            stratum = strata.numbers(self.unit(c, answers))
            return SIDES * stratum + signed_bins(self.residual(c, answers), ceiling)

        (bins,) = gate.ask(Query("residual tails", share, Cells((SIDES * strata.count,)), rows))
        fractions, sd = bins.value / gate.n, float(bins.sd) / gate.n
        weight = float(self.estimand.weigh(np.array([self.treated]))[0])
        return Tails.fit(fractions, sd, ceiling, strata, atomic=atomic, randomised=randomised, weight=weight)

    def choose_clip(self, gate: Gate, share: float, tails: Tails, score_share: float) -> Clip:
        """How much each of a few clips would cut off, and the one that balances this with noise."""
        noise = gate.noise_sd(MeanSquare(1.0), score_share) / gate.n
        ladder, far = tails.ladder(noise, self.reach), max(self.reach)

        def rows(c: Chunk) -> Float:
            answers = self.look_up(c)
            unit, residual, weight = self.unit(c, answers), self.residual(c, answers), self.counted(c, answers)
            # Counted from the middle, so that the ball is half as large.
            return np.column_stack(
                [
                    weight * np.maximum(np.maximum(residual - clip.high * unit, -residual - clip.low * unit), 0.0)
                    - far / 2.0
                    for clip in ladder[:-1]
                ]
            )

        radius = far / 2.0 * (len(ladder) - 1) ** 0.5
        (sums,) = gate.ask(Query("clipped excess", share, Ball(radius, len(ladder) - 1), rows))
        return tails.settle(ladder, sums.value / gate.n + far / 2.0, float(sums.sd) / gate.n, noise)

    @property
    def no_clip(self) -> Clip:
        """Levels beyond which there is nothing."""
        low, high = (far / self.overlap.least for far in self.reach)
        return Clip(low, high, 0.0, 0.0)

    def clipped(self, c: Chunk, answers: Answers, clip: Clip) -> Float:
        """Residuals that are clipped alike in both arms."""
        unit = self.unit(c, answers)
        return np.clip(self.residual(c, answers), -clip.low * unit, clip.high * unit)

    def question(self, gate: Gate, share: float, clip: Clip) -> ScoreQuestion:
        """What is asked about the score: its mean and free second moment."""
        bottom, top = (float(end) for end in self.overlap.ends(np.array(clip.low), np.array(clip.high)))
        middle, half, alike = (top + bottom) / 2.0, (top - bottom) / 2.0, gate.most_rows
        of_units = gate.joins_rows
        if of_units:
            # Counted from where its mean is about zero: units have different numbers of rows, and a mean for each.
            middle, half, alike = 0.0, gate.most_rows * max(top, -bottom), 1

        def rows(c: Chunk) -> Float:
            answers = self.look_up(c)
            found = self.estimand.weight(c.t, answers.e) * self.clipped(c, answers, clip)
            return (found if self.weights is None else self.weights(c) * found) - middle

        return ScoreQuestion(Query("score", share, MeanSquare(half), rows, of_units), middle, alike)

    def measure(self, gate: Gate, share: float, clip: Clip | None) -> Score:
        """Mean and free second moment of the score; without a clip, of the whole score."""
        clip = self.no_clip if clip is None else clip
        return self.read(gate, self.question(gate, share, clip), clip)

    def read(self, gate: Gate, question: ScoreQuestion, clip: Clip) -> Score:
        """Ask, and read the answer."""
        (sums,) = gate.ask(question.query)
        mean, square = sums.value / gate.n
        own, square_noise = np.asarray(sums.sd) / gate.n
        # Scores were counted from the middle of their range.
        noise = with_count(gate, float(own), float(mean))
        # What noise may hide of it counts, and rows of one unit may all be alike: docs/proofs/units.md, lemma 4.
        variance = question.alike * (max(float(square - mean**2), 0.0) + float(square_noise))
        return Score(self.effect + question.middle + float(mean), variance, noise, clip.hidden, clip.lost)


def with_count(gate: Gate, noise: float, mean: float) -> float:
    """Noise of a mean, with what the number of records makes of it where that was released: it is off as well.

    ``mean`` is as it was summed, counted from whichever number was taken from every record.
    """
    return hypot(noise, mean * gate.noise_sd(Interval(0.0, 1.0), COUNT) / gate.n) if gate.counts_rows else noise


class Total(NamedTuple):
    """Mean of the weights that a score is divided by, the variance of one record's, and the noise of the mean."""

    mean: float
    variance: float
    noise: float


def weights_query(rounds: ScoreRounds, share: float) -> Query:
    """The sum of the weights of an average over some of the records."""
    counted, most = rounds.estimand.counted, rounds.estimand.most_counted(rounds.overlap.low, rounds.overlap.high)
    assert counted is not None
    return Query("sum of weights", share, Interval(0.0, most), lambda c: counted(c.t, rounds.look_up(c).e))


def total_of(gate: Gate, rounds: ScoreRounds, found: Released) -> Total:
    """What the sum of the weights is."""
    noise, most = float(found.sd) / gate.n, rounds.estimand.most_counted(rounds.overlap.low, rounds.overlap.high)
    # No noise makes it smaller than the declared overlap allows, nor so small that it is all noise.
    least = float(rounds.estimand.weigh(np.array(gate.bounds.propensity)).min())
    mean = float(np.clip(float(found.value) / gate.n, min(max(least, _CLEAR * noise), most), most))
    return Total(mean, gate.most_rows * max(mean * (most - mean), 0.0), noise)


def weighted_score(rounds: ScoreRounds, score: Score, total: Total) -> Score:
    """The score of an average over some of the records: divided by the sum of their weights.

    An effect that is nearly right makes errors of the sum matter little: only what the score adds to it is divided.
    """
    if not rounds.estimand.weighted:
        return score
    added = (score.mean - rounds.effect) / total.mean
    return Score(
        mean=rounds.effect + added,
        variance=(score.variance + added**2 * total.variance) / total.mean**2,
        noise=hypot(score.noise, added * total.noise) / total.mean,
        hidden=score.hidden / total.mean,
        lost=score.lost,
    )


def design_strata(propensity: Any, bounds: Bounds, estimand: Estimand = EVERYONE) -> Strata:
    """Strata of a known design: one number, or what the bounds allow."""
    ends = (float(propensity),) * 2 if isinstance(propensity, Real) else bounds.propensity
    return Strata.between(*ends, estimand.clip_unit, estimand.largest_unit)


def prognosis_range(location: Location) -> tuple[float, float]:
    """Where a prognosis is held: of an outcome whose mean is near one end of its range, no further from that end."""
    below, above = 1.0 + location.centre + 3.0 * location.noise, 1.0 - location.centre + 3.0 * location.noise
    return max(-1.0, 1.0 - _PROGNOSIS * above), min(1.0, _PROGNOSIS * below - 1.0)


def clips_nothing(gate: Gate, share: float, ceiling: float, location: Location, h: float = 1.0) -> bool:
    """Whether noise for the largest possible score would be small beside the sampling error (a public rule)."""
    noise = gate.noise_sd(MeanSquare(ceiling), share) / gate.n
    varies = location.treated * (1.0 - location.treated) / h**2
    return noise <= _FREE_NOISE * float(np.sqrt(location.magnitude.clipped_square(2.0) / (gate.n * varies)))


def noise_dominates(gate: Gate, share: float, location: Location, propensity: float) -> bool:
    """Whether noise is so much of the error of a known design's score that models of the outcome would not pay."""
    unit, rarer = gate.noise_sd(MeanSquare(1.0), share) / gate.n, min(propensity, 1.0 - propensity)
    clip = location.tails.clip(unit, (1.0 + location.centre, 1.0 - location.centre))
    # The first tails count in halves, as those of even arms.
    noise = unit * (clip.low + clip.high) / 4.0 / rarer
    return noise > _NOISY * location.deviation / float(np.sqrt(gate.n * propensity * (1.0 - propensity)))
