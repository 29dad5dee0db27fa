"""PrivATE: a width that contains a sensitivity without noise, and an estimate that follows few treated records.

Schröder, Hartenstein and Feuerriegel: Theorems 4.3, 4.5 and 4.6, in the setting of their Table 1.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from discreet.audit._lower_bounds import Censored, Law, least_delta, least_epsilon
from discreet.audit._neighbours import Table
from discreet.audit.attacks.base import (
    Attack,
    Claim,
    LowerBounds,
    Run,
    by_black_box,
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
from discreet.datasets import Study, private_ci
from discreet.papers import require_learners
from discreet.papers.common.arrays import gather
from discreet.papers.private_ate.equations import Exact, Parts
from discreet.papers.private_ate.estimator import PrivATE
from discreet.privacy.budget import Budget

N = 3_000
# The noise falls with the number of records, and what one treated record moves does not.
MANY = 30_000
# What of the claimed budget the estimate gets in Table 1; the rest is left for the variance.
ESTIMATE_SHARE = 0.9
_STUDY_SEED = 31_000_000


def few_treated(n: int, treated: int, seed: int) -> Study:
    """Records of Dataset 1, most of whose treated are left out; treated ones come first."""
    # At least a third of the records are controls.
    study = private_ci(1, 4 * n, seed)
    places = [np.flatnonzero(arm == study.T) for arm in (1.0, 0.0)]
    chosen = np.concatenate([places[0][:treated], places[1][: n - treated]])
    return replace(study, X=study.X[chosen], T=study.T[chosen], Y=study.Y[chosen])


def with_first(study: Study, outcome: float) -> Study:
    """One of two neighbours: the outcome of the first treated record lies at an end of its range."""
    y = study.Y.copy()
    y[np.argmax(study.T)] = outcome
    return replace(study, Y=y)


def width_law(exact: Exact, parts: Parts) -> Censored:
    """The law of the root of sigma^2_DP / n + r^2, which every published width is a multiple of: (11) and (16)."""
    r = exact.estimate_noise(parts.epsilon1, parts.delta1)
    sd = exact.variance_noise(parts.epsilon2, parts.delta2)
    most = sqrt(max(0.0, exact.sigma2 + 8 * sd) / exact.n + r**2)

    def inverse(width: Float) -> Float:
        return np.asarray(exact.n * (width**2 - r**2))

    return Censored(exact.sigma2, sd, r, inverse, most)


def width_delta(one: Exact, other: Exact, parts: Parts, epsilon: float) -> float:
    """A delta that the width alone proves: thresholds between the two smallest widths are tried, among others."""
    laws = width_law(one, parts), width_law(other, parts)
    low, high = sorted(law.least for law in laws)
    levels = np.unique(np.concatenate([np.linspace(low, high, 101), np.linspace(low, laws[0].most, 2_001)]))
    return least_delta(*laws, epsilon, levels)


def _exact(estimator: Any, study: Study) -> Exact:
    rows = gather(ArrayRecords.of(study.Y, study.T, study.X, bounds=study.bounds))
    found: Exact = estimator._exact(rows, estimator._surfaces(rows, claimed_budget(estimator))[0])
    return found


def _pair(study: Study) -> tuple[Study, Study]:
    low, high = study.bounds.outcome
    return with_first(study, low), with_first(study, high)


def width(estimator: Any, run: Run) -> AuditResult:
    """The smallest width that can be published is gamma's, and gamma is computed from the records."""
    study = private_ci(1, N, _STUDY_SEED + run.random_state)
    fixed = with_bounds(estimator, study.bounds, random_state=run.random_state)
    claimed = claimed_budget(fixed)
    one, other = (_exact(fixed, each) for each in _pair(study))
    delta = width_delta(one, other, fixed._parts(claimed), claimed.epsilon)
    claim = Claim(estimator=fixed, attack="private_ci_width", budget=claimed)
    closed = judged(
        claim,
        "closed form",
        LowerBounds(epsilon=0.0, delta=delta),
        worst="the outcome of one treated record, at either end of its range",
        notes=(
            f"gamma differs by {100 * abs(other.gamma / one.gamma - 1):.2g} % between the neighbours; the starting "
            "points of the search are fixed.",
        ),
        picture=_atoms(one, other, fixed._parts(claimed)),
    )
    rng, tables = rng_of(run.random_state), [Table(each.Y, each.T, each.X) for each in _pair(study)]

    def half_width(table: Table) -> dict[str, float]:
        made = fitted(with_bounds(fixed, study.bounds, random_state=int(rng.randint(2**31 - 1))), table)
        uncertainty = made.release_.uncertainty
        return {"width": sqrt(uncertainty.sampling**2 + uncertainty.privacy**2)}

    simulated = by_black_box(
        claim,
        (lambda: half_width(tables[0]), lambda: half_width(tables[1])),
        run,
        worst="the outcome of one treated record, at either end of its range",
    )
    # Exact, where a few hundred runs leave a margin.
    return with_parts(closed, simulated)


def _atoms(one: Exact, other: Exact, parts: Parts) -> dict[str, Any]:
    """Laws of the width as figures show them."""
    laws = width_law(one, parts), width_law(other, parts)
    low, high = min(law.least for law in laws), max(law.most for law in laws)
    levels = np.linspace(low - 0.02 * (high - low), high, 400)
    shares = [np.exp(law.log_above(levels, -1.0)).tolist() for law in laws]
    return {"kind": "shares", "levels": levels.tolist(), "one": shares[0], "other": shares[1]}


def few(estimator: Any, run: Run) -> AuditResult:
    """One treated record decides the regression of its arm, while the noise falls with the number of all records."""
    # Kernel ridge regression takes the square of the number of records in memory.
    n = N if estimator.model_regression is None else MANY
    study = few_treated(n, 1, _STUDY_SEED + 500 + run.random_state)
    fixed = with_bounds(estimator, study.bounds, random_state=run.random_state)
    claimed = claimed_budget(fixed)
    parts = fixed._parts(claimed)
    found = [_exact(fixed, each) for each in _pair(study)]
    laws = [Law.normal(each.tau, each.estimate_noise(parts.epsilon1, parts.delta1)) for each in found]
    moved, sds = abs(found[0].tau - found[1].tau), [float(law.sds[0]) for law in laws]
    claim = Claim(estimator=fixed, attack="private_ci_few_treated", budget=claimed)
    closed = judged(
        claim,
        "closed form",
        LowerBounds(
            epsilon=least_epsilon(laws[0], laws[1], claimed.delta or 0.0),
            delta=least_delta(laws[0], laws[1], claimed.epsilon),
        ),
        worst="the outcome of the only treated record, at either end of its range",
        notes=(f"the estimate moves by {moved / sds[0]:.3g} times its noise; the starting points are fixed.",),
        picture=two_normals(moved, sds[0], sds[1]),
    )
    rng, tables = rng_of(run.random_state), [Table(each.Y, each.T, each.X) for each in _pair(study)]

    def estimate(table: Table) -> dict[str, float]:
        made = fitted(with_bounds(fixed, study.bounds, random_state=int(rng.randint(2**31 - 1))), table)
        return {"estimate": made.ate_}

    simulated = by_black_box(
        claim,
        (lambda: estimate(tables[0]), lambda: estimate(tables[1])),
        run,
        worst=closed.worst,
    )
    # No number of runs that can be waited for counts so rare an event: the closed form says more.
    return with_parts(closed, simulated)


def _make_width(budget: Budget) -> PrivATE:
    return PrivATE(
        epsilon=budget.epsilon,
        delta=budget.delta,
        bounds=private_ci(1, 12, 0).bounds,
        nuisance="kernel",
        epsilon1=ESTIMATE_SHARE * budget.epsilon,
        delta1=ESTIMATE_SHARE * (budget.delta or 0.0),
    )


def _make_few(budget: Budget) -> PrivATE:
    require_learners("this attack")
    from sklearn.linear_model import LogisticRegression, Ridge

    return PrivATE(
        epsilon=budget.epsilon,
        delta=budget.delta,
        bounds=private_ci(1, 12, 0).bounds,
        model_regression=Ridge(),
        model_propensity=LogisticRegression(),
    )


ATTACKS = (
    Attack(
        name="private_ci_width",
        mechanism="papers.PrivATE",
        title="Where the noisy variance is truncated at zero the width shows gamma without noise.",
        setting=f"Table 1: Dataset 1, n = {N:,}, kernel ridge and logistic regression. Inferred: ten starts of the "
        "search.",
        budget=Budget(epsilon=0.5, delta=1e-5),
        trials=300,
        make=_make_width,
        run_=width,
    ),
    Attack(
        name="private_ci_few_treated",
        mechanism="papers.PrivATE",
        title="The influence function neglects the training of the regressions, which one treated record decides.",
        setting=f"Dataset 1's generator, n = {MANY:,}, of which one is treated; ridge and logistic regression.",
        budget=Budget(epsilon=0.5, delta=1e-5),
        trials=100,
        chosen="the number of records",
        make=_make_few,
        run_=few,
    ),
)
