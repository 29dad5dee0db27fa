"""Features of coded covariates: orthonormal to their distribution, ordered by prior variance, and looked up exactly."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from discreet.data._arrays import Float
from discreet.postprocessing.coding import Coding
from discreet.postprocessing.kernel_basis import CodedBasis, CodedTables, Curves, combine

EVEN = Coding(np.linspace(-1.0, 1.0, 33)[1:-1], np.linspace(-0.97, 0.97, 32), np.full(32, 1 / 32), True)
ATOM = Coding(np.array([-0.99, 0.0]), np.array([-1.0, -0.5, 0.5]), np.array([0.7, 0.2, 0.1]), True)
LEVELS = Coding(np.array([0.5, 1.5, 2.5]), np.arange(4.0), np.array([0.4, 0.3, 0.2, 0.1]), False)
ALONE = Coding(np.empty(0), np.zeros(1), np.ones(1), True)


def features_of(basis: CodedBasis, x: Float) -> Float:
    return basis.from_codes(basis.codes(x), len(x))


@pytest.mark.parametrize("coding", [EVEN, ATOM, LEVELS])
def test_functions_of_a_covariate_are_orthonormal_to_its_distribution(coding: Coding) -> None:
    curves = Curves.of(coding)
    gram = curves.table.T @ (coding.mass[:, None] * curves.table)
    assert gram == pytest.approx(np.eye(len(gram)), abs=1e-8)
    assert coding.mass @ curves.table == pytest.approx(np.zeros(len(gram)), abs=1e-8)


def test_prior_variances_add_up_to_one_and_fall() -> None:
    curves = Curves.of(EVEN)
    assert curves.variance.sum() == pytest.approx(1.0)
    assert (np.diff(curves.variance) <= 0).all()
    # The first function is all but a line.
    assert abs(np.corrcoef(EVEN.value, curves.table[:, 0])[0, 1]) > 0.95


@pytest.mark.parametrize("coding", [EVEN, ATOM, LEVELS])
def test_functions_that_follow_evidence_stay_orthonormal_and_keep_their_prior_variance(coding: Coding) -> None:
    curves, found = Curves.of(coding), np.array([0.1, -1.0])
    turned = curves.turned(np.outer(found, found))
    gram = turned.table.T @ (coding.mass[:, None] * turned.table)
    assert gram == pytest.approx(np.eye(len(gram)), abs=1e-8)
    assert turned.variance.sum() == pytest.approx(1.0)
    likeness = abs(turned.table[:, 0] @ (coding.mass * (curves.table[:, :2] @ found))) / np.linalg.norm(found)
    before = abs(curves.table[:, 0] @ (coding.mass * (curves.table[:, :2] @ found))) / np.linalg.norm(found)
    assert likeness > before
    assert curves.turned(np.zeros((2, 2))) is curves


def test_a_basis_of_singles_has_the_first_functions_of_every_covariate() -> None:
    basis = CodedBasis.of_singles((EVEN, ALONE, LEVELS), 2)
    assert basis.members == ((), ((0, 0),), ((0, 1),), ((2, 0),), ((2, 1),))
    assert basis.variance[1] == pytest.approx(Curves.of(EVEN).variance[0] / 3)


def test_a_covariate_with_one_code_has_no_functions_and_all_of_its_variance_is_left_out() -> None:
    basis = CodedBasis.build((ALONE,), np.ones(1), 10)
    assert basis.m == 1
    assert basis.left_out.sum() == pytest.approx(0.55)


def test_a_larger_basis_leaves_less_out_and_holds_the_smaller_one() -> None:
    codings, importance = (EVEN, ATOM, LEVELS), np.full(3, 1 / 3)
    small, large = (CodedBasis.build(codings, importance, m) for m in (10, 60))
    assert set(small.members) <= set(large.members)
    assert large.left_out.sum() < small.left_out.sum()
    kept = [float(basis.variance[1:].sum() + basis.left_out.sum()) for basis in (small, large)]
    assert kept[0] == pytest.approx(kept[1])


def test_products_of_two_and_three_are_products_of_functions() -> None:
    basis = CodedBasis.build((EVEN, ATOM, LEVELS), np.full(3, 1 / 3), 80)
    x = np.column_stack([np.linspace(-1, 1, 50), np.linspace(-1, 1, 50)[::-1], np.arange(50) % 4])
    features, codes = features_of(basis, x), basis.codes(x)
    assert {len(member) for member in basis.members} == {0, 1, 2, 3}
    for k, member in enumerate(basis.members):
        expected = np.full(50, basis.weight[k])
        for j, curve in member:
            expected = expected * basis.curves[j].table[codes[j], curve]
        assert features[:, k] == pytest.approx(expected)


def test_tables_say_what_features_times_coefficients_say() -> None:
    rng = np.random.default_rng(0)
    basis = CodedBasis.build((EVEN, ATOM, LEVELS), np.array([0.5, 0.3, 0.2]), 70)
    x = np.column_stack([rng.uniform(-1, 1, 300), rng.uniform(-1, 1, 300), rng.integers(0, 4, 300)])
    coefficients = rng.normal(size=basis.m)
    tables = pickle.loads(pickle.dumps(CodedTables(basis, coefficients)))
    assert tables(x) == pytest.approx(combine(features_of(basis, x), coefficients))


def test_a_record_is_the_same_alone_and_among_others() -> None:
    rng = np.random.default_rng(1)
    basis = CodedBasis.build((EVEN, ATOM), np.full(2, 0.5), 40)
    x = rng.uniform(-1, 1, (64, 2))
    whole = features_of(basis, x)
    assert all((features_of(basis, x[i : i + 1])[0] == whole[i]).all() for i in range(64))
    tables = CodedTables(basis, rng.normal(size=basis.m))
    assert all(tables(x[i : i + 1])[0] == tables(x)[i] for i in range(64))


def test_held_features_stay_within_the_radius() -> None:
    basis = CodedBasis.build((EVEN, ATOM, LEVELS), np.full(3, 1 / 3), 60)
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.uniform(-1, 1, 200), rng.uniform(-1, 1, 200), rng.integers(0, 4, 200)])
    features = features_of(basis, x)
    held = np.sqrt(basis.held(features))[:, None] * features
    assert np.linalg.norm(held, axis=1).max() <= basis.radius * (1 + 1e-12)
