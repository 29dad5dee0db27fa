"""A study with its truth: what a generator returns and an evaluation compares with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.data.bounds import Bounds

Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Records of one study, the public bounds declared for it and, where it is known, the truth.

    Parameters
    ----------
    name : str
        Which design or data set.
    X : array of shape (n, p) or a frame
        Covariates, already clipped to ``bounds``.
    T, Y : arrays of shape (n,)
        Treatment (0 or 1) and outcome, already clipped to ``bounds``.
    bounds : Bounds
        Public facts, declared from the design and not from the draw.
    ate : float or None
        Average effect in the population that the design describes, of the clipped outcome.
    effects, propensity : arrays of shape (n,) or None
        Each record's expected effect and its probability of treatment.
    Z : array of shape (n,) or None
        An instrument (0 or 1), where the study has one.
    source : str
        A sentence on where the records are from.

    Examples
    --------
    >>> from discreet.datasets import adum
    >>> study = adum(n=100, seed=1)
    >>> study.name, study.n, study.bounds.propensity
    ('adum', 100, (0.4, 0.6))
    """

    name: str
    X: Any
    T: Float
    Y: Float
    bounds: Bounds
    ate: float | None = None
    effects: Float | None = None
    propensity: Float | None = None
    Z: Float | None = None
    source: str = ""

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.Y.shape[0])
