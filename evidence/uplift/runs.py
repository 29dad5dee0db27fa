"""Studies behind the page of `Uplift`: the paper's generator, effects of other shapes, and rankings in real trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from discreet import Uplift
from discreet.data._arrays import Float
from discreet.datasets import Study, adum, hillstrom, social_pressure
from discreet.datasets.metrics import auuc, pehe
from discreet.papers import ADUM
from discreet.privacy.guarantee import Neighbours
from discreet.testing import seeded_noise
from evidence.reproduce.private_ate.noise_runs import noise_seed

STUDY_SEED, NOISE_SEED = 84_000_000, 90_000_000
N = 20_000
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
ADUM_CELLS = (2, 4, 6, 8, 12, 16)
VARIANTS: dict[str, dict[str, Any]] = {
    "auto": {"by": {0: "auto"}, "neighbours": "add-remove"},
    "8 cells": {"by": {0: 8}, "neighbours": "add-remove"},
    "auto, replace-one": {"by": {0: "auto"}, "neighbours": "replace-one"},
}
# Wanted: this share of ADUM's error at most, and a ranking at least so good.
WANTED = {0.05: 1 / 3, 0.1: 1 / 3, 0.2: 1 / 3, 0.5: 1 / 3, 1.0: 0.4, 2.0: 0.4}
WANTED_AUUC = 0.9
# So much is as good as no noise: what the same estimator finds without privacy.
OPEN = 1e6
ALPHA = 0.1
SHAPES: dict[str, tuple[Callable[[Float], Any], Callable[[Float], Any]]] = {
    "sin(x)": (np.sin, np.zeros_like),
    "sin(πx)": (lambda x: np.sin(np.pi * x), np.zeros_like),
    "sin(x), level 2x": (np.sin, lambda x: 2 * x),
    "step at 0.3": (lambda x: (x > 0.3) * 1.0, np.zeros_like),
    "constant 0.3": (lambda x: np.full_like(x, 0.3), np.zeros_like),
    "0.1 sin(x), level x": (lambda x: 0.1 * np.sin(x), lambda x: x),
}
SHAPE_EPSILONS = (0.2, 1.0)
METHODS: tuple[tuple[str, float, Neighbours], ...] = (
    ("Uplift, add-remove", 1.0, "add-remove"),
    ("Uplift, replace-one", 1.0, "replace-one"),
    ("Uplift, no privacy", OPEN, "add-remove"),
)
_CUSTOMERS = {"mens": "levels", "womens": "levels", "newbie": "levels"}
_VOTERS = {"primary_00": "levels", "primary_02": "levels", "primary_04": "levels", "age": 4}


class Trial(NamedTuple):
    """A trial in which records are ranked: its title, its loader, its segments and its probability of treatment."""

    title: str
    load: Callable[[], Study]
    by: dict[str, Any]
    propensity: float


TRIALS = {
    "womens": Trial("women's e-mail", lambda: hillstrom(treated="womens"), _CUSTOMERS, 0.5),
    "mens": Trial("men's e-mail", lambda: hillstrom(treated="mens"), _CUSTOMERS, 0.5),
    "any letter": Trial("letter of any kind", lambda: social_pressure(treated="any"), _VOTERS, 4 / 9),
    "neighbors": Trial("letter that names neighbours", lambda: social_pressure(treated="neighbors"), _VOTERS, 1 / 6),
}
_GRID = ((np.arange(4_000) + 0.5) / 2_000 - 1.0)[:, None]


class Line(NamedTuple):
    """One number of one replication."""

    table: str
    case: str
    epsilon: float
    method: str
    replication: int
    measure: str
    value: float


def generator(replication: int) -> Iterator[Line]:
    """Root-PEHE and coverage of everything on one study of the paper's generator."""
    study = adum(N, STUDY_SEED + replication)
    truth = np.sin(_GRID[:, 0])

    def line(method: str, epsilon: float, measure: str, value: float) -> Line:
        return Line("generator", "sin(x)", epsilon, method, replication, measure, value)

    with seeded_noise(noise_seed(NOISE_SEED, "uplift generator", replication)):
        for epsilon in EPSILONS:
            given: dict[str, Any] = {"epsilon": epsilon, "bounds": study.bounds}
            for cells in ADUM_CELLS:
                rival = ADUM(**given, by={0: cells}, neighbours="add-remove").fit(study.Y, study.T, X=study.X)
                yield line(f"ADUM {cells}", epsilon, "root-PEHE", pehe(truth, rival.effect(_GRID)) ** 0.5)
            for name, how in VARIANTS.items():
                found = Uplift(**given, **how, propensity=0.5).fit(study.Y, study.T, X=study.X)
                yield line(name, epsilon, "root-PEHE", pehe(truth, found.effect(_GRID)) ** 0.5)
                for measure, value in coverage(found, truth).items():
                    yield line(name, epsilon, measure, value)
                yield line(name, epsilon, "segments", len(found.table()))
        found = Uplift(epsilon=OPEN, bounds=study.bounds, **VARIANTS["8 cells"], propensity=0.5)
        error = pehe(truth, found.fit(study.Y, study.T, X=study.X).effect(_GRID)) ** 0.5
        yield line("8 cells", OPEN, "root-PEHE", error)


def shapes(replication: int) -> Iterator[Line]:
    """Coverage where effects, and outcomes without treatment, have other shapes; nothing is known of the design."""
    for name, (effect, level) in SHAPES.items():
        base = adum(N, STUDY_SEED + 100_000 + replication)
        x = base.X[:, 0]
        y = np.clip(base.Y + level(x) + base.T * (effect(x) - np.sin(x)), -5.0, 5.0)
        with seeded_noise(noise_seed(NOISE_SEED, f"uplift {name}", replication)):
            for epsilon in SHAPE_EPSILONS:
                found = Uplift(epsilon=epsilon, bounds=base.bounds, by={0: 8}).fit(y, base.T, X=base.X)
                truth = effect(_GRID[:, 0])
                measured = {"root-PEHE": pehe(truth, found.effect(_GRID)) ** 0.5} | coverage(found, truth)
                for measure, value in measured.items():
                    yield Line("shapes", name, epsilon, "8 cells", replication, measure, value)


def coverage(found: Uplift, truth: Float) -> dict[str, float]:
    """Shares of places, segments and points of the uplift curve whose interval holds the truth; the mean width."""
    low, high = found.effect_interval(_GRID, ALPHA)
    rows = found.table(ALPHA)
    # Segments are equal cuts, and the grid is fine.
    means = [part.mean() for part in np.array_split(truth, len(rows))]
    held = [row["low"] <= mean <= row["high"] for row, mean in zip(rows, means, strict=True)]
    # What the released order of segments is truly worth; all segments have the same share of records.
    order = np.argsort([-row["effect"] for row in rows], kind="stable")
    worth, curve = np.cumsum(np.array(means)[order]) / len(rows), found.uplift_curve(ALPHA)
    return {
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "coverage of segments": float(np.mean(held)),
        "coverage of the curve": float(np.mean((curve.low[1:] <= worth) & (worth <= curve.high[1:]))),
        "width": float(np.mean(high - low)),
    }


def ranking(replication: int) -> Iterator[Line]:
    """AUUC on the other half of a trial's records, beside two-model learners without privacy."""
    for name, trial in TRIALS.items():
        train, test = _halves(loaded(name), replication)
        with seeded_noise(noise_seed(NOISE_SEED, f"uplift {name}", replication)):
            for method, epsilon, relation in METHODS:
                found = Uplift(
                    epsilon=epsilon, bounds=train.bounds, by=trial.by, propensity=trial.propensity, neighbours=relation
                )
                score = found.fit(train.Y, train.T, X=train.X).effect(test.X)
                yield _ranked(name, method, replication, test, score)
        for learner, score in _learners(train, test):
            yield _ranked(name, learner, replication, test, score)
        area = auuc(test.Y, test.T, np.zeros(test.n))
        yield Line("ranking", name, 1.0, "random", replication, "AUUC", area.chance)


def _ranked(trial: str, method: str, replication: int, test: Study, score: Float) -> Line:
    return Line("ranking", trial, 1.0, method, replication, "AUUC", auuc(test.Y, test.T, score).value)


def _learners(train: Study, test: Study) -> Iterator[tuple[str, Float]]:
    """T-learners: a model for each arm, no privacy."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    here, there = _numbers(train), _numbers(test)
    for name, model in (
        ("T-learner, logistic", lambda: LogisticRegression(max_iter=300)),
        ("T-learner, boosted", lambda: HistGradientBoostingClassifier(max_iter=40, max_depth=3, random_state=0)),
    ):
        arms = [model().fit(here[arm == train.T], train.Y[arm == train.T]) for arm in (0, 1)]
        yield name, arms[1].predict_proba(there)[:, 1] - arms[0].predict_proba(there)[:, 1]


def _numbers(study: Study) -> Float:
    from discreet.data.frames import encoded, feature_rows

    return feature_rows(encoded(study.X, study.bounds), study.bounds)


@cache
def loaded(trial: str) -> Study:
    """A trial's records, read once."""
    return TRIALS[trial].load()


def _halves(study: Study, replication: int) -> tuple[Study, Study]:
    order = np.random.default_rng(STUDY_SEED + replication).permutation(study.n)
    parts = order[: study.n // 2], order[study.n // 2 :]
    first, second = (
        Study(name=study.name, X=_taken(study.X, p), T=study.T[p], Y=study.Y[p], bounds=study.bounds) for p in parts
    )
    return first, second


def _taken(X: Any, rows: Any) -> Any:
    return X[rows] if isinstance(X, np.ndarray) else X.take(rows)
