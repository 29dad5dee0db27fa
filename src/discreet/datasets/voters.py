"""Voters of a randomised mailing, with an effect that is known because it was put there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.bounds import Bounds
from discreet.datasets.real import clipped, data_file
from discreet.datasets.study import Study
from discreet.errors import InvalidInput

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
# Share of treated in the voting data that this stands in for: 59,264 of 148,160.
_TREATED = 0.4


def social_pressure(path: str | Path | None = None, *, seed: int = 0) -> Study:
    """Social pressure experiment: 191,243 voters, turnout in a primary, and a synthetic effect.

    Stands in for the voting data of "Differentially Private Estimation of Heterogeneous Causal Effects", which has
    eleven covariates, with that paper's effect, -general_00 * 0.5 / (1 + 50 / age): with that probability a voter would
    have voted without treatment, and would not with it. The mailing had effects of its own, so that only those who got
    none are used; 40 % of them, drawn by lot, count as treated. The truth is exact that way.

    Parameters
    ----------
    path : path, optional
        The data folder, or the file.
    seed : int
        Seed of treatment and of whose outcome is changed.
    """
    from pyarrow import ArrowException
    from pyarrow.compute import equal
    from pyarrow.csv import ConvertOptions, read_csv

    file = data_file(SOCIAL_PRESSURE_FILE, path)
    wanted = ["treatment", "primary_06", *VOTERS]
    try:
        table = read_csv(file, convert_options=ConvertOptions(include_columns=wanted))
        voters = table.filter(equal(table["treatment"], _CONTROL))
        column = {name: voters[name].to_numpy().astype(np.float64) for name in wanted[1:]}
    except (ArrowException, KeyError, ValueError):
        # Arrow's own sentence may quote a value.
        raise InvalidInput(f"{str(file)!r} must have the columns {', '.join(wanted)}: check the file.") from None
    x = np.column_stack([clipped(column[name], ends) for name, ends in VOTERS.items()])
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
