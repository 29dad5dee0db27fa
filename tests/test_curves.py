import numpy as np
import pytest

from discreet.postprocessing.marginals import BINS
from discreet.postprocessing.polynomials import Line, Ranks, normal_scores, polynomials, recurrence, unroll

BELL = np.exp(-0.5 * np.linspace(-2.5, 2.5, BINS) ** 2)
BELL /= BELL.sum()
SKEWED = np.exp(-np.linspace(0.0, 6.0, BINS))
SKEWED /= SKEWED.sum()


@pytest.mark.parametrize("knots", [2, 3, 7, BINS, BINS + 1, 1_000])
@pytest.mark.parametrize("high", [1.0, 1.0 - 1.0 / BINS, 0.3])
def test_a_line_gives_to_the_bit_what_numpy_interpolates(knots, high):
    rng = np.random.default_rng(knots)
    at, values = np.linspace(-high, high, knots), rng.standard_normal(knots)
    beside = [np.nextafter(at, -2.0), np.nextafter(at, 2.0), np.nextafter(np.nextafter(at, -2.0), -2.0)]
    x = np.clip(np.concatenate([rng.uniform(-1, 1, 20_000), at, *beside, [0.0]]), -high, high)
    np.testing.assert_array_equal(Line(-high, high, values)(x), np.interp(x, at, values), strict=True)


@pytest.mark.parametrize("marginal", [BELL, SKEWED], ids=["bell", "skewed"])
def test_curves_are_the_same_wherever_they_are_written(marginal):
    scores = normal_scores(marginal)
    rows = recurrence(marginal, scores, 3)
    ranks = Ranks.of(marginal, scores, rows, steps=True, jumps=4)
    x = np.random.default_rng(0).uniform(-1, 1, 500)
    fresh = polynomials(unroll(x, scores), rows)
    fresh += ranks(x, fresh)
    room = np.full((12, 500), np.nan)
    written = polynomials(unroll(x, scores), rows, room)
    ranks(x, written, room[3:])
    np.testing.assert_array_equal(room[:9], fresh)
    assert np.isnan(room[9:]).all()
