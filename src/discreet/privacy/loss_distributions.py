"""Composition of mixed noise by privacy loss distributions, on a grid that rounds towards privacy.

The arithmetic is dp-accounting's (connect-the-dots).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from discreet.data._arrays import Float

Deltas: TypeAlias = Callable[[Float], Float]

_POINTS = 50_000
# The Fourier transforms that compose distributions are off by less than this (tests measure it), in either direction.
_FOURIER = 1e-13


def composed(parts: Sequence[tuple[Deltas, float]]) -> tuple[Deltas, float]:
    """Delta as a function of epsilon of all parts together, and the epsilon beyond which it no longer falls.

    A part is such a pair itself: see `discreet.privacy.accountant.Profile`.
    """
    # Imported when first used: it takes two seconds.
    from dp_accounting.pld import pld_pmf

    reach = math.fsum(own for _, own in parts)
    step = reach / _POINTS

    def distribution(deltas_at: Deltas, own: float) -> Any:
        last = math.ceil(own / step)
        at: Float = step * np.arange(last + 1, dtype=np.float64)
        above = np.clip(deltas_at(at), 0.0, 1.0)
        # Neighbours are symmetric, and so are these profiles: the other side follows.
        below = -np.expm1(-at) + np.exp(-at) * above
        deltas = np.concatenate([below[:0:-1], above])
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -last, last, deltas)

    together = distribution(*parts[0])
    for part in parts[1:]:
        together = pld_pmf.compose_pmfs(together, distribution(*part))
    rounding = _FOURIER * len(parts)

    def ideal(at: Float) -> Float:
        # A single number takes the library's fast path.
        deltas = together.get_delta_for_epsilon(float(at[0]) if at.size == 1 else list(at))
        return np.minimum(np.atleast_1d(deltas) + rounding, 1.0)

    return ideal, reach
