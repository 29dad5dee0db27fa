"""Block-wise adaptive shrinkage: coefficients from noisy information, each block as large as the evidence says.

A block is a set of coefficients that matter together or not at all (a covariate's curve, a factor's contrasts, one
product). Its prior is a mixture over shapes and scales with a point mass at zero; how common each is, is learned over all
blocks of a kind. Post-processing: only released numbers and public facts come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, logsumexp

from discreet.columns import Float, IntArray

# Prior variances that are tried, in units of the given one.
SCALES: Float = 4.0 ** np.arange(-5.0, 3.0)
# Sweeps at most, and the change (in units of the given scale) below which they end.
_SWEEPS, _STILL = 25, 1e-4
# A scale whose log evidence is so far below the best is outside a 95 % interval for it.
_BELIEVABLE = 1.92
# Before anything is seen: the chance that a block of this kind is zero, and the number of blocks that this is worth.
_EXPECTED = {"own": (0.5, 4.0), "level": (0.5, 4.0), "pair": (0.9, 6.0)}


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Coefficients that share a prior: a shape S and a scale v give them covariance v S S'.

    Parameters
    ----------
    index
        Where the coefficients are.
    kind
        Blocks of one kind share what is learned about shapes and scales; their shapes correspond.
    shapes
        Matrices with a row for each coefficient. Without any, the prior is a wide normal one.
    weights
        How likely each shape is a priori; equally by default.
    special
        Shapes that are present in some blocks or in none: see `shrink`.
    """

    index: IntArray
    kind: str
    shapes: tuple[Float, ...] = ()
    weights: tuple[float, ...] = ()
    special: tuple[bool, ...] = field(default=())


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """Coefficients, their covariance (block by block), and how likely each block is to be anything but zero.

    ``any_special`` is the probability that any block has a special shape.
    """

    mean: Float
    covariance: Float
    matters: Float
    any_special: float


def shrink(
    precision: Float,
    target: Float,
    blocks: Sequence[Block],
    *,
    scale: float,
    cap: float,
    start: Float | None = None,
    together: bool = False,
) -> Shrunk:
    """Posterior of coefficients b for which ``exp(target @ b - b @ precision @ b / 2)`` is the likelihood.

    Blocks are visited in turn, each given the others' means, until nothing moves (mean-field coordinate ascent).

    Parameters
    ----------
    precision, target
        The information.
    blocks
        A partition of the coefficients.
    scale
        Unit of the prior variances that are tried.
    cap
        Prior variance of blocks without shapes.
    start
        Where to start.
    together
        Whether special shapes are first weighed as a whole: either some block has one, or none has (equal odds).
    """
    parts = [_Part.of(block, precision, scale, cap) for block in blocks]
    chances = {kind: _expected(kind, blocks) for kind in {block.kind for block in blocks if block.shapes}}
    base = dict(chances)
    mean = np.zeros(len(target)) if start is None else start.copy()
    any_special, fits = 1.0, [_Fit.none()] * len(parts)
    for _ in range(_SWEEPS):
        before, total = mean.copy(), {kind: np.zeros_like(chance) for kind, chance in chances.items()}
        odds = 0.0
        for number, part in enumerate(parts):
            index = part.block.index
            rest = target[index] - precision[index] @ mean + part.own @ mean[index]
            fit = fits[number] = part.fit(rest, chances.get(part.block.kind), any_special)
            mean[index] = fit.mean
            if part.block.shapes:
                total[part.block.kind] += fit.inside
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
        covariance[np.ix_(part.block.index, part.block.index)] = part.covariance(fit)
    matters = np.array([1.0 - fit.zero for fit in fits])
    return Shrunk(mean, covariance, matters, any_special)


def profile(
    precision: Float, target: Float, blocks: Sequence[Block], mean: Float, *, scale: float, cap: float
) -> tuple[Float, Float]:
    """Coefficients and covariance for intervals: every block as variable as the evidence can still believe.

    Each block, given the others at ``mean``, gets the largest scale whose log evidence is within 1.92 of the best one's.
    A normal posterior under these scales is shrunk less than the estimate, and says honestly what is not known.
    """
    prior = np.zeros_like(precision)
    for block in blocks:
        part, square = _Part.of(block, precision, scale, cap), np.ix_(block.index, block.index)
        if not block.shapes:
            prior[square] = cap * np.eye(len(block.index))
            continue
        rest = target[block.index] - precision[block.index] @ mean + part.own @ mean[block.index]
        evidence = part.evidence(part.turned(rest)) + np.log(_shape_weights(block))[:, None]
        by_scale = logsumexp(evidence, axis=0)
        best = max(0.0, float(by_scale.max()))
        believable = np.flatnonzero(by_scale >= best - _BELIEVABLE)
        # Where even the smallest scale is too large, the block is zero for all that can be told.
        level = int(believable[-1]) if believable.size else 0
        share = np.exp(evidence[:, level] - by_scale[level])
        shapes = np.stack(block.shapes) if len({s.shape for s in block.shapes}) == 1 else part.padded
        prior[square] = scale * SCALES[level] * np.einsum("s,sik,sjk->ij", share, shapes, shapes)
    covariance = np.linalg.solve(np.eye(len(target)) + prior @ precision, prior)
    covariance = (covariance + covariance.T) / 2.0
    return covariance @ target, covariance


def _shape_weights(block: Block) -> Float:
    weights = np.asarray(block.weights or (1.0,) * len(block.shapes))
    return weights / weights.sum()


def _expected(kind: str, blocks: Sequence[Block]) -> Float:
    """Chance of zero, then of every shape at every scale, before anything is seen."""
    weights = _shape_weights(next(block for block in blocks if block.kind == kind and block.shapes))
    zero, _ = _EXPECTED[kind]
    return np.concatenate([[zero], ((1.0 - zero) * weights[:, None] * np.full(len(SCALES), 1 / len(SCALES))).ravel()])


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """A block's posterior: its mean, how likely each component is, and the evidence for special shapes."""

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
    """A block with its own precision, every shape turned so that this precision is diagonal.

    ``padded``, ``turn`` (shapes, coefficients, columns); ``keep`` (shapes, scales, columns), the posterior variances;
    ``bulk`` (shapes, scales), the part of the log evidence that does not depend on the target.
    """

    block: Block
    own: Float
    flat: Float | None
    padded: Float
    turn: Float
    keep: Float
    bulk: Float

    @classmethod
    def of(cls, block: Block, precision: Float, scale: float, cap: float) -> _Part:
        own = precision[np.ix_(block.index, block.index)]
        if not block.shapes:
            none = np.zeros(0)
            return cls(block, own, np.linalg.inv(own + np.eye(len(own)) / cap), none, none, none, none)
        width = max(shape.shape[1] for shape in block.shapes)
        padded = np.stack([np.pad(shape, ((0, 0), (0, width - shape.shape[1]))) for shape in block.shapes])
        values, vectors = np.linalg.eigh(np.swapaxes(padded, 1, 2) @ own @ padded)
        values, grid = np.maximum(values, 0.0)[:, None, :], (scale * SCALES)[None, :, None]
        bulk = -0.5 * np.sum(np.log1p(grid * values), axis=2)
        return cls(block, own, None, padded, padded @ vectors, 1.0 / (values + 1.0 / grid), bulk)

    def turned(self, rest: Float) -> Float:
        return np.einsum("sik,i->sk", self.turn, rest)

    def evidence(self, turned: Float) -> Float:
        """Log evidence of every shape at every scale, beside that of zero."""
        return np.asarray(0.5 * np.einsum("sgk,sk->sg", self.keep, turned**2) + self.bulk)

    def fit(self, rest: Float, chances: Float | None, any_special: float) -> _Fit:
        if self.flat is not None or chances is None:
            assert self.flat is not None
            return _Fit(self.flat @ rest, np.zeros(0), np.zeros(0), 0.0, 0.0)
        turned = self.turned(rest)
        scores = np.concatenate([[0.0], self.evidence(turned).ravel()]) + np.log(chances)
        inside = np.exp(scores - logsumexp(scores))
        odds = 0.0
        if any(self.block.special):
            plain = np.concatenate([[True], np.repeat(~np.array(self.block.special), len(SCALES))])
            usual = logsumexp(scores[plain])
            odds = float(logsumexp(scores) - usual + np.log(chances[plain].sum()))
            without = np.where(plain, np.exp(scores - usual), 0.0)
            inside = any_special * inside + (1.0 - any_special) * without
        by_shape = inside[1:].reshape(self.bulk.shape)
        mean = np.einsum("sik,sk->i", self.turn, np.einsum("sg,sgk->sk", by_shape, self.keep) * turned)
        return _Fit(mean, turned, inside, float(inside[0]), odds)

    def covariance(self, fit: _Fit) -> Float:
        """Covariance of the mixture: within its components and between them."""
        if self.flat is not None:
            return self.flat
        inside = fit.inside[1:].reshape(self.bulk.shape)
        within = np.einsum("sik,sk,sjk->ij", self.turn, np.einsum("sg,sgk->sk", inside, self.keep), self.turn)
        means = np.einsum("sgk,sk,sik->sgi", self.keep, fit.turned, self.turn)
        between = np.einsum("sg,sgi,sgj->ij", inside, means, means, optimize=True)
        return np.asarray(within + between - np.outer(fit.mean, fit.mean))
