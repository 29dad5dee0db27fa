"""NHEFS and ACTG 175."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.published.wheels import Wheel, matrix
from discreet.datasets.study import Study
from discreet.exceptions import InvalidInput

_CAUSALLIB = Wheel("causallib", "0.10.0")
_LIFELINES = Wheel("lifelines", "0.30.3")

# Adults of the survey in 1971; codes are the survey's own. Weight in kg, cigarettes a day, years.
NHEFS_RANGES: dict[str, tuple[float, float] | list[float]] = {
    "age": (25.0, 75.0),
    "sex": [0.0, 1.0],
    "race": [0.0, 1.0],
    "education": [1.0, 2.0, 3.0, 4.0, 5.0],
    "smokeintensity": (0.0, 80.0),
    "smokeyrs": (0.0, 65.0),
    "exercise": [0.0, 1.0, 2.0],
    "active": [0.0, 1.0, 2.0],
    "wt71": (35.0, 170.0),
}
# Kilograms that an adult gains or loses in eleven years, hardly ever more.
NHEFS_OUTCOME = (-40.0, 40.0)

# The protocol admitted people from 12 years on with 200 to 500 CD4 cells per cubic millimetre; counts vary by a factor.
ACTG_RANGES: dict[str, tuple[float, float] | list[float]] = {
    "age": (12.0, 90.0),
    "wtkg": (30.0, 160.0),
    "karnof": (50.0, 100.0),
    "cd40": (0.0, 1_000.0),
    "gender": [0.0, 1.0],
    "race": [0.0, 1.0],
    "hemo": [0.0, 1.0],
    "homo": [0.0, 1.0],
    "drugs": [0.0, 1.0],
    "str2": [0.0, 1.0],
    "symptom": [0.0, 1.0],
}
ACTG_CELLS = (0.0, 1_000.0)
# Four treatments with one probability each, of which three are compared with the first.
_ACTG_TREATED = 0.75


def nhefs(path: str | Path | None = None) -> Study:
    """NHEFS: quitting smoking between 1971 and 1982, and weight gained; 1,566 smokers, observed and not randomised.

    The study of Hernán and Robins's textbook, from the National Health and Nutrition Examination Survey's
    epidemiologic follow-up. As there, 63 people without a weight in 1982 are left out. The truth is not known.

    Parameters
    ----------
    path : path, optional
        The folder with causallib's wheel, or the wheel.

    Examples
    --------
    >>> from discreet.datasets import nhefs
    >>> study = nhefs("wheels")  # doctest: +SKIP
    """
    columns = _CAUSALLIB.table("causallib/datasets/data/nhefs/NHEFS.csv", path, [*NHEFS_RANGES, "qsmk", "wt82_71"])
    weighed = ~np.isnan(np.asarray(columns["wt82_71"], dtype=np.float64))
    columns = {name: values[weighed] for name, values in columns.items()}
    return Study(
        name="nhefs",
        X=matrix(columns, NHEFS_RANGES),
        T=columns["qsmk"].astype(np.float64),
        Y=np.clip(columns["wt82_71"].astype(np.float64), *NHEFS_OUTCOME),
        bounds=Bounds(outcome=NHEFS_OUTCOME, covariates=dict(NHEFS_RANGES), propensity=(0.05, 0.95)),
        source="NHANES I Epidemiologic Follow-up Study, as in Hernán and Robins, 'Causal Inference: What If'; "
        "in causallib's wheel.",
    )


def actg175(path: str | Path | None = None, *, outcome: Literal["cd420", "event"] = "cd420") -> Study:
    """ACTG 175: 2,139 people with HIV, zidovudine alone against three other treatments by lot.

    Outcomes are CD4 cells per cubic millimetre after 20 weeks, or whether cells fell by half, AIDS began or somebody
    died during follow-up (the time to it is another question: `discreet.SurvivalEffect`). The truth is not known.

    Parameters
    ----------
    path : path, optional
        The folder with lifelines' wheel, or the wheel.
    outcome : {"cd420", "event"}
        Which outcome.

    Examples
    --------
    >>> from discreet.datasets import actg175
    >>> study = actg175("wheels", outcome="event")  # doctest: +SKIP
    """
    if outcome not in ("cd420", "event"):
        raise InvalidInput("outcome must be 'cd420' or 'event': choose one.")
    columns = _LIFELINES.table("lifelines/datasets/ACTG175.csv", path, [*ACTG_RANGES, "treat", "cd420", "cens"])
    cells = outcome == "cd420"
    y = np.asarray(columns["cd420" if cells else "cens"], dtype=np.float64)
    treated = np.asarray(columns["treat"], dtype=np.float64)
    return Study(
        name=f"actg 175, {outcome}",
        X=matrix(columns, ACTG_RANGES),
        T=treated,
        Y=np.clip(y, *ACTG_CELLS) if cells else y,
        bounds=Bounds(outcome=ACTG_CELLS if cells else [0, 1], covariates=dict(ACTG_RANGES), propensity=(0.1, 0.9)),
        propensity=np.full(len(treated), _ACTG_TREATED),
        source="AIDS Clinical Trials Group study 175 (Hammer and others, New England Journal of Medicine, 1996); "
        "in lifelines' wheel.",
    )
