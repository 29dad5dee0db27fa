"""Codes and functions of them: maps of single records that stay within the norm that noise is calibrated to."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.bounds import Levels, Range
from discreet.data.records import Chunk
from discreet.estimators.measurements.coded_features import CodedFeatures
from discreet.postprocessing.coding import CellFinder, code_numbers, coding, finer_edges, first_edges
from discreet.postprocessing.feature_selection import FeatureSelection
from discreet.postprocessing.kernel_basis import CodedBasis, CodedTables

COLUMNS = (Range(0, 1), Levels(("a", "b", "c")), Range(-5, 5), Levels((0, 1)))
seeds = st.integers(0, 10_000)
noises = st.sampled_from([1e-6, 1e-3, 0.02, 0.5])


def features_of(basis, x):
    return basis.from_codes(basis.codes(x), len(x))


def histograms(seed, noise, columns=COLUMNS):
    """Codings as they come out of noisy histograms of any shape."""
    rng, found = np.random.default_rng(seed), []
    for column in columns:
        edges = first_edges(column)
        cells = len(edges) + 1
        first = rng.dirichlet(np.full(cells, rng.choice([0.02, 1.0]))) + rng.normal(0, noise, cells)
        edges = finer_edges(column, edges, first, noise)
        cells = len(edges) + 1
        fractions = rng.dirichlet(np.full(cells, rng.choice([0.05, 1.0]))) + rng.normal(0, noise, cells)
        found.append((edges, coding(column, edges, fractions, noise)))
    return found


def rows_of(rng, columns=COLUMNS, n=200):
    """Encoded records, many of them at the ends."""
    x = np.clip(rng.uniform(-1.6, 1.6, (n, len(columns))), -1, 1)
    for j, column in enumerate(columns):
        if isinstance(column, Levels):
            x[:, j] = rng.integers(0, len(column.levels), n)
    return x


def basis_of(seed, noise, m):
    codings = [own for _, own in histograms(seed, noise)]
    importance = np.random.default_rng(seed).dirichlet(np.ones(len(codings)))
    return CodedBasis.build(codings, importance, m)


@settings(max_examples=60, deadline=None)
@given(seeds, noises)
def test_every_value_has_a_cell_and_a_code(seed, noise):
    found, x = histograms(seed, noise), rows_of(np.random.default_rng(seed))
    numbers = code_numbers(x, [CellFinder(own) for own, _ in found])
    for j, (own, made) in enumerate(found):
        levels = isinstance(COLUMNS[j], Levels)
        assert 0 <= numbers[:, j].min() <= numbers[:, j].max() < len(own) + 1
        assert not levels or np.array_equal(numbers[:, j], x[:, j])
        codes = made.codes(x[:, j])
        assert 0 <= codes.min() <= codes.max() < made.count
        assert made.mass.min() > 0
        assert made.mass.sum() == pytest.approx(1)
        for ends in (own, made.edges):
            assert np.all(np.diff(ends) > 0)
            assert levels or np.all(np.abs(ends) < 1)


@settings(max_examples=60, deadline=None)
@given(seeds, noises, st.sampled_from([1, 5, 20, 80]))
def test_no_record_has_features_beyond_the_radius(seed, noise, m):
    basis, x = basis_of(seed, noise, m), rows_of(np.random.default_rng(seed))
    features = CodedFeatures(basis, 1_000)
    chunk = Chunk(np.ones(len(x)), np.ones(len(x)), x, None)
    phi, weight = features(chunk), features.weights(chunk)
    assert np.isfinite(phi).all()
    assert np.all((weight > 0) & (weight <= 1))
    for power in (0.5, 1.0):
        norm = np.linalg.norm(phi * weight[:, None] ** power, axis=1)
        assert norm.max() <= basis.radius * (1 + 1e-12)
    # Whoever lies inside counts in full.
    assert np.all(weight[np.linalg.norm(phi, axis=1) <= basis.radius * (1 - 1e-9)] == 1)


@settings(max_examples=30, deadline=None)
@given(seeds, noises)
def test_a_records_features_do_not_depend_on_its_place_nor_on_others(seed, noise):
    basis, rng = basis_of(seed, noise, 40), np.random.default_rng(seed)
    x, order = rows_of(rng), rng.permutation(200)
    whole = features_of(basis, x)
    np.testing.assert_array_equal(features_of(basis, x[order]), whole[order])
    np.testing.assert_array_equal(basis.held(whole[order]), basis.held(whole)[order])
    np.testing.assert_array_equal(features_of(basis, x[17:18]), whole[17:18])
    tables = CodedTables(basis, rng.normal(0, 1, basis.m))
    np.testing.assert_array_equal(tables(x[order]), tables(x)[order])


@settings(max_examples=30, deadline=None)
@given(seeds, noises)
def test_tables_hold_what_features_times_coefficients_are(seed, noise):
    basis, rng = basis_of(seed, noise, 40), np.random.default_rng(seed)
    x, both = rows_of(rng), rng.normal(0, 1, (2, basis.m))
    for own, power in itertools.product(both, (1, 2)):
        found = pickle.loads(pickle.dumps(CodedTables(basis, own, power)))(x)
        np.testing.assert_allclose(found, features_of(basis, x) ** power @ own, atol=1e-9 * (1 + np.abs(found).max()))


@settings(max_examples=100, deadline=None)
@given(seeds, st.sampled_from([0, 1, 2, 64, 300]), st.booleans())
def test_cells_are_found_exactly(seed, count, crowded):
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.uniform(-1, 1, count))
    if crowded:
        edges = np.sort(np.concatenate([edges, edges, np.nextafter(edges, 2.0)]))
    x = np.concatenate(
        [rng.uniform(-1, 1, 200), edges, np.nextafter(edges, 2.0), np.nextafter(edges, -2.0), [-1, 1, 40]]
    )
    finder = pickle.loads(pickle.dumps(CellFinder(edges)))
    np.testing.assert_array_equal(finder(x), np.searchsorted(edges, x, side="right"))


def test_cells_of_very_many_levels_are_found_in_a_few_comparisons():
    for count in (2, 64, 4_096, 4_097, 20_000):
        edges, x = first_edges(Levels(tuple(range(count)))), np.arange(float(count))
        finder = CellFinder(edges)
        np.testing.assert_array_equal(finder(x), np.arange(count))
        assert finder._most <= 2


@settings(max_examples=30, deadline=None)
@given(seeds, noises, st.integers(0, 2))
def test_selected_features_are_made_without_the_others(seed, noise, functions):
    basis, rng = basis_of(seed, noise, 40), np.random.default_rng(seed)
    x, features = rows_of(rng), CodedFeatures(basis, 1_000)
    phi = features_of(basis, x)
    selection = FeatureSelection.of(rng.dirichlet(np.ones(basis.m)), np.mean(phi**2, axis=0))
    selection = selection.beside(phi.T @ phi / len(x), *rng.normal(0, 1, (functions, basis.m)))
    factor = rng.uniform(-1, 1, len(x))
    found = np.array(features.selected(Chunk(factor, factor, x, None), selection, factor))
    narrow, weight = selection(phi)
    np.testing.assert_allclose(found, narrow * (weight * factor)[:, None], atol=1e-9)
    order = rng.permutation(len(x))[:50]
    alone = features.selected(Chunk(factor[order], factor[order], x[order], None), selection, factor[order])
    np.testing.assert_array_equal(alone, found[order])


def test_codes_and_values_of_chunks_that_come_again_are_kept_and_few():
    basis, rng = basis_of(1, 1e-3, 40), np.random.default_rng(1)
    chunks = [Chunk(np.zeros(200), np.zeros(200), rows_of(rng), None) for _ in range(3)]
    features, both = CodedFeatures(basis, 600), rng.normal(0, 1, (2, basis.m))
    first = [features.combine(chunk, both[0]) for chunk in chunks]
    for chunk, value in zip(chunks, first, strict=True):
        features.combine(chunk, both[1])
        assert features.combine(chunk, both[0].copy()) is value
    for other in rng.normal(0, 1, (5, basis.m)):
        features.combine(chunks[0], other)
    again = features.combine(chunks[0], both[0])
    assert again is not first[0]
    np.testing.assert_array_equal(again, first[0])
    long = CodedFeatures(basis, 10**9)
    np.testing.assert_array_equal([long.combine(chunk, both[0]) for chunk in chunks], first)
    assert long.__reduce__() == (CodedFeatures, (basis, 10**9))
