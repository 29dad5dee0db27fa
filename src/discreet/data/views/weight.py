"""Survey weights: how many people a record stands for, up to a common factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.data._arrays import Float, Values
from discreet.data.columns import Range, finite, numbers
from discreet.exceptions import InvalidInput

WEIGHT = "weight"
"""The role of weights in `Chunk.more`, as parts of the largest that is declared."""


@dataclass(frozen=True, slots=True)
class WeightRange(Range):
    """A column of weights from zero to a declared largest one, of which each becomes a part: from 0 to 1."""

    def encode(self, values: Values, name: str = "The column", out: Float | None = None) -> Float:
        """Parts of the largest weight; a weight outside its range is refused, as is a missing one."""
        found = numbers(values, name, out)
        # Written so that NaN is outside.
        if found.size and not (found.min() >= 0.0 and found.max() <= self.high):
            raise InvalidInput(
                f"{name} must hold a weight within the declared Bounds(weight=(0, most)) for every record: declare a "
                "larger one, trim weights before, or check them."
            )
        found /= self.high
        return np.asarray(found)


def weight_range(ends: tuple[object, object]) -> tuple[float, float]:
    """The declared range of weights, if it is one."""
    low, high = finite(ends[0], "the least weight"), finite(ends[1], "the largest weight")
    if low != 0.0 or not high > 0.0:
        raise InvalidInput("Weights range from 0 to the largest one: write (0, most), and do not compute it from data.")
    return low, high
