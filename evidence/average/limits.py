"""Two ends at which the answer is known: a budget so large that noise vanishes, and a real study."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import discreet
from discreet.datasets import Study, draw, rhc
from discreet.datasets.observational import RHC_FILE
from discreet.testing import frozen_noise, seeded_noise
from evidence.average.coverage import ALPHAS, BASE_SEED, DELTA, NOISE_SEED
from evidence.average.nonprivate import Estimate, boosted_aipw, linear_aipw
from evidence.average.targets import Verdict
from evidence.cache import ROOT

_HUGE = 1e6
_LIMIT_DESIGNS = ("private-ci-1", "correlated", "setup-a", "clinic")
_LIMIT_SIZE = 3_000

RHC_SEEDS = 50
RHC_EPSILON = 0.5
_WIDTH, _AIM = 0.25, 0.12


@dataclass(frozen=True, kw_only=True)
class Catheter:
    """The right-heart-catheter study under many draws of noise."""

    seeds: int
    linear: Estimate
    boosted: Estimate
    contains_linear: float
    contains_boosted: float
    width: float
    estimate_sd: float


def without_noise(designs: tuple[str, ...] = _LIMIT_DESIGNS) -> list[Verdict]:
    """A huge budget gives what the same estimator gives with zero noise."""
    verdicts = []
    for design in designs:
        study = draw(design, _LIMIT_SIZE, BASE_SEED)
        with frozen_noise():
            exact = _fit(study, _HUGE)
        with seeded_noise(NOISE_SEED):
            noisy = _fit(study, _HUGE)
        gap = abs(noisy.ate_ - exact.ate_) / exact.release_.uncertainty.se
        verdicts.append(
            Verdict(
                target=f"ε = {_HUGE:,.0f} against zero noise, {design}, n = {_LIMIT_SIZE:,}",
                limit="≤ 0.001 s.e. apart",
                figure=f"{gap:.1e} s.e.",
                reached=gap <= 1e-3,
            )
        )
    return verdicts


def rhc_path() -> Path:
    """Where the study should be."""
    return Path(os.environ.get("DISCREET_DATA", ROOT.parent / "shared" / "data")) / RHC_FILE


def catheter(seeds: int = RHC_SEEDS) -> Catheter | str:
    """Effect of a right heart catheter on death within 180 days, or the reason why it was not estimated."""
    path = rhc_path()
    if not path.exists():
        return f"Skipped: {RHC_FILE} is not in the folder that $DISCREET_DATA names. It is not part of this project."
    study = rhc(path)
    linear, boosted = linear_aipw(study), boosted_aipw(study, BASE_SEED)
    estimates, intervals = [], []
    for seed in range(seeds):
        with seeded_noise(NOISE_SEED + seed):
            fitted = _fit(study, RHC_EPSILON)
        estimates.append(fitted.ate_)
        intervals.append(fitted.ate_interval(alpha=ALPHAS[-1]))
    low, high = np.array(intervals).T
    return Catheter(
        seeds=seeds,
        linear=linear,
        boosted=boosted,
        contains_linear=float(np.mean((low <= linear.estimate) & (linear.estimate <= high))),
        contains_boosted=float(np.mean((low <= boosted.estimate) & (boosted.estimate <= high))),
        width=float(np.mean(high - low)),
        estimate_sd=float(np.std(estimates, ddof=1)),
    )


def catheter_verdict(result: Catheter | str) -> Verdict:
    """The study's target."""
    figure = "" if isinstance(result, str) else f"{result.width:.3f}"
    return Verdict(
        target=f"Mean width of 95 % intervals, right heart catheter, ε = {RHC_EPSILON:g}",
        limit=f"≤ {_WIDTH:g} (aim {_AIM:g})",
        figure=figure,
        reached=None if isinstance(result, str) else result.width <= _WIDTH,
    )


def _fit(study: Study, epsilon: float) -> discreet.ATE:
    return discreet.ATE(epsilon=epsilon, delta=DELTA, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
