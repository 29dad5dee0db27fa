"""Differences of the arms from released moments: right where noise is nothing, honest where moments do not reach."""

import numpy as np
import pytest

from discreet.data.columns import Levels, Range
from discreet.postprocessing.coding import CELLS, coding, first_edges
from discreet.postprocessing.diagnostics.balance import Arms, Fitted, differences
from discreet.postprocessing.diagnostics.moments import TreatmentMoments
from discreet.postprocessing.diagnostics.overlap import BARS, overlap
from discreet.postprocessing.kernel_basis import CodedBasis
from discreet.postprocessing.reference_population import Reference

N = 20_000
COLUMNS = (Range(-1, 1), Levels(("a", "b", "c")))
RNG = np.random.default_rng(5)
X = np.column_stack([np.clip(RNG.normal(0.1, 0.3, N), -1, 1), RNG.choice(3, N, p=[0.5, 0.3, 0.2])])


def propensity(x, ward):
    return 1 / (1 + np.exp(-(x * 1.5 + 0.5 * (ward == 2))))


E = propensity(*X.T)
T = (RNG.random(N) < E).astype(float)


def histogram(values, edges):
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1) / N


def codings(sd=1e-6):
    edges = [first_edges(column) for column in COLUMNS]
    return [coding(c, e, histogram(x, e), sd) for c, e, x in zip(COLUMNS, edges, X.T, strict=True)]


def moments(basis, sd=1e-9):
    """What a gate without noise would give."""
    features = basis.from_codes(basis.codes(X), N)
    value = (basis.held(features) * (T - T.mean())) @ features / N
    return TreatmentMoments(basis, value, sd)


def found(most=12, sd=1e-9, seen=N, modelled=False):
    codes = codings()
    basis = CodedBasis.of_singles(codes, most)
    reference = Reference.of_codes(basis, np.eye(2))
    e = propensity(*(own.value[at] for own, at in zip(codes, reference.codes, strict=True)))
    fitted = Fitted(e if modelled else np.full(len(e), T.mean()), False, None)
    return differences(codes, reference, [moments(basis, sd)], fitted, Arms(N, seen, float(T.mean()), 0.0))


def exact():
    treated, control = X[T == 1], X[T == 0]
    age = (treated[:, 0].mean() - control[:, 0].mean()) / X[:, 0].std()
    return [age, *(np.mean(treated[:, 1] == k) - np.mean(control[:, 1] == k) for k in range(3))]


def test_without_noise_differences_are_those_of_the_records():
    rows = found(modelled=True)
    assert [(row.covariate, row.level) for row in rows] == [(0, None), (1, 0), (1, 1), (1, 2)]
    for row, truth in zip(rows, exact(), strict=True):
        assert row.before == pytest.approx(truth, abs=0.01)
        assert abs(row.before - truth) <= 2 * row.before_sd
        assert row.before_sd < 0.05
        assert row.after is None
        assert row.after_sd is None


def test_without_a_model_what_weights_of_records_hide_is_within_what_is_stated():
    for row, truth in zip(found(), exact(), strict=True):
        assert abs(row.before - truth) <= 2 * row.before_sd


def test_the_scale_of_a_range_is_its_standard_deviation_and_of_a_level_one():
    rows = found()
    assert rows[0].scale == pytest.approx(X[:, 0].std(), rel=0.01)
    assert [row.scale for row in rows[1:]] == [1.0, 1.0, 1.0]


def test_more_noise_is_stated():
    sds = [found(sd=sd)[0].before_sd for sd in (1e-9, 0.005, 0.02, 0.1)]
    assert sds == sorted(sds)
    assert sds[-1] > 2 * sds[0]


def test_what_no_moment_covers_is_stated():
    # One function of three levels says nothing of one of the two directions in which they can differ.
    some, all_ = found(most=1), found(most=12)
    assert max(row.before_sd for row in some[1:]) > 2 * max(row.before_sd for row in all_[1:])


def test_a_sample_does_not_see_all_records():
    assert found(seen=N // 20)[0].before_sd > found()[0].before_sd


def test_a_coarse_code_is_stated():
    edges = np.array([0.0])
    coarse = coding(COLUMNS[0], edges, histogram(X[:, 0], edges), 1e-6)
    fine = codings()[0]
    assert coarse.scale.within > 20 * fine.scale.within
    assert fine.scale.variance == pytest.approx(X[:, 0].var(), rel=0.02)
    assert fine.count > CELLS // 4


def test_of_two_levels_the_second_stands_for_both():
    column = Levels(("f", "m"))
    codes = [coding(column, first_edges(column), np.array([0.6, 0.4]), 1e-6)]
    basis = CodedBasis.of_singles(codes, 4)
    reference = Reference.of_codes(basis, np.eye(1))
    fitted = Fitted(np.full(len(reference.weight), 0.5), False, None)
    rows = differences(
        codes, reference, [TreatmentMoments(basis, np.zeros(basis.m), 0.1)], fitted, Arms(N, N, 0.5, 0.0)
    )
    assert [row.level for row in rows] == [1]


@pytest.mark.parametrize(
    "values", [np.full(1_000, 0.5), np.linspace(0.05, 0.95, 1_000), np.r_[0.05, np.full(999, 0.95)]]
)
def test_overlap_adds_up(values):
    plain = overlap(values, 0.05, 0.95, 0.3)
    for shares in plain["shares"].values():
        assert len(shares) == BARS
        assert sum(shares) == pytest.approx(1.0, abs=1e-4)
    assert all(0.0 < part <= 1.0 + 1e-9 for part in plain["effective"].values())
    levels = [value for _, value in plain["quantiles"]]
    assert levels == sorted(levels)


def test_even_probabilities_lose_nobody_and_uneven_ones_do():
    assert overlap(np.full(100, 0.3), 0.1, 0.9, 0.1)["effective"] == {"control": 1.0, "treated": 1.0}
    assert overlap(np.linspace(0.02, 0.98, 100), 0.01, 0.99, 0.1)["effective"]["treated"] < 0.7
