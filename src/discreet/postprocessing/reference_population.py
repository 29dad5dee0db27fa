"""A public sample that stands in for the covariates, and a released Gram matrix that is shrunk towards its own.

Post-processing: only released numbers and public facts come in (docs/proofs/ate.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.coding import CellFinder
from discreet.postprocessing.feature_selection import Moments
from discreet.postprocessing.kernel_basis import CodedBasis

# Points of the public stand-in for the covariates.
REFERENCE = 6_000
# Prior variance of a logistic model's intercept: it is taken to stay within about two logits.
_LOGIT_CAP = 4.0
# Guessed variance of the logit.
_LOGIT_VARIANCE = 1.0
# Relative error of the reference's moments.
_REFERENCE_ERROR = 0.004
# Least eigenvalue of a shrunk Gram matrix of unit features.
_FLOOR = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A public sample that stands in for the covariates: codes, features, record weights, and the Gram they imply."""

    codes: tuple[IntArray, ...]
    features: Float
    weight: Float
    gram: Float

    @classmethod
    def of_codes(cls, basis: CodedBasis, correlation: Float) -> Reference:
        """Gaussian copula of codes."""
        even = _copula(correlation, REFERENCE)
        codes = (
            np.minimum(CellFinder(np.cumsum(coding.mass))(even[:, j]), coding.count - 1)
            for j, coding in enumerate(basis.codings)
        )
        return cls._at(tuple(codes), basis)

    @classmethod
    def _at(cls, codes: tuple[IntArray, ...], basis: CodedBasis) -> Reference:
        features = basis.from_codes(codes, REFERENCE)
        weight = basis.held(features) / REFERENCE
        return cls(codes, features, weight, weighted_gram(features, weight))

    def with_features(self, basis: CodedBasis) -> Reference:
        """The same points with other features of their codes."""
        return self._at(self.codes, basis)

    def response(self, theta: Float, centre: float) -> tuple[Float, Float]:
        """Mean of weight * features * (expit - centre) and its derivative; logits count from that of the centre."""
        e = expit(logit(centre) + self.features @ theta)
        return (self.weight * (e - centre)) @ self.features, weighted_gram(self.features, self.weight * e * (1.0 - e))


def weighted_gram(features: Float, weight: Float) -> Float:
    """Second moments of points with weights; of one matrix by itself, which takes half the time."""
    root = features * np.sqrt(weight)[:, None]
    return np.asarray(root.T @ root)


def _copula(correlation: Float, size: int) -> Float:
    """Evenly distributed ranks whose normal scores have these correlations."""
    values, vectors = np.linalg.eigh(correlation)
    factor = vectors * np.sqrt(np.maximum(values, 0.02))
    factor /= np.sqrt(np.sum(factor**2, axis=1, keepdims=True))
    return np.asarray(ndtr(ndtri(_kronecker(size, len(correlation))) @ factor.T))


def latent_correlation(basis: CodedBasis, gram: Float, sd: float) -> Float:
    """Correlations of the normal scores behind codes, from second moments of first functions of all covariates.

    ``gram`` has a row for each covariate's first function, of unit size; its noise is ``sd`` on the diagonal. Codes are
    coarser than scores, so that correlations of the functions are smaller than those behind them.
    """
    p = len(basis.codings)
    like = np.array(
        [
            max(float(coding.mass @ (curves.table[:, 0] * coding.scores)), 0.3) if curves.table.shape[1] else 1.0
            for coding, curves in zip(basis.codings, basis.curves, strict=True)
        ]
    )
    size = np.sqrt(np.maximum(np.diag(gram), 0.3))
    raw = gram / np.outer(size, size)
    noise = sd**2 / 2.0
    off = ~np.eye(p, dtype=bool)
    signal = max(float(np.mean(raw[off] ** 2)) - noise, 0.0) if p > 1 else 0.0
    latent = np.clip(signal / (signal + noise + 1e-300) * raw / np.outer(like, like), -0.98, 0.98)
    np.fill_diagonal(latent, 1.0)
    return np.asarray(latent)


def _kronecker(size: int, dimension: int) -> Float:
    """Evenly distributed points in the unit cube: multiples of square roots of primes, modulo one."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < dimension:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    steps = np.sqrt(np.array(primes, dtype=np.float64))
    return np.asarray(np.clip((0.5 + np.arange(1, size + 1)[:, None] * steps) % 1.0, 1e-6, 1.0 - 1e-6))


@dataclass(frozen=True, slots=True, eq=False)
class SteadyGram:
    """A released Gram matrix, shrunk towards its reference.

    ``solid`` is it with small eigenvalues raised, ``apart`` what it adds to the reference, ``variance`` its noise.
    """

    solid: Float
    apart: Float
    variance: float

    @classmethod
    def implied(cls, reference: Reference) -> SteadyGram:
        """What the reference says, where none was released."""
        return cls(reference.gram, np.zeros_like(reference.gram), 0.0)

    @classmethod
    def of(cls, gram: Float, sd: float, reference: Reference, basis: CodedBasis) -> SteadyGram:
        """Shrink by how far the released entries differ from the reference, beside their noise."""
        apart = gram - reference.gram
        upper = np.triu_indices(basis.m, 1)
        noise = sd**2 / 2.0
        signal = max(float(np.mean(apart[upper] ** 2)) - noise, 0.0) if basis.m > 1 else 0.0
        keep = signal / (signal + noise + 1e-300)
        matrix = reference.gram + keep * apart
        scale = np.outer(basis.weight, basis.weight)
        values, vectors = np.linalg.eigh(matrix / scale)
        solid = (vectors * np.maximum(values, _FLOOR)) @ vectors.T * scale
        return cls(solid, keep * apart, keep * noise)


def treatment_moments(
    reference: Reference, gram: SteadyGram, value: Float, sd: float, treated: float, n: float
) -> Moments:
    """Moments of t - (share of treated), and how a logistic model answers them on the reference.

    The reference is not the records: where their second moments are known to differ the answer is moved, and what is
    left counts as noise. Later moments are of the records themselves.
    """
    apart = treated * (1.0 - treated) * gram.apart

    def response(theta: Float) -> tuple[Float, Float]:
        expected, slope = reference.response(theta, treated)
        return expected + apart @ theta, slope + apart

    square = weighted_gram(reference.features, reference.weight**2 * len(reference.weight))
    sampling = treated * (1.0 - treated) / n * square
    noise = sd**2 * np.eye(len(value)) + sampling + _REFERENCE_ERROR**2 * reference.gram
    return Moments(value, response, noise, _LOGIT_VARIANCE, _LOGIT_CAP)
