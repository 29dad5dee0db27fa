"""Covariates of real people: rows of public data sets, declared as somebody who knows the subject would.

The files are no part of the project: `discreet.datasets` says where they are looked for. Of each only covariates are
used; treatment, outcome and truth are the random study's own. The population is the file's rows, no more and no less.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import rankdata

from discreet.data.bounds import Levels, Range
from discreet.datasets.marketing import criteo, hillstrom
from discreet.datasets.observational import RHC_FILE, RHC_RANGES, data_file, ihdp, nsw
from discreet.datasets.voters import social_pressure
from discreet.exceptions import InvalidInput
from evidence.population.covariates import Rows, Spec

Float = NDArray[np.float64]
# Data sets, and how many covariates each has. A study's number chooses one of those that have enough.
COLUMNS = {"rhc": 72, "hillstrom": 7, "nsw": 7, "ihdp": 25, "social pressure": 8, "criteo": 12}
_CRITEO_SAMPLE = Path("criteo") / "criteo-uplift-v2.1.first1000.csv"
# Every seventh voter: 49,155 of them.
_VOTERS_APART = 7
# The other measurements of the first day, in the units that intensive care reports; what is not here is yes or no.
_RHC_RANGES = RHC_RANGES | {
    "edu": (0.0, 30.0),
    "wtkilo1": (0.0, 250.0),
    "temp1": (27.0, 43.0),
    "pafi1": (0.0, 1_000.0),
    "paco21": (0.0, 160.0),
    "ph1": (6.5, 8.0),
    "wblc1": (0.0, 200.0),
    "hema1": (0.0, 70.0),
    "sod1": (100.0, 180.0),
    "pot1": (1.0, 12.0),
    "crea1": (0.0, 25.0),
    "bili1": (0.0, 60.0),
    "alb1": (0.0, 10.0),
}


def is_there(source: str) -> bool:
    """Whether a data set's file can be read on this machine."""
    try:
        table(source)
    except InvalidInput:
        return False
    return True


def real_rows(rng: Generator, source: str, p: int) -> Rows:
    """A population of ``p`` columns of a data set, chosen and ordered by lot; `InvalidInput` where it is absent."""
    specs, values = table(source)
    chosen = rng.permutation(COLUMNS[source])[:p]
    scores = np.column_stack([_score(rng, specs[j], values[:, j]) for j in chosen])
    return Rows(specs=tuple(specs[j] for j in chosen), values=values[:, chosen], scores=scores, dependence="real")


@cache
def table(source: str) -> tuple[tuple[Spec, ...], Float]:
    """All columns of a data set: what is declared, and the rows, clipped to it; levels are numbers."""
    if source == "rhc":
        return _rhc()
    if source == "hillstrom":
        return _hillstrom()
    if source == "criteo":
        study = criteo(data_file(_CRITEO_SAMPLE))
    elif source == "social pressure":
        study = social_pressure(treated="any")
    else:
        study = nsw() if source == "nsw" else ihdp(1)
    apart = _VOTERS_APART if source == "social pressure" else 1
    return study.bounds.columns, np.ascontiguousarray(study.X[::apart], dtype=np.float64)


def _rhc() -> tuple[tuple[Spec, ...], Float]:
    import pandas

    found = pandas.read_csv(data_file(RHC_FILE))
    names = [name for name in found.columns if name != "T" and not name.startswith("Y_")]
    specs = tuple(Range(*_RHC_RANGES[name]) if name in _RHC_RANGES else Levels((0, 1)) for name in names)
    values = [
        np.clip(found[name], spec.low, spec.high) if isinstance(spec, Range) else found[name]
        for name, spec in zip(names, specs, strict=True)
    ]
    return specs, np.column_stack(values).astype(np.float64)


def _hillstrom() -> tuple[tuple[Spec, ...], Float]:
    study = hillstrom(treated="any")
    specs: list[Spec] = []
    columns = []
    for name, spec in zip(study.bounds.names, study.bounds.columns, strict=True):
        column = study.X[name].to_numpy()
        if isinstance(spec, Range):
            specs.append(spec)
            columns.append(np.clip(column.astype(np.float64), spec.low, spec.high))
        else:
            specs.append(Levels(tuple(range(len(spec.levels)))))
            columns.append(spec.encode(column))
    return tuple(specs), np.column_stack(columns)


def _score(rng: Generator, spec: Spec, values: Float) -> Float:
    """From -1 to 1: by rank or by amount for a range, and drawn for each level."""
    if isinstance(spec, Levels):
        levels = np.array(spec.levels, dtype=np.float64)
        order = np.argsort(levels)
        effects = rng.permutation(np.linspace(-1.0, 1.0, len(levels)))
        return effects[order][np.searchsorted(levels[order], values)]
    by_rank = bool(rng.random() < 0.5)
    if by_rank:
        return np.asarray(2.0 * (rankdata(values) - 0.5) / len(values) - 1.0)
    low, high = np.quantile(values, [0.005, 0.995])
    if low == high:
        low, high = values.min(), max(values.max(), values.min() + 1.0)
    return np.clip(2.0 * (values - low) / (high - low) - 1.0, -1.0, 1.0)
