"""Voters of a randomised mailing: as it was, or with an effect that is known because it was put there."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.observational import clipped, data_file
from discreet.datasets.study import Float, Study
from discreet.exceptions import InvalidInput

SOCIAL_PRESSURE_FILE = Path("social_pressure") / "social_pressure.csv.gz"
# From voting age to the oldest that one meets; past elections as indicators; people of voting age in a household.
VOTERS: dict[str, tuple[float, float] | list[float]] = {
    "age": (18.0, 100.0),
    "female": [0.0, 1.0],
    "primary_00": [0.0, 1.0],
    "general_00": [0.0, 1.0],
    "primary_02": [0.0, 1.0],
    "general_02": [0.0, 1.0],
    "primary_04": [0.0, 1.0],
    "hh_size": (1.0, 8.0),
}
_CONTROL = "No Postcard"
LETTERS = {"civic": "Civic Duty", "hawthorne": "Hawthorne", "self": "Self", "neighbors": "Neighbors"}
# Share of treated in the voting data that this stands in for: 59,264 of 148,160.
_TREATED = 0.4


def social_pressure(
    path: str | Path | None = None,
    *,
    seed: int = 0,
    treated: Literal["civic", "hawthorne", "self", "neighbors", "any"] | None = None,
) -> Study:
    """Social pressure experiment: 344,084 voters, letters before a primary, and turnout in it.

    Without ``treated`` it stands in for the voting data of "Differentially Private Estimation of Heterogeneous Causal
    Effects", which has eleven covariates, with that paper's effect, -general_00 * 0.5 / (1 + 50 / age): with that
    probability a voter would have voted without treatment, and would not with it. The letters had effects of their own,
    so that only the 191,243 who got none are used; 40 % of them, drawn by lot, count as treated. The truth is exact
    that way.

    With it the study is the trial itself, whose truth is not known: a letter, drawn by lot for one ninth of the
    households each, against none, for five ninths.

    Parameters
    ----------
    path : path, optional
        The data folder, or the file.
    seed : int
        Seed of a synthetic treatment and of whose outcome is changed by it.
    treated : {"civic", "hawthorne", "self", "neighbors", "any"}, optional
        Whose letter is the treatment; voters with another letter are left out.

    Examples
    --------
    >>> from discreet.datasets import social_pressure
    >>> trial = social_pressure("data", treated="neighbors")  # doctest: +SKIP
    """
    from pyarrow import ArrowException, array
    from pyarrow.compute import is_in
    from pyarrow.csv import ConvertOptions, read_csv

    if treated not in (None, "any", *LETTERS):
        raise InvalidInput(f"treated must be one of {', '.join(LETTERS)}, any, or left out: choose a letter.")
    letters = [] if treated is None else list(LETTERS.values()) if treated == "any" else [LETTERS[treated]]
    file = data_file(SOCIAL_PRESSURE_FILE, path)
    wanted = ["primary_06", *VOTERS]
    try:
        table = read_csv(file, convert_options=ConvertOptions(include_columns=["treatment", *wanted]))
        voters = table.filter(is_in(table["treatment"], value_set=array([_CONTROL, *letters])))
        column = {name: voters[name].to_numpy().astype(np.float64) for name in wanted}
        mailed = np.array([arm != _CONTROL for arm in voters["treatment"].to_pylist()], dtype=np.float64)
    except (ArrowException, KeyError, ValueError):
        # Arrow's own sentence may quote a value.
        listed = ", ".join(["treatment", *wanted])
        raise InvalidInput(f"{str(file)!r} must have the columns {listed}: check the file.") from None
    x = np.column_stack([clipped(column[name], ends) for name, ends in VOTERS.items()])
    if treated is None:
        return _spiked(x, column, seed)
    return Study(
        name=f"social pressure, {treated}",
        X=x,
        T=mailed,
        Y=column["primary_06"],
        bounds=Bounds(outcome=(0.0, 1.0), covariates=dict(VOTERS), propensity=(0.1, 0.9)),
        propensity=np.full(len(x), len(letters) / (len(letters) + 5)),
    )


def _spiked(x: Float, column: dict[str, Float], seed: int) -> Study:
    """Voters without a letter, and an effect that is put there."""
    rng = np.random.default_rng(seed)
    effects = -column["general_00"] * 0.5 / (1.0 + 50.0 / x[:, 0])
    t = (rng.random(len(x)) < _TREATED).astype(np.float64)
    changed = rng.random(len(x)) < np.abs(effects)
    return Study(
        name="social pressure",
        X=x,
        T=t,
        Y=np.where(changed, 1.0 - t, column["primary_06"]),
        bounds=Bounds(outcome=(0.0, 1.0), covariates=dict(VOTERS), propensity=(0.2, 0.8)),
        ate=float(effects.mean()),
        effects=effects,
        propensity=np.full(len(x), _TREATED),
    )
