"""Survival curves from tables, and the numbers that records count as: against computations by hand and simulations."""

import numpy as np
import pytest

from discreet.postprocessing.survival.curves import Arm, _nonnegative, same_level
from discreet.postprocessing.survival.pseudo_outcome import STEPS, mean, pseudo_outcome, remainder

TIMES = np.array([100.0, 200.0, 300.0, 365.0])
HORIZON = TIMES[-1]


def table(time, event, times=TIMES):
    """Exact counts of one arm."""
    k, counts = len(times), np.zeros(2 * len(times) + 1)
    for t, d in zip(time, event, strict=True):
        place = np.searchsorted(times, t, side="left" if d else "right")
        counts[2 * k if place >= k else place + (0 if d else k)] += 1
    return counts


def kaplan_meier(time, event, until):
    """The product-limit estimate at a time, and the area below it."""
    survival, area, last = 1.0, 0.0, 0.0
    for t in np.unique(time[(event == 1) & (time <= until)]):
        area, last = area + survival * (t - last), t
        survival *= 1.0 - np.sum((time == t) & (event == 1)) / np.sum(time >= t)
    return survival, area + survival * (until - last)


def drawn(n, seed, hazard=1.0, lost=0.5):
    """Exponential times in years of 365, with independent censoring."""
    rng = np.random.default_rng(seed)
    years, end = rng.exponential(size=n) / hazard, rng.exponential(size=n) / max(lost, 1e-9)
    return 365.0 * np.minimum(years, end), (years <= end).astype(float)


def test_without_censoring_the_curve_is_the_share_that_is_left():
    arm = Arm.of(TIMES, np.array([20.0, 10.0, 10.0, 20.0, 0.0, 0.0, 0.0, 0.0, 40.0]), 1e-9)
    np.testing.assert_allclose(arm.survival, [0.8, 0.7, 0.6, 0.4])
    np.testing.assert_allclose(arm.at_risk, [100.0, 80.0, 70.0, 60.0])
    np.testing.assert_allclose(arm.followed, 1.0)


def test_of_those_who_leave_within_an_interval_both_hazards_have_their_share():
    # Of 100 at risk half leave, three with the event for two who are lost: hazards of .6 and .4 times log 2.
    arm = Arm.of(np.array([1.0]), np.array([30.0, 20.0, 50.0]), 1e-9)
    assert arm.survival[0] == pytest.approx(0.5**0.6)
    assert arm.followed[0] == pytest.approx(0.5**0.4)


def test_a_curve_is_close_to_the_product_limit_and_the_mean_to_the_area_below_it():
    time, event = drawn(4_000, 1)
    fine = np.linspace(0, HORIZON, 41)[1:]
    arm = Arm.of(fine, table(time, event, fine), 1e-9)
    survival, area = kaplan_meier(time, event, HORIZON)
    assert arm.survival[-1] == pytest.approx(survival, abs=1e-3)
    assert mean(arm, "rmst") == pytest.approx(area, rel=1e-3)
    assert mean(arm, "risk") == pytest.approx(1.0 - survival, abs=1e-3)


def test_without_noise_the_variance_is_that_of_greenwood():
    time, event = drawn(2_000, 2)
    fine = np.linspace(0, HORIZON, 61)[1:]
    arm = Arm.of(fine, table(time, event, fine), 1e-9)
    events = np.unique(time[(event == 1) & (time <= HORIZON)])
    greenwood = sum(1.0 / (np.sum(time >= t) * (np.sum(time >= t) - 1.0)) for t in events)
    assert arm.event_covariance.sum() == pytest.approx(greenwood, rel=0.03)


def test_without_censoring_a_record_counts_as_its_own_time_or_event():
    counts = np.array([50.0, 30.0, 10.0, 5.0, 0.0, 0.0, 0.0, 0.0, 105.0])
    arms = (Arm.of(TIMES, counts, 1e-9), Arm.of(TIMES, counts[[1, 0, 3, 2, 4, 5, 6, 7, 8]], 1e-9))
    time, arm = np.linspace(0.0, 1.4, 200), np.arange(200) % 2.0
    event = (time < 1.0).astype(float)
    rmst = pseudo_outcome(arms, "rmst")(time, event, arm)
    np.testing.assert_allclose(rmst, HORIZON * np.minimum(time, 1.0), atol=HORIZON / STEPS)
    np.testing.assert_allclose(pseudo_outcome(arms, "risk")(time, event, arm), event, atol=1e-3)


@pytest.mark.parametrize("measure", ["rmst", "risk"])
@pytest.mark.parametrize("wrong", ["nothing", "events", "lost"])
def test_the_mean_is_right_if_either_hazard_is(measure, wrong):
    time, event = drawn(60_000, 3)
    arm = Arm.of(TIMES, table(time, event), 1e-9)
    # One hazard is halved or doubled: a wrong model of the event, or a wrong one of censoring.
    if wrong != "nothing":
        changed = {name: getattr(arm, name) for name in Arm.__slots__}
        arm = Arm(**changed | {wrong: np.linspace(0.5, 2.0, 4) * getattr(arm, wrong)})
    numbers = pseudo_outcome((arm, arm), measure)(time / HORIZON, event, np.zeros(len(time)))
    truth = HORIZON * (1 - np.exp(-1.0)) if measure == "rmst" else 1 - np.exp(-1.0)
    assert abs(numbers.mean() - truth) < 4.0 * numbers.std() / np.sqrt(len(numbers))
    # Of the wrong hazard itself that could not be said.
    assert wrong != "events" or abs(mean(arm, measure) - truth) > 0.02 * truth


def test_noise_in_the_table_moves_the_mean_by_what_the_remainder_allows():
    time, event = drawn(1_500, 4)
    exact = table(time, event)
    rng, found, allowed, tables = np.random.default_rng(5), [], [], []
    for _ in range(300):
        arm = Arm.of(TIMES, exact + rng.normal(0, 14.0, exact.shape), 14.0)
        found.append(pseudo_outcome((arm, arm), "rmst")(time / HORIZON, event, 0 * time).mean())
        left = remainder(arm, "rmst")
        allowed.append(left.product)
        tables.append([mean(arm, "rmst"), left.table])
    assert np.std(found) < 1.2 * np.mean(allowed)
    # The table alone is many times as noisy, and says so.
    means, stated = np.array(tables).T
    assert np.std(means) > 5.0 * np.std(found)
    assert 0.7 < np.std(means) / np.sqrt(np.mean(stated**2)) < 1.15


def test_the_grid_allowance_holds_for_events_and_losses_that_come_together():
    # Within each interval all are lost at one time, and all events come just before, or just after it.
    for gap in (-1.0, 1.0):
        middles = np.append(0.0, TIMES[:-1]) + 50.0
        time = np.concatenate([np.repeat(middles + gap, 100), np.repeat(middles, 80), np.full(280, 400.0)])
        event = np.repeat([1.0, 0.0, 0.0], [400, 320, 280])
        arm = Arm.of(TIMES, table(time, event), 1e-9)
        found = pseudo_outcome((arm, arm), "rmst")(time / HORIZON, event, 0 * time).mean()
        off = abs(found - kaplan_meier(time, event, HORIZON)[1])
        assert 0.0 < off < 1.05 * remainder(arm, "rmst").grid


@pytest.mark.parametrize("sd", [1e-9, 12.0])
def test_bands_cover_points_and_curves_at_once_as_often_as_they_say(sd):
    rng, fine = np.random.default_rng(6), np.linspace(0, HORIZON, 9)[1:]
    truth, points, at_once = np.exp(-fine / 365.0), [], []
    for seed in range(200):
        time, event = drawn(800, 100 + seed)
        arm = Arm.of(fine, table(time, event, fine) + rng.normal(0, sd, 17), sd)
        band, wide = arm.band(0.05), arm.band(same_level(0.05, 8))
        points.append((band.low[1:] <= truth) & (truth <= band.high[1:]))
        at_once.append(np.all((wide.low[1:] <= truth) & (truth <= wide.high[1:])))
        assert np.all(np.diff(band.survival) <= 0.0)
        assert np.all(band.low <= band.survival)
        assert np.all(band.survival <= band.high)
    # Three standard errors of a share of 200.
    assert np.mean(points) > 0.95 - 0.03
    assert np.mean(at_once) > 0.95 - 0.046


def test_negative_counts_go_and_their_total_stays():
    np.testing.assert_allclose(_nonnegative(np.array([5.0, -2.0, 3.0])), [4.0, 0.0, 2.0])
    np.testing.assert_allclose(_nonnegative(np.array([-5.0, -2.0, 3.0])), 0.0)
    counts = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(_nonnegative(counts), counts)


def test_an_arm_of_nothing_but_noise_has_finite_hazards_and_numbers():
    for counts in (np.zeros(9), np.full(9, -20.0), np.array([500.0, *np.zeros(8)])):
        arm = Arm.of(TIMES, counts, 30.0)
        number = pseudo_outcome((arm, arm), "risk")
        assert np.isfinite([number.low, number.high, remainder(arm, "rmst").product]).all()
        assert number.high > number.low
