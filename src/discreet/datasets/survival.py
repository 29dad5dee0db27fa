"""Studies of a time to event, with censoring and a known truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.study import Float

# By hand: about half have the event within a year where nobody is treated; follow-up ends between one and two years.
_RATE, _SHAPE, _YEAR, _LONGEST = 0.7, 1.2, 365.0, 730.0
_SLOPES = np.array([0.8, 0.5, 0.0])
_GRID = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalStudy:
    """Records of a time to event, their public bounds, and the truth at a horizon.

    Parameters
    ----------
    X, T, time, event : arrays
        Covariates, treatment, time to the event or to the end of follow-up, and which of the two it was (1 or 0).
    bounds : Bounds
        Public facts.
    horizon : float
        Up to when effects are meant.
    rmst, risk : float
        Differences between the arms in restricted mean time without the event, and in the probability of the event.

    Examples
    --------
    >>> from discreet.datasets import survival_trial
    >>> study = survival_trial(n=500, seed=1)
    >>> study.rmst > 0 > study.risk, study.horizon
    (True, 365.0)
    """

    X: Any
    T: Float
    time: Float
    event: Float
    bounds: Bounds
    horizon: float
    rmst: float
    risk: float


def survival_trial(
    n: int, seed: int, *, effect: float = 0.4, confounding: float = 0.0, censoring: float = 0.3
) -> SurvivalStudy:
    """Times to an event with three covariates, of which two matter.

    Times are Weibull; treatment multiplies the hazard by about ``exp(-effect)``. Follow-up ends by a constant hazard,
    larger where treated, and for everybody between one and two years.

    Parameters
    ----------
    n, seed : int
        Number of records; the seed fixes them.
    effect : float
        How much treatment lowers the logarithm of the hazard.
    confounding : float
        How much covariates that raise the hazard raise the log odds of treatment; zero for a trial.
    censoring : float
        Hazard of being lost within a year.

    Examples
    --------
    >>> from discreet.datasets import survival_trial
    >>> bool(survival_trial(n=500, seed=1).time.max() <= 730)
    True
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, len(_SLOPES)))
    t = (rng.random(n) < 1.0 / (1.0 + np.exp(-confounding * (x @ _SLOPES)))).astype(float)
    years = (rng.exponential(size=n) / _rate(x, t, effect)) ** (1.0 / _SHAPE)
    lost = rng.exponential(size=n) / np.maximum(censoring * (1.0 + 0.5 * t), 1e-9)
    follow_up = np.minimum(lost, rng.uniform(1.0, _LONGEST / _YEAR, n))
    time = np.floor(_YEAR * np.minimum(years, follow_up)) + 1.0
    rmst, risk = _truth(effect)
    return SurvivalStudy(
        X=x,
        T=t,
        time=np.minimum(time, _LONGEST),
        event=(years <= follow_up).astype(float),
        bounds=Bounds(outcome=(0.0, _LONGEST), covariates=[(-1.0, 1.0)] * len(_SLOPES), propensity=(0.1, 0.9)),
        horizon=_YEAR,
        rmst=rmst,
        risk=risk,
    )


def _rate(x: Float, t: Float | float, effect: float) -> Float:
    return np.asarray(_RATE * np.exp(x @ _SLOPES - effect * t * (1.0 + 0.3 * x[:, 0])))


def survival_at(days: Float, treated: float, effect: float = 0.4) -> Float:
    """Share of everybody who is without the event after so many whole days, were all treated, or none."""
    # The midpoints of a grid of the two covariates that matter.
    middles = (np.arange(_GRID) + 0.5) / _GRID * 2.0 - 1.0
    x = np.array([(one, other, 0.0) for one in middles for other in middles])
    return np.asarray(np.exp(-np.outer(_rate(x, treated, effect), (days / _YEAR) ** _SHAPE)).mean(axis=0))


def _truth(effect: float) -> tuple[float, float]:
    """Differences in mean time and risk; a record's time is the end of its day, at which that day's curve falls."""
    control, treated = (survival_at(np.arange(_YEAR + 1.0), arm, effect) for arm in (0.0, 1.0))
    return float((treated - control)[:-1].sum()), float(control[-1] - treated[-1])
