"""A distribution from a noisy histogram, as far as a range of it needs: centre, scale, skewness and tails.

Post-processing: everything here is computed from released counts and public numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from discreet.data._arrays import Float
from discreet.postprocessing.ranges.grids import Frame
from discreet.postprocessing.ranges.histogram import Histogram

# Choice: curves x(z) of a normal z: skewed by exponentials (c), nearly symmetric ones also with heavier tails (h), and
# gamma distributions, by hand, so that the distributions that people meet are near one of them.
_SKEWS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
_TAILS = ((0.0, 0.1), (0.0, 0.25), (0.25, 0.1))
_GAMMAS = (0.5, 1.0, 2.0)
# Choice: what has to be gained in log likelihood by tails heavier than the normal, by strong skewness, and by tails
# lighter than its exponentials', where a mistake would lose values.
_TAIL_PENALTY, _SKEW_PENALTY, _LIGHT_PENALTY = 2.0, 2.0, 3.0
# Choice: what a distribution has to gain that has a few values below zero, and what is few.
_STRADDLES, _BELOW_ZERO = 4.0, 0.002
# Choice: how far out, among likely distributions: to lose values is worse than a range that is a little too wide.
_FAR = 0.6
# Numerical: log likelihood, by squares, beyond which a distribution plays no part.
_FAR_OFF = 120.0
_Z = np.linspace(-6.0, 6.0, 1_201)
# Offsets of the centre, in scales, and factors of the scale: what earlier rounds left open.
_OFFSETS = np.linspace(-2.0, 2.0, 33)
_FACTORS = 2.0 ** np.linspace(-4.0, 2.0, 25)
_LOG_OFFSETS, _LOG_SCALES = np.linspace(-1.6, 1.6, 33), np.geomspace(0.05, 3.2, 25)


class Curve(NamedTuple):
    """A shape: values at `_Z`, increasing, and what it has to gain."""

    values: Float
    penalty: float


@cache
def _curves() -> tuple[Curve, ...]:
    found = [Curve(1.25 * flat * (2.0 * ndtr(_Z / flat) - 1.0) + 1e-3 * _Z, _LIGHT_PENALTY) for flat in (1.0, 1.5)]
    for skew, tail in (*product(_SKEWS, (0.0,)), *_TAILS):
        body = np.expm1(skew * _Z) / skew if skew else _Z
        values = body * np.exp(tail * np.minimum(_Z**2, 16.0) / 2.0)
        found += _both_ways(values, _TAIL_PENALTY * (tail > 0) + _SKEW_PENALTY * skew, symmetric=skew == 0.0)
    for order in _GAMMAS:
        values = gammaincinv(order, ndtr(_Z))
        found += _both_ways((values - values[len(_Z) // 2]) / order**0.5 + 1e-3 * _Z, _LIGHT_PENALTY, symmetric=False)
    return tuple(found)


def _both_ways(values: Float, penalty: float, *, symmetric: bool) -> list[Curve]:
    """A shape, and its mirror image, which is less common."""
    return [Curve(values, penalty)] + ([] if symmetric else [Curve(-values[::-1], penalty + _SKEW_PENALTY)])


@dataclass(frozen=True, eq=False)
class Fitted:
    """All distributions that were tried on a histogram, and how likely each is."""

    frame: Frame
    mass: Float
    """likelihood of each, of shape (curves and the logarithm's own, offsets, factors)"""
    weight: Float
    """share of all records that each is of"""
    signal: float
    """by how much the best is more likely than noise alone, as a logarithm"""

    @property
    def share(self) -> float:
        """Share of all records that have no value of their own."""
        return float(np.sum(self.mass * self.weight))

    @property
    def median(self) -> float:
        """Where half of those records lie beyond."""
        return self._place(0.5 * self.share, True, 0.5)

    def quantile(self, part: float, upper: bool) -> float:
        """Where so large a part of all records lies beyond; as far out as most likely distributions have it."""
        return self._place(part, upper, _FAR if upper else 1.0 - _FAR)

    def _place(self, part: float, upper: bool, likely: float) -> float:
        tail = np.clip(part / np.maximum(self.weight, 1e-9), 1e-6, 0.5)
        z = ndtri(1.0 - tail) if upper else ndtri(tail)
        places = np.empty(self.mass.shape)
        for place, (curve, _) in enumerate(_curves()):
            value = np.interp(z[place], _Z, curve)
            places[place] = self.frame.centre + self.frame.scale * (_OFFSETS[:, None] + _FACTORS[None, :] * value)
        places[-1] = abs(self.frame.centre) * np.exp(_LOG_OFFSETS[:, None] + _LOG_SCALES[None, :] * z[-1])
        order = np.argsort(places, axis=None)
        below = np.cumsum(self.mass.ravel()[order])
        return float(places.ravel()[order[int(np.searchsorted(below, likely * below[-1]))]])


def fit(frame: Frame, seen: Histogram) -> Fitted:
    """Compare every shape, offset and scale with the counts of all cells but those of single values.

    How many records are no single value's is left open: for each distribution it is the least squares' own.
    """
    rest = seen.grid.rest
    fractions = seen.fractions[rest]
    edges = np.array(seen.grid.edges)
    zero = int(np.searchsorted(edges, 0.0))
    shape = (len(_curves()) + 1, len(_OFFSETS), len(_FACTORS))
    cells, weight, prior = np.empty((*shape, len(rest))), np.empty(shape), np.empty(shape)
    rough = np.empty(shape)
    for place, (below, penalty) in enumerate(_tried(frame, edges)):
        ends = np.concatenate([np.zeros((*shape[1:], 1)), below, np.ones((*shape[1:], 1))], axis=2)
        cells[place] = np.diff(ends, axis=2)[:, :, rest]
        product, square = cells[place] @ fractions, np.sum(cells[place] ** 2, axis=2)
        weight[place] = np.clip(product / np.maximum(square, 1e-12), 0.0, 1.0)
        rough[place] = weight[place] * (weight[place] * square - 2.0 * product) / (2.0 * seen.sd**2)
        prior[place] = penalty + _STRADDLES * ((below[:, :, zero] > _BELOW_ZERO) & (below[:, :, zero] < 0.5))
    # Squares say what is far off, in a tenth of the time.
    rough[np.isinf(prior)] = np.inf
    near = rough < rough.min() + _FAR_OFF
    expected = cells[near] * weight[near][:, None]
    loss = np.full(shape, np.inf)
    loss[near] = seen.surprise(fractions - expected, expected) + prior[near]
    mass = np.exp(loss.min() - loss)
    nothing = float(seen.surprise(fractions, np.zeros_like(fractions)))
    return Fitted(frame, mass / mass.sum(), weight, nothing - float(loss.min()))


def _tried(frame: Frame, edges: Float) -> Iterator[tuple[Float, float]]:
    """What each distribution has below each edge, of shape (offsets, factors, edges), and what it has to gain."""
    standard = ((edges - frame.centre) / frame.scale - _OFFSETS[:, None, None]) / _FACTORS[None, :, None]
    for curve, penalty in _curves():
        yield ndtr(np.interp(standard, curve, _Z, left=-9.0, right=9.0)), penalty
    # The logarithm is normal: two numbers for what takes a skewed curve three.
    logs = np.log(np.maximum(edges, 1e-300) / max(abs(frame.centre), 1e-300))
    logs = (logs - _LOG_OFFSETS[:, None, None]) / _LOG_SCALES[None, :, None]
    yield ndtr(logs) * (edges > 0.0), 0.0 if frame.centre > 0.0 else np.inf
