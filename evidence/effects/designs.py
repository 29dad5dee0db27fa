"""Designs on which effect functions are judged: written down before the estimator was run on them.

All but *rare*, which was added with the last change to the estimator. That change was also tried on a few studies of
*overlap*, *binary*, *heavy*, *skewed* and *step*, with other seeds, and *heavy* decided between two variants of it.

Noise has standard deviation one where nothing else is stated. Covariates are clipped to their declared bounds before
treatment and outcome are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from discreet import Bounds
from discreet.data.columns import Range
from discreet.datasets import dp_cate, meta_learners
from discreet.datasets.paper_designs import SETUPS
from discreet.datasets.study import Study


class Sample(NamedTuple):
    """Bounds, covariates, treatment, outcome and each record's true effect."""

    bounds: Bounds
    x: np.ndarray
    t: np.ndarray
    y: np.ndarray
    tau: np.ndarray

    @classmethod
    def of(cls, study: Study) -> Sample:
        """From a study of a published generator."""
        if study.effects is None:
            raise ValueError(f"{study.name} has no known effects to compare with.")
        return cls(study.bounds, study.X, study.T, study.Y, study.effects)

    def with_wide_bounds(self, times: float = 10.0) -> Sample:
        """The same records, ranges of covariates declared so many times too wide about the same middle."""
        ranges: list = []
        for column in self.bounds.columns:
            if isinstance(column, Range):
                middle, half = (column.low + column.high) / 2.0, times * (column.high - column.low) / 2.0
                ranges.append((middle - half, middle + half))
            else:
                ranges.append(list(column.levels))
        wide = Bounds(outcome=self.bounds.outcome, covariates=ranges, propensity=self.bounds.propensity)
        return self._replace(bounds=wide)


def _expit(z):
    return 1.0 / (1.0 + np.exp(-z))


def _normal(n, p, rng):
    return np.clip(rng.standard_normal((n, p)), -3.0, 3.0)


def _drawn(rng, bounds, x, e, base, tau, noise=None):
    """Treatment and outcome; without noise the outcome is a coin with the mean as its probability."""
    t = (rng.random(len(x)) < e) * 1.0
    mean = base + t * tau
    y = (rng.random(len(x)) < mean) * 1.0 if noise is None else np.clip(mean + noise, *bounds.outcome)
    return Sample(bounds, x, t, y, tau)


def interaction(n, rng):
    """The effect is a product of two covariates, 2 x1 x2."""
    x = _normal(n, 5, rng)
    bounds = Bounds(outcome=(-20, 20), covariates=[(-3.0, 3.0)] * 5, propensity=(0.05, 0.95))
    e, base = _expit(0.5 * x[:, 0] - 0.3 * x[:, 2]), x[:, 0] + 0.5 * x[:, 3] ** 2
    return _drawn(rng, bounds, x, e, base, 2.0 * x[:, 0] * x[:, 1], rng.standard_normal(n))


def skewed(n, rng):
    """Log-normal covariates with correlated logarithms."""
    z = np.sqrt(0.4) * rng.standard_normal((n, 1)) + np.sqrt(0.6) * rng.standard_normal((n, 5))
    x = np.clip(np.exp(0.5 * z), 0.0, 6.0)
    bounds = Bounds(outcome=(-10, 15), covariates=[(0.0, 6.0)] * 5, propensity=(0.05, 0.95))
    e = _expit(0.6 * np.log(x[:, 0]) - 0.4 * np.log(x[:, 3]))
    tau = 0.5 + 0.5 * np.log(x[:, 0]) + 0.4 * (x[:, 1] - 1.0)
    return _drawn(rng, bounds, x, e, x[:, 0] + 0.5 * x[:, 2], tau, rng.standard_normal(n))


def mixed(n, rng):
    """A log-normal, a binary, a five-level and an even covariate together."""
    income = np.clip(np.exp(0.7 * rng.standard_normal(n)), 0.0, 10.0)
    sex = (rng.random(n) < 0.45) * 1.0
    region = rng.choice(5, n, p=[0.35, 0.25, 0.2, 0.12, 0.08]) * 1.0
    age = rng.uniform(18.0, 90.0, n)
    x = np.column_stack([income, sex, region, age])
    ranges: list[Any] = [(0.0, 10.0), [0.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0], (18.0, 90.0)]
    bounds = Bounds(outcome=(-10, 15), covariates=ranges, propensity=(0.05, 0.95))
    older = (age - 54.0) / 36.0
    e = _expit(0.4 * np.log(income) + 0.5 * sex - 0.5 * older - 0.2 * (region == 1))
    base = income**0.5 + np.array([0.0, 0.5, -0.5, 1.0, 0.0])[region.astype(int)] + older
    tau = 0.5 + 0.6 * sex + np.array([-0.4, 0.0, 0.2, 0.4, 0.8])[region.astype(int)] + 0.3 * np.log(income)
    return _drawn(rng, bounds, x, e, base, tau, rng.standard_normal(n))


def overlap(n, rng):
    """Probabilities of treatment from 0.05 to 0.95."""
    x = _normal(n, 5, rng)
    bounds = Bounds(outcome=(-12, 12), covariates=[(-3.0, 3.0)] * 5, propensity=(0.05, 0.95))
    e = np.clip(_expit(1.1 * x[:, 0] - 0.9 * x[:, 2]), 0.05, 0.95)
    tau = 1.0 - 0.6 * x[:, 0] + 0.4 * x[:, 1]
    return _drawn(rng, bounds, x, e, x[:, 0] + x[:, 1] - x[:, 2], tau, rng.standard_normal(n))


def binary(n, rng):
    """An outcome of zeros and ones; the effect acts on the logit."""
    x = rng.uniform(-1.0, 1.0, (n, 4))
    bounds = Bounds(outcome=(0, 1), covariates=[(-1.0, 1.0)] * 4, propensity=(0.1, 0.9))
    level = -0.4 + 0.8 * x[:, 0] - 0.5 * x[:, 2]
    e, base = _expit(0.7 * x[:, 0] - 0.4 * x[:, 3]), _expit(level)
    return _drawn(rng, bounds, x, e, base, _expit(level + 0.5 + 0.6 * x[:, 1]) - base)


def rare(n, rng):
    """An event that happens to one in sixteen, and a treatment that one in four gets."""
    x = rng.uniform(-1.0, 1.0, (n, 4))
    bounds = Bounds(outcome=(0, 1), covariates=[(-1.0, 1.0)] * 4, propensity=(0.05, 0.95))
    level = -2.9 + 0.6 * x[:, 0] - 0.4 * x[:, 2]
    e, base = _expit(-1.1 + 0.7 * x[:, 0] - 0.4 * x[:, 3]), _expit(level)
    return _drawn(rng, bounds, x, e, base, _expit(level + 0.5 + 0.6 * x[:, 1]) - base)


def heavy(n, rng):
    """Noise of Student's t with two degrees of freedom."""
    x = _normal(n, 5, rng)
    bounds = Bounds(outcome=(-30, 30), covariates=[(-3.0, 3.0)] * 5, propensity=(0.05, 0.95))
    e, tau = _expit(0.5 * x[:, 0] + 0.3 * x[:, 3]), 0.5 - 0.5 * x[:, 2]
    return _drawn(rng, bounds, x, e, x[:, 0] + 0.5 * x[:, 1], tau, rng.standard_t(2, n))


def hundred(n, rng):
    """A hundred covariates, three of which modify the effect."""
    x = _normal(n, 100, rng)
    bounds = Bounds(outcome=(-15, 15), covariates=[(-3.0, 3.0)] * 100, propensity=(0.05, 0.95))
    e, base = _expit(0.5 * x[:, 0] + 0.5 * x[:, 5]), x[:, 0] + x[:, 3] - 0.5 * x[:, 4]
    tau = 1.0 + x[:, 0] - x[:, 1] + 0.7 * x[:, 2]
    return _drawn(rng, bounds, x, e, base, tau, rng.standard_normal(n))


def step(n, rng):
    """A jump by one, a little above the median of a covariate."""
    x = _normal(n, 5, rng)
    bounds = Bounds(outcome=(-10, 10), covariates=[(-3.0, 3.0)] * 5, propensity=(0.05, 0.95))
    e, base = _expit(0.4 * x[:, 0] + 0.4 * x[:, 1]), x[:, 0] - 0.5 * x[:, 2]
    return _drawn(rng, bounds, x, e, base, (x[:, 1] > 0.25) * 1.0, rng.standard_normal(n))


def null(n, rng):
    """No effect for anybody."""
    x = _normal(n, 5, rng)
    bounds = Bounds(outcome=(-10, 10), covariates=[(-3.0, 3.0)] * 5, propensity=(0.05, 0.95))
    e, base = _expit(0.5 * x[:, 0] - 0.3 * x[:, 1]), x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
    return _drawn(rng, bounds, x, e, base, np.zeros(n), rng.standard_normal(n))


WRITTEN: dict[str, Callable] = {
    made.__name__: made for made in (interaction, skewed, mixed, overlap, binary, rare, heavy, hundred, step, null)
}
PUBLISHED = ("dataset-1", "dataset-2", *(f"setup-{name}" for name in SETUPS))
DESIGNS = (*PUBLISHED, *WRITTEN)


def draw(design: str, n: int, seed: int) -> Sample:
    """A study of a design; ``design`` may end in ", wide bounds"."""
    name, _, wide = design.partition(", ")
    if name.startswith("dataset-"):
        sample = Sample.of(dp_cate(int(name[-1]), n, seed))
    elif name.startswith("setup-"):
        sample = Sample.of(meta_learners(name[-1], n, seed))
    else:
        sample = WRITTEN[name](n, np.random.default_rng(seed))
    return sample.with_wide_bounds() if wide else sample
