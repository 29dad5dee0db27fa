"""Covariates of random studies: how columns depend on each other, what kind each is, and what is declared about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from discreet.data.bounds import Levels, Range

Float = NDArray[np.float64]
Spec = Range | Levels
Dependence = Literal["independent", "normal", "heavy", "chain", "clusters", "real"]
DRAWN: tuple[Dependence, ...] = ("independent", "normal", "heavy", "chain", "clusters")
Kind = Literal["even", "bell", "skewed", "counts", "steps of three", "spiky", "binary", "levels", "two peaks"]
# Few-valued, skewed and spiky columns are as frequent as smooth ones: real tables are full of them.
KINDS: tuple[Kind, ...] = get_args(Kind)
# Rows of a drawn population; fewer of those that have many columns.
ROWS, ROWS_OF_MANY, MANY = 40_000, 10_000, 20
# Rank from which on skewed values are all the same: the end of what is declared.
_MOST = 0.9995


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A finite population of covariates. Studies draw from it with replacement, so that truths are sums over it.

    Parameters
    ----------
    specs
        What is declared about each column.
    values
        What an analyst sees; levels are numbers.
    scores
        What surfaces are made of, from -1 to 1: the same number for all rows that show the same value.
    dependence
        How columns depend on each other.
    """

    specs: tuple[Spec, ...]
    values: Float
    scores: Float
    dependence: Dependence


def drawn_rows(rng: Generator, p: int) -> Rows:
    """A population of ``p`` covariates, drawn from a random distribution."""
    columns = [_column(rng, KINDS[int(rng.integers(len(KINDS)))]) for _ in range(p)]
    dependence: Dependence = DRAWN[int(rng.integers(len(DRAWN)))] if p > 1 else "independent"
    u = _dependent(rng, p, dependence)(rng, ROWS if p <= MANY else ROWS_OF_MANY)
    values, scores = np.empty(u.shape), np.empty(u.shape)
    for j, (_, value, score) in enumerate(columns):
        ranks = np.ascontiguousarray(u[:, j])
        values[:, j] = seen = value(ranks)
        scores[:, j] = score(ranks, seen)
    return Rows(specs=tuple(spec for spec, _, _ in columns), values=values, scores=scores, dependence=dependence)


def _dependent(rng: Generator, p: int, kind: Dependence) -> Callable[[Generator, int], Float]:
    loadings = rng.normal(size=(p, min(p, 3))) * rng.uniform(0.3, 1.5)
    scale = np.sqrt((loadings**2).sum(axis=1) + 1.0)
    bends, centres = rng.normal(0.0, 1.5, size=p), rng.normal(0.0, 1.6, size=(4, p))
    weights = rng.dirichlet(np.full(4, 2.0))

    def normal(draw: Generator, n: int) -> Float:
        return np.asarray((draw.normal(size=(n, loadings.shape[1])) @ loadings.T + draw.normal(size=(n, p))) / scale)

    def heavy(draw: Generator, n: int) -> Float:
        # One scale for a whole row: columns are extreme together, whatever their correlation.
        t = normal(draw, n) * np.sqrt(3.0 / draw.chisquare(3, size=(n, 1)))
        # The distribution function of a t variable with three degrees of freedom.
        return np.asarray(0.5 + (t * np.sqrt(3.0) / (3.0 + t**2) + np.arctan(t / np.sqrt(3.0))) / np.pi)

    def chain(draw: Generator, n: int) -> Float:
        # Each column is a bent function of the one before it, uncorrelated with it and far from independent.
        z = draw.normal(size=(n, p))
        for j in range(1, p):
            curve = np.sin(1.7 * z[:, j - 1]) if j % 2 else z[:, j - 1] ** 2 - 1.0
            z[:, j] = (z[:, j] + bends[j] * curve) / np.sqrt(1.0 + bends[j] ** 2)
        return _ranked(z)

    def clusters(draw: Generator, n: int) -> Float:
        return _ranked(centres[draw.choice(4, size=n, p=weights)] + draw.normal(size=(n, p)))

    kinds: dict[Dependence, Callable[[Generator, int], Float]] = {
        "independent": lambda draw, n: draw.random((n, p)),
        "normal": lambda draw, n: np.asarray(ndtr(normal(draw, n))),
        "heavy": heavy,
        "chain": chain,
        "clusters": clusters,
    }
    return kinds[kind]


def _ranked(z: Float) -> Float:
    """Numbers of about unit size between 0 and 1, by one fixed map: rows must not depend on each other."""
    return np.asarray(ndtr(z / 1.4))


# What is declared; the value as a function of a rank between 0 and 1; and the score as a function of rank and value.
Made = tuple[Spec, Callable[[Float], Float], Callable[[Float, Float], Float]]


def _column(rng: Generator, kind: Kind) -> Made:
    makers: dict[Kind, Callable[[Generator], Made]] = {
        "even": lambda r: _range(r, 0.0, 1.0, lambda u: u),
        "bell": lambda r: _range(r, -3.5, 3.5, lambda u: np.clip(ndtri(u), -3.5, 3.5)),
        "skewed": _skewed,
        "counts": _counts,
        "steps of three": lambda r: _range(r, 0.0, 27.0, lambda u: 3.0 * np.floor(9.0 * u**2)),
        "spiky": _spiky,
        "binary": lambda r: _few_levels(r, 2),
        "levels": lambda r: _few_levels(r, int(r.integers(3, 31))),
        "two peaks": lambda r: _range(r, -4.0, 4.0, lambda u: np.sign(u - 0.5) * 2.0 + np.clip(ndtri(u), -2.0, 2.0)),
    }
    return makers[kind](rng)


def _range(rng: Generator, low: float, high: float, value: Callable[[Float], Float], by_rank: bool = False) -> Made:
    """Declared as wide as the values, or up to three times as wide at the upper end."""
    beyond = (high - low) * float(rng.choice([0.0, 0.0, 0.3, 2.0]))

    def score(u: Float, seen: Float) -> Float:
        return 2.0 * np.minimum(u, _MOST) - 1.0 if by_rank else 2.0 * (seen - low) / (high - low) - 1.0

    return Range(low, high + beyond), value, score


def _skewed(rng: Generator) -> Made:
    sd = float(rng.uniform(0.5, 1.5))
    most = float(np.exp(sd * ndtri(_MOST)))

    def value(u: Float) -> Float:
        return np.minimum(np.exp(sd * ndtri(np.clip(u, 1e-12, 1.0 - 1e-12))), most)

    # Effects follow the rank or the amount itself, which has a long tail.
    return _range(rng, 0.0, most, value, by_rank=bool(rng.random() < 0.5))


def _counts(rng: Generator) -> Made:
    zero, most = float(rng.uniform(0.3, 0.9)), int(rng.integers(3, 12))
    return _range(
        rng,
        0.0,
        float(most),
        lambda u: np.minimum(np.floor(np.log1p(-np.minimum(u, 1.0 - 1e-12)) / np.log1p(-zero)), most),
    )


def _spiky(rng: Generator) -> Made:
    mass, at = float(rng.uniform(0.2, 0.8)), float(rng.choice([0.0, 0.0, 0.5]))

    def value(u: Float) -> Float:
        # The atom lies in the middle of the ranks, or at their lower end.
        low = at * (1.0 - mass)
        rest = np.where(u < low, u, u - mass) / (1.0 - mass)
        return np.where((u >= low) & (u < low + mass), at, rest)

    return _range(rng, 0.0, 1.0, value)


def _few_levels(rng: Generator, count: int) -> Made:
    share = rng.permutation(1.0 / np.arange(1.0, count + 1.0) ** rng.uniform(0.0, 1.5))
    edges = np.cumsum(share / share.sum())[:-1]
    # Levels have no order: what they do is drawn for each.
    effects = rng.permutation(np.linspace(-1.0, 1.0, count))

    def code(u: Float) -> NDArray[np.int64]:
        return np.searchsorted(edges, u, side="right")

    return (
        Levels(tuple(range(count))),
        lambda u: code(u).astype(np.float64),
        lambda u, seen: effects[seen.astype(np.int64)],
    )
