"""Noisy moments -> models. Post-processing: only released numbers and public facts come in.

Proof that nothing else is needed: docs/proofs/ate.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from discreet.basis import Basis, reference_points
from discreet.columns import Float

# Points of the public stand-in for the covariates.
REFERENCE = 6_000
# Coefficients of a logistic model on unit features are taken to stay below 2 in size, a priori.
LOGIT_CAP = 4.0
_FLOOR = 0.05
_NEWTON, _SCALES = 12, 20

Response = Callable[[Float], tuple[Float, Float]]


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A public sample that stands in for the covariates: features, record weights, and the Gram they imply."""

    features: Float
    weight: Float
    gram: Float

    @classmethod
    def draw(cls, basis: Basis, gram: Float, sd: float) -> Reference:
        """Gaussian copula whose correlations come from the degree-one block of a released Gram matrix."""
        x = reference_points(basis.columns, basis.marginals, _correlation(basis, gram, sd), REFERENCE)
        features, weight = basis(x)
        weight = weight / len(x)
        return cls(features, weight, (features * weight[:, None]).T @ features)

    def response(self, theta: Float, centre: float) -> tuple[Float, Float]:
        """Mean of weight * features * (expit - centre) and its derivative."""
        e = expit(self.features @ theta)
        return (
            (self.weight * (e - centre)) @ self.features,
            (self.features * (self.weight * e * (1.0 - e))[:, None]).T @ self.features,
        )


def _correlation(basis: Basis, gram: Float, sd: float) -> Float:
    """Correlations between the covariates' first features, shrunk by how large they are beside their noise."""
    p = len(basis.columns)
    if p < 2:
        return np.eye(p)
    lead = [features[0] for features in basis.first]
    weight = basis.weight[lead]
    block = gram[np.ix_(lead, lead)] / np.outer(weight, weight)
    noise = sd**2 / 2.0 / float(np.mean(weight)) ** 4
    off = block[~np.eye(p, dtype=bool)]
    signal = max(float(np.mean(off**2)) - noise, 0.0)
    size = np.sqrt(np.maximum(np.diag(block), 0.3))
    shrunk = np.clip(signal / (signal + noise + 1e-300) * block / np.outer(size, size), -0.98, 0.98)
    np.fill_diagonal(shrunk, 1.0)
    return np.asarray(shrunk)


@dataclass(frozen=True, slots=True, eq=False)
class SteadyGram:
    """A released Gram matrix, shrunk towards its reference; ``solid`` has its small eigenvalues raised."""

    matrix: Float
    solid: Float
    variance: float

    @classmethod
    def of(cls, gram: Float, sd: float, reference: Reference, basis: Basis) -> SteadyGram:
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
        return cls(matrix, solid, keep * noise)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Coefficients from noisy moments, a generous covariance of their error, and the prior scales behind it."""

    mean: Float
    covariance: Float
    scales: Float


def shrink(
    moments: Float, response: Response, noise: Float, basis: Basis, cap: float, linear: bool = False
) -> Posterior:
    """Coefficients from ``moments = response(coefficients) + N(0, noise)``: empirical Bayes by groups of features.

    Each group of features (first powers, higher powers, products) has one prior scale, found by the evidence
    (MacKay's fixed point); a coefficient that stands far out of its noise keeps a scale of its own, so that a strong
    confounder is not shrunk for the company it keeps. The covariance uses scales one standard error above the best.
    """
    m, group = basis.m, basis.group
    inverse = np.linalg.inv(noise)
    groups = [np.flatnonzero(group == k) for k in np.unique(group) if k > 0]
    # All members of a group together may explain a part of the cap only: a flat logistic curve invites more.
    most = np.full(m, cap)
    for members in groups:
        part = 0.5 if group[members[0]] == 1 else 0.15
        most[members] = part * cap / float(np.sum(basis.weight[members] ** 2))
    scales = np.where(group == 0, cap, np.where(group == 1, 1e-1, 1e-2) * most)
    mean = np.zeros(m)
    threshold = 2.0 * np.log(m + 1.0) + 1.0
    for iteration in range(1 if linear else _NEWTON):
        value, slope = response(mean)
        left = slope @ inverse
        precision = left @ slope
        target = left @ (moments - value) + precision @ mean
        own = np.diag(precision)
        # Scales settle in the first half of the steps; the second half solves for the coefficients alone.
        for _ in range(_SCALES if linear or iteration < _NEWTON // 2 else 0):
            covariance = np.linalg.inv(precision + np.diag(1.0 / scales))
            guess = covariance @ target
            before = scales
            used = 1.0 - np.diag(covariance) / scales
            scales = scales.copy()
            for members in groups:
                # Two more in the denominator: a vague prior that prefers small scales.
                size = float(np.sum(guess[members] ** 2)) / (max(float(np.sum(used[members])), 0.0) + 2.0)
                # Over-relaxed, because the fixed point is approached slowly where there is little to be seen.
                scales[members] = before[members] * np.clip(size / before[members], 1e-3, 1e3) ** 1.7
            alone = (target - precision @ guess + own * guess) ** 2 / own
            scales = np.where(alone > threshold, np.maximum(scales, (alone - 1.0) / own), scales)
            scales = np.clip(scales, cap * 1e-7, np.where(alone > threshold, cap / 2.0, most))
            scales[group == 0] = cap
            if np.max(np.abs(np.log(scales / before))) < 0.03:
                break
        step = np.linalg.solve(precision + np.diag(1.0 / scales), target) - mean
        # A Newton step of more than two units of the linear predictor overshoots where the logistic curve is flat.
        mean = mean + step * (1.0 if linear else min(1.0, 1.0 / np.sqrt(max(float(step @ slope @ step), 1e-12))))
        if np.max(np.abs(step)) < 1e-3 * np.sqrt(cap):
            break
    _, slope = response(mean)
    precision = slope @ inverse @ slope
    for members in groups:
        spread = 1.0 / float(np.mean(np.diag(precision)[members]))
        above = scales[members] + np.sqrt(1.0 / len(members)) * (scales[members] + spread)
        scales[members] = np.maximum(scales[members], np.minimum(above, most[members]))
    return Posterior(mean, np.asarray(np.linalg.inv(precision + np.diag(1.0 / scales))), scales)


def newton_step(residual: Float, slope: Float, noise: Float, prior: Float) -> tuple[Float, Float]:
    """Move of the coefficients that noisy residual moments ask for, and the covariance of what is then left.

    ``prior`` is how far (squared) each coefficient may still have to go; no step moves the linear predictor by more
    than about one unit, since the slope is that of the reference and not of the records.
    """
    left = slope @ np.linalg.inv(noise)
    covariance = np.asarray(np.linalg.inv(left @ slope + np.diag(1.0 / prior)))
    step = covariance @ (left @ residual)
    length = 2.0 * np.sqrt(max(float(step @ slope @ step), 1e-300))
    return step * min(1.0, 1.0 / length), covariance
