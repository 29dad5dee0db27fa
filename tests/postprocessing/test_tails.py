"""Where residuals are clipped: not where events would be lost, and alike in both arms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from discreet.data._arrays import Float
from discreet.postprocessing.tails import SIDES, Clip, Strata, Tails, signed_bins

TRIAL = Strata.between(0.5, 0.5)


def tails_of(
    values: Float, ceiling: float = 2.0, sd: float = 1e-4, *, atomic: bool = False, randomised: bool = True
) -> Tails:
    """Tails of residuals with hardly any noise, in one stratum."""
    fractions = np.bincount(signed_bins(values, ceiling), minlength=SIDES) / len(values)
    return Tails.fit(fractions, sd, ceiling, TRIAL, atomic=atomic, randomised=randomised)


@pytest.mark.parametrize(("atomic", "randomised", "part"), [(False, True, 0.5), (False, False, 1.0), (True, True, 1.0)])
def test_what_a_clip_cuts_off_counts_whole_but_in_trials_of_spread_outcomes(
    atomic: bool, randomised: bool, part: float
) -> None:
    values = 0.05 * np.random.default_rng(0).normal(size=200_000)
    tails = tails_of(values, atomic=atomic, randomised=randomised)
    clip = Clip(0.1, 0.1, 0.0, 0.0)
    measured = np.full(1, 1e-3)
    free = Clip(4.0, 4.0, 0.0, 0.0)
    settled = tails.settle([clip._replace(hidden=part * 1e-3), free], measured, sd=1e-9, noise=1.0)
    assert settled.hidden == pytest.approx(part * 1e-3, rel=1e-3)


def test_a_normal_residual_is_clipped_at_a_few_standard_deviations() -> None:
    values = 0.05 * np.random.default_rng(0).normal(size=200_000)
    clip = tails_of(values).clip(noise=1e-3, reach=(2.0, 2.0))
    # The score is clipped at the residual's level over one half.
    assert 2.0 < clip.low / 2.0 / 0.05 < 6.0
    assert 2.0 < clip.high / 2.0 / 0.05 < 6.0
    assert clip.lost < 0.03


def test_events_that_are_seen_are_never_clipped_away() -> None:
    # One event in fifty, far above the others.
    values = np.where(np.arange(100_000) % 50 == 0, 1.9, -0.04)
    clip = tails_of(values, atomic=True).clip(noise=1e-3, reach=(0.2, 2.0))
    assert clip.high / 2.0 > 0.9 * 1.9
    assert clip.hidden < 1e-3


def test_events_that_noise_may_hide_are_not_clipped_away_where_most_outcomes_are_alike() -> None:
    values = np.full(10_000, -0.001)
    noise = 5e-3
    hidden = tails_of(values, sd=noise, atomic=True).clip(noise=2.0 * noise / 3.0, reach=(0.2, 2.0))
    assert hidden.high / 2.0 > 1.5
    assert hidden.hidden < noise * 2.0


def test_more_noise_means_a_tighter_clip_and_more_that_may_be_hidden() -> None:
    tails = tails_of(0.05 * np.random.default_rng(1).standard_t(3, size=200_000))
    narrow, wide = (tails.clip(noise, (2.0, 2.0)) for noise in (1e-2, 1e-5))
    assert narrow.high < wide.high
    assert narrow.hidden > wide.hidden


def test_a_ladder_leads_from_the_suggested_clip_to_none() -> None:
    tails = tails_of(0.05 * np.random.default_rng(2).normal(size=50_000))
    ladder = tails.ladder(1e-3, (2.0, 2.0))
    assert ladder[0].high == pytest.approx(tails.clip(1e-3, (2.0, 2.0)).high)
    assert ladder[-1].high == pytest.approx(4.0)
    assert all(a.high < b.high for a, b in pairwise(ladder))


def test_what_is_measured_beyond_a_clip_widens_it() -> None:
    tails = tails_of(0.05 * np.random.default_rng(3).normal(size=50_000))
    ladder = [Clip(*clip[:2], 1e-3, clip.lost) for clip in tails.ladder(1e-3, (2.0, 2.0))]
    nothing, much = (tails.settle(ladder, np.full(len(ladder) - 1, q), 1e-6, 1e-3) for q in (0.0, 0.5))
    assert nothing.high == pytest.approx(ladder[0].high)
    assert much.high == pytest.approx(ladder[-1].high)


def test_strata_are_those_that_the_overlap_allows() -> None:
    assert TRIAL.count == 1
    wide = Strata.between(0.01, 0.99)
    assert wide.count == 5
    smaller = np.array([0.012, 0.03, 0.07, 0.2, 0.4])
    assert wide.numbers(smaller).tolist() == [0, 1, 2, 3, 4]
    assert (wide.middles > 0.01).all()
    assert (wide.middles < 0.5).all()


def test_a_measured_excess_that_stands_clear_of_its_noise_is_believed_where_the_histogram_expects_none() -> None:
    values = 0.05 * np.random.default_rng(0).normal(size=200_000)
    tails = tails_of(values, randomised=False)
    # Beyond the first clip nothing was expected, and ten standard deviations were found.
    ladder, noise = [Clip(0.5, 0.5, 1e-6, 0.0), Clip(4.0, 4.0, 0.0, 0.0)], 1e-4
    assert tails.settle(ladder, np.array([1e-2]), sd=1e-3, noise=noise).high == 4.0
    # What noise alone would show changes nothing.
    assert tails.settle(ladder, np.array([1e-3]), sd=1e-3, noise=noise).high == 0.5
    only = tails.settle(ladder, np.array([1e-2]), sd=1e-3, noise=1.0)
    assert only.hidden == pytest.approx(11e-3, rel=1e-2)
