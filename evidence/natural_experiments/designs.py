"""Generated studies whose effect is known: encouragement designs, and two periods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds

COVARIATES = {"age": (0.0, 1.0), "need": (0.0, 1.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One generated study: records, further columns, and the true effect in the population that it is from."""

    Y: Float
    T: Any
    X: Float
    further: dict[str, Any]
    bounds: Bounds
    effect: float
    propensity: float | None = None


def _bounds(low: float, high: float) -> Bounds:
    return Bounds(outcome=(low, high), covariates=COVARIATES, propensity=(0.1, 0.9))


def _instrument(rng: Any, n: int, *, compliance: float, random: bool, binary: bool = False) -> Study:
    """Never-takers, compliers and always-takers, who differ in their outcomes; effects grow with age."""
    x = rng.random((n, 2))
    z = rng.random(n) < (0.5 if random else 0.25 + 0.5 * x[:, 0])
    keen = rng.random(n)
    # The share of compliers does not depend on covariates, so that their average effect is that at the average age.
    takes = (keen > 0.85) | ((keen > 0.85 - compliance) & z)
    if binary:
        effect = 0.2
        y = 1.0 * (rng.random(n) < 0.1 + 0.3 * x[:, 0] + 0.3 * keen + effect * takes)
    else:
        effect = 1.0
        y = 2.0 * keen + np.sin(3.0 * x[:, 0]) + (0.5 + x[:, 0]) * takes + rng.normal(0.0, 0.5, n)
    bounds = _bounds(0.0, 1.0) if binary else _bounds(-2.0, 6.0)
    further = {"Z": z.astype(int)}
    known = 0.5 if random else None
    return Study(Y=y, T=takes.astype(int), X=x, further=further, bounds=bounds, effect=effect, propensity=known)


def _two_periods(rng: Any, n: int) -> Study:
    """Those with a high outcome and of high age are treated more often; outcomes rise with age; effects with need."""
    x = rng.random((n, 2))
    level = rng.normal(0.0, 1.0, n)
    treated = rng.random(n) < 1.0 / (1.0 + np.exp(-(0.7 * level + 2.0 * x[:, 0] - 1.0)))
    before = 5.0 + level + rng.normal(0.0, 0.5, n)
    after = 5.5 + level + 1.5 * x[:, 0] ** 2 + (0.3 + 0.4 * x[:, 1]) * treated + rng.normal(0.0, 0.5, n)
    further = {"before": before}
    return Study(Y=after, T=treated.astype(int), X=x, further=further, bounds=_bounds(0.0, 12.0), effect=0.5)


DESIGNS: dict[str, tuple[str, int, Callable[[Any, int], Study]]] = {
    "offer": ("LATE", 4_000, lambda rng, n: _instrument(rng, n, compliance=0.5, random=True)),
    "offer, rare takers": ("LATE", 4_000, lambda rng, n: _instrument(rng, n, compliance=0.15, random=True)),
    "offer, hardly any takers": ("LATE", 4_000, lambda rng, n: _instrument(rng, n, compliance=0.02, random=True)),
    "offer, binary outcome": (
        "LATE",
        4_000,
        lambda rng, n: _instrument(rng, n, compliance=0.5, random=True, binary=True),
    ),
    "observed instrument": ("LATE", 6_000, lambda rng, n: _instrument(rng, n, compliance=0.5, random=False)),
    "two periods": ("DifferenceInDifferences", 4_000, _two_periods),
    "two periods, many": ("DifferenceInDifferences", 20_000, _two_periods),
}
"""Estimator, number of records and generator by name."""
