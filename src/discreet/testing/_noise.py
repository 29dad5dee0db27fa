"""Other noise than that of releases, and exact sums: for simulations and replays."""

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
from discreet.privacy.sensitivity.fixed_point import SensitivitySet

__all__ = ["frozen_noise", "record_sums", "seeded_noise", "watched"]


def seeded_noise(seed: int) -> AbstractContextManager[None]:
    """Draw fast, reproducible noise of the same scale inside a ``with`` block.

    Privacy
    -------
    None: whoever knows the seed can subtract the noise. Everything fitted inside says ``status="test"``.

    Parameters
    ----------
    seed
        Seed of the block; the same seed and the same calls give the same noise.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> estimator = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds)
    >>> with seeded_noise(0):
    ...     one = estimator.fit(trial.Y, trial.T, X=trial.X).ate_
    >>> with seeded_noise(0):
    ...     other = estimator.fit(trial.Y, trial.T, X=trial.X).ate_
    >>> one == other, estimator.guarantee_.status
    (True, 'test')
    """
    return _seeded(seed)


@contextmanager
def frozen_noise() -> Iterator[None]:
    """Draw zeros inside a ``with`` block: what would be released if noise were free.

    Privacy
    -------
    None at all. Everything fitted inside says ``status="test"``.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> estimator = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds, propensity=0.5)
    >>> with frozen_noise():
    ...     exact = estimator.fit(trial.Y, trial.T, X=trial.X).ate_
    >>> bool(abs(exact - (trial.Y[trial.T == 1].mean() - trial.Y[trial.T == 0].mean())) < 0.01)
    True
    """
    token = _generator.set(_Zeros(np.random.PCG64(0)))
    try:
        yield
    finally:
        _generator.reset(token)


Recorded = tuple[str, SensitivitySet, IntArray, float]


@contextmanager
def record_sums() -> Iterator[list[Recorded]]:
    """Keep what every query was before its noise: (name, geometry, integer sums, diameter in grid steps).

    For tests that replay neighbouring data sets. It works inside `seeded_noise` or `frozen_noise` only, because exact
    sums of a real release must not be kept.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> estimator = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds)
    >>> with seeded_noise(0), record_sums() as sums:
    ...     _ = estimator.fit(trial.Y, trial.T, X=trial.X)
    >>> len(sums) == len(estimator.guarantee_.events)
    True
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

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial, names = private_ci_rct(n=200, seed=1), []
    >>> def note(gate, rounds):
    ...     names.extend(each.query.name for each in rounds)
    >>> with seeded_noise(0), watched(note):
    ...     _ = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X)
    >>> names[-1]
    'effect by level'
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
