"""One-run audits: many independent secrets in one data set, and how many of them a single release gives away.

Each canary is a record in one of two versions, chosen by a fair coin. If the mechanism were (epsilon, delta)-DP, the
number of right guesses would hardly exceed that of coins which fall right with probability e^epsilon / (1 + e^epsilon):
Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run" (2023), Theorem 5.2. Runs with fresh secrets
may be pooled: a secret enters one run only, so that all runs together are (epsilon, delta)-DP in each secret.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discreet.audit.result import check_confidence
from discreet.data._arrays import Float

_PRECISION = 1e-3


class Guesses(NamedTuple):
    """How many secrets there were, how many were guessed at, and how many of those rightly."""

    secrets: int
    guessed: int
    right: int


def chance(found: Guesses, epsilon: float, delta: float) -> float:
    """Largest probability of so many right guesses under (epsilon, delta)-DP."""
    from scipy.stats import binom

    p = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(found.right - 1, found.guessed, p))
    if delta == 0 or tail >= 1:
        return min(1.0, tail)
    i = np.arange(1, found.right + 1)
    between = binom.cdf(found.right - 1, found.guessed, p) - binom.cdf(found.right - i - 1, found.guessed, p)
    slack = float(np.max(2.0 / i * between, initial=0.0)) * found.secrets * delta
    return min(1.0, tail + slack)


def least_epsilon(found: Guesses, delta: float, confidence: float = 0.95) -> float:
    """Largest epsilon that so many right guesses refute."""
    alpha = 1 - check_confidence(confidence)
    low, high = 0.0, 1.0
    if chance(found, 0.0, delta) > alpha:
        return 0.0
    while chance(found, high, delta) <= alpha and high < 100:
        low, high = high, 2 * high
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if chance(found, middle, delta) <= alpha else (low, middle)
    return low


def least_delta(found: Guesses, epsilon: float, confidence: float = 0.95) -> float:
    """Largest delta that so many right guesses refute at the claimed epsilon."""
    alpha = 1 - check_confidence(confidence)
    if chance(found, epsilon, 0.0) > alpha:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(found, epsilon, middle) <= alpha else (low, middle)
    return low


def guess(scores: Float, secrets: Float, least: float) -> Guesses:
    """Guess "1" where a score is above ``least``, "0" where it is below ``-least``, and nothing between."""
    sure = np.abs(scores) > least
    right = int(np.sum((scores[sure] > 0) == (secrets[sure] > 0)))
    return Guesses(len(scores), int(sure.sum()), right)


def choose_least(scores: Float, secrets: Float, delta: float, runs: int, confidence: float = 0.95) -> float:
    """How sure to be before guessing, from runs that are not counted: what would prove most in so many more runs."""
    sizes = np.abs(scores)
    best, least = -1.0, 0.0
    for level in [0.0, *np.quantile(sizes, np.linspace(0.05, 0.9, 18))]:
        found = Guesses(*(runs * count for count in guess(scores, secrets, float(level))))
        worth = least_epsilon(found, delta, confidence)
        if worth > best:
            best, least = worth, float(level)
    return least
