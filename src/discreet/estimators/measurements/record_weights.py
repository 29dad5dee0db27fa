"""How much single records count for, beside what an average's own weights say: docs/proofs/missing.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk


@dataclass(frozen=True, slots=True, eq=False)
class RecordWeights:
    """Weights whose mean is about one, by a public function of single records.

    Parameters
    ----------
    of
        The function.
    least, most
        Where weights count as their bound: below the first for the place where residuals are clipped alone, beyond the
        second for all that is asked.
    """

    of: Callable[[Chunk], Float]
    least: float
    most: float

    def __call__(self, chunk: Chunk) -> Float:
        """The weights of a chunk's records."""
        return np.asarray(np.clip(self.of(chunk), 0.0, self.most))

    def divided(self, units: Float, chunk: Chunk) -> Float:
        """Units in which residuals are clipped, so that weighted ones reach no further."""
        return np.asarray(units / np.maximum(self(chunk), self.least))
