"""Setups A to E of "Differentially Private Estimation of Heterogeneous Causal Effects" (Niu and others), its Table 1.

As in the authors' code, which made their published numbers and is not what their text says in two setups. Setup D: the
code's outcome under control has max(x1 + x2, 0) where the text has max(x1 + x2 + x3, 0), which is
``draw("setup-d", ...)``. Setup E: the code has three normal and three binary covariates, another baseline with an error
that grows with x1, the propensity expit(x1 + x6) trimmed at 0.1, and the effect below.
"""

from __future__ import annotations

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.study import Float, Study
from discreet.datasets.synthetic import DESIGNS, Design, Rng
from discreet.exceptions import InvalidInput

# The covariance of setup E: products of the first six rows of a 12 by 12 matrix of uniform numbers, seed 1.
_ROWS = np.random.RandomState(1).uniform(-1.0, 1.0, (12, 12))[:6]
_BASELINE = np.linspace(0.0, 3.0, 6)
_EFFECT = np.array([0.0, 1.0, -1.0, 1.0, 1.0, 1.0])
_E_LIMIT = 6.0
_E_BOUNDS = Bounds(
    outcome=(-25.0, 35.0),
    covariates=[(-_E_LIMIT, _E_LIMIT)] * 3 + [[0.0, 1.0]] * 3,
    propensity=(0.1, 0.9),
)


def _d_as_coded(x: Float) -> tuple[Float, Float, Float]:
    propensity, _, effect = DESIGNS["setup-d"].surface(x)
    control = np.maximum(x[:, 0] + x[:, 1], 0.0) + np.maximum(x[:, 3] + x[:, 4], 0.0)
    return propensity, control, effect


_SETUPS = {name: DESIGNS[f"setup-{name.lower()}"] for name in "ABC"} | {
    "D": Design(
        name="setup-d-as-coded",
        bounds=DESIGNS["setup-d"].bounds,
        covariates=DESIGNS["setup-d"].covariates,
        surface=_d_as_coded,
    )
}
SETUPS = (*_SETUPS, "E")


def meta_learners(setup: str, n: int, seed: int) -> Study:
    """A study from setup "A", "B", "C", "D" or "E", as the authors' code draws it; ``effects`` are the truth.

    Normal covariates are clipped to public bounds (three standard deviations) before treatment and outcome are drawn.

    Parameters
    ----------
    setup : {"A", "B", "C", "D", "E"}
        Which row of the paper's Table 1.
    n : int
        Number of records.
    seed : int
        Seed of the draw.
    """
    if setup not in SETUPS:
        raise InvalidInput(f"setup must be one of {', '.join(SETUPS)}: choose a row of Table 1.")
    return _setup_e(n, seed) if setup == "E" else _SETUPS[setup].draw(n, seed)


def _setup_e(n: int, seed: int) -> Study:
    rng: Rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, _ROWS.shape[1])) @ _ROWS.T
    x = np.column_stack([np.clip(latent[:, :3], -_E_LIMIT, _E_LIMIT), (latent[:, 3:] > 1.0) * 1.0])
    propensity = np.clip(1.0 / (1.0 + np.exp(-x[:, 0] - x[:, 5])), 0.1, 0.9)
    t = (rng.random(n) < propensity).astype(np.float64)
    effects = x @ _EFFECT + 5.0 / (1.0 + np.exp(-x[:, 0]))
    control = x @ _BASELINE + x[:, 0] * x[:, 5] + np.where(np.abs(x[:, 2]) < 0.5, 0.8, 0.2)
    noise = (x[:, 0] + 1.0) * rng.standard_normal(n) + rng.standard_normal(n)
    y = np.clip(control + t * effects + noise, *_E_BOUNDS.outcome)
    return Study(name="setup-e", X=x, T=t, Y=y, bounds=_E_BOUNDS, effects=effects, propensity=propensity)
