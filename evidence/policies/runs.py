"""Studies behind the page of policies: one half of a trial chooses whom to treat, the other says what that gains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet import CATE, Policy, PolicyValue, Uplift
from discreet.data._arrays import Float
from discreet.data.frames import encoded, feature_rows
from discreet.datasets import Study, criteo_shaped, hillstrom, social_pressure
from discreet.testing import seeded_noise
from evidence.reproduce.private_ate.noise_runs import noise_seed

STUDY_SEED, NOISE_SEED = 86_000_000, 92_000_000
EPSILON, DELTA = 1.0, 1e-6
# So much is as good as no noise: what the same estimator finds without privacy.
OPEN = 1e6
# Wanted: this part of the value without privacy.
WANTED = 0.95
MADE_UP = 200_000
# Of the made-up trials whose bounds are checked; their truth is that of many more people.
SMALL, PEOPLE, ALPHA = 20_000, 400_000, 0.05
PRIVATE = "Uplift, ε = 1"
SAME = "Uplift, no privacy"
FUNCTION, SAME_FUNCTION = "CATE, ε = 1", "CATE, no privacy"
Chosen = npt.NDArray[np.bool_]


class Trial(NamedTuple):
    """A trial: its title, its loader, its segments, its probability of treatment, and a cost."""

    title: str
    load: Callable[[], Study]
    by: dict[str, Any]
    propensity: float
    cost: float


_CUSTOMERS = {"mens": "levels", "womens": "levels", "newbie": "levels", "recency": 4}
_VOTERS = {"primary_00": "levels", "primary_02": "levels", "primary_04": "levels", "age": 4}
TRIALS = {
    "criteo": Trial(
        "Criteo-shaped, visits", lambda: criteo_shaped(MADE_UP, STUDY_SEED), {"f6": 3, "f8": 3, "f9": 3}, 0.85, 0.02
    ),
    "womens": Trial("Hillstrom, women's e-mail, visits", lambda: hillstrom(treated="womens"), _CUSTOMERS, 0.5, 0.04),
    "mens": Trial("Hillstrom, men's e-mail, visits", lambda: hillstrom(treated="mens"), _CUSTOMERS, 0.5, 0.07),
    "any letter": Trial("voters, any letter", lambda: social_pressure(treated="any"), _VOTERS, 4 / 9, 0.04),
    "neighbors": Trial(
        "voters, letter that names neighbours", lambda: social_pressure(treated="neighbors"), _VOTERS, 1 / 6, 0.08
    ),
}
CAPACITIES = (0.2, 0.5)


class Case(NamedTuple):
    """What a policy has to keep to."""

    cost: float
    capacity: float | None

    def __str__(self) -> str:
        return f"cost {self.cost:g}" if self.capacity is None else f"capacity {self.capacity:g}"


class Line(NamedTuple):
    """One number of one replication."""

    trial: str
    case: str
    method: str
    replication: int
    measure: str
    value: float


def cases(trial: Trial) -> list[Case]:
    """A fifth or half of the people at no cost, or whoever gains more than about the average effect."""
    return [*(Case(0.0, capacity) for capacity in CAPACITIES), Case(trial.cost, None)]


@cache
def loaded(trial: str) -> Study:
    """A trial's records, read once."""
    return TRIALS[trial].load()


def split(replication: int, functions: bool) -> Iterator[Line]:
    """Values of all policies on one half of each trial, chosen on the other."""
    for name, trial in TRIALS.items():
        train, test = _halves(loaded(name), replication)
        given: dict[str, Any] = {"bounds": train.bounds, "propensity": trial.propensity}
        with seeded_noise(noise_seed(NOISE_SEED, f"policies {name}", replication)):
            fitted: dict[str, Any] = {
                PRIVATE: Uplift(epsilon=EPSILON, by=trial.by, **given).fit(train.Y, train.T, X=train.X),
                SAME: Uplift(epsilon=OPEN, by=trial.by, **given).fit(train.Y, train.T, X=train.X),
            }
            if functions:
                for method, epsilon in ((FUNCTION, EPSILON), (SAME_FUNCTION, OPEN)):
                    function = CATE(epsilon=epsilon, delta=DELTA, **given)
                    fitted[method] = function.fit(train.Y, train.T, X=train.X)
            for case in cases(trial):
                yield from _values(name, case, replication, fitted, train, test)


def _values(
    name: str, case: Case, replication: int, fitted: dict[str, Any], train: Study, test: Study
) -> Iterator[Line]:
    for method, estimator in fitted.items():
        more = {} if method in (PRIVATE, SAME) or case.capacity is None else {"X": test.X}
        policy = estimator.policy(cost=case.cost, capacity=case.capacity, **more)
        chosen = policy.assign(test.X) > 0
        yield Line(
            name, str(case), method, replication, "value", gain(test, chosen, case.cost, TRIALS[name].propensity)
        )
        yield Line(name, str(case), method, replication, "share", float(chosen.mean()))
        if method == PRIVATE and policy.treats:
            found = PolicyValue(
                policy=policy, epsilon=EPSILON, delta=DELTA, bounds=test.bounds, propensity=TRIALS[name].propensity
            ).fit(test.Y, test.T, X=test.X)
            yield Line(name, str(case), method, replication, "measured", found.value_)
            yield Line(name, str(case), method, replication, "lower bound", found.value_lower(ALPHA))
    for method, score in _learners(name, replication, train, test).items():
        chosen = score > case.cost
        if case.capacity is not None:
            places = int(case.capacity * len(score))
            chosen &= np.isin(np.arange(len(score)), np.argsort(-score, kind="stable")[:places])
        yield Line(
            name, str(case), method, replication, "value", gain(test, chosen, case.cost, TRIALS[name].propensity)
        )
    everybody = np.ones(test.n, dtype=bool)
    whole = gain(test, everybody, case.cost, TRIALS[name].propensity)
    # By lot, as many as may be treated; at a cost, everybody or nobody.
    lot = whole * case.capacity if case.capacity is not None else max(whole, 0.0)
    yield Line(name, str(case), "by lot", replication, "value", lot)


def gain(test: Study, chosen: Chosen, cost: float, propensity: float) -> float:
    """What treating some people gains per person of all: by true effects where they are known, else by the trial."""
    if test.effects is not None:
        return float(np.mean(np.where(chosen, test.effects - cost, 0.0)))
    y, t = np.asarray(test.Y)[chosen], np.asarray(test.T)[chosen]
    if not 0 < t.sum() < len(t):
        return 0.0
    return float(np.mean(chosen) * (y[t == 1].mean() - y[t == 0].mean() - cost))


_KEPT: dict[tuple[str, int], dict[str, Float]] = {}


def _learners(name: str, replication: int, train: Study, test: Study) -> dict[str, Float]:
    """Effects by T-learners: a model for each arm, no privacy."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    if (name, replication) not in _KEPT:
        _KEPT.clear()
        here, there = (feature_rows(encoded(part.X, part.bounds), part.bounds) for part in (train, test))
        found = {}
        for method, model in (
            ("T-learner, logistic", lambda: LogisticRegression(max_iter=300)),
            ("T-learner, boosted", lambda: HistGradientBoostingClassifier(max_iter=40, max_depth=3, random_state=0)),
        ):
            arms = [model().fit(here[arm == train.T], train.Y[arm == train.T]) for arm in (0, 1)]
            found[method] = arms[1].predict_proba(there)[:, 1] - arms[0].predict_proba(there)[:, 1]
        _KEPT[name, replication] = found
    return _KEPT[name, replication]


@cache
def _people() -> Study:
    """People whose true effects stand for those of all."""
    return criteo_shaped(PEOPLE, STUDY_SEED - 1)


class Bound(NamedTuple):
    """Whether lower bounds of one made-up trial hold, and how far below the truth they are."""

    case: str
    truth: float
    expected: float
    at_choice: float
    value: float
    elsewhere: float


def bounded(replication: int) -> Iterator[Bound]:
    """Bounds at 95 % on small made-up trials, the choosing release's own and that of held-out records."""
    trial = TRIALS["criteo"]
    study = criteo_shaped(2 * SMALL, STUDY_SEED + 1_000 + replication)
    first, second = _parts(study, np.arange(SMALL), np.arange(SMALL, 2 * SMALL))
    with seeded_noise(noise_seed(NOISE_SEED, "policies, bounds", replication)):
        given: dict[str, Any] = {"epsilon": EPSILON, "bounds": study.bounds, "propensity": trial.propensity}
        fitted = Uplift(by=trial.by, **given).fit(first.Y, first.T, X=first.X)
        for case in cases(trial):
            policy: Policy = fitted.policy(cost=case.cost, capacity=case.capacity)
            if not policy.treats or policy.gain is None:
                continue
            value = PolicyValue(policy=policy, delta=DELTA, **given).fit(second.Y, second.T, X=second.X)
            people = _people()
            truth = gain(people, policy.assign(people.X) > 0, case.cost, trial.propensity)
            lower = policy.gain_lower(ALPHA)
            yield Bound(str(case), truth, policy.gain.value, lower, value.value_, value.value_lower(ALPHA))


def _halves(study: Study, replication: int) -> tuple[Study, Study]:
    order = np.random.default_rng(STUDY_SEED + replication).permutation(study.n)
    return _parts(study, order[: study.n // 2], order[study.n // 2 :])


def _parts(study: Study, *parts: Any) -> tuple[Study, Study]:
    first, second = (
        Study(
            name=study.name,
            X=study.X[rows] if isinstance(study.X, np.ndarray) else study.X.take(rows),
            T=study.T[rows],
            Y=study.Y[rows],
            bounds=study.bounds,
            effects=None if study.effects is None else study.effects[rows],
        )
        for rows in parts
    )
    return first, second
