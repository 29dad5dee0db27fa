"""Covariates that may be missing: an indicator beside the value that a missing one counts as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from discreet.data._arrays import Codes, Level, Values, as_numpy
from discreet.data.columns import Levels, Range, arrow
from discreet.exceptions import InvalidInput


@dataclass(frozen=True, slots=True)
class Absent(Levels):
    """Whether the value of another covariate is missing: 1 where it is, and 0 elsewhere.

    It is no column of any table: `Bounds` puts one beside every covariate that declares ``missing="indicator"``.
    """

    levels: tuple[Level, ...] = (0, 1)
    text: bool = False
    """whether the other covariate holds text"""

    def codes(self, values: Values, name: str = "The column") -> Codes:
        """1 for what is missing."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
            return np.isnan(values).astype(np.int8)
        missing = pc.is_null(arrow(values, name), nan_is_null=True)
        return np.array(as_numpy(missing)).astype(np.int8)


def indicators(names: Sequence[str], specs: Sequence[Range | Levels]) -> tuple[tuple[str, int], ...]:
    """Names of indicators, and the places of the covariates that they belong to."""
    found = tuple((f"{names[k]} missing", k) for k, spec in enumerate(specs) if spec.missing is not None)
    for name, k in found:
        if name in names:
            raise InvalidInput(
                f"covariates: {name!r} is what the indicator of {names[k]!r} is called: call the other covariate "
                "something else."
            )
    return found


def indicator_of(spec: Range | Levels) -> Absent:
    """The indicator of a covariate."""
    return Absent(text=isinstance(spec, Levels) and spec.is_text)
