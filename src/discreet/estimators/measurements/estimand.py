"""Which people an average effect is about: weights h(e) by the probability of treatment, each with its public bounds.

With w = (t - e)/(e (1 - e)), the score of a weighted average adds h w times a residual to a public effect, and is
divided by the sum of d, whose mean is that of h(pi) up to the square of an error of e: docs/proofs/att.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.releases.average import Kind

# From probabilities to numbers; and from treatments and probabilities.
OfProbability = Callable[[Float], Float]
OfBoth = Callable[[Float, Float], Float]
# Raw weights of a residual in the treated and in the control arm, as functions of e.
ArmWeights = tuple[OfProbability, OfProbability]
# Numerical: the weight of the arm that says nothing about an effect's untreated, or treated, mean. Not zero, so that it
# has a place in a histogram of magnitudes.
_HARDLY = 2.0**-8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimand:
    """A weighted average effect.

    Parameters
    ----------
    kind
        What a release calls it.
    weigh
        The weight h of a record, a function of its probability of treatment e.
    clip_unit
        min(e, 1 - e)/h(e), in which residuals are clipped: the inverse of the larger of the two arms' weights.
    largest_unit
        The largest that this can be.
    weight
        h w: what the score multiplies a residual with.
    balance
        Weights that turn residuals into those of the prognosis whose errors matter, before they are held and divided
        by their expectation.
    counted
        d, whose sum the score is divided by; None where all records count alike.
    most_counted
        The largest that d can be, by the lowest and the highest e.
    level
        The part of the treated arm in the level that is released beside the effect; None for the share of treated.
    trims
        Whether fitted probabilities are held away from zero, and from one.
    """

    kind: Kind
    weigh: OfProbability
    clip_unit: OfProbability
    largest_unit: float
    weight: OfBoth
    balance: ArmWeights
    counted: OfBoth | None = None
    most_counted: Callable[[float, float], float] = lambda low, high: 1.0
    level: float | None = None
    trims: tuple[bool, bool] = (True, True)

    @property
    def weighted(self) -> bool:
        """Whether some records count for more than others."""
        return self.counted is not None

    @property
    def one_arm(self) -> bool:
        """Whether the prognosis that matters is that of one arm."""
        return _hardly in self.balance

    def inflation(self, e: Float) -> Float:
        """What residuals of unit variance add to the variance of the average, at several probabilities."""
        h = self.weigh(e)
        return np.asarray(h * h / (e * (1.0 - e)) / np.mean(h) ** 2)

    def balancing(self, t: Float, e: Float, most: float) -> Float:
        """Weight that turns a record's residual into one of the prognosis whose errors matter.

        Either arm's weight is held to ``most``, and both are then divided by their expectation, so that what both arms
        have in common passes in full; that expectation is not taken below 0.3, where it would only amplify noise.
        """
        treated, control = (np.minimum(of(e), most) for of in self.balance)
        expected = e * treated + (1.0 - e) * control
        return np.where(t > 0.0, treated, control) / np.maximum(expected, 0.3)

    def held(self, interval: tuple[float, float], declared: tuple[float, float]) -> tuple[float, float]:
        """Where fitted probabilities stop: trimmed where the score's weights grow, else as declared."""
        low, high = (
            trimmed if needed else wide for trimmed, wide, needed in zip(interval, declared, self.trims, strict=True)
        )
        return low, high


@dataclass(frozen=True, slots=True, eq=False)
class RecordWeights:
    """Weights whose mean is about one, by a public function of single records.

    Parameters
    ----------
    of
        The function.
    least, most
        Where weights count as their bound: below the first for the place where residuals are clipped alone, beyond the
        second for all that is asked.
    """

    of: Callable[[Chunk], Float]
    least: float
    most: float

    def __call__(self, chunk: Chunk) -> Float:
        """The weights of a chunk's records."""
        return np.asarray(np.clip(self.of(chunk), 0.0, self.most))

    def divided(self, units: Float, chunk: Chunk) -> Float:
        """Units in which residuals are clipped, so that weighted ones reach no further."""
        return np.asarray(units / np.maximum(self(chunk), self.least))


def _hardly(e: Float) -> Float:
    return np.full_like(e, _HARDLY)


EVERYONE = Estimand(
    kind="ate",
    weigh=np.ones_like,
    clip_unit=lambda e: np.minimum(e, 1.0 - e),
    largest_unit=0.5,
    weight=lambda t, e: np.where(t > 0.0, 1.0 / e, -1.0 / (1.0 - e)),
    balance=(lambda e: 1.0 / (e / (1.0 - e)), lambda e: e / (1.0 - e)),
)
"""All records alike: the average treatment effect."""

TREATED = Estimand(
    kind="att",
    weigh=lambda e: e,
    clip_unit=lambda e: np.minimum(1.0, (1.0 - e) / e),
    largest_unit=1.0,
    weight=lambda t, e: np.where(t > 0.0, 1.0, -e / (1.0 - e)),
    balance=(_hardly, lambda e: 1.0 / (1.0 - e)),
    counted=lambda t, e: t,
    level=1.0,
    trims=(False, True),
)
"""Those who were treated."""

CONTROLS = Estimand(
    kind="atc",
    weigh=lambda e: 1.0 - e,
    clip_unit=lambda e: np.minimum(1.0, e / (1.0 - e)),
    largest_unit=1.0,
    weight=lambda t, e: np.where(t > 0.0, (1.0 - e) / e, -1.0),
    balance=(lambda e: 1.0 / e, _hardly),
    counted=lambda t, e: 1.0 - t,
    level=0.0,
    trims=(True, False),
)
"""Those who were not treated."""

OVERLAP = Estimand(
    kind="ato",
    weigh=lambda e: e * (1.0 - e),
    clip_unit=lambda e: 1.0 / np.maximum(e, 1.0 - e),
    largest_unit=2.0,
    weight=lambda t, e: t - e,
    balance=(np.ones_like, np.ones_like),
    counted=lambda t, e: (t - e) ** 2,
    most_counted=lambda low, high: max(high, 1.0 - low) ** 2,
    level=0.5,
    trims=(False, False),
)
"""Those who might as well have been in the other arm: weights that are never above a quarter."""
