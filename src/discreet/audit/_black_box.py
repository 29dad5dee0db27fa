"""Distinguishing two data sets by running a mechanism many times on both: Monte-Carlo hypothesis tests.

Half of the runs choose an event, the others count it: nothing that was seen before is counted. Clopper-Pearson bounds
turn counts into probabilities, and P(E) <= exp(epsilon) P'(E) + delta turns these into bounds on epsilon and delta.
Events are half-lines of scores (a discriminant direction, the largest single number, the size of all) and single values
that occur again and again: atoms, which continuous noise does not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.audit.result import check_confidence
from discreet.data._arrays import Float

# Fewer runs on either data set cannot prove anything of interest at any level.
MIN_TRIALS = 20
# Thresholds that are tried on the first half.
_THRESHOLDS = 60
# Numbers of a release that enter the discriminant: those that differ most.
_MOST_NUMBERS = 40


# (hits, runs) on the data set where an event is likelier, and on the other.
Counts = tuple[tuple[int, int], tuple[int, int]]


class Bounds(NamedTuple):
    """Lower bounds that hold together with the stated confidence."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True, eq=False)
class Distinguished:
    """What a black-box test found.

    Parameters
    ----------
    epsilon_lower, delta_lower
        Lower bounds that hold together with probability ``confidence``.
    event
        The event that was counted for epsilon, in words.
    counts
        How often it happened and in how many runs, on the data set where it is likelier and on the other.
    scores
        The chosen score of the runs that were counted, on either data set, for figures.
    """

    epsilon_lower: float
    delta_lower: float
    confidence: float
    event: str
    counts: Counts
    scores: tuple[Float, Float]


def clopper_pearson(hits: int, runs: int, alpha: float) -> tuple[float, float]:
    """Two one-sided bounds on a probability, each wrong with probability ``alpha`` at most."""
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, runs - hits + 1, alpha))
    high = 1.0 if hits == runs else float(betaincinv(hits + 1, runs - hits, 1 - alpha))
    return low, high


def bounds_of(counts: Counts, epsilon: float, delta: float, confidence: float) -> Bounds:
    """What counts of one event, chosen before, prove: (hits, runs) where it is likelier, and on the other data set."""
    alpha = (1 - confidence) / 2
    (hits, runs), (other_hits, other_runs) = counts
    p, q = clopper_pearson(hits, runs, alpha)[0], clopper_pearson(other_hits, other_runs, alpha)[1]
    least = math.log((p - delta) / q) if p > delta and q > 0 else 0.0
    return Bounds(max(0.0, least), max(0.0, p - math.exp(min(epsilon, 700.0)) * q))


def most_epsilon(runs: int, delta: float, confidence: float = 0.95) -> float:
    """The largest epsilon that `distinguish` can show with so many runs on each data set, whatever the mechanism."""
    counted = runs // 2
    return bounds_of(((counted, counted), (0, counted)), 0.0, delta, (1 + check_confidence(confidence)) / 2).epsilon


def distinguish(
    one: Float,
    other: Float,
    epsilon: float,
    delta: float,
    confidence: float = 0.95,
    names: Sequence[str] = (),
) -> Distinguished:
    """Bounds from outputs of a mechanism on two neighbours, a row for each run; the columns may have names.

    Epsilon and delta are counted by an event each, so that half of the error is set aside for either.
    """
    confidence = check_confidence(confidence)
    each = (1 + confidence) / 2
    training, counted = [world[0::2] for world in (one, other)], [world[1::2] for world in (one, other)]
    tried: list[tuple[Bounds, _Event, Any, bool]] = []
    apart: list[float] = []
    for name, score in _scores(training[0], training[1], names or [f"number {j + 1}" for j in range(one.shape[1])]):
        values = [np.asarray(score(world), dtype=np.float64) for world in training]
        for event in _events(name, *values):
            swapped, hits = event.hits(values[0], values[1])
            tried.append((bounds_of(hits, epsilon, delta, each), event, score, swapped))
            apart.append(hits[0][0] / hits[0][1] - hits[1][0] / hits[1][1])
    chosen = {}
    for what in ("epsilon", "delta"):
        most = max(getattr(bounds, what) for bounds, *_ in tried)
        best = [one for one in tried if getattr(one[0], what) == most]
        if most == 0:
            # Nothing is proved on this half: what differs most may be on the other.
            best = [tried[int(np.argmax(apart))]]
        # Among thresholds that are equally good here, the middle one of the first score is safest elsewhere.
        alike = [one for one in best if (one[1].score, one[1].kind) == (best[0][1].score, best[0][1].kind)]
        _, event, score, swapped = sorted(alike, key=lambda one: one[1].level)[len(alike) // 2]
        values = [np.asarray(score(world), dtype=np.float64) for world in counted]
        chosen[what] = (event, values, event.count(values[0], values[1], swapped))
    event, values, counts = chosen["epsilon"]
    return Distinguished(
        epsilon_lower=bounds_of(counts, epsilon, delta, each).epsilon,
        delta_lower=bounds_of(chosen["delta"][2], epsilon, delta, each).delta,
        confidence=confidence,
        event=str(event),
        counts=counts,
        scores=(values[0], values[1]),
    )


@dataclass(frozen=True, slots=True)
class _Event:
    score: str
    level: float
    kind: str

    def happens(self, values: Float) -> Any:
        if self.kind == "is":
            return values == self.level
        return values > self.level if self.kind == "above" else values <= self.level

    def hits(self, one: Float, other: Float) -> tuple[bool, Counts]:
        """Counts, the likelier world first, and whether that is the second one."""
        rates = [float(np.mean(self.happens(values))) for values in (one, other)]
        swapped = rates[1] > rates[0]
        return swapped, self.count(one, other, swapped)

    def count(self, one: Float, other: Float, swapped: bool) -> Counts:
        counts = [(int(np.sum(self.happens(values))), len(values)) for values in (one, other)]
        return (counts[1], counts[0]) if swapped else (counts[0], counts[1])

    def __str__(self) -> str:
        relation = {"is": "is exactly", "above": "is above", "below": "is at most"}[self.kind]
        return f"{self.score} {relation} {self.level:.6g}"


def _events(name: str, one: Float, other: Float) -> list[_Event]:
    both = np.concatenate([one, other])
    atoms, times = np.unique(both, return_counts=True)
    often = atoms[times >= max(3, len(both) // 50)]
    events = [_Event(name, float(value), "is") for value in often[:_THRESHOLDS]]
    levels = np.unique(np.quantile(both, np.linspace(0.005, 0.995, _THRESHOLDS)))
    # Where one world ends and the other goes on, a threshold between the two is best.
    ends = [(max(one.min(), other.min()), min(one.max(), other.max()))]
    levels = np.concatenate([levels, *ends, [(a + b) / 2 for a, b in ends]])
    return events + [_Event(name, float(level), kind) for level in levels for kind in ("above", "below")]


def _scores(one: Float, other: Float, names: Sequence[str]) -> list[tuple[str, Any]]:
    """Ways to turn an output into one number, learnt from the first half of the runs."""
    both = np.concatenate([one, other])
    finite = np.all(np.isfinite(both), axis=0)
    # A median and a range: a few outputs may be huge.
    centre, width = np.median(both[:, finite], axis=0), _width(both[:, finite])
    varies = width > 0
    differs = np.flatnonzero(finite)[varies]

    def standardised(world: Float) -> Float:
        return np.asarray(np.clip((world[:, finite][:, varies] - centre[varies]) / width[varies], -1e3, 1e3))

    scores: list[tuple[str, Any]] = []
    if both.shape[1] <= _MOST_NUMBERS:
        scores += [(names[j], lambda world, j=j: world[:, j]) for j in range(both.shape[1])]
    if not varies.any():
        return scores or [(names[0], lambda world: world[:, 0])]
    a, b = standardised(one), standardised(other)
    apart = np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(a.var(axis=0) + b.var(axis=0) + 1e-12)
    chosen = np.argsort(-apart, kind="stable")[: min(_MOST_NUMBERS, max(1, (len(a) + len(b)) // 10))]
    if both.shape[1] > _MOST_NUMBERS:
        scores.append(
            (f"{names[int(differs[chosen[0]])]}, standardised,", lambda world: standardised(world)[:, chosen[0]])
        )
    # Most of the variation is along few directions: a ridge keeps the rest from being fitted to noise.
    within = (np.cov(a[:, chosen].T) + np.cov(b[:, chosen].T)).reshape(len(chosen), -1) / 2
    ridge = 0.05 * np.trace(within) / len(chosen) + 1e-9
    direction = np.linalg.solve(within + ridge * np.eye(len(chosen)), a[:, chosen].mean(0) - b[:, chosen].mean(0))
    scores.append(("the discriminant", lambda world: standardised(world)[:, chosen] @ direction))
    scores.append(("the size", lambda world: np.log(1e-300 + (standardised(world) ** 2).sum(axis=1))))
    return scores


def _width(both: Float) -> Float:
    low, high = np.quantile(both, [0.05, 0.95], axis=0)
    width = high - low
    return np.asarray(np.where(width > 0, width, both.std(axis=0)))
