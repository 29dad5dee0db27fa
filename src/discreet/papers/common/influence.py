"""Gross-error sensitivities: the supremum of an influence function over all records that the bounds allow.

Two papers scale their noise by it. A search can only miss a supremum, so that what it finds is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, TypeAlias

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Levels
from discreet.papers.common.arrays import in_own_unit
from discreet.papers.common.slopes import Slope

Influence: TypeAlias = Callable[[Float, Float, Float], Float]
"""From outcomes in their own unit, arms and encoded covariates to the influence of each record."""

# SciPy's own step for the gradients that it takes by differences; here all coordinates are evaluated in one call.
_STEP = 1e-8
# Relative step for the few numbers that models predict, on both sides.
_INNER = 1e-6
_AT_ONCE = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """How an influence changes: through the predictions of models whose slopes are known.

    Parameters
    ----------
    influence
        From outcomes in their own unit, arms, and one array for each model's predictions.
    predictions
        From one record's encoded covariates to what each model predicts, with derivatives by those that are ranges.
    """

    influence: Callable[..., Float]
    predictions: Callable[[Float], Sequence[Slope]]

    def __call__(self, y: float, arm: float, x: Float) -> tuple[float, float, Float]:
        """The influence's size at one record, and its derivatives by the outcome and by the ranges."""
        models = self.predictions(x)
        centre = np.array([y, *(model.value for model in models)])
        steps = _INNER * np.maximum(np.abs(centre), 1e-3)
        points = np.vstack([centre, centre + np.diag(steps), centre - np.diag(steps)])
        found = self.influence(points[:, 0], np.full(len(points), arm), *points[:, 1:].T)
        up, down = np.split(found[1:], 2)
        by = np.sign(found[0]) * (up - down) / (2.0 * steps)
        through = sum((slope * model.by for slope, model in zip(by[1:], models, strict=True)), np.zeros(1))
        return float(abs(found[0])), float(by[0]), through


def noise_factor(n: int, epsilon: float, delta: float) -> float:
    """What multiplies a gross-error sensitivity to give the standard deviation of the noise.

    Theorems 4.3 and 4.5 of the PrivATE paper, and c(epsilon, delta, n) in Theorem 1 of the DP-CATE paper.
    """
    return 5.0 * sqrt(2.0 * log(n) * log(2.0 / delta)) / (epsilon * n)


def searched(influence: Influence, bounds: Bounds, *, starts: int, rng: Any, climb: Climb | None = None) -> float:
    """The supremum of |influence| as the papers search for it.

    L-BFGS-B runs from random points, so many for each arm, over ranges and outcome; levels stay where a point has them.
    Gradients are taken by differences, unless ``climb`` knows them.
    """
    from scipy.optimize import minimize
    from sklearn import config_context

    levels = level_counts(bounds)
    moves = np.array([not count for count in levels])
    box = [(-1.0, 1.0)] * (int(moves.sum()) + 1)
    best = 0.0
    for arm in (0.0, 1.0):
        for _ in range(starts):
            x = np.array([rng.randint(count) if count else rng.uniform(-1.0, 1.0) for count in levels])
            start = np.append(x[moves], rng.uniform(-1.0, 1.0))

            def objective(z: Float, arm: float = arm, x: Float = x) -> tuple[float, Float]:
                if climb is None:
                    return _by_differences(influence, z, arm, x, moves, bounds)
                x[moves] = z[:-1]
                size, by_outcome, by_ranges = climb(float(in_own_unit(z[-1], bounds)), arm, x)
                return -size, -np.append(by_ranges, by_outcome * bounds.outcome_width / 2.0)

            # Thousands of predictions for a few points each: scikit-learn would spend most of the time on checks.
            with config_context(assume_finite=True, skip_parameter_validation=True):
                found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=box)
            best = max(best, -float(found.fun))
    return best


def _by_differences(
    influence: Influence, z: Float, arm: float, x: Float, moves: Any, bounds: Bounds
) -> tuple[float, Float]:
    """Less the size of an influence, and its gradient, all neighbours of a point being predicted in one call."""
    points, steps = _with_neighbours(z)
    rows = np.tile(x, (len(points), 1))
    rows[:, moves] = points[:, :-1]
    y = in_own_unit(points[:, -1], bounds)
    size = np.abs(influence(y, np.full(len(points), arm), rows))
    return -float(size[0]), -(size[1:] - size[0]) / steps


def dense(influence: Influence, bounds: Bounds, *, points: int, rng: Any) -> float:
    """The largest |influence| at so many random points of the domain, in both arms.

    An influence function that is linear in the outcome is largest at an end of its range, so two ends suffice.
    """
    best = 0.0
    for start in range(0, points, _AT_ONCE):
        x = random_points(bounds, min(_AT_ONCE, points - start), rng)
        for arm in (0.0, 1.0):
            for end in bounds.outcome:
                size = influence(np.full(len(x), end), np.full(len(x), arm), x)
                best = max(best, float(np.abs(size).max()))
    return best


def random_points(bounds: Bounds, count: int, rng: Any) -> Float:
    """Covariates drawn uniformly from the declared domain, encoded as `Bounds` does."""
    columns = [
        rng.randint(levels, size=count).astype(np.float64) if levels else rng.uniform(-1.0, 1.0, count)
        for levels in level_counts(bounds)
    ]
    return np.column_stack(columns)


def level_counts(bounds: Bounds) -> list[int]:
    """How many levels each covariate has; 0 for a range."""
    return [len(spec.levels) if isinstance(spec, Levels) else 0 for spec in bounds.columns]


def _with_neighbours(z: Float) -> tuple[Float, Float]:
    """A point, then one step from it along each coordinate, always inside the box; and the steps."""
    steps = np.where(z + _STEP > 1.0, -_STEP, _STEP)
    return np.vstack([z, z + np.diag(steps)]), steps
