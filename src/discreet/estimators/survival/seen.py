"""Records of a time to event as rounds see them, and what is said of the curves that come of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.postprocessing.survival.curves import Arm
from discreet.postprocessing.survival.pseudo_outcome import PseudoOutcome

# Choice: where fewer than this part of an arm is followed up to the horizon, the release says so. By hand.
_FOLLOWED = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class TimeCells:
    """A record's cell: its arm, and the interval of its event or of its end of follow-up, or beyond the horizon.

    Who is followed to the end of an interval and no longer is censored in the next one: events come first.
    """

    ends: Float
    """of the intervals, as the times are encoded"""

    def __call__(self, chunk: Chunk) -> Float:
        """One cell per record."""
        k, event = len(self.ends), chunk.more["event"] > 0.5
        with_event, lost = (np.searchsorted(self.ends, chunk.y, side=side) for side in ("left", "right"))
        cell = np.where(event, np.where(with_event < k, with_event, 2 * k), np.where(lost < k, k + lost, 2 * k))
        return np.asarray(cell + chunk.t * (2 * k + 1), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Records whose outcome is what their time and event count as."""

    number: PseudoOutcome
    horizon: float
    """as the times are encoded"""

    @property
    def keeps_arms(self) -> bool:
        """Every record stays in its arm."""
        return True

    def bounds(self, declared: Bounds) -> Bounds:
        """The range of these numbers is public: it follows from the released table."""
        return replace(declared, outcome=(self.number.low, self.number.high), outcome_fill=None)

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records of a chunk as they are seen."""
        number = self.number
        # Exactly one at the horizon, below before it and above beyond.
        time = (chunk.y + 1.0) / (self.horizon + 1.0)
        counts_as = number(time, chunk.more["event"], chunk.t)
        y = 2.0 * ((counts_as - number.low) / (number.high - number.low)) - 1.0
        return chunk._replace(y=np.fmin(np.fmax(y, -1.0), 1.0))


def curve_notes(arms: tuple[Arm, Arm], sd: float) -> tuple[str, ...]:
    """What a release says of its curves; ``sd`` is the noise of the table."""
    notes = ["Censoring is taken to be independent of the time to the event within each arm."]
    for name, arm in zip(("control", "treated"), arms, strict=True):
        if arm.followed[-1] < _FOLLOWED:
            notes.append(
                f"Few of the {name} arm are followed up to the horizon: the interval rests on them. Choose a nearer "
                "one."
            )
        events = float(np.sum(arm.at_risk * (1.0 - np.exp(-arm.events))))
        if events < 2.0 * sd * len(arm.times) ** 0.5:
            notes.append(f"Events of the {name} arm do not stand out from the noise of the table: its curve is rough.")
    return tuple(notes)
