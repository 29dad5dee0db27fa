"""Fieller's region for a quotient of two estimates, as Anderson and Rubin invert a test: docs/proofs/late.md."""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, cos, hypot, inf, pi, sin, tan
from typing import NamedTuple

from discreet.releases.average import Uncertainty

# Numerical: directions in which is looked for what is excluded, and halvings that find where it begins.
_DIRECTIONS, _HALVINGS = 360, 48


class Part(NamedTuple):
    """An estimate, and where its error comes from."""

    estimate: float
    uncertainty: Uncertainty


def combined(first: Part, second: Part, a: float, b: float) -> Part:
    """Of a times the first and b times the second: sampling errors may go together in any way, noise is independent.

    Standard deviations of what may depend on each other add up at most (Cauchy and Schwarz), and so do biases.
    """
    one, other, a_, b_ = first.uncertainty, second.uncertainty, abs(a), abs(b)
    return Part(
        a * first.estimate + b * second.estimate,
        Uncertainty(
            sampling=a_ * one.sampling + b_ * other.sampling,
            privacy=hypot(a_ * one.privacy, b_ * other.privacy),
            nuisance=a_ * one.nuisance + b_ * other.nuisance,
            clipping=a_ * one.clipping + b_ * other.clipping,
        ),
    )


def fieller(top: Part, bottom: Part, scale: float, alpha: float) -> tuple[tuple[float, float], ...]:
    """All quotients q for which the interval of ``top - q bottom`` at level ``1 - alpha`` contains zero.

    They are directions on a half circle, of which a single arc is reported: all but the longest run of directions that
    are excluded. It is one interval, two that reach to infinity, or everything.

    Parameters
    ----------
    top, bottom
        The two estimates.
    scale
        A quotient of usual size: directions are even around it.
    alpha
        One minus the level.
    """
    start = atan2(top.estimate, scale * bottom.estimate)
    start -= pi * round(start / pi)

    def excluded(angle: float) -> bool:
        off, uncertainty = combined(top, bottom, cos(angle), -scale * sin(angle))
        return abs(off) > uncertainty.interval(0.0, alpha)[1]

    # The quotient of the estimates is never excluded; turned by pi it is itself again.
    outside = [False, *(excluded(start + pi * k / _DIRECTIONS) for k in range(1, _DIRECTIONS)), False]
    first, last = _longest(outside)
    if first > last:
        return ((-inf, inf),)
    upper = _edge(excluded, start + pi * (first - 1) / _DIRECTIONS, start + pi * first / _DIRECTIONS)
    lower = _edge(excluded, start + pi * (last + 1) / _DIRECTIONS, start + pi * last / _DIRECTIONS) - pi
    if upper >= pi / 2.0:
        return (-inf, scale * tan(upper - pi)), (scale * tan(lower), inf)
    if lower <= -pi / 2.0:
        return (-inf, scale * tan(upper)), (scale * tan(lower + pi), inf)
    return ((scale * tan(lower), scale * tan(upper)),)


def _longest(outside: list[bool]) -> tuple[int, int]:
    """First and last place of the longest run; the first is beyond the last where there is none."""
    best, begun = (1, 0), None
    for place, is_outside in enumerate(outside):
        if is_outside and begun is None:
            begun = place
        if not is_outside and begun is not None:
            if place - 1 - begun > best[1] - best[0]:
                best = begun, place - 1
            begun = None
    return best


def _edge(excluded: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where exclusion begins, on the excluded side of it."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2.0
        inside, outside = (inside, middle) if excluded(middle) else (middle, outside)
    return outside
