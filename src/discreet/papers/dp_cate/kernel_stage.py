"""Second stage of DP-CATE for functions: kernel regression of weighted pseudo-outcomes (15), and the noise of (18).

Functions that take the estimator: its parameters are theirs.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import in_own_unit
from discreet.papers.common.influence import dense, random_points
from discreet.papers.common.losses import Loss, check_loss, loss_of, squares
from discreet.papers.common.nuisances import Nuisances, design
from discreet.papers.dp_cate.equations import Residual, extent, rho, weight_of, weighted_pseudo_outcome
from discreet.papers.dp_cate.kernel_regression import Function, GaussianKernel, Span, Stable, regress
from discreet.papers.dp_cate.pointwise import known_propensity, rng_of

Scaling = Literal["lemma 3", "theorem 2", "unit"]
Penalty = Literal["mean", "sum"]

_POINTS = 20_000
_MOST_BASIS = 2_000


class Second(NamedTuple):
    """The space of the second stage, its loss, and its minimiser."""

    span: Span
    loss: Loss
    stable: Stable


def second_stage(self: Any, rows: Chunk, nuisances: Nuisances, *, clipped: bool) -> Second:
    """Minimise (15). With ``clipped`` weights and pseudo-outcomes are forced into what the bounds allow."""
    bounds, weight, n = self.bounds, weight_of(self.learner), len(rows.t)
    centres = design(random_points(bounds, self.basis, rng_of(self)), bounds)
    span = Span.of(kernel_of(self, centres.shape[1]), centres)
    reach = extent(weight, bounds, known_propensity(self))
    widest = reach.pseudo * bounds.outcome_width
    lam = self.lam / span.kernel.height / (n if self.penalty == "sum" else 1)
    # A minimiser is no worse than zero: lam |b|^2 <= widest^2, which bounds its values (docs/proofs/dp_cate.md).
    domain = widest * (1.0 + reach.rho / math.sqrt(lam))
    loss = loss_of(self.loss, knee=self.knee, reach=widest, domain=domain)
    assert loss.lipschitz is not None
    # A little more than rounding in either factor can add.
    slope = loss.lipschitz * reach.rho * (1.0 + 2.0**-40)
    parts = nuisances.parts(rows.x)
    heavy = rho(rows.t, parts[0], weight)
    target = weighted_pseudo_outcome(in_own_unit(rows.y, bounds), rows.t, parts, weight)
    if clipped:
        heavy, target = np.clip(heavy, 0.0, reach.rho), np.clip(target, -widest, widest)
    elif self.loss == "l2":
        loss = squares()
    psi = span.coordinates(design(rows.x, bounds))
    return Second(span, loss, regress(psi, target, heavy, loss, lam, slope=slope, reach=widest))


def kernel_of(self: Any, q: int) -> GaussianKernel:
    """The Gaussian kernel for q features."""
    h = math.sqrt(q / 2.0) if self.bandwidth is None else float(self.bandwidth)
    power = {"lemma 3": q, "theorem 2": 1, "unit": 0}[self.scaling]
    return GaussianKernel(h, (math.sqrt(2.0 * math.pi) * h) ** -power)


def published_slope(self: Any, second: Second, nuisances: Nuisances, function: Function) -> float:
    """L of Theorem 2: the loss's constant, or the largest slope of a square at the fit over the domain."""
    if second.loss.lipschitz is not None:
        return second.loss.lipschitz
    bounds = self.bounds
    residual = Residual(nuisances, weight_of(self.learner), lambda x: function(design(x, bounds)))
    return 2.0 * dense(residual, bounds, points=_POINTS, rng=rng_of(self))


def noise_scale(L: float, h: float, q: int, lam: float, n: int, epsilon: float, delta: float) -> float:
    """r of (18): what the process is multiplied by, with the power of -q that the text prints."""
    return 4.0 * L * math.sqrt(2.0 * math.log(2.0 / delta)) / ((math.sqrt(2.0 * math.pi) * h) ** q * lam * n * epsilon)


def check_kernel(self: Any) -> None:
    """Refuse parameters of the second stage that make no sense."""
    check_loss(self.loss, self.knee)
    loss_of(self.loss, knee=1.0, reach=1.0, domain=1.0)
    one_of(self, "scaling", get_args(Scaling))
    one_of(self, "penalty", get_args(Penalty))
    for name in ("lam", "bandwidth"):
        value = getattr(self, name)
        if value is None and name == "bandwidth":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InvalidInput(f"{name} must be a positive number: choose it before looking.")
    if isinstance(self.basis, bool) or not isinstance(self.basis, int) or not 1 <= self.basis <= _MOST_BASIS:
        raise InvalidInput(f"basis must be an integer between 1 and {_MOST_BASIS:,}; the paper takes 50.")


def one_of(self: Any, argument: str, allowed: tuple[object, ...]) -> None:
    """Refuse a parameter that is none of these."""
    if getattr(self, argument) not in allowed:
        raise InvalidInput(f"{argument} must be one of {', '.join(map(repr, allowed))}.")
