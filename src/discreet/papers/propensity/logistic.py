"""Propensity scores by L2-regularised logistic regression, and how far one record can move them.

Lee, Gresele, Park and Muandet, "Private Causal Inference using Propensity Scores", sections 2.2 and 3. Symbols are
theirs: m training records, covariates x with a norm of at most 1, treatment t, weights w, penalty lambda (``lam``).

Deviations. Equation (3) is printed with the same logarithm in both terms; the second one is log(1 - pi) here, without
which it would be no cross-entropy. The authors take gradient steps (their code L-BFGS, on scores that pass through the
sigmoid twice); here Newton's method goes on until the gradient's norm is below a stated one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput

_STEPS = 200
# Logistic loss: |slope| <= 1 and curvature <= 1/4 where norms are at most 1.
_CURVATURE = 0.25


class Minimiser(NamedTuple):
    """Weights, and a bound on the norm of the objective's gradient there that allows for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> Minimiser(w=np.zeros(2), gradient_norm=1e-9).gradient_norm
    1e-09
    """

    w: Float
    gradient_norm: float


def propensity(w: Float, x: Float) -> Float:
    """Probability of treatment given covariates, (1) and (4).

    Examples
    --------
    >>> import numpy as np
    >>> propensity(np.array([2.0]), np.array([[0.0], [0.5]])).round(3)
    array([0.5  , 0.731])
    """
    return np.asarray(expit(x @ w))


def objective(w: Float, x: Float, t: Float, lam: float) -> float:
    """Regularised cross-entropy, (3).

    Examples
    --------
    >>> import numpy as np
    >>> round(objective(np.zeros(1), np.array([[0.5]]), np.array([1.0]), lam=0.1), 4)
    0.6931
    """
    index = x @ w
    # -log pi = log(1 + e^-v) and -log(1 - pi) = log(1 + e^v), without overflow.
    return float(np.mean(np.logaddexp(0.0, np.where(t == 1, -index, index))) + lam / 2 * (w @ w))


def gradient(w: Float, x: Float, t: Float, lam: float) -> Float:
    """Gradient of (3).

    Examples
    --------
    >>> import numpy as np
    >>> gradient(np.zeros(1), np.array([[0.5]]), np.array([1.0]), lam=0.1)
    array([-0.25])
    """
    return np.asarray((propensity(w, x) - t) @ x / len(t) + lam * w)


def minimise(x: Float, t: Float, lam: float, gradient_norm: float, tilt: Float | None = None) -> Minimiser:
    """Weights at which the gradient of (3), plus ``tilt``, has a norm of at most ``gradient_norm``.

    Separable data are no obstacle: the penalty keeps the minimiser within a distance of 1 / lambda.

    Parameters
    ----------
    x, t : arrays of shape (m, d) and (m,)
        Covariates with norms of at most 1, and treatment.
    lam : float
        The penalty, positive.
    gradient_norm : float
        Where to stop; at least twice `gradient_rounding`.
    tilt : array of shape (d,), optional
        A linear term of the objective, for objective perturbation.

    Examples
    --------
    >>> import numpy as np
    >>> x, t = np.array([[0.5], [-0.5]]), np.array([1.0, 0.0])
    >>> found = minimise(x, t, lam=0.1, gradient_norm=1e-9)
    >>> found.w.round(3), found.gradient_norm <= 1e-9
    (array([1.568]), True)
    """
    m, d = x.shape
    linear = np.zeros(d) if tilt is None else tilt
    w, rounding = np.zeros(d), gradient_rounding(m, d, lam)
    # A public condition, so that whether it is refused says nothing about the records.
    if gradient_norm < 2 * rounding:
        raise InvalidInput(
            "gradient_norm is smaller than float64 can certify for so many records and so small a lam: raise it."
        )
    for _ in range(_STEPS):
        slope = gradient(w, x, t, lam) + linear
        norm = float(np.linalg.norm(slope)) + rounding
        if norm <= gradient_norm:
            return Minimiser(w, norm)
        w = w - _damped(w, _newton_step(w, x, slope, lam), slope, x, t, lam, linear)
    raise InvalidInput("the minimisation did not come down to gradient_norm: raise gradient_norm or lam.")


def gradient_rounding(m: int, d: int, lam: float) -> float:
    """Bound on what rounding does to `gradient` near the minimiser. Proof: docs/proofs/propensity.md, lemma 2.

    Examples
    --------
    >>> gradient_rounding(m=1_000, d=10, lam=0.1) < 1e-12
    True
    """
    return 2.0**-52 * (m + d / lam + 16)


def sensitivity(m: int, lam: float, gradient_norm: float = 0.0) -> float:
    """How far replacing one record can move the weights: S(w) = 2 / (m lambda), and 2 g / lambda for inexact ones.

    Proof: docs/proofs/propensity.md, lemma 1.

    Examples
    --------
    >>> sensitivity(m=100, lam=0.1)
    0.2
    """
    return 2 / (m * lam) + 2 * gradient_norm / lam


def output_sd(epsilon: float, delta: float, m: int, lam: float) -> float:
    """Noise of Definition 2: sigma = sqrt(2 log(1.25 / delta)) S(w) / epsilon, for epsilon in (0, 1).

    Examples
    --------
    >>> round(output_sd(epsilon=0.5, delta=1e-5, m=1_000, lam=0.1), 4)
    0.1938
    """
    return math.sqrt(2 * math.log(1.25 / delta)) * sensitivity(m, lam) / epsilon


def objective_sd(epsilon: float, delta: float) -> float:
    """Noise of the authors' objective perturbation: b ~ N(0, sd^2 I) enters (3) as b'w / m.

    In their notebooks, not in their text, after Jain and Thakurta (2014): 4 (log(1 / delta) + epsilon) / epsilon^2.

    Examples
    --------
    >>> round(objective_sd(epsilon=0.5, delta=1e-5), 2)
    13.86
    """
    return math.sqrt(4 * (math.log(1 / delta) + epsilon)) / epsilon


def least_penalty(epsilon: float, m: int) -> float:
    """Smallest lambda at which objective perturbation is claimed to work: 2 c / (epsilon m), c = 1/4.

    Kifer, Smith and Thakurta (2012), theorem 2; the notebooks do not check it.

    Examples
    --------
    >>> least_penalty(epsilon=0.5, m=1_000)
    0.001
    """
    return 2 * _CURVATURE / (epsilon * m)


def _newton_step(w: Float, x: Float, slope: Float, lam: float) -> Float:
    pi = propensity(w, x)
    curvature = (x * (pi * (1 - pi))[:, None]).T @ x / len(x) + lam * np.eye(len(w))
    return np.asarray(np.linalg.solve(curvature, slope), dtype=np.float64)


def _damped(w: Float, step: Float, slope: Float, x: Float, t: Float, lam: float, linear: Float) -> Float:
    """Halve a Newton step until the objective falls; close to the minimum its change is too small to be seen."""
    here, fall = objective(w, x, t, lam) + linear @ w, float(slope @ step)
    size = 1.0
    while fall > 1e-10 and size > 1e-6:
        there = w - size * step
        if objective(there, x, t, lam) + linear @ there <= here - 0.1 * size * fall:
            break
        size /= 2
    return size * step
