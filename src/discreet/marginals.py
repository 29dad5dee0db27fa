"""How each covariate is distributed: cells, released counts without their noise, and points that stand in for records.

Post-processing, but for `cell_numbers`, which is a function of one record at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.columns import Float, IntArray, Levels, Range

# Equal bins over a declared range; polynomials of low degree need no more.
BINS = 24
# Before anything is seen a range is evenly filled with this probability, and otherwise any bell is equally likely; and
# the probability that a range has the shape that most of them have.
_EVEN, _COMMON = 0.5, 0.8

Column = Range | Levels


def cells(column: Column) -> int:
    """Number of cells of a column's marginal: its levels, or equal bins of its range."""
    return len(column.levels) if isinstance(column, Levels) else BINS


def cell_numbers(x: Float, columns: tuple[Column, ...]) -> IntArray:
    """Cell of each record in each column."""
    numbers = np.empty(x.shape, dtype=np.int64, order="F")
    for j, column in enumerate(columns):
        if isinstance(column, Levels):
            numbers[:, j] = x[:, j]
        else:
            numbers[:, j] = np.minimum((x[:, j] + 1.0) * (BINS / 2.0), BINS - 1)
    return numbers


def clean_marginals(columns: Sequence[Column], fractions: Sequence[Float], sd: float) -> tuple[Float, ...]:
    """Denoise released histograms: towards what a bell (for levels, equal cells) would give, by James and Stein.

    Bells are normal curves cut off at the ends of the range. A range's shape is the average of all bells and of even
    cells, weighted by how likely each is; how likely they are beforehand is learnt from all ranges together, because
    bounds that were declared by the same people tend to be generous to the same degree. Where the noise is small, the
    histograms are returned as they are.
    """
    ranges = [isinstance(column, Range) for column in columns]
    bells = iter(_likely_shapes([part for part, ordered in zip(fractions, ranges, strict=True) if ordered], sd))
    shapes = [
        next(bells) if ordered else np.full(len(part), 1.0 / len(part))
        for part, ordered in zip(fractions, ranges, strict=True)
    ]
    return tuple(_shrunk(part, shape, sd) for part, shape in zip(fractions, shapes, strict=True))


def _likely_shapes(fractions: Sequence[Float], sd: float) -> list[Float]:
    """Posterior mean of each range's shape, under a prior over shapes that is common to all of them."""
    if not fractions:
        return []
    loss = np.stack([np.sum((part - _SHAPES) ** 2, axis=1) for part in fractions])
    evidence = np.exp(-(loss - loss.min(axis=1, keepdims=True)) / (2.0 * max(sd, 1e-12) ** 2))
    expected = np.full(len(_SHAPES), (1.0 - _EVEN) / (len(_SHAPES) - 1))
    expected[0] = _EVEN
    # How likely each shape is to be what most ranges have: others count only as far as they fit it.
    fit = np.log(_COMMON * evidence / (evidence @ expected)[:, None] + 1.0 - _COMMON).sum(axis=0)
    common = expected * np.exp(fit - fit.max())
    likely = evidence * (_COMMON * common / common.sum() + (1.0 - _COMMON) * expected)
    likely /= likely.sum(axis=1, keepdims=True)
    return list(likely @ _SHAPES)


def _shrunk(fractions: Float, shape: Float, sd: float) -> Float:
    apart, size = fractions - shape, len(fractions)
    # Noise alone exceeds its expectation now and then: only what is clearly more than noise is kept.
    noise = size * sd**2 * (1.0 + 2.0 * np.sqrt(2.0 / size))
    keep = max(0.0, 1.0 - noise / max(float(apart @ apart), 1e-300))
    values = np.maximum(shape + keep * apart, 0.02 / size)
    return np.asarray(values / values.sum())


def _shapes() -> Float:
    edges = np.linspace(-1.0, 1.0, BINS + 1)
    centre, width = np.meshgrid(np.linspace(-1.4, 1.4, 15), np.geomspace(0.1, 1.5, 14))
    below = ndtr((edges[None, :] - centre.reshape(-1, 1)) / width.reshape(-1, 1))
    mass = np.maximum(np.diff(below, axis=1), 1e-12)
    bells = mass / mass.sum(axis=1, keepdims=True)
    return np.vstack([np.full(BINS, 1.0 / BINS), bells])


# Even cells first, then bells.
_SHAPES = _shapes()


def reference_points(columns: tuple[Column, ...], marginals: tuple[Float, ...], correlation: Float, size: int) -> Float:
    """Deterministic sample of a Gaussian copula with the released marginals: a public stand-in for the covariates."""
    values, vectors = np.linalg.eigh(correlation)
    factor = vectors * np.sqrt(np.maximum(values, 0.02))
    factor /= np.sqrt(np.sum(factor**2, axis=1, keepdims=True))
    even: Float = ndtr(ndtri(_kronecker(size, len(columns))) @ factor.T)
    points = np.empty(even.shape)
    for j, (column, marginal) in enumerate(zip(columns, marginals, strict=True)):
        below = np.concatenate([[0.0], np.cumsum(marginal)])
        below[-1] = 1.0
        if isinstance(column, Levels):
            points[:, j] = np.clip(np.searchsorted(below, even[:, j], side="right") - 1, 0, len(marginal) - 1)
        else:
            points[:, j] = np.interp(even[:, j], below, np.linspace(-1.0, 1.0, len(below)))
    return points


def _kronecker(size: int, dimension: int) -> Float:
    """Evenly spread points in the unit cube: multiples of square roots of primes, modulo one."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < dimension:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    steps = np.sqrt(np.array(primes, dtype=np.float64))
    return np.asarray(np.clip((0.5 + np.arange(1, size + 1)[:, None] * steps) % 1.0, 1e-6, 1.0 - 1e-6))
