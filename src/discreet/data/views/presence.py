"""Whether a value is there: a column read a second time, for those who may miss its values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from discreet.data._arrays import Float, Values, as_numpy
from discreet.data.columns import Range, arrow

PRESENT = "observed"
"""The role, in `Chunk.more`, of whether an outcome is there."""


@dataclass(frozen=True, slots=True)
class Presence(Range):
    """Any column, read for whether it holds something: 1 where it does, 0 where it is NULL or NaN."""

    def encode(self, values: Values, name: str = "The column", out: Float | None = None) -> Float:
        """One for each value that is there, zero for each that is not."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
            absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=np.bool_)
        else:
            absent = as_numpy(pc.is_null(arrow(values, name), nan_is_null=True))
        there = 1.0 - absent.astype(np.float64)
        if out is None:
            return np.asarray(there)
        out[:] = there
        return out


WHETHER_PRESENT = Presence(0.0, 1.0)
