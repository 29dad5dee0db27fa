"""Coefficients of an effect function from noisy moments: shrunk towards a constant as far as these allow.

Post-processing: only released numbers and public facts come in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.feature_selection import inverse_of_lower
from discreet.postprocessing.kernel_basis import CodedBasis, Member

# Prior variances of an effect that are weighed against each other, and a guess at it, in squared scales of the outcome.
_SCALES, _GUESS = np.geomspace(1.0, 1e-5, 11), 1.0
# Prior standard deviation of the level about the average effect, in scales of the outcome.
_FAR = 3.0
# Prior variance of joint effects of covariates, beside what it is in models of treatment and outcome; degrees of
# freedom of the priors of a coefficient and of a group's scale. By hand, on studies 3000 to 3239 of
# evidence/population, and the last on smooth effects of two and of thirty covariates.
_JOINT, _TAIL, _GROUP = 0.3, 3.0, 0.5
# Steps of expectation-maximisation at each scale.
_STEPS = 3


class Shrunk(NamedTuple):
    """Coefficients, the covariance of their error, and how likely it is that the effect varies at all."""

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
    """Prior variance of each feature's coefficient at scale one; none of the constant."""
    joint = np.array([len(member) > 1 for member in basis.members])
    unit = basis.variance / basis.weight**2 * np.where(joint, _JOINT, 1.0)
    unit[0] = 0.0
    return np.asarray(unit)


def effect_groups(basis: CodedBasis) -> IntArray:
    """Groups of features: each covariate's own, products of two, products of three; the constant alone."""
    p = len(basis.codings)

    def group(member: Member) -> int:
        if len(member) > 1:
            return p + len(member) - 1
        return 1 + member[0][0] if member else 0

    return np.array([group(member) for member in basis.members])


def level_variance(basis: CodedBasis, scale: float) -> float:
    """Prior variance of the constant's coefficient."""
    return float((_FAR * scale / basis.weight[0]) ** 2)


def guessed_variance(basis: CodedBasis, scale: float) -> Float:
    """Prior variance of each coefficient before anything is known of how much the effect varies."""
    variance = _GUESS * scale**2 * unit_variance(basis)
    variance[0] = level_variance(basis, scale)
    return variance


def shrink_effect(known: Information, unit: Float, level: float, groups: IntArray) -> Shrunk:
    """Coefficients under Student priors, over all scales that these may have, each as the moments bear it out.

    ``unit`` has the prior variances at scale one, the constant's first, whose own is ``level``; coefficients of one of
    ``groups`` are large or small together.
    """
    evidence, fits, own, common = [], [], np.ones(len(unit)), np.ones(int(groups.max()) + 1)
    sizes = np.bincount(groups, minlength=len(common))
    for scale in _SCALES:
        for step in range(_STEPS):
            prior = scale * unit / (own * common[groups])
            prior[0] = level
            root = np.sqrt(prior)
            lower = np.linalg.cholesky(np.eye(len(root)) + root[:, None] * known.precision * root)
            inverse = inverse_of_lower(lower) * root
            mean = inverse.T @ (inverse @ known.target)
            if step < _STEPS - 1:
                # A few coefficients may be far larger than the others, and whole groups as good as zero.
                square = np.ones(len(unit))
                square[1:] = (mean[1:] ** 2 + np.sum(inverse[:, 1:] ** 2, axis=0)) / (scale * unit[1:])
                own = (_TAIL + 1.0) / (_TAIL + square * common[groups])
                common = (_GROUP + sizes) / (_GROUP + np.bincount(groups, own * square, len(common)))
        rare = float(np.sum((_TAIL / 2.0 - 1.0) * np.log(own) - _TAIL / 2.0 * (own - 1.0)))
        rare += float(np.sum((_GROUP / 2.0 - 1.0) * np.log(common) - _GROUP / 2.0 * (common - 1.0)))
        evidence.append(0.5 * float(known.target @ mean) - float(np.sum(np.log(np.diag(lower)))) + rare)
        fits.append((mean, inverse.T @ inverse))
    chance = np.exp(np.array(evidence) - max(evidence))
    varies = _odds(float(np.log(np.mean(chance))) + max(evidence), known, level)
    chance /= chance.sum()
    means = np.array([mean for mean, _ in fits])
    mean = chance @ means
    apart = (means - mean) * np.sqrt(chance)[:, None]
    covariance = sum((part * own for part, (_, own) in zip(chance, fits, strict=True)), apart.T @ apart)
    return Shrunk(mean, np.asarray(covariance), varies)


def _odds(evidence: float, known: Information, level: float) -> float:
    """Probability that an effect varies, by the evidence for that and for a constant, which are as likely at first."""
    precision, target = float(known.precision[0, 0]), float(known.target[0])
    constant = 0.5 * target**2 / (precision + 1.0 / level) - 0.5 * float(np.log1p(level * precision))
    return float(expit(evidence - constant))
