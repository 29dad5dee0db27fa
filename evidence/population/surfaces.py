"""Random functions of covariates, from a straight line to trees and products of three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Float = NDArray[np.float64]
Term = Callable[[Float], Float]
Shape = Literal["linear", "sparse", "smooth", "wave", "bumps", "steps", "pairs", "triples", "trees"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
# Surfaces end so many standard deviations from their mean: a handful of rows should not be all that there is to find.
_FAR = 4.0


@dataclass(frozen=True, slots=True)
class Surface:
    """A function of scores: mean zero and variance one over the population it was made for, before its ends are cut."""

    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    centre: float
    scale: float

    def __call__(self, v: Float) -> Float:
        """The function at each row of scores."""
        return np.clip((_sum(self.terms, self.weights, v) - self.centre) / self.scale, -_FAR, _FAR)


def random_surface(rng: Generator, shape: Shape, reference: Float) -> Surface:
    """A surface of a shape; constant where there are no covariates."""
    p = reference.shape[1]
    terms = _TERMS[shape](rng, p) if p else []
    weights = tuple(float(weight) for weight in rng.normal(size=len(terms)) * _sizes(rng, len(terms)))
    values = _sum(tuple(terms), weights, reference)
    scale = float(values.std())
    return Surface(tuple(terms), weights, float(values.mean()), scale if scale > 1e-6 else 1.0)


def _sum(terms: tuple[Term, ...], weights: tuple[float, ...], v: Float) -> Float:
    found = np.zeros(len(v))
    for term, weight in zip(terms, weights, strict=True):
        found += weight * term(v)
    return found


def _sizes(rng: Generator, count: int) -> Float:
    """Alike, falling, or one far above the others."""
    rule = rng.integers(3)
    falling = 1.0 / np.arange(1.0, count + 1.0)
    return [np.ones(count), falling, np.where(np.arange(count) == 0, 5.0, 0.5)][rule] if count else np.empty(0)


def _linear(rng: Generator, p: int) -> list[Term]:
    return [lambda v, j=j: v[:, j] for j in range(p)]  # type: ignore[misc]


def _sparse(rng: Generator, p: int) -> list[Term]:
    return [lambda v, j=j: v[:, j] for j in rng.permutation(p)[: max(1, p // 10)]]  # type: ignore[misc]


def _smooth(rng: Generator, p: int) -> list[Term]:
    def term(j: int, kind: int, a: float) -> Term:
        curves: tuple[Term, ...] = (
            lambda v: v[:, j],
            lambda v: v[:, j] ** 2,
            lambda v: np.sin(2.0 * a * v[:, j]),
            lambda v: np.abs(v[:, j] - 0.5 * a),
        )
        return curves[kind]

    return [term(int(j), int(rng.integers(4)), float(rng.uniform(0.5, 1.5))) for j in _some(rng, p, 8)]


def _wave(rng: Generator, p: int) -> list[Term]:
    def term(j: int, a: float, b: float) -> Term:
        return lambda v: np.sin(a * v[:, j] + b)

    return [term(int(j), float(rng.uniform(3.0, 9.0)), float(rng.uniform(0.0, 6.0))) for j in _some(rng, p, 3)]


def _bumps(rng: Generator, p: int) -> list[Term]:
    def term(columns: NDArray[np.int64], centre: Float, width: float) -> Term:
        return lambda v: np.exp(-((v[:, columns] - centre) ** 2).sum(axis=1) / (2.0 * width**2))

    made = []
    for _ in range(int(rng.integers(1, 4))):
        columns = rng.permutation(p)[: min(p, 2)]
        made.append(term(columns, rng.uniform(-0.7, 0.7, size=len(columns)), float(rng.uniform(0.2, 0.5))))
    return made


def _steps(rng: Generator, p: int) -> list[Term]:
    def term(j: int, at: float) -> Term:
        return lambda v: (v[:, j] > at).astype(np.float64)

    return [term(int(j), float(rng.uniform(-0.7, 0.7))) for j in _some(rng, p, 4)]


def _products(order: int) -> Callable[[Generator, int], list[Term]]:
    def make(rng: Generator, p: int) -> list[Term]:
        def term(columns: NDArray[np.int64]) -> Term:
            return lambda v: np.prod(v[:, columns], axis=1) * 2.0 ** (len(columns) - 1)

        own = [lambda v, j=j: 0.5 * v[:, j] for j in _some(rng, p, 3)]
        return [*own, *(term(rng.permutation(p)[: min(p, order)]) for _ in range(int(rng.integers(1, 6))))]

    return make


def _trees(rng: Generator, p: int) -> list[Term]:
    def tree(depth: int) -> Term:
        columns, cuts = rng.integers(p, size=depth), rng.uniform(-0.7, 0.7, size=depth)
        leaves = rng.normal(size=2**depth)
        powers = 2 ** np.arange(depth)
        return lambda v: leaves[(v[:, columns] > cuts) @ powers]

    return [tree(int(rng.integers(2, 5))) for _ in range(int(rng.integers(1, 13)))]


def _some(rng: Generator, p: int, most: int) -> NDArray[np.int64]:
    return np.asarray(rng.permutation(p)[: int(rng.integers(1, min(p, most) + 1))])


_TERMS: dict[Shape, Callable[[Generator, int], list[Term]]] = {
    "linear": _linear,
    "sparse": _sparse,
    "smooth": _smooth,
    "wave": _wave,
    "bumps": _bumps,
    "steps": _steps,
    "pairs": _products(2),
    "triples": _products(3),
    "trees": _trees,
}
