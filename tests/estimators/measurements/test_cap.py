"""Capped outcomes: which cap is chosen, what a release says of it, and how far a record moves the sums."""

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATE, Bounds, DifferenceInMeans, InvalidInput, Ledger, Range, Release, load, plan
from discreet.data.in_memory import ArrayRecords
from discreet.data.views.capped import Capped
from discreet.data.views.viewed import ViewedRecords
from discreet.estimators import _allocation
from discreet.estimators.measurements.cap import RULE
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Interval, MeanSquare
from discreet.releases.report import render_page
from discreet.testing import frozen_noise, seeded_noise, watched

BOUNDS = Bounds(outcome=(0, 1_000), covariates={"x": (-4, 4)}, propensity=(0.1, 0.9))
ROLES: dict[str, Any] = {"outcome": "y", "treatment": "t"}
PURE = {"epsilon": 4.0, "bounds": BOUNDS}
MAKERS = {
    "ate": lambda **more: ATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS, **more),
    "ate, known": lambda **more: ATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS, propensity=0.5, **more),
    "means": lambda **more: DifferenceInMeans(**PURE, **more),
    "means, add-remove": lambda **more: DifferenceInMeans(**PURE, neighbours="add-remove", **more),
}


def study(n=6_000, seed=0):
    """Amounts with a long tail, many of which are nothing."""
    rng = np.random.default_rng(seed)
    x, t = rng.normal(size=n).clip(-4, 4), rng.integers(0, 2, n)
    y = np.exp(rng.normal(1.0, 1.0, n) + 0.3 * x) * (1.0 + 0.5 * t) * (rng.random(n) < 0.6)
    return pd.DataFrame({"y": y, "t": t, "x": x, "id": np.arange(n)})


FRAME = study()


def fit(estimator, frame=FRAME, **options):
    with seeded_noise(2):
        return estimator.fit_table(frame, **ROLES, **options).release_


@pytest.mark.parametrize("name", MAKERS)
def test_a_declared_cap_gives_what_narrower_bounds_give(name):
    capped = fit(MAKERS[name](cap=40))
    estimator: Any = MAKERS[name]()
    narrow = fit(estimator.set_params(bounds=BOUNDS.capped(40)))
    assert (capped.cap, capped.bounds) == (40.0, BOUNDS)
    assert capped.estimate == pytest.approx(narrow.estimate, rel=1e-6)
    assert capped.interval() == pytest.approx(narrow.interval(), rel=1e-6)
    # The rounds are the same: a declared cap costs nothing.
    assert capped.rounds() == narrow.rounds()


@pytest.mark.parametrize("name", MAKERS)
def test_a_chosen_cap_narrows_the_interval_and_its_round_has_its_share(name):
    plain, capped = fit(MAKERS[name]()), fit(MAKERS[name](cap="auto"))
    assert capped.cap in RULE.grid(BOUNDS)
    assert capped.cap <= 100.0
    assert np.diff(capped.interval()) < 0.5 * np.diff(plain.interval())
    shares, found = capped.adjustment["shares"], {name: share for name, _, share in capped.rounds()}
    assert shares["cap"] == _allocation.CAP
    assert sum(shares.values()) == pytest.approx(1.0)
    assert found["cap"] == pytest.approx(_allocation.CAP, abs=2e-4)
    assert found == pytest.approx(shares, abs=2e-3)
    assert ("number of records" in shares) == name.endswith("add-remove")


def test_without_a_cap_nothing_is_said_of_one():
    release = fit(MAKERS["means"]())
    assert release.cap is None
    assert "cap" not in release.to_dict()
    assert "cap" not in release.methods()
    assert "capped" not in release.summary()


@pytest.mark.parametrize(("cap", "words"), [(40, "capped at 40"), ("auto", "chosen by a noisy histogram")])
def test_a_release_names_the_capped_outcome_wherever_it_is_shown(cap, words, tmp_path):
    release = fit(MAKERS["means"](cap=cap))
    assert words in release.summary()
    for text in (release.title, release.summary(), release.methods(), render_page(release), release._repr_html_()):
        assert f"capped at {release.cap:g}" in text
    assert f"Outcomes above {release.cap:g} count as" in " ".join(release.display().below)
    release.save(tmp_path / "release.json")
    assert json.loads((tmp_path / "release.json").read_text())["cap"] == release.cap
    assert load(tmp_path / "release.json") == release
    # No effect on a capped outcome exceeds the capped range.
    wide = replace(release, uncertainty=replace(release.uncertainty, privacy=1e6))
    assert wide.interval() == (-release.cap, release.cap)


def test_a_cap_outside_of_the_range_is_refused_in_a_file():
    plain = fit(MAKERS["means"](cap=40)).to_dict()
    for cap in (0.0, 1_001, "40", True):
        with pytest.raises(InvalidInput, match=r"cap must be a number|wrong type"):
            Release.from_dict(plain | {"cap": cap})


@pytest.mark.parametrize(
    ("cap", "reason"),
    [
        (0, "cap must lie above 0 and be at most 1000, the declared range of the outcome: choose one inside"),
        (-5, "cap must lie above 0"),
        (1_001, "be at most 1000"),
        (1e-9, "cap is less than a millionth of the outcome's range above its lower end: declare a narrower range"),
        ("most", 'cap must be a number in the outcome\'s unit, or "auto"'),
        (True, "cap must be a number"),
        (np.nan, "cap must be a number"),
        (np.array([3.0, 4.0]), "cap must be a number"),
        ([40], "cap must be a number"),
    ],
)
@pytest.mark.parametrize("name", ["ate", "means"])
def test_caps_that_make_no_sense_are_refused_before_anything_is_spent(name, cap, reason, tmp_path):
    with closing(Ledger(f"sqlite:///{tmp_path}/budget.db")) as ledger:
        ledger.open("them", epsilon=4, delta=1e-5)
        estimator = MAKERS[name](cap=cap)
        with pytest.raises(InvalidInput, match=reason):
            estimator.fit(FRAME["y"], FRAME["t"], X=FRAME[["x"]], ledger=ledger, dataset="them")
        assert ledger.account("them").spent.epsilon == 0


@pytest.mark.parametrize("cap", [0.5, "auto"])
def test_a_binary_outcome_has_no_cap(cap):
    with pytest.raises(InvalidInput, match="cap belongs to an outcome with a range, and this one is declared binary"):
        DifferenceInMeans(epsilon=1.0, bounds=Bounds(outcome=[0, 1]), cap=cap).check()


@pytest.mark.parametrize("cap", [40, "auto"])
@pytest.mark.parametrize("name", ["means", "ate"])
def test_every_engine_gives_the_same_bits(name, cap, tmp_path):
    frame = study(1_500)
    mixed = frame.sample(frac=1, random_state=5)
    mixed.to_parquet(tmp_path / "one.parquet", row_group_size=400)
    mixed.to_csv(tmp_path / "one.csv", index=False)
    tables = [
        pl.from_pandas(mixed),
        pl.scan_parquet(tmp_path / "one.parquet"),
        pa.Table.from_pandas(mixed),
        duckdb.connect().from_arrow(pa.Table.from_pandas(mixed)),
        str(tmp_path / "one.parquet"),
        str(tmp_path / "one.csv"),
    ]
    expected = fit(MAKERS[name](cap=cap), frame)
    for table in tables if name == "means" else tables[3:5]:
        assert fit(MAKERS[name](cap=cap), table) == expected


def test_samples_are_capped_too(monkeypatch):
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, records=1.0, information=1.0))
    release = fit(MAKERS["ate"](cap="auto"), sample_by="id")
    assert release.cap <= 100.0
    assert any("fitted to a sample" in note for note in release.notes)
    assert release.adjustment["shares"]["cap"] == _allocation.CAP
    assert release.adjustment["shares"]["number of records"] == _allocation.SAMPLE.count


def test_a_ledger_answers_the_same_cap_again_and_no_other(tmp_path):
    def fitted(**more):
        with seeded_noise(1):
            means = DifferenceInMeans(**PURE, **more)
            return means.fit(FRAME["y"], FRAME["t"], X=FRAME[["x"]], ledger=ledger, dataset="them").release_

    with closing(Ledger(f"sqlite:///{tmp_path}/budget.db")) as ledger:
        ledger.open("them", epsilon=40, delta=1e-5)
        first = fitted(cap=40)
        assert fitted(cap=40) == first
        assert ledger.account("them").spent.epsilon == pytest.approx(4)
        assert fitted(cap=None) == fitted()
        assert ledger.account("them").spent.epsilon == pytest.approx(8)
        assert fitted(cap="auto").cap != 40
        assert fitted(cap=50).cap == 50
        assert ledger.account("them").spent.epsilon == pytest.approx(16)


def test_what_a_missing_outcome_counts_as_is_capped_too():
    bounds = Bounds(outcome=(-10, 90), outcome_fill=60)
    assert bounds.capped(40).outcome_range == Range(-10.0, 40.0, fill=40.0)
    assert bounds.capped(80).outcome_range == Range(-10.0, 80.0, fill=60.0)
    values = np.array([-50.0, -10.0, 15.0, 39.9, 40.0, 41.0, 500.0, np.nan] * 2)
    records = ArrayRecords.of(values, np.arange(16) % 2, bounds=bounds)
    seen: list[Any] = []

    def kernel(chunk):
        seen.append(chunk.y)
        return np.ones(1, dtype=np.int64)

    ViewedRecords(records, Capped.of(bounds, 40.0)).sum(kernel)
    np.testing.assert_allclose(seen[0][:8], [-1.0, -1.0, 0.0, 0.996, 1.0, 1.0, 1.0, 1.0])
    assert (seen[0][4:8] == 1.0).all()


def test_the_grid_is_fine_near_the_lower_end_and_reaches_the_upper():
    grid = RULE.grid(Bounds(outcome=(-10, 90)))
    assert grid[-3:] == pytest.approx([10.0, 40.0, 90.0])
    assert grid[0] == pytest.approx(-10 + 2e-4)
    assert (np.diff(grid) > 0).all()


def histogram(share_beyond, n=100_000, cells=25, at=12):
    """Counts of which this share lies in the cells beyond one, and the rest below."""
    counts = np.zeros(cells)
    counts[0], counts[at], counts[-1] = 0.5 * n, 0.5 * n * (1 - share_beyond), 0.5 * n * share_beyond
    return counts, n


def test_the_cap_is_the_lowest_that_few_exceed():
    # One in a hundred of those above the lower end may exceed it: half of the records are there.
    for share, number in [(0.0, 11), (0.009, 11), (0.011, 23), (0.5, 23)]:
        counts, n = histogram(share)
        assert RULE.choose(counts, 1e-9, n) == number


def test_noise_is_allowed_for_but_not_where_it_could_hide_much():
    counts, n = histogram(0.011)
    assert RULE.choose(counts, 50.0, n) == 11
    # Where one in ten could be hidden, no lower cap is tried: here after four cells, and at once.
    assert RULE.choose(counts, 2_500.0, n) == 23 - 4
    assert RULE.choose(histogram(0.0)[0], 10_000.0, n) == 23
    assert RULE.choose(np.append(n + 10.0, np.zeros(24)), 1.0, n) == 23


def test_a_capped_gate_spends_from_the_same_budget():
    records = ArrayRecords.of(FRAME["y"], FRAME["t"], bounds=Bounds(outcome=(0, 1_000)))
    gate = Gate(records, budget=Budget(epsilon=1.0))
    with seeded_noise(0):
        gate.ask(Query("first", 0.25, Interval(-1.0, 1.0), lambda c: c.y))
        capped = gate.capped(40.0)
        capped.ask(Query("second", 0.5, Interval(-1.0, 1.0), lambda c: c.y))
        part = GatePart(capped, 0.25).capped(20.0)
        part.ask(Query("third", 1.0, Interval(-1.0, 1.0), lambda c: c.y))
    assert gate.spent == capped.spent == 1.0
    assert gate.spent_on == {"first": 0.25, "second": 0.5, "third": 0.25}
    assert (part.spent_on, part.left) == ({"third": 1.0}, 0.0)
    assert [event.name for event in gate.events] == ["first", "second", "third"]
    assert (capped.bounds.outcome, part.bounds.outcome, gate.bounds.outcome) == ((0, 40), (0, 20), (0, 1_000))


def test_a_capped_gate_does_not_answer_from_what_was_prepared_before():
    records = ArrayRecords.of(FRAME["y"], FRAME["t"], bounds=Bounds(outcome=(0, 1_000)))
    question = Query("mean", 0.5, Interval(-1.0, 1.0), lambda c: c.y)
    with frozen_noise():
        gate = Gate(records, budget=Budget(epsilon=1.0))
        gate.prepare(question)
        (mean,) = gate.capped(1.5).ask(question)
    assert float(mean.value) == pytest.approx((FRAME["y"].clip(0, 1.5) / 0.75 - 1.0).sum(), rel=1e-6)


OUTCOME = st.one_of(st.floats(-2_000, 2_000), st.sampled_from([0.0, 40.0, np.nextafter(40.0, 0), 1e300, -1e300]))


@settings(max_examples=100, deadline=None)
@given(OUTCOME, OUTCOME, st.sampled_from([0, 1]), st.sampled_from([0, 1]), st.sampled_from([0.01, 1.5, 40.0, 1_000.0]))
def test_a_replaced_record_moves_no_sum_of_capped_outcomes_further_than_stated(one, other, first, second, cap):
    def rounds(y, t):
        frame = study(60)
        frame.loc[17, ["y", "t"]] = y, t
        seen: list[Any] = []
        with frozen_noise(), watched(lambda _, asked: seen.extend(asked)):
            gate = Gate(
                ArrayRecords.of(frame["y"], frame["t"].astype(int), bounds=Bounds(outcome=(0, 1_000))),
                budget=Budget(epsilon=1.0, delta=1e-6),
            ).capped(cap)
            gate.ask(Query("mean", 0.5, Interval(-1.0, 1.0), lambda c: c.y))
            gate.ask(Query("moments", 0.5, MeanSquare(1.0), lambda c: c.y))
        return seen

    for left, right in zip(rounds(one, first), rounds(other, second), strict=True):
        assert left.grid.l2 == right.grid.l2
        assert np.linalg.norm((left.exact - right.exact).astype(np.float64)) <= left.grid.l2


@pytest.mark.parametrize("name", ["ate", "means", "means, add-remove"])
def test_the_round_of_the_cap_moves_by_its_diameter_and_no_further(name):
    """Later rounds depend on the released cap, which replays of the audit hold fixed."""

    def counts(y):
        seen: list[Any] = []
        frame = study(300)
        frame.loc[17, "y"] = y
        with seeded_noise(0), watched(lambda _, asked: seen.extend(asked)):
            MAKERS[name](cap="auto").fit(frame["y"], frame["t"], X=frame[["x"]])
        return next(each for each in seen if each.query.name == "cap")

    one, *others = (counts(y) for y in (0.0, 1e-3, 1.0, 40.0, 1e6, -5.0))
    # With Laplace noise distances are in L1. Two counts differ by one each; add-remove would take one record away.
    moved = [np.abs(one.exact - other.exact).astype(np.float64) for other in others]
    sizes = [float(each.sum() if one.pure else np.sqrt((each**2).sum())) for each in moved]
    limit = one.diameter if name != "means, add-remove" else 2.0 * one.diameter
    assert max(sizes) == pytest.approx(limit)
    assert sizes[-1] == 0.0


def test_a_plan_takes_a_declared_cap_for_the_range():
    asked: dict[str, Any] = {"n": 5_000, "epsilon": 1.0, "delta": 1e-6, "outcome_sd": 5.0}
    capped = plan("ate", bounds=BOUNDS, cap=40, **asked)
    narrow = plan("ate", bounds=BOUNDS.capped(40), **asked)
    assert capped == narrow
    assert capped.width < plan("ate", bounds=BOUNDS, **asked).width
    for estimator, cap in [("ate", "auto"), ("cate", 40)]:
        with pytest.raises(InvalidInput, match="cap must be a number, for 'ate' or 'difference-in-means'"):
            plan(estimator, bounds=BOUNDS, cap=cap, **asked)
    with pytest.raises(InvalidInput, match="cap must lie above 0"):
        plan("ate", bounds=BOUNDS, cap=-1, **asked)


@pytest.mark.parametrize("cap", [40, "auto"])
def test_units_with_several_rows_have_a_cap_too(cap, tmp_path):
    frame = FRAME.assign(person=FRAME["id"] // 2)
    frame.to_parquet(tmp_path / "it.parquet")
    for table in (frame, str(tmp_path / "it.parquet")):
        release = fit(MAKERS["means"](cap=cap), table, unit="person", max_rows=2)
        assert release.cap is not None
        assert release.guarantee.unit == "one person with at most 2 rows"
        assert set(release.adjustment["shares"]) == {name for name, *_ in release.rounds()}
