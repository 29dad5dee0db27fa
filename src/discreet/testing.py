"""Tools for simulations and tests, never for releases."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.gate import Recorded, _recorder
from discreet.noise import _generator, _seeded, drawing_is_seeded


def seeded_noise(seed: int) -> AbstractContextManager[None]:
    """Draw fast, reproducible noise of the same scale inside a ``with`` block.

    Privacy
    -------
    None: whoever knows the seed can subtract the noise. Everything fitted inside says ``status="test"``.

    Parameters
    ----------
    seed
        Seed of the block; the same seed and the same calls give the same noise.
    """
    return _seeded(seed)


@contextmanager
def frozen_noise() -> Iterator[None]:
    """Draw zeros inside a ``with`` block: what would be released if noise were free.

    Privacy
    -------
    None at all. Everything fitted inside says ``status="test"``.
    """
    token = _generator.set(_Zeros(np.random.PCG64(0)))
    try:
        yield
    finally:
        _generator.reset(token)


@contextmanager
def record_sums() -> Iterator[list[Recorded]]:
    """Keep what every query was before its noise: (name, geometry, integer sums, diameter in grid steps).

    For tests that replay neighbouring data sets. It works inside `seeded_noise` or `frozen_noise` only, because exact
    sums of a real release must not be kept.
    """
    if not drawing_is_seeded():
        raise InvalidInput("record_sums works inside seeded_noise or frozen_noise only; open one of them first.")
    recorded: list[Recorded] = []
    token = _recorder.set(recorded)
    try:
        yield recorded
    finally:
        _recorder.reset(token)


class _Zeros(np.random.Generator):
    """A generator whose noise is zero."""

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> NDArray[np.float64]:  # type: ignore[override]
        return np.zeros(size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> NDArray[np.float64]:  # type: ignore[override]
        return np.zeros(size)
