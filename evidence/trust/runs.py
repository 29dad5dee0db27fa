"""What is measured on one study: a function for each kind of measurement, whose last argument counts studies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from evidence.average.nonprivate import boosted_aipw
from evidence.population import RandomStudy, random_study
from evidence.trust import designs, rivals
from evidence.trust.acic import acic
from evidence.trust.fits import Row, average, function, function_errors, means, mu_of

# Seeds of trials, of shapes and of noise on ACIC's responses; a random study's own number is the seed of its noise.
TRIAL_SEED, SHAPE_SEED, ACIC_SEED = 61_000_000, 62_000_000, 63_000_000
# Effects that vary less than this part of the outcome's standard deviation count as constant.
_CONSTANT = 1e-6


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


def trial(outcome: str, share: float, n: int, replication: int) -> Row:
    """`DifferenceInMeans` and, from the usual sizes on, `ATE` on a trial of known arms."""
    made = designs.trial(outcome, share, n, TRIAL_SEED + replication)
    study, budget = made.study, {"epsilon": designs.EPSILON, "delta": designs.DELTA, "propensity": share}
    row: Row = {"truth": study.ate, "unadjusted": made.unadjusted}
    row["DifferenceInMeans"] = means(study, TRIAL_SEED + replication, **budget)
    if n not in designs.SMALL_SIZES:
        row["ATE"] = average(study, TRIAL_SEED + replication, **budget)[1]
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
    "boosted": boosted,
    "learner": learner,
    "plan": plan,
    "trial": trial,
    "shape": shape,
    "response": response,
    "response boosted": response_boosted,
}
# These do not depend on the library's code.
NOT_PRIVATE = ("boosted", "learner", "response boosted")
