"""What the DP-CATE paper compares itself with (supplement E): DP-EBM, and k-anonymity."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from discreet.bounds import Bounds, Range
from discreet.columns import Float
from discreet.errors import MissingExtra
from discreet.papers.anonymity import anonymised_effects
from discreet.reproduce.dp_cate_runs import BUDGETS, DELTA, Split, model_of, rms
from discreet.reproduce.targets import Row

KS = (2, 10, 50, 100)
ANONYMOUS_STAGES = ("forest", "nn")


def anonymous(split: Split, replication: int) -> Row:
    """Errors of the R-learner after Mondrian, for each k."""
    errors: Row = {}
    for stage in ANONYMOUS_STAGES:
        model = model_of(split, "R", replication).set_params(stage2=stage)
        errors[stage] = {
            str(k): rms(anonymised_effects(model, split.Y, split.T, X=split.X, queries=split.queries, k=k), split.truth)
            for k in KS
        }
    return errors


def boosted(split: Split, replication: int) -> Row:
    """Errors of a DR-learner of private boosting machines on three disjoint thirds, at each budget."""
    return {"ebm": {f"{e:g}": rms(_boosted(split, e, replication), split.truth) for e in BUDGETS}}


def _boosted(split: Split, epsilon: float, replication: int) -> Float:
    """Niu et al.: private first stages and a private second stage, each on records of its own with the whole budget.

    Targets are centred and pseudo-outcomes clipped to twice the outcome's width, as their noise grows with the range.
    """
    bounds = split.bounds
    first, second, third = (np.arange(len(split.Y)) % 3 == part for part in range(3))
    machine = _machine("DPExplainableBoostingClassifier", epsilon, bounds, replication)
    _train(machine, split.X[first], split.T[first].astype(int))
    pi = np.clip(machine.predict_proba(split.X[third])[:, 1], *bounds.propensity)
    arms = []
    for arm in (0.0, 1.0):
        own = second & (arm == split.T)
        arms.append(_regression(epsilon, bounds, replication, split.X[own], split.Y[own], *_range(bounds)))
    mu0, mu1 = (arm(split.X[third]) for arm in arms)
    t, y = split.T[third], split.Y[third]
    pseudo = (t - pi) / (pi * (1.0 - pi)) * (y - (1.0 - pi) * mu1 - pi * mu0)
    widest = 2.0 * bounds.outcome_width
    pseudo = np.clip(pseudo, -widest, widest)
    effect = _regression(epsilon, bounds, replication, split.X[third], pseudo, 0.0, widest)
    return np.asarray(effect(split.queries))


def _range(bounds: Bounds) -> tuple[float, float]:
    return bounds.outcome_middle, bounds.outcome_width / 2.0


def _regression(
    epsilon: float, bounds: Bounds, replication: int, x: Float, y: Float, middle: float, half: float
) -> Any:
    machine = _machine(
        "DPExplainableBoostingRegressor",
        epsilon,
        bounds,
        replication,
        privacy_target_min=-half,
        privacy_target_max=half,
    )
    _train(machine, x, y - middle)
    return lambda at: machine.predict(at) + middle


def _train(machine: Any, x: Float, y: Any) -> None:
    with warnings.catch_warnings():
        # It is told a seed, which it warns of: this is a simulation.
        warnings.filterwarnings("ignore", message="Privacy violation", category=UserWarning)
        machine.fit(x, y)


def _machine(name: str, epsilon: float, bounds: Bounds, replication: int, **given: Any) -> Any:
    try:
        import interpret.privacy as privacy
    except ImportError:
        raise MissingExtra("DP-EBM needs interpret: pip install 'discreet[ebm]'.") from None
    ranges = {j: (spec.low, spec.high) for j, spec in enumerate(bounds.columns) if isinstance(spec, Range)}
    return getattr(privacy, name)(
        epsilon=epsilon,
        delta=DELTA,
        composition="gdp",
        feature_types=["continuous"] * bounds.p,
        privacy_bounds=ranges,
        random_state=replication,
        n_jobs=1,
        **given,
    )
