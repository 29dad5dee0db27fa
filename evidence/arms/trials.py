"""Two real trials of several arms, and how wide intervals are beside those of the arms' plain means without privacy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from discreet import ATE, Bounds, DifferenceInMeans
from discreet.datasets.marketing import HILLSTROM_BOUNDS, HILLSTROM_FILE
from discreet.datasets.observational import data_file
from discreet.datasets.voters import LETTERS, SOCIAL_PRESSURE_FILE, VOTERS
from discreet.testing import seeded_noise

EPSILON, DELTA = 1.0, 1e-6
NOISE_SEED = 90_000_000


@dataclass(frozen=True)
class RealTrial:
    """A real trial: records, arms and the probabilities that they were drawn with."""

    Y: Any
    T: Any
    X: Any
    bounds: Bounds
    probabilities: tuple[float, ...]


def hillstrom(outcome: str, declared: Any) -> RealTrial:
    """Customers with an e-mail about men's goods, one about women's, or none: a third each."""
    table = pd.read_csv(data_file(HILLSTROM_FILE, None))
    arms = ["No E-Mail", "Mens E-Mail", "Womens E-Mail"]
    bounds = Bounds(outcome=declared, covariates=dict(HILLSTROM_BOUNDS), treatment=arms)
    return RealTrial(table[outcome], table["segment"], table[list(HILLSTROM_BOUNDS)], bounds, (1 / 3,) * 3)


def social_pressure() -> RealTrial:
    """Voters with one of four letters, a ninth each, or none."""
    table = pd.read_csv(data_file(SOCIAL_PRESSURE_FILE, None))
    bounds = Bounds(outcome=[0, 1], covariates=dict(VOTERS), treatment=["No Postcard", *LETTERS.values()])
    return RealTrial(
        table["primary_06"], table["treatment"], table[list(VOTERS)], bounds, (5 / 9, *(1 / 9 for _ in LETTERS))
    )


# Name, how it is loaded, and whether its widths have an aim.
TRIALS = {
    "Hillstrom, visit": lambda: hillstrom("visit", [0, 1]),
    "social pressure, vote": social_pressure,
    "Hillstrom, conversion": lambda: hillstrom("conversion", [0, 1]),
    "Hillstrom, spend": lambda: hillstrom("spend", (0.0, 500.0)),
}
AIMED = ("Hillstrom, visit", "social pressure, vote")


@dataclass(frozen=True)
class TrialLine:
    """One trial by one estimator: mean and largest width, and shares of contrasts that hold the plain difference."""

    trial: str
    estimator: str
    mean: float
    most: float
    held: float


def measure(name: str, draws: int) -> list[TrialLine]:
    """Widths of 95 % intervals over those of plain means without privacy, over draws of noise."""
    trial = TRIALS[name]()
    arms = trial.bounds.arms.levels
    means = {arm: float(trial.Y[arm == trial.T].mean()) for arm in arms}
    errors = {arm: float(trial.Y[arm == trial.T].var() / (arm == trial.T).sum()) for arm in arms}
    plain = {
        (second, first): 2 * 1.96 * float(np.sqrt(errors[first] + errors[second]))
        for first, second in combinations(arms, 2)
    }
    lines = []
    for which in (DifferenceInMeans, ATE):
        wide, held = [], []
        for draw in range(draws):
            made = which(epsilon=EPSILON, delta=DELTA, bounds=trial.bounds, propensity=list(trial.probabilities))
            with seeded_noise(NOISE_SEED + draw):
                release: Any = made.fit(trial.Y, trial.T, X=trial.X).release_
            rows = release.contrasts()
            wide.append([(row.high - row.low) / plain[row.arm, row.against] for row in rows])
            held += [row.low <= means[row.arm] - means[row.against] <= row.high for row in rows]
        by_pair = np.mean(wide, axis=0)
        lines.append(TrialLine(name, which.__name__, float(by_pair.mean()), float(by_pair.max()), float(np.mean(held))))
    return lines
