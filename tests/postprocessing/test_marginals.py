import numpy as np
import pytest

from discreet.data.bounds import Levels, Range
from discreet.postprocessing.marginals import (
    BINS,
    NARROWEST,
    Line,
    Ranks,
    cell_numbers,
    cells,
    clean_marginals,
    clean_windows,
    find_windows,
    into_windows,
    normal_scores,
    polynomials,
    recurrence,
    unroll,
)

UNIFORM = np.full(BINS, 1 / BINS)
CENTRES = (2 * np.arange(BINS) + 1) / BINS - 1
BELL = np.exp(-0.5 * (CENTRES / 0.33) ** 2)
BELL /= BELL.sum()
SKEWED = np.exp(-3.0 * (CENTRES + 1))
SKEWED /= SKEWED.sum()
RANGE, LEVELS = Range(0, 1), Levels(tuple(range(BINS)))


def square(marginal):
    """Mean square of a covariate with this marginal."""
    return marginal @ CENTRES**2


@pytest.mark.parametrize("marginal", [BELL, SKEWED, UNIFORM], ids=["bell", "skewed", "uniform"])
@pytest.mark.parametrize("sd", [0.0, 1e-7])
def test_a_histogram_without_noise_is_returned_as_it_is(marginal, sd):
    # Cells that are all but empty are raised a little, so only the others are compared closely.
    (clean,) = clean_marginals((RANGE,), (marginal,), sd)
    assert clean.sum() == pytest.approx(1)
    np.testing.assert_allclose(clean, marginal, atol=0.03 / BINS)


@pytest.mark.parametrize("column", [RANGE, LEVELS])
def test_a_clean_marginal_is_nearer_to_the_truth_than_the_noisy_one(column):
    rng = np.random.default_rng(4)
    before = after = 0.0
    for _ in range(50):
        noisy = BELL + rng.normal(0, 0.02, BINS)
        (clean,) = clean_marginals((column,), (noisy,), 0.02)
        assert clean.min() > 0
        assert clean.sum() == pytest.approx(1)
        before += np.sum((noisy - BELL) ** 2)
        after += np.sum((clean - BELL) ** 2)
    assert after < before


@pytest.mark.parametrize("truth", [BELL, UNIFORM], ids=["bell", "uniform"])
def test_covariates_that_are_alike_share_what_is_known_of_their_shape(truth):
    # So much noise that a histogram on its own says next to nothing; a wrong guess would be off by a factor of three.
    rng, columns = np.random.default_rng(6), (RANGE,) * 6
    errors = {1: [], 6: []}
    for _ in range(60):
        noisy = tuple(truth + rng.normal(0, 0.05, BINS) for _ in columns)
        for size in errors:
            clean = clean_marginals(columns[:size], noisy[:size], 0.05)
            errors[size].append(square(clean[0]) / square(truth) - 1.0)
    assert abs(np.mean(errors[6])) < 0.1
    assert np.mean(np.square(errors[6])) < 0.6 * np.mean(np.square(errors[1]))


def test_a_covariate_unlike_the_others_keeps_its_own_shape():
    rng = np.random.default_rng(7)
    columns = (RANGE, RANGE, RANGE, RANGE)
    noisy = tuple(truth + rng.normal(0, 0.004, BINS) for truth in (BELL, BELL, BELL, UNIFORM))
    clean = clean_marginals(columns, noisy, 0.004)
    assert square(clean[0]) == pytest.approx(square(BELL), rel=0.2)
    assert square(clean[3]) == pytest.approx(square(UNIFORM), rel=0.2)


def test_pure_noise_is_cleaned_to_equal_cells():
    rng = np.random.default_rng(5)
    noisy = [UNIFORM + rng.normal(0, 1, BINS) for _ in range(50)]
    far = [np.abs(clean_marginals((LEVELS,), (part,), 1.0)[0] - UNIFORM).max() for part in noisy]
    assert np.median(far) < 1e-9


def test_no_covariates_have_no_marginals():
    assert clean_marginals((), (), 0.1) == ()


def test_cell_numbers_cover_the_range_and_nothing_else():
    columns = (Range(0, 1), Levels(("a", "b", "c")))
    x = np.array([[-1.0, 0.0], [1.0, 2.0], [0.0, 1.0], [np.nextafter(1.0, 0.0), 0.0]])
    np.testing.assert_array_equal(cell_numbers(x, columns), [[0, 0], [BINS - 1, 2], [BINS // 2, 1], [BINS - 1, 0]])
    assert [cells(column) for column in columns] == [BINS, 3]


def _histogram(values):
    return np.histogram(values, BINS, (-1, 1))[0] / len(values)


@pytest.mark.parametrize("sd", [1e-4, 2e-3, 8e-3])
def test_a_range_that_was_declared_ten_times_too_wide_gets_a_window_with_all_its_records(sd):
    rng = np.random.default_rng(5)
    values = np.clip(rng.normal(0.3, 1 / 30, 50_000), -1, 1)
    (window,) = find_windows((RANGE,), (_histogram(values) + rng.normal(0, sd, BINS),), sd)
    assert window is not None
    middle, half = window
    assert half < 0.35
    assert np.mean(np.abs(values - middle) <= half) > 0.99


def test_a_range_that_is_filled_has_no_window_and_levels_never_have_one():
    assert find_windows((RANGE, LEVELS), (UNIFORM, UNIFORM), 1e-4) == (None, None)
    # Nothing but noise is no reason to narrow anything.
    noise = np.random.default_rng(6).normal(0, 0.5, BINS)
    assert find_windows((RANGE,), (UNIFORM + noise,), 0.5) == (None,)


def test_windows_count_what_lies_outside_as_their_ends():
    x = np.array([[-1.0, 0.0], [0.1, 1.0], [0.3, 2.0], [0.9, 0.0]])
    inside = into_windows(x, ((0.2, 0.2), None))
    np.testing.assert_allclose(inside[:, 0], [-1.0, -0.5, 0.5, 1.0])
    np.testing.assert_array_equal(inside[:, 1], x[:, 1])
    assert into_windows(x, (None, None)) is x


def test_a_second_histogram_knows_plateaus_and_skewed_shapes():
    rng = np.random.default_rng(7)
    plateau = np.where((np.arange(BINS) >= 4) & (np.arange(BINS) < 18), 1 / 14, 0.0)
    skewed = _histogram(2 * np.clip(np.exp(rng.normal(-2, 0.6, 100_000)), 0, 1) - 1)
    for truth in (plateau, skewed):
        noisy = [truth + rng.normal(0, 0.02, BINS) for _ in range(40)]
        before = [clean_marginals((RANGE,), (part,), 0.02)[0] for part in noisy]
        again = [_on_the_range(*clean_windows([None], [part], 0.02)) for part in noisy]
        assert _mean_error(again, truth) < 0.8 * _mean_error(before, truth)


def _on_the_range(windows, marginals):
    middle, half = windows[0] or (0.0, 1.0)
    edges, below = np.linspace(-1.0, 1.0, BINS + 1), np.concatenate([[0.0], np.cumsum(marginals[0])])
    return np.diff(np.interp(edges, middle + half * edges, below))


def _mean_error(found, truth):
    return np.mean([np.sum((one - truth) ** 2) for one in found])


def test_ends_that_a_second_histogram_finds_empty_are_cut_off():
    rng = np.random.default_rng(8)
    # Even records from -0.1 to 0.1 of a range, in a window from -0.25 to 0.25.
    truth = _histogram(rng.uniform(-0.4, 0.4, 100_000))
    for sd in (1e-4, 0.005):
        found = [clean_windows([(0.0, 0.25)], [truth + rng.normal(0, sd, BINS)], sd) for _ in range(20)]
        windows = np.array([window for (window,), _ in found])
        np.testing.assert_allclose(np.median(windows, axis=0), (0.0, 0.25 * 10 / BINS), atol=0.25 / BINS)
        inside = np.median([marginal for _, (marginal,) in found], axis=0)
        np.testing.assert_allclose(inside[4:-4] * BINS, 1.0, atol=0.15)


def test_what_stands_clear_of_the_noise_is_not_cut_off():
    truth = np.zeros(BINS)
    truth[[9, 10, 11, 12]], truth[23] = 0.24, 0.04
    ((window,), (marginal,)) = clean_windows([None], [truth], 0.004)
    assert sum(window) == pytest.approx(1.0)
    assert marginal[-1] * BINS > 0.5


def test_windows_stay_inside_the_range_whatever_they_are_cut_to():
    for low in range(BINS):
        for high in range(low + 1, BINS + 1):
            truth = np.where((np.arange(BINS) >= low) & (np.arange(BINS) < high), 1.0 / (high - low), 0.0)
            (window,) = find_windows((RANGE,), (truth,), 1e-6)
            for again in (truth, truth[::-1]):
                ((middle, half),) = [part or (0.0, 1.0) for part in clean_windows([window], [again], 1e-6)[0]]
                assert half >= NARROWEST - 1e-9
                assert abs(middle) + half <= 1.0 + 1e-9


def test_a_range_that_is_filled_keeps_its_window():
    for sd in (1e-4, 0.02, 0.5):
        ((window,), (marginal,)) = clean_windows([(0.3, 0.5)], [UNIFORM], sd)
        assert window == (0.3, 0.5)
        np.testing.assert_allclose(marginal, UNIFORM, rtol=0.05)


# --- curves along a range ---


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
    out = np.full((12, 500), np.nan)
    written = polynomials(unroll(x, scores), rows, out)
    ranks(x, written, out[3:])
    np.testing.assert_array_equal(out[:9], fresh)
    assert np.isnan(out[9:]).all()
