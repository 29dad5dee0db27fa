"""Studies behind the table and figures of the private propensity score paper: one replication of one cell at a time.

Synthetic covariates are divided by the largest norm among the records of a run, as the text says, and Lalonde's, whose
earnings are in dollars, too; IHDP's are taken as they are, as the text says nothing else of them. The claim needs norms
of at most 1 for every record there could be, and holds in neither case: no `papers.PropensityIPTW` is fitted here, only
its equations evaluated.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.datasets import Study, ihdp, nsw, propensity_scores
from discreet.estimators.ate import ATE
from discreet.papers.propensity.iptw import bias, iptw, largest_difference, sign_error_bound
from discreet.papers.propensity.logistic import least_penalty, minimise, objective_sd, output_sd
from discreet.privacy.noise import published_gaussian
from discreet.testing import seeded_noise
from evidence.reproduce.private_ate.noise_runs import noise_seed
from evidence.reproduce.targets import FLAGSHIP_CELL, Row

STUDY_SEED, NOISE_SEED = 62_000_000, 94_000_000
DELTA, LAMBDA = 1e-6, 0.1
GRADIENT_NORM = 1e-9
OURS = FLAGSHIP_CELL
# Section 4: 1,000 records train, 200 estimate.
M, N = 1_000, 200
EPSILONS = (0.03, 0.05, 0.1, 0.2, 0.4, 0.8, 0.99)
TAUS = (0.1, 2.0)
TRAINING_SIZES = (500, 1_000, 2_000)
TABLE_EPSILONS = (0.2, 0.4, 0.6, 0.8, 0.99)
REALISATIONS = 20
# Declared to `discreet.ATE`: so wide that they clip nothing, as realisations of IHDP differ thirtyfold in their range.
OUTCOMES = {"ihdp": (-50.0, 300.0), "nsw": (0.0, 100_000.0)}
# Covariates of these are divided by the largest norm: undivided, earnings make every sign a coin toss.
SCALED = ("nsw",)
# w'x stops here, before its exponential is too large a number.
INDEX = 300.0
# Draws of noise for each study and budget; and how often Lemma 4 may fail.
DRAWS, GAMMA = 200, 0.01
# Table 1: units of each arm that train, and that estimate.
_TRAIN, _ESTIMATE = 250, 100


class Fitted(NamedTuple):
    """Weights from m records, and the n others."""

    w: Float
    x: Float
    t: Float
    y: Float
    m: int

    def estimate(self, w: Float) -> float:
        """The effect (5) with these weights, as far as numbers go."""
        with np.errstate(over="ignore"):
            return iptw(self.y, self.t, np.clip(self.x @ w, -INDEX, INDEX))


def signs(cell: str, replication: int) -> Row:
    """Cell "0.1 1000": the synthetic data with this effect and this m, or `discreet.ATE` on 1,200 records."""
    tau, method = cell.split()
    m = M if method == OURS else int(method)
    study = propensity_scores(float(tau), STUDY_SEED + replication, n=m + N)
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        if method == OURS:
            return {"estimates": _ours(study, EPSILONS)}
        fitted = _split(study, m)
        return {"tau": fitted.estimate(fitted.w)} | {f"{epsilon:g}": _noisy(fitted, epsilon) for epsilon in EPSILONS}


def _noisy(fitted: Fitted, epsilon: float) -> dict[str, Any]:
    """Private estimates at one budget: the first, how often they have the wrong sign, and what theory says."""
    sigma, tau = output_sd(epsilon, DELTA, fitted.m, LAMBDA), fitted.estimate(fitted.w)
    z = published_gaussian((DRAWS, len(fitted.w)), sigma)
    estimates = np.array([fitted.estimate(fitted.w + noise) for noise in z])
    # Theorem 5 is for positive estimates, "without loss of generality": turn the others around.
    y = fitted.y * np.sign(tau)
    records = (y, fitted.t, fitted.x, fitted.w)
    with np.errstate(over="ignore"):
        g = bias(*records, sigma)
        bounds = [
            sign_error_bound(abs(tau), g, xi)
            if (xi := largest_difference(*records, sigma, GAMMA, published=text)) > 0
            else None
            for text in (True, False)
        ]
    return {
        "first": float(estimates[0]),
        "mean": float(estimates.mean()),
        "flips": float(np.mean(np.sign(estimates) != np.sign(tau))),
        "bias": float(np.sign(tau) * g) if np.isfinite(g) else None,
        "bound": bounds[0],
        "corrected": bounds[1],
    }


def real(cell: str, replication: int) -> Row:
    """Cell "ihdp paper": a resampled data set of Table 1 under both perturbations, or `discreet.ATE` on all records."""
    name, method = cell.split()
    study = _study(name, replication % REALISATIONS)
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        if method == OURS:
            return {"truth": study.ate, "estimates": _ours(study, TABLE_EPSILONS)}
        rng = _rng(replication)
        fitted, training, treatment = _resampled(study, name, rng)
        row: Row = {"truth": study.ate, "tau": fitted.estimate(fitted.w), "output": {}, "objective": {}}
        d = len(fitted.w)
        for epsilon in TABLE_EPSILONS:
            key, sigma = f"{epsilon:g}", output_sd(epsilon, DELTA, fitted.m, LAMBDA)
            row["output"][key] = fitted.estimate(fitted.w + published_gaussian(d, sigma))
            if least_penalty(epsilon, fitted.m) <= LAMBDA:
                tilt = published_gaussian(d, objective_sd(epsilon, DELTA)) / fitted.m
                w = minimise(training, treatment, LAMBDA, GRADIENT_NORM, tilt=tilt).w
                row["objective"][key] = fitted.estimate(w)
        return row


def _split(study: Study, m: int) -> Fitted:
    x = np.asarray(study.X) / _largest_norm(np.asarray(study.X))
    w = minimise(x[:m], study.T[:m], LAMBDA, GRADIENT_NORM).w
    return Fitted(w, x[m:], study.T[m:], study.Y[m:], m)


def _resampled(study: Study, name: str, rng: Any) -> tuple[Fitted, Float, Float]:
    """Balanced training and estimation records (section 4): which are disjoint, and may repeat within themselves."""
    arms = [rng.permutation(np.flatnonzero(arm == study.T)) for arm in (0.0, 1.0)]
    if name == "ihdp":
        # The files have no train and test sets: a tenth of each arm, as theirs, is left to estimate with.
        held = [arm[: len(arm) // 10] for arm in arms]
        rest = [arm[len(arm) // 10 :] for arm in arms]
        estimate = np.concatenate([rng.choice(part, _ESTIMATE) for part in held])
    else:
        estimate = np.concatenate([arm[:_ESTIMATE] for arm in arms])
        rest = [arm[_ESTIMATE:] for arm in arms]
    train = np.concatenate([rng.choice(part, _TRAIN) for part in rest])
    x = np.asarray(study.X, dtype=np.float64)
    if name in SCALED:
        x = x / _largest_norm(x[np.concatenate([train, estimate])])
    w = minimise(x[train], study.T[train], LAMBDA, GRADIENT_NORM).w
    return Fitted(w, x[estimate], study.T[estimate], study.Y[estimate], len(train)), x[train], study.T[train]


def _ours(study: Study, epsilons: tuple[float, ...]) -> dict[str, float]:
    estimates = {}
    for epsilon in epsilons:
        fitted = ATE(epsilon=epsilon, delta=DELTA, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
        estimates[f"{epsilon:g}"] = fitted.ate_
    return estimates


@cache
def _study(name: str, realisation: int) -> Study:
    """Records with the outcomes of the files: the paper clips none, and no outcome reaches these ranges."""
    if name == "ihdp":
        return ihdp(1 + realisation, outcome=OUTCOMES[name])
    return nsw(re74=True, outcome=OUTCOMES[name])


def _largest_norm(x: Float) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", x, x).max())) * (1.0 + 1e-12)


def _rng(replication: int) -> Any:
    from sklearn.utils import check_random_state

    return check_random_state(STUDY_SEED + replication)
