"""Sample paths of a Gaussian process, a few points at a time, each given the values at all earlier points.

Cholesky factors grow by a few rows at a time: O(i^2) for one point after i others, and no matrix is factored twice.
Points whose value earlier ones already fix, up to a ten-thousandth of the process's standard deviation, get no
randomness of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.exceptions import InvalidInput

Kernel: TypeAlias = Callable[[Float, Float], Float]

# A residual variance below this share of the largest variance counts as none.
TOLERANCE = 1e-8
_BLOCK = 128
_NOT_PSD = (
    "the kernel matrix of the queries is not positive semi-definite, so that no process has it: check the kernel."
)


class FactorRows(NamedTuple):
    """New points in terms of independent standard normal numbers, one for each point that is not yet fixed.

    ``old`` multiplies the numbers of earlier points and ``new`` those of these rows (one column each, in the order of
    ``fresh``, the places of the points that own them).
    """

    old: Float
    new: Float
    fresh: IntArray


class Path:
    """The points that own a random number so far, and their Cholesky factor."""

    def __init__(self, kernel: Kernel, dimension: int) -> None:
        self.kernel = kernel
        self.size = 0
        # The factor is followed by an identity, so that it can be solved with as a whole: BLAS would copy a part of it.
        self._points: Float = np.empty((_BLOCK, dimension))
        self._factor: Float = np.eye(_BLOCK, order="F")

    @property
    def points(self) -> Float:
        """Points that own a number, in the order of the numbers."""
        return self._points[: self.size]

    def rows(self, x: Float) -> FactorRows:
        """What the process is at new points, given earlier ones; changes nothing until `keep`."""
        old = np.zeros((len(x), 0))
        schur = self.kernel(x, x)
        top = float(np.max(np.diag(schur)))
        if not np.all(np.isfinite(schur)) or np.abs(schur - schur.T).max() > 1e-9 * max(top, 0.0):
            raise InvalidInput(_NOT_PSD)
        if self.size:
            old = self.coordinates(self.kernel(self.points, x)).T
            schur = schur - old @ old.T
        new, fresh = pivoted(schur, TOLERANCE * top)
        return FactorRows(old, new, fresh)

    def keep(self, x: Float, rows: FactorRows) -> None:
        """Let new points own their numbers."""
        before, after = self.size, self.size + len(rows.fresh)
        if after > len(self._points):
            # A copy now and then costs little beside a solution with each query, and spare memory costs each of them.
            self._reserve(after + _BLOCK)
        self._points[before:after] = x[rows.fresh]
        self._factor[before:after, :before] = rows.old[rows.fresh]
        self._factor[before:after, before:after] = rows.new[rows.fresh]
        self.size = after

    def restore(self, points: Float) -> None:
        """Start from points that are known to own a number each, in this order."""
        matrix = self.kernel(points, points)
        try:
            factor = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise InvalidInput(_NOT_PSD) from None
        self.size = 0
        self._reserve(len(points))
        self.size = len(points)
        self._points[: self.size], self._factor[: self.size, : self.size] = points, factor

    def coordinates(self, values: Float) -> Float:
        """Values at the points that own a number (one column for each set of them), in terms of the numbers."""
        from scipy.linalg.blas import dtrsm, dtrsv

        padded = np.zeros((len(self._factor), *values.shape[1:]), order="F")
        padded[: self.size] = values
        if padded.size == len(padded):
            return np.asarray(dtrsv(self._factor, padded.ravel(), lower=1)[: self.size]).reshape(values.shape)
        return np.asarray(dtrsm(1.0, self._factor, padded, lower=1, overwrite_b=1)[: self.size])

    def _reserve(self, size: int) -> None:
        size = max(size, _BLOCK)
        points, factor = np.empty((size, self._points.shape[1])), np.eye(size, order="F")
        points[: self.size] = self.points
        factor[: self.size, : self.size] = self._factor[: self.size, : self.size]
        self._points, self._factor = points, factor


def pivoted(matrix: Float, tolerance: float) -> tuple[Float, IntArray]:
    """A factor with as many columns as the matrix has directions above the tolerance, and which points own them.

    Cholesky with pivoting; rows of ``fresh`` form a lower triangle. A matrix that is not positive semi-definite, up to
    the tolerance, is refused.
    """
    d = len(matrix)
    rest = np.diag(matrix).copy()
    factor = np.zeros((d, d))
    fresh: list[int] = []
    while len(fresh) < d:
        place, done = int(np.argmax(rest)), len(fresh)
        if not rest[place] > tolerance:
            break
        column = (matrix[:, place] - factor[:, :done] @ factor[place, :done]) / np.sqrt(rest[place])
        # What is zero by construction is made so: the rows of fresh points are a triangle.
        column[fresh] = 0.0
        factor[:, done] = column
        fresh.append(place)
        rest = rest - column**2
        rest[fresh] = 0.0
    factor = factor[:, : len(fresh)]
    if d and (rest.min() < -10.0 * tolerance or np.abs(matrix - factor @ factor.T).max() > 100.0 * tolerance):
        raise InvalidInput(_NOT_PSD)
    return factor, np.array(fresh, dtype=np.int64)
