"""Studies behind the figures of the sample-splitting paper: one replication of one cell at a time."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.datasets import Study, meta_learners, social_pressure
from discreet.estimators.cate import CATE
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.meta_learners.estimators import DRLearner, RLearner, SLearner
from discreet.papers.meta_learners.release import LearnerRelease
from discreet.testing import seeded_noise
from evidence.reproduce.meta_learners.ebm_without_bounds import effects_without_bounds
from evidence.reproduce.private_ate.noise_runs import noise_seed
from evidence.reproduce.targets import FLAGSHIP_CELL, Row

STUDY_SEED, NOISE_SEED, TEST_SEED = 71_000_000, 97_000_000, 70_000_000
DELTA = 1e-5
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
# Budgets of the cells that are there to be compared with others.
FEW_EPSILONS = (1.0, 4.0, 16.0)
SHAPE_EPSILONS = (*EPSILONS, 128.0)
SHAPE_SIZE = 16_000
# The paper's test sets have 250,000 records, or all that are left of the voters.
TEST = 20_000
VOTING = "voting"
# DP-EBM with the clips below, with the default one and without any bounds, and the proved base learner.
EBM, WIDE, UNBOUNDED, ADDITIVE = "ebm", "ebm-wide", "ebm-unbounded", "additive"
# Where transformed outcomes are clipped: about what the authors' code had for extremes, which took them from the data.
CLIPS = {"A": 10.0, "B": 16.0, "C": 14.0, "D": 16.0, "E": 30.0, VOTING: 2.0}
# The R-learner's noise grows with the range of its quotients times the largest weight, both of which the authors' code
# took from the data: with the declared largest weight these make about the same.
R_CLIPS = {"A": 8.0, "B": 5.0, "C": 10.0, "D": 14.0, "E": 30.0, VOTING: 2.0}
# Setups D and E as Table 1 of the text prints them.
PRINTED = {"D-text": "D", "E-text": "E"}
CLIPS |= {"D-text": CLIPS["D"], "E-text": 90.0}
R_CLIPS |= {"D-text": R_CLIPS["D"], "E-text": 90.0}
# The R-learner with weights folded into the outcome, and as the authors' release of interpret had it, without bounds.
FOLDED, AS_IN_2022 = "ebm-folded", "ebm-2022"
LEARNERS: dict[str, Any] = {"DR": DRLearner, "R": RLearner, "S": SLearner}


def effects(cell: str, replication: int) -> Row:
    """Cell "A 4000 DR ebm": MSE, squared bias and variance at its epsilons, from two separate training sets.

    Section 5.1.3: with MSE the mean of two models' errors and MSE_avg that of their average, the squared bias is
    2 MSE_avg - MSE, and the variance what is left of the MSE.
    """
    data, size, learner, base = cell.split()
    first, second, x, truth = _studies(data, int(size), replication)
    row: Row = {"width": _width(first)}
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        for epsilon in epsilons_of(base):
            found = [
                _effects(study, x, data, learner, base, epsilon, 2 * replication + k)
                for k, study in enumerate((first, second))
            ]
            mse = float(np.mean([np.mean((one - truth) ** 2) for one in found]))
            bias = 2.0 * float(np.mean((np.mean(found, axis=0) - truth) ** 2)) - mse
            row[f"{epsilon:g}"] = [mse, bias, mse - bias]
    return row


def epsilons_of(base: str) -> tuple[float, ...]:
    """Budgets at which the cells of a base learner are run."""
    return EPSILONS if base in (EBM, ADDITIVE) else FEW_EPSILONS


def shapes(cell: str, replication: int) -> Row:
    """Cell "ebm": what age adds to the effect of a DR-learner with this base, at each epsilon."""
    study, *_ = _studies(VOTING, SHAPE_SIZE, replication)
    row: Row = {}
    with seeded_noise(noise_seed(NOISE_SEED, f"shapes {cell}", replication)):
        for epsilon in SHAPE_EPSILONS:
            _, heights = _release(study, VOTING, "DR", cell, epsilon, replication).shape("age", points=ages().size)
            row[f"{epsilon:g}"] = [round(float(height), 6) for height in heights]
    return row


def ages() -> Float:
    """Where shapes of age are compared: every half year."""
    return np.linspace(18.0, 100.0, 165)


def true_shape() -> tuple[Float, Float]:
    """The best additive shape of age for the synthetic effect, and how many voters are of each age.

    The effect is a product, f(age) times an indicator. Its best additive approximation follows from cell means, by
    backfitting.
    """
    study = voters()
    assert study.effects is not None
    place = np.clip(np.rint(2.0 * (study.X[:, 0] - 18.0)), 0, ages().size - 1).astype(np.int64)
    voted = study.X[:, list(study.bounds.names).index("general_00")].astype(np.int64)
    count = np.bincount(place, minlength=ages().size).astype(np.float64)
    age, vote = np.zeros(ages().size), np.zeros(2)
    for _ in range(50):
        age = np.bincount(place, study.effects - vote[voted], minlength=ages().size) / np.maximum(count, 1.0)
        vote = np.bincount(voted, study.effects - age[place]) / np.bincount(voted)
    return age - float(age @ count / count.sum()), count


@cache
def voters() -> Study:
    """All voters."""
    return social_pressure(seed=STUDY_SEED)


def voters_variance() -> float:
    """Variance of the voters' effects: the error of a constant that knows their mean."""
    effects = voters().effects
    assert effects is not None
    return float(np.var(effects))


def _effects(study: Study, x: Any, data: str, learner: str, base: str, epsilon: float, seed: int) -> Float:
    if base == FLAGSHIP_CELL:
        model = CATE(epsilon=epsilon, delta=DELTA, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
        return np.asarray(model.effect(x))
    if base in (UNBOUNDED, AS_IN_2022):
        by_records = base == AS_IN_2022
        return effects_without_bounds(
            study, x, learner, epsilon=epsilon, delta=DELTA, seed=seed, steps_by_records=by_records
        )
    return _release(study, data, learner, base, epsilon, seed).effect(x)


def _release(study: Study, data: str, learner: str, base: str, epsilon: float, seed: int) -> LearnerRelease:
    given: dict[str, Any] = {"base": EBM if base in (WIDE, FOLDED) else base}
    if learner != "S":
        clips = R_CLIPS if learner == "R" and base == EBM else CLIPS
        given |= {"clip": None if base == WIDE else clips[data], "random_state": seed}
    if base == FOLDED:
        given["risk"] = "folded"
    if learner == "R" and base == ADDITIVE:
        given["clip"] = None
    model = LEARNERS[learner](epsilon=epsilon, delta=DELTA, bounds=study.bounds, **given)
    with warnings.catch_warnings():
        # Thousands of fits, and every page says it.
        warnings.simplefilter("ignore", UnprovedClaim)
        release: LearnerRelease = model.fit(study.Y, study.T, X=study.X).release_
    return release


def _studies(data: str, n: int, replication: int) -> tuple[Study, Study, Any, Float]:
    """Two training sets, and covariates and effects of the test set."""
    if data == VOTING:
        from sklearn.utils import check_random_state

        everyone = voters()
        places = check_random_state(STUDY_SEED + replication).permutation(everyone.n)
        assert everyone.effects is not None
        test = places[-TEST:]
        return _some(everyone, places[:n]), _some(everyone, places[n : 2 * n]), everyone.X[test], everyone.effects[test]
    first, second = (drawn(data, n, STUDY_SEED + 2 * replication + k) for k in (0, 1))
    test_study = _test(data)
    assert test_study.effects is not None
    return first, second, test_study.X, test_study.effects


@cache
def _test(data: str) -> Study:
    return drawn(data, TEST, TEST_SEED)


def drawn(data: str, n: int, seed: int) -> Study:
    """A study of a setup, as coded or as printed."""
    return meta_learners(PRINTED.get(data, data), n, seed, as_printed=data in PRINTED)


def _some(study: Study, places: Any) -> Study:
    return Study(name=study.name, X=study.X[places], T=study.T[places], Y=study.Y[places], bounds=study.bounds)


def _width(study: Study) -> float:
    """How many times as wide the declared range of the outcome is as what the records have."""
    return float(study.bounds.outcome_width / np.ptp(study.Y))
