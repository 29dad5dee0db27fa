import numpy as np
import pytest

from discreet.data.bounds import Range
from discreet.data.records import CHUNK_ROWS, Chunk
from discreet.estimators.measurements import covariates
from discreet.estimators.measurements.polynomials import Features
from discreet.postprocessing.basis import Basis, Size
from discreet.postprocessing.feature_selection import FeatureSelection
from discreet.postprocessing.kernel_basis import combine

BASIS = Basis.flat((Range(0, 1), Range(0, 1)), Size(degree=2, pairs=True, curved=False))
ROWS = 50


def chunk(seed):
    rng = np.random.default_rng(seed)
    return Chunk(rng.uniform(-1, 1, ROWS), rng.integers(0, 2, ROWS) * 1.0, rng.uniform(-1, 1, (ROWS, 2)), None)


def check(features, one):
    phi, weight = BASIS(one.x)
    np.testing.assert_array_equal(features(one), phi)
    np.testing.assert_array_equal(features.weights(one), weight)
    np.testing.assert_array_equal(features.times(one, one.y), phi * one.y[:, None])
    selection = FeatureSelection(np.array([0, 2]), np.array([0.5, 2.0]))
    narrow, narrow_weight = selection(phi)
    got = features.selected(one, selection, one.y)
    np.testing.assert_array_equal(got, narrow * (one.y * narrow_weight)[:, None])
    np.testing.assert_array_equal(features(one), phi)


def test_features_of_chunks_that_come_again_are_computed_once():
    features, chunks = Features(BASIS, 3 * CHUNK_ROWS), [chunk(seed) for seed in range(3)]
    first = [features(one) for one in chunks]
    for one, phi in zip(chunks, first, strict=True):
        check(features, one)
        assert features(one) is phi


def test_features_are_found_in_whatever_order_chunks_come():
    features, chunks = Features(BASIS, 3 * CHUNK_ROWS), [chunk(seed) for seed in range(3)]
    first = [features(one) for one in chunks]
    for place in (2, 0, 1, 1, 0, 2):
        assert features(chunks[place]) is first[place]


def test_a_chunk_with_the_same_rows_is_another_chunk():
    features, one = Features(BASIS, 3 * CHUNK_ROWS), chunk(0)
    alike = Chunk(*one)
    assert features(alike) is not features(one)
    np.testing.assert_array_equal(features(alike), features(one))


def test_products_follow_the_values_of_coefficients():
    features, one, coefficients = Features(BASIS, 3 * CHUNK_ROWS), chunk(0), np.ones(BASIS.m)
    before = features.combine(one, coefficients)
    assert features.combine(one, coefficients.copy()) is before
    coefficients[1] = 2.0
    np.testing.assert_array_equal(features.combine(one, coefficients), combine(BASIS(one.x)[0], coefficients))


def test_features_are_right_where_every_pass_makes_its_own_chunks():
    features = Features(BASIS, 3 * CHUNK_ROWS)
    kept = [chunk(seed) for seed in range(12)]
    for one in kept:
        check(features, one)
    assert np.shares_memory(features(kept[0]), features(kept[1]))


@pytest.mark.parametrize("n", [1, 10**9])
def test_features_of_more_records_than_may_be_kept_share_memory(n, monkeypatch):
    monkeypatch.setattr(covariates, "_KEPT_NUMBERS", 2 * CHUNK_ROWS * BASIS.m)
    features = Features(BASIS, n)
    for seed in range(6):
        check(features, chunk(seed))
    assert np.shares_memory(features(chunk(7)), features(chunk(8)))


def test_another_process_gets_the_basis_and_no_records():
    features = Features(BASIS, 100)
    features(chunk(0))
    kind, given = features.__reduce__()
    assert (kind, given) == (type(features), (BASIS, 100))
