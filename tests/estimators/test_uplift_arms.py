"""Effects by segment of several arms: what is released, intervals, refusals, and the same from every source."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dc
from discreet import ArmSegmentsRelease, Bounds, InvalidInput, Uplift
from discreet.releases.parts.charts import arm_segments
from discreet.testing import record_sums, seeded_noise

ARMS = ["placebo", "low", "high"]
BOUNDS = Bounds(outcome=(-4, 6), treatment=ARMS, covariates={"age": (18, 90), "sex": ["f", "m"]})
BY = {"age": [18, 54, 90], "sex": "levels"}
# Effects of the arms among the young and the old.
EFFECTS = {"low": (0.0, 0.5), "high": (0.3, 1.5)}


def study(n: int = 6_000, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, sex = rng.uniform(18, 90, n), rng.choice(np.array(["f", "m"]), n)
    arm = rng.choice(np.array(ARMS), n, p=[0.5, 0.2, 0.3])
    effect = np.select([arm == "low", arm == "high"], [np.where(age < 54, *EFFECTS[a]) for a in ("low", "high")], 0.0)
    return pd.DataFrame({"y": effect + rng.normal(0, 1, n), "t": arm, "age": age, "sex": sex})


def uplift(**given: Any) -> Uplift:
    return Uplift(**({"epsilon": 2.0, "bounds": BOUNDS, "by": BY} | given))


def fitted(estimator: Uplift, frame: pd.DataFrame | None = None, seed: int = 3) -> Any:
    frame = study() if frame is None else frame
    with seeded_noise(seed):
        return estimator.fit_table(frame, outcome="y", treatment="t").release_


def test_every_two_arms_have_effects_in_every_segment_and_the_truth_is_in_their_intervals() -> None:
    release = fitted(uplift(epsilon=5.0), study(40_000))
    rows = release.contrasts(simultaneous=True)
    assert len(rows) == 3 * 4
    assert {(row.arm, row.against) for row in rows} == {("low", "placebo"), ("high", "placebo"), ("high", "low")}
    for row in rows:
        old = row.segment.startswith("age [54")
        means = {arm: pair[old] for arm, pair in EFFECTS.items()} | {"placebo": 0.0}
        assert row.low <= means[row.arm] - means[row.against] <= row.high
        assert row.low <= row.effect <= row.high
    averages = {(row.arm, row.against): row for row in release.averages()}
    assert averages["high", "placebo"].low <= 0.9 <= averages["high", "placebo"].high


def test_all_at_once_covers_every_interval_as_often_as_it_says() -> None:
    covered, each, runs = 0, 0, 60
    for seed in range(runs):
        release = fitted(uplift(epsilon=1.0), study(3_000, seed), seed)
        for simultaneous in (False, True):
            inside = [
                row.low <= EFFECTS[row.arm][row.segment.startswith("age [54")] <= row.high
                for row in release.contrasts(alpha=0.1, simultaneous=simultaneous, against="placebo")
            ]
            covered, each = (covered + all(inside), each) if simultaneous else (covered, each + np.mean(inside))
    # Three standard errors below the level.
    assert covered / runs >= 0.9 - 3 * (0.09 / runs) ** 0.5
    assert each / runs >= 0.9 - 3 * (0.09 / runs) ** 0.5


def test_two_arms_of_a_release_are_a_release_of_two_arms() -> None:
    release = fitted(uplift())
    pair = release.against("high")
    assert pair is release.against("high", "placebo")
    assert pair.bounds.treatment == ("placebo", "high")
    assert pair.guarantee == release.guarantee
    np.testing.assert_array_equal(pair.noisy.counts, release.noisy.counts[:, [0, 2]])
    assert pair.design == "observational"
    back = release.against("placebo", "high")
    # Smoothing weighs a finite number of processes, in floating point.
    assert back.ate() == pytest.approx(-pair.ate(), rel=1e-3)
    assert all(words.startswith("age [54") for words in dc.Policy.of(pair, cost=0.7).treats)
    known = fitted(uplift(propensity={"placebo": 0.5, "low": 0.2, "high": 0.3}))
    assert known.design == "known propensity"
    assert known.against("high").propensity == pytest.approx(0.375)


@pytest.mark.parametrize("given", [{}, {"delta": 1e-6, "neighbours": "add-remove", "by": {"age": "auto"}}], ids=str)
def test_a_release_is_written_and_read_back(given: dict[str, Any], tmp_path: Any) -> None:
    release = fitted(uplift(**given))
    release.save(tmp_path / "it.json")
    read = dc.load(tmp_path / "it.json")
    assert isinstance(read, ArmSegmentsRelease)
    assert read.to_dict() == release.to_dict()
    assert read.contrasts() == release.contrasts()
    assert release.guarantee.proof == "uplift.md"
    for words in (release.summary(), release.methods(), dc.render_page(release), str(release.display())):
        assert "placebo" in words
    assert "at once" in str(release.display(simultaneous=True).head)
    assert dc.ArmSegmentsRelease.load(tmp_path / "it.json").shares is None


def test_files_that_cannot_be_are_refused() -> None:
    release = fitted(uplift())
    with pytest.raises(InvalidInput, match="one finite number per segment and arm"):
        replace(release, noisy=release.noisy._replace(counts=release.noisy.counts[:, :2]))
    with pytest.raises(InvalidInput, match="must be positive numbers"):
        replace(release, noisy=release.noisy._replace(sum_sd=0.0))
    with pytest.raises(InvalidInput, match="a positive number for every declared arm"):
        replace(release, shares=(0.5, 0.5))


def test_every_source_gives_the_same_integers(tmp_path: Any) -> None:
    frame = study(3_000)
    frame.to_csv(tmp_path / "it.csv", index=False, float_format="%.17g")
    frame.to_parquet(tmp_path / "it.parquet")
    connection = duckdb.connect()
    sources = [str(tmp_path / "it.csv"), str(tmp_path / "it.parquet"), pl.from_pandas(frame), connection.from_df(frame)]

    def sums(table: Any) -> list[Any]:
        with seeded_noise(2), record_sums() as recorded:
            uplift(by={"age": 4, "sex": "levels"}).fit_table(table, outcome="y", treatment="t")
        return [each for _, _, each, _ in recorded]

    with closing(connection):
        expected = sums(frame)
        # All records are in the table of three arms and eight segments, however it was added up.
        assert expected[-1].shape == (2 * 3 * 8,)
        for source in sources:
            for one, other in zip(sums(source), expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_what_cannot_be_asked_is_refused_before_anything_is_spent(monkeypatch: Any) -> None:
    release = fitted(uplift())
    for asked in (lambda: release.against("nobody"), lambda: release.contrasts(against="nobody")):
        with pytest.raises(InvalidInput, match="must be one of the declared arms: placebo, low, high"):
            asked()
    with pytest.raises(InvalidInput, match="two different arms"):
        release.against("low", "low")
    with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
        release.contrasts(alpha=2.0)
    from discreet.privacy import gate

    monkeypatch.setattr(gate, "discrete_laplace", lambda *_: pytest.fail("noise was drawn"))
    frame = study(300)
    with pytest.raises(InvalidInput, match="propensity of 3 arms must hold a probability for each of them"):
        fitted(uplift(propensity=0.5), frame)
    with pytest.raises(InvalidInput, match="must hold one of the labels"):
        fitted(uplift(), frame.assign(t=np.where(frame.index == 3, "huge", frame["t"])))
    with pytest.raises(InvalidInput, match="more than 512"):
        fitted(uplift(by={"age": 400, "sex": "levels"}), frame)


@pytest.mark.parametrize("method", ["ate", "table", "uplift_curve", "policy", "plot_curve"])
def test_what_two_arms_have_says_whom_to_ask_instead(method: str) -> None:
    estimator = uplift()
    with seeded_noise(3):
        estimator.fit_table(study(600), outcome="y", treatment="t")
    with pytest.raises(InvalidInput, match=r"ask release_\.contrasts\(\), or release_\.against\(arm\)"):
        getattr(estimator, method)()


def test_units_with_several_rows_are_protected_together() -> None:
    frame = study(3_000)
    frame["person"] = np.arange(3_000) // 2
    with seeded_noise(2):
        release = uplift().fit_table(frame, outcome="y", treatment="t", unit="person", max_rows=2).release_
    assert release.guarantee.unit == "one person with at most 2 rows"
    assert release.outcome_moments.rows == 2.0


def test_a_forest_for_each_arm_has_all_segments_and_the_average() -> None:
    release = fitted(uplift())
    forests = arm_segments(release).forests
    assert [forest.caption.partition(",")[0] for forest in forests] == ["low against placebo", "high against placebo"]
    for arm, forest in zip(("low", "high"), forests, strict=True):
        low, high = forest.ends()
        assert [row.label for row in forest.rows] == [*release.partition.labels(), "average"]
        for row in forest.rows[:-1]:
            (mark,) = row.marks
            assert mark.inner is not None
            assert low <= mark.low < mark.inner[0] < mark.at < mark.inner[1] < mark.high <= high
        average = next(each for each in release.averages(against="placebo") if each.arm == arm)
        assert forest.rows[-1].marks[0].at == average.effect
