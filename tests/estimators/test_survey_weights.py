"""Survey weights: whose average is estimated, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import ATE, ATT, Bounds, DifferenceInMeans, InvalidInput, Release
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-6, 8), covariates={"x": (-2, 2), "z": (-2, 2)}, propensity=(0.05, 0.95), weight=(0, 5))


def study(n: int = 12_000, seed: int = 3) -> pd.DataFrame:
    """People with a large x were hardly sampled, and gain most: by weights the effect is one, without them less."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 2, 6 * n), rng.uniform(-2, 2, 6 * n)
    drawn = 1 / (1 + np.exp(1.0 + 0.8 * x))
    kept = np.flatnonzero(rng.random(6 * n) < drawn)[:n]
    x, z, weight = x[kept], z[kept], np.minimum(0.5 / drawn[kept], 5.0)
    t = (rng.random(len(x)) < 1 / (1 + np.exp(-0.4 * x))).astype(float)
    y = x + 0.5 * z + t * (1 + 0.5 * x) + rng.normal(0, 1, len(x))
    return pd.DataFrame({"y": y, "t": t, "x": x, "z": z, "w": weight})


def fitted(frame: pd.DataFrame, kind: Any = ATE, seed: int = 3, **given: Any) -> Release:
    with seeded_noise(seed):
        estimator = kind(**({"epsilon": 4.0, "delta": 1e-6, "bounds": BOUNDS} | given))
        return estimator.fit(frame["y"], frame["t"], X=frame[["x", "z"]], sample_weight=frame["w"]).release_


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_effect_is_that_on_the_people_whom_records_stand_for(neighbours: str) -> None:
    frame = study()
    release = fitted(frame, neighbours=neighbours)
    truth = float(np.average(1 + 0.5 * frame["x"], weights=frame["w"]))
    low, high = release.interval()
    assert low < truth < high
    without = float(np.mean(1 + 0.5 * frame["x"]))
    assert abs(release.estimate - truth) < 0.5 * abs(without - truth)
    assert release.reference["mean_weight"] == pytest.approx(frame["w"].mean(), rel=0.05)
    assert "survey weights" in release.notes[0]
    assert release.guarantee.proof == "weights.md, ate.md"
    assert sum(release.adjustment["shares"].values()) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_difference_of_means_is_one_of_weighted_means(delta: float | None) -> None:
    frame = study(20_000)
    frame["t"] = (np.random.default_rng(5).random(len(frame)) < 0.5).astype(float)
    frame["y"] = frame["x"] + frame["t"] * (1 + 0.5 * frame["x"])
    release = fitted(frame, DifferenceInMeans, epsilon=8.0, delta=delta, propensity=0.5)
    arms = [frame[frame["t"] == arm] for arm in (0, 1)]
    control, treated = (np.average(arm["y"], weights=arm["w"]) for arm in arms)
    assert release.estimate == pytest.approx(treated - control, abs=0.12)


def test_equal_weights_say_what_none_would_say() -> None:
    frame = study().assign(w=5.0)
    bounds = Bounds(outcome=(-6, 8), covariates={"x": (-2, 2), "z": (-2, 2)}, propensity=(0.05, 0.95))
    with seeded_noise(3):
        plain = ATE(epsilon=4.0, delta=1e-6, bounds=bounds).fit(frame["y"], frame["t"], X=frame[["x", "z"]]).release_
    weighted = fitted(frame)
    assert weighted.estimate == pytest.approx(plain.estimate, abs=2 * plain.uncertainty.se)
    assert weighted.uncertainty.se < 1.1 * plain.uncertainty.se


def test_tables_name_the_column() -> None:
    frame = study(4_000)
    with seeded_noise(3):
        estimator = ATE(epsilon=4.0, delta=1e-6, bounds=BOUNDS)
        release = estimator.fit_table(frame, outcome="y", treatment="t", weight="w").release_
    assert release.estimate == fitted(frame).estimate


def test_bounds_keep_the_largest_weight() -> None:
    assert Bounds.from_toml(BOUNDS.to_toml()) == BOUNDS
    assert BOUNDS.to_dict()["weight"] == {"low": 0.0, "high": 5.0}


@pytest.mark.parametrize("bad", [5.1, -0.1, np.nan, np.inf])
def test_a_weight_outside_its_bound_is_refused(bad: float) -> None:
    frame = study(300)
    frame.loc[7, "w"] = bad
    with pytest.raises(InvalidInput, match="sample_weight must hold a weight within the declared"):
        fitted(frame)


@pytest.mark.parametrize("kind", [ATE, DifferenceInMeans])
def test_weights_without_a_declared_bound_are_refused_and_a_bound_without_weights(kind: Any) -> None:
    frame = study(300)
    with pytest.raises(InvalidInput, match="sample_weight needs Bounds"):
        fitted(frame, kind, bounds=Bounds(outcome=(-6, 8)))
    with pytest.raises(InvalidInput, match="sample_weight is missing"):
        kind(epsilon=1.0, delta=1e-6, bounds=BOUNDS).fit(frame["y"], frame["t"], X=frame[["x", "z"]])


def test_an_arm_that_stands_for_nobody_is_refused() -> None:
    frame = study(300)
    frame.loc[frame["t"] == 1, "w"] = 0.0
    with pytest.raises(InvalidInput, match="All weights of one arm are zero"):
        fitted(frame)


def test_estimators_without_weights_refuse_bounds_that_declare_them() -> None:
    with pytest.raises(InvalidInput, match="ATT takes no survey weights"):
        ATT(epsilon=1.0, delta=1e-6, bounds=BOUNDS).check()


def test_weights_and_missing_outcomes_are_refused_together() -> None:
    frame = study(300)
    with pytest.raises(InvalidInput, match="does not go with missing_outcome"):
        fitted(frame, missing_outcome="adjust")


@pytest.mark.parametrize("given", [{"missing_outcome": "adjust"}, {}])
def test_several_arms_are_refused_with_either(given: Any) -> None:
    several = Bounds(outcome=(0, 1), treatment=["a", "b", "c"], weight=None if given else (0, 5))
    with pytest.raises(InvalidInput, match="are for two arms"):
        ATE(epsilon=1.0, delta=1e-6, bounds=several, **given).check()


@pytest.mark.parametrize("weight", [(1, 5), (0, 0), (0, -1), 5, (0, np.inf)])
def test_ranges_that_are_none_of_weights_are_refused(weight: Any) -> None:
    with pytest.raises(InvalidInput, match="weight: "):
        Bounds(outcome=(0, 1), weight=weight)
