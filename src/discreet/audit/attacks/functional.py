"""DP-CATE for functions: a sensitivity whose power of the bandwidth is not that of its own proof.

Schröder et al., Theorem 2: (sqrt(2 pi) h)^-q where the kernel's own supremum gives (sqrt(2 pi) h)^(-q/2).
"""

from __future__ import annotations

import math
from dataclasses import replace
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
from discreet.datasets import dp_cate
from discreet.papers import require_learners
from discreet.papers.dp_cate.function import DPCATEFunction
from discreet.privacy.budget import Budget

N = 600


def bandwidth(estimator: Any, run: Run) -> AuditResult:
    """A record of the half whose models are private moves the function by far more than its noise."""
    study = dp_cate(2, N, 78_000_000 + run.random_state)
    fixed = with_bounds(estimator, study.bounds, random_state=run.random_state)
    claimed = claimed_budget(fixed)
    low, high = study.bounds.outcome
    table = Table(study.Y, study.T, study.X)
    # The last record belongs to the second half, which the function is fitted to.
    plain = replace(table.record(N - 1), x=(0.5,) * study.bounds.p, t=0.0)
    worlds = [table.with_record(N - 1, replace(plain, y=end)) for end in (low, high)]
    query = np.full((1, study.bounds.p), 0.5)
    functions = [fitted(fixed, world).secret_ for world in worlds]
    values = [float(each._function(query)[0]) for each in functions]
    sd = max(each._r for each in functions) * math.sqrt(functions[0]._function.kernel.height)
    mu, epsilon = shift_epsilon(abs(values[0] - values[1]), sd, claimed.delta or 0.0)
    worst = "a record in the middle of all covariates, its outcome at either end of its range"
    claim = Claim(estimator=fixed, attack="functional_bandwidth", budget=claimed)
    closed = judged(
        claim,
        "closed form",
        LowerBounds(epsilon=epsilon),
        worst=worst,
        notes=(f"one answer moves by {mu:.3g} times its noise.",),
        picture=two_normals(min(mu, 20.0), 1.0, 1.0),
    )

    def answer(world: Table) -> dict[str, float]:
        return {"answer": float(fitted(fixed, world).effect(query)[0])}

    simulated = by_black_box(
        claim,
        (lambda: answer(worlds[0]), lambda: answer(worlds[1])),
        run,
        worst=worst,
        notes=("seen: one answer.",),
    )
    return with_parts(simulated, closed)


def _make(budget: Budget) -> DPCATEFunction:
    require_learners("this attack")
    from sklearn.linear_model import LinearRegression, LogisticRegression

    return DPCATEFunction(
        epsilon=budget.epsilon,
        delta=budget.delta,
        bounds=dp_cate(2, 12, 0).bounds,
        penalty="mean",
        scaling="lemma 3",
        split="public",
        model_regression=LinearRegression(),
        model_propensity=LogisticRegression(),
    )


ATTACKS = (
    Attack(
        name="functional_bandwidth",
        mechanism="papers.DPCATEFunction",
        title="With 30 covariates the stated sensitivity falls short of the true one by a power of the bandwidth.",
        setting=f"Dataset 2 (30 covariates), n = {N:,}, Lemma 3's kernel and noise (18), λ = 1. Inferred: "
        "scikit-learn's usual bandwidth, as none is given; the first stage is trained on a half that counts as public.",
        budget=Budget(epsilon=1.0, delta=1e-5),
        trials=100,
        make=_make,
        run_=bandwidth,
    ),
)
