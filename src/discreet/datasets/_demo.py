"""The two studies of the demonstrations, as tables with names and levels: a clinic's records, and a trial's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.datasets.simulated import DESIGNS

DATA, TRIAL = "clinic.parquet", "trial.parquet"
OUTCOME, HOME, TREATMENT = "days", "home", "treated"
_SEX, _WARD = ["f", "m"], ["north", "east", "south", "west"]
PUBLIC = Bounds(
    outcome=(0, 40),
    covariates={"age": (18, 95), "severity": (0, 20), "sex": _SEX, "ward": _WARD},
    propensity=(0.03, 0.97),
)


def table(X: Float, t: Float, y: Float, outcome: str) -> Any:
    """A study's covariates, treatment and outcome under their names."""
    return pa.table(
        {
            "age": X[:, 0],
            "severity": X[:, 1],
            "sex": [_SEX[int(code)] for code in X[:, 2]],
            "ward": [_WARD[int(code)] for code in X[:, 3]],
            TREATMENT: t.astype(np.int8),
            outcome: y,
        }
    )


def effect_at(severity: Float) -> Float:
    """The clinic's true effect, which depends on severity alone."""
    x = np.zeros((len(severity), 4))
    x[:, 0], x[:, 1] = 58.0, severity
    return DESIGNS["clinic"].surface(x)[2]
