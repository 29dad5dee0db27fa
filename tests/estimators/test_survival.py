"""Effects on a time to event: what is covered, what is refused, and how records are seen."""

import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.in_memory import ArrayRecords
from discreet.datasets import survival_trial
from discreet.estimators.survival.effect import EVENT
from discreet.estimators.survival.rules import RULE, TREATED_SHARE
from discreet.estimators.survival.seen import TimeCells
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.ledger import Ledger
from discreet.privacy import gate as gate_module
from discreet.privacy.sensitivity.sets import Cells, MeanSquare
from discreet.releases.wording import rounds
from discreet.testing import frozen_noise, record_sums, seeded_noise

TRIAL = survival_trial(n=2_000, seed=1)
PLAIN = dc.Bounds(outcome=(0, 730), propensity=(0.1, 0.9))
RELATIONS = ("replace-one", "add-remove")


def effect(**given):
    return dc.SurvivalEffect(**({"epsilon": 1.0, "delta": 1e-6, "bounds": PLAIN, "horizon": 365} | given))


def fit(estimator, trial=TRIAL, seed=0):
    with seeded_noise(seed):
        x = trial.X if estimator.bounds.p else None
        return estimator.fit(trial.time, trial.T, event=trial.event, X=x)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("measure", ["rmst", "risk"])
@pytest.mark.parametrize("propensity", [None, 0.5])
def test_intervals_of_a_trial_cover_and_are_not_much_too_wide(relation, measure, propensity):
    covered, errors, stated = [], [], []
    for seed in range(100):
        trial = survival_trial(n=1_000, seed=500 + seed)
        found = fit(effect(neighbours=relation, measure=measure, propensity=propensity), trial, seed)
        low, high = found.interval()
        truth = trial.rmst if measure == "rmst" else trial.risk
        covered.append(low <= truth <= high)
        errors.append(found.estimate_ - truth)
        stated.append(found.release_.uncertainty.se)
    # Three standard errors of a share of 100; and of the mean of as many errors.
    assert np.mean(covered) >= 0.95 - 0.066
    assert abs(np.mean(errors)) < 3.0 * np.std(errors) / 10.0
    assert np.mean(stated) < 1.35 * np.std(errors)


def test_confounding_is_adjusted_for():
    study = survival_trial(n=20_000, seed=3, confounding=1.0)
    adjusted = fit(effect(bounds=study.bounds, epsilon=4.0), study)
    raw = fit(effect(epsilon=4.0), study)
    assert adjusted.interval()[0] < study.rmst < adjusted.interval()[1]
    assert raw.interval()[1] < study.rmst
    assert adjusted.release_.design == "observational"


def test_without_noise_a_trial_gives_the_difference_of_the_areas_below_the_curves():
    with frozen_noise():
        found = effect(epsilon=50.0, times=np.arange(5, 365, 5).tolist()).fit(TRIAL.time, TRIAL.T, event=TRIAL.event)
    areas = []
    for arm in (0, 1):
        time, event = TRIAL.time[arm == TRIAL.T], TRIAL.event[arm == TRIAL.T]
        survival, last, area = 1.0, 0.0, 0.0
        for t in np.unique(time[(event == 1) & (time <= 365)]):
            area, last = area + survival * (t - last), t
            survival *= 1.0 - np.sum((time == t) & (event == 1)) / np.sum(time >= t)
        areas.append(area + survival * (365 - last))
    assert found.estimate_ == pytest.approx(areas[1] - areas[0], abs=0.25)


@pytest.mark.parametrize("arm", [0.0, 1.0])
def test_an_arm_without_events_is_estimated_and_said_not_to_stand_out(arm):
    """Whether an arm has an event is private: it is no reason to refuse."""
    with seeded_noise(0):
        release = effect().fit(TRIAL.time, TRIAL.T, event=np.where(arm == TRIAL.T, 0.0, TRIAL.event)).release_
    low, high = release.interval()
    assert low < release.estimate < high
    assert (release.estimate < 0) == (arm == 0.0)
    name = "treated" if arm else "control"
    assert any(f"Events of the {name} arm do not stand out" in note for note in release.notes)


def test_what_happens_beyond_the_horizon_does_not_count():
    later = TRIAL.time > 365
    time, event = np.where(later, 800.0, TRIAL.time), np.where(later, 1.0, TRIAL.event)
    one = fit(effect(bounds=TRIAL.bounds)).release_
    with seeded_noise(0):
        other = effect(bounds=TRIAL.bounds).fit(time, TRIAL.T, event=event, X=TRIAL.X).release_
    assert one == other


def table_of(frame, kind, folder):
    """The frame as another kind of table."""
    if kind == "pandas":
        return frame
    if kind == "polars":
        return pl.from_pandas(frame).lazy()
    if kind == "arrow":
        return pa.Table.from_pandas(frame)
    if kind == "duckdb":
        return duckdb.connect().from_arrow(pa.Table.from_pandas(frame))
    path = folder / f"trial.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet", "csv", "duckdb"])
def test_a_table_and_arrays_release_the_same(kind, tmp_path):
    frame = pd.DataFrame({"days": TRIAL.time, "drug": TRIAL.T, "died": TRIAL.event > 0.5})
    frame[["x0", "x1", "x2"]] = TRIAL.X
    bounds = dc.Bounds(outcome=(0, 730), covariates={f"x{j}": (-1, 1) for j in range(3)}, propensity=(0.1, 0.9))
    columns = {"outcome": "days", "treatment": "drug", "event": "died"}
    source = table_of(frame, kind, tmp_path)
    with seeded_noise(4):
        of_table = effect(bounds=bounds).fit_table(source, **columns).release_
    with seeded_noise(4):
        of_arrays = effect(bounds=bounds).fit(TRIAL.time, TRIAL.T, event=TRIAL.event, X=TRIAL.X).release_
    assert of_table.estimate == of_arrays.estimate
    assert of_table.counts == of_arrays.counts


def test_people_with_several_rows_are_one_unit(tmp_path):
    frame = pd.DataFrame({"days": TRIAL.time, "drug": TRIAL.T, "died": TRIAL.event, "who": np.arange(2_000) // 2})
    with seeded_noise(4):
        found = effect(epsilon=4.0).fit_table(
            frame, outcome="days", treatment="drug", event="died", unit="who", max_rows=2
        )
    assert found.guarantee_.unit == "one who with at most 2 rows"
    assert found.guarantee_.proof == "survival.md, units.md"
    assert "rows of one who" in found.release_.notes[-1]
    assert found.release_.rows == 2


def test_cells_say_in_which_interval_a_record_leaves_and_whether_by_the_event():
    bounds = dc.Bounds(outcome=(0, 100), propensity=(0.1, 0.9))
    ends = bounds.outcome_range.encode(np.array([10.0, 20.0]))
    time = np.array([0.0, 10.0, 10.5, 20.0, 20.5, 100.0] * 2)
    event, arm = np.repeat([1.0, 0.0], 6), np.array([0.0, 1.0] * 6)
    records = ArrayRecords.of(time, arm, bounds=bounds)
    (chunk,) = records.beside({EVENT.column(bounds): event}, {"event": "event"})._chunks()
    # With the event in the first and second interval, censored in these, and beyond; the treated five cells later.
    control = [0, 0, 1, 1, 4, 4, 2, 3, 3, 4, 4, 4]
    np.testing.assert_array_equal(TimeCells(ends)(chunk), control + 5 * arm)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("propensity", [None, 0.5])
def test_rounds_have_the_sets_and_shares_of_the_proof(relation, propensity):
    with seeded_noise(0), record_sums() as recorded:
        found = effect(neighbours=relation, propensity=propensity).fit(TRIAL.time, TRIAL.T, event=TRIAL.event).release_
    shares = {name: share for name, _, share in rounds(found.guarantee.events)}
    left = 1.0 - shares.pop("number of records", 0.0)
    rest = (1.0 - RULE.share) * left
    wanted = {"times and events by arm": RULE.share * left}
    wanted |= {"score": rest} if propensity else {"number of treated": TREATED_SHARE * rest}
    wanted |= {} if propensity else {"score": (1.0 - TREATED_SHARE) * rest}
    assert shares == pytest.approx(wanted, rel=1e-6)
    sets = {name: type(each) for name, each in ((query, geometry) for query, geometry, *_ in recorded)}
    assert sets["times and events by arm"] is Cells
    assert sets["score"] is MeanSquare


def test_an_arm_without_events_says_so_and_too_short_a_follow_up_too():
    event = np.where(TRIAL.T == 1, 0.0, TRIAL.event)
    with seeded_noise(0):
        found = effect(epsilon=4.0).fit(TRIAL.time, TRIAL.T, event=event)
        short = effect(epsilon=4.0).fit(np.minimum(TRIAL.time, 100.0), TRIAL.T, event=event * (TRIAL.time < 100))
    assert any("Events of the treated arm do not stand out" in note for note in found.release_.notes)
    assert found.estimate_ > 0
    assert any("Few of the control arm are followed up" in note for note in short.release_.notes)


def test_a_delta_above_one_over_n_is_warned_of():
    with seeded_noise(0):
        found = effect(delta=1e-2).fit(TRIAL.time, TRIAL.T, event=TRIAL.event)
    assert any("Delta is above one over the number of records" in note for note in found.release_.notes)


def test_an_identical_request_is_answered_from_the_ledger_and_another_event_is_another_request(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("trial", epsilon=2.0, delta=1e-5)
    with seeded_noise(0):
        given = {"ledger": ledger, "dataset": "trial"}
        first = effect().fit(TRIAL.time, TRIAL.T, event=TRIAL.event, **given).release_
        again = effect().fit(TRIAL.time, TRIAL.T, event=TRIAL.event, **given).release_
        assert again == first
        other = effect().fit(TRIAL.time, TRIAL.T, event=1 - TRIAL.event, **given).release_
    assert other.estimate != first.estimate


@pytest.fixture
def no_noise_is_drawn(monkeypatch):
    """Whoever draws noise has spent budget."""
    monkeypatch.setattr(gate_module, "discrete_gaussian", lambda *_: pytest.fail("noise was drawn"))


@pytest.mark.usefixtures("no_noise_is_drawn")
@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"delta": None}, InvalidBudget, "SurvivalEffect needs delta"),
        ({"measure": "hazard"}, InvalidInput, 'measure must be "rmst" or "risk"'),
        ({"horizon": 0}, InvalidInput, "horizon must be a time above zero and up to 730"),
        ({"horizon": 731}, InvalidInput, "horizon must be a time above zero and up to 730"),
        ({"horizon": float("nan")}, InvalidInput, "horizon must be a time"),
        ({"horizon": True}, InvalidInput, "horizon must be a time"),
        ({"horizon": None}, InvalidInput, "horizon must be a time"),
        ({"bounds": dc.Bounds(outcome=(-1, 730))}, InvalidInput, r"needs Bounds\(outcome=\(0, longest\)\)"),
        ({"bounds": dc.Bounds(outcome=[0, 1])}, InvalidInput, r"needs Bounds\(outcome=\(0, longest\)\)"),
        ({"times": [100, 50]}, InvalidInput, "times must increase"),
        ({"times": [100, 100]}, InvalidInput, "times must increase"),
        ({"times": [0, 100]}, InvalidInput, "times must increase, and begin above zero"),
        ({"times": []}, InvalidInput, "times must increase"),
        ({"times": [100, 900]}, InvalidInput, "times must lie in the declared range"),
        ({"times": "30,60"}, InvalidInput, "times must be a list of numbers"),
        ({"times": 30}, InvalidInput, "times must be a list of numbers"),
        ({"times": [float("nan")]}, InvalidInput, "times must be a list of numbers"),
        ({"times": np.linspace(1, 300, 201)}, InvalidInput, "more than 200 intervals"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(given, error, sentence):
    with pytest.raises(error, match=sentence):
        effect(**given).fit(TRIAL.time, TRIAL.T, event=TRIAL.event)


@pytest.mark.usefixtures("no_noise_is_drawn")
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"time": -3.5}, "Y must hold times from zero on"),
        ({"time": np.nan}, "Y"),
        ({"event": 2.0}, "event"),
        ({"event": np.nan}, "event"),
    ],
)
def test_records_that_cannot_be_used_are_refused_without_their_values(changed, sentence):
    columns = {"time": TRIAL.time.copy(), "event": TRIAL.event.copy()}
    for name, value in changed.items():
        columns[name][7] = value
    with pytest.raises(InvalidInput, match=sentence) as caught:
        effect().fit(columns["time"], TRIAL.T, event=columns["event"])
    assert not re.search(r"3\.5|\b2\.0", str(caught.value))


@pytest.mark.usefixtures("no_noise_is_drawn")
def test_a_fit_without_the_event_says_what_is_missing():
    with pytest.raises(InvalidInput, match="SurvivalEffect needs event=, 1 where the time is that of the event"):
        effect().fit(TRIAL.time, TRIAL.T)
    with pytest.raises(InvalidInput, match="event"):
        effect().fit(TRIAL.time, TRIAL.T, event=TRIAL.event[:-1])
