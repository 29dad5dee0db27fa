"""Coefficients of an effect function from noisy moments: shrunk towards a constant as far as these allow.

Post-processing: only released numbers and public facts come in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.postprocessing.feature_selection import inverse_of_lower
from discreet.postprocessing.kernel_basis import CodedBasis

# Prior variances of an effect that are weighed against each other, in squared scales of the outcome, and a guess at it.
_SCALES = np.geomspace(1.0, 1e-5, 11)
_GUESS = 0.1
# Prior standard deviation of the level about the average effect, in scales of the outcome.
_FAR = 3.0
# Prior variance of joint effects of covariates, beside what it is in models of treatment and outcome.
_JOINT = 0.3
# Degrees of freedom of the prior of a coefficient; and steps of expectation-maximisation at each scale.
_TAIL, _STEPS = 3.0, 3
# An effect whose variance is below this, in squared scales of the outcome, is as good as a constant.
_FAINT = 1e-3


class Shrunk(NamedTuple):
    """Coefficients, the covariance of their error, and how likely it is that they matter."""

    mean: Float
    covariance: Float
    varies: float


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """What is known of coefficients: a precision matrix, and its product with where they are."""

    precision: Float
    target: Float

    @classmethod
    def nothing(cls, m: int) -> Information:
        """Of so many coefficients."""
        return cls(np.zeros((m, m)), np.zeros(m))

    @classmethod
    def of(cls, value: Float, sd: float, slope: Float) -> Information:
        """From moments ``slope @ coefficients`` with independent noise."""
        left = slope / sd
        return cls(left.T @ left, left.T @ (value / sd))

    def around(self, point: Float) -> Information:
        """The same where coefficients were counted from a point."""
        return Information(self.precision, self.target + self.precision @ point)

    def __add__(self, other: Information) -> Information:
        return Information(self.precision + other.precision, self.target + other.target)

    def sampled(self, precision: Float) -> Information:
        """What it says of the population, for which the records stand with a precision of their own.

        Precisions of independent errors that add up: the inverse of the sum of their inverses. Rounds see the same
        records, so that this is done once, to all that they say together.
        """
        floor = 1e-9 * float(np.trace(precision)) / len(precision)
        own = precision + floor * np.eye(len(precision))
        part = np.linalg.solve(self.precision + own, own).T
        both = part @ self.precision
        return Information((both + both.T) / 2.0, part @ self.target)


def unit_variance(basis: CodedBasis) -> Float:
    """Prior variance of each feature's coefficient, for an effect of unit variance; none of the constant."""
    joint = np.array([len(member) > 1 for member in basis.members])
    unit = basis.variance / basis.weight**2 * np.where(joint, _JOINT, 1.0)
    unit[0] = 0.0
    return np.asarray(unit)


def level_variance(basis: CodedBasis, scale: float) -> float:
    """Prior variance of the constant's coefficient."""
    return float((_FAR * scale / basis.weight[0]) ** 2)


def guessed_variance(basis: CodedBasis, scale: float) -> Float:
    """Prior variance of each coefficient before anything is known of how much the effect varies."""
    variance = _GUESS * scale**2 * unit_variance(basis)
    variance[0] = level_variance(basis, scale)
    return variance


def shrink_effect(known: Information, unit: Float, level: float) -> Shrunk:
    """Coefficients under Student priors, over all scales that these may have, each as the moments bear it out.

    ``unit`` has the prior variances at scale one, the constant's first, whose own is ``level``.
    """
    evidence, fits, weight = [], [], np.ones(len(unit))
    for scale in _SCALES:
        for step in range(_STEPS):
            prior = scale * unit / weight
            prior[0] = level
            root = np.sqrt(prior)
            lower = np.linalg.cholesky(np.eye(len(root)) + root[:, None] * known.precision * root)
            inverse = inverse_of_lower(lower) * root
            mean = inverse.T @ (inverse @ known.target)
            if step < _STEPS - 1:
                # A few coefficients may be far larger than the others.
                square = (mean[1:] ** 2 + np.sum(inverse[:, 1:] ** 2, axis=0)) / (scale * unit[1:])
                weight[1:] = (_TAIL + 1.0) / (_TAIL + square)
        rare = float(np.sum((_TAIL / 2.0 - 1.0) * np.log(weight) - _TAIL / 2.0 * (weight - 1.0)))
        evidence.append(0.5 * float(known.target @ mean) - float(np.sum(np.log(np.diag(lower)))) + rare)
        fits.append((mean, inverse.T @ inverse))
    chance = np.exp(np.array(evidence) - max(evidence))
    chance /= chance.sum()
    means = np.array([mean for mean, _ in fits])
    mean = chance @ means
    apart = (means - mean) * np.sqrt(chance)[:, None]
    covariance = sum((part * own for part, (_, own) in zip(chance, fits, strict=True)), apart.T @ apart)
    return Shrunk(mean, np.asarray(covariance), float(chance[_SCALES >= _FAINT].sum()))
