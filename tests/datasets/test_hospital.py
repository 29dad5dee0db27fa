"""The generated hospital: what is rare, missing and repeated in it, and that its truth can be found."""

import numpy as np
import pytest

import discreet as dc
from discreet.datasets import hospital
from discreet.datasets.hospital import MOST_ADMISSIONS, WARDS
from discreet.exceptions import InvalidInput
from discreet.testing import seeded_noise


@pytest.fixture(scope="module")
def records():
    return hospital(20_000, seed=1)


def test_deaths_are_rare_and_much_is_missing(records):
    table = records.admissions
    assert 0.008 < table["died"].to_numpy().mean() < 0.02
    assert 0.35 < table["lactate"].null_count / table.num_rows < 0.5
    assert 0.1 < table["wellbeing"].null_count / table.num_rows < 0.3


def test_patients_come_again_as_the_same_person_and_not_too_often(records):
    frame = records.admissions.to_pandas()
    visits = frame.groupby("patient")
    assert 1 < visits.size().max() <= MOST_ADMISSIONS
    assert (visits.size() > 1).mean() > 0.15
    assert (visits[["age", "sex", "illnesses"]].nunique() == 1).all(axis=None)
    assert frame["admitted"].is_monotonic_increasing


def test_the_same_seed_makes_the_same_table(records):
    assert hospital(20_000, seed=1).admissions.equals(records.admissions)
    assert not hospital(20_000, seed=2).admissions.equals(records.admissions)


def test_the_naive_comparison_is_confounded_and_adjustment_finds_the_truth(records):
    frame = records.admissions.to_pandas()
    arms = frame.groupby("treated")["days"].mean()
    assert arms[1] - arms[0] < records.effects["days"] - 0.4
    with seeded_noise(0):
        ate = dc.ATE(epsilon=2, delta=1e-6, bounds=records.bounds("days"))
        low, high = ate.fit_table(records.admissions, outcome="days", treatment="treated").ate_interval()
    assert low < records.effects["days"] < high < 0


def test_values_lie_within_the_declared_bounds(records):
    bounds, frame = records.bounds("died"), records.admissions.to_pandas()
    assert set(frame["ward"]) == set(WARDS)
    for name in ("age", "illnesses", "lactate"):
        spec = bounds.columns[bounds.names.index(name)]
        assert spec.low <= np.nanmin(frame[name]) <= np.nanmax(frame[name]) <= spec.high


def test_what_cannot_be_made_is_refused(records):
    with pytest.raises(InvalidInput, match="n must be a whole number"):
        hospital(0, seed=1)
    with pytest.raises(InvalidInput, match="outcome must be one of died, days, wellbeing"):
        records.bounds("cost")
