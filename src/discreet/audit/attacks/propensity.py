"""Private propensity scores: dividing by the largest norm among the records moves all of them at once.

Lee et al., Definition 2; the authors' notebooks scale covariates by the data's own largest norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.audit._lower_bounds import shift_epsilon
from discreet.audit._neighbours import Table
from discreet.audit.attacks.base import (
    Attack,
    Claim,
    LowerBounds,
    Run,
    by_black_box,
    judged,
    two_normals,
    with_bounds,
    with_parts,
)
from discreet.audit.mechanism import claimed_budget, fitted
from discreet.audit.result import AuditResult
from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.datasets import propensity_scores
from discreet.papers.common.arrays import Rows, split
from discreet.papers.propensity.estimator import PropensityIPTW
from discreet.papers.propensity.logistic import minimise, output_sd
from discreet.privacy.budget import Budget

M, D = 1_000, 25
# The replaced record is so many times as long as all others.
LONGER = 10.0


def data_norm(estimator: Any, run: Run) -> AuditResult:
    """One long record shrinks all others, and with them the weights."""
    study = propensity_scores(2.0, 52_000_000 + run.random_state, n=M + 200)
    x = np.asarray(study.X, dtype=np.float64)
    reach = float(np.linalg.norm(x, axis=1).max())
    bounds = Bounds(outcome=study.bounds.outcome, covariates=[(-LONGER * reach, LONGER * reach)] * D)
    fixed = with_bounds(estimator, bounds, m=M, shuffle=False, norm_bound="data")
    claimed = claimed_budget(fixed)
    one = Table(study.Y, study.T, x)
    long = x.copy()
    long[0] *= LONGER * reach / np.linalg.norm(long[0])
    other = Table(study.Y, study.T, long)
    weights = [_weights(fixed, table) for table in (one, other)]
    sd = output_sd(claimed.epsilon, claimed.delta or 0.0, M, fixed.lam)
    moved = weights[1] - weights[0]
    mu, epsilon = shift_epsilon(moved, sd, claimed.delta or 0.0)
    worst = f"a training record, and one in its place that is {LONGER:g} times as long as any other"
    claim = Claim(estimator=fixed, attack="propensity_data_norm", budget=claimed)
    closed = judged(
        claim,
        "closed form",
        LowerBounds(epsilon=epsilon),
        worst=worst,
        notes=(f"the weights move by {mu:.3g} times their noise.",),
        picture=two_normals(mu, 1.0, 1.0),
    )
    along = moved / np.linalg.norm(moved)

    def released(table: Table) -> dict[str, float]:
        return {"weights": float(np.array(fitted(fixed, table).release_.weights) @ along)}

    simulated = by_black_box(
        claim,
        (lambda: released(one), lambda: released(other)),
        run,
        worst=worst,
        notes=("seen: the weights, along the line on which they move.",),
    )
    return with_parts(simulated, closed)


def _weights(estimator: Any, table: Table) -> Float:
    rows = Rows.of(table.y, table.t, table.x, estimator.bounds)
    training, _ = split(rows.in_ball(estimator._radius(rows)), estimator.m, estimator.shuffle, estimator.random_state)
    return minimise(training.x, training.t, estimator.lam, estimator.gradient_norm).w


def _make(budget: Budget) -> PropensityIPTW:
    bounds = Bounds(outcome=(-6.0, 8.0), covariates=[(-1.0, 1.0)] * D)
    return PropensityIPTW(
        epsilon=budget.epsilon, delta=budget.delta, bounds=bounds, calibration="published", norm_bound="data"
    )


ATTACKS = (
    Attack(
        name="propensity_data_norm",
        mechanism="papers.PropensityIPTW",
        title="Covariates are divided by the largest norm that occurs: one long record shrinks all others.",
        setting=f"The paper's synthetic data, m = {M:,}, λ = 0.1, output perturbation. The text assumes norms of at "
        "most 1 and divides by the largest to get there; a public bound on the norm would mend it.",
        budget=Budget(epsilon=0.5, delta=1e-6),
        trials=1_500,
        make=_make,
        run_=data_norm,
    ),
)
