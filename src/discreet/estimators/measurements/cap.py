"""Where large outcomes are capped: at a declared number, or at one that a noisy histogram suggests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from numbers import Real
from typing import Literal, TypeAlias

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.estimators._allocation import CAP
from discreet.exceptions import InvalidInput
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Cells
from discreet.releases.average import Release

Cap: TypeAlias = float | Literal["auto"] | None
# Numerical: a cap is at least this part of the range above its lower end: nearer to it, encoded outcomes lose digits.
_LEAST = 1e-6
# Unit: caps are 1, 5 or 2 times a power of ten of the range above its lower end, down to there: numbers that are easy
# to read.
_DECADE, _POWERS = (1.0, 0.5, 0.2), 10.0 ** -np.arange(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapRule:
    """Which of a few public caps is taken: the lowest one that few outcomes exceed, as far as noise lets it be seen.

    Parameters
    ----------
    beyond
        Part of the outcomes above the lower end that may exceed a cap, and a standard deviation of the noise in their
        number besides.
    hidden
        Where that comes to more than this part of them, noise could hide too many: no lower cap is tried.
    """

    beyond: float
    hidden: float
    provenance: str

    def grid(self, bounds: Bounds) -> Float:
        """The caps to choose from, ascending; the last is the upper end of the range."""
        low, high = bounds.outcome
        parts = np.outer(_POWERS, _DECADE).ravel()
        return np.append(low + parts[:0:-1] * (high - low), high)

    def choose(self, counts: Float, sd: float, n: float) -> int:
        """Number of the cap, by noisy counts: at the lower end, up to the first cap, up to the second, ...

        From the highest cap down, until one is exceeded by too many.
        """
        above, chosen = n - float(counts[0]), len(counts) - 2
        for number in range(chosen - 1, -1, -1):
            exceeding = counts[number + 2 :]
            allowance = sd * sqrt(len(exceeding))
            if allowance > self.hidden * above or float(exceeding.sum()) > self.beyond * above + allowance:
                break
            chosen = number
        return chosen


# Choice: both are parts of the outcomes above the lower end. Chosen as the provenance says.
RULE = CapRule(
    beyond=0.01,
    hidden=0.1,
    provenance="Chosen by hand: a cap that touches about one outcome in a hundred. With two standard deviations of the "
    "noise, intervals of DifferenceInMeans were 3 % wider on 162 studies of evidence/population from 740,000 on.",
)


def check_cap(cap: object, bounds: Bounds) -> None:
    """Refuse a cap that is no number above the lower end of the outcome's range and up to its upper end."""
    if bounds.binary:
        raise InvalidInput("cap belongs to an outcome with a range, and this one is declared binary: leave cap out.")
    if isinstance(cap, str) and cap == "auto":
        return
    if isinstance(cap, bool) or not isinstance(cap, Real) or not isfinite(float(cap)):
        raise InvalidInput(
            'cap must be a number in the outcome\'s unit, or "auto" to have one chosen: give one of them.'
        )
    low, high = bounds.outcome
    if not low < float(cap) <= high:
        raise InvalidInput(
            f"cap must lie above {low:g} and be at most {high:g}, the declared range of the outcome: choose one "
            "inside, or declare another range."
        )
    if (float(cap) - low) / (high - low) < _LEAST:
        raise InvalidInput(
            "cap is less than a millionth of the outcome's range above its lower end: declare a narrower range."
        )


def measure_capped(gate: Gate, cap: float | Literal["auto"], measure: Callable[[Gate], Release]) -> Release:
    """Rounds on capped outcomes. The release names the declared range, the cap, and what it means for the effect."""
    at = _measure_cap(gate) if isinstance(cap, str) else float(cap)
    release = measure(gate.capped(at))
    note = f"Outcomes above {at:g} count as {at:g}: the effect is that on the capped outcome."
    note += " The cap was chosen by a noisy histogram of the outcomes." if isinstance(cap, str) else ""
    return replace(release, bounds=gate.bounds, cap=at, notes=(note, *release.notes))


def _measure_cap(gate: Gate) -> float:
    """The cap that a histogram of the outcome suggests."""
    grid = RULE.grid(gate.bounds)
    edges = np.append(-1.0, gate.bounds.outcome_range.encode(grid.copy()))

    def rows(c: Chunk) -> IntArray:
        return np.searchsorted(edges, c.y, side="left")

    (counts,) = gate.ask(Query("cap", CAP, Cells((len(edges),)), rows))
    return float(grid[RULE.choose(counts.value, float(counts.sd), gate.n)])
