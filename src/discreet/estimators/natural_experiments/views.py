"""What the rounds of `ATE` see of records that hold an instrument, or an outcome from before. All in docs/proofs/."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.data.bounds import Bounds
from discreet.data.columns import Levels
from discreet.data.records import Chunk
from discreet.estimators._parameters import Role

BEFORE = Role(
    name="before",
    argument="before",
    help="the outcome of the same record before anybody was treated",
    declared=lambda bounds: bounds.outcome_column,
)
INSTRUMENT = Role(
    name="instrument",
    argument="Z",
    help="the instrument, 0 or 1, such as an offer of the treatment",
    declared=lambda bounds: Levels((0, 1)),
)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of the outcome in place of the outcome: lemma 1 of docs/proofs/did.md."""

    binary: bool
    """whether the outcome is one of two labels"""

    @property
    def keeps_arms(self) -> bool:
        """Outcomes alone are others."""
        return True

    def bounds(self, declared: Bounds) -> Bounds:
        """A change is at most as large as the outcome's range, in either direction."""
        width = declared.outcome_width
        return replace(declared, outcome=(-width, width), outcome_fill=None)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records with changes as their outcomes."""
        before = chunk.more[BEFORE.name]
        return chunk._replace(y=(chunk.y - (2.0 * before - 1.0 if self.binary else before)) / 2.0)


@dataclass(frozen=True, slots=True)
class Compliance:
    """The instrument in place of the treatment, and the treatment in place of the outcome: docs/proofs/late.md."""

    @property
    def keeps_arms(self) -> bool:
        """The arms are those of the instrument."""
        return False

    def bounds(self, declared: Bounds) -> Bounds:
        """The outcome is 0 or 1, whether somebody was treated."""
        return Bounds(outcome=[0, 1], covariates=declared.covariates, propensity=declared.propensity)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records so seen."""
        return chunk._replace(t=chunk.more[INSTRUMENT.name], y=2.0 * chunk.t - 1.0)


@dataclass(frozen=True, slots=True)
class Remainder:
    """The instrument in place of the treatment; of the outcome, what a guess at the treatment's effect leaves.

    Proof: docs/proofs/late.md.
    """

    guess: float
    """the effect that is taken off the outcomes of the treated, in the outcome's unit; released or declared"""
    width: float
    """of the outcome's declared range"""

    @classmethod
    def of(cls, guess: float, declared: Bounds) -> Remainder:
        """What a guess leaves of outcomes with these bounds."""
        return cls(guess, declared.outcome_width)

    @property
    def keeps_arms(self) -> bool:
        """The arms are those of the instrument."""
        return False

    def bounds(self, declared: Bounds) -> Bounds:
        """The range is longer by the guess, at the end that it moves outcomes to."""
        low, high = declared.outcome
        if self.guess == 0.0:
            return replace(declared, treatment=None)
        range_ = (low - max(self.guess, 0.0), high - min(self.guess, 0.0))
        return replace(declared, outcome=range_, outcome_fill=None, treatment=None)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records so seen."""
        y = chunk.y
        if self.guess != 0.0:
            # In halves of the declared range, from its middle; then in halves of the longer one, from the middle of it.
            moved = 2.0 * self.guess / self.width
            y = (y - moved * (chunk.t - 0.5)) / (1.0 + abs(moved) / 2.0)
            y = np.clip(y, -1.0, 1.0)
        return chunk._replace(t=chunk.more[INSTRUMENT.name], y=y)
