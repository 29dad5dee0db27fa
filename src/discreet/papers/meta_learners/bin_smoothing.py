"""Noisy sums in bins -> the steps of a shape function. Post-processing: only released numbers come in."""

from __future__ import annotations

import numpy as np

from discreet.data._arrays import Float

# How far the shape of a range stays alike (its codes go from -1 to 1); prior variances in units of ``scale``, and how
# likely each is taken to be: mostly a column adds little.
_REACHES = (0.25, 1.0, 4.0)
_VARIANCES = np.array([0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0])
_PRIOR = np.log(0.5 ** np.arange(8))


def smooth(sums: Float, weight: Float, noise: float, variance: float, scale: float, *, ordered: bool) -> Float:
    """Posterior mean of heights g, where sums ~ N(weight * g, noise^2 + weight * variance).

    The prior is a Gaussian process along the bins of a range and independent for levels. Its size and reach are
    averaged over a grid by their marginal likelihood, so that steps without evidence stay near zero.

    Parameters
    ----------
    sums, weight : arrays of shape (m,)
        Released sums of residuals, and released weights of the same bins, not negative.
    noise : float
        Standard deviation of the noise in the sums.
    variance : float
        Variance of a residual, per unit of weight.
    scale : float
        In which unit prior variances are measured: about a residual's size.
    ordered : bool
        Whether neighbouring bins are alike.
    """
    m = len(sums)
    whiten = 1.0 / np.sqrt(noise**2 + weight * variance)
    design, data = weight * whiten, sums * whiten
    evidence, means = [], []
    for reach in _REACHES if ordered else (0.0,):
        place = np.linspace(-1.0, 1.0, m) if ordered else np.zeros(m)
        kernel = np.exp(-np.abs(place[:, None] - place) / reach) if ordered else np.eye(m)
        values, vectors = np.linalg.eigh(design[:, None] * kernel * design)
        rotated = vectors.T @ data
        sizes = _VARIANCES * scale**2
        variances = 1.0 + sizes[:, None] * np.maximum(values, 0.0)
        evidence.append(_PRIOR - 0.5 * (np.log(variances) + rotated**2 / variances).sum(axis=1))
        means.append(sizes[:, None] * ((vectors @ (rotated / variances).T).T * design) @ kernel)
    log = np.concatenate(evidence)
    share = np.exp(log - log.max())
    return np.asarray(share @ np.concatenate(means) / share.sum())
