"""Studies behind the figures of the DP-CATE paper: one replication of one cell at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Chunk
from discreet.datasets import dp_cate, ihdp, rhc
from discreet.papers.common.arrays import gather
from discreet.papers.common.influence import noise_factor
from discreet.papers.common.nuisances import Models, design
from discreet.papers.common.queries import encode_queries
from discreet.papers.dp_cate.equations import weight_of
from discreet.papers.dp_cate.function import DPCATEFunction
from discreet.papers.dp_cate.gp_sampler import Path
from discreet.papers.dp_cate.pointwise import DPCATE
from discreet.privacy.budget import Budget
from discreet.privacy.noise import published_gaussian
from discreet.testing import frozen_noise, seeded_noise
from evidence.reproduce.private_ate.noise_runs import noise_seed
from evidence.reproduce.targets import FLAGSHIP_CELL, Row

STUDY_SEED, NOISE_SEED = 71_000_000, 97_000_000
DELTA = 1e-5
N, TEST = 3_000, 0.1
BUDGETS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Figure 15 shows these.
FINE = (0.1, 0.12, 0.14, 0.16, 0.18, 0.2)
SHOWN = (0.5, 2.0, 10.0)
STARTS = 3
STAGES = ("forest", "nn", "linear")
KERNEL, PROVED = "kernel", "kernel, proved"
# As scikit-learn would fit it, with the noise of (18); and with a proof.
PUBLISHED_KERNEL: dict[str, Any] = {"penalty": "sum", "scaling": "unit"}
PROVED_KERNEL: dict[str, Any] = {"calibration": "proved"}
IHDP_FILES = 20


class Split(NamedTuple):
    """Records to fit to, queries, and the truth at them where there is one; ``axis`` is what figures show."""

    Y: Float
    T: Float
    X: Float
    queries: Float
    truth: Float | None
    axis: Float
    bounds: Bounds


def studies(cell: str, replication: int) -> Row:
    """Cell "1 R": Dataset 1 or 2, "rhc" or "ihdp", and a learner, or what stands beside it: "1 ebm", "1 anonymity"."""
    from evidence.reproduce.dp_cate.rivals import anonymous, boosted, flagship

    source, what = cell.split()
    split = split_of(source, replication)
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        if what == "ebm":
            return boosted(split, replication)
        if what == "anonymity":
            return anonymous(split, replication)
        if what == FLAGSHIP_CELL:
            return flagship(split)
        return _learners(split, what, replication)


def split_of(source: str, replication: int) -> Split:
    """Nine tenths of a study to fit to, and one tenth as queries."""
    seed = STUDY_SEED + replication
    if source == "rhc":
        study = rhc()
        axis = study.X[:, list(study.bounds.names).index("meanbp1")]
    elif source == "ihdp":
        study = ihdp(1 + replication % IHDP_FILES)
        axis = study.X.sum(axis=1)
    else:
        study = dp_cate(int(source), N, seed)
        axis = study.X[:, 0]
    order = np.arange(study.n) if source in "12" else check_random_state(seed).permutation(study.n)
    fit, test = np.split(order, [round((1.0 - TEST) * study.n)])
    truth = None if study.effects is None else study.effects[test]
    return Split(study.Y[fit], study.T[fit], study.X[fit], study.X[test], truth, axis[test], study.bounds)


def records_of(split: Split) -> Chunk:
    """The records of a split, encoded."""
    return gather(ArrayRecords.of(split.Y, split.T, split.X, bounds=split.bounds))


def model_of(split: Split, learner: str, replication: int) -> DPCATE:
    """DP-CATE as the pages run it."""
    return DPCATE(
        epsilon=1.0, delta=DELTA, bounds=split.bounds, learner=learner, starts=STARTS, random_state=replication
    )


def _learners(split: Split, learner: str, replication: int) -> Row:
    rows, asked = records_of(split), encode_queries(split.queries, split.bounds)
    base = model_of(split, learner, replication)
    nuisances = base._first_stage(rows)
    answers: dict[str, dict[str, Float]] = {}
    sizes: dict[str, float] = {}
    # What (11) leaves out of the influence function, and Lemma 2 and the proof of Theorem 1 do not: 1 / E[lambda].
    usual_weight = float(weight_of(learner).value(nuisances.parts(rows.x)[0]).mean())
    for stage in STAGES:
        exact, gamma = clone(base).set_params(stage2=stage)._exact(rows, nuisances, asked)
        sizes[stage] = gamma * noise_factor(len(rows.t), 1.0, DELTA)
        answers[stage] = {"exact": exact} | {
            _key(e): exact + published_gaussian(len(exact), sizes[stage] / e) for e in _epsilons()
        }
    answers[KERNEL], sizes[KERNEL] = _kernel(split, learner, replication, rows, nuisances, asked)
    answers[PROVED], sizes[PROVED] = _proved(split, learner, replication)
    row = _row(split, answers, sizes, shown=replication == 0)
    for stage in STAGES:
        row[stage]["printed sd"] = sizes[stage] * usual_weight
    return row


def _kernel(
    split: Split, learner: str, replication: int, rows: Chunk, nuisances: Models, asked: Float
) -> tuple[dict[str, Float], float]:
    """Theorem 2 at many budgets from one fit: r is proportional to 1 / epsilon."""
    model = _function(split, learner, replication, 1.0, PUBLISHED_KERNEL)
    secret = model._published(rows, nuisances, Budget(epsilon=1.0, delta=DELTA))
    points = design(asked, split.bounds)
    exact, r = secret._function(points), secret._r
    added = Path(secret._function.kernel, points.shape[1]).rows(points)

    def noise() -> Float:
        return np.asarray(added.new @ published_gaussian(added.new.shape[1], 1.0))

    answers = {"exact": exact} | {_key(e): exact + r / e * noise() for e in _epsilons()}
    return answers, r * float(np.sqrt(secret._function.kernel.height))


def _proved(split: Split, learner: str, replication: int) -> tuple[dict[str, Float], float]:
    answers = {}
    with frozen_noise():
        found = _function(split, learner, replication, BUDGETS[-1], PROVED_KERNEL).fit(split.Y, split.T, X=split.X)
        answers["exact"] = found.effect(split.queries)
    size = float("nan")
    for epsilon in _epsilons():
        found = _function(split, learner, replication, epsilon, PROVED_KERNEL).fit(split.Y, split.T, X=split.X)
        answers[_key(epsilon)] = found.effect(split.queries)
        size = found._public_release.noise_sd if epsilon == 1.0 else size
    return answers, size


def _function(split: Split, learner: str, replication: int, epsilon: float, given: dict[str, Any]) -> DPCATEFunction:
    return DPCATEFunction(
        epsilon=epsilon, delta=DELTA, bounds=split.bounds, learner=learner, random_state=replication, **given
    )


def _row(split: Split, answers: dict[str, dict[str, Float]], sizes: dict[str, float], *, shown: bool) -> Row:
    row: Row = {
        name: {
            "sd": sizes[name],
            "error": {key: rms(found, split.truth) for key, found in given.items()},
            "distance": {key: rms(found, given["exact"]) for key, found in given.items()},
        }
        for name, given in answers.items()
    }
    if shown:
        keys = ["exact", *map(_key, SHOWN)]
        row["shown"] = {
            "axis": split.axis.tolist(),
            "truth": None if split.truth is None else split.truth.tolist(),
            "answers": {
                name: {key: np.round(given[key], 4).tolist() for key in keys} for name, given in answers.items()
            },
        }
    return row


def rms(found: Float, truth: Float | None) -> float | None:
    """Root of the mean squared difference: with true effects, the precision in estimating them (PEHE)."""
    return None if truth is None else float(np.sqrt(np.mean((found - truth) ** 2)))


def _epsilons() -> tuple[float, ...]:
    return tuple(sorted({*BUDGETS, *FINE}))


def _key(epsilon: float) -> str:
    return f"{epsilon:g}"
