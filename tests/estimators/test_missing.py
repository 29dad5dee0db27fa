"""Missing outcomes: what is estimated, what is said of them, what is refused, and from which sources."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import ATE, Bounds, DifferenceInMeans, InvalidInput, Release
from discreet.estimators.missing.measure import Missing
from discreet.testing import frozen_noise, seeded_noise

BOUNDS = Bounds(outcome=(-6, 8), covariates={"x": (-2, 2), "z": (-2, 2)}, propensity=(0.05, 0.95))


def study(n: int = 6_000, seed: int = 1, lost: bool = True) -> pd.DataFrame:
    """Who drops out depends on x and on the arm; effects grow with x; the average effect is one."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 2, n), rng.uniform(-2, 2, n)
    t = (rng.random(n) < 1 / (1 + np.exp(-0.6 * x))).astype(float)
    y = x + 0.5 * z + t * (1 + 0.5 * x) + rng.normal(0, 1, n)
    there = rng.random(n) < 1 / (1 + np.exp(-(1.4 + 0.9 * x - 0.8 * t)))
    return pd.DataFrame({"y": np.where(there | (not lost), y, np.nan), "t": t, "x": x, "z": z})


def fitted(frame: pd.DataFrame, seed: int = 3, kind: Any = ATE, **given: Any) -> Release:
    with seeded_noise(seed):
        estimator = kind(**({"epsilon": 4.0, "delta": 1e-6, "bounds": BOUNDS, "missing_outcome": "adjust"} | given))
        return estimator.fit(frame["y"], frame["t"], X=frame[["x", "z"]]).release_


def test_the_effect_on_everyone_is_found_where_covariates_say_who_is_missing() -> None:
    frame = study(30_000)
    kept = frame[frame["y"].notna()]
    release = fitted(frame)
    low, high = release.interval()
    assert low < 1.0 < high
    # Among those who stayed it is another one, which an interval without adjustment has.
    some = fitted(kept, missing_outcome="refuse").interval()
    assert some[0] > 1.0
    assert abs(release.estimate - 1.0) < 0.6 * (sum(some) / 2 - 1.0)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_how_many_are_missing_in_each_arm_is_released(neighbours: str) -> None:
    frame = study()
    release = fitted(frame, neighbours=neighbours)
    for arm, name in enumerate(("control", "treated")):
        share = float(frame["y"][frame["t"] == arm].isna().mean())
        assert release.reference[f"missing_share_{name}"] == pytest.approx(share, abs=0.03)
    assert "missing share treated" in release.summary()
    assert "missing at random among people of the same arm with the same declared covariates" in release.notes[0]
    assert release.guarantee.proof == "missing.md, ate.md"
    assert release.n == pytest.approx(len(frame), abs=0 if neighbours == "replace-one" else 100)
    assert release.bounds == BOUNDS


def test_records_without_gaps_are_said_to_have_none_and_intervals_are_about_as_narrow() -> None:
    frame = study(lost=False)
    widths = {
        option: np.median([np.ptp(fitted(frame, seed, missing_outcome=option).interval()) for seed in range(3)])
        for option in ("adjust", "refuse")
    }
    assert widths["adjust"] < 1.05 * widths["refuse"]
    release = fitted(frame)
    assert release.reference["missing_share_treated"] < 0.01
    assert not any(event.name.startswith("observed: ") for event in release.guarantee.events)


def test_shares_of_the_budget_add_up_to_one() -> None:
    release = fitted(study(5_000))
    assert sum(release.adjustment["shares"].values()) == pytest.approx(1.0, abs=1e-9)
    names = [event.name for event in release.guarantee.events]
    assert names[0] == "missing outcomes"
    assert any(name == "observed: treatment moments" for name in names)
    assert names[-1] == "score"


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_difference_of_means_is_that_of_the_observed_in_each_arm(delta: float | None) -> None:
    frame = study(20_000)
    release = fitted(frame, kind=DifferenceInMeans, epsilon=8.0, delta=delta, propensity=0.5)
    seen = frame[frame["y"].notna()]
    means = seen.groupby("t")["y"].mean()
    assert release.estimate == pytest.approx(means[1.0] - means[0.0], abs=0.15)
    assert "people of the same arm." in release.notes[0]
    assert release.design == "observational"


def test_binary_outcomes_and_caps_go_with_it() -> None:
    frame = study(8_000)
    said = np.where(frame["y"].isna(), None, np.where(frame["y"] > 0, "yes", "no"))
    bounds = Bounds(outcome=["no", "yes"], covariates={"x": (-2, 2), "z": (-2, 2)})
    release = fitted(frame.assign(y=said), bounds=bounds)
    assert release.bounds == bounds
    assert release.reference["missing_share_treated"] > 0.1
    capped = fitted(frame, cap=3.0)
    assert capped.cap == 3.0
    assert capped.bounds == BOUNDS
    assert fitted(frame, cap="auto").reference["missing_share_control"] > 0.1


def test_files_say_the_same(tmp_path: Any) -> None:
    release = fitted(study(2_000))
    release.save(tmp_path / "it.json")
    assert Release.load(tmp_path / "it.json") == release


def test_every_source_says_the_same_of_a_missing_outcome(tmp_path: Any) -> None:
    frame = study(3_000)
    table = pa.Table.from_pandas(frame)
    nulls = table.set_column(0, "y", pa.array(frame["y"], from_pandas=True))
    frame.to_csv(tmp_path / "it.csv", index=False)
    frame.to_parquet(tmp_path / "it.parquet")
    sources = {
        "pandas": frame,
        "csv": str(tmp_path / "it.csv"),
        "parquet": str(tmp_path / "it.parquet"),
        "duckdb": duckdb.from_arrow(nulls),
        "polars": pl.from_arrow(table),
        "arrow": nulls,
    }
    expected = fitted(frame)
    for name, source in sources.items():
        with seeded_noise(3):
            estimator = ATE(epsilon=4.0, delta=1e-6, bounds=BOUNDS, missing_outcome="adjust")
            release = estimator.fit_table(source, outcome="y", treatment="t").release_
        assert release.estimate == expected.estimate, name
        assert release.reference == expected.reference, name


def test_text_labels_from_a_table_may_be_missing(tmp_path: Any) -> None:
    frame = study(3_000)
    said = frame.assign(y=np.where(frame["y"].isna(), None, np.where(frame["y"] > 0, "yes", "no")))
    said.to_csv(tmp_path / "it.csv", index=False)
    bounds = Bounds(outcome=["no", "yes"], covariates={"x": (-2, 2), "z": (-2, 2)})
    with frozen_noise():
        estimator = ATE(epsilon=4.0, delta=1e-6, bounds=bounds, missing_outcome="adjust")
        release = estimator.fit_table(tmp_path / "it.csv", outcome="y", treatment="t").release_
    share = float(frame["y"][frame["t"] == 1].isna().mean())
    assert release.reference["missing_share_treated"] == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize("kind", [ATE, DifferenceInMeans])
def test_missing_outcomes_are_refused_unless_it_is_said_what_to_do(kind: Any) -> None:
    with pytest.raises(InvalidInput, match="Y has missing values"):
        fitted(study(200), kind=kind, missing_outcome="refuse")


@pytest.mark.parametrize("kind", [ATE, DifferenceInMeans])
@pytest.mark.parametrize("arm", [0, 1])
def test_an_arm_without_a_single_outcome_is_refused(kind: Any, arm: int) -> None:
    frame = study(500)
    frame.loc[frame["t"] == arm, "y"] = np.nan
    with pytest.raises(InvalidInput, match="All outcomes of one arm are missing"):
        fitted(frame, kind=kind)


@pytest.mark.parametrize("kind", [ATE, DifferenceInMeans])
@pytest.mark.parametrize("given", ["drop", None, True, 1])
def test_another_word_is_refused(kind: Any, given: Any) -> None:
    with pytest.raises(InvalidInput, match="missing_outcome must be 'refuse' or 'adjust'"):
        kind(epsilon=1.0, delta=1e-6, bounds=BOUNDS, missing_outcome=given).check()


def test_a_fill_of_the_outcome_leaves_nothing_to_adjust_for() -> None:
    bounds = Bounds(outcome=(0, 1), outcome_fill=0.0)
    with pytest.raises(InvalidInput, match="leaves nothing for outcome_fill"):
        ATE(epsilon=1.0, delta=1e-6, bounds=bounds, missing_outcome="adjust").check()


def test_probabilities_that_differ_need_models() -> None:
    with pytest.raises(InvalidInput, match="propensity must be one number, or left out"):
        DifferenceInMeans(epsilon=1.0, bounds=BOUNDS, missing_outcome="adjust", propensity="e").check()


def test_infinite_outcomes_are_refused_as_ever() -> None:
    frame = study(200)
    frame.loc[3, "y"] = np.inf
    with pytest.raises(InvalidInput, match="Y has infinite values"):
        fitted(frame)


def test_the_more_are_missing_the_more_is_asked_about_them() -> None:
    def missing(share: float) -> Missing:
        return Missing(observed=1.0, share=share, noise=0.001, by_arm=((share, 0.0), (share, 0.0)))

    parts = [missing(share).part for share in (0.01, 0.1, 0.3, 0.9)]
    assert parts == sorted(parts)
    assert parts[-1] == 0.4
    assert missing(0.005).few
    assert not missing(0.02).few
