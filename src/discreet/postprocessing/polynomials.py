"""Curves along one range: polynomials orthonormal to its histogram, a step and a kink at its median, jumps at ranks.

Everything here is a function of public numbers and of one record at a time: elementwise, in a fixed order. Records pass
by in every round, so that curves are written where they are wanted, and nothing is searched for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float

# A marginal more skewed than this is unrolled to normal scores first: products of long tails are all noise.
_SKEWED = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Linear between equally distant knots, from the first to the last of them: to the bit what `np.interp` gives.

    That one searches for the knots, which takes several times as long as to work out where they are.
    """

    low: float
    high: float
    values: Float
    _knots: Float = field(init=False, repr=False)
    _following: Float = field(init=False, repr=False)
    _slopes: Float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        knots = np.linspace(self.low, self.high, len(self.values))
        set_ = object.__setattr__  # a frozen fact that works out its own parts
        set_(self, "_knots", knots)
        set_(self, "_following", np.append(knots[1:], np.inf))
        set_(self, "_slopes", np.append(np.diff(self.values) / np.diff(knots), 0.0))

    def __call__(self, x: Float) -> Float:
        found = x - self.low
        # Rounding must not find a knot that lies ahead; the one that is meant may then be the next.
        found *= (len(self._knots) - 1) / (self.high - self.low) * (1.0 - 1e-12)
        knot = found.astype(np.intp)
        knot += x >= self._following.take(knot, out=found, mode="clip")
        line = x - self._knots.take(knot, out=found, mode="clip")
        line *= self._slopes.take(knot, out=found, mode="clip")
        line += self.values.take(knot, out=found, mode="clip")
        return line


def normal_scores(marginal: Float) -> Line | None:
    """Normal scores of a skewed marginal, at the middle of the ranks of its bins; None where it is not skewed."""
    centres = (2.0 * np.arange(len(marginal)) + 1.0) / len(marginal) - 1.0
    apart = centres - marginal @ centres
    variance = float(marginal @ apart**2)
    if abs(float(marginal @ apart**3)) < _SKEWED * variance**1.5:
        return None
    middle = np.cumsum(marginal) - marginal / 2.0
    half = 1.0 / len(marginal)
    return Line(-1.0 + half, 1.0 - half, np.asarray(ndtri(np.clip(middle, 0.005, 0.995))))


def unroll(u: Float, scores: Line | None) -> Float:
    """Normal scores where a range has them: level at both ends, where a spike would otherwise be torn apart."""
    return u if scores is None else scores(np.clip(u, scores.low, scores.high))


def recurrence(marginal: Float, scores: Line | None, degree: int) -> Float:
    """Three-term recurrence of the polynomials orthonormal to a histogram on [-1, 1] (Stieltjes), a row a degree."""
    points, mass = _quadrature(marginal)
    points = unroll(points, scores)
    rows, back = [], 0.0
    before, now = np.zeros_like(points), np.ones_like(points)
    for _ in range(degree):
        shift = float(mass @ (points * now * now))
        after = (points - shift) * now - back * before
        # A marginal on a few points has few polynomials: a floor keeps the others finite, and the Gram sorts them out.
        scale = max(float(np.sqrt(mass @ after**2)), 1e-3)
        rows.append((shift, back, scale))
        before, now, back = now, after / scale, scale
    return np.array(rows)


def polynomials(u: Float, rows: Float, out: Float | None = None) -> list[Float]:
    """The polynomials of a recurrence, in the first rows of ``out`` if it is given."""
    curves = list(np.empty((len(rows), len(u))) if out is None else out[: len(rows)])
    before: Float | float = 0.0
    now: Float | float = 1.0
    for (shift, back, scale), after in zip(rows, curves, strict=True):
        np.subtract(u, shift, out=after)
        after *= now
        after -= back * before
        after /= scale
        before, now = now, after
    return curves


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Curves of the ranks, made orthonormal to the polynomials: bounded, where cubes would run away."""

    below: Line
    steps: bool
    thresholds: Float
    lean: tuple[Float, ...] = ()

    @classmethod
    def of(cls, marginal: Float, scores: Line | None, rows: Float, *, steps: bool, jumps: int) -> Ranks:
        """A step and a kink at the median if wanted, and so many jumps, beside the polynomials of a recurrence."""
        below = Line(-1.0, 1.0, np.concatenate([[0.0], np.cumsum(marginal)]))
        plain = cls(below, steps, np.asarray((np.arange(jumps) + 1.0) / (jumps + 1.0), dtype=np.float64))
        points, mass = _quadrature(marginal)
        curves = [np.ones_like(points), *polynomials(unroll(points, scores), rows)]
        lean = []
        for curve in plain._of(points, np.empty((plain.number, len(points)))):
            parts = np.array([mass @ (curve * other) for other in curves])
            rest = curve - sum(part * other for part, other in zip(parts, curves, strict=True))
            length = max(float(np.sqrt(mass @ rest**2)), 1e-2)
            curves.append(rest / length)
            lean.append(np.append(parts, length))
        return cls(below, steps, plain.thresholds, tuple(lean))

    @property
    def number(self) -> int:
        """How many curves there are."""
        return 2 * self.steps + len(self.thresholds)

    def __call__(self, x: Float, beside: list[Float], out: Float | None = None) -> list[Float]:
        """The curves beside the polynomials, in the first rows of ``out`` if it is given."""
        curves, term = list(beside), np.empty(len(x))
        plain = self._of(x, np.empty((self.number, len(x))) if out is None else out[: self.number])
        for rest, lean in zip(plain, self.lean, strict=True):
            rest -= lean[0]
            for part, other in zip(lean[1:-1], curves, strict=True):
                rest -= np.multiply(part, other, out=term)
            rest /= lean[-1]
            curves.append(rest)
        return curves[len(beside) :]

    def _of(self, x: Float, out: Float) -> Float:
        """From -1 to 1 over the middle half of the ranks, and its magnitude; jumps from -1 to 1 at equal distances."""
        rank = self.below(x)
        if self.steps:
            np.abs(middle(rank, out[0]), out=out[1])
        for at, jump in zip(self.thresholds, out[2 * self.steps :], strict=True):
            np.greater(rank, at, out=jump)
            jump *= 2.0
            jump -= 1.0
        return out


def middle(rank: Float, out: Float | None = None) -> Float:
    """From -1 to 1 over the middle half of the ranks."""
    step = np.multiply(4.0, rank, out=out)
    step -= 2.0
    np.maximum(step, -1.0, out=step)
    return np.minimum(step, 1.0, out=step)


def _quadrature(marginal: Float) -> tuple[Float, Float]:
    """Points of [-1, 1] and their masses, which integrate over a histogram."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = 1.0 / len(marginal)
    centres = -1.0 + half * (2.0 * np.arange(len(marginal)) + 1.0)
    return (centres[:, None] + half * nodes).ravel(), (marginal[:, None] * weights / 2.0).ravel()
