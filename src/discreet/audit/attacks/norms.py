"""Vector noise whose length is that of a number: the density of a length, not of a point.

Output perturbation of a minimiser in d dimensions (Chaudhuri, Monteleoni and Sarwate 2011) needs noise with a density
that falls like exp(-epsilon |b| / Delta), so that lengths have a gamma law with d degrees. Drawn with the length of one
Laplace number instead, as a published synthetic control does, its density is that times |b|^-(d-1): it is so high at
the vector itself that an answer gives away which of two vectors it came from.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv

from discreet.audit._black_box import bounds_of
from discreet.audit.attacks.base import Attack, Claim, LowerBounds, Run, judged, with_parts
from discreet.audit.mechanism import Mechanism
from discreet.audit.result import AuditResult
from discreet.data._arrays import Float
from discreet.privacy.budget import Budget
from discreet.privacy.noise import published_gaussian, published_laplace
from discreet.testing import seeded_noise

_NAME = "vector noise with a Laplace length"
DIMENSION = 38
# Answers that are so many times as near to one vector as to the other: fixed before any run.
_NEARER = 1.3
_POINTS = 400


def losses(epsilon: float, d: int) -> tuple[Float, Float]:
    """Privacy losses of answers from one of two vectors at distance 1, and their weights, by quadrature."""
    middles = (np.arange(_POINTS) + 0.5) / _POINTS
    length = -np.log1p(-middles) / epsilon
    # The cosine of an angle between a uniform direction and a fixed one.
    cosine = 2.0 * betaincinv((d - 1) / 2, (d - 1) / 2, middles) - 1.0
    r, u = np.meshgrid(length, cosine)
    other = np.sqrt(np.maximum(r**2 + 1.0 - 2.0 * r * u, 1e-300))
    loss = epsilon * (other - r) + (d - 1) * np.log(other / r)
    return loss.ravel(), np.full(loss.size, 1.0 / loss.size)


def lengths(mechanism: Mechanism, run: Run) -> AuditResult:
    """How much nearer answers are to the vector that they came from."""
    claimed, (zero, one) = Budget(epsilon=mechanism.epsilon), mechanism.pair
    d = len(zero)
    loss, weight = losses(claimed.epsilon, d)
    delta = float(weight @ np.maximum(-np.expm1(claimed.epsilon - loss), 0.0))
    median = float(np.median(loss))
    worst = "two vectors as far apart as the stated sensitivity"
    claim = Claim(estimator=mechanism, attack="norm_noise", budget=claimed)
    closed = judged(
        claim,
        "closed form",
        LowerBounds(epsilon=math.inf, delta=delta),
        worst=worst,
        notes=(f"d = {d}: half of all answers have a privacy loss of {median:.3g} or more, and no loss is a bound.",),
        picture={"kind": "bars", "labels": ["claimed", "median loss"], "values": [claimed.epsilon, median], "unit": ""},
    )
    hits = []
    for world, exact in enumerate((zero, one)):
        with seeded_noise(6_271 * (run.random_state + 1) + world):
            answers = np.array([mechanism.run(exact) for _ in range(run.trials)])
        near = np.linalg.norm(answers - zero, axis=1) * _NEARER < np.linalg.norm(answers - one, axis=1)
        hits.append((int(near.sum()), run.trials))
    found = bounds_of((hits[0], hits[1]), claimed.epsilon, 0.0, run.confidence)
    simulated = judged(
        claim,
        "black box",
        LowerBounds(epsilon=found.epsilon, delta=found.delta, confidence=run.confidence, trials=2 * run.trials),
        worst=worst,
        notes=(
            f"counted: answers {_NEARER:g} times as near to the one as to the other; {hits[0][0]:,} of {run.trials:,} "
            f"from the one, {hits[1][0]:,} from the other.",
        ),
        picture=dict(closed.picture),
    )
    return with_parts(simulated, closed)


def _make(budget: Budget) -> Mechanism:
    def run(exact: Float) -> Float:
        direction = published_gaussian(len(exact), 1.0)
        length = abs(float(published_laplace(1, 1.0 / budget.epsilon)[0]))
        return np.asarray(exact + length * direction / np.linalg.norm(direction))

    one = np.zeros(DIMENSION)
    one[0] = 1.0
    return Mechanism(run=run, epsilon=budget.epsilon, pair=(np.zeros(DIMENSION), one), name=_NAME)


ATTACKS = (
    Attack(
        name="norm_noise",
        mechanism=_NAME,
        title="Noise whose length is one Laplace number, where a vector needs a gamma law.",
        setting=f"{DIMENSION} coefficients of a regression whose sensitivity is 1, as in a published private synthetic "
        "control (Rho, Cummings and Misra 2024). Lengths of a gamma law with as many degrees would have a proof.",
        budget=Budget(epsilon=1.0),
        trials=4_000,
        make=_make,
        run_=lengths,
    ),
)
