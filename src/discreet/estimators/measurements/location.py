"""First rounds through the gate: where outcomes lie, how large they are around it, and how many are treated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.records import Chunk
from discreet.estimators._allocation import LOCATION
from discreet.postprocessing.magnitude import BINS, Factors, MagnitudeHistogram, bin_numbers
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells, Interval, MeanSquare

RowMap = Callable[[Chunk], Float]


@dataclass(frozen=True, slots=True)
class Location:
    """Where and how wide the outcome is, and how many are treated."""

    treated: float
    treated_noise: float
    centre: float
    noise: float
    magnitude: MagnitudeHistogram


def locate(gate: Gate, share: float, *beside: Query) -> Location:
    """Share of treated, centre and magnitude of the outcome around it, in three passes that zoom in.

    The first of them prepares what will be asked ``beside``.
    """
    n = gate.n
    first = (
        Query("share of treated", LOCATION["share of treated"] * share, Interval(0.0, 1.0), lambda c: c.t),
        Query("outcome mean and square", LOCATION["outcome mean and square"] * share, MeanSquare(1.0), lambda c: c.y),
    )
    gate.prepare(*first, *beside)
    treated, outcome = gate.ask(*first)
    low, high = gate.bounds.propensity
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
    centre += float(again.value) / n
    magnitude = measure_magnitude(
        gate, "outcome magnitude", LOCATION["outcome magnitude"] * share, lambda c: c.y - centre, 2.0
    )
    return Location(
        treated=float(np.clip(float(treated.value) / n, low, high)),
        treated_noise=float(treated.sd) / n,
        centre=centre,
        noise=float(again.sd) / n,
        magnitude=magnitude,
    )


def measure_magnitude(
    gate: Gate, name: str, share: float, rows: RowMap, ceiling: float, factors: Factors | None = None
) -> MagnitudeHistogram:
    """Distribution of a magnitude over half octaves below a ceiling; ``factors`` as in `MagnitudeHistogram.fit`."""
    (counts,) = gate.ask(Query(name, share, Cells((BINS,)), lambda c: bin_numbers(rows(c), ceiling)))
    return MagnitudeHistogram.fit(counts.value / gate.n, float(counts.sd) / gate.n, ceiling, factors)


def measure_sides(gate: Gate, name: str, share: float, rows: RowMap, ceiling: float) -> MagnitudeHistogram:
    """The same with a sign, so that tails of one side are known: twice the bins, and one of them to a record still."""
    return read_sides(gate, sides_question(name, share, rows, ceiling), ceiling)


def sides_question(name: str, share: float, rows: RowMap, ceiling: float) -> Query:
    """What `measure_sides` asks."""

    def signed(c: Chunk) -> IntArray:
        values = rows(c)
        return bin_numbers(values, ceiling) + BINS * (values > 0.0)

    return Query(name, share, Cells((2 * BINS,)), signed)


def read_sides(gate: Gate, question: Query, ceiling: float) -> MagnitudeHistogram:
    """What the answer to `sides_question` says."""
    (counts,) = gate.ask(question)
    below, above = np.split(counts.value / gate.n, 2)
    sd = 2.0**0.5 * float(counts.sd) / gate.n
    return MagnitudeHistogram.fit(below + above, sd, ceiling).with_sides(above - below, sd)


def pilot_effect(gate: Gate, share: float, location: Location) -> float:
    """Difference of the arms' means, residuals clipped: a first, confounded guess that only centres what follows."""
    clip = 2.5 * location.magnitude.scale

    def rows(c: Chunk) -> Float:
        residual = np.clip(c.y - location.centre, -clip, clip)
        return np.column_stack([c.t * residual, (1.0 - c.t) * residual])

    (sums,) = gate.ask(Query("arm means", share, Ball(clip, 2), rows))
    means = sums.value / gate.n / np.maximum([location.treated, 1.0 - location.treated], 0.02)
    return float(np.clip(means[0] - means[1], -3.0 * location.magnitude.scale, 3.0 * location.magnitude.scale))
