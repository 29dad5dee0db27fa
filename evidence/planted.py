"""Eight bugs planted in the library, one at a time: what an audit must catch, or it proves nothing.

Each is a context manager that breaks something for as long as it is open, and names the instrument that has to
catch it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np

from discreet import ATE
from discreet.audit._configurations import public_facts
from discreet.audit._replay import ReplaySettings, replay
from discreet.audit.attacks import Run
from discreet.audit.attacks.pairs import on_pair
from discreet.audit.result import AuditResult
from discreet.estimators.measurements.score import ScoreRounds
from discreet.privacy import gate, noise
from discreet.privacy.sensitivity import fixed_point as lattice
from discreet.privacy.sensitivity import sets as geometry


class Planted(NamedTuple):
    """A bug, and which instrument finds it."""

    plant: Callable[[], AbstractContextManager[None]]
    instrument: str
    words: str


@contextmanager
def _patched(*patches: tuple[Any, str, Any]) -> Iterator[None]:
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
    # Plans of rounds are kept from fit to fit: neither right nor wrong ones may outlive the change.
    lattice.plan_noise.cache_clear()
    for owner, name, value in patches:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
        lattice.plan_noise.cache_clear()


def noise_halved() -> AbstractContextManager[None]:
    """Half of the noise that the events state is drawn."""
    drawn = gate._drawn
    return _patched((gate, "_drawn", lambda exact, grid, scale, pure: drawn(exact, grid, scale / 2, pure)))


def diameter_halved() -> AbstractContextManager[None]:
    """A ball states half of its diameter, and everything that follows from it is consistent."""
    right = geometry.Ball.grid

    def halved(self: Any, grid_bits: int, neighbours: Any) -> Any:
        grid = right(self, grid_bits, neighbours)
        return dataclasses.replace(grid, l2=grid.l2 / 2, l1=grid.l1 / 2)

    return _patched((geometry.Ball, "grid", halved))


def clip_removed() -> AbstractContextManager[None]:
    """Numbers of which nothing else holds the extremes are put on the grid without being clipped to their interval."""
    right = geometry.Interval.grid

    def grid(self: Any, grid_bits: int, neighbours: Any) -> Any:
        made = right(self, grid_bits, neighbours)

        def add(values: Any) -> Any:
            steps = np.rint((np.nan_to_num(lattice.floats(values)) - made.shift) / made.units)
            return np.array([steps.sum()]).astype(np.int64)

        return dataclasses.replace(made, add=add)

    return _patched((geometry.Interval, "grid", grid))


def nan_passes() -> AbstractContextManager[None]:
    """A score is not defined for the largest outcome, and its clip lets NaN through."""
    residual = ScoreRounds.residual

    def undefined(self: Any, c: Any, answers: Any) -> Any:
        return np.where(c.y >= 1.0, np.nan, residual(self, c, answers))

    return _patched((geometry.MeanSquare, "grid", _leaky_grid()), (ScoreRounds, "residual", undefined))


def _leaky_grid() -> Any:
    """The grid of `MeanSquare` with a clip that leaves NaN alone."""
    right = geometry.MeanSquare.grid

    def grid(self: Any, grid_bits: int, neighbours: Any) -> Any:
        edge = 2.0 ** (grid_bits - 1)

        def add(values: Any) -> Any:
            with np.errstate(invalid="ignore"):
                steps = np.rint(np.clip(lattice.floats(values), -self.bound, self.bound) * (edge / self.bound))
                return np.array([steps.sum(), np.rint(steps * steps * (geometry._FREE / edge)).sum()]).astype(np.int64)

        return dataclasses.replace(right(self, grid_bits, neighbours), add=add)

    return grid


def share_spent_twice() -> AbstractContextManager[None]:
    """A round is forgotten as soon as it is answered, so that its share can be spent again."""
    ask = gate.Gate.ask

    def forgetful(self: Any, *queries: Any) -> Any:
        account = self._account
        before = account.events, account.shares
        released = ask(self, *queries)
        if before[0] and not hasattr(self, "forgot"):
            self.forgot = True
            account.events, account.shares = before
        return released

    return _patched((gate.Gate, "ask", forgetful))


def noise_reused() -> AbstractContextManager[None]:
    """The first numbers that were drawn serve all rounds."""
    right: Any = vars(gate)["discrete_gaussian"]
    kept: list[Any] = []

    def reused(sums: Any, sigma: float) -> Any:
        if not kept:
            kept.append(right(np.zeros(4_096, dtype=np.int64), sigma) / sigma)
        return sums + np.rint(np.resize(kept[0], sums.shape) * sigma).astype(np.int64)

    return _patched((gate, "discrete_gaussian", reused))


def statistic_without_noise() -> AbstractContextManager[None]:
    """A release holds the exact mean of the outcomes."""
    fit = ATE.fit

    def fitted(self: Any, Y: Any, T: Any, **given: Any) -> Any:
        found = fit(self, Y, T, **given)
        reference = found.release_.reference | {"mean_outcome": float(np.mean(np.clip(Y, *self.bounds.outcome)))}
        found.release_ = dataclasses.replace(found.release_, reference=reference)
        return found

    return _patched((ATE, "fit", fitted))


def seed_fixed() -> AbstractContextManager[None]:
    """Every draw starts from the same seed."""

    def fixed(kind: str, sums: Any, scale: float) -> Any:
        drawn = getattr(np.random.default_rng(1), {"gaussian": "normal"}.get(kind, kind))(0.0, scale, sums.shape)
        return sums + np.rint(drawn).astype(np.int64)

    return _patched((noise, "_exact", fixed))


PLANTED = {
    "noise halved": Planted(noise_halved, "replay", "the noise of a round is smaller than stated"),
    "diameter halved": Planted(diameter_halved, "replay", "a round moves twice its diameter"),
    "clip removed": Planted(clip_removed, "replay", "a round moves beyond its diameter"),
    "NaN passes the clip": Planted(nan_passes, "replay", "sums overflow, after questions had been answered"),
    "a share spent twice": Planted(share_spent_twice, "replay", "a round is not in the guarantee"),
    "noise reused across rounds": Planted(noise_reused, "replay", "two rounds drew the same noise"),
    "a statistic returned without noise": Planted(
        statistic_without_noise, "replay", "neighbours publish other numbers"
    ),
    "fixed seed in the noise": Planted(seed_fixed, "black box", "the same numbers come out again and again"),
}


def estimator() -> ATE:
    """What the bugs are planted in: the rounds, geometries and noise that all proved estimators share."""
    return ATE(epsilon=1.0, delta=1e-6, bounds=public_facts(3))


def audited(name: str) -> AuditResult:
    """What the instrument that has to catch a bug says while it is planted."""
    bug = PLANTED[name]
    with bug.plant():
        return result_of(bug.instrument)


def result_of(instrument: str) -> AuditResult:
    """One instrument's result on the estimator as it is now."""
    # Nearly everybody is alike, so that nobody but the replaced record is extreme; and there are enough of them to know
    # how alike: the one round that nothing but its set clips is held to where outcomes then are.
    result, worst = replay(estimator(), ReplaySettings(n=4_000, kinds=("concentrated",), generations=2))
    if instrument == "replay":
        return result
    assert worst is not None
    return on_pair(estimator(), worst, Run(80, 0.999))
