"""Pairs of neighbours on which PrivATE's published noise is attacked: their exact statistics."""

from __future__ import annotations

from typing import Any

from discreet.audit.attacks.private_ci import few_treated, with_first
from discreet.data.in_memory import ArrayRecords
from discreet.datasets import Study, private_ci
from discreet.papers.common.arrays import gather
from discreet.papers.common.nuisances import train
from discreet.papers.private_ate.equations import Exact, influence, publish, searched_sensitivity
from discreet.papers.private_ate.presets import preset
from discreet.testing import seeded_noise
from evidence.reproduce.private_ate.noise_runs import noise_seed
from evidence.reproduce.private_ate.runs import EPSILON, ESTIMATE_SHARE, NOISE_SEED, STUDY_SEED, N, parts
from evidence.reproduce.targets import Row

WIDTH = ("width 1", "width 2")
# Learner, records, treated records.
FEW = ("few kernel 3000 3", "few ridge 3000 3", "few ridge 30000 3", "few ridge 30000 30")
# How often the starting points of the search are drawn, for each of two neighbours.
DRAWS = 5


def run(cell: str, replication: int) -> Row:
    """Cell "width 1": Dataset 1 as in Table 1. Cell "few ridge 30000 3": so many records, of which 3 are treated."""
    what, *setting = cell.split()
    if what == "width":
        study = private_ci(int(setting[0]), N, STUDY_SEED + replication)
        learner = "kernel"
    else:
        learner, n, treated = setting[0], int(setting[1]), int(setting[2])
        study = few_treated(n, treated, STUDY_SEED + replication)
    one, other = (_statistics(with_first(study, end), learner, replication) for end in study.bounds.outcome)
    row: Row = {"one": one, "other": other}
    if what == "width":
        with seeded_noise(noise_seed(NOISE_SEED, f"attack {cell}", replication)):
            row["truncated"] = publish(exact_of(one, N), parts(EPSILON, ESTIMATE_SHARE)).sigma2 == 0.0
    return row


def _statistics(study: Study, learner: str, replication: int) -> dict[str, Any]:
    """Estimate and variance, and the gross-error sensitivity for several draws of starting points."""
    from sklearn.utils import check_random_state

    rows = gather(ArrayRecords.of(study.Y, study.T, study.X, bounds=study.bounds))
    models = train(
        rows, study.bounds, *_models(learner), known=None, clipped=False, rng=check_random_state(replication)
    )
    scores = influence(study.Y, study.T, rows.x, models)
    tau = float(scores.mean())
    gammas = [
        searched_sensitivity(models, tau, study.bounds, starts=10, rng=check_random_state(DRAWS * replication + draw))
        for draw in range(DRAWS)
    ]
    return {"tau": tau, "sigma2": float(scores.var()), "gammas": gammas}


def _models(learner: str) -> tuple[Any, Any]:
    if learner == "kernel":
        return preset(learner)
    from sklearn.linear_model import LogisticRegression, Ridge

    return Ridge(), LogisticRegression()


def exact_of(found: dict[str, Any], n: int, draw: int = 0) -> Exact:
    """The statistics of one neighbour, with one draw of starting points."""
    return Exact(n=n, tau=found["tau"], sigma2=found["sigma2"], gamma=found["gammas"][draw])
