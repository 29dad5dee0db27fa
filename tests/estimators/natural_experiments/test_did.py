"""Difference in differences: `ATT` on changes, one record to both periods, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet import ATT, Bounds, DifferenceInDifferences, InvalidInput
from discreet.data.in_memory import ArrayRecords
from discreet.estimators._base import count_first
from discreet.exceptions import InvalidBudget
from discreet.testing import record_sums, seeded_noise

BOUNDS = Bounds(outcome=(0, 8), covariates={"age": (0, 1)}, propensity=(0.1, 0.9))
CHANGES = Bounds(outcome=(-8, 8), covariates={"age": (0, 1)}, propensity=(0.1, 0.9))
COLUMNS = {"outcome": "after", "before": "before", "treatment": "t"}


def study(n: int = 3_000, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, level = rng.random(n), rng.normal(0, 1, n)
    t = (rng.random(n) < 1 / (1 + np.exp(-level - age + 0.5))).astype(int)
    before = 3 + level + rng.normal(0, 0.3, n)
    after = 3.5 + level + age + 0.5 * t + rng.normal(0, 0.3, n)
    # Eighths, so that differences and encoding are exact.
    frame = pd.DataFrame({"after": after, "before": before, "age": age}).round(3)
    frame[["after", "before"]] = (frame[["after", "before"]] * 8).round() / 8
    return frame.assign(t=t, id=np.arange(n))


def did(**given: Any) -> DifferenceInDifferences:
    return DifferenceInDifferences(**({"epsilon": 4.0, "delta": 1e-6, "bounds": BOUNDS} | given))


def fitted(estimator: Any, frame: pd.DataFrame | None = None) -> Any:
    frame = study() if frame is None else frame
    with seeded_noise(2):
        return estimator.fit(frame["after"], frame["t"], before=frame["before"], X=frame[["age"]])


@pytest.mark.parametrize("given", [{}, {"neighbours": "add-remove"}, {"propensity": 0.5}])
def test_it_is_the_effect_on_differences_to_the_last_bit(given: dict[str, Any]) -> None:
    frame = study()
    change = frame["after"].clip(0, 8) - frame["before"].clip(0, 8)
    records = ArrayRecords.of(change, frame["t"], frame[["age"]], bounds=CHANGES, propensity=given.get("propensity"))
    att = ATT(epsilon=4.0, delta=1e-6, bounds=CHANGES, **given)
    with seeded_noise(2), record_sums() as expected:
        gate = att._open_gate(records, None)
        count_first(gate)
        # Without the level of the outcome, which is about means and not about changes.
        measured = att._measure(gate)
    with seeded_noise(2), record_sums() as found:
        made = fitted(did(**given), frame)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours[2], theirs[2])
    assert made.estimate_ == measured.estimate
    assert made.interval() == measured.interval()
    assert made.release_.arms is None
    assert made.release_.bounds == BOUNDS
    assert made.guarantee_.proof == "did.md"
    assert made.guarantee_.events == measured.guarantee.events
    assert made.guarantee_.public == measured.guarantee.public


def test_the_interval_holds_the_effect_where_levels_differ() -> None:
    made = fitted(did(epsilon=20.0), study(10_000))
    low, high = made.interval()
    assert low < 0.5 < high
    # Outcomes after the treatment alone would say something else.
    frame = study(10_000)
    assert frame.loc[frame["t"] == 1, "after"].mean() - frame.loc[frame["t"] == 0, "after"].mean() > 1.0


def test_outcomes_of_two_labels_change_by_one_at_most() -> None:
    rng = np.random.default_rng(4)
    n = 4_000
    t, before = rng.integers(0, 2, n), rng.integers(0, 2, n)
    after = np.where(rng.random(n) < 0.3 + 0.2 * t, 1 - before, before)
    labels = np.array(["no", "yes"], dtype=object)
    bounds = Bounds(outcome=["no", "yes"])
    made = DifferenceInDifferences(epsilon=4.0, delta=1e-6, bounds=bounds, propensity=0.5)
    with seeded_noise(1):
        made.fit(labels[after], t, before=labels[before])
    low, high = made.interval()
    change = after - before
    assert low < change[t == 1].mean() - change[t == 0].mean() < high
    assert low >= -1.0
    assert high <= 1.0
    assert made.release_.bounds == bounds


def test_every_source_gives_the_same_release(tmp_path: Any) -> None:
    frame = study()
    frame.to_csv(tmp_path / "it.csv", index=False)
    with seeded_noise(2):
        there = did().fit_table(str(tmp_path / "it.csv"), **COLUMNS).release_
    assert there.to_dict() == fitted(did(), frame).release_.to_dict()


def test_units_are_protected_together() -> None:
    frame = study()
    frame["person"] = frame["id"] // 2
    with seeded_noise(2):
        release = did().fit_table(frame, **COLUMNS, unit="person", max_rows=2).release_
    assert release.guarantee.proof == "did.md, units.md"
    assert release.guarantee.audit is None


def test_a_release_says_what_it_is_about(tmp_path: Any) -> None:
    release = fitted(did()).release_
    assert release.title == "Difference in differences"
    assert "as good as random" not in release.summary()
    assert "would have changed alike" in release.summary()
    assert "of changes, towards the treated" in release.methods()
    assert "covariates (age)" in release.methods()
    release.save(tmp_path / "it.json")
    assert dc.load(tmp_path / "it.json") == release
    assert "Difference in differences" in dc.render_page(release)


def test_what_cannot_be_used_is_refused_before_anything_is_spent(monkeypatch: Any) -> None:
    from discreet.privacy import gate

    monkeypatch.setattr(gate, "discrete_gaussian", lambda *_: pytest.fail("noise was drawn"))
    frame = study(200)
    with pytest.raises(InvalidInput, match="DifferenceInDifferences needs before=, the outcome of the same record"):
        did().fit(frame["after"], frame["t"], X=frame[["age"]])
    with pytest.raises(InvalidInput, match="before has missing values"):
        fitted(did(), frame.assign(before=frame["before"].where(frame["id"] != 5)))
    with pytest.raises(InvalidInput, match="before and Y must have one entry per record"):
        did().fit(frame["after"], frame["t"], before=frame["before"][:-1], X=frame[["age"]])
    with pytest.raises(InvalidInput, match="before and propensity must be different columns"):
        did().fit_table(frame, outcome="after", before="after", treatment="t")
    with pytest.raises(InvalidInput, match="fit does not take Z="):
        did().fit(frame["after"], frame["t"], before=frame["before"], Z=frame["t"], X=frame[["age"]])
    with pytest.raises(InvalidBudget, match="DifferenceInDifferences needs delta"):
        fitted(did(delta=None), frame)


def test_means_of_changes_are_no_risks() -> None:
    rng = np.random.default_rng(3)
    t = rng.integers(0, 2, 4_000)
    before, after = (rng.random(4_000) < 0.3).astype(int), (rng.random(4_000) < 0.4 + 0.1 * t).astype(int)
    found = []
    for outcome in ([0, 1], (0, 1)):
        with seeded_noise(4):
            bounds = Bounds(outcome=outcome)
            change = DifferenceInDifferences(epsilon=2.0, delta=1e-6, bounds=bounds).fit(after, t, before=before)
        found.append(change.release_.sensitivity())
    assert found[0].e_value == found[1].e_value
    with pytest.raises(InvalidInput, match="neither differences in differences nor"):
        change.release_.means()
