"""Corollary 1 of the epsilon-ADUM paper: how large its error can be, and how many cells make the bound smallest.

Betlei et al. (2021), section 2.4. One covariate, both arms equally populated in every cell; u = f^T - f^C with
Lipschitz constants L_T and L_C; symbols are the paper's. The corollary is evaluated as published: the proof is in no
text that could be had.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput


class Terms(NamedTuple):
    """The three terms of (7).

    Examples
    --------
    >>> Terms(bias=0.5, variance=0.25, privacy=0.25).total
    1.0
    """

    bias: float
    variance: float
    privacy: float

    @property
    def total(self) -> float:
        """The bound on the PEHE, a mean squared error."""
        return math.fsum(self)


class Smooth(NamedTuple):
    """What Corollary 1 knows about a study.

    Parameters
    ----------
    lipschitz_control, lipschitz_treated
        L_C and L_T.
    width
        D_x, the length of the covariate's range.
    noise_sd
        sigma, the standard deviation of the outcome's noise.
    outcome_bound
        D_y.

    Examples
    --------
    >>> Smooth(lipschitz_control=0.0, lipschitz_treated=1.0, width=2.0, noise_sd=1.0, outcome_bound=5.0).slope
    4.0
    """

    lipschitz_control: float
    lipschitz_treated: float
    width: float
    noise_sd: float
    outcome_bound: float

    @property
    def slope(self) -> float:
        """(L_C^2 + L_T^2) D_x^2."""
        return (self.lipschitz_control**2 + self.lipschitz_treated**2) * self.width**2


def pehe_bound(study: Smooth, p: int, n: int, epsilon: float, balance: float = 1.0) -> Terms:
    """The right side of (7); ``balance`` is beta, the widest cell over the narrowest.

    Examples
    --------
    >>> study = Smooth(lipschitz_control=0.0, lipschitz_treated=1.0, width=2.0, noise_sd=1.0, outcome_bound=5.0)
    >>> [round(term, 3) for term in pehe_bound(study, p=10, n=10_000, epsilon=1.0)]
    [0.08, 0.024, 0.014]
    """
    _check(p, n, epsilon)
    return Terms(
        bias=2 * study.slope * balance**2 / p**2,
        variance=4 * (2 * study.noise_sd**2 + study.slope) * p / n,
        privacy=(24 * study.outcome_bound * p / (n * epsilon)) ** 2,
    )


def pehe_decomposition(biases: tuple[Float, Float], variances: tuple[Float, Float]) -> float:
    """The right side of Proposition 1, without privacy: 2 E[Bias^2 of both arms] + 2 E[Var of both arms].

    Parameters
    ----------
    biases, variances
        Of the piecewise constant estimates of f^C and f^T at people like those who are to be treated. It holds for data
        that are not randomised, too, where within a cell treatment is as good as random.

    Examples
    --------
    >>> import numpy as np
    >>> pehe_decomposition((np.array([0.1, 0.3]), np.zeros(2)), (np.full(2, 0.02), np.full(2, 0.03))).__round__(2)
    0.2
    """
    squares = sum(np.asarray(bias, dtype=np.float64) ** 2 for bias in biases)
    variance = sum(np.asarray(variance, dtype=np.float64) for variance in variances)
    if not (np.isfinite(squares).all() and np.isfinite(variance).all() and (np.asarray(variance) >= 0).all()):
        raise InvalidInput("biases and variances must be finite numbers, and variances not negative: check them.")
    return float(2.0 * np.mean(squares) + 2.0 * np.mean(variance))


def failure_probability(p: int, n: int, epsilon: float) -> float:
    """The smallest Delta for which Corollary 1 applies: from epsilon = 8 p log(1 / Delta) / n.

    Examples
    --------
    >>> round(failure_probability(p=10, n=1_000, epsilon=0.5), 4)
    0.0019
    """
    _check(p, n, epsilon)
    return math.exp(-epsilon * n / (8 * p))


def least_epsilon(p: int, n: int, failure: float) -> float:
    """The smallest epsilon for which (7) is claimed to hold with probability 1 - ``failure``.

    Examples
    --------
    >>> round(least_epsilon(p=10, n=10_000, failure=0.05), 4)
    0.024
    """
    _check(p, n, 1.0)
    if not 0 < failure < 1:
        raise InvalidInput("failure must lie between 0 and 1: it is a probability.")
    return 8 * p * math.log(1 / failure) / n


def best_cells(study: Smooth, n: int, epsilon: float) -> int:
    """p_opt: the number of cells that makes (7) smallest. With many records the bound has one minimum only.

    Examples
    --------
    >>> study = Smooth(lipschitz_control=0.0, lipschitz_treated=1.0, width=2.0, noise_sd=1.0, outcome_bound=5.0)
    >>> best_cells(study, n=10_000, epsilon=1.0)
    14
    """
    p = 1
    while pehe_bound(study, p + 1, n, epsilon).total < pehe_bound(study, p, n, epsilon).total:
        p += 1
    return p


def _check(p: int, n: int, epsilon: float) -> None:
    # Written so that NaN is refused too.
    if not (p >= 1 and n >= 1 and epsilon > 0):
        raise InvalidInput("p and n must be at least 1 and epsilon positive: check them.")
