"""Outcomes of random studies: what one record shows, given its place on one scale, clipped to what is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, ndtr, pdtrc, stdtrit

from discreet.data.columns import Range

Float = NDArray[np.float64]
Function = Callable[[Float], Float]
Kind = Literal["continuous", "heavy", "skewed", "counts", "binary", "rare", "spend", "capped"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Places on the scale where moments are tabulated.
_FAR = 8.0
_PLACES = np.linspace(-_FAR, _FAR, 801)
# Normal variables over which they are taken, with the weights of the trapezoidal rule.
_NODES = np.linspace(-6.0, 6.0, 481)
_WEIGHTS = np.exp(-(_NODES**2) / 2.0) / np.exp(-(_NODES**2) / 2.0).sum()
# Rates of counts stay below exp(4) = 55: none is larger than this.
_LARGEST_COUNT = 160
# Variance of the logistic distribution: the scale on which a binary outcome is said to be explained.
_LOGISTIC = np.pi**2 / 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The outcome before it is clipped: with a chance that depends on eta an amount, and otherwise zero.

    Parameters
    ----------
    amount
        From a standard normal variable and eta to the amount.
    rate
        Mean of a Poisson variable at each eta; the amount then, in place of ``amount``.
    chance
        Probability at each eta that there is an amount at all.
    """

    amount: Callable[[Float, Float], Float] | None = None
    rate: Function | None = None
    chance: Function | None = None

    def draw(self, rng: Generator, eta: Float) -> Float:
        """One outcome for each eta."""
        found = np.ones(len(eta))
        if self.rate is not None:
            found = rng.poisson(self.rate(eta)).astype(np.float64)
        elif self.amount is not None:
            found = self.amount(rng.standard_normal(len(eta)), eta)
        return found if self.chance is None else np.where(rng.random(len(eta)) < self.chance(eta), found, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An outcome whose distribution depends on one number, ``eta``, and is clipped to a declared range."""

    kind: Kind
    declared: Range
    law: Law

    def draw(self, rng: Generator, eta: Float) -> Float:
        """One outcome for each record."""
        found = self.law.draw(rng, np.clip(eta, -_FAR, _FAR))
        return np.clip(found, self.declared.low, self.declared.high)

    def moments(self, eta: Float) -> tuple[Float, Float]:
        """Mean and variance of the clipped outcome at each eta, by tables that are fine beside any standard error."""
        eta = np.clip(eta, -_FAR, _FAR)
        if self.law.amount is None and self.law.rate is None:
            mean, square = np.ones(len(eta)), np.ones(len(eta))
        else:
            mean, square = (np.interp(eta, _PLACES, table) for table in _tables(self))
        chance = 1.0 if self.law.chance is None else self.law.chance(eta)
        return chance * mean, chance * square - (chance * mean) ** 2


@lru_cache(maxsize=4)
def _tables(outcome: Outcome) -> tuple[Float, Float]:
    """Mean and mean square of the clipped amount at each place."""
    low, high, law = outcome.declared.low, outcome.declared.high, outcome.law
    if law.rate is not None:
        # E min(K, c) is the sum of P(K > k) over k < c; likewise for the square.
        k = np.arange(min(int(high), _LARGEST_COUNT))
        beyond = pdtrc(k, law.rate(_PLACES)[:, None])
        return beyond.sum(axis=1), beyond @ (2.0 * k + 1.0)
    assert law.amount is not None
    clipped = np.clip(law.amount(_NODES[None, :], _PLACES[:, None]), low, high)
    return clipped @ _WEIGHTS, clipped**2 @ _WEIGHTS


def random_outcome(rng: Generator, kind: Kind, explained: float, etas: Float, spread: float) -> Outcome:
    """An outcome of a kind.

    Parameters
    ----------
    explained
        Share of the variance that eta has: of the outcome, of its logarithm (skewed), on the scale of logits (binary).
    etas
        Places of the population's records.
    spread
        Standard deviation of eta without treatment.
    """
    law = _MAKERS[kind](rng, float(np.sqrt((1.0 - explained) / explained) * spread), etas)
    return Outcome(kind=kind, declared=_declared(rng, kind, law.draw(rng, np.clip(etas, -_FAR, _FAR))), law=law)


def _declared(rng: Generator, kind: Kind, typical: Float) -> Range:
    """A range as somebody who knows the subject would declare it: too wide, now and then far too wide."""
    if kind in ("binary", "rare"):
        return Range(0.0, 1.0)
    if kind == "capped":
        return Range(0.0, float(np.quantile(typical, rng.uniform(0.7, 0.97))))
    low, high = np.quantile(typical, [0.0005, 0.9995])
    beyond = (high - low) * float(rng.choice([0.0, 0.2, 1.0, 4.0]))
    if kind in ("counts", "skewed", "spend"):
        return Range(0.0, max(1.0, float(np.ceil(high + beyond))))
    return Range(float(low - beyond / 2.0), float(high + beyond / 2.0))


def _continuous(rng: Generator, noise: float, etas: Float) -> Law:
    return Law(amount=lambda z, eta: eta + noise * z)


def _heavy(rng: Generator, noise: float, etas: Float) -> Law:
    df = float(rng.choice([2.5, 3.0, 5.0]))
    table = stdtrit(df, ndtr(_NODES)) / np.sqrt(df / (df - 2.0))
    return Law(amount=lambda z, eta: eta + noise * np.interp(z, _NODES, table))


def _skewed(rng: Generator, noise: float, etas: Float) -> Law:
    size = float(rng.uniform(0.3, 0.8))
    sd = float(np.clip(size * noise, 0.15, 1.5))
    return Law(amount=lambda z, eta: 100.0 * np.exp(size * eta + sd * z))


def _counts(rng: Generator, noise: float, etas: Float) -> Law:
    size = float(rng.uniform(0.3, 0.8))
    rate = np.exp(size * etas)
    # The level at which rates vary by so much beside the variance of a Poisson variable.
    level = np.log(rate.mean() / max(float(rate.var()), 1e-3) / max(noise**2, 1e-3))
    level = float(np.clip(level, -2.0, 3.0))
    return Law(rate=lambda eta: np.exp(np.clip(level + size * eta, -6.0, 4.0)))


def _events(share: float, etas: Float, size: float) -> Function:
    """Probabilities that are so large on average over the population."""
    low, high = -60.0, 60.0
    some = etas[:: max(1, len(etas) // 5_000)]
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if expit(middle + size * some).mean() < share else (low, middle)
    level = (low + high) / 2.0
    return lambda eta: np.asarray(expit(level + size * eta))


def _slope(noise: float, most: float) -> float:
    """Slope of a logit in eta that leaves this much noise beside it."""
    return float(min(np.sqrt(_LOGISTIC) / max(noise, 1e-3), most))


def _binary(rng: Generator, noise: float, etas: Float) -> Law:
    return Law(chance=_events(float(rng.uniform(0.1, 0.9)), etas, _slope(noise, 8.0)))


def _rare(rng: Generator, noise: float, etas: Float) -> Law:
    return Law(chance=_events(_between(rng, 0.002, 0.1), etas, _slope(noise, 3.0)))


def _spend(rng: Generator, noise: float, etas: Float) -> Law:
    chance = _events(_between(rng, 0.01, 0.6), etas, _slope(noise, 2.0))
    size, sd = float(rng.uniform(0.1, 0.5)), float(rng.uniform(0.5, 1.2))
    return Law(chance=chance, amount=lambda z, eta: 50.0 * np.exp(size * eta + sd * z))


def _between(rng: Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


_MAKERS: dict[Kind, Callable[[Generator, float, Float], Law]] = {
    "continuous": _continuous,
    "heavy": _heavy,
    "skewed": _skewed,
    "counts": _counts,
    "binary": _binary,
    "rare": _rare,
    "spend": _spend,
    "capped": _skewed,
}
