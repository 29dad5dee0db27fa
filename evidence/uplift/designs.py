"""A few designs, drawn many times: how often the interval of each single segment holds its truth.

Chosen for being hard: rare events, one segment that differs from all others, unequal arms. Ways to make intervals were
compared on replications from 5,000 on; those below are for reporting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from discreet import Bounds, Uplift, UpliftRelease
from discreet.testing import seeded_noise
from evidence.reproduce.private_ate.noise_runs import noise_seed

STUDY_SEED, NOISE_SEED = 86_000_000, 92_000_000
LEVEL = 0.05
SEGMENTS = 8


class Design(NamedTuple):
    """Eight segments of a binary outcome: chances of an event without treatment, what treatment adds, and the rest."""

    chances: tuple[float, ...]
    gains: tuple[float, ...]
    n: int = 20_000
    treated: float = 0.5
    epsilon: float = 1.0
    known: bool = True
    ordered: bool = False


_FLAT = (0.05,) * SEGMENTS
_ONE = (0.0,) * 5 + (0.03,) + (0.0,) * 2
_RISING = (0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15)
DESIGNS: dict[str, Design] = {
    "5 % events, no effect": Design(_FLAT, (0.0,) * SEGMENTS),
    "5 % events, one segment differs": Design(_FLAT, _ONE),
    "5 % events, one segment differs, ordered segments": Design(_FLAT, _ONE, ordered=True),
    "5 % events, one segment differs, 100,000 records": Design(_FLAT, _ONE, n=100_000),
    "5 % events, one segment differs, 15 % treated": Design(_FLAT, _ONE, treated=0.15, known=False),
    "5 % events, one segment differs, ε = 0.3": Design(_FLAT, _ONE, epsilon=0.3),
    "1 to 15 % events, gains in proportion": Design(_RISING, tuple(0.4 * p for p in _RISING), known=False),
    "1 to 15 % events, 85 % treated, ε = 3": Design(_RISING, (0.02, -0.005) * 4, treated=0.85, epsilon=3.0),
    "40 % events, gains in half of them": Design((0.4,) * SEGMENTS, (0.04, 0.0) * 4, n=50_000),
}


class Drawn(NamedTuple):
    """One replication: which intervals hold, each and all at once, that of the average, widths and errors."""

    held: tuple[bool, ...]
    all_held: bool
    average_held: bool
    width: float
    error: float


def drawn(name: str, replication: int) -> Drawn:
    """Fit one replication of a design."""
    design = DESIGNS[name]
    rng = np.random.default_rng([STUDY_SEED, list(DESIGNS).index(name), replication])
    segment = rng.integers(0, SEGMENTS, design.n)
    t = (rng.random(design.n) < design.treated).astype(np.float64)
    chances, truth = np.array(design.chances), np.array(design.gains)
    y = (rng.random(design.n) < chances[segment] + t * truth[segment]).astype(np.float64)
    bounds = Bounds(outcome=(0, 1), covariates={"x": (0, SEGMENTS), "s": [f"s{k}" for k in range(SEGMENTS)]})
    x = {"x": segment + 0.5, "s": np.array([f"s{k}" for k in range(SEGMENTS)])[segment]}
    with seeded_noise(noise_seed(NOISE_SEED, name, replication)):
        release = (
            Uplift(
                epsilon=design.epsilon,
                bounds=bounds,
                by={"x": SEGMENTS} if design.ordered else {"s": "levels"},
                propensity=design.treated if design.known else None,
            )
            .fit(y, t, X=pa.table(x))
            .release_
        )
    assert isinstance(release, UpliftRelease)
    (low, high), (lowest, highest) = release.interval(LEVEL), release.interval(LEVEL, simultaneous=True)
    first, last = release.ate_interval(LEVEL)
    both = chances + truth
    each = design.n / SEGMENTS
    open_sd = np.sqrt(
        both * (1 - both) / (each * design.treated) + chances * (1 - chances) / (each * (1 - design.treated))
    )
    return Drawn(
        held=tuple(((low <= truth) & (truth <= high)).tolist()),
        all_held=bool(np.all((lowest <= truth) & (truth <= highest))),
        average_held=bool(first <= truth.mean() <= last),
        width=float(np.mean((high - low) / (2 * 1.96 * open_sd))),
        error=float(np.sqrt(np.mean((release.effects - truth) ** 2))),
    )
