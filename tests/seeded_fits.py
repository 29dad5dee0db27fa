"""A few seeded fits of one small study, so that no change of where records live changes a number."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from discreet import (
    ATE,
    ATO,
    ATT,
    CATE,
    Bounds,
    DifferenceInDifferences,
    DifferenceInMeans,
    Policy,
    PolicyValue,
    Uplift,
)
from discreet.papers import ADUM
from discreet.testing import record_sums, seeded_noise

BOUNDS = Bounds(
    outcome=(-3, 5),
    covariates={"age": (18, 90), "ward": ["a", "b", "c"], "dose": (0, 10)},
    propensity=(0.1, 0.9),
)
POLICY = Policy.declare(bounds=BOUNDS, by={"age": 3, "ward": "levels"}, treated=[0, 0, 1, 0, 1, 1, 1, 1, 1], cost=0.5)


def study(n: int = 6_000, seed: int = 7) -> pd.DataFrame:
    """Records of an observational study."""
    rng = np.random.default_rng(seed)
    age, dose = rng.uniform(15, 95, n), rng.integers(0, 11, n)
    ward = rng.choice(np.array(["a", "b", "c"]), n)
    e = np.clip(0.2 + 0.6 * (age - 15) / 80, 0.1, 0.9)
    t = (rng.random(n) < e).astype(np.int64)
    y = 0.02 * age + 0.1 * dose + (ward == "b") + t * (1 + 0.01 * age) + rng.normal(0, 0.5, n) - 2
    return pd.DataFrame({"y": y, "t": t, "age": age, "ward": ward, "dose": dose, "e": e})


# Wards as arms: the same table serves for several arms too.
WARDS = Bounds(outcome=(-3, 5), covariates={"age": (18, 90), "dose": (0, 10)}, treatment=["a", "b", "c"])
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "ate": lambda: ATE(epsilon=1, delta=1e-6, bounds=BOUNDS),
    "ate, add-remove": lambda: ATE(epsilon=1, delta=1e-6, bounds=BOUNDS, neighbours="add-remove"),
    "ate, known": lambda: ATE(epsilon=1, delta=1e-6, bounds=BOUNDS, propensity="e"),
    "att": lambda: ATT(epsilon=1, delta=1e-6, bounds=BOUNDS),
    "ato": lambda: ATO(epsilon=1, delta=1e-6, bounds=BOUNDS),
    "means": lambda: DifferenceInMeans(epsilon=1, bounds=BOUNDS),
    "did": lambda: DifferenceInDifferences(epsilon=1, delta=1e-6, bounds=BOUNDS),
    "cate": lambda: CATE(epsilon=2, delta=1e-6, bounds=BOUNDS),
    "uplift": lambda: Uplift(epsilon=1, bounds=BOUNDS, by={"age": 8, "ward": "levels"}),
    "uplift, auto": lambda: Uplift(epsilon=1, delta=1e-6, bounds=BOUNDS, by={"age": "auto"}, neighbours="add-remove"),
    "uplift, signed": lambda: Uplift(epsilon=0.01, bounds=BOUNDS, by={"age": 8}, propensity=0.5),
    "uplift, weighted": lambda: Uplift(epsilon=1, bounds=BOUNDS, by={"dose": 5}, propensity="e"),
    "policy value": lambda: PolicyValue(policy=POLICY, epsilon=1, delta=1e-6, bounds=BOUNDS),
    "adum": lambda: ADUM(epsilon=1, bounds=BOUNDS, by={"age": 4, "dose": [0, 3, 10]}),
}
# Columns that estimators take besides those that all do: any number will do for an outcome from before.
FURTHER = {"did": {"before": "e"}}


def fitted(name: str, source: object, /, **options: object) -> tuple[Any, list[np.ndarray]]:
    """The release of a seeded fit, and the exact integer sums of all its rounds."""
    with seeded_noise(3), record_sums() as recorded:
        estimator = ESTIMATORS[name]().fit_table(source, outcome="y", treatment="t", **FURTHER.get(name, {}), **options)
    return estimator.release_, [sums for _, _, sums, _ in recorded]


def headline(release: Any) -> float:
    """One number that depends on every round."""
    if hasattr(release, "estimate"):
        return float(release.estimate)
    if hasattr(release, "coefficients"):
        return float(release.ate() + np.sum(release.coefficients * np.arange(1, len(release.coefficients) + 1)))
    if hasattr(release, "ate"):
        return float(release.ate())
    return float(np.sum(release.effects * np.arange(1, len(release.effects) + 1)))
