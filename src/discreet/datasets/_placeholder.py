"""Made-up records of a study's shape, from its public bounds alone: to try programs on before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from discreet.data.bounds import Bounds, Range
from discreet.exceptions import InvalidInput

# Decimals that values are rounded to, relative to the width of their range.
_STEPS = 1_000
NO_FURTHER: Mapping[str, Any] = MappingProxyType({})


def dummy(
    bounds: Bounds,
    n: int = 100,
    *,
    outcome: str = "Y",
    treatment: str = "T",
    further: Mapping[str, Any] = NO_FURTHER,
    seed: int = 0,
) -> dict[str, Any]:
    """Columns by name, drawn uniformly from what the bounds allow: nothing in them comes from any record.

    Parameters
    ----------
    bounds : Bounds
        Public facts about the records.
    n : int
        How many rows to make up.
    outcome, treatment : str
        What their columns are called.
    further : mapping
        Further columns by their names, and what they are declared to hold.
    seed : int
        The same seed makes up the same rows.
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 100_000:
        raise InvalidInput("n must be a whole number from 1 to 100,000: it is the number of rows to make up.")
    rng = np.random.default_rng(seed)

    def values(spec: Any) -> list[Any]:
        if isinstance(spec, Range):
            steps = rng.integers(0, _STEPS, size=n, endpoint=True)
            return [float(value) for value in spec.low + steps / _STEPS * spec.width]
        return [spec.levels[place] for place in rng.integers(0, len(spec.levels), size=n)]

    columns = {outcome: values(bounds.outcome_column), treatment: values(bounds.arms)}
    columns |= {name: values(spec) for name, spec in bounds.declared.items()}
    return columns | {name: values(spec) for name, spec in further.items()}
