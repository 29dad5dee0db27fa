"""Real and semi-synthetic studies, read from files that are not part of this project.

Every loader takes the folder that holds the data, or the file itself; by default the folder that the environment
variable ``DISCREET_DATA`` names. Bounds are declared from what the columns mean, never from what the files hold.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import IO

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.study import Float, Study
from discreet.exceptions import InvalidInput

RHC_FILE = Path("rhc") / "rhc_xty.csv.gz"
NSW_FILE = Path("lalonde") / "nsw722.csv"

# What an intensive-care physician would call the possible range on the first day, not what these patients had.
RHC_RANGES = {
    "age": (18.0, 100.0),  # years
    "meanbp1": (20.0, 180.0),  # mean arterial pressure, mmHg
    "hrt1": (30.0, 220.0),  # heart rate, beats a minute
    "resp1": (4.0, 60.0),  # respiratory rate, breaths a minute
    "aps1": (0.0, 150.0),  # acute physiology part of APACHE III, without coma
    "scoma1": (0.0, 100.0),  # coma score of the SUPPORT study, a percentage scale
    "das2d3pc": (0.0, 58.2),  # Duke Activity Status Index, the scale's own ends
    "surv2md1": (0.0, 1.0),  # predicted probability of surviving two months
}
RHC_OUTCOMES = ("dth30", "death180", "death_any")

# Working age, years of school, indicators, and earnings in dollars of 1982, most of them below the median wage.
NSW_RANGES: dict[str, tuple[float, float] | list[float]] = {
    "age": (16.0, 65.0),
    "educ": (0.0, 18.0),
    "black": [0.0, 1.0],
    "hisp": [0.0, 1.0],
    "married": [0.0, 1.0],
    "nodegr": [0.0, 1.0],
    "re75": (0.0, 40_000.0),
}
NSW_OUTCOME = (0.0, 60_000.0)

_IHDP_CONTINUOUS, _IHDP_COLUMNS = 6, 25
# The continuous ones are standardised scores.
IHDP_RANGE = (-6.0, 6.0)
IHDP_OUTCOME = (-10.0, 40.0)


def rhc(path: str | Path | None = None, *, outcome: str = "death180") -> Study:
    """Right heart catheterisation: 5,735 patients of the SUPPORT study, eight confounders.

    Covariates are clipped to `RHC_RANGES`. Missing values were filled in by whoever made the file. The truth is not
    known.

    Parameters
    ----------
    path : path, optional
        The data folder, or the file.
    outcome : {"death180", "dth30", "death_any"}
        Death within 180 days, within 30 days, or at any time.

    Examples
    --------
    >>> from discreet.datasets import rhc
    >>> study = rhc("data", outcome="dth30")  # doctest: +SKIP
    """
    if outcome not in RHC_OUTCOMES:
        raise InvalidInput(f"outcome must be one of {', '.join(RHC_OUTCOMES)}: choose a column of the study.")
    column = _columns(data_file(RHC_FILE, path), ["T", f"Y_{outcome}", *RHC_RANGES])
    return Study(
        name="right heart catheter",
        X=np.column_stack([np.clip(column[name], *ends) for name, ends in RHC_RANGES.items()]),
        T=column["T"],
        Y=column[f"Y_{outcome}"],
        bounds=Bounds(outcome=(0, 1), covariates=dict(RHC_RANGES), propensity=(0.05, 0.95)),
    )


def nsw(path: str | Path | None = None, *, re74: bool = False, outcome: tuple[float, float] = NSW_OUTCOME) -> Study:
    """National Supported Work: Lalonde's 722 men of a randomised trial, earnings in 1978.

    Parameters
    ----------
    path : path, optional
        The data folder, or the file.
    re74 : bool, default False
        Whether earnings in 1974 are a covariate too. They were not observed for 277 of the men, and the file holds
        something in their place.
    outcome : (low, high)
        Public range of the outcome, in dollars.

    Examples
    --------
    >>> from discreet.datasets import nsw
    >>> study = nsw("data")  # doctest: +SKIP
    """
    ranges = NSW_RANGES | ({"re74": (0.0, 40_000.0)} if re74 else {})
    column = _columns(data_file(NSW_FILE, path), ["treat", "re78", *ranges])
    return Study(
        name="national supported work",
        X=np.column_stack([clipped(column[name], ends) for name, ends in ranges.items()]),
        T=column["treat"],
        Y=np.clip(column["re78"], *outcome),
        bounds=Bounds(outcome=outcome, covariates=dict(ranges), propensity=(0.2, 0.8)),
    )


def ihdp(realisation: int = 1, path: str | Path | None = None, *, outcome: tuple[float, float] = IHDP_OUTCOME) -> Study:
    """Infant Health and Development Programme: 747 real children, 25 covariates, simulated outcomes.

    The fourteenth covariate is coded 1 and 2 in the files, and 0 and 1 here. ``effects`` are the simulation's own,
    before outcomes are clipped, and ``ate`` is their mean: the files fix the effect on the treated at 4, not this one.

    Parameters
    ----------
    realisation : int
        Which of the simulated files.
    path : path, optional
        The data folder, or the file.
    outcome : (low, high)
        Public range of the outcome. Some realisations have far heavier tails than others, and lose them here.

    Examples
    --------
    >>> from discreet.datasets import ihdp
    >>> study = ihdp(1, "data")  # doctest: +SKIP
    """
    if isinstance(realisation, bool) or not isinstance(realisation, int) or realisation < 1:
        raise InvalidInput("realisation must be a positive integer: it is part of the file's name.")
    table = _numbers(data_file(ihdp_file(realisation), path), header=False)
    if table.ndim != 2 or table.shape[1] != 5 + _IHDP_COLUMNS:
        raise InvalidInput("An IHDP file has 30 columns: t, yf, ycf, mu0, mu1 and x1 to x25; check the file.")
    t, y, _, mu0, mu1 = table[:, :5].T
    x = table[:, 5:].copy()
    x[:, 13] -= 1.0
    x[:, :_IHDP_CONTINUOUS] = np.clip(x[:, :_IHDP_CONTINUOUS], *IHDP_RANGE)
    names = [f"x{j}" for j in range(1, _IHDP_COLUMNS + 1)]
    specs = [IHDP_RANGE] * _IHDP_CONTINUOUS + [[0.0, 1.0]] * (_IHDP_COLUMNS - _IHDP_CONTINUOUS)
    return Study(
        name=f"ihdp-{realisation}",
        X=x,
        T=t,
        Y=np.clip(y, *outcome),
        bounds=Bounds(outcome=outcome, covariates=dict(zip(names, specs, strict=True)), propensity=(0.05, 0.95)),
        ate=float(np.mean(mu1 - mu0)),
        effects=mu1 - mu0,
    )


def ihdp_file(realisation: int) -> Path:
    """Name of a realisation's file in the data folder."""
    return Path("ihdp") / f"ihdp_npci_{realisation}.csv.gz"


def data_folder(path: str | Path | None = None) -> Path:
    """Where data are: ``path``, or the folder that the environment names."""
    folder = os.environ.get("DISCREET_DATA") if path is None else path
    if folder is None:
        raise InvalidInput("path is missing: give the data folder, or name it in the environment as DISCREET_DATA.")
    return Path(folder)


def data_file(name: Path, path: str | Path | None = None) -> Path:
    """Where a data file is: below the folder ``path``, or the one that the environment names; or ``path`` itself."""
    folder = data_folder(path)
    file = folder / name if folder.is_dir() else folder
    if not file.is_file():
        raise InvalidInput(f"There is no file {str(file)!r}: check path or DISCREET_DATA.")
    return file


def _columns(path: Path, wanted: list[str]) -> dict[str, Float]:
    with _open(path) as file:
        header = [name.strip().strip('"') for name in file.readline().split(",")]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise InvalidInput(f"{str(path)!r} lacks the columns {', '.join(missing)}: check the file.")
    table = _numbers(path, header=True)
    return {name: table[:, header.index(name)].copy() for name in wanted}


def _numbers(path: Path, *, header: bool) -> Float:
    with _open(path) as file:
        try:
            return np.loadtxt(file, delimiter=",", skiprows=int(header), ndmin=2)
        except ValueError:
            # NumPy's own sentence quotes the value that it stumbled over.
            raise InvalidInput(f"{str(path)!r} must hold nothing but numbers below its header: check it.") from None


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt") if path.suffix == ".gz" else path.open()


def clipped(values: Float, ends: tuple[float, float] | list[float]) -> Float:
    """Values inside their range; levels as they are."""
    return np.clip(values, *ends) if isinstance(ends, tuple) else values
