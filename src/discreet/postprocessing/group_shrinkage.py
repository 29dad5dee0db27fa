"""Group-wise adaptive shrinkage: coefficients from noisy information, each group as large as the evidence says.

A group is a set of coefficients that matter together or not at all (a covariate's curve, a factor's contrasts, one
product). Its prior is a mixture over shapes and scales with a point mass at zero; how common each is, is learned over
all groups of a kind. Post-processing: only released numbers and public facts come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from discreet.data._arrays import Float, IntArray

BoolArray = npt.NDArray[np.bool_]

# Prior variances that are tried, in units of the given one.
SCALES: Float = 4.0 ** np.arange(-5.0, 3.0)
# Sweeps of coordinate ascent at most, and the change (in units of the given scale) below which they end.
_SWEEPS, _STILL = 25, 1e-4
# A scale whose log evidence is so far below the best is outside a 95 % interval for it.
_BELIEVABLE = 1.92
# By kind of group: the prior probability that it is zero, and the pseudo-count of that prior, in groups.
_EXPECTED = {"own": (0.5, 4.0), "level": (0.5, 4.0), "pair": (0.9, 6.0)}
# Ridge, relative to the trace, for directions in which the records carry no information.
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientGroup:
    """Coefficients that share a prior: a shape S and a scale v give them covariance v S S'.

    Parameters
    ----------
    index
        Where the coefficients are.
    kind
        Groups of one kind share what is learned about shapes and scales; their shapes correspond.
    shapes
        Matrices with a row for each coefficient. Without any, the prior is a wide normal one.
    weights
        How likely each shape is a priori; equally by default.
    special
        Shapes that are present in some groups or in none: see `shrink`.
    """

    index: IntArray
    kind: str
    shapes: tuple[Float, ...] = ()
    weights: tuple[float, ...] = ()
    special: tuple[bool, ...] = field(default=())


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """Coefficients, their covariance (group by group), and how likely each group is to be anything but zero.

    ``any_special`` is the probability that any group has a special shape; ``chances`` are those of zero and of every
    shape at every scale, by kind.
    """

    mean: Float
    covariance: Float
    matters: Float
    any_special: float
    chances: dict[str, Float]


def shrink(
    precision: Float,
    target: Float,
    groups: Sequence[CoefficientGroup],
    *,
    scale: float,
    cap: float,
    start: Float | None = None,
    together: bool = False,
) -> Shrunk:
    """Posterior of coefficients b for which ``exp(target @ b - b @ precision @ b / 2)`` is the likelihood.

    Groups are visited in turn, each given the others' means, until nothing moves (mean-field coordinate ascent).

    Parameters
    ----------
    precision, target
        The information.
    groups
        A partition of the coefficients.
    scale
        Unit of the prior variances that are tried.
    cap
        Prior variance of groups without shapes.
    start
        Where to start.
    together
        Whether special shapes are first weighed as a whole: either some group has one, or none has (equal odds).
    """
    parts = [_Part.of(group, precision, scale, cap) for group in groups]
    chances = {kind: _expected(kind, groups) for kind in {group.kind for group in groups if group.shapes}}
    base = dict(chances)
    mean = np.zeros(len(target)) if start is None else start.copy()
    any_special, fits = 1.0, [_Fit.none()] * len(parts)
    for _ in range(_SWEEPS):
        before, total = mean.copy(), {kind: np.zeros_like(chance) for kind, chance in chances.items()}
        logs = {kind: np.log(chance) for kind, chance in chances.items()}
        odds = 0.0
        for number, part in enumerate(parts):
            index, kind = part.group.index, part.group.kind
            rest = target[index] - precision[index] @ mean + part.own @ mean[index]
            fit = fits[number] = part.fit(rest, chances.get(kind), logs.get(kind), any_special, together)
            mean[index] = fit.mean
            if part.group.shapes:
                total[part.group.kind] += fit.inside
                odds += fit.odds
        for kind, (_, worth) in ((kind, _EXPECTED[kind]) for kind in chances):
            counts = total[kind] + worth * base[kind]
            chances[kind] = counts / counts.sum()
        if together:
            any_special = float(expit(odds))
        if float(np.max(np.abs(mean - before))) < _STILL * np.sqrt(scale):
            break
    covariance = np.zeros((len(target), len(target)))
    for part, fit in zip(parts, fits, strict=True):
        covariance[np.ix_(part.group.index, part.group.index)] = part.covariance(fit)
    matters = np.array([1.0 - fit.zero for fit in fits])
    return Shrunk(mean, covariance, matters, any_special, chances)


def profile(
    precision: Float, target: Float, groups: Sequence[CoefficientGroup], fitted: Shrunk, *, scale: float, cap: float
) -> Float:
    """Covariance for intervals: every group as variable as the evidence can still believe.

    Each group, given the others where they were fitted, gets for every shape the largest scale whose log evidence is
    within 1.92 of that of the shape's best one, and shapes that are within 1.92 of the best count alike. A normal prior
    is then matched to the variance that this mixture leaves; the posterior under all of them together is shrunk less
    than the estimate, has the groups' covariances in it, and says honestly what is not known.
    """
    prior = np.zeros_like(precision)
    for group in groups:
        part, square = _Part.of(group, precision, scale, cap), np.ix_(group.index, group.index)
        if group.shapes:
            mean = fitted.mean[group.index]
            rest = target[group.index] - precision[group.index] @ fitted.mean + part.own @ mean
            prior[square] = part.believable(rest, fitted.chances[group.kind], fitted.any_special)
        else:
            prior[square] = cap * np.eye(len(group.index))
    covariance = np.linalg.solve(np.eye(len(target)) + prior @ precision, prior)
    return np.asarray((covariance + covariance.T) / 2.0)


def _shape_weights(group: CoefficientGroup) -> Float:
    weights = np.array(group.weights or (1.0,) * len(group.shapes))
    return np.asarray(weights / weights.sum())


def _expected(kind: str, groups: Sequence[CoefficientGroup]) -> Float:
    """Chance of zero, then of every shape at every scale, before anything is seen."""
    weights = _shape_weights(next(group for group in groups if group.kind == kind and group.shapes))
    zero, _ = _EXPECTED[kind]
    return np.concatenate([[zero], ((1.0 - zero) * weights[:, None] * np.full(len(SCALES), 1 / len(SCALES))).ravel()])


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """A group's posterior: its mean, how likely each component is, and the evidence for special shapes."""

    mean: Float
    turned: Float
    inside: Float
    zero: float
    odds: float

    @classmethod
    def none(cls) -> _Fit:
        return cls(np.zeros(0), np.zeros(0), np.zeros(0), 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A group with its own precision, every shape turned so that this precision is diagonal.

    ``padded``, ``turn`` (shapes, coefficients, columns); ``keep`` (shapes, scales, columns), the posterior variances;
    ``bulk`` (shapes, scales), the part of the log evidence that does not depend on the target.
    """

    group: CoefficientGroup
    scale: float
    own: Float
    flat: Float | None
    padded: Float
    turn: Float
    keep: Float
    bulk: Float

    @classmethod
    def of(cls, group: CoefficientGroup, precision: Float, scale: float, cap: float) -> _Part:
        own = precision[np.ix_(group.index, group.index)]
        if not group.shapes:
            none = np.zeros(0)
            flat = np.asarray(np.linalg.inv(own + np.eye(len(own)) / cap))
            return cls(group, scale, own, flat, none, none, none, none)
        width = max(shape.shape[1] for shape in group.shapes)
        padded = np.zeros((len(group.shapes), len(own), width))
        for number, shape in enumerate(group.shapes):
            padded[number, :, : shape.shape[1]] = shape
        values, vectors = np.linalg.eigh(np.swapaxes(padded, 1, 2) @ own @ padded)
        values, grid = np.maximum(values, 0.0)[:, None, :], (scale * SCALES)[None, :, None]
        bulk = -0.5 * np.sum(np.log1p(grid * values), axis=2)
        return cls(group, scale, own, None, padded, padded @ vectors, 1.0 / (values + 1.0 / grid), bulk)

    def turned(self, rest: Float) -> Float:
        return np.asarray(rest @ self.turn)

    def evidence(self, turned: Float) -> Float:
        """Log evidence of every shape at every scale, beside that of zero."""
        return np.asarray(0.5 * (self.keep @ (turned**2)[:, :, None])[:, :, 0] + self.bulk)

    @property
    def plain(self) -> BoolArray:
        """Which components are not special: zero, and shapes that are not."""
        special = self.group.special or (False,) * len(self.group.shapes)
        return np.concatenate([[True], np.repeat(~np.array(special), len(SCALES))])

    def fit(self, rest: Float, chances: Float | None, logs: Float | None, any_special: float, together: bool) -> _Fit:
        if self.flat is not None or chances is None or logs is None:
            assert self.flat is not None
            return _Fit(self.flat @ rest, np.zeros(0), np.zeros(0), 0.0, 0.0)
        turned, odds = self.turned(rest), 0.0
        scores = np.concatenate([[0.0], self.evidence(turned).ravel()]) + logs
        inside = np.exp(scores - scores.max())
        total = inside.sum()
        if together and any(self.group.special):
            # Overwhelming evidence leaves nothing of the usual: not even a zero to divide by.
            plain = self.plain
            usual = max(float(inside @ plain), 1e-300)
            odds = float(np.log(total / usual * (chances @ plain)))
            inside = any_special * inside / total + (1.0 - any_special) * np.where(plain, inside / usual, 0.0)
        else:
            inside = inside / total
        by_shape = inside[1:].reshape(self.bulk.shape)
        kept = (by_shape[:, None, :] @ self.keep)[:, 0, :]
        mean = (self.turn @ (kept * turned)[:, :, None])[:, :, 0].sum(axis=0)
        return _Fit(mean, turned, inside, float(inside[0]), odds)

    def believable(self, rest: Float, chances: Float, any_special: float) -> Float:
        """Covariance of a normal prior that is as wide as the evidence can still believe."""
        turned = self.turned(rest)
        evidence = self.evidence(turned)
        near = evidence >= evidence.max(axis=1, keepdims=True) - _BELIEVABLE
        level = len(SCALES) - 1 - np.argmax(near[:, ::-1], axis=1)
        # Log odds of zero and of every shape; what may be special counts up to 1.92 more, but no more than the best.
        scores = evidence + np.log(chances[1:]).reshape(evidence.shape)
        peak = scores.max(axis=1)
        by_shape = peak + np.log(np.exp(scores - peak[:, None]).sum(axis=1))
        special = np.array(self.group.special or (True,) * len(by_shape))
        by_shape = np.where(special, by_shape + np.log(max(any_special, 1e-300)), by_shape)
        odds = np.append(by_shape, np.log(chances[0]))
        lifted = np.where(special, np.minimum(by_shape + _BELIEVABLE, odds.max()), by_shape)
        odds = np.append(lifted, odds[-1])
        share = np.exp(odds - odds.max())[:-1] / np.exp(odds - odds.max()).sum()
        places = np.arange(len(level))
        kept = self.keep[places, level]
        within = np.einsum("sik,sjk->ij", self.turn * (share[:, None] * kept)[:, None, :], self.turn)
        means = (self.turn @ (kept * turned)[:, :, None])[:, :, 0]
        middle = share @ means
        left = within + (means * share[:, None]).T @ means - np.outer(middle, middle)
        weighted = self.padded * np.sqrt(share * self.scale * SCALES[level])[:, None, None]
        wide = np.einsum("sik,sjk->ij", weighted, weighted)
        return _matched(wide, self.own, float(np.trace(left)))

    def covariance(self, fit: _Fit) -> Float:
        """Covariance of the mixture: within its components and between them."""
        if self.flat is not None:
            return self.flat
        inside = fit.inside[1:].reshape(self.bulk.shape)
        kept = (inside[:, None, :] @ self.keep)[:, 0, :]
        within = np.einsum("sik,sjk->ij", self.turn * kept[:, None, :], self.turn)
        means = (self.keep * fit.turned[:, None, :]) @ np.swapaxes(self.turn, 1, 2)
        flat = means.reshape(-1, means.shape[-1])
        return np.asarray(within + (flat * inside.reshape(-1, 1)).T @ flat - np.outer(fit.mean, fit.mean))


def _matched(wide: Float, own: Float, left: float) -> Float:
    """A covariance, scaled down until a normal posterior has no more variance in all than ``left``."""
    low, high = -30.0, 0.0
    for _ in range(30):
        middle = (low + high) / 2.0
        prior = np.exp(middle) * wide
        posterior = np.linalg.solve(np.eye(len(own)) + prior @ own, prior)
        low, high = (middle, high) if float(np.trace(posterior)) < left else (low, middle)
    return np.asarray(np.exp(high) * wide)


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """A normal likelihood of coefficients: its precision, and precision times its peak.

    It is about the coefficients of these very records, so that rounds add up: each has noise of its own, while all see
    the same records. What sampling adds is added once, by `sampled`.
    """

    precision: Float
    target: Float

    @classmethod
    def seen(cls, value: Float, sd: float, slope: Float, model_error: float) -> Information:
        """From moments ``slope @ coefficients + noise``; ``model_error`` is that of the slope, relative.

        Without it, early rounds would be believed to the last digit where records are many.
        """
        noise = sd**2 + model_error**2 * float(np.mean(value**2))
        return cls(slope.T @ slope / noise, slope.T @ value / noise)

    def sampled(self, precision: Float) -> Information:
        """The same about the coefficients of the population, which those of the records miss with some precision."""
        left = np.linalg.solve(
            self.precision + precision + _TINY * np.trace(precision) * np.eye(len(precision)), precision
        )
        joint = self.precision @ left
        return Information((joint + joint.T) / 2.0, left.T @ self.target)

    def around(self, centre: Float) -> Information:
        """The same where coefficients were counted from a centre."""
        return Information(self.precision, self.target + self.precision @ centre)

    def __add__(self, other: Information) -> Information:
        return Information(self.precision + other.precision, self.target + other.target)

    def weakened(self, part: float) -> Information:
        """Believed in part only."""
        return Information(part * self.precision, part * self.target)
