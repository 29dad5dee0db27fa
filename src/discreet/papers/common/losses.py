"""Convex losses with a known Lipschitz constant, for regressions whose stability rests on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput

# L1 is rounded off at zero over this share of the residual's range: still convex, still with slopes of at most 1.
_KNEE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A convex loss of a residual u.

    Parameters
    ----------
    name
        For people.
    value, slope, curvature
        The loss and its derivatives, at arrays of residuals; the curvature may be that of either side at kinks.
    lipschitz
        Largest size of a slope; None where there is none on the whole line.
    most_curvature
        Largest curvature, where a certificate is wanted.
    softer
        The same loss, with slopes no larger, rounded off over a range that is so many times as wide.

    Examples
    --------
    >>> import numpy as np
    >>> logcosh = Loss(
    ...     name="logcosh",
    ...     value=lambda u: np.log(np.cosh(u)),
    ...     slope=np.tanh,
    ...     curvature=lambda u: 1 - np.tanh(u) ** 2,
    ...     lipschitz=1.0,
    ... )
    >>> logcosh.slope(np.array([0.0, 1.0])).round(2)
    array([0.  , 0.76])
    """

    name: str
    value: Callable[[Float], Float]
    slope: Callable[[Float], Float]
    curvature: Callable[[Float], Float]
    lipschitz: float | None = None
    most_curvature: float = math.inf
    softer: Callable[[float], Loss] | None = None


def huber(knee: float, scale: float = 1.0, name: str = "huber") -> Loss:
    """u^2 / 2 up to the knee and linear beyond, times a scale; slopes are clipped to knee * scale.

    Examples
    --------
    >>> import numpy as np
    >>> huber(knee=1.0).value(np.array([0.5, 3.0]))
    array([0.125, 2.5  ])
    """

    def value(u: Float) -> Float:
        size = np.abs(u)
        return np.asarray(scale * np.where(size <= knee, u**2 / 2.0, knee * (size - knee / 2.0)))

    def slope(u: Float) -> Float:
        return np.asarray(scale * np.clip(u, -knee, knee))

    def curvature(u: Float) -> Float:
        return scale * (np.abs(u) <= knee).astype(np.float64)

    return Loss(
        name=name,
        value=value,
        slope=slope,
        curvature=curvature,
        lipschitz=scale * knee,
        most_curvature=scale,
        softer=lambda times: huber(times * knee, scale / times, name),
    )


def squares() -> Loss:
    """u^2, which has no Lipschitz constant on the whole line."""
    return Loss(
        name="l2",
        value=lambda u: u**2,
        slope=lambda u: 2.0 * u,
        curvature=lambda u: np.full_like(u, 2.0),
        most_curvature=2.0,
    )


def loss_of(given: str | Loss, *, knee: float, reach: float, domain: float) -> Loss:
    """A loss by name.

    "l1", "huber" (knee), "truncated-l2" (u^2 up to the knee, then linear, so that it stays convex), and "l2", which is
    linear beyond ``domain``: no residual of a minimiser leaves it, so that the minimiser is that of u^2.

    Parameters
    ----------
    given
        The name, or a loss.
    knee
        Of "huber" and "truncated-l2".
    reach
        Bound on residuals where the fitted function is zero.
    domain
        Bound on residuals of the minimiser of "l2".

    Examples
    --------
    >>> loss_of("huber", knee=1.0, reach=5.0, domain=10.0).lipschitz
    1.0
    """
    if isinstance(given, Loss):
        return given
    if given == "l1":
        rounded = _KNEE * reach
        return huber(rounded, 1.0 / rounded, "l1")
    if given == "huber":
        return huber(knee)
    if given == "truncated-l2":
        return huber(knee, 2.0, "truncated-l2")
    if given == "l2":
        return huber(domain, 2.0, "l2")
    raise InvalidInput("loss must be 'l1', 'huber', 'truncated-l2', 'l2' or a Loss: choose one.")


def check_loss(given: object, knee: object) -> None:
    """Refuse a loss that has no Lipschitz constant, and a knee that is no positive number."""
    if isinstance(given, Loss):
        constant = given.lipschitz
        if constant is None or isinstance(constant, bool) or not 0 < constant < math.inf:
            raise InvalidInput("loss has no Lipschitz constant: give lipschitz=, a bound on its slope, or another.")
    if isinstance(knee, bool) or not isinstance(knee, int | float) or not 0 < knee < math.inf:
        raise InvalidInput("knee must be a positive number in the unit of the outcome: choose it before looking.")
