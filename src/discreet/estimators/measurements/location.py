"""First rounds through the gate: where outcomes lie, how large they are around it, and how many are treated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, sqrt
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.records import Chunk
from discreet.estimators._allocation import LOCATION
from discreet.postprocessing.magnitude import BINS, Factors, MagnitudeHistogram, bin_numbers
from discreet.postprocessing.tails import SIDES, Strata, Tails, signed_bins
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells, Interval, MeanSquare

RowMap = Callable[[Chunk], Float]
# Largest distance of an outcome from its centre.
_REACH = 2.0
# Share of the outcomes at one value from which on the others' shape says little about how far they reach.
_ATOM = 0.2
# Arms that are equally likely.
_EVEN = Strata.between(0.5, 0.5)

# A budget beyond this promises little.
_LARGE_EPSILON = 10.0
# An outcome that varies by less than this part of its declared range.
_NARROW = 1.0 / 50.0
# Outcomes apart from the most common one that an arm should have, where most have that one.
_FEW_EVENTS, _COMMON = 30.0, 0.5
# How far the share of treated may lie from a declared probability: in standard deviations, and as it is.
_DEVIATIONS, _POINTS = 5.0, 0.02


@dataclass(frozen=True, slots=True)
class Location:
    """Where and how wide the outcome is, how many are treated, and how many outcomes are at the ends of the range.

    ``ends`` are shares of all records: a row for controls and one for the treated; outcomes at the lower end, inside
    and at the upper end.
    """

    treated: float
    treated_noise: float
    centre: float
    noise: float
    deviation: float
    magnitude: MagnitudeHistogram
    ends: Float
    ends_noise: float
    tails: Tails

    @property
    def atomic(self) -> bool:
        """Whether many outcomes have one value: then the others' distance from it is unknown until they are seen."""
        return has_atoms(self.ends, self.ends_noise)

    @property
    def scale(self) -> float:
        """How large outcomes are around the centre: where most have one value, this says nothing about the others."""
        return max(self.magnitude.scale, self.deviation) if self.atomic else self.magnitude.scale

    @property
    def least_clip(self) -> float:
        """A model's moments are not clipped nearer than this: where most outcomes have one value, models are of the
        others. Those of two values reach as far as any.
        """
        if not self.atomic:
            return 0.0
        two = float(self.ends[:, 1].sum()) <= 2.0 * 2.0**0.5 * self.ends_noise
        return self.farthest if two else self.deviation

    @property
    def farthest(self) -> float:
        """How far from the centre an outcome can be."""
        return 1.0 + abs(self.centre)

    def below(self, clip: float) -> float:
        """Share of the outcomes that a clip around the centre leaves as they are."""
        return 1.0 if clip >= self.farthest else self.magnitude.below(clip)


def has_atoms(ends: Float, noise: float) -> bool:
    """Whether many outcomes are at one end of the range, or noise hides whether they are."""
    at_ends = float(max(ends[:, 0].sum(), ends[:, 2].sum()))
    return at_ends + 2.0 * noise > _ATOM


def locate(gate: Gate, share: float, *beside: Query) -> Location:
    """Share of treated, centre and magnitude of the outcome around it, in three passes that zoom in.

    The first of them prepares what will be asked ``beside``.
    """
    n = gate.n
    first = (
        Query(
            "arms and ends of the outcome",
            LOCATION["arms and ends of the outcome"] * share,
            Cells((6,)),
            _arms_and_ends,
        ),
        Query("outcome mean and square", LOCATION["outcome mean and square"] * share, MeanSquare(1.0), lambda c: c.y),
    )
    gate.prepare(*first, *beside)
    counts, outcome = gate.ask(*first)
    ends, ends_noise = counts.value.reshape(2, 3) / n, float(counts.sd) / n
    low, high = gate.bounds.propensity
    # The number of records is known, so that half of the difference has less noise than a sum.
    treated = 0.5 + float(ends[1].sum() - ends[0].sum()) / 2.0
    centre = float(np.clip(outcome.value[0] / n, -1.0, 1.0))
    noise = float(np.asarray(outcome.sd)[0]) / n
    wide = float(np.sqrt(np.clip(outcome.value[1] / n - centre**2, max(2.0 * noise, 1e-6), 1.0)))
    (again,) = gate.ask(
        Query(
            "centre of the outcome",
            LOCATION["centre of the outcome"] * share,
            Interval(-3.0 * wide, 3.0 * wide),
            lambda c: c.y - centre,
        )
    )
    centre = float(np.clip(centre + float(again.value) / n, -1.0, 1.0))
    (bins,) = gate.ask(
        Query(
            "outcome magnitude",
            LOCATION["outcome magnitude"] * share,
            Cells((SIDES,)),
            lambda c: signed_bins(c.y - centre, _REACH),
        )
    )
    atomic = has_atoms(ends, ends_noise)
    # This one only places the clip of a pilot.
    tails = Tails.fit(bins.value / n, float(bins.sd) / n, _REACH, _EVEN, atomic=atomic, randomised=True)
    return Location(
        treated=float(np.clip(treated, low, high)),
        treated_noise=1.5**0.5 * ends_noise,
        centre=centre,
        noise=float(again.sd) / n,
        deviation=wide,
        magnitude=tails.magnitudes[0],
        ends=ends,
        ends_noise=ends_noise,
        tails=tails,
    )


def _arms_and_ends(c: Chunk) -> IntArray:
    """Cell of each record: its arm, and whether its outcome is at the lower end, inside the range, or at the upper."""
    return 3 * (c.t > 0.0) + np.where(c.y <= -1.0, 0, np.where(c.y >= 1.0, 2, 1))


def measure_magnitude(
    gate: Gate, name: str, share: float, rows: RowMap, ceiling: float, factors: Factors | None = None
) -> MagnitudeHistogram:
    """Distribution of a magnitude over half octaves below a ceiling; ``factors`` as in `MagnitudeHistogram.fit`."""
    (counts,) = gate.ask(Query(name, share, Cells((BINS,)), lambda c: bin_numbers(rows(c), ceiling)))
    return MagnitudeHistogram.fit(counts.value / gate.n, float(counts.sd) / gate.n, ceiling, factors)


def measure_sides(gate: Gate, name: str, share: float, rows: RowMap, ceiling: float) -> MagnitudeHistogram:
    """The same with a sign, so that tails of one side are known: twice the bins, and one of them to a record still."""

    def signed(c: Chunk) -> IntArray:
        values = rows(c)
        return bin_numbers(values, ceiling) + BINS * (values > 0.0)

    (counts,) = gate.ask(Query(name, share, Cells((2 * BINS,)), signed))
    below, above = np.split(counts.value / gate.n, 2)
    sd = 2.0**0.5 * float(counts.sd) / gate.n
    return MagnitudeHistogram.fit(below + above, sd, ceiling).with_sides(above - below, sd)


class Pilot(NamedTuple):
    """A first, confounded guess at the effect, which only centres what follows, and its noise."""

    effect: float
    noise: float


def pilot_effect(gate: Gate, share: float, location: Location) -> Pilot:
    """Difference of the arms' means, residuals clipped alike."""
    reach = (1.0 + location.centre, 1.0 - location.centre)
    unit = gate.noise_sd(Ball(1.0, 2), share) / gate.n
    clip = location.tails.clip(unit, reach)

    def rows(c: Chunk) -> Float:
        residual = np.clip(c.y - location.centre, -clip.low / 2.0, clip.high / 2.0)
        return np.column_stack([c.t * residual, (1.0 - c.t) * residual])

    radius = max(clip.low, clip.high) / 2.0
    (sums,) = gate.ask(Query("arm means", share, Ball(radius, 2), rows))
    shares = np.maximum([location.treated, 1.0 - location.treated], 0.02)
    means = np.clip(sums.value / gate.n / shares, -radius, radius)
    return Pilot(float(means[0] - means[1]), float(sums.sd) / gate.n * float(np.hypot(*(1.0 / shares))))


def public_notes(budget: Budget, n: float, location: Location, propensity: Any) -> tuple[str, ...]:
    """All notes that apply; ``n`` is the number of records where it is public, and otherwise the released one."""
    return (*budget_notes(budget, n), *_outcome_notes(n, location), *_design_note(n, location, propensity))


def budget_notes(budget: Budget, n: float) -> tuple[str, ...]:
    """What is to be said of a budget that promises little."""
    notes = []
    if budget.delta is not None and budget.delta > 1.0 / n:
        notes.append(
            "Delta is above one over the number of records, so that it allows to publish somebody's record outright: "
            "choose a delta far below that."
        )
    if budget.epsilon > _LARGE_EPSILON:
        notes.append(
            f"An epsilon above {_LARGE_EPSILON:g} promises little: ask discreet.plan how small an epsilon would do."
        )
    return tuple(notes)


def _outcome_notes(n: float, location: Location) -> tuple[str, ...]:
    """Of outcomes that are mostly one value, how few have another; of others, whether they use their range."""
    totals = location.ends.sum(axis=0)
    common = 0 if totals[0] >= totals[2] else 2
    if totals[common] > _COMMON:
        others = n * (location.ends.sum(axis=1) - location.ends[:, common])
        if float(np.min(others)) < _FEW_EVENTS:
            return (
                f"By a noisy count, an arm has fewer than {_FEW_EVENTS:g} outcomes apart from the most common one: the "
                "interval rests on a few events. Take more records, a longer period or a more frequent outcome.",
            )
        return ()
    # Half of the range is the unit of scales.
    if not location.atomic and location.magnitude.scale / 2.0 < _NARROW:
        return (
            "Outcomes use a small part of their declared range, and noise is made for all of it: declare a narrower "
            "range next time if public knowledge allows it, or the logarithm of the outcome.",
        )
    return ()


def _design_note(n: float, location: Location, propensity: Any) -> tuple[str, ...]:
    """Whether about as many are treated as a design says."""
    if isinstance(propensity, bool) or not isinstance(propensity, Real):
        return ()
    declared = float(propensity)
    found = 0.5 + float(location.ends[1].sum() - location.ends[0].sum()) / 2.0
    chance = hypot(location.treated_noise, sqrt(declared * (1.0 - declared) / n))
    if abs(found - declared) <= max(_DEVIATIONS * chance, _POINTS):
        return ()
    return (
        f"About {found:.0%} of the records are treated (by a noisy count), far from the declared probability of "
        f"{declared:.3g}: check the probability and that no records were dropped after treatment was drawn.",
    )
