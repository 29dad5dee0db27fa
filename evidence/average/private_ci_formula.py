"""PrivATE's interval as its authors publish it (Schröder, Hartenstein and Feuerriegel: PrivATE, 2025).

A yardstick for widths, not a private mechanism: its noise and its width use a supremum that depends on the records.

Deviations. The nuisances are linear and logistic (the paper takes kernel ridge or a neural network). The supremum over
the bounded domain is computed (`largest_and_smallest_score`) where the paper searches for it with L-BFGS-B. The
propensity is clipped to the public overlap, as that of the paper's data is. The domain is what the bounds declare or,
with `observed_domain`, the box that the records fill: narrower, and kinder to PrivATE, but read off the data.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri

from discreet.data.bounds import Bounds, Range
from discreet.datasets import Study
from discreet.datasets.study import Float
from evidence.average.nonprivate import LinearNuisances, linear_nuisances, linear_scores

# Table 1 of the paper: "to retain as much of the prediction power as possible".
_ATE_SHARE = 0.9
# Points on the scale of the propensity's linear index at which the supremum's linear programmes are solved.
_GRID = 201


class Interval(NamedTuple):
    """A point and half of the interval's width, for each epsilon (rows) and alpha (columns)."""

    estimate: Float
    half_width: Float


def private_ci(
    study: Study, *, epsilon: ArrayLike, delta: float, alpha: ArrayLike, rng: np.random.Generator
) -> Interval:
    """PrivATE for every epsilon and alpha at once; each epsilon has noise of its own."""
    epsilon, alpha = np.atleast_1d(epsilon)[:, None], np.atleast_1d(alpha)[None, :]
    nuisances, n = linear_nuisances(study), study.n
    scores = linear_scores(study, nuisances)
    tau = scores.mean()  # (3)
    sigma2 = scores.var()  # (8)
    extremes = np.array(largest_and_smallest_score(study, nuisances)) - tau  # (6)
    gamma_tau = np.abs(extremes).max()  # (5)
    # (9): the squared deviation is 0 somewhere between the two extremes, so the smallest value is -sigma2.
    gamma_sigma = max(gamma_tau**2 - sigma2, sigma2)

    def noise_sd(gamma: float, share: float) -> Float:  # (7), (11) and (13)
        return gamma * 5 * np.sqrt(2 * np.log(n) * np.log(2 / (share * delta))) / (share * epsilon * n)

    r = noise_sd(gamma_tau, _ATE_SHARE)
    estimate = tau + r * rng.standard_normal(epsilon.shape)  # (7)
    noisy_sigma2 = sigma2 + noise_sd(gamma_sigma, 1 - _ATE_SHARE) * rng.standard_normal(epsilon.shape)
    v_dp = np.maximum(noisy_sigma2, 0) + n * r**2  # (11); (16)
    return Interval(estimate[:, 0], ndtri(1 - alpha / 2) * np.sqrt(v_dp / n))  # (15)


def observed_domain(study: Study) -> Study:
    """The same study with its bounds shrunk to the records' own extremes."""
    X = np.asarray(study.X, dtype=np.float64)
    columns = [
        Range(X[:, j].min(), X[:, j].max()) if isinstance(spec, Range) else spec
        for j, spec in enumerate(study.bounds.columns)
    ]
    outcome = (float(study.Y.min()), float(study.Y.max()))
    return replace(study, bounds=Bounds(outcome=outcome, covariates=columns, propensity=study.bounds.propensity))


def largest_and_smallest_score(study: Study, nuisances: LinearNuisances) -> tuple[float, float]:
    """Extremes of the AIPW score over all records that the bounds allow."""
    scores = [
        sign * _largest(study, nuisances, treated=treated, y=y, sign=sign)
        for treated, y, sign in product((False, True), study.bounds.outcome, (1.0, -1.0))
    ]
    return max(scores), min(scores)


def _largest(study: Study, nuisances: LinearNuisances, *, treated: bool, y: float, sign: float) -> float:
    """Largest ``sign`` times the score over the covariates, for one arm and one end of the outcome's range.

    At a fixed propensity the score is linear in the covariates, so its maximum over the box is a fractional knapsack
    with one equation, which the greedy order solves. Levels are enumerated.
    """
    columns = study.bounds.columns
    is_range = np.array([False, *_is_range(columns)])
    theta, mu0, mu1 = nuisances.propensity, nuisances.control, nuisances.treated
    best = -np.inf
    for row in _level_rows(columns):
        # u in [0, 1] runs along each range, in the direction in which the index theta'z grows.
        direction = np.where(theta[is_range] >= 0, 1.0, -1.0)
        corner = row.copy()
        corner[is_range] = -direction
        weight = 2 * np.abs(theta[is_range])
        # Where clipping sets in the score has a kink, which may be its maximum.
        kinks = np.clip(logit(study.bounds.propensity) - corner @ theta, 0, weight.sum())
        filled = np.concatenate([np.linspace(0, weight.sum(), _GRID), kinks])
        pi = np.clip(expit(corner @ theta + filled), *study.bounds.propensity)[:, None]
        if treated:  # mu1 - mu0 + (y - mu1) / pi
            slope, constant = mu1 - mu0 - mu1 / pi, y / pi[:, 0]
        else:  # mu1 - mu0 - (y - mu0) / (1 - pi)
            slope, constant = mu1 - mu0 + mu0 / (1 - pi), -y / (1 - pi[:, 0])
        base = sign * (constant + slope @ corner)
        gain = sign * 2 * slope[:, is_range] * direction
        best = max(best, float(np.max(base + _knapsack(gain, weight, filled))))
    return best


def _knapsack(gain: Float, weight: Float, filled: Float) -> Float:
    """Largest ``gain @ u`` with ``weight @ u = filled`` and u in [0, 1], for each row of ``gain``."""
    free = weight < 1e-12
    total = np.maximum(gain[:, free], 0).sum(axis=1)
    gain, weight = gain[:, ~free], weight[~free]
    order = np.argsort(-gain / weight, axis=1)
    gain, size = np.take_along_axis(gain, order, axis=1), weight[order]
    u = np.clip((filled[:, None] - (np.cumsum(size, axis=1) - size)) / size, 0, 1)
    return np.asarray(total + (gain * u).sum(axis=1))


def _is_range(columns: tuple) -> list[bool]:
    # One entry per column of the design matrix, the intercept left out.
    return [
        isinstance(spec, Range)
        for spec in columns
        for _ in range(1 if isinstance(spec, Range) else len(spec.levels) - 1)
    ]


def _level_rows(columns: tuple) -> list[Float]:
    """Rows of the design matrix, ranges at 0, for each combination of levels."""
    codings = [[np.zeros(1)] if isinstance(spec, Range) else list(np.eye(len(spec.levels))[:, 1:]) for spec in columns]
    return [np.concatenate([np.ones(1), *parts]) for parts in product(*codings)]
