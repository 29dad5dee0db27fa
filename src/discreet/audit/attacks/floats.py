"""Floating-point noise: which numbers can come out at all depends on what the noise was added to.

Mironov, "On significance of the least significant bits for differential privacy" (2012). NumPy draws a uniform number
u on multiples of 2^-53 and adds -scale log(2 - 2u) or scale log(2u): few floats near the mode can be reached, and they
are others for 0 than for 1. An event that never happens on one data set and often on the other refutes every epsilon.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.audit._black_box import bounds_of
from discreet.audit.attacks.base import Attack, Claim, LowerBounds, Run, judged
from discreet.audit.mechanism import Mechanism
from discreet.audit.result import AuditResult
from discreet.data._arrays import Float
from discreet.privacy.budget import Budget
from discreet.privacy.noise import published_laplace
from discreet.testing import seeded_noise

_NAME = "numpy.random.Generator.laplace"
_GRID = 2.0**53
# Multiples of 2^-53 beside the one that would give an output: rounding moves it by a few at most.
_NEAR = np.arange(-8, 9)
# NumPy's generators call the C library's logarithm; its arrays have one of their own, which differs in the last bit.
_LOG = np.vectorize(math.log, otypes=[np.float64])


def reachable(outputs: Float, exact: float, scale: float) -> Any:
    """Whether outputs can be ``exact`` plus Laplace noise as NumPy draws it."""
    noise = outputs - exact
    below = noise < 0
    u = np.where(below, np.exp(np.minimum(noise, 0.0) / scale) / 2, 1.0 - np.exp(-np.maximum(noise, 0.0) / scale) / 2)
    near = np.clip(np.rint(u * _GRID)[:, None] + _NEAR, 1.0, _GRID - 1) / _GRID
    upper = near >= 0.5
    logarithm = _LOG(np.where(upper, 2.0 - near - near, near + near))
    drawn = np.where(upper, 0.0 - scale * logarithm, 0.0 + scale * logarithm)
    return np.any(exact + drawn == outputs[:, None], axis=1)


def support(mechanism: Mechanism, run: Run) -> AuditResult:
    """Count outputs near the mode that the other data set cannot give."""
    claimed, scale = Budget(epsilon=mechanism.epsilon), 1.0 / mechanism.epsilon
    hits, near = [], []
    for world, exact in enumerate(mechanism.pair):
        other = mechanism.pair[1 - world]
        with seeded_noise(7_919 * (run.random_state + 1) + world):
            outputs = mechanism.run((exact, run.trials))
        close = np.abs(outputs - exact) < scale / 2
        betrayed = ~reachable(outputs, other, scale)
        # A check of the check: what was drawn can be drawn.
        assert bool(np.all(reachable(outputs, exact, scale)))
        hits.append(int(betrayed.sum()))
        near.append((int(np.sum(betrayed & close)), int(close.sum())))
    # "Cannot come from one" happens on one never, by construction; counted as if that were not known.
    best = int(np.argmax(hits))
    first, second = (hits[best], run.trials), (0, run.trials)
    # One of two data sets was chosen by the counts themselves: half of the error for either.
    epsilon, delta = bounds_of((first, second), claimed.epsilon, 0.0, (1 + run.confidence) / 2)
    shares = [100 * count / total for count, total in near]
    claim = Claim(estimator=mechanism, attack="float_laplace", budget=claimed)
    return judged(
        claim,
        "black box",
        LowerBounds(epsilon=epsilon, delta=delta, confidence=run.confidence, trials=2 * run.trials),
        worst="a sum of 0, and a sum of 1",
        notes=(
            f"within half a scale of the mode, {shares[0]:.3g} % of outputs from 0 cannot come from 1, and "
            f"{shares[1]:.3g} % of those from 1 cannot come from 0.",
        ),
        picture={"kind": "bars", "labels": ["from 0: not from 1", "from 1: not from 0"], "values": shares, "unit": "%"},
    )


def _make(budget: Budget) -> Mechanism:
    def run(asked: tuple[float, int]) -> Float:
        exact, count = asked
        return exact + published_laplace(count, 1.0 / budget.epsilon)

    return Mechanism(run=run, epsilon=budget.epsilon, pair=(0.0, 1.0), neighbours="add-remove", name=_NAME)


ATTACKS = (
    Attack(
        name="float_laplace",
        mechanism=_NAME,
        title="Which floats can come out depends on what the noise was added to.",
        setting="A count with float64 Laplace noise, drawn as NumPy draws it; counts of 0 and 1. Releases of discreet "
        "add integers to integers, where every sum can be reached from every other.",
        budget=Budget(epsilon=1.0),
        trials=20_000,
        make=_make,
        run_=support,
    ),
)
