"""Outcomes of random studies: what one record shows, given its place on one scale, clipped to what is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, ndtri, pdtr, pdtrik, stdtrit

from discreet.data.columns import Range

Float = NDArray[np.float64]
Kind = Literal["continuous", "heavy", "skewed", "counts", "binary", "rare", "spend", "capped"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Places on the scale where moments are tabulated, and ranks by which they are taken.
_PLACES, _RANKS = 601, 4_000
_FAR = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An outcome whose distribution depends on one number, ``eta``, and is clipped to a declared range."""

    kind: Kind
    declared: Range
    quantile: Callable[[Float, Float], Float]
    """From a rank between 0 and 1 and eta to the outcome before clipping."""

    def draw(self, rng: Generator, eta: Float) -> Float:
        """One outcome for each record."""
        return self._clipped(rng.random(len(eta)), eta)

    def moments(self, eta: Float) -> tuple[Float, Float]:
        """Mean and variance of the clipped outcome at each eta, from tables that are fine beside any noise."""
        places, means, variances = _tables(self)
        return np.interp(eta, places, means), np.interp(eta, places, variances)

    def _clipped(self, u: Float, eta: Float) -> Float:
        found = self.quantile(np.clip(u, 1e-9, 1.0 - 1e-9), np.clip(eta, -_FAR, _FAR))
        return np.clip(found, self.declared.low, self.declared.high)


@lru_cache(maxsize=4)
def _tables(outcome: Outcome) -> tuple[Float, Float, Float]:
    """Places on the scale, and mean and variance there."""
    places, ranks = np.linspace(-_FAR, _FAR, _PLACES), (np.arange(_RANKS) + 0.5) / _RANKS
    rows = [outcome._clipped(ranks, np.full(_RANKS, place)) for place in places]
    return places, np.array([row.mean() for row in rows]), np.array([row.var() for row in rows])


def random_outcome(rng: Generator, kind: Kind, explained: float, etas: Float) -> Outcome:
    """An outcome of a kind. ``etas`` are places of a reference; ``explained`` is the share of variance that eta has."""
    noise = float(np.sqrt((1.0 - explained) / explained) * etas.std()) if etas.std() > 1e-9 else 1.0
    quantile = _MAKERS[kind](rng, noise, etas)
    typical = quantile(rng.random(len(etas)), etas)
    return Outcome(kind=kind, declared=_declared(rng, kind, typical), quantile=quantile)


def _declared(rng: Generator, kind: Kind, typical: Float) -> Range:
    """A range as somebody who knows the subject would declare it: too wide, now and then far too wide."""
    if kind in ("binary", "rare"):
        return Range(0.0, 1.0)
    if kind == "capped":
        return Range(0.0, float(np.quantile(typical, rng.uniform(0.7, 0.97))))
    low, high = np.quantile(typical, [0.0005, 0.9995])
    beyond = (high - low) * float(rng.choice([0.0, 0.2, 1.0, 4.0]))
    if kind in ("counts", "skewed", "spend"):
        return Range(0.0, float(np.ceil(high + beyond)))
    return Range(float(low - beyond / 2.0), float(high + beyond / 2.0))


def _continuous(rng: Generator, noise: float, etas: Float) -> Callable[[Float, Float], Float]:
    return lambda u, eta: eta + noise * ndtri(u)


def _heavy(rng: Generator, noise: float, etas: Float) -> Callable[[Float, Float], Float]:
    df = float(rng.choice([2.5, 3.0, 5.0]))
    return lambda u, eta: eta + noise * stdtrit(df, u) / np.sqrt(df / (df - 2.0))


def _skewed(rng: Generator, noise: float, etas: Float) -> Callable[[Float, Float], Float]:
    size, sd = float(rng.uniform(0.3, 0.8)), float(np.clip(noise, 0.3, 1.5))
    return lambda u, eta: 100.0 * np.exp(size * eta + sd * ndtri(u))


def _counts(rng: Generator, noise: float, etas: Float) -> Callable[[Float, Float], Float]:
    level, size = float(rng.uniform(-1.0, 2.0)), float(rng.uniform(0.3, 0.8))

    def quantile(u: Float, eta: Float) -> Float:
        rate = np.exp(np.clip(level + size * eta, -6.0, 4.0))
        found = np.maximum(np.ceil(pdtrik(u, rate)), 0.0)
        # Of two whole numbers the inverse may name the larger one where it rounds.
        return np.where((found > 0) & (pdtr(np.maximum(found - 1, 0), rate) >= u), found - 1, found)

    return quantile


def _events(share: float, etas: Float, size: float) -> Callable[[Float], Float]:
    """Probabilities that are so large on average over the reference."""
    low, high = -25.0, 25.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if expit(middle + size * etas).mean() < share else (low, middle)
    level = (low + high) / 2.0
    return lambda eta: np.asarray(expit(level + size * eta))


def _binary(rng: Generator, noise: float, etas: Float) -> Callable[[Float, Float], Float]:
    chance = _events(float(rng.uniform(0.1, 0.9)), etas, float(rng.uniform(0.3, 2.5)))
    return lambda u, eta: (u > 1.0 - chance(eta)).astype(np.float64)


def _rare(rng: Generator, noise: float, etas: Float) -> Callable[[Float, Float], Float]:
    chance = _events(float(np.exp(rng.uniform(np.log(0.002), np.log(0.1)))), etas, float(rng.uniform(0.3, 1.5)))
    return lambda u, eta: (u > 1.0 - chance(eta)).astype(np.float64)


def _spend(rng: Generator, noise: float, etas: Float) -> Callable[[Float, Float], Float]:
    chance = _events(float(np.exp(rng.uniform(np.log(0.01), np.log(0.6)))), etas, float(rng.uniform(0.3, 1.0)))
    size, sd = float(rng.uniform(0.1, 0.5)), float(rng.uniform(0.5, 1.2))

    def quantile(u: Float, eta: Float) -> Float:
        p = chance(eta)
        inside = np.clip((u - (1.0 - p)) / p, 1e-9, 1.0 - 1e-9)
        return np.where(u > 1.0 - p, 50.0 * np.exp(size * eta + sd * ndtri(inside)), 0.0)

    return quantile


_MAKERS: dict[Kind, Callable[[Generator, float, Float], Callable[[Float, Float], Float]]] = {
    "continuous": _continuous,
    "heavy": _heavy,
    "skewed": _skewed,
    "counts": _counts,
    "binary": _binary,
    "rare": _rare,
    "spend": _spend,
    "capped": _skewed,
}
