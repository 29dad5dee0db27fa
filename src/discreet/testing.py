"""Tools for simulations and tests, never for releases."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.data._arrays import IntArray
from discreet.exceptions import InvalidInput
from discreet.privacy.gate import Gate, Watcher, _watchers
from discreet.privacy.noise import _generator, _seeded, drawing_is_seeded
from discreet.privacy.query import Released, Round
from discreet.privacy.sensitivity.sets import Geometry


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


Recorded = tuple[str, Geometry, IntArray, float]


@contextmanager
def record_sums() -> Iterator[list[Recorded]]:
    """Keep what every query was before its noise: (name, geometry, integer sums, diameter in grid steps).

    For tests that replay neighbouring data sets. It works inside `seeded_noise` or `frozen_noise` only, because exact
    sums of a real release must not be kept.
    """
    recorded: list[Recorded] = []

    def keep(_: Gate, rounds: tuple[Round, ...]) -> tuple[Released, ...] | None:
        recorded.extend((each.query.name, each.query.geometry, each.exact.copy(), each.diameter) for each in rounds)
        return None

    with watched(keep):
        yield recorded


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Show every question to a watcher, with its exact sums and its noise; what it returns is answered instead.

    It works inside `seeded_noise` or `frozen_noise` only, as `record_sums` does.
    """
    if not drawing_is_seeded():
        raise InvalidInput("record_sums works inside seeded_noise or frozen_noise only; open one of them first.")
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


class _Zeros(np.random.Generator):
    """A generator whose noise is zero."""

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> NDArray[np.float64]:  # type: ignore[override]
        return np.zeros(size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> NDArray[np.float64]:  # type: ignore[override]
        return np.zeros(size)
