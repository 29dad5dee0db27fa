"""Comparing the arms of a trial by what its records count as: one score, whose models come from the released table.

Diameters: docs/proofs/survival.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators.measurements.score import with_count
from discreet.estimators.survival.rules import TREATED_SHARE
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Interval, MeanSquare
from discreet.releases.average import Uncertainty

SCORE, TREATED = "score", "number of treated"


class ArmMean(NamedTuple):
    """What the table says of an arm's mean, and where the numbers lie that its records count as.

    Parameters
    ----------
    mean, sd
        The mean, and the standard deviation of its error.
    low, high
        Least and largest number.
    """

    mean: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Score:
    """The doubly robust score of a record, by the probability of treatment and the means of the table."""

    control: float
    treated: float
    propensity: float | None
    """None where it comes with the records"""
    unit: tuple[float, float]
    """middle and half width of the range of the outcome: a chunk has it on [-1, 1]"""
    middle: float

    def __call__(self, chunk: Chunk) -> Float:
        e = np.full(len(chunk.t), self.propensity) if self.propensity is not None else chunk.e
        assert e is not None
        outcome = self.unit[0] + self.unit[1] * chunk.y
        of_treated, of_control = (outcome - self.treated) / e, (outcome - self.control) / (1.0 - e)
        score = self.treated - self.control + np.where(chunk.t > 0.5, of_treated, -of_control)
        return np.asarray(score - self.middle)


def compare_arms(gate: Gate, propensity: Any, control: ArmMean, treated: ArmMean) -> tuple[float, Uncertainty]:
    """The difference of the arms' means; the gate's outcomes are what records count as."""
    share, missed = 1.0, 0.0
    known: float | None = None
    least, most = gate.bounds.propensity
    if propensity is None:
        known, missed = _treated(gate)
        share -= TREATED_SHARE
    elif isinstance(propensity, Real):
        known = float(propensity)
    if known is not None:
        least = most = known
    low, high = score_ends(control, treated, least, most)
    of_units, alike = gate.joins_rows, gate.most_rows
    # Counted from the middle, unless the number of records is private, whose noise would then count from there too.
    middle = 0.0 if gate.counts_rows else (low + high) / 2.0
    half = max(high - middle, middle - low)
    if of_units:
        half, alike = gate.most_rows * half, 1
    ends = gate.bounds.outcome
    unit = (ends[0] + ends[1]) / 2.0, (ends[1] - ends[0]) / 2.0
    score = _Score(control.mean, treated.mean, known, unit, middle)
    (sums,) = gate.ask(Query(SCORE, share, MeanSquare(half), score, of_units))
    mean, square = (float(each) for each in sums.value / gate.n)
    noise, square_noise = (float(each) for each in np.asarray(sums.sd) / gate.n)
    # What noise may hide of the variance counts; no variance exceeds that of the ends.
    variance = alike * min(max(square - mean**2, 0.0) + square_noise, half**2)
    # The released share of treated misses theirs by its noise, which matters as far as the table misses the means.
    remainder = 0.0 if known is None else missed * hypot(control.sd / (1.0 - known), treated.sd / known)
    return middle + mean, Uncertainty(
        sampling=sqrt(variance / gate.n), privacy=with_count(gate, noise, mean), nuisance=remainder
    )


def _treated(gate: Gate) -> tuple[float, float]:
    """Share of the treated, held within the declared overlap, and the standard deviation of its noise."""
    (released,) = gate.ask(Query(TREATED, TREATED_SHARE, Interval(0.0, 1.0), _is_treated))
    low, high = gate.bounds.propensity
    return min(max(float(released.value) / gate.n, low), high), float(released.sd) / gate.n


def _is_treated(chunk: Chunk) -> Float:
    return chunk.t


def score_ends(control: ArmMean, treated: ArmMean, least: float, most: float) -> tuple[float, float]:
    """Least and largest score: both arms, at the smallest probability of being in each."""
    effect = treated.mean - control.mean
    of_treated = ((treated.low - treated.mean) / least, (treated.high - treated.mean) / least)
    of_control = ((control.mean - control.high) / (1.0 - most), (control.mean - control.low) / (1.0 - most))
    ends = [effect, *(effect + each for each in (*of_treated, *of_control))]
    return min(ends), max(ends)
