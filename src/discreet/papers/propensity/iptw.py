"""Average effects by inverse probability of treatment weighting, and what noise in the weights does to them.

Lee, Gresele, Park and Muandet, "Private Causal Inference using Propensity Scores", equations (2) and (5) to (7),
lemmas 3 and 4, theorem 5. Symbols are theirs: n records (x, t, y), weights w, noise z ~ N(0, sigma^2 I).

Where the text cannot be taken at its word. Lemma 4 sums y where its proof needs abs(y), and bounds z'x by the absolute
sum of z's coordinates, which does not follow: ``published=False`` takes abs(y), and the norm of z for both draws. That
makes lemma 4 follow, and no more: theorem 5 is evaluated as published with either, and is not proved here.
Theorem 5 applies Hoeffding's inequality to a variable in an interval of length xi: right for lemma 4's xi, four times
too optimistic in the exponent where the estimate lies between -xi and xi. It says nothing unless tau + g > 0; 1 is
returned then.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.data._arrays import Float

_MOST_REACH = 700.0


def iptw(y: Float, t: Float, index: Float, xi: float | None = None) -> float:
    """Average effect from n records, (2) and (5); with ``xi``, propensities are trimmed.

    Parameters
    ----------
    y, t : arrays of shape (n,)
        Outcome and treatment.
    index : array of shape (n,)
        w'x, so that the propensity is 1 / (1 + exp(-w'x)).
    xi : float, optional
        Least probability of the treatment that was received: smaller ones count as xi.

    Examples
    --------
    >>> import numpy as np
    >>> y, t = np.array([3.0, 1.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0])
    >>> iptw(y, t, index=np.zeros(4))
    1.0
    """
    return float(np.mean(iptw_scores(y, t, index, xi)))


def iptw_scores(y: Float, t: Float, index: Float, xi: float | None = None) -> Float:
    """What each record adds to the sum in (5), or to its trimmed version (section 3).

    Examples
    --------
    >>> import numpy as np
    >>> iptw_scores(np.array([3.0, 1.0]), np.array([1.0, 0.0]), index=np.zeros(2))
    array([ 6., -2.])
    """
    sign = 2 * t - 1
    # 1 / pi = 1 + exp(-w'x) for the treated, 1 / (1 - pi) = 1 + exp(w'x) for the others: equation (6).
    weight = 1 + np.exp(-sign * index)
    return np.asarray(sign * y * (weight if xi is None else np.minimum(weight, 1 / xi)))


def iptw_bound(largest: float, xi: float) -> float:
    """Largest contribution of a record with abs(y) <= ``largest``. Proof: docs/proofs/propensity.md, lemma 3.

    Examples
    --------
    >>> iptw_bound(largest=1.0, xi=0.1)
    10.0
    """
    return largest / xi


def bias(y: Float, t: Float, x: Float, w: Float, sigma: float) -> float:
    """Lemma 3: g, by which noise of sd ``sigma`` in the weights moves the expectation of (5), without trimming.

    With sigma = 2 sqrt(2 log(1.25 / delta)) / (epsilon m lambda), which is `logistic.output_sd`, this is (7).

    Examples
    --------
    >>> import numpy as np
    >>> y, t, x = np.array([1.0, 1.0]), np.array([1.0, 0.0]), np.array([[0.6], [0.2]])
    >>> round(bias(y, t, x, w=np.zeros(1), sigma=1.0), 3)
    0.089
    """
    sign = 2 * t - 1
    alpha = sign * y * np.exp(-sign * (x @ w))
    return float(np.mean(alpha * np.expm1(sigma**2 * np.einsum("ij,ij->i", x, x) / 2)))


def largest_difference(
    y: Float, t: Float, x: Float, w: Float, sigma: float, gamma: float, *, published: bool = True
) -> float:
    """Lemma 4: xi, by which two estimates with noise of their own differ at most, with probability 1 - gamma.

    Examples
    --------
    >>> import numpy as np
    >>> y, t, x = np.array([1.0, 1.0]), np.array([1.0, 0.0]), np.array([[0.6], [0.2]])
    >>> round(largest_difference(y, t, x, w=np.zeros(1), sigma=0.1, gamma=0.05), 2)
    0.55
    """
    sign = 2 * t - 1
    total = float(np.mean((y if published else np.abs(y)) * np.exp(-sign * (x @ w))))
    reach = noise_reach(sigma, x.shape[1], gamma, published=published)
    # Beyond, the hyperbolic sine is too large a number: the lemma then says nothing.
    factor = 2 * math.sinh(reach) if reach < _MOST_REACH else math.inf
    return factor * total if total else 0.0


def noise_reach(sigma: float, d: int, gamma: float, *, published: bool = True) -> float:
    """zeta of lemma 4, from gamma = 2 exp(-zeta^2 / (2 d sigma^2)); else a bound on abs(z'x) for two draws.

    Examples
    --------
    >>> round(noise_reach(sigma=0.1, d=1, gamma=0.05), 3)
    0.272
    """
    if published:
        return sigma * math.sqrt(2 * d * math.log(2 / gamma))
    from scipy.special import chdtri

    return sigma * math.sqrt(float(chdtri(d, gamma / 2)))


def sign_error_bound(tau: float, g: float, xi: float) -> float:
    """Theorem 5: bound on the probability that the private estimate is not positive although ``tau`` is.

    Examples
    --------
    >>> round(sign_error_bound(tau=1.0, g=0.0, xi=1.0), 3)
    0.135
    >>> sign_error_bound(tau=1.0, g=-2.0, xi=1.0)  # then it says nothing
    1.0
    """
    if not tau + g > 0 or math.isinf(xi):
        return 1.0
    # Beyond a ratio of 100 the exponential is zero in float64, and a larger square might overflow.
    return math.exp(-2 * min((tau + g) / xi, 100.0) ** 2)
