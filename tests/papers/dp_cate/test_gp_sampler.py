"""Sample paths of a Gaussian process, one point after the other or many at once."""

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.papers.dp_cate.gp_sampler import Path, pivoted
from discreet.papers.dp_cate.kernel_regression import GaussianKernel

KERNEL = GaussianKernel(0.3, 2.0)
POINTS = np.random.default_rng(0).random((25, 2))


def rows_one_by_one(points, kernel=KERNEL):
    """The matrix that turns independent numbers into the path."""
    path = Path(kernel, points.shape[1])
    rows = []
    for point in points:
        added = path.rows(point[None, :])
        path.keep(point[None, :], added)
        rows.append(np.concatenate([added.old[0], added.new[0]]))
    return np.array([np.pad(row, (0, path.size - len(row))) for row in rows]), path


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 1.0, 5.0])
def test_points_one_at_a_time_have_the_kernels_covariance(bandwidth):
    kernel = GaussianKernel(bandwidth, 2.0)
    rows, _ = rows_one_by_one(POINTS, kernel)
    np.testing.assert_allclose(rows @ rows.T, kernel(POINTS, POINTS), atol=2e-4 * 2.0)
    assert np.abs(np.diag(rows @ rows.T) - 2.0).max() < 1e-7


def test_points_after_points_have_the_kernels_covariance():
    path = Path(KERNEL, 2)
    factor = np.zeros((0, 0))
    for part in (POINTS[:7], POINTS[7:8], POINTS[8:]):
        added = path.rows(part)
        path.keep(part, added)
        factor = np.block([[factor, np.zeros((len(factor), added.new.shape[1]))], [added.old, added.new]])
    np.testing.assert_allclose(factor @ factor.T, KERNEL(POINTS, POINTS), atol=1e-6)


def test_a_point_that_others_fix_gets_no_number_of_its_own():
    _, path = rows_one_by_one(np.vstack([POINTS[:5], POINTS[:5], POINTS[:1] + 1e-9]))
    assert path.size == 5


def test_asking_does_not_change_a_path_before_it_is_kept():
    _, path = rows_one_by_one(POINTS[:5])
    path.rows(POINTS[5:])
    assert path.size == 5


def test_a_path_restored_from_its_points_goes_on_as_before():
    _, path = rows_one_by_one(POINTS[:12])
    other = Path(KERNEL, 2)
    other.restore(path.points)
    one, two = path.rows(POINTS[12:]), other.rows(POINTS[12:])
    np.testing.assert_allclose(one.old, two.old, atol=1e-9)
    np.testing.assert_allclose(one.new, two.new, atol=1e-9)
    values = np.arange(12.0)[: path.size]
    np.testing.assert_allclose(path.coordinates(values), other.coordinates(values), atol=1e-6)


@pytest.mark.parametrize(
    "matrix",
    [[[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [0.0, -1.0]], [[1.0, 0.5], [-0.5, 1.0]], [[1.0, np.nan], [np.nan, 1.0]]],
)
def test_a_matrix_that_is_no_covariance_is_refused(matrix):
    path = Path(lambda a, b: np.array(matrix), 1)
    with pytest.raises(InvalidInput, match="not positive semi-definite"):
        path.rows(np.array([[0.0], [1.0]]))


def test_points_that_are_no_basis_are_refused():
    path = Path(lambda a, b: -np.eye(2), 1)
    with pytest.raises(InvalidInput, match="not positive semi-definite"):
        path.restore(np.array([[0.0], [1.0]]))


def test_the_pivoted_factor_is_a_triangle_in_the_order_of_its_points():
    factor, fresh = pivoted(KERNEL(POINTS, POINTS), 1e-8)
    triangle = factor[fresh]
    assert np.allclose(triangle, np.tril(triangle))
    assert np.all(np.diag(triangle) > 0)
