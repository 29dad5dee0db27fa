"""The only module that draws noise.

Noise is integer noise on integer sums, from OpenDP's exact samplers: no floating-point number is drawn for a proved
release, so none of its bits can tell anything. Simulations may draw fast seeded noise instead, inside
``discreet.testing.seeded_noise``. Published mechanisms that ask for floating-point noise get it from
`published_gaussian` and its siblings, and are never called proved.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exceptions import InvalidInput

# A context variable, as for seeded noise: a fit in another thread or task has its own.
_due: ContextVar[Callable[[], None] | None] = ContextVar("discreet_charge", default=None)


def charge_first() -> None:
    """Make what this fit costs durable, unless it is so already."""
    due = _due.get()
    if due is not None:
        due()


@contextmanager
def charged_by(charge: Callable[[], None]) -> Iterator[None]:
    """Have ``charge`` called before every draw inside a ``with`` block; it must be quick from its second call on."""
    token = _due.set(charge)
    try:
        yield
    finally:
        _due.reset(token)


IntArray = NDArray[np.int64]
# Below 2**24 the lattice would show in the accounting; above 2**57 sum and noise could leave 64 bits.
MIN_SCALE = 2.0**24
MAX_SCALE = 2.0**57
MAX_SUM = 2**62
# A context variable, so that a thread or task that did not ask for seeded noise never gets it.
_generator: ContextVar[np.random.Generator | None] = ContextVar("discreet_seeded_noise", default=None)


def discrete_gaussian(sums: IntArray, sigma: float) -> IntArray:
    """Add independent discrete Gaussian noise to every integer.

    Parameters
    ----------
    sums
        One-dimensional int64 array of exact sums, each at most 2**62 in absolute value.
    sigma
        Scale of the noise in the same (grid) units, between 2**24 and 2**57.

    Privacy
    -------
    The draw is mu-GDP for mu = L2 diameter / sigma, up to ``accounting.lattice_slack``, and exactly mu**2/2-zCDP.
    """
    sums, scale = _checked(sums, sigma, "sigma")
    charge_first()
    generator = _generator.get()
    if generator is not None:
        return _rounded(sums, generator.normal(scale=scale, size=sums.shape))
    return _exact("gaussian", sums, scale)


def discrete_laplace(sums: IntArray, scale: float) -> IntArray:
    """Add independent discrete Laplace noise to every integer.

    Parameters
    ----------
    sums
        One-dimensional int64 array of exact sums, each at most 2**62 in absolute value.
    scale
        Scale of the noise in the same (grid) units, between 2**24 and 2**57.

    Privacy
    -------
    The draw is exactly epsilon-DP for epsilon = L1 diameter / scale.
    """
    sums, scale = _checked(sums, scale, "scale")
    charge_first()
    generator = _generator.get()
    if generator is not None:
        return _rounded(sums, generator.laplace(scale=scale, size=sums.shape))
    return _exact("laplace", sums, scale)


def published_gaussian(size: int | tuple[int, ...], sd: float) -> NDArray[np.float64]:
    """Floating-point Gaussian noise, for `discreet.papers` alone.

    Parameters
    ----------
    size
        Shape of the draw.
    sd
        Standard deviation, any number that is not negative.

    Privacy
    -------
    None that is proved: the bits of a float may tell what it was added to.
    """
    if not 0 <= sd < math.inf:
        raise InvalidInput("sd must be a finite number that is not negative; check how the noise was calibrated.")
    charge_first()
    generator = _generator.get()
    # Fresh entropy of the operating system: nobody can ask for these numbers again.
    return (generator if generator is not None else np.random.default_rng()).normal(scale=sd, size=size)


def published_laplace(size: int | tuple[int, ...], scale: float) -> NDArray[np.float64]:
    """Floating-point Laplace noise, for `discreet.papers` alone.

    Parameters
    ----------
    size
        Shape of the draw.
    scale
        Scale, any number that is not negative.

    Privacy
    -------
    None that is proved, as with `published_gaussian`.
    """
    return _published(scale).laplace(scale=scale, size=size)


def published_gamma(size: int, scale: float) -> NDArray[np.float64]:
    """A floating-point vector b with a density proportional to exp(-norm(b) / scale), for `discreet.papers` alone.

    Privacy
    -------
    None that is proved, as with `published_gaussian`.
    """
    generator = _published(scale)
    direction = generator.normal(size=size)
    length = float(np.sqrt(direction @ direction))
    return direction * (generator.gamma(size, scale) / length) if length else direction


def _published(scale: float) -> np.random.Generator:
    if not 0 <= scale < math.inf:
        raise InvalidInput("scale must be a finite number that is not negative; check how the noise was calibrated.")
    charge_first()
    generator = _generator.get()
    return generator if generator is not None else np.random.default_rng()


def drawing_is_seeded() -> bool:
    """Whether noise drawn now would be reproducible, and therefore not private."""
    return _generator.get() is not None


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    token = _generator.set(np.random.default_rng(seed))
    try:
        yield
    finally:
        _generator.reset(token)


def _checked(sums: IntArray, scale: float, argument: str) -> tuple[IntArray, float]:
    scale = float(scale)
    # Written so that NaN is refused too. OpenDP itself takes a scale of zero and returns the exact data.
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise InvalidInput(
            f"{argument} must lie between 2**24 and 2**57 grid units; rescale the sums to a finer or coarser grid, "
            "or spend less of the budget."
        )
    if not isinstance(sums, np.ndarray) or sums.dtype != np.int64 or sums.ndim != 1:
        raise InvalidInput("sums must be a one-dimensional int64 array; put the records on the integer grid first.")
    if sums.size and (int(sums.min()) < -MAX_SUM or int(sums.max()) > MAX_SUM):
        raise InvalidInput("sums may not exceed 2**62 in absolute value; use a coarser grid for this many records.")
    return sums, scale


def _rounded(sums: IntArray, noise: NDArray[np.float64]) -> IntArray:
    # Laplace tails may reach beyond 64 bits at the largest scale: saturate, as the exact samplers do.
    limit = np.iinfo(np.int64).max - MAX_SUM
    noise = np.rint(noise)
    inside = np.abs(noise) < float(limit)
    whole = np.where(inside, noise, 0.0).astype(np.int64)
    whole = np.where(inside, whole, np.where(noise > 0, limit, -limit))
    added: IntArray = sums + whole
    return added


def _exact(kind: str, sums: IntArray, scale: float) -> IntArray:
    measurement = _makers()[kind](scale)
    return np.asarray(measurement(np.ascontiguousarray(sums)), dtype=np.int64)


@cache
def _makers() -> dict[str, Callable[[float], Any]]:
    # Imported when first used and piece by piece: the prelude takes two seconds.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    integers = vector_domain(atom_domain(T="i64"))

    def gaussian(scale: float) -> Any:
        return make_gaussian(integers, l2_distance(T="f64"), scale=scale)

    def laplace(scale: float) -> Any:
        return make_laplace(integers, l1_distance(T="f64"), scale=scale)

    return {"gaussian": gaussian, "laplace": laplace}
