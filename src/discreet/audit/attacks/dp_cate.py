"""DP-CATE for finite queries: noise for the influence function of a mean, on a model that has leverage and locality.

Schröder et al., Theorem 1 and Lemma 2, on Dataset 1 with 300 queries and 2,700 records, as in the paper.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import discreet.audit._one_run as canaries
from discreet.audit._lower_bounds import Law, least_epsilon
from discreet.audit._neighbours import Table
from discreet.audit.attacks.base import (
    Attack,
    Claim,
    LowerBounds,
    Run,
    by_black_box,
    histograms,
    judged,
    rng_of,
    two_normals,
    with_bounds,
    with_parts,
)
from discreet.audit.mechanism import claimed_budget, fitted
from discreet.audit.result import AuditResult
from discreet.data._arrays import Float
from discreet.data.in_memory import ArrayRecords
from discreet.datasets import Study, dp_cate
from discreet.papers import require_learners
from discreet.papers.common.arrays import gather
from discreet.papers.common.influence import noise_factor
from discreet.papers.common.queries import encode_queries
from discreet.papers.dp_cate.pointwise import DPCATE
from discreet.privacy.budget import Budget
from discreet.testing import seeded_noise

N, QUERIES = 2_700, 300
# With so few records a fit takes a twentieth of a second, and can be repeated a thousand times; all but one of them lie
# in the middle half of their ranges, so that the one has leverage.
FEW, NARROW = 100, 0.5
# Runs that choose how sure to be before guessing, and are not counted.
_CHOOSING = 2


def _study(n: int, seed: int) -> tuple[Study, Float, Table]:
    """Bounds, queries and records."""
    study = dp_cate(1, n + QUERIES, 77_000_000 + seed)
    return study, study.X[:QUERIES], Table(study.Y[QUERIES:], study.T[QUERIES:], study.X[QUERIES:])


def exact(estimator: Any, table: Table, queries: Float) -> tuple[Float, float]:
    """What is answered before the noise, and the scale of the noise."""
    bounds = estimator.bounds
    rows = gather(ArrayRecords.of(table.y, table.t, table.x, bounds=bounds))
    answers, gamma = estimator._exact(rows, estimator._first_stage(rows), encode_queries(queries, bounds))
    return answers, gamma * noise_factor(table.n, estimator.epsilon, estimator.delta)


def _closed(estimator: Any, attack: str, pair: tuple[Table, Table], queries: Float, worst: str) -> AuditResult:
    """Exact, given the seed of the models: the answers are normal along the line on which they moved."""
    claimed = claimed_budget(estimator)
    (one, sd), (other, sd_other) = (exact(estimator, table, queries) for table in pair)
    moved = float(np.linalg.norm(one - other))
    epsilon = least_epsilon(Law.normal(0.0, sd), Law.normal(moved, sd_other), claimed.delta or 0.0)
    claim = Claim(estimator=estimator, attack=attack, budget=claimed)
    return judged(
        claim,
        "closed form",
        LowerBounds(epsilon=epsilon),
        worst=worst,
        notes=(
            f"all answers together move by {moved / sd:.3g} times the noise of one; the seed of the models is fixed.",
        ),
        picture=two_normals(moved, sd, sd_other),
    )


def forest(estimator: Any, run: Run) -> AuditResult:
    """Canaries at the queries: a forest remembers the record that lies where it is asked."""
    study, queries, table = _study(N, run.random_state)
    estimator = with_bounds(estimator, study.bounds)
    low, high = study.bounds.outcome
    x, t = table.x.copy(), table.t.copy()
    # Each query is the place of a canary, whose outcome lies at one end of its range or at the other.
    x[:QUERIES], t[:QUERIES] = queries, np.arange(QUERIES) % 2
    start = Table(table.y, t, x)
    side = np.where(t[:QUERIES] > 0, 1.0, -1.0)
    assert study.effects is not None
    smooth = study.effects[:QUERIES]
    scores, secrets = [], []
    rng = rng_of(run.random_state)
    for trial in range(_CHOOSING + run.trials):
        run.report("canaries", max(0, trial - _CHOOSING))
        secret = rng.randint(0, 2, QUERIES)
        y = start.y.copy()
        y[:QUERIES] = np.where(secret, high, low)
        with seeded_noise(10_007 * (run.random_state + 1) + trial):
            # Models and noise are drawn anew in every run.
            one = with_bounds(estimator, study.bounds, random_state=int(rng.randint(2**31 - 1)))
            answers = fitted(one, Table(y, start.t, start.x), queries=queries).effect()
        scores.append(side * (answers - smooth))
        secrets.append(secret)
    claimed = claimed_budget(estimator)
    delta = claimed.delta or 0.0
    tried, known = np.concatenate(scores[:_CHOOSING]), np.concatenate(secrets[:_CHOOSING])
    # The two versions need not lie on both sides of zero: the middle between them does.
    middle = (np.median(tried[known == 1]) + np.median(tried[known == 0])) / 2
    least = canaries.choose_least(tried - middle, known, delta, max(1, run.trials // _CHOOSING), run.confidence)
    counted, truth = np.concatenate(scores[_CHOOSING:]) - middle, np.concatenate(secrets[_CHOOSING:])
    found = canaries.guess(counted, truth, least)
    claim = Claim(estimator=estimator, attack="dp_cate_forest", budget=claimed)
    canary = judged(
        claim,
        "black box",
        LowerBounds(
            epsilon=canaries.least_epsilon(found, delta, run.confidence),
            delta=canaries.least_delta(found, claimed.epsilon, run.confidence),
            confidence=run.confidence,
            trials=run.trials,
        ),
        worst="a record at a query, its outcome at either end of its range",
        notes=(
            f"{found.right:,} of {found.guessed:,} guesses at {found.secrets:,} secrets were right, in {run.trials} "
            f"runs; {_CHOOSING} more chose when to guess. Models and noise have fresh seeds.",
        ),
        picture=histograms(counted[truth == 1], counted[truth == 0]),
    )
    fixed = with_bounds(estimator, study.bounds, random_state=run.random_state)
    pair = tuple(start.with_record(1, replace(start.record(1), y=end)) for end in (low, high))
    closed = _closed(fixed, "dp_cate_forest", (pair[0], pair[1]), queries, "a record at a query, from end to end")
    return with_parts(canary, closed)


def identical_queries(estimator: Any, run: Run) -> AuditResult:
    """One query asked 300 times: the noise is drawn for each answer as if there were no others."""
    small, small_worlds = _repeated(estimator, FEW, run.random_state, NARROW)
    rng = rng_of(run.random_state)

    def answers(table: Table) -> dict[str, float]:
        one = with_bounds(small[0], small[0].bounds, random_state=int(rng.randint(2**31 - 1)))
        return {"mean": float(np.mean(fitted(one, table, queries=small[2]).effect()))}

    claim = Claim(estimator=small[0], attack="dp_cate_identical_queries", budget=claimed_budget(estimator))
    simulated = by_black_box(
        claim,
        (lambda: answers(small_worlds[0]), lambda: answers(small_worlds[1])),
        run,
        worst=f"a record that moves from corner to corner, among {FEW}",
    )
    paper, worlds = _repeated(estimator, N, run.random_state, 1.0)
    closed = _closed(
        paper[0],
        "dp_cate_identical_queries",
        worlds,
        paper[2],
        f"a record that moves from corner to corner, among {N:,}",
    )
    return with_parts(simulated, closed)


def _repeated(estimator: Any, n: int, seed: int, width: float) -> tuple[tuple[Any, Study, Float], tuple[Table, Table]]:
    """A query in a corner, 300 times, and two neighbours: the best of all corners, by closed form."""
    study, _, table = _study(n, seed)
    fixed = with_bounds(estimator, study.bounds, random_state=seed)
    corners = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    high = study.bounds.outcome[1]
    found = []
    for corner in corners:
        y, t, x = table.y.copy(), table.t.copy(), 0.5 + width * (table.x - 0.5)
        y[0], t[0], x[0] = high, 0.0, corner
        world = Table(y, t, x)
        found.append((world, *exact(fixed, world, corners)))
    _, a, b, place = max(
        (
            (abs(one[1][q] - other[1][q]) / max(one[2], other[2]), i, j, q)
            for i, one in enumerate(found)
            for j, other in enumerate(found)
            for q in range(len(corners))
        ),
    )
    queries = np.repeat(corners[place : place + 1], QUERIES, axis=0)
    return (fixed, study, queries), (found[a][0], found[b][0])


def _make_forest(budget: Budget) -> DPCATE:
    bounds = dp_cate(1, 12, 0).bounds
    return DPCATE(epsilon=budget.epsilon, delta=budget.delta, bounds=bounds, learner="R", stage2="forest")


def _make_linear(budget: Budget) -> DPCATE:
    require_learners("this attack")
    from sklearn.linear_model import LinearRegression, LogisticRegression

    return DPCATE(
        epsilon=budget.epsilon,
        delta=budget.delta,
        bounds=dp_cate(1, 12, 0).bounds,
        learner="R",
        stage2="linear",
        model_regression=LinearRegression(),
        model_propensity=LogisticRegression(),
    )


ATTACKS = (
    Attack(
        name="dp_cate_forest",
        mechanism="papers.DPCATE",
        title="A forest remembers the record that lies where it is asked; the noise is that of a mean.",
        setting=f"Dataset 1, {N:,} records, {QUERIES} queries, the paper's networks and forest, R-learner. Inferred: "
        "the outcome's range, and ten starts of the search. Each query has a record of its own, which the claim "
        "allows.",
        budget=Budget(epsilon=1.0, delta=1e-5),
        trials=12,
        make=_make_forest,
        run_=forest,
    ),
    Attack(
        name="dp_cate_identical_queries",
        mechanism="papers.DPCATE",
        title="300 answers to one query have independent noise, which averages out.",
        setting=f"Dataset 1's generator, one query in a corner, {QUERIES} times; linear regression in both stages. "
        f"Closed form: {N:,} records, as in the paper; simulated: {FEW}, with covariates "
        "in the middle half of their ranges, so that it can be fitted a thousand times.",
        budget=Budget(epsilon=1.0, delta=1e-5),
        trials=600,
        chosen="which record differs, and how far the others lie from the ends",
        make=_make_linear,
        run_=identical_queries,
    ),
)
