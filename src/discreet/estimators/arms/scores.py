"""Scores of all arms at once, by models that are public then, and the last rounds through the gate.

Diameters, and why the mean of a score is that of an arm's outcomes: docs/proofs/arms.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Protocol

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.records import Chunk
from discreet.estimators.measurements.nuisances import Outcome
from discreet.estimators.measurements.score import with_count
from discreet.postprocessing.tails import SIDES, Clip, Strata, Tails, signed_bins
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.moments import ArmMoments, VectorMoments, arm_diameter
from discreet.privacy.sensitivity.sets import Ball, Cells, MeanSquare

# Choice: least weight of a squared score beside the score itself, where squares are not free, and the weight under
# Laplace noise. By hand: noise of the mean is an eighth and a quarter larger, and its square is known well enough.
_SQUARE, _SQUARE_OF_PURE = 0.5, 0.25


class BallStrata(Strata):
    """Strata by how likely the least likely arm is, for scores whose vectors lie in a ball."""

    def ends(self, low: Float, high: Float) -> tuple[Float, Float]:
        """Ends of an interval as wide as the set of scores for residuals clipped to [-low m, high m]."""
        most = np.maximum(low, high)
        return -most, most


class ArmStrata(Strata):
    """The same for scores of a record's own arm alone."""

    def ends(self, low: Float, high: Float) -> tuple[Float, Float]:
        """Ends of an interval as wide as the set of scores for residuals clipped to [-low m, high m]."""
        half = arm_diameter(low, high, _SQUARE, "replace-one") / 2.0
        return -half, half


class Residuals(NamedTuple):
    """What the model of a record's own arm leaves unexplained, and the probability of its least likely arm."""

    own: Float
    least: Float


class ArmScore(Protocol):
    """Vectors of scores, a number for each arm: their means are the arms' means but for constants and the prognosis."""

    @property
    def in_block(self) -> bool:
        """Whether a record's vector is zero but for its own arm."""
        ...

    @property
    def limits(self) -> tuple[float, float]:
        """Where a prognosis is held."""
        ...

    @property
    def constants(self) -> Float:
        """What the means of the vectors lack, beside the mean prognosis."""
        ...

    @property
    def overlap(self) -> Strata:
        """Strata of the least likely arm."""
        ...

    @property
    def reach(self) -> tuple[float, float]:
        """Largest residual below and above zero."""
        ...

    def residuals(self, c: Chunk) -> Residuals:
        """What the model of the own arm leaves unexplained."""
        ...

    def vectors(self, c: Chunk, clip: Clip) -> Float:
        """One row for each record, residuals clipped."""
        ...

    def prognosis(self, c: Chunk) -> Float:
        """What an outcome is expected to be, arms aside."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DesignScore:
    """Where probabilities of the arms are the same for all: only the own arm of a record is in its vector.

    Parameters
    ----------
    shares
        Probabilities of the arms.
    offsets
        Public guesses at how far the arms' means are from the common prognosis.
    prognosis
        What an outcome is expected to be, arms aside.
    limits
        Where a prognosis is held.
    """

    shares: Float
    offsets: Float
    prognosis: Callable[[Chunk], Float]
    limits: tuple[float, float]

    @property
    def in_block(self) -> bool:
        """A record says something of its own arm only."""
        return True

    @property
    def constants(self) -> Float:
        """What the means of the vectors lack, beside the mean prognosis."""
        return self.offsets

    @property
    def overlap(self) -> Strata:
        """One stratum."""
        least = float(self.shares.min())
        return ArmStrata.between(least, least)

    @property
    def reach(self) -> tuple[float, float]:
        """Largest residual below and above zero."""
        low, high = float(self.offsets.min()), float(self.offsets.max())
        return 1.0 + self.limits[1] + high, 1.0 - self.limits[0] - low

    def residuals(self, c: Chunk) -> Residuals:
        """What prognosis and arm leave unexplained."""
        # Offsets are never clipped here: what is taken away is added again, to the last bit.
        expected = np.clip(self.prognosis(c), *self.limits) + self.offsets[c.t.astype(np.intp)]
        return Residuals(c.y - expected, np.full(len(c.y), self.shares.min()))

    def vectors(self, c: Chunk, clip: Clip) -> Float:
        """Inversely weighted residuals, each in its arm's place."""
        residual, least = self.residuals(c)
        arm = c.t.astype(np.intp)
        found = np.zeros((len(arm), len(self.shares)))
        found[np.arange(len(arm)), arm] = np.clip(residual, -clip.low * least, clip.high * least) / self.shares[arm]
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedScore:
    """Where probabilities are estimated: doubly robust scores by models of every arm.

    Parameters
    ----------
    models
        Public models of every arm against the others, whose outcomes count as ``centre``.
    centre
        That number.
    shares
        Released shares of the arms.
    limits
        Where an expected outcome is held.
    """

    models: tuple[Outcome, ...]
    centre: float
    shares: Float
    limits: tuple[float, float]

    @property
    def in_block(self) -> bool:
        """Models of several arms differ."""
        return False

    @property
    def constants(self) -> Float:
        """What the means of the vectors lack, beside the mean prognosis: effects, counted from their mean."""
        effects = np.array([each.effect for each in self.models])
        return np.asarray(effects - effects @ self.shares)

    @property
    def overlap(self) -> Strata:
        """Strata of the least likely arm, which is no likelier than all arms are if they are equally likely."""
        low, most = min(each.propensity.low for each in self.models), 1.0 / len(self.models)
        return BallStrata.between(min(low, most), most)

    @property
    def reach(self) -> tuple[float, float]:
        """Largest residual below and above zero."""
        return 1.0 + self.limits[1], 1.0 - self.limits[0]

    def _answers(self, c: Chunk) -> tuple[Float, Float]:
        """Probability of every arm, and the outcome to be expected in it."""
        answers = [each.answers(c) for each in self.models]
        e = np.column_stack([each.e for each in answers])
        prognosis = np.column_stack([each.prognosis for each in answers])
        return e, np.clip(self.centre + (prognosis - self.centre) / (1.0 - e), *self.limits)

    def _least(self, e: Float) -> Float:
        return np.asarray(np.minimum(e.min(axis=1), 1.0 / len(self.models)))

    def residuals(self, c: Chunk) -> Residuals:
        """What the model of the own arm leaves unexplained."""
        e, expected = self._answers(c)
        return Residuals(c.y - expected[np.arange(len(e)), c.t.astype(np.intp)], self._least(e))

    def vectors(self, c: Chunk, clip: Clip) -> Float:
        """Doubly robust scores less the common prognosis and the effects, residuals clipped alike in all arms."""
        e, expected = self._answers(c)
        least, own = self._least(e), (np.arange(len(e)), c.t.astype(np.intp))
        found = expected - (expected @ self.shares)[:, None] - self.constants
        found[own] += np.clip(c.y - expected[own], -clip.low * least, clip.high * least) / e[own]
        return np.asarray(found)

    def prognosis(self, c: Chunk) -> Float:
        """The mean of what is expected in all arms, by their shares."""
        _, expected = self._answers(c)
        return np.asarray(expected @ self.shares)


class ArmMeans(NamedTuple):
    """Means of the arms on [-1, 1], less the common prognosis, and covariances of their errors, by source."""

    means: Float
    sampling: Float
    privacy: Float


def measure_tails(gate: Gate, share: float, score: ArmScore, *, atomic: bool) -> Tails:
    """How residuals are distributed."""
    ceiling, strata = max(score.reach), score.overlap

    def rows(c: Chunk) -> IntArray:
        own, least = score.residuals(c)
        return SIDES * strata.numbers(least) + signed_bins(own, ceiling)

    (bins,) = gate.ask(Query("residual tails", share, Cells((SIDES * strata.count,)), rows))
    fractions, sd = bins.value / gate.n, float(bins.sd) / gate.n
    return Tails.fit(fractions, sd, ceiling, strata, atomic=atomic, randomised=score.in_block)


def choose_clip(gate: Gate, share: float, score: ArmScore, tails: Tails, score_share: float) -> Clip:
    """How much each of a few clips would cut off, and the one that balances this with noise of a contrast."""
    noise = sqrt(2.0) * gate.noise_sd(_set_of(gate, score, 1.0, 1.0), score_share) / gate.n
    ladder, far = tails.ladder(noise, score.reach), max(score.reach)

    def rows(c: Chunk) -> Float:
        own, least = score.residuals(c)
        # Counted from the middle, so that the ball is half as large.
        return np.column_stack(
            [
                np.maximum(np.maximum(own - clip.high * least, -own - clip.low * least), 0.0) - far / 2.0
                for clip in ladder[:-1]
            ]
        )

    radius = far / 2.0 * (len(ladder) - 1) ** 0.5
    (sums,) = gate.ask(Query("clipped excess", share, Ball(radius, len(ladder) - 1), rows))
    return tails.settle(ladder, sums.value / gate.n + far / 2.0, float(sums.sd) / gate.n, noise)


def _set_of(gate: Gate, score: ArmScore, low: float, high: float) -> VectorMoments | ArmMoments:
    """The set of one record's scores, residuals clipped to [-low m, high m]."""
    arms = len(score.constants)
    if not score.in_block:
        return VectorMoments(max(low, high), arms)
    if gate.pure:
        return ArmMoments(low, high, arms, _SQUARE_OF_PURE)
    # Squares are free as far as numbers of one arm are further apart than those of two.
    part = min(low, high) / max(low, high)
    free = ((1.0 + part) ** 2 - 2.0) / (2.0 - (1.0 - part * part) ** 2)
    weight = _SQUARE if gate.neighbours == "add-remove" else max(_SQUARE, sqrt(max(free, 0.0)))
    return ArmMoments(low, high, arms, min(weight, 1.0))


def measure_score(gate: Gate, share: float, score: ArmScore, clip: Clip) -> ArmMeans:
    """Means of the vectors, the covariance of their errors, and what noise may hide of it."""
    geometry, arms = _set_of(gate, score, clip.low, clip.high), len(score.constants)

    def rows(c: Chunk) -> Float:
        vectors = score.vectors(c, clip)
        if not score.in_block:
            return vectors
        return np.column_stack([c.t, vectors[np.arange(len(vectors)), c.t.astype(np.intp)]])

    (sums,) = gate.ask(Query("score of all arms", share, geometry, rows))
    value, sd = sums.value / gate.n, np.asarray(sums.sd) / gate.n
    if isinstance(geometry, VectorMoments):
        mean, second = geometry.divided(value)
        noise, square_noise = float(sd[0]), float(sd[arms])
        size, axes = np.linalg.eigh(second - np.outer(mean, mean))
        covariance = (axes * np.maximum(size, 0.0)) @ axes.T
    else:
        # What noise may hide of two arms adds up to more than noise hides of a contrast, by the root of two.
        mean, noise, square_noise = value[:, 0], float(sd[0]), float(sd[1]) / sqrt(2.0)
        covariance = np.diag(np.maximum(value[:, 1] - mean**2, 0.0))
    # What noise may hide of it counts, and rows of one unit may all be alike: docs/proofs/units.md, lemma 4.
    sampling = gate.most_rows * (covariance + square_noise * np.eye(arms)) / gate.n
    return ArmMeans(score.constants + mean, sampling, noise**2 * np.eye(arms))


def measure_prognosis(gate: Gate, share: float, score: ArmScore) -> tuple[float, float, float]:
    """Mean of the common prognosis, its sampling variance and the variance of its noise: the same for all arms."""
    low, high = score.limits
    middle, half = (low + high) / 2.0, max((high - low) / 2.0, 1e-6)

    def rows(c: Chunk) -> Float:
        return np.asarray(np.clip(score.prognosis(c), low, high) - middle)

    (sums,) = gate.ask(Query("mean prognosis", share, MeanSquare(half), rows))
    mean, square = (float(each) for each in sums.value / gate.n)
    noise, square_noise = (float(each) for each in np.asarray(sums.sd) / gate.n)
    variance = gate.most_rows * (max(square - mean**2, 0.0) + square_noise)
    return middle + mean, variance / gate.n, with_count(gate, noise, mean) ** 2
