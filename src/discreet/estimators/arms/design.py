"""How records come into arms: known probabilities of several arms, and records of several arms seen as those of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput

# Numerical: probabilities that are off one by no more than this add up to one.
_CLOSE = 1e-6
_HOW = "give a dictionary from each declared label to a number, or a list of numbers in the order of the labels"


def known_shares(propensity: Any, bounds: Bounds) -> Float | None:
    """Probabilities of the arms by design, in the order of their labels; None where they have to be estimated."""
    if propensity is None:
        return None
    labels = bounds.arms.levels
    if isinstance(propensity, Mapping):
        unknown = [str(label) for label in propensity if label not in labels]
        if unknown or len(propensity) != len(labels):
            what = f"has no arm {unknown[0]!r}" if unknown else "must name every arm"
            raise InvalidInput(
                f"propensity {what}: Bounds(treatment=[...]) declares {', '.join(map(str, labels))}; {_HOW}."
            )
        given = [propensity[label] for label in labels]
    elif isinstance(propensity, list | tuple) and len(propensity) == len(labels):
        given = list(propensity)
    else:
        raise InvalidInput(f"propensity of {len(labels)} arms must hold a probability for each of them: {_HOW}.")
    if not all(isinstance(each, Real) and not isinstance(each, bool) for each in given):
        raise InvalidInput(f"propensity of several arms must hold numbers, the same for all records: {_HOW}.")
    shares = np.array([float(each) for each in given])
    low, high = bounds.propensity
    if not (np.all(shares >= low) and np.all(shares <= high)):
        raise InvalidInput(
            "propensity must lie inside the declared Bounds(propensity=(low, high)) for every arm: widen them, or "
            "check it."
        )
    if abs(float(shares.sum()) - 1.0) > _CLOSE:
        raise InvalidInput("propensity must add up to one over all arms: write 1/3 for a third, and check each number.")
    return np.asarray(shares / shares.sum())


def _two_arms(declared: Bounds, low: float, high: float) -> Bounds:
    return replace(declared, treatment=None, propensity=(low, high))


@dataclass(frozen=True, slots=True)
class AgainstRest:
    """One arm against all others: records in it count as treated, and the others' outcomes as a public number.

    The effect is then the arm's mean outcome less that number.
    """

    arm: int
    outcome: float
    """what others' outcomes count as, on [-1, 1]"""

    @property
    def keeps_arms(self) -> bool:
        """Arms are others than those that engines count by."""
        return False

    def bounds(self, declared: Bounds) -> Bounds:
        """Two arms, and the same overlap."""
        return _two_arms(declared, *declared.propensity)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records of a chunk, in the arm or not."""
        inside = chunk.t == self.arm
        return chunk._replace(y=np.where(inside, chunk.y, self.outcome), t=inside.astype(np.float64))


@dataclass(frozen=True, slots=True)
class AgainstControl:
    """All arms but the first against the first; ``active`` is the probability of these by design, if it is known."""

    active: float | None = None

    @property
    def keeps_arms(self) -> bool:
        """Arms are others than those that engines count by."""
        return False

    def bounds(self, declared: Bounds) -> Bounds:
        """Two arms, of which the second has what the first leaves."""
        low, high = declared.propensity
        return _two_arms(declared, min(low, 1.0 - high), max(high, 1.0 - low))

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records of a chunk, treated or not."""
        e = None if self.active is None else np.full(len(chunk.t), self.active)
        return chunk._replace(t=(chunk.t > 0.0).astype(np.float64), e=e)
