"""Studies behind the tables and figures of the PrivATE paper: one replication of one cell at a time."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from discreet.ate import ATE
from discreet.columns import Float
from discreet.datasets import Study, private_ci
from discreet.papers.private_ci import PrivATE
from discreet.papers.private_ci_formulas import (
    Exact,
    Parts,
    influence,
    publish,
    score_bound,
    searched_sensitivity,
)
from discreet.papers.private_ci_nuisances import Models, gather, train
from discreet.records import ArrayRecords
from discreet.reproduce.targets import Row
from discreet.testing import seeded_noise

STUDY_SEED, NOISE_SEED = 61_000_000, 93_000_000
EPSILON, DELTA = 0.5, 1e-5
ALPHAS = (0.2, 0.1, 0.05)
# "To retain as much of the prediction power as possible", Table 1; elsewhere half unless the text says otherwise.
ESTIMATE_SHARE = 0.9
LEARNERS = ("kernel", "nn")
OURS = "discreet"
N = 3_000
BUDGETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


def parts(epsilon: float, share: float = ESTIMATE_SHARE) -> Parts:
    """The two parts of a budget of (epsilon, 1e-5)."""
    return Parts(share * epsilon, share * DELTA, (1.0 - share) * epsilon, (1.0 - share) * DELTA)


def synthetic(cell: str, replication: int) -> Row:
    """Cell "1 kernel": Dataset 1 or 2, the paper's learners or `discreet.ATE`, n = 3,000, epsilon = 0.5."""
    which, method = cell.split()
    study = private_ci(int(which), N, STUDY_SEED + replication)
    return run_method(study, method, replication, (EPSILON,))


def budgets(cell: str, replication: int) -> Row:
    """Cell "3000 kernel": Dataset 1 with so many records, at every budget of Figures 4 and 5."""
    n, method = cell.split()
    study = private_ci(1, int(n), STUDY_SEED + replication)
    return run_method(study, method, replication, BUDGETS)


def run_method(
    study: Study,
    method: str,
    replication: int,
    epsilons: tuple[float, ...],
    *,
    share: float = ESTIMATE_SHARE,
    propensity: float | None = None,
) -> Row:
    """What one method makes of one study, at several budgets."""
    if method == OURS:
        return {"truth": study.ate} | _ours(study, replication, epsilons, propensity)
    model = PrivATE(
        epsilon=EPSILON,
        delta=DELTA,
        bounds=study.bounds,
        nuisance=method,
        propensity=propensity,
        random_state=replication,
    )
    exact = model.exact(study.Y, study.T, X=study.X)
    with seeded_noise(NOISE_SEED + replication):
        published = {f"{epsilon:g}": publish(exact, parts(epsilon, share)) for epsilon in epsilons}
    return {"truth": study.ate, "exact": [exact.n, exact.tau, exact.sigma2, exact.gamma], "published": published}


def exact_of(row: Row) -> Exact:
    """The exact statistics that a row holds."""
    n, tau, sigma2, gamma = row["exact"]
    return Exact(n=n, tau=tau, sigma2=sigma2, gamma=gamma)


def _ours(study: Study, replication: int, epsilons: tuple[float, ...], propensity: float | None) -> dict[str, Any]:
    intervals = {}
    with seeded_noise(NOISE_SEED + replication):
        for epsilon in epsilons:
            fitted = ATE(epsilon=epsilon, delta=DELTA, bounds=study.bounds, propensity=propensity)
            fitted.fit(study.Y, study.T, X=study.X)
            intervals[f"{epsilon:g}"] = [fitted.ate_interval(alpha=alpha) for alpha in ALPHAS]
    return {"intervals": intervals}


SUPREMUM_MODELS = ("kernel", "nn", "forest")
_GRID = 201


def supremum(cell: str, replication: int) -> Row:
    """Cell "forest": the searched supremum on Dataset 1, the best of a dense grid, and the closed form."""
    from sklearn.utils import check_random_state

    study = private_ci(1, N, STUDY_SEED + replication)
    rows, bounds = gather(ArrayRecords.of(study.Y, study.T, study.X, bounds=study.bounds)), study.bounds
    rng = check_random_state(replication)
    models = train(rows, bounds, *_models(cell), known=None, clipped=False, rng=rng)
    tau = float(influence(study.Y, study.T, rows.x, models).mean())
    searched = searched_sensitivity(models, tau, bounds, starts=10, rng=rng)
    return {"searched": searched, "grid": _on_grid(models, tau), "closed": score_bound(bounds) + abs(tau)}


def _models(name: str) -> tuple[Any, Any]:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    from discreet.papers.private_ci_nuisances import preset

    if name == "forest":
        return RandomForestRegressor(n_estimators=50), RandomForestClassifier(n_estimators=50)
    return preset(name)


def _on_grid(models: Models, tau: float) -> float:
    """Largest |score - tau| on a grid over two covariates; the score is linear in the outcome, so its ends suffice."""
    bounds, points = models.bounds, _grid()
    pi, prognosis = models(points)
    ends = [(y - prognosis) / p - tau for y in bounds.outcome for p in (pi, pi - 1.0)]
    return float(np.abs(ends).max())


@cache
def _grid() -> Float:
    line = np.linspace(-1.0, 1.0, _GRID)
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
