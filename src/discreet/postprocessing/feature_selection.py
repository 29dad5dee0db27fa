"""Coefficients from noisy moments, and which features the next noisy moments are of.

`shrink` is a heavy-tailed prior whose scale comes from the moments. `allot` and `FeatureSelection` choose a few
features, by the loss that their uncertainty causes, for moments that are released next; `Belief` is updated by these
(docs/proofs/ate.md). Post-processing: only released numbers and public facts come in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.kernel_basis import NORM_CAP, CodedBasis, Curves, combine

Response = Callable[[Float], tuple[Float, Float]]

# Shares of the norm below this part of the largest are not worth a column.
_LEAST = 3e-3
# Part of the norm that a public function has among the features.
_DIRECTION = 0.15
# Caps of the squared norm that are tried.
_NORM_CAPS = (0.5, NORM_CAP, 1.0, 1.5, 2.5, 4.0, 7.0, 12.0)
# What is smaller than this beside the largest of its kind is as good as zero.
_TINY = 1e-12
# Steps of expectation-maximisation, and the pseudo-count, in coefficients, of the guessed scale: of 1 and 4, on the
# observational studies among 20,000 to 20,899 of evidence/population.
_EM_STEPS, _PSEUDO = 25, 1.0
# What covariates have together that say nothing by themselves, beside what is found.
_SILENT = 0.5
# Triangular matrices of this size are inverted at once.
_SMALL = 32
# Degrees of freedom of the prior; by hand, on the same studies of evidence/population and a bump.
_TAIL = 1.0


def allot(loss_weight: Float, variance: Float, noise: float) -> Float:
    """Shares of a release, adding up to one, that leave the least expected loss.

    Share v of a release leaves 1 / (1 / variance + v / noise) of a coefficient's ``variance``; the shares that
    minimise the sum of ``loss_weight`` times that are found by water-filling: up to a common level.
    """
    root, known = np.sqrt(_above_zero(loss_weight)), noise / _above_zero(variance)
    # A coefficient is under water from the level known / root on, and then gets root * level - known.
    shore = known / root
    order = np.argsort(shore, kind="stable")
    levels = (1.0 + np.cumsum(known[order])) / np.cumsum(root[order])
    level = levels[np.flatnonzero(levels >= shore[order])[-1]]
    share = np.maximum(root * level - known, 0.0)
    if not share.sum() > 0.0:  # everything is known to rounding
        share[order[0]] = 1.0
    return np.asarray(share / share.sum())


def _above_zero(values: Float) -> Float:
    return np.maximum(values, max(_TINY * float(np.max(values)), 1e-100))


class Direction(NamedTuple):
    """A public function without its constant, as a feature: its coefficients, and the scale that it has."""

    function: Float
    scale: float

    @property
    def coefficients(self) -> Float:
        """Coefficients of the feature."""
        plain = self.scale * self.function
        plain[0] = 0.0
        return plain


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSelection:
    """A few features of a basis, rescaled, and the norm to which a record's are held.

    ``norm_cap`` is the square of that norm, beside a mean square of one.
    """

    kept: IntArray
    scale: Float
    norm_cap: float = NORM_CAP
    directions: tuple[Direction, ...] = ()

    @classmethod
    def of(cls, share: Float, size: Float) -> FeatureSelection:
        """Features that get a share of the norm, given the mean square (``size``) of each."""
        kept = np.flatnonzero((share > _LEAST * share.max()) & (size > _TINY * size.max()))
        return cls(kept, np.sqrt(share[kept] / share[kept].sum() / size[kept]))

    def beside(self, gram: Float, *functions: Float) -> FeatureSelection:
        """With public functions (their coefficients) as further features, each with a part of the norm of its own."""
        found = []
        for function in functions:
            plain = Direction(function, 1.0).coefficients
            square = float(plain @ gram @ plain)
            if square > _TINY:
                found.append(Direction(function, float(np.sqrt(_DIRECTION / square))))
        left = 1.0 - _DIRECTION * len(found)
        return replace(self, scale=self.scale * np.sqrt(left), directions=tuple(found))

    @property
    def m(self) -> int:
        """Number of features kept, functions included."""
        return len(self.kept) + len(self.directions)

    def linear(self, m: int) -> Float:
        """The selection as a matrix, a column for each feature kept."""
        matrix = np.zeros((m, self.m))
        matrix[self.kept, np.arange(len(self.kept))] = self.scale
        for k, direction in enumerate(self.directions, len(self.kept)):
            matrix[:, k] = direction.coefficients
        return matrix

    @property
    def radius(self) -> float:
        """Norm to which a record's rescaled features are held; they are scaled to have a mean square of one."""
        return float(np.sqrt(self.norm_cap))

    def __call__(self, features: Float, out: Float | None = None) -> tuple[Float, Float]:
        """Rescaled features, in ``out`` if it is given, and each record's weight.

        Elementwise and in a fixed order, as a map has to be.
        """
        narrow = np.empty((len(features), self.m), order="F") if out is None else out
        square, term = np.zeros(len(features)), np.empty(len(features))
        for k, (feature, scale) in enumerate(zip(self.kept, self.scale, strict=True)):
            column = np.multiply(features[:, feature], scale, out=narrow[:, k])
            square += np.multiply(column, column, out=term)
        for k, direction in enumerate(self.directions, len(self.kept)):
            narrow[:, k] = combine(features, direction.coefficients)
            square += np.multiply(narrow[:, k], narrow[:, k], out=term)
        return narrow, self.weights(square)

    def squares(self, m: int) -> Float:
        """By what the squares of all ``m`` features are multiplied in the squared norm; public functions apart."""
        found = np.zeros(m)
        found[self.kept] = self.scale**2
        return found

    def weights(self, square: Float) -> Float:
        """Each record's weight, given its squared norm."""
        return np.minimum(1.0, self.norm_cap / np.maximum(square, 1e-300))

    def with_best_norm_cap(self, features: Float, noise: float, sampling: float) -> FeatureSelection:
        """With the cap that leaves the least error of the coefficients, judged on public stand-ins for the records.

        A small norm means little noise (``noise`` is its variance at a cap of one), but records beyond it count less:
        the sampling error (``sampling`` is its variance for a feature of mean square one) grows.
        """
        narrow, _ = self(features)
        square, narrow = np.sum(narrow**2, axis=1), narrow**2
        size = narrow.mean(axis=0)
        losses = []
        for norm_cap in _NORM_CAPS:
            weight = np.minimum(1.0, norm_cap / np.maximum(square, 1e-300))
            slope, variance = weight @ narrow / len(square), weight**2 @ narrow / len(square)
            losses.append(
                float(np.mean((noise * norm_cap + sampling * variance) * size / np.maximum(slope**2, 1e-300)))
            )
        return replace(self, norm_cap=_NORM_CAPS[int(np.argmin(losses))])


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Noisy moments of one model: ``value = response(coefficients) + N(0, noise)``.

    ``size`` is a guess at the squared coefficient of a unit feature that matters; ``cap`` the intercept's variance.
    """

    value: Float
    response: Response
    noise: Float
    size: float
    cap: float


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Coefficients from noisy moments, the covariance of their error, and the prior variances behind both.

    ``left_out`` is the prior variance of what the basis leaves out.
    """

    mean: Float
    covariance: Float
    scales: Float
    left_out: float = 0.0


def shrink(model: Moments, basis: CodedBasis) -> Posterior:
    """Coefficients under Student priors, whose scale in each group of features comes from the moments themselves."""
    unit = basis.variance / basis.weight**2
    groups = [np.flatnonzero(basis.group == g) for g in range(1, len(basis.left_out))]
    whiten, last = _inverse_root(model.noise), None
    mean, scale, weight = np.zeros(basis.m), np.full(len(groups), model.size), np.ones(basis.m)

    def prior() -> Float:
        variance = np.full(basis.m, model.cap)
        for own, members in zip(scale, groups, strict=True):
            variance[members] = own * unit[members] / weight[members]
        return variance

    for _ in range(_EM_STEPS):
        value, slope = model.response(mean)
        if slope is not last:
            left, last = whiten @ slope, slope
            precision = left.T @ left
        root = _inverse_root(precision + np.diag(1.0 / prior()))
        move = root.T @ (root @ ((whiten @ (model.value - value)) @ left + precision @ mean)) - mean
        # A step of more than two units of the linear predictor overshoots where the logistic curve is flat.
        mean = mean + move * min(1.0, 1.0 / np.sqrt(max(float(move @ slope @ move), 1e-12)))
        variance = np.sum(root**2, axis=0)
        for g, members in enumerate(groups):
            if len(members):
                square = (mean[members] ** 2 + variance[members]) / unit[members]
                # A few coefficients may be far larger than the others of their group.
                weight[members] = (_TAIL + 1.0) / (_TAIL + square / scale[g])
                found = float(weight[members] @ square)
                scale[g] = max((found + _PSEUDO * model.size) / (len(members) + _PSEUDO), 0.01 * model.size)
    left_out = scale @ basis.left_out[1:]
    return Posterior(mean, np.asarray(root.T @ root), prior(), float(left_out))


def screened(basis: CodedBasis, value: Float, noise: Float) -> tuple[Float, tuple[Curves, ...]]:
    """How much each covariate says of treatment and outcome, and functions of it that follow what it says.

    ``value`` has a row of moments for each model, of functions of single covariates, with variances ``noise``; the
    scale of a covariate's coefficients comes from these and from the other covariates'.
    """
    p = len(basis.codings)
    if basis.m < 2:
        return np.full(p, 1.0 / p), basis.curves
    columns = np.array([member[0][0] for member in basis.members[1:]])
    unit, count = basis.variance[1:], np.bincount(columns, minlength=p)
    found, second = np.zeros((2, p)), [np.zeros((size, size)) for size in count]
    for own, seen, error in zip(found, value[:, 1:], noise[:, 1:], strict=True):
        least = 0.01 * float(np.mean(error / unit))
        scale = np.full(p, max(float(np.sum(seen**2 - error) / np.sum(unit)), least))
        for _ in range(_EM_STEPS):
            prior = scale[columns] * unit
            gain = prior / (prior + error)
            square = (gain * seen) ** 2 + gain * error
            like = np.bincount(columns, square / unit, p)
            scale = (like + _PSEUDO * like.sum() / count.sum()) / (count + _PSEUDO)
        mean, left = gain * seen, gain * error
        own[:] = np.bincount(columns, mean**2, p)
        for j, moments in enumerate(second):
            here = columns == j
            whole = max(float(square[here].sum()), 1e-300)
            moments += (np.outer(mean[here], mean[here]) + np.diag(left[here])) / whole
        own /= max(float(own.sum()), float(np.mean(error)))
    importance = np.sqrt(found[0] * found[1]) + 0.5 * (found[0] + found[1]) + _SILENT / p
    curves = tuple(own.turned(moments) for own, moments in zip(basis.curves, second, strict=True))
    return np.asarray(importance / importance.sum()), curves


def effect_importance(basis: CodedBasis, mean: Float, variance: Float) -> Float:
    """How much each covariate says of an effect, by coefficients of its own functions, all of unit size."""
    p = len(basis.codings)
    columns = np.array([member[0][0] for member in basis.members[1:]], dtype=np.int64)
    found = np.bincount(columns, mean[1:] ** 2, p)
    # What is no clearer than a coefficient's error says nothing.
    importance = found / max(float(found.sum()), float(variance[1:].max(initial=0.0)), _TINY) + _SILENT / p
    return np.asarray(importance / importance.sum())


def _inverse_root(matrix: Float) -> Float:
    """A matrix A with A'A the inverse of a positive definite matrix, in a third of the time of the inverse."""
    return inverse_of_lower(np.asarray(np.linalg.cholesky(matrix), dtype=np.float64))


def inverse_of_lower(lower: Float) -> Float:
    """Inverse of a lower triangular matrix, by halves: LAPACK's own takes a hundred times as long on busy cores."""
    m = len(lower)
    if m <= _SMALL:
        return np.asarray(np.linalg.inv(lower))
    first, last = inverse_of_lower(lower[: m // 2, : m // 2]), inverse_of_lower(lower[m // 2 :, m // 2 :])
    inverse = np.zeros((m, m))
    inverse[: m // 2, : m // 2], inverse[m // 2 :, m // 2 :] = first, last
    inverse[m // 2 :, : m // 2] = -last @ (lower[m // 2 :, : m // 2] @ first)
    return inverse


def beside_constant_effect(
    fitted: Posterior, y: Moments, implied: Float, gap: float, varies: float, most: float
) -> tuple[Float, float]:
    """Coefficients beside a constant effect, in a few alternating steps; ``gap`` is the moment of t - treated."""
    _, solid = y.response(fitted.mean)
    whiten = _inverse_root(y.noise)
    left = whiten @ solid
    root = _inverse_root(left.T @ left + np.diag(1.0 / fitted.scales))
    coefficients, step = fitted.mean, 0.0
    for _ in range(4):
        step = float(np.clip((gap - implied @ coefficients) / varies, -most, most))
        coefficients = np.asarray(root.T @ (root @ ((whiten @ (y.value - implied * step)) @ left)))
    return coefficients, step


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Where coefficients are and how far off they may be."""

    mean: Float
    covariance: Float

    def update(self, seen: Float, slope: Float, noise: Float, gram: Float, most: float) -> Belief:
        """After a release of ``slope @ (truth - mean)`` with noise.

        Where it shows more than could be expected, the prior is widened. No step moves the predictions, whose mean
        square ``gram`` gives, by more than ``most``.
        """
        expected = slope @ self.covariance @ slope.T
        surprise = float(seen @ np.linalg.solve(expected + noise, seen)) / len(seen)
        prior = max(1.0, surprise - np.sqrt(2.0 / len(seen))) * self.covariance
        gain = np.linalg.solve(slope @ prior @ slope.T + noise, slope @ prior).T
        step = gain @ seen
        length = float(np.sqrt(max(float(step @ gram @ step), 0.0)))
        left = prior - gain @ slope @ prior
        return Belief(self.mean + step * min(1.0, most / max(length, 1e-300)), (left + left.T) / 2.0)
