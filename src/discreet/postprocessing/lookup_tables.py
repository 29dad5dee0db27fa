"""Public functions of the covariates, looked up in tables: for passes in which records need a model's answers alone.

A range has so many steps that a model's own errors are far larger. What a score takes from its models is public, and
any functions will do (docs/proofs/ate.md, equation 1). Looking up takes a tenth of the time that features would take.
"""

from __future__ import annotations

import numpy as np

from discreet.data._arrays import Float
from discreet.data.columns import ScratchBuffer
from discreet.postprocessing.basis import Basis
from discreet.postprocessing.marginals import into_windows, polynomials, unroll

# Steps along a range.
STEPS = 8192
# Factors of products and their coefficients are whole numbers of so many bits, lest the order of sums matter: with up
# to 2**9 partners a sum of products stays below 2**53.
_BITS = 22


class LookupTables:
    """Features times coefficients, for several sets of these at once.

    A row's values do not depend on its neighbours in memory: all is elementwise and in a fixed order, but for sums of
    whole numbers that float64 holds exactly. Only the basis and the coefficients are sent to other processes.
    """

    def __init__(self, basis: Basis, *coefficients: Float) -> None:
        self.basis = basis
        self.coefficients = coefficients
        plain = [each * basis.weight for each in coefficients]
        curves = [_curves(basis, j) for j in range(len(basis.columns))]
        factors = sorted({feature for pair in basis.products for feature in pair})
        most = max((float(np.abs(each).max()) for each in curves), default=1.0)
        unit = max(most, 1e-300) / 2.0**_BITS
        # Tables have a column for each function, and then one for each factor that comes from this covariate.
        self._factors = [
            [(factors.index(k), k - index.start) for k in index if k in factors]
            for index in map(basis.covariate_features, range(len(curves)))
        ]
        self._width = len(plain) + max(map(len, self._factors), default=0)
        self._start = np.zeros(self._width)
        self._start[: len(plain)] = [each[0] for each in plain]
        self._tables = []
        for j, (each, own) in enumerate(zip(curves, self._factors, strict=True)):
            index = basis.covariate_features(j)
            table = np.zeros((each.shape[1], self._width))
            for k, part in enumerate(plain):
                # Not by BLAS, which rounds differently on other machines: workers make their own tables.
                for coefficient, curve in zip(part[index.start : index.stop], each, strict=True):
                    table[:, k] += coefficient * curve
            for place, (_, row) in enumerate(own, len(plain)):
                table[:, place] = np.rint(each[row] / unit)
            self._tables.append(table)
        triangles, units = _products(basis, plain, factors)
        self._curved = np.flatnonzero(triangles.any(axis=(1, 2)))
        self._products, self._units = triangles[self._curved], unit**2 * units[self._curved]
        self._scratch, self._sums = ScratchBuffer(), ScratchBuffer()

    def __reduce__(self) -> tuple[type[LookupTables], tuple[Basis | Float, ...]]:
        return LookupTables, (self.basis, *self.coefficients)

    def __call__(self, x: Float) -> list[Float]:
        """The value of each function for every row of x."""
        x, (rows, functions) = into_windows(x, self.basis.windows), (len(x), len(self.coefficients))
        found, totals = self._scratch(self._width, rows).T, self._sums(self._width, rows).T
        totals[:] = self._start
        place, values = np.empty(rows), np.empty((self._products.shape[2], rows))
        for j, (table, factors) in enumerate(zip(self._tables, self._factors, strict=True)):
            if self.basis._is_range(j):
                np.add(x[:, j], 1.0, out=place)
                place *= STEPS / 2.0
            else:
                place[:] = x[:, j]
            # The upper end of a range belongs to its last step.
            table.take(place.astype(np.intp), axis=0, out=found, mode="clip")
            totals += found
            for column, (factor, _) in enumerate(factors, functions):
                values[factor] = found[:, column]
        answers = [totals[:, k].copy() for k in range(functions)]
        if self._products.size:
            partners = np.matmul(self._products, values)
            partners *= values
            for k, unit, products in zip(self._curved, self._units, partners, strict=True):
                # One after the other: a sum over an axis is taken in an order that depends on the number of rows.
                total, *others = products
                for other in others:
                    total += other
                answers[k] += unit * total
        return answers


def _products(basis: Basis, plain: list[Float], factors: list[int]) -> tuple[Float, Float]:
    """Coefficients of products as whole numbers, a triangle for each function, and what they are counted in."""
    found = np.zeros((len(plain), len(factors), len(factors)))
    position = {feature: place for place, feature in enumerate(factors)}
    start = basis.m - len(basis.products)
    for triangle, each in zip(found, plain, strict=True):
        for (a, b), coefficient in zip(basis.products, each[start:], strict=True):
            triangle[position[a], position[b]] = coefficient
    units = np.abs(found).max(axis=(1, 2), initial=1e-300) / 2.0**_BITS
    return np.rint(found / units[:, None, None]), units


def _curves(basis: Basis, j: int) -> Float:
    """The features of one covariate alone, without their weights, at the middle of each step or for each level."""
    if not basis._is_range(j):
        return np.asarray(basis.own[j].T)
    middles = (2.0 * np.arange(STEPS) + 1.0) / STEPS - 1.0
    curves = polynomials(unroll(middles, basis.unrolled[j]), basis.own[j])
    ranks = basis.ranks[j]
    return np.stack(curves if ranks is None else [*curves, *ranks(middles, curves)])
