"""The right heart catheter study of the PrivATE paper, with the domain of the supremum that its widths point to."""

from __future__ import annotations

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.datasets import Study, rhc
from discreet.papers.common.nuisances import train
from discreet.papers.private_ate.equations import influence, searched_sensitivity
from discreet.papers.private_ate.presets import preset
from evidence.reproduce.private_ate import runs
from evidence.reproduce.private_ate.runs import OURS
from evidence.reproduce.targets import Row

STANDARDISED, OWN_UNITS = "standardised", "own units"


def catheter(cell: str, replication: int) -> Row:
    """Cell "kernel": `private_ci_runs.catheter`, and the supremum over the unit cube for two scales of covariates."""
    row = runs.catheter(cell, replication)
    if cell == OURS:
        return row
    study = rhc()
    standardised = (study.X - study.X.mean(axis=0)) / study.X.std(axis=0)
    cubes = {STANDARDISED: standardised, OWN_UNITS: study.X}
    return row | {"cube": {name: over_unit_cube(study, x, replication) for name, x in cubes.items()}}


def over_unit_cube(study: Study, features: Float, replication: int) -> float:
    """Gross-error sensitivity (5) if the search stays in [0, 1] for every feature, wherever the records lie."""
    from sklearn.utils import check_random_state

    p, rng = features.shape[1], check_random_state(replication)
    cube = Bounds(outcome=study.bounds.outcome, covariates=[(0.0, 1.0)] * p, propensity=study.bounds.propensity)
    low, high = cube.outcome
    # Not clipped to the cube, as records would be: models see them as they are.
    rows = Chunk(y=2.0 * (study.Y - low) / (high - low) - 1.0, t=study.T, x=2.0 * features - 1.0, e=None)
    models = train(rows, cube, *preset("kernel"), known=None, clipped=False, rng=rng)
    tau = float(influence(study.Y, study.T, rows.x, models).mean())
    return searched_sensitivity(models, tau, cube, starts=10, rng=rng)
