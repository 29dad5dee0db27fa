"""Second stage of DP-CATE for functions: kernel regression of weighted pseudo-outcomes (15), and the noise of (18).

Functions that take the estimator: its parameters are theirs.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import in_own_unit
from discreet.papers.common.influence import dense, random_points
from discreet.papers.common.losses import Loss, check_loss, loss_of, squares
from discreet.papers.common.nuisances import Nuisances, design
from discreet.papers.dp_cate.equations import Residual, extent, rho, weight_of, weighted_pseudo_outcome
from discreet.papers.dp_cate.kernel_regression import Function, GaussianKernel, Span, Stable, regress
from discreet.papers.dp_cate.pointwise import CommonParameters, known_propensity, rng_of

Scaling = Literal["lemma 3", "theorem 2", "unit"]
Penalty = Literal["mean", "sum"]

_POINTS = 20_000
_MOST_BASIS = 2_000
# Largest logarithm of a kernel's height, up or down, that leaves room for its products among floating-point numbers.
_HIGHEST = 650.0


class Second(NamedTuple):
    """The space of the second stage, its loss, and its minimiser."""

    span: Span
    loss: Loss
    stable: Stable


class KernelParameters(CommonParameters, Protocol):
    """Parameters of the second stage."""

    @property
    def loss(self) -> str | Loss: ...

    @property
    def knee(self) -> float: ...

    @property
    def lam(self) -> float: ...

    @property
    def penalty(self) -> Penalty: ...

    @property
    def bandwidth(self) -> float | None: ...

    @property
    def scaling(self) -> Scaling: ...

    @property
    def basis(self) -> int: ...


def second_stage(estimator: KernelParameters, rows: Chunk, nuisances: Nuisances, *, clipped: bool) -> Second:
    """Minimise (15). With ``clipped`` weights and pseudo-outcomes are forced into what the bounds allow."""
    bounds, weight, n = estimator.bounds, weight_of(estimator.learner), len(rows.t)
    centres = design(random_points(bounds, estimator.basis, rng_of(estimator)), bounds)
    span = Span.of(kernel_of(estimator, centres.shape[1]), centres)
    reach = extent(weight, bounds, known_propensity(estimator))
    widest = reach.pseudo * bounds.outcome_width
    lam = estimator.lam / span.kernel.height / (n if estimator.penalty == "sum" else 1)
    # A minimiser is no worse than zero: lam |b|^2 <= widest^2, which bounds its values (docs/proofs/dp_cate.md).
    domain = widest * (1.0 + reach.rho / math.sqrt(lam))
    loss = loss_of(estimator.loss, knee=estimator.knee, reach=widest, domain=domain)
    assert loss.lipschitz is not None
    # A little more than rounding in either factor can add.
    slope = loss.lipschitz * reach.rho * (1.0 + 2.0**-40)
    parts = nuisances.parts(rows.x)
    heavy = rho(rows.t, parts[0], weight)
    target = weighted_pseudo_outcome(in_own_unit(rows.y, bounds), rows.t, parts, weight)
    if clipped:
        heavy, target = np.clip(heavy, 0.0, reach.rho), np.clip(target, -widest, widest)
    elif estimator.loss == "l2":
        loss = squares()
    psi = span.coordinates(design(rows.x, bounds))
    return Second(span, loss, regress(psi, target, heavy, loss, lam, slope=slope, reach=widest))


def kernel_of(estimator: KernelParameters, q: int) -> GaussianKernel:
    """The Gaussian kernel for q features."""
    h = bandwidth_of(estimator, q)
    power = {"lemma 3": q, "theorem 2": 1, "unit": 0}[estimator.scaling]
    return GaussianKernel(h, (math.sqrt(2.0 * math.pi) * h) ** -power)


def published_slope(estimator: KernelParameters, second: Second, nuisances: Nuisances, function: Function) -> float:
    """L of Theorem 2: the loss's constant, or the largest slope of a square at the fit over the domain."""
    if second.loss.lipschitz is not None:
        return second.loss.lipschitz
    bounds = estimator.bounds
    residual = Residual(nuisances, weight_of(estimator.learner), lambda x: function(design(x, bounds)))
    return 2.0 * dense(residual, bounds, points=_POINTS, rng=rng_of(estimator))


def noise_scale(L: float, h: float, q: int, lam: float, n: int, epsilon: float, delta: float) -> float:
    """r of (18): what the process is multiplied by, with the power of -q that the text prints."""
    return 4.0 * L * math.sqrt(2.0 * math.log(2.0 / delta)) / ((math.sqrt(2.0 * math.pi) * h) ** q * lam * n * epsilon)


def check_kernel(estimator: KernelParameters) -> None:
    """Refuse parameters of the second stage that make no sense."""
    check_loss(estimator.loss, estimator.knee)
    loss_of(estimator.loss, knee=1.0, reach=1.0, domain=1.0)
    one_of("scaling", estimator.scaling, get_args(Scaling))
    one_of("penalty", estimator.penalty, get_args(Penalty))
    positive: dict[str, object] = {"lam": estimator.lam}
    positive |= {} if estimator.bandwidth is None else {"bandwidth": estimator.bandwidth}
    for name, value in positive.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InvalidInput(f"{name} must be a positive number: choose it before looking.")
    _check_height(estimator)
    basis: object = estimator.basis
    if isinstance(basis, bool) or not isinstance(basis, int) or not 1 <= basis <= _MOST_BASIS:
        raise InvalidInput(f"basis must be an integer between 1 and {_MOST_BASIS:,}; the paper takes 50.")


def _check_height(estimator: KernelParameters) -> None:
    """Refuse, before anything is charged, what floating-point numbers cannot hold: (sqrt(2 pi) h)^-q in (18)."""
    q = design(np.zeros((1, estimator.bounds.p)), estimator.bounds).shape[1]
    if q * abs(math.log(math.sqrt(2.0 * math.pi) * bandwidth_of(estimator, q))) > _HIGHEST:
        raise InvalidInput(
            f"bounds: the height of a Gaussian kernel over {q} features, (sqrt(2 pi) h) to the power of minus {q}, is "
            "no number that a computer holds. Declare fewer covariates, or set bandwidth=0.4."
        )


def bandwidth_of(estimator: KernelParameters, q: int) -> float:
    """h for q features."""
    return math.sqrt(q / 2.0) if estimator.bandwidth is None else float(estimator.bandwidth)


def one_of(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a parameter that is none of these."""
    if value not in allowed:
        raise InvalidInput(f"{argument} must be one of {', '.join(map(repr, allowed))}.")
