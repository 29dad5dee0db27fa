"""What a release tells its readers to look at."""

import numpy as np
import pytest

from discreet import ATE, Bounds, DifferenceInMeans
from discreet.estimators.measurements.location import Location, public_notes
from discreet.postprocessing.tails import SIDES, Strata, Tails, signed_bins
from discreet.privacy.budget import Budget
from discreet.testing import seeded_noise

CONTINUOUS = ((0.0, 0.5, 0.0), (0.0, 0.5, 0.0))


def located(ends=CONTINUOUS, spread=0.3, noise=1e-4):
    values = spread * np.linspace(-2.0, 2.0, 4_001)
    fractions = np.bincount(signed_bins(values, 2.0), minlength=SIDES) / len(values)
    tails = Tails.fit(fractions, noise, 2.0, Strata.between(0.5, 0.5), atomic=False, randomised=True)
    return Location(
        treated=0.5,
        treated_noise=noise,
        centre=0.0,
        noise=noise,
        deviation=spread,
        magnitude=tails.magnitudes[0],
        ends=np.array(ends),
        ends_noise=noise,
        tails=tails,
    )


def notes(*, epsilon=1.0, delta=1e-6, n=10_000.0, propensity=None, **facts):
    return " ".join(public_notes(Budget(epsilon=epsilon, delta=delta), n, located(**facts), propensity))


def test_nothing_is_said_where_nothing_stands_out():
    assert notes() == notes(delta=None) == notes(propensity=0.5) == notes(propensity=np.full(3, 0.1)) == ""


@pytest.mark.parametrize(
    ("usual", "odd", "words"),
    [
        ({"delta": 0.99e-4}, {"delta": 1.01e-4}, "Delta is above one over"),
        ({"epsilon": 10.0}, {"epsilon": 10.1}, "epsilon above 10"),
        ({"spread": 0.06}, {"spread": 0.01}, "small part of their declared range"),
        ({"ends": ((0.49, 0.0, 0.01),) * 2}, {"ends": ((0.49, 0.0, 0.01), (0.499, 0.0, 0.001))}, "fewer than 30"),
        ({"ends": ((0.01, 0.0, 0.49),) * 2}, {"ends": ((0.0029, 0.0, 0.497), (0.1, 0.0, 0.4))}, "fewer than 30"),
        ({"propensity": 0.51}, {"propensity": 0.53}, "far from the declared probability of 0.53"),
    ],
    ids=str,
)
def test_what_stands_out_is_said(usual, odd, words):
    assert words not in notes(**usual)
    assert words in notes(**odd)


def test_noise_and_chance_are_no_reason_to_doubt_a_design():
    assert "declared probability" not in notes(propensity=0.53, noise=0.01)
    assert "declared probability" not in notes(propensity=0.53, n=400.0)
    assert "declared probability" in notes(propensity=0.53, n=40_000.0)


def test_notes_print_no_number_of_records():
    everything = notes(epsilon=20.0, delta=0.01, n=12_345.0, propensity=0.9, spread=0.01)
    assert everything.count(":") >= 4
    assert not any(text in everything for text in ("12345", "12,345", "12 345"))


def test_releases_carry_them():
    rng = np.random.default_rng(0)
    t, y = (rng.random(3_000) < 0.5).astype(float), (rng.random(3_000) < 0.004).astype(float)
    bounds = Bounds(outcome=[0, 1])
    with seeded_noise(0):
        means = DifferenceInMeans(epsilon=20.0, bounds=bounds, propensity=0.8).fit(y, t)
        ate = ATE(epsilon=5.0, delta=1e-3, bounds=bounds).fit(y, t)
    told = " ".join(means.release_.notes)
    assert all(words in told for words in ("epsilon above 10", "fewer than 30", "far from the declared"))
    told = " ".join(ate.release_.notes)
    assert all(words in told for words in ("Delta is above", "fewer than 30"))
