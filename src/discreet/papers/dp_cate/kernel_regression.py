"""Regression in a space of Gaussian kernels, on public centres, and how far one record can move it.

Everything is written in an orthonormal basis of the span of the kernels at the centres, so that the norm of a function
is the Euclidean norm of its coefficients. Proofs: docs/proofs/dp_cate.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import into_unit_ball
from discreet.papers.common.losses import Loss

# Directions of the span with less than this share of the largest eigenvalue are left out: a public choice.
_CUTOFF = 1e-10
_STEPS = 200
# How much smoother the losses are through which a stubborn minimum is approached.
_SOFTER = tuple(4.0**k for k in range(6, 0, -1))
# Where Newton's method stops, as a share of the largest gradient of one record.
_STOP = 1e-10


@dataclass(frozen=True, slots=True)
class GaussianKernel:
    """K(x, y) = height exp(-|x - y|^2 / (2 h^2)).

    Parameters
    ----------
    bandwidth
        h.
    height
        K(x, x), which is the same everywhere.
    """

    bandwidth: float
    height: float

    def __call__(self, a: Float, b: Float) -> Float:
        """Kernel of each row of a with each row of b."""
        square = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
        return np.asarray(self.height * np.exp(-np.maximum(square, 0.0) / (2.0 * self.bandwidth**2)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Function:
    """A constant and a sum of kernels at public centres, each divided by its height and multiplied by a weight."""

    kernel: GaussianKernel
    centres: Float
    weights: Float
    constant: float = 0.0

    def __call__(self, x: Float) -> Float:
        """Values at rows of x."""
        return np.asarray(self.kernel(x, self.centres) / self.kernel.height @ self.weights + self.constant)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "bandwidth": self.kernel.bandwidth,
            "height": self.kernel.height,
            "centres": self.centres.tolist(),
            "weights": self.weights.tolist(),
        } | ({"constant": self.constant} if self.constant else {})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Function:
        """Read a function back."""
        kernel = GaussianKernel(float(plain["bandwidth"]), float(plain["height"]))
        return cls(
            kernel=kernel,
            centres=np.array(plain["centres"]),
            weights=np.array(plain["weights"]),
            constant=float(plain.get("constant", 0.0)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Functions spanned by kernels at public centres, by their coefficients in an orthonormal basis.

    Coefficients are those of kernels divided by their height: vectors of norm at most 1, as `coordinates` enforces.
    """

    kernel: GaussianKernel
    centres: Float
    root: Float

    @classmethod
    def of(cls, kernel: GaussianKernel, centres: Float) -> Span:
        """The span of the kernels at these centres."""
        values, vectors = np.linalg.eigh(kernel(centres, centres) / kernel.height)
        kept = values > _CUTOFF * values.max()
        return cls(kernel, centres, vectors[:, kept] / np.sqrt(values[kept]))

    @property
    def dimension(self) -> int:
        """Number of coefficients."""
        return int(self.root.shape[1])

    def coordinates(self, x: Float) -> Float:
        """What coefficients are multiplied with; rows have norms of at most 1, rounding included (lemma 2)."""
        return into_unit_ball(self.kernel(x, self.centres) / self.kernel.height @ self.root, 1.0)

    def function(self, coefficients: Float, constant: float = 0.0) -> Function:
        """The function with these coefficients, around a constant."""
        return Function(kernel=self.kernel, centres=self.centres, weights=self.root @ coefficients, constant=constant)

    def norm(self, coefficients: Float) -> float:
        """Norm of a function in the kernel's own space."""
        return float(np.linalg.norm(coefficients)) / math.sqrt(self.kernel.height)


class Stable(NamedTuple):
    """Coefficients of a minimiser, and what is certain about it whatever the records are.

    ``move`` bounds how far replacing one record moves the coefficients, ``radius`` their norm.
    """

    coefficients: Float
    move: float
    radius: float


def regress(psi: Float, target: Float, rho: Float, loss: Loss, lam: float, *, slope: float, reach: float) -> Stable:
    """Minimise the mean loss of target - rho psi'b, plus lam |b|^2.

    Parameters
    ----------
    psi : array of shape (n, m)
        Coordinates of the records.
    target, rho : arrays of shape (n,)
        Weighted pseudo-outcomes and weights of at most max(1, rho): residuals are rho (phi - g) of (15).
    loss : Loss
        Convex.
    lam : float
        The penalty, in the scale of the coefficients.
    slope : float
        Bound on |slope of the loss| * rho, over the whole domain.
    reach : float
        Bound on |target|, over the whole domain.
    """
    n, m = psi.shape
    rounding = gradient_rounding(n, m, lam, slope, loss.most_curvature, reach)
    # Public numbers, all of them, so that whether it is refused says nothing about the records.
    stop = max(_STOP * slope, 4.0 * rounding)
    if stop > slope:
        raise InvalidInput("lam is so small that float64 cannot certify a minimum: raise it.")
    problem = _Problem(psi, target, rho, lam)
    b = problem.descend(np.zeros(m), loss, stop - rounding)
    if b is None and loss.softer is not None:
        # Where the loss is nearly flat on both sides of a kink Newton's steps lead nowhere: come from smoother losses.
        b = np.zeros(m)
        for times in _SOFTER:
            b = _first(problem.descend(b, loss.softer(times), stop - rounding), b)
        b = problem.descend(b, loss, stop - rounding)
    if b is None:
        raise InvalidInput("the minimisation did not settle: raise lam, or choose a smoother loss.")
    return Stable(b, sensitivity(n, lam, slope, stop), (slope + stop) / (2.0 * lam))


def _first(found: Float | None, otherwise: Float) -> Float:
    return otherwise if found is None else found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Problem:
    """Mean loss of target - rho psi'b, plus lam |b|^2."""

    psi: Float
    target: Float
    rho: Float
    lam: float

    def descend(self, b: Float, loss: Loss, stop: float) -> Float | None:
        """Damped Newton steps until the gradient's norm is at most ``stop``; None if it is not after all of them."""
        n, m = self.psi.shape
        for _ in range(_STEPS):
            u = self.target - self.rho * (self.psi @ b)
            gradient = 2.0 * self.lam * b - (loss.slope(u) * self.rho) @ self.psi / n
            if float(np.linalg.norm(gradient)) <= stop:
                return b
            weights = (loss.curvature(u) * self.rho**2)[:, None]
            curved = (self.psi * weights).T @ self.psi / n + 2.0 * self.lam * np.eye(m)
            b = b - self._damped(b, np.linalg.solve(curved, gradient), gradient, loss)
        return None

    def _damped(self, b: Float, step: Float, gradient: Float, loss: Loss) -> Float:
        """Halve a Newton step until the objective falls; close to the minimum its change is too small to be seen."""

        def objective(at: Float) -> float:
            return float(loss.value(self.target - self.rho * (self.psi @ at)).mean() + self.lam * at @ at)

        here, fall = objective(b), float(gradient @ step)
        size = 1.0
        while fall > 1e-12 * max(1.0, abs(here)) and size > 1e-6:
            if objective(b - size * step) <= here - 0.1 * size * fall:
                break
            size /= 2.0
        return size * step


def sensitivity(n: int, lam: float, slope: float, gradient_norm: float = 0.0) -> float:
    """How far replacing one record can move the coefficients: (slope / n + g) / lam.

    For a penalty lam |b|^2 the factor of replacing is 1: two records count, and the penalty's curvature is 2 lam.
    Proof: docs/proofs/dp_cate.md, lemma 3.
    """
    return (slope / n + gradient_norm) / lam


def gradient_rounding(n: int, m: int, lam: float, slope: float, curvature: float, reach: float) -> float:
    """Bound on what rounding does to a computed gradient. Proof: docs/proofs/dp_cate.md, lemma 4."""
    if math.isinf(curvature):
        # A loss of somebody else's, of which nothing is claimed to be certain.
        return 2.0**-52 * slope * (n + m)
    return 2.0**-52 * (slope * (n + 16) + curvature * (m + 4) * (reach + slope / lam))
