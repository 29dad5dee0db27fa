"""Studies behind the tables and figures of the PrivATE paper: one replication of one cell at a time."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.datasets import Study, private_ci, private_ci_rct, rhc
from discreet.estimators.ate import ATE
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import gather
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.common.nuisances import Models, train
from discreet.papers.private_ate import baselines
from discreet.papers.private_ate.equations import Exact, Parts, influence, publish, score_bound, searched_sensitivity
from discreet.papers.private_ate.estimator import PrivATE
from discreet.privacy.budget import Budget
from discreet.testing import seeded_noise
from evidence.reproduce.private_ate.noise_runs import noise_seed
from evidence.reproduce.targets import FLAGSHIP_CELL, Row

STUDY_SEED, NOISE_SEED = 61_000_000, 93_000_000
EPSILON, DELTA = 0.5, 1e-5
ALPHAS = (0.2, 0.1, 0.05)
# "To retain as much of the prediction power as possible", Table 1; half "if not specified otherwise".
ESTIMATE_SHARE, DEFAULT_SHARE = 0.9, 0.5
LEARNERS = ("kernel", "nn")
OURS, DIFFERENCE = FLAGSHIP_CELL, "difference"
N, TRIAL_N = 3_000, 1_000
BUDGETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
CATHETER_BUDGETS = (0.1, 0.25, 0.5)


def parts(epsilon: float, share: float) -> Parts:
    """The two parts of a budget of (epsilon, 1e-5)."""
    return Parts(share * epsilon, share * DELTA, (1.0 - share) * epsilon, (1.0 - share) * DELTA)


def synthetic(cell: str, replication: int) -> Row:
    """Cell "1 kernel": Dataset 1 or 2, the paper's learners or `discreet.ATE`, n = 3,000, epsilon = 0.5."""
    which, method = cell.split()
    study = private_ci(int(which), N, STUDY_SEED + replication)
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        return run_method(study, method, replication, (EPSILON,), share=ESTIMATE_SHARE)


def budgets(cell: str, replication: int) -> Row:
    """Cell "3000 kernel": Dataset 1 with so many records, at every budget of Figure 4."""
    n, method = cell.split()
    study = private_ci(1, int(n), STUDY_SEED + replication)
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        return run_method(study, method, replication, BUDGETS)


def utilities(cell: str, replication: int) -> Row:
    """Cell "kernel": Dataset 1 at every budget, with bootstrap intervals on the private estimate as well."""
    study = private_ci(1, N, STUDY_SEED + replication)
    if cell == OURS:
        with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
            return run_method(study, cell, replication, BUDGETS)
    exact = exact_statistics(_published_model(study, cell, replication, None), study)
    assert exact.scores is not None
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        bootstraps = {}
        for epsilon in BUDGETS:
            given = Budget(epsilon=epsilon, delta=DELTA)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnprovedClaim)
                bootstraps[f"{epsilon:g}"], _ = baselines.private_bootstrap(
                    exact.scores, ALPHAS[-1], gamma=exact.gamma, budget=given, random_state=replication
                )
        return _published_row(study, exact, BUDGETS, DEFAULT_SHARE) | {"bootstrap": bootstraps}


def trial(cell: str, replication: int) -> Row:
    """Cell "nn": the randomised trial with 1,000 records; "difference" is the private difference of means."""
    study = private_ci_rct(TRIAL_N, STUDY_SEED + replication)
    with seeded_noise(noise_seed(NOISE_SEED, f"trial {cell}", replication)):
        if cell == DIFFERENCE:
            rival = baselines.SubsampledDifference(
                epsilon=EPSILON, delta=DELTA, bounds=study.bounds, random_state=replication
            ).fit(study.Y, study.T, X=study.X)
            return {"truth": study.ate, "intervals": {f"{EPSILON:g}": [rival.ate_interval(alpha=a) for a in ALPHAS]}}
        return run_method(study, cell, replication, (EPSILON,), propensity=0.5)


def catheter(cell: str, replication: int) -> Row:
    """Cell "kernel": the right heart catheter study, which has no known truth; replications draw starts and noise."""
    study = rhc()
    with seeded_noise(noise_seed(NOISE_SEED, f"rhc {cell}", replication)):
        if cell == OURS:
            return run_method(study, cell, replication, CATHETER_BUDGETS)
        exact = exact_statistics(_published_model(study, cell, replication, None), study)
        assert exact.scores is not None
        row = _published_row(study, exact, CATHETER_BUDGETS, DEFAULT_SHARE)
    filled = exact_statistics(_published_model(_observed(study), cell, replication, None), study)
    return row | {"largest": float(np.abs(exact.scores - exact.tau).max()), "observed": filled.gamma}


def _observed(study: Study) -> Study:
    """The same study with bounds read off the records, which nobody should do."""
    box = list(zip(study.X.min(axis=0).tolist(), study.X.max(axis=0).tolist(), strict=True))
    outcome, propensity = study.bounds.outcome, study.bounds.propensity
    return replace(study, bounds=Bounds(outcome=outcome, covariates=box, propensity=propensity))


def run_method(
    study: Study,
    method: str,
    replication: int,
    epsilons: tuple[float, ...],
    *,
    share: float = DEFAULT_SHARE,
    propensity: float | None = None,
) -> Row:
    """What one method makes of one study, at several budgets."""
    if method == OURS:
        return {"truth": study.ate, "intervals": _ours(study, epsilons, propensity)}
    exact = exact_statistics(_published_model(study, method, replication, propensity), study)
    return _published_row(study, exact, epsilons, share)


def exact_statistics(model: PrivATE, study: Study) -> Exact:
    """What the published calibration would add noise to, so that many budgets share one fit. Not private at all.

    For simulations only: the model that is given is neither fitted nor changed.
    """
    if model.calibration != "published":
        raise InvalidInput("exact statistics are defined for calibration='published' only: the proved one shows none.")
    own: PrivATE = clone(model)
    own.check()
    rows = gather(ArrayRecords.of(study.Y, study.T, study.X, bounds=own.bounds, propensity=own.propensity))
    surfaces, _ = own._surfaces(rows, Budget(epsilon=own.epsilon, delta=own.delta))
    return own._exact(rows, surfaces)


def _published_model(study: Study, nuisance: str, replication: int, propensity: float | None) -> PrivATE:
    return PrivATE(
        epsilon=EPSILON,
        delta=DELTA,
        bounds=study.bounds,
        nuisance=nuisance,
        propensity=propensity,
        random_state=replication,
    )


def _published_row(study: Study, exact: Exact, epsilons: tuple[float, ...], share: float) -> Row:
    published = {f"{epsilon:g}": publish(exact, parts(epsilon, share)) for epsilon in epsilons}
    return {"truth": study.ate, "exact": [exact.n, exact.tau, exact.sigma2, exact.gamma], "published": published}


def exact_of(row: Row) -> Exact:
    """The exact statistics that a row holds."""
    n, tau, sigma2, gamma = row["exact"]
    return Exact(n=n, tau=tau, sigma2=sigma2, gamma=gamma)


def _ours(study: Study, epsilons: tuple[float, ...], propensity: float | None) -> dict[str, Any]:
    intervals = {}
    for epsilon in epsilons:
        fitted = ATE(epsilon=epsilon, delta=DELTA, bounds=study.bounds, propensity=propensity)
        fitted.fit(study.Y, study.T, X=study.X)
        intervals[f"{epsilon:g}"] = [fitted.ate_interval(alpha=alpha) for alpha in ALPHAS]
    return intervals


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

    from discreet.papers.private_ate.presets import preset

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
