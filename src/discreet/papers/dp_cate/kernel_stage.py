"""Second stage of DP-CATE for functions: kernel regression of weighted pseudo-outcomes (15), and the noise of (18)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discreet.data.records import Chunk
from discreet.papers.common.arrays import in_own_unit
from discreet.papers.common.influence import dense, random_points
from discreet.papers.common.losses import Loss, loss_of, squares
from discreet.papers.common.nuisances import Nuisances, design
from discreet.papers.dp_cate.equations import Residual, extent, rho, weight_of, weighted_pseudo_outcome
from discreet.papers.dp_cate.kernel_regression import Function, GaussianKernel, Span, Stable, regress
from discreet.papers.dp_cate.kernel_settings import KernelParameters, KernelSettings, power_of, settings_of
from discreet.papers.dp_cate.pointwise import known_propensity, rng_of

_POINTS = 20_000


class Second(NamedTuple):
    """The space of the second stage, its loss, and its minimiser."""

    span: Span
    loss: Loss
    stable: Stable


def second_stage(
    estimator: KernelParameters, rows: Chunk, nuisances: Nuisances, *, clipped: bool, centre: float = 0.0
) -> Second:
    """Minimise (15) over functions around a released constant, the ``centre``, which the penalty pulls towards.

    With ``clipped`` weights and pseudo-outcomes are forced into what the bounds allow.
    """
    given = settings_of(estimator)
    bounds, weight, n = estimator.bounds, weight_of(given.learner), len(rows.t)
    centres = design(random_points(bounds, estimator.basis, rng_of(estimator)), bounds)
    span = Span.of(kernel_of(given, centres.shape[1]), centres)
    reach = extent(weight, bounds, known_propensity(estimator))
    widest = reach.pseudo * bounds.outcome_width
    lam = given.lam / span.kernel.height / (n if given.penalty == "sum" else 1)
    # What is left of a pseudo-outcome less the centre; rounding cannot add as much as the factor.
    furthest = (widest + reach.rho * abs(centre)) * (1.0 + 2.0**-40)
    # A minimiser is no worse than zero: lam |b|^2 <= furthest^2, which bounds its values (docs/proofs/dp_cate.md).
    domain = furthest * (1.0 + reach.rho / math.sqrt(lam))
    loss = loss_of(given.loss, knee=given.knee, reach=furthest, domain=domain)
    assert loss.lipschitz is not None
    # A little more than rounding in either factor can add.
    slope = loss.lipschitz * reach.rho * (1.0 + 2.0**-40)
    parts = nuisances.parts(rows.x)
    heavy = rho(rows.t, parts[0], weight)
    target = weighted_pseudo_outcome(in_own_unit(rows.y, bounds), rows.t, parts, weight)
    if clipped:
        heavy, target = np.clip(heavy, 0.0, reach.rho), np.clip(target, -widest, widest)
    elif given.loss == "l2":
        loss = squares()
    psi = span.coordinates(design(rows.x, bounds))
    found = regress(psi, target - heavy * centre, heavy, loss, lam, slope=slope, reach=furthest)
    return Second(span, loss, found)


def kernel_of(given: KernelSettings, q: int) -> GaussianKernel:
    """The Gaussian kernel for q features."""
    return GaussianKernel(given.bandwidth, (math.sqrt(2.0 * math.pi) * given.bandwidth) ** -power_of(given.scaling, q))


def published_slope(estimator: KernelParameters, second: Second, nuisances: Nuisances, function: Function) -> float:
    """L of Theorem 2: the loss's constant, or the largest slope of a square at the fit over the domain."""
    if second.loss.lipschitz is not None:
        return second.loss.lipschitz
    bounds = estimator.bounds
    residual = Residual(nuisances, weight_of(settings_of(estimator).learner), lambda x: function(design(x, bounds)))
    return 2.0 * dense(residual, bounds, points=_POINTS, rng=rng_of(estimator))


def noise_scale(L: float, h: float, q: int, lam: float, n: int, epsilon: float, delta: float) -> float:
    """r of (18): what the process is multiplied by, with the power of -q that the text prints."""
    return 4.0 * L * math.sqrt(2.0 * math.log(2.0 / delta)) / ((math.sqrt(2.0 * math.pi) * h) ** q * lam * n * epsilon)
