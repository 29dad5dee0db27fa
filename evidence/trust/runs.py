"""What is measured on one study: a function for each kind of measurement, whose last argument counts studies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any
from zlib import crc32

import numpy as np

from discreet import Bounds
from discreet.datasets import Study
from evidence.average.nonprivate import boosted_aipw
from evidence.population import RandomStudy, random_study
from evidence.trust import averages, designs, rivals
from evidence.trust.acic import acic
from evidence.trust.balance import balance
from evidence.trust.fits import Row, average, function, function_errors, means, mu_of

# Seeds of trials, of shapes and of noise on ACIC's responses; a random study's own number is the seed of its noise.
TRIAL_SEED, SHAPE_SEED, ACIC_SEED = 86_000_000, 78_000_000, 79_000_000
# Effects that vary less than this part of the outcome's standard deviation count as constant.
_CONSTANT = 1e-6
# Studies of fewer records are not halved.
_ENOUGH = 1_000


def random(largest: int, number: int) -> Row:
    """Every estimator on a random study, at the study's budget."""
    made = random_study(number, largest=largest)
    study, facts = made.study, made.facts
    budget: dict[str, Any] = {"epsilon": facts.epsilon, "delta": facts.delta}
    ate, average_row = average(study, number, **budget, propensity=made.known)
    cate, function_row = function(study, number, **budget, propensity=made.known)
    row = truth(made) | {"ATE": average_row, "CATE": function_row}
    if isinstance(made.known, float):
        row["DifferenceInMeans"] = means(study, number, **budget, propensity=made.known)
    if row["varies"] and ate is not None and cate is not None:
        row["function"] = function_errors(cate, ate.ate_, study)
    return row


def truth(made: RandomStudy) -> Row:
    """What is known about a random study."""
    facts, study = made.facts, made.study
    assert study.effects is not None
    varies = facts.p > 0 and float(study.effects.std()) > _CONSTANT * float(study.Y.std())
    mu = mu_of(facts.epsilon, facts.delta)
    return asdict(facts) | {"truth": study.ate, "efficiency": made.efficiency, "mu": mu, "varies": bool(varies)}


def several(largest: int, number: int) -> Row:
    """Every average, means of the arms and ratios on a random study."""
    return truth(random_study(number, largest=largest)) | averages.measured(largest, number)


def boosted(largest: int, number: int) -> Row:
    """Boosted AIPW without privacy on a random study."""
    return rivals.aipw(number, largest)


def learner(largest: int, number: int) -> Row:
    """A boosted DR-learner without privacy on a random study."""
    return rivals.dr_learner(number, largest)


def plan(largest: int, number: int) -> Row:
    """Widths that were planned for `ATE` on a random study."""
    made = random_study(number, largest=largest)
    return {"without": planned(made, guess=False), "with": planned(made, guess=True)}


def planned(made: RandomStudy, guess: bool) -> float:
    """Width of `ATE`'s 95 % interval that a plan expects; with ``guess`` the outcome's moments are public.

    The guess is what an earlier report would state: how many have the event, of a binary outcome, and the mean and
    standard deviation of others.
    """
    from discreet import plan

    study, facts = made.study, made.facts
    options: dict[str, Any] = {"treated": float(np.mean(study.T))}
    if made.known is not None:
        options["propensity"] = made.known
    mean, sd = float(study.Y.mean()), float(study.Y.std())
    if guess and sd > 0.0:
        binary = facts.outcome in ("binary", "rare")
        options |= {"prevalence": mean} if binary else {"outcome_mean": mean, "outcome_sd": sd}
    return plan("ate", n=facts.n, bounds=study.bounds, epsilon=facts.epsilon, delta=facts.delta, **options).width


def again(largest: int, number: int) -> Row:
    """Widths of `ATE` on a random study with half of its records, twice its epsilon and half of its covariates."""
    made = random_study(number, largest=largest)
    study, facts = made.study, made.facts
    first, _ = average(study, number, epsilon=facts.epsilon, delta=facts.delta, propensity=made.known)
    if first is None or facts.n < _ENOUGH or facts.p < 2:
        return {"number": number}
    mu = mu_of(2.0 * facts.epsilon, facts.delta) / mu_of(facts.epsilon, facts.delta)
    kept = (facts.p + 1) // 2
    row: Row = {"number": number} | {name: getattr(facts, name) for name in ("n", "p", "epsilon", "outcome", "design")}
    changes: dict[str, tuple[Row, dict[str, float], Row]] = {
        "half n": ({"n": facts.n // 2}, {"records": 0.5}, {}),
        "twice epsilon": ({}, {"mu": mu}, {"epsilon": 2.0 * facts.epsilon}),
    }
    if facts.design == "observational":
        changes["half p"] = ({"p": kept}, {"covariates": kept / facts.p}, {})
    for name, (smaller, scales, budget) in changes.items():
        part = _part_of(study, **smaller)
        known = made.known[: len(part.T)] if isinstance(made.known, np.ndarray) else made.known
        options: Row = {"epsilon": facts.epsilon, "delta": facts.delta, "propensity": known} | budget
        second, _ = average(part, number, **options)
        if second is not None:
            low, high = first.release_.uncertainty.scaled(**scales).interval(0.0)
            row[name] = _width(second.ate_interval()) / _width(first.ate_interval())
            row[f"{name} expected"] = min(high - low, 2.0 * study.bounds.outcome_width) / _width(first.ate_interval())
    return row


def _width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]


def _part_of(study: Study, n: int | None = None, p: int | None = None) -> Study:
    """The first records, or the first covariates alone."""
    names = study.bounds.names[:p]
    facts = study.bounds.to_dict()
    facts["covariates"] = {name: facts["covariates"][name] for name in names}
    x = study.X[list(names)] if hasattr(study.X, "columns") else study.X[:, : len(names)]
    return replace(
        study, X=x[:n], T=study.T[:n], Y=study.Y[:n], bounds=Bounds.from_dict(facts), effects=None, propensity=None
    )


def trial(outcome: str, share: float, n: int, replication: int) -> Row:
    """`DifferenceInMeans` and, from the usual sizes on, `ATE` on a trial of known arms."""
    # Every cell has noise of its own: cells with the same would hold the truth, or miss it, together.
    seed = TRIAL_SEED + crc32(f"{outcome}, {share}, {n}".encode()) % 100_000 * 100 + replication
    made = designs.trial(outcome, share, n, seed)
    study, budget = made.study, {"epsilon": designs.EPSILON, "delta": designs.DELTA, "propensity": share}
    row: Row = {"truth": study.ate, "unadjusted": made.unadjusted}
    row["DifferenceInMeans"] = means(study, seed, **budget)
    if n not in designs.SMALL_SIZES:
        row["ATE"] = average(study, seed, **budget)[1]
    return row


def shape(name: str, n: int, replication: int) -> Row:
    """`ATE` on an observational study of a shape."""
    study = designs.shaped(name, n, SHAPE_SEED + replication)
    fit = average(study, SHAPE_SEED + replication, epsilon=designs.EPSILON, delta=designs.DELTA)[1]
    return {"truth": study.ate, "efficiency": designs.score_sd(name) / np.sqrt(n), "ATE": fit}


def response(which: int, epsilon: float, replication: int) -> Row:
    """`ATE` on a response of ACIC 2016; replications differ by their noise."""
    study = acic(which)
    fit = average(study, ACIC_SEED + replication, epsilon=epsilon, delta=designs.DELTA)[1]
    return {"truth": study.ate, "ATE": fit}


def response_boosted(which: int, replication: int) -> Row:
    """Boosted AIPW without privacy on the same; replications differ by their folds."""
    study = acic(which)
    return {"truth": study.ate} | rivals.interval(boosted_aipw(study, ACIC_SEED + replication))


RUNS: dict[str, Callable[..., Row]] = {
    "random": random,
    "estimands": several,
    "boosted": boosted,
    "learner": learner,
    "plan": plan,
    "again": again,
    "trial": trial,
    "shape": shape,
    "response": response,
    "response boosted": response_boosted,
    "balance": balance,
}
# These do not depend on the library's code.
NOT_PRIVATE = ("boosted", "learner", "response boosted")
