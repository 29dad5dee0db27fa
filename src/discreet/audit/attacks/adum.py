"""ADUM: noise for the length of the outcome's range, where a record adds its whole outcome to a sum.

Betlei et al., Algorithm 1, with D_y read as "range".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.audit._neighbours import Table
from discreet.audit.attacks.base import Attack, Claim, LowerBounds, Run, by_black_box, judged, with_bounds, with_parts
from discreet.audit.mechanism import claimed_budget, fitted
from discreet.audit.result import AuditResult
from discreet.data.bounds import Bounds
from discreet.papers.adum.estimator import ADUM
from discreet.privacy.budget import Budget
from discreet.testing import frozen_noise

_BOUNDS = Bounds(outcome=(10.0, 11.0), covariates=[(0.0, 1.0)])
_N = 20


def range_for_max(estimator: Any, run: Run) -> AuditResult:
    """A record with an outcome of 11 joins a cell whose noise is made for sums that move by 1."""
    fixed = with_bounds(estimator, _BOUNDS, by={0: 4})
    claimed = claimed_budget(fixed)
    many = Table(np.full(_N, 11.0), np.arange(_N) % 2.0, np.full((_N, 1), 0.3))
    few = Table(many.y[:-1], many.t[:-1], many.x[:-1])
    relation = fixed.neighbours
    if relation == "replace-one":
        # From another cell: the sums of both move.
        x = many.x.copy()
        x[-1] = 0.9
        few = Table(many.y, many.t, x)
    with frozen_noise():
        one, other = (fitted(fixed, table).release_ for table in (few, many))
    moved = (
        np.abs(other.sums - one.sums).sum() / one.sum_scale,
        np.abs(other.counts - one.counts).sum() / one.count_scale,
    )
    worst = "a record with an outcome of 11, and none" if relation == "add-remove" else "a record that changes its cell"
    claim = Claim(estimator=fixed, attack="adum_range_for_max", budget=claimed, neighbours=relation)
    closed = judged(
        claim,
        "closed form",
        LowerBounds(epsilon=float(sum(moved))),
        worst=worst,
        notes=("Laplace noise: epsilons of the sums and of the counts add up, and are reached in their tails.",),
        picture={"kind": "laplace", "shift": float(moved[0])},
    )
    cell = int(np.argmax(np.abs(other.sums - one.sums).max(axis=1)))
    arm = int(np.argmax(np.abs(other.sums - one.sums)[cell]))

    def noisy_sum(table: Table) -> dict[str, float]:
        return {"sum": float(fitted(fixed, table).release_.sums[cell, arm])}

    simulated = by_black_box(
        claim,
        (lambda: noisy_sum(few), lambda: noisy_sum(many)),
        run,
        worst=worst,
        notes=("seen: the noisy sum of the record's own cell.",),
    )
    return with_parts(simulated, closed)


def _make(budget: Budget) -> ADUM:
    return ADUM(epsilon=budget.epsilon, bounds=_BOUNDS, by={0: 4}, neighbours="add-remove", calibration="published")


ATTACKS = (
    Attack(
        name="adum_range_for_max",
        mechanism="papers.ADUM",
        title="Noise for the outcome's range, where a record adds its whole outcome to a sum.",
        setting='Outcomes in [10, 11], four cells, add-remove, as published. The text says "range"; with the largest '
        "absolute outcome in its place the mechanism has a proof.",
        budget=Budget(epsilon=1.0),
        trials=1_500,
        make=_make,
        run_=range_for_max,
    ),
)
