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
    """Segments to treat: the largest effects first, as long as they exceed the cost.

    A segment that would exceed the capacity is left out, and smaller ones that still fit are taken. So no dearer
    treatment is given to more segments.
    """
    chosen, left = np.zeros(len(effects), dtype=bool), capacity + _ROUNDING
    for k in np.argsort(-effects, kind="stable"):
        if effects[k] > cost and shares[k] <= left:
            chosen[k] = True
            left -= shares[k]
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
