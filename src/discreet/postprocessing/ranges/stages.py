"""What is asked of a column next, given what was released of it; and, in the end, its range.

Post-processing: everything here is computed from released counts and public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10, sqrt
from typing import Any

import numpy as np

from discreet.postprocessing.ranges.grids import LARGEST, CellGrid, Frame, evenly
from discreet.postprocessing.ranges.histogram import ALARM, ALARM_TAIL, Histogram
from discreet.postprocessing.ranges.shapes import Fitted, fit

# Choice: cells that a round looks more closely with; few, as the noise of each adds up below a quantile.
_CELLS = 24
# Choice: part of what is seen that lies in one cell for the next round to look inside it.
_IN_ONE = 0.6
# Part of a distribution beyond one standard deviation on one side, were it normal; and how much narrower than its cells
# say a fitted shape may be.
_THIRD, _NARROWER = 0.16, 8.0
# What a range may leave out on either side, and where its middle part ends, which it is to be at most twice as wide as.
OUTSIDE, MIDDLE, TIMES = 0.0025, 0.01, 2.0
# Choice: an end that close to zero, in widths, is zero where hardly anything lies beyond.
_NEAR_ZERO = 0.04
# Choice: log likelihood by which a shape has to beat none at all: thousands are tried.
_SIGNAL = 12.0
# Choice: times that a range is widened at most.
_MOST_WIDENED = 1.6
# Ends are numbers that people write: steps of one, two or five, of which a range has at least so many.
_LEAST_STEPS = 40


def closer(seen: Histogram, whole: bool) -> CellGrid | None:
    """Even cells inside those that stand out of the public grid; None where none does."""
    clear = seen.clear
    if not clear.size:
        return None
    low, high = seen.grid.ends
    each = max(_CELLS // clear.size, 2)
    return CellGrid.of(np.concatenate([evenly(low[cell], high[cell], each) for cell in clear]), whole)


def inside(seen: Histogram) -> CellGrid | None:
    """Even cells inside a single one that has most of what is seen; None where there is none."""
    rest = seen.grid.rest[1:-1]
    best = int(rest[np.argmax(seen.fractions[rest])])
    total = float(np.sum(seen.fractions[seen.grid.rest]))
    if seen.fractions[best] < max(_IN_ONE * total, seen.level(ALARM)):
        return None
    low, high = (float(ends[best]) for ends in seen.grid.ends)
    return CellGrid.of(evenly(low - (high - low) / 2.0, high + (high - low) / 2.0, _CELLS), seen.grid.whole)


def frame(seen: Histogram) -> Frame:
    """Where the next cells are made around: median and scale of the distribution that fits best."""
    rough = _middle(seen)
    fitted = fit(rough, seen)
    if fitted.signal < _SIGNAL:
        return rough
    low, high = (fitted.quantile(_THIRD * fitted.share, upper=upper) for upper in (False, True))
    return Frame(fitted.median, max((high - low) / 2.0, rough.scale / _NARROWER))


def _middle(seen: Histogram) -> Frame:
    """Median of what has no value of its own, and half the width of its middle two thirds, as far as cells say."""
    rest = seen.grid.rest[1:-1]
    low, high = (ends[rest] for ends in seen.grid.ends)
    # Noise of cells that hold little would add up.
    below = np.cumsum(np.maximum(seen.fractions[rest] - seen.sd, 0.0))
    if below[-1] <= 0.0:
        return Frame(float(low[0] + high[-1]) / 2.0, float(high[-1] - low[0]) / 2.0)
    found = []
    for part in (_THIRD, 0.5, 1.0 - _THIRD):
        cell = int(np.searchsorted(below, part * below[-1]))
        before = below[cell - 1] if cell else 0.0
        within = (part * below[-1] - before) / max(below[cell] - before, 1e-12)
        found.append(float(low[cell] + min(max(within, 0.0), 1.0) * (high[cell] - low[cell])))
    narrowest = float(np.min(high - low))
    return Frame(found[1], max((found[2] - found[0]) / 2.0, narrowest / 4.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRange:
    """What released counts say about a column of numbers.

    Parameters
    ----------
    low, high
        The range; None where noise hides where the numbers are.
    centre
        Where the middle of them is.
    missing
        Share that is missing; zero where noise hides it.
    atoms
        Shares of zeros and of ones, where they stand out.
    """

    low: float | None
    high: float | None
    centre: float | None
    missing: float
    atoms: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Closest:
    """The last histogram of a column, and the frame that its cells were made around."""

    frame: Frame
    seen: Histogram


def found_range(first: Histogram, last: Closest | None) -> FoundRange:
    """The range of a column: from the public grid alone where all that is seen are zeros and ones."""
    shown = first if last is None else last.seen
    atoms = shown.atoms
    facts: dict[str, Any] = {"missing": shown.missing, "atoms": tuple(atoms.items())}
    if last is not None:
        fitted = fit(last.frame, last.seen)
        if fitted.signal > _SIGNAL:
            low, high = _ends(fitted, first, last.seen)
            return FoundRange(low=low, high=high, centre=fitted.median, **facts)
    # Zeros alone say nothing of what else there is, which noise may hide.
    if len(atoms) == 2 and 1.0 - shown.missing - sum(atoms.values()) < 2.0 * shown.level(ALARM):
        return FoundRange(low=0.0, high=1.0, centre=atoms.get(1.0, 0.0) / sum(atoms.values()), **facts)
    return FoundRange(low=None, high=None, centre=None, **facts)


def _ends(fitted: Fitted, first: Histogram, last: Histogram) -> tuple[float, float]:
    """Half way between the narrowest range that loses little and the widest that is close enough."""
    atoms, centre = last.atoms, fitted.median
    low, high = fitted.quantile(OUTSIDE, upper=False), fitted.quantile(OUTSIDE, upper=True)
    inner_low, inner_high = fitted.quantile(MIDDLE, upper=False), fitted.quantile(MIDDLE, upper=True)
    from_zero = (centre > 0.0 and low >= -_NEAR_ZERO * (high - low)) or (0.0 in atoms and inner_low >= 0.0)
    if from_zero:
        # Nothing lies beyond zero, so that the other side may leave out as much as both.
        high = fitted.quantile(2.0 * OUTSIDE, upper=True)
    narrow = max([high, *atoms]) - min([low, *atoms])
    widest = TIMES * (max([inner_high, *atoms]) - min([inner_low, *atoms]))
    factor = min(max(sqrt(widest / max(narrow, 1e-300)), 1.0), _MOST_WIDENED)
    low, high = centre - factor * (centre - low), centre + factor * (high - centre)
    # Close to zero, the way to it costs next to nothing.
    low = 0.0 if from_zero and low <= _NEAR_ZERO * (high - low) else low
    ends = rounded(*_with_outliers(min([low, *atoms]), max([high, *atoms]), first, last))
    return (floor(ends[0]), ceil(ends[1])) if last.grid.whole else ends


def _with_outliers(low: float, high: float, first: Histogram, last: Histogram) -> tuple[float, float]:
    """The range, wider where counts beyond it stand out: a shape knows nothing of a second group of values."""
    lower, upper = last.grid.ends
    rest = last.grid.rest
    apart = rest[last.fractions[rest] > last.level(ALARM_TAIL)]
    below, above = apart[upper[apart] <= low], apart[lower[apart] >= high]
    if below.size:
        low = float(lower[below[0]])
    if above.size:
        high = float(upper[above[-1]])
    if low <= -LARGEST or high >= LARGEST:
        # Beyond the last edge: the public grid says how far.
        lower, upper = (ends[first.clear] for ends in first.grid.ends)
        low = max(low, float(lower.min(initial=0.0))) if low <= -LARGEST else low
        high = min(high, float(upper.max(initial=0.0))) if high >= LARGEST else high
    return low, high


def rounded(low: float, high: float) -> tuple[float, float]:
    """Ends that people write, outward."""
    width = high - low
    power = 10.0 ** floor(log10(width / _LEAST_STEPS))
    step = max(each for each in (power, 2.0 * power, 5.0 * power) if each <= width / _LEAST_STEPS * 1.000001)
    # So many digits as steps have, and no more.
    digits = max(-floor(log10(step)), 0)
    return round(floor(low / step) * step, digits), round(ceil(high / step) * step, digits)
