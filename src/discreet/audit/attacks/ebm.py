"""DP-EBM of the library interpret, called as its documentation says, with all bounds given.

Noise is made for the width of the target's range, while boosting starts at 0; and the largest weight is read off the
records. `papers.DRLearner(base="ebm")` and its siblings centre targets and declare weights, and are not attacked here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.audit.attacks.base import Attack, Claim, Run, by_black_box, with_parts
from discreet.audit.mechanism import Mechanism
from discreet.audit.result import AuditResult
from discreet.data._arrays import Float
from discreet.papers.meta_learners.ebm import require
from discreet.privacy.budget import Budget
from discreet.privacy.noise import published_gaussian

N = 500
# The default number of rounds and learning rate of interpret, which the attacker knows.
_ROUNDS, _RATE = 300, 0.01
_TARGET = (100.0, 101.0)
_NAME = "interpret.DPExplainableBoostingRegressor"
_SEEDS = 2**31 - 1
_HEAVY = 30.0


def _ebm(budget: Budget, target: tuple[float, float], **given: Any) -> Any:
    from interpret.privacy import DPExplainableBoostingRegressor

    return DPExplainableBoostingRegressor(
        epsilon=budget.epsilon,
        delta=budget.delta,
        composition="gdp",
        feature_types=["continuous"],
        privacy_bounds={0: (0.0, 1.0)},
        privacy_target_min=target[0],
        privacy_target_max=target[1],
        # One seed for each run, drawn from the run's own noise.
        random_state=int(abs(float(published_gaussian(1, _SEEDS)[0]))) % _SEEDS,
        n_jobs=1,
        **given,
    )


def _learnt(ebm: Any, x: Float, y: Float, weights: Float | None = None) -> Any:
    with warnings.catch_warnings():
        # A fixed seed is a privacy violation: here each run has its own, which the attacker does not use.
        warnings.simplefilter("ignore", UserWarning)
        return ebm.fit(x, y, sample_weight=weights)


def _placed(ebm: Any, value: float) -> tuple[float, float]:
    """Prediction at a value, and the noisy weight of its bin: both are published."""
    place = 1 + int(np.searchsorted(ebm.bins_[0][0], value, side="right"))
    score = float(np.ravel(ebm.intercept_)[0]) + float(ebm.term_scores_[0][place])
    return score, float(ebm.bin_weights_[0][place])


def implied_count(prediction: float, weight: float) -> float:
    """How many records there must be in a bin for boosting to get so far: weight / rate (1 - (1 - s)^(1 / rounds))."""
    left = max(1e-9, 1.0 - prediction / float(np.mean(_TARGET)))
    return float(weight / _RATE * (1.0 - left ** (1.0 / _ROUNDS)))


def offset(budget: Budget) -> Mechanism:
    """All targets between 100 and 101; one record lies left or right."""
    y = np.full(N, np.mean(_TARGET))

    def run(moved: float) -> dict[str, float]:
        x = np.zeros((N, 1))
        x[: N // 2] = 1.0
        x[0] = moved
        # Four bins: missing, unseen, and one on each side.
        ebm = _learnt(_ebm(budget, _TARGET, max_bins=4), x, y)
        left, right = (implied_count(*_placed(ebm, value)) for value in (0.0, 1.0))
        return {"left less right": left - right}

    return Mechanism(run=run, epsilon=budget.epsilon, delta=budget.delta, pair=(0.0, 1.0), name=_NAME)


def centred(budget: Budget) -> Mechanism:
    """The same record where targets lie at an end of a range around 0, for which the noise is made."""
    y = np.full(N, 0.5)

    def run(moved: float) -> dict[str, float]:
        x = np.zeros((N, 1))
        x[: N // 2] = 1.0
        x[0] = moved
        ebm = _learnt(_ebm(budget, (-0.5, 0.5), max_bins=4), x, y)
        (left, weight), (right, other) = _placed(ebm, 0.0), _placed(ebm, 1.0)
        return {"left less right": left - right, "sums": left * weight - right * other, "weights": weight - other}

    return Mechanism(run=run, epsilon=budget.epsilon, delta=budget.delta, pair=(0.0, 1.0), name=_NAME)


def heavy(budget: Budget) -> Mechanism:
    """One record has a weight of 30, or of 1 like all others."""
    x = (np.arange(N) + 0.5)[:, None] / N
    y = np.zeros(N)

    def run(weight: float) -> dict[str, float]:
        weights = np.ones(N)
        weights[0] = weight
        ebm = _learnt(_ebm(budget, (-0.5, 0.5)), x, y, weights)
        return {
            "dispersion": float(np.std(ebm.term_scores_[0][1:-1])),
            "stated noise": float(ebm.noise_scale_boosting_),
        }

    return Mechanism(run=run, epsilon=budget.epsilon, delta=budget.delta, pair=(1.0, _HEAVY), name=_NAME)


def _attack(name: str, worst: str, seen: str, control: Callable[[Budget], Mechanism] | None = None) -> Any:
    def run_(mechanism: Mechanism, run: Run) -> AuditResult:
        require()
        budget = Budget(epsilon=mechanism.epsilon, delta=mechanism.delta)
        simulated = _simulated(mechanism, name, run, budget, worst, seen)
        if control is None:
            return simulated
        few = run._replace(trials=max(2, run.trials // 3))
        around_zero = "the control: a target range around 0"
        return with_parts(
            simulated, _simulated(control(budget), name, few, budget, around_zero, "seen: all that is published.")
        )

    return run_


def _simulated(mechanism: Mechanism, name: str, run: Run, budget: Budget, worst: str, seen: str) -> AuditResult:
    one, other = mechanism.pair
    worlds = (lambda: mechanism.run(one), lambda: mechanism.run(other))
    claim = Claim(estimator=mechanism, attack=name, budget=budget)
    return by_black_box(
        claim,
        worlds,
        run,
        worst=worst,
        notes=(seen,),
    )


ATTACKS = (
    Attack(
        name="ebm_offset_target",
        mechanism=_NAME,
        title="Noise is made for the width of the target's range, while boosting starts at 0.",
        setting="interpret's defaults, one covariate in two bins, targets and bounds in [100, 101]. The control "
        "has targets at an end of [-0.5, 0.5], as `papers.DRLearner(base='ebm')` passes them.",
        budget=Budget(epsilon=1.0, delta=1e-5),
        trials=1_000,
        chosen="the number of runs",
        make=offset,
        run_=_attack(
            "ebm_offset_target",
            "a record that moves from one bin to the other",
            "seen: predictions and noisy bin weights, as the number of records that they imply.",
            centred,
        ),
    ),
    Attack(
        name="ebm_max_weight",
        mechanism=_NAME,
        title="The noise grows with the largest weight, which is read off the records.",
        setting=f"interpret's defaults, targets of 0 in [-0.5, 0.5], one weight of {_HEAVY:g} among weights of 1; "
        "there is no argument to declare a bound on weights.",
        budget=Budget(epsilon=1.0, delta=1e-5),
        trials=120,
        make=heavy,
        run_=_attack(
            "ebm_max_weight",
            f"a record with a weight of {_HEAVY:g}, or of 1",
            "seen: how far released scores lie apart, and the noise scale that the fitted object states.",
        ),
    ),
)
