"""Codes of covariates: atoms, long tails, ranges declared far too wide, and levels."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.data._arrays import Float
from discreet.data.columns import Levels, Range
from discreet.postprocessing.coding import FINEST, CellFinder, Coding, code_numbers, coding, finer_edges, first_edges

RANGE = Range(0.0, 1.0)
SD = 1e-3


def histogram(values: Float, edges: Float, rng: np.random.Generator) -> Float:
    """Shares of the cells with noise."""
    shares = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1) / len(values)
    return np.asarray(shares + SD * rng.normal(size=len(shares)))


def coded(values: Float) -> Coding:
    """Both histograms of a range, and its codes."""
    rng = np.random.default_rng(1)
    edges = first_edges(RANGE)
    finer = finer_edges(RANGE, edges, histogram(values, edges, rng), SD)
    return coding(RANGE, finer, histogram(values, finer, rng), SD)


def test_every_value_that_many_records_share_has_a_code_of_its_own() -> None:
    values = np.repeat([-1.0, -0.7, -0.4, 0.5], [7_000, 1_500, 1_000, 500])
    found = coded(values)
    assert found.count == 4
    assert found.mass == pytest.approx([0.7, 0.15, 0.1, 0.05], abs=5 * SD)
    assert list(np.unique(found.codes(values))) == [0, 1, 2, 3]


def test_a_range_declared_a_hundred_times_too_wide_still_gets_many_codes() -> None:
    values = -1.0 + 0.02 * np.linspace(0.0, 1.0, 10_000)
    assert first_edges(RANGE)[0] > values.max()  # all of them in one cell of the first histogram
    found = coded(values)
    assert found.count >= 30
    assert found.mass.max() < 0.06


def test_empty_cells_make_hardly_any_codes() -> None:
    rng = np.random.default_rng(0)
    edges = first_edges(RANGE)
    there = np.where(np.arange(len(edges) + 1) < 16, 1.0 / 16.0, 0.0)
    found = coding(RANGE, edges, there + SD * rng.normal(size=len(there)), SD)
    # Forty-eight empty cells together have the sum of their noise.
    assert 16 <= found.count <= 19
    assert found.mass[:16] == pytest.approx(np.full(16, 1.0 / 16.0), abs=5.0 * SD)
    assert found.mass[16:].sum() < 3.0 * 48**0.5 * SD


def test_what_noise_hides_is_taken_to_be_even() -> None:
    rng = np.random.default_rng(1)
    edges = first_edges(RANGE)
    for sd, codes in ((0.02, range(20, 50)), (0.06, range(8, 17)), (0.1, range(4, 8))):
        hidden = coding(RANGE, edges, 1.0 / 64.0 + sd * rng.normal(size=len(edges) + 1), sd)
        assert hidden.count in codes
        assert hidden.mass.max() <= 3.0 / hidden.count
        assert hidden.mass.sum() == pytest.approx(1.0)


def test_values_that_are_thinly_spread_beside_a_common_one_have_codes_too() -> None:
    # No cell of theirs stands clear of noise by itself; all of them together are a fifth of the records.
    rng = np.random.default_rng(3)
    values = np.where(rng.random(20_000) < 0.8, -1.0, rng.uniform(-1.0, 1.0, 20_000))
    edges = first_edges(RANGE)
    sd = 2.0 * SD
    shares = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1) / len(values)
    assert shares[1:].max() < 3.0 * sd
    finer = finer_edges(RANGE, edges, shares + sd * rng.normal(size=len(shares)), sd)
    again = np.bincount(np.searchsorted(finer, values, side="right"), minlength=len(finer) + 1) / len(values)
    found = coding(RANGE, finer, again + sd * rng.normal(size=len(again)), sd)
    own = found.codes(np.linspace(-0.8, 1.0, 500))
    assert len(np.unique(own)) >= 6
    assert found.mass[np.unique(own)].sum() == pytest.approx(0.18, abs=0.05)


def test_less_noise_makes_finer_cells() -> None:
    edges = first_edges(RANGE)
    counts = [len(finer_edges(RANGE, edges, np.full(64, 1.0 / 64.0), sd)) for sd in (1e-2, 2e-3, 1e-5)]
    assert counts[0] < counts[1] < counts[2] <= FINEST


def test_codes_rise_with_values_and_cover_the_whole_range() -> None:
    found = coded(np.random.default_rng(2).normal(-0.3, 0.1, 20_000).clip(-1.0, 1.0))
    codes = found.codes(np.linspace(-1.0, 1.0, 1_001))
    assert (np.diff(codes) >= 0).all()
    assert codes[0] == 0
    assert codes[-1] == found.count - 1


def test_scores_of_codes_are_those_of_a_normal_variable() -> None:
    found = coded(np.linspace(-1.0, 1.0, 20_000))
    assert found.mass @ found.scores == pytest.approx(0.0, abs=1e-9)
    assert found.mass @ found.scores**2 == pytest.approx(1.0, abs=0.02)


def test_levels_keep_their_positions_and_no_level_is_without_mass() -> None:
    column = Levels(("a", "b", "c"))
    edges = first_edges(column)
    found = coding(column, edges, np.array([0.6, 0.4, -0.01]), 0.01)
    assert list(found.codes(np.array([0.0, 1.0, 2.0]))) == [0, 1, 2]
    assert found.mass.min() > 0.0
    assert not found.ordered


def test_cells_of_several_columns_at_once_are_those_of_each() -> None:
    x = np.array([[-1.0, 0.0], [0.2, 2.0], [1.0, 1.0]])
    edges = [first_edges(RANGE), first_edges(Levels(("a", "b", "c")))]
    assert code_numbers(x, [CellFinder(own) for own in edges]).tolist() == [[0, 0], [38, 2], [63, 1]]
