"""Covariates of random studies: how columns depend on each other, what kind each is, and what is declared about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr

from discreet.data.bounds import Levels, Range

Float = NDArray[np.float64]
Dependence = Literal["independent", "normal", "heavy", "chain", "clusters"]
Kind = Literal["even", "bell", "skewed", "counts", "steps of three", "spiky", "binary", "levels", "two peaks"]
# Few-valued, skewed and spiky columns are as frequent as smooth ones: real tables are full of them.
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A covariate as a public function of a rank between 0 and 1, and what is declared about it."""

    kind: Kind
    spec: Range | Levels
    value: Callable[[Float], NDArray[np.generic]]
    score: Callable[[Float], Float]
    """What surfaces are made of, from -1 to 1: the same number for all records that show the same value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariates:
    """A distribution of covariates that rows can be drawn from, again and again."""

    columns: tuple[Column, ...]
    dependence: Dependence
    ranks: Callable[[Generator, int], Float]

    def draw(self, rng: Generator, n: int) -> tuple[pd.DataFrame, Float]:
        """Rows as an analyst sees them, and the scores that surfaces are made of."""
        u = self.ranks(rng, n)
        names = [f"x{j}" for j in range(len(self.columns))]
        values = [column.value(u[:, j]) for j, column in enumerate(self.columns)]
        frame = pd.DataFrame(dict(zip(names, values, strict=True)), index=range(n))
        scores = [column.score(u[:, j]) for j, column in enumerate(self.columns)]
        return frame, np.column_stack(scores) if scores else np.empty((n, 0))


def random_covariates(rng: Generator, p: int) -> Covariates:
    """A random distribution of ``p`` covariates."""
    columns = tuple(_column(rng, KINDS[int(rng.integers(len(KINDS)))]) for _ in range(p))
    dependence: Dependence = rng.choice(get_args(Dependence)) if p > 1 else "independent"
    return Covariates(columns=columns, dependence=dependence, ranks=_dependent(rng, p, dependence))


def _dependent(rng: Generator, p: int, kind: Dependence) -> Callable[[Generator, int], Float]:
    loadings = rng.normal(size=(p, min(p, 3))) * rng.uniform(0.3, 1.5)
    scale = np.sqrt((loadings**2).sum(axis=1) + 1.0)
    bends, centres = rng.normal(0.0, 1.5, size=p), rng.normal(0.0, 1.6, size=(4, p))
    weights = rng.dirichlet(np.full(4, 2.0))

    def normal(draw: Generator, n: int) -> Float:
        return np.asarray((draw.normal(size=(n, loadings.shape[1])) @ loadings.T + draw.normal(size=(n, p))) / scale)

    def heavy(draw: Generator, n: int) -> Float:
        # One scale for a whole row: columns are extreme together, whatever their correlation.
        return np.asarray(stdtr(3, normal(draw, n) * np.sqrt(3.0 / draw.chisquare(3, size=(n, 1)))))

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


Made = tuple[Range | Levels, Callable[[Float], NDArray[np.generic]], Callable[[Float], Float]]


def _column(rng: Generator, kind: Kind) -> Column:
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
    spec, value, score = makers[kind](rng)
    return Column(kind=kind, spec=spec, value=value, score=score)


def _range(rng: Generator, low: float, high: float, value: Callable[[Float], Float], by_rank: bool = False) -> Made:
    """Declared as wide as the values, or up to three times as wide at the upper end."""
    beyond = (high - low) * float(rng.choice([0.0, 0.0, 0.3, 2.0]))

    def score(u: Float) -> Float:
        return 2.0 * u - 1.0 if by_rank else 2.0 * (value(u) - low) / (high - low) - 1.0

    return Range(low, high + beyond), value, score


def _skewed(rng: Generator) -> Made:
    sd = float(rng.uniform(0.5, 1.5))
    most = float(np.exp(sd * ndtri(0.9995)))

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
    names = np.array([f"level {k}" for k in range(count)])
    # Levels have no order: what they do is drawn for each.
    effects = rng.permutation(np.linspace(-1.0, 1.0, count))

    def code(u: Float) -> NDArray[np.int64]:
        return np.searchsorted(edges, u, side="right")

    return Levels(tuple(names.tolist())), lambda u: names[code(u)], lambda u: effects[code(u)]
