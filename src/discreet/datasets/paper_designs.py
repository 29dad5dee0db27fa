"""Generators of three papers, as their texts describe them."""

from __future__ import annotations

import math

import numpy as np

from discreet.data.bounds import Bounds
from discreet.datasets.simulated import DESIGNS, Design, Rng
from discreet.datasets.study import Float, Study
from discreet.exceptions import InvalidInput

# Wide enough that an outcome is practically never clipped.
_REACH = 6.0
# Average of exp(2 u) + 3 sin(4 v), u and v uniform on [0, 1], the same variable or not.
_DP_CATE_EFFECT = (math.exp(2.0) - 1.0) / 2.0 + 3.0 * (1.0 - math.cos(4.0)) / 4.0


def propensity_scores(tau: float, seed: int, *, n: int = 1200, d: int = 25, vectors: int | None = 1) -> Study:
    """Synthetic data of "Private Causal Inference using Propensity Scores", section 4.

    Covariates are N(0, 9 I), divided by the largest norm in the draw; treatment and outcome each follow a Gaussian
    vector's product with them. The text calls the first product a probability: it passes through the sigmoid here, as
    in the authors' notebooks. Give `papers.PropensityIPTW` a ``norm_bound`` of 1.

    Parameters
    ----------
    tau : float
        The effect; the paper's are 0.1 and 2.
    seed : int
        Seed of one trial.
    n, d : int
        Number of records (m and n of the paper together) and of covariates.
    vectors : int or None
        Seed of the two vectors, which all trials share; None draws them anew in each.

    Examples
    --------
    >>> from discreet.datasets import propensity_scores
    >>> study = propensity_scores(tau=2.0, seed=1, n=100, d=5)
    >>> study.X.shape, study.ate
    ((100, 5), 2.0)
    """
    rng = np.random.default_rng(seed)
    shared = rng if vectors is None else np.random.default_rng(vectors)
    assignment, outcome = shared.standard_normal((2, d))
    x = rng.normal(0.0, 3.0, (n, d))
    x /= np.sqrt((x**2).sum(axis=1)).max()
    propensity = 1.0 / (1.0 + np.exp(-x @ assignment))
    t = (rng.random(n) < propensity).astype(np.float64)
    low, high = -_REACH + min(tau, 0.0), _REACH + max(tau, 0.0)
    y = np.clip(x @ outcome + 0.1 * rng.standard_normal(n) + tau * t, low, high)
    bounds = Bounds(outcome=(low, high), covariates=[(-1.0, 1.0)] * d, propensity=(0.02, 0.98))
    return Study(
        name="propensity-scores",
        X=x,
        T=t,
        Y=y,
        bounds=bounds,
        ate=tau,
        effects=np.full(n, tau),
        propensity=propensity,
    )


def private_ci_rct(n: int, seed: int) -> Study:
    """Randomised trial of the PrivATE paper, supplement E.1: one covariate, half of the records treated.

    Complete randomisation: exactly half of them, drawn by lot. The effect is 1, as in Dataset 1.

    Examples
    --------
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=100, seed=1)
    >>> float(trial.T.mean()), trial.ate
    (0.5, 1.0)
    """
    if n < 2 or n % 2:
        raise InvalidInput("n must be even, so that half of the records can be treated: change it by one.")
    rng = np.random.default_rng(seed)
    gamma = rng.uniform(0.0, 1.0)
    x = rng.random((n, 1))  # (37)
    t = rng.permutation(np.arange(n) % 2).astype(np.float64)
    y = t + gamma * x[:, 0] + rng.uniform(-1.0, 1.0, n)  # (39), tau = 1
    bounds = Bounds(outcome=(-1.0, 3.0), covariates=[(0.0, 1.0)], propensity=(0.1, 0.9))
    return Study(
        name="private-ci-rct", X=x, T=t, Y=y, bounds=bounds, ate=1.0, effects=np.ones(n), propensity=np.full(n, 0.5)
    )


def dp_cate(which: int, n: int, seed: int) -> Study:
    """Dataset 1 (p = 2) or Dataset 2 (p = 30) of the DP-CATE paper, supplement H.1.

    The text gives no size of the supports: both covariates of Dataset 1, and six of Dataset 2, as in the PrivATE
    paper's; with all 30 of them nearly everybody would be treated. Coefficients are drawn anew for each study, and
    propensities are clipped to the declared overlap.

    Parameters
    ----------
    which : {1, 2}
        Which of them.
    n : int
        Number of records; the paper's studies have 3,000, of which 300 are the queries.
    seed : int
        Seed of the study.

    Examples
    --------
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=100, seed=1)
    >>> study.X.shape, round(study.ate, 2)
    ((100, 2), 4.43)
    """
    if which not in (1, 2):
        raise InvalidInput("which must be 1 or 2: the paper has two synthetic data sets.")
    p, support = {1: (2, 2), 2: (30, 6)}[which]
    rng = np.random.default_rng(seed)
    beta, gamma = np.zeros(p), np.zeros(p)
    beta[rng.choice(p, support, replace=False)] = rng.uniform(0.0, 0.3, support)
    gamma[rng.choice(p, support, replace=False)] = rng.uniform(0.0, 1.0, support)
    x = rng.random((n, p))  # (66)
    propensity = np.clip((1.0 + x @ beta) / 2.0, 0.1, 0.9)  # P(x'beta >= eta), eta uniform on [-1, 1]
    t = (rng.random(n) < propensity).astype(np.float64)  # (67)
    theta = np.exp(2.0 * x[:, 0]) + 3.0 * np.sin(4.0 * x[:, which - 1])  # (69), (70)
    y = theta * t + x @ gamma + rng.uniform(-1.0, 1.0, n)  # (68)
    # Where the formulas reach: theta lies in [1, 5.5] and in [-1.3, 10.4].
    outcome = (-1.0, 8.5) if which == 1 else (-2.5, 17.5)
    bounds = Bounds(outcome=outcome, covariates=[(0.0, 1.0)] * p, propensity=(0.1, 0.9))
    return Study(
        name=f"dp-cate-{which}",
        X=x,
        T=t,
        Y=y,
        bounds=bounds,
        ate=_DP_CATE_EFFECT,
        effects=theta,
        propensity=propensity,
    )


# The covariance of setup E: products of the first six rows of a 12 by 12 matrix of uniform numbers, seed 1.
_ROWS = np.random.RandomState(1).uniform(-1.0, 1.0, (12, 12))[:6]
_BASELINE = np.linspace(0.0, 3.0, 6)
_EFFECT = np.array([0.0, 1.0, -1.0, 1.0, 1.0, 1.0])
_E_LIMIT = 6.0
_E_BOUNDS = Bounds(
    outcome=(-25.0, 35.0),
    covariates=[(-_E_LIMIT, _E_LIMIT)] * 3 + [[0.0, 1.0]] * 3,
    propensity=(0.1, 0.9),
)
_PRINTED_BOUNDS = Bounds(outcome=(-90.0, 90.0), covariates=[(-_E_LIMIT, _E_LIMIT)] * 6, propensity=(0.001, 0.999))


def _d_as_coded(x: Float) -> tuple[Float, Float, Float]:
    propensity, _, effect = DESIGNS["setup-d"].surface(x)
    control = np.maximum(x[:, 0] + x[:, 1], 0.0) + np.maximum(x[:, 3] + x[:, 4], 0.0)
    return propensity, control, effect


_SETUPS = {name: DESIGNS[f"setup-{name.lower()}"] for name in "ABC"} | {
    "D": Design(
        name="setup-d-as-coded",
        bounds=DESIGNS["setup-d"].bounds,
        covariates=DESIGNS["setup-d"].covariates,
        surface=_d_as_coded,
    )
}
SETUPS = (*_SETUPS, "E")


def meta_learners(setup: str, n: int, seed: int, *, as_printed: bool = False) -> Study:
    """A study from setup "A", "B", "C", "D" or "E", as the authors' code draws it; ``effects`` are the truth.

    Normal covariates are clipped to public bounds (three standard deviations) before treatment and outcome are drawn.
    As their Table 1 prints them, D and E differ from the code: D in its baseline, and E in nearly everything.

    Parameters
    ----------
    setup : {"A", "B", "C", "D", "E"}
        Which row of the paper's Table 1.
    n : int
        Number of records.
    seed : int
        Seed of the draw.
    as_printed : bool, default False
        Whether setups are those of the text, and not of the code, which made the published numbers.

    Examples
    --------
    >>> from discreet.datasets import meta_learners
    >>> study = meta_learners("E", n=100, seed=1)
    >>> study.X.shape, study.bounds.outcome
    ((100, 6), (-25.0, 35.0))
    """
    if setup not in SETUPS:
        raise InvalidInput(f"setup must be one of {', '.join(SETUPS)}: choose a row of Table 1.")
    if setup == "E":
        return _setup_e_as_printed(n, seed) if as_printed else _setup_e(n, seed)
    return DESIGNS["setup-d"].draw(n, seed) if setup == "D" and as_printed else _SETUPS[setup].draw(n, seed)


def _setup_e(n: int, seed: int) -> Study:
    rng: Rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, _ROWS.shape[1])) @ _ROWS.T
    x = np.column_stack([np.clip(latent[:, :3], -_E_LIMIT, _E_LIMIT), (latent[:, 3:] > 1.0) * 1.0])
    propensity = np.clip(1.0 / (1.0 + np.exp(-x[:, 0] - x[:, 5])), 0.1, 0.9)
    t = (rng.random(n) < propensity).astype(np.float64)
    effects = x @ _EFFECT + 5.0 / (1.0 + np.exp(-x[:, 0]))
    control = x @ _BASELINE + x[:, 0] * x[:, 5] + np.where(np.abs(x[:, 2]) < 0.5, 0.8, 0.2)
    noise = (x[:, 0] + 1.0) * rng.standard_normal(n) + rng.standard_normal(n)
    y = np.clip(control + t * effects + noise, *_E_BOUNDS.outcome)
    return Study(name="setup-e", X=x, T=t, Y=y, bounds=_E_BOUNDS, effects=effects, propensity=propensity)


def _setup_e_as_printed(n: int, seed: int) -> Study:
    """Normal covariates, with the code's covariance: the text says that a random generator made it."""
    rng: Rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal((n, _ROWS.shape[1])) @ _ROWS.T, -_E_LIMIT, _E_LIMIT)
    propensity = 1.0 / (1.0 + np.exp(x[:, 0] + x[:, 5]))
    t = (rng.random(n) < propensity).astype(np.float64)
    effects = 1.0 / (1.0 + np.exp(x[:, 0])) - x[:, 1] + x[:, 2:].sum(axis=1)
    control = x @ np.arange(1.0, 7.0) + x[:, 0] * x[:, 5] + (np.abs(x[:, 2]) < 0.5)
    y = np.clip(control + t * effects + rng.standard_normal(n), *_PRINTED_BOUNDS.outcome)
    return Study(
        name="setup-e-as-printed", X=x, T=t, Y=y, bounds=_PRINTED_BOUNDS, effects=effects, propensity=propensity
    )
