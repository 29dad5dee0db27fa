"""Polynomial regression by the functional mechanism: noise on the coefficients of the squared error.

Zhang, Zhang, Xiao, Yang and Winslett, "Functional Mechanism: Regression Analysis under Differential Privacy" (2012),
sections 4 and 6, which the epsilon-ADUM paper's rival is built on. The squared error of one record is a polynomial in
the weights w; its coefficients are summed over records, and noise is added to the sums.

Deviations. Features lie in [-1, 1] each, where the paper bounds their norm by 1: its sensitivity 2 (d + 1)^2 is that of
the former. The weights are those of one arm each, and the noise allows for a record that changes arms.
"""

from __future__ import annotations

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Range
from discreet.data.frames import feature_rows

# Section 6.1: what is added to the diagonal, in standard deviations of the noise.
_RIDGE = 4.0


def monomials(x: Float, bounds: Bounds, degree: int) -> Float:
    """1, powers of each range up to the degree, and indicators of levels; all of size 1 at most.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> monomials(np.array([[0.5]]), dc.Bounds(outcome=(0, 1), covariates=[(-1, 1)]), degree=2)
    array([[1.  , 0.5 , 0.25]])
    """
    columns = [np.ones(len(x))]
    for values, powers in zip(feature_rows(x, bounds).T, _powers(bounds, degree), strict=True):
        power = np.ones(len(x))
        for _ in range(powers):
            # Repeated multiplication, elementwise: the same in any place of a chunk.
            power = power * values
            columns.append(power)
    return np.column_stack(columns)


def monomial_count(bounds: Bounds, degree: int) -> int:
    """m: how many monomials there are.

    Examples
    --------
    >>> import discreet as dc
    >>> monomial_count(dc.Bounds(outcome=(0, 1), covariates=[(-1, 1), ["a", "b", "c"]]), degree=2)
    5
    """
    return 1 + sum(_powers(bounds, degree))


def coefficients(y: Float, phi: Float) -> Float:
    """Coefficients of (y - phi'w)^2, one row per record: the constant, those of w_j, and those of w_j w_l, j <= l.

    Examples
    --------
    >>> import numpy as np
    >>> coefficients(np.array([0.5]), np.array([[1.0, 0.5]]))
    array([[ 0.25, -1.  , -0.5 ,  1.  ,  1.  ,  0.25]])
    """
    rows, columns = np.triu_indices(phi.shape[1])
    double = np.where(rows == columns, 1.0, 2.0)
    return np.column_stack([y * y, -2.0 * y[:, None] * phi, double * phi[:, rows] * phi[:, columns]])


def coefficient_count(m: int) -> int:
    """How many coefficients m monomials make.

    Examples
    --------
    >>> coefficient_count(2)
    6
    """
    return 1 + m + m * (m + 1) // 2


def coefficient_bound(m: int) -> float:
    """Largest sum of absolute coefficients of one record. Proof: docs/proofs/adum.md, lemma 4.

    Examples
    --------
    >>> coefficient_bound(2)
    9.0
    """
    return (1.0 + m) ** 2


def minimiser(total: Float, m: int, noise_sd: float) -> Float:
    """Weights at which a noisy polynomial is smallest, made convex first (section 6).

    A multiple of the noise's standard deviation is added to the diagonal, and directions along which the quadratic form
    is still not positive are left out.

    Examples
    --------
    >>> import numpy as np
    >>> total = coefficients(np.array([1.0, 0.0]), np.array([[1.0, 1.0], [1.0, -1.0]])).sum(axis=0)
    >>> minimiser(total, m=2, noise_sd=0.0).round(6)
    array([0.5, 0.5])
    """
    linear = total[1 : m + 1]
    quadratic = np.zeros((m, m))
    rows, columns = np.triu_indices(m)
    quadratic[rows, columns] = total[m + 1 :] / np.where(rows == columns, 1.0, 2.0)
    quadratic[columns, rows] = quadratic[rows, columns]
    values, vectors = np.linalg.eigh(quadratic + _RIDGE * noise_sd * np.eye(m))
    kept = values > 0.0
    return np.asarray(vectors[:, kept] @ (vectors[:, kept].T @ linear / (-2.0 * values[kept])))


def _powers(bounds: Bounds, degree: int) -> list[int]:
    """How many powers each feature has: an indicator is its own square."""
    powers: list[int] = []
    for spec in bounds.columns:
        powers += [degree] if isinstance(spec, Range) else [1] * (len(spec.levels) - 1)
    return powers
