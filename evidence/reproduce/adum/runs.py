"""Studies behind the figures of the epsilon-ADUM paper: one replication of one cell at a time.

As in the paper, the number of cells, the degree and the penalty are tuned on test data: every setting is run, and pages
pick the best. The relation is the paper's (add-remove) wherever a method has it.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.datasets import Study, adum, criteo_shaped, hillstrom
from discreet.datasets.metrics import auuc, pehe
from discreet.estimators.clustering import PrivateKMeans
from discreet.estimators.uplift import Uplift
from discreet.papers.adum.estimator import ADUM
from discreet.papers.adum.two_model import TwoModel
from discreet.papers.common.claims import UnprovedClaim
from discreet.testing import seeded_noise
from evidence.reproduce.private_ate.noise_runs import noise_seed
from evidence.reproduce.targets import FLAGSHIP_CELL, Row

STUDY_SEED, NOISE_SEED = 71_000_000, 97_000_000
N = 20_000
# The text's effect, and one that is non-monotonic as the text says.
SHAPES = {"sin(x)": 1.0, "sin(pi x)": float(np.pi)}
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FIG1_CELLS, DEGREES = (2, 4, 6, 8, 12, 16, 24, 32), (1, 2, 3, 4, 5)
FIG1_SETTINGS: dict[str, tuple[int | str, ...]] = {"adum": FIG1_CELLS, "tm": DEGREES, FLAGSHIP_CELL: ("auto",)}
FIG1_SIGMA, FIG2_SIGMA = 1.0, 0.1
FIG2_EPSILONS = (0.1, 1.0, 10.0, 50.0, 100.0)
FIG2_CELLS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# Corollary 1: cells and epsilon; the first is the paper's own example.
SETTINGS = ((20, 0.04), (5, 0.1), (20, 1.0), (20, 5.0), (50, 0.06), (100, 0.5), (400, 0.5))
COROLLARY_RUNS = 1_000
RUNS_A_ROW = 50
FIG3_EPSILONS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0)
TUNING: dict[str, tuple[float, ...]] = {
    "cut": (2, 4, 8, 12),
    "k-means": (4, 8, 16),
    "two-model": (1e-4, 1e-3, 1e-2, 1e-1),
    "two-model-proved": (1e-4, 1e-3, 1e-2, 1e-1),
    FLAGSHIP_CELL: (4, 8, 16),
}
RANKED = ("hillstrom", "criteo-shaped")
SHAPED_RECORDS = 200_000
# The midpoints of a fine regular grid: X is uniform, so that their mean is the expectation in (3).
GRID = ((np.arange(4_000) + 0.5) / 2_000 - 1.0)[:, None]


def synthetic(cell: str, replication: int) -> Row:
    """Cell "sin(x)/adum": PEHE of every number of cells, of every degree or of `Uplift`, at Figure 1's epsilons."""
    shape, method = cell.split("/")
    study = adum(N, STUDY_SEED + replication, sigma=FIG1_SIGMA, frequency=SHAPES[shape])
    settings = FIG1_SETTINGS[method]
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        return {
            f"{epsilon:g}": {f"{k}": _pehe(_fitted(study, method, k, epsilon), shape) for k in settings}
            for epsilon in EPSILONS
        }


def trade_off(cell: str, replication: int) -> Row:
    """Cell "sin(x)": PEHE of every number of cells at every epsilon of Figure 2."""
    study = adum(N, STUDY_SEED + replication, sigma=FIG2_SIGMA, frequency=SHAPES[cell])
    with seeded_noise(noise_seed(NOISE_SEED, f"trade-off {cell}", replication)):
        return {
            f"{epsilon:g}": {f"{p}": _pehe(_fitted(study, "adum", p, epsilon), cell) for p in FIG2_CELLS}
            for epsilon in FIG2_EPSILONS
        }


def corollary(cell: str, replication: int) -> Row:
    """Cell "20 0.04": a batch of runs with this many cells and this epsilon, each on a study of its own.

    Beside its PEHE every run keeps the smallest quotient of a noisy count and the true one.
    """
    p, epsilon = int(cell.split()[0]), float(cell.split()[1])
    found, least = [], []
    for run in range(replication * RUNS_A_ROW, (replication + 1) * RUNS_A_ROW):
        study = adum(N, STUDY_SEED + 500_000 + run, sigma=FIG1_SIGMA)
        with seeded_noise(noise_seed(NOISE_SEED, f"corollary {cell}", run)):
            model = _fitted(study, "adum", p, epsilon)
        found.append(_pehe(model, "sin(x)"))
        groups = 2 * model.release_.partition.cells(study.X) + study.T.astype(np.int64)
        counts = np.bincount(groups, minlength=2 * p).reshape(p, 2)
        least.append(float((model.release_.counts / np.maximum(counts, 1)).min()))
    return {"pehe": found, "least": least}


def ranking(cell: str, replication: int) -> Row:
    """Cell "hillstrom/cut": AUUC on test records for every setting of a method at every epsilon of Figure 3."""
    data, method = cell.split("/")
    train, test = _split(data, replication)
    row: Row = {}
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        for epsilon in FIG3_EPSILONS:
            row[f"{epsilon:g}"] = {}
            for setting in TUNING[method]:
                score = _ranker(train.bounds, method, setting, epsilon).fit(train.Y, train.T, X=train.X).effect(test.X)
                row[f"{epsilon:g}"][f"{setting:g}"] = auuc(test.Y, test.T, score).value
    return row | {"random": auuc(test.Y, test.T, np.zeros(test.n)).chance, "best": _best(test)}


def _best(test: Study) -> float | None:
    return None if test.effects is None else auuc(test.Y, test.T, test.effects).value


def _fitted(study: Study, method: str, setting: Any, epsilon: float) -> Any:
    given: dict[str, Any] = {"epsilon": epsilon, "bounds": study.bounds, "neighbours": "add-remove"}
    if method == "tm":
        made: Any = TwoModel(**given, degree=setting)
    else:
        made = (ADUM if method == "adum" else Uplift)(**given, by={0: setting})
    return made.fit(study.Y, study.T, X=study.X)


def _pehe(fitted: Any, shape: str) -> float:
    return pehe(np.sin(SHAPES[shape] * GRID[:, 0]), fitted.effect(GRID))


def _ranker(bounds: Any, method: str, setting: float, epsilon: float) -> Any:
    if method == "cut":
        # "On the first feature": recency, or f0.
        return ADUM(epsilon=epsilon, bounds=bounds, by={0: int(setting)}, neighbours="add-remove")
    if method in ("k-means", FLAGSHIP_CELL):
        kind: Any = ADUM if method == "k-means" else Uplift
        return kind(epsilon=epsilon, bounds=bounds, by=PrivateKMeans(clusters=int(setting)), neighbours="add-remove")
    calibration: Any = "proved" if method.endswith("proved") else "published"
    return TwoModel(epsilon=epsilon, bounds=bounds, model="logistic", lam=setting, calibration=calibration)


def _split(data: str, replication: int) -> tuple[Study, Study]:
    """Two random parts: of the real records, or of a fresh draw."""
    from sklearn.model_selection import train_test_split

    study = _hillstrom() if data == "hillstrom" else criteo_shaped(SHAPED_RECORDS, STUDY_SEED + replication)
    parts = train_test_split(np.arange(study.n), test_size=0.5, random_state=STUDY_SEED % 1_000_000 + replication)
    return _part(study, parts[0]), _part(study, parts[1])


def _part(study: Study, places: Any) -> Study:
    X = study.X[places] if isinstance(study.X, np.ndarray) else study.X.take(places)
    effects: Float | None = None if study.effects is None else study.effects[places]
    return Study(
        name=study.name, X=X, T=study.T[places], Y=study.Y[places], bounds=study.bounds, ate=study.ate, effects=effects
    )


@cache
def _hillstrom() -> Study:
    return hillstrom(treated="any")
