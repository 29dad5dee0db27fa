"""Whom a released table of effects says to treat, and how much of the gain that it promises is luck.

Post-processing: everything here is computed from released and public numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot, pi, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet.data._arrays import Float

# Numerical: shares of segments add up to one but for rounding.
_ROUNDING = 1e-9
# Numerical: steps of the capacity for each segment, so that rounding shares up wastes a hundredth of it at most.
_STEPS = 100


class ExpectedGain(NamedTuple):
    """What a policy is expected to gain per person of all, by the release that chose it.

    Parameters
    ----------
    value
        By shrunken effects, which do not promise more for having been chosen.
    unshrunken
        By each segment's own effect, whose error does not depend on what the others suggest.
    luck
        The most that a choice could have gained from these errors alone, on average over them.
    sd
        Standard deviation of the largest sum of errors, privacy noise included.
    """

    value: float
    unshrunken: float
    luck: float
    sd: float

    def lower(self, alpha: float) -> float:
        """What the policy gains at least, with probability ``1 - alpha``, however it was chosen among all policies.

        For normal errors: docs/proofs/policy.md, lemma 3.
        """
        return min(self.unshrunken - self.luck + float(ndtri(alpha)) * self.sd, self.value)


def chosen_segments(effects: Float, shares: Float, cost: float, capacity: float) -> npt.NDArray[np.bool_]:
    """Whole segments that gain most together, among all sets that fit into the capacity; none that is below the cost.

    A larger cost never treats more people: the set that gains most at a cost per person has ever fewer of them.
    """
    nets = np.where(effects > cost, shares * (effects - cost), 0.0)
    worth = np.flatnonzero(nets > 0.0)
    chosen = np.zeros(len(effects), dtype=bool)
    if shares[worth].sum() <= capacity + _ROUNDING:
        chosen[worth] = True
        return chosen
    # What is best with so many steps of the capacity used, one segment after the other: the knapsack problem.
    steps = _STEPS * len(effects)
    # Rounded up, so that whatever fits in steps fits.
    sizes = np.ceil(shares / capacity * steps - _ROUNDING).astype(np.int64)
    best, taken = np.zeros(steps + 1), np.zeros((len(worth), steps + 1), dtype=bool)
    for row, k in zip(taken, worth, strict=True):
        size = int(sizes[k])
        if size <= steps:
            more = best[: steps + 1 - size] + nets[k]
            row[size:] = more > best[size:]
            best[size:] = np.where(row[size:], more, best[size:])
    left = steps
    for row, k in zip(taken[::-1], worth[::-1], strict=True):
        if row[left]:
            chosen[k] = True
            left -= int(sizes[k])
    return chosen


def luck_of_choosing(errors: Iterable[Float]) -> tuple[float, float]:
    """How far sums of some of the rows' errors can lie above zero: on average, and with which standard deviation.

    ``errors`` are blocks of rows, one for each person: their inner products with a standard normal vector are the
    errors of what each adds to the gain. Proof: docs/proofs/policy.md, lemma 3.
    """
    sizes, count, whole, squares = 0.0, 0, np.zeros(1), np.zeros((1, 1))
    for block in errors:
        sizes, count = sizes + float(np.sqrt(np.sum(block**2, axis=1)).sum()), count + len(block)
        whole, squares = whole + block.sum(axis=0), squares + block.T @ block
    largest = max(float(np.linalg.eigvalsh(squares)[-1]), 0.0)
    return sizes / sqrt(2.0 * pi), min((float(np.linalg.norm(whole)) + sqrt(count * largest)) / 2.0, sizes)


def segment_gain(
    chosen: npt.NDArray[np.bool_], shares: Float, nets: Float, own: tuple[Float, Float], counted: float
) -> ExpectedGain:
    """What some segments gain.

    Parameters
    ----------
    chosen, shares
        Which segments, and their shares of all people.
    nets
        Shrunken effects less the cost.
    own
        The same unshrunken, and the standard deviations of their errors, which are independent.
    counted
        Standard deviation of the gain by errors of the shares alone.
    """
    if not chosen.any():
        # Who treats nobody gains nothing, and is never wrong about it.
        return ExpectedGain(0.0, 0.0, 0.0, 0.0)
    net, sd = own
    # Of independent errors, those of all segments together have the largest standard deviation.
    luck, largest = float((shares * sd).sum()) / sqrt(2.0 * pi), float(np.linalg.norm(shares * sd))
    return ExpectedGain(
        value=float((shares * nets)[chosen].sum()),
        unshrunken=float((shares * net)[chosen].sum()),
        luck=luck,
        sd=hypot(largest, counted),
    )
