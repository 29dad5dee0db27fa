"""Two families of studies with simple truths: trials of known arms, and confounding of shapes that are hard to fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from discreet.data.bounds import Bounds
from discreet.datasets import Study

Float = NDArray[np.float64]
EPSILON, DELTA = 1.0, 1e-6
# Records of a random study by which effect functions are judged.
JUDGED = 4_000

# Trials. Events: the share in controls; treatment adds a fifth. Spend: one in ten buys, and a buyer spends $30 in the
# median, up to the end of the range.
OUTCOMES = {"normal": None, "events .5 %": 0.005, "events 2 %": 0.02, "events 6 %": 0.06, "events 15 %": 0.15}
OUTCOMES |= {"events 50 %": 0.5, "spend": 0.1}
SHARES = (0.05, 0.1, 0.2, 0.5, 0.8, 0.95)
SIZES = (500, 1_000, 3_000, 10_000, 100_000)
SMALL_SIZES = (20, 50, 100, 200)
_LIFT, _MEDIAN, _LOG_SD, _MOST = 1.2, 30.0, 1.0, 500.0
_NORMAL_EFFECT = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Records of a trial; ``unadjusted`` is the standard error that the difference of means has by theory."""

    study: Study
    unadjusted: float


def trial(outcome: str, share: float, n: int, seed: int) -> Trial:
    """A trial with one covariate or three, in turn, of which the first matters."""
    rng = np.random.default_rng([seed, n, round(1_000 * share), list(OUTCOMES).index(outcome)])
    x = rng.uniform(-1.0, 1.0, (n, 1 if seed % 2 else 3))
    t = (rng.random(n) < share).astype(np.float64)
    t[:2] = (0.0, 1.0)
    rate = OUTCOMES[outcome]
    variances: tuple[float, ...]
    if rate is None:
        y = np.clip(0.5 * x[:, 0] + _NORMAL_EFFECT * t + rng.normal(size=n), -6.0, 6.0)
        ate, variances, ends = _NORMAL_EFFECT, (1.0 + 0.25 / 3.0,) * 2, (-6.0, 6.0)
    else:
        happens = rng.random(n) < rate * (1.0 + 0.5 * x[:, 0]) * np.where(t > 0, _LIFT, 1.0)
        amount, mean, square, most = np.ones(n), 1.0, 1.0, 1.0
        if outcome == "spend":
            amount = np.minimum(_MEDIAN * np.exp(_LOG_SD * rng.normal(size=n)), _MOST)
            (mean, square), most = _purchase(), _MOST
        y, ends = np.where(happens, amount, 0.0), (0.0, most)
        ate = rate * (_LIFT - 1.0) * mean
        variances = tuple(p * square - (p * mean) ** 2 for p in (rate, _LIFT * rate))
    bounds = Bounds(outcome=ends, covariates=[(-1.0, 1.0)] * x.shape[1], propensity=(0.05, 0.95))
    study = Study(name=f"trial, {outcome}", X=x, T=t, Y=y, bounds=bounds, ate=ate, propensity=np.full(n, share))
    error = np.sqrt(variances[1] / (n * share) + variances[0] / (n * (1.0 - share)))
    return Trial(study=study, unadjusted=float(error))


def _purchase() -> tuple[float, float]:
    """Mean and mean square of a log-normal amount that ends at the range's end."""
    end = (np.log(_MOST / _MEDIAN)) / _LOG_SD
    moments = []
    for power in (1, 2):
        inside = np.exp((power * _LOG_SD) ** 2 / 2.0) * ndtr(end - power * _LOG_SD)
        moments.append(_MEDIAN**power * inside + _MOST**power * ndtr(-end))
    return float(moments[0]), float(moments[1])


# Confounding by one function g of five covariates: logit of the propensity 1.2 g, outcome 0.5 T + 1.5 g + noise.
SHAPE_SIZES = (3_000, 30_000, 300_000, 3_000_000)
_EFFECT, _OUTCOME_PULL, _TREATMENT_PULL = 0.5, 1.5, 1.2
_OVERLAP, _LARGEST = 0.05, 20.0
LOG_NORMAL = "log-normal confounder"
SHAPES: dict[str, Callable[[Float], Float]] = {
    "wave": lambda x: np.sqrt(2.0) * np.sin(6.0 * x[:, 0]),
    "bump": lambda x: 5.0 * (x[:, 0] ** 2 * x[:, 1] ** 2 - 1.0 / 9.0),
    "two thresholds": lambda x: np.where((x[:, 0] > -0.4) & (x[:, 0] < 0.3), 1.5, -0.8),
    "one threshold": lambda x: np.where(x[:, 0] > 0.2, 1.2, -0.8),
    LOG_NORMAL: lambda x: (x[:, 0] - 1.6) / 2.0,
}


def shaped(shape: str, n: int, seed: int) -> Study:
    """An observational study of a shape; its effect is the same for everybody."""
    rng = np.random.default_rng([seed, n, list(SHAPES).index(shape)])
    x = _covariates(rng, shape, n)
    g = SHAPES[shape](x)
    e = _propensity(g)
    t = (rng.random(n) < e).astype(np.float64)
    y = np.clip(_EFFECT * t + _OUTCOME_PULL * g + rng.normal(size=n), -_LARGEST, _LARGEST)
    first = (0.0, _LARGEST) if shape == LOG_NORMAL else (-1.0, 1.0)
    bounds = Bounds(
        outcome=(-_LARGEST, _LARGEST),
        covariates=[first, *([(-1.0, 1.0)] * 4)],
        propensity=(_OVERLAP, 1.0 - _OVERLAP),
    )
    return Study(name=shape, X=x, T=t, Y=y, bounds=bounds, ate=_EFFECT, propensity=e)


@cache
def score_sd(shape: str) -> float:
    """Standard deviation of the efficient score: over the root of n it is the efficiency bound."""
    e = _propensity(SHAPES[shape](_covariates(np.random.default_rng(1), shape, 400_000)))
    return float(np.sqrt(np.mean(1.0 / e + 1.0 / (1.0 - e))))


def _covariates(rng: Generator, shape: str, n: int) -> Float:
    x = rng.uniform(-1.0, 1.0, (n, 5))
    if shape == LOG_NORMAL:
        x[:, 0] = np.minimum(np.exp(rng.normal(size=n)), _LARGEST)
    return x


def _propensity(g: Float) -> Float:
    return np.clip(expit(_TREATMENT_PULL * g), _OVERLAP, 1.0 - _OVERLAP)
