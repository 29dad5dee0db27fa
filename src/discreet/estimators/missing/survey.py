"""Survey weights: averages over the people whom records stand for. Proof: docs/proofs/weights.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import hypot, sqrt
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import IntArray
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk, Records
from discreet.data.views.weight import WEIGHT, WeightRange
from discreet.estimators._allocation import MEAN_WEIGHT
from discreet.estimators._parameters import Role
from discreet.estimators.measurements.estimand import RecordWeights
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import Outcome
from discreet.exceptions import InvalidInput
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Interval
from discreet.releases.average import Release

# Numerical: residuals of records that weigh less, as a part of the mean weight, are clipped no further out.
_LEAST = 0.1
# Choice: the mean weight counts as no smaller than two standard deviations of its noise. By hand.
_CLEAR = 2.0
_NEEDED = "Bounds(weight=(0, most))"


def _declared(bounds: Bounds) -> WeightRange:
    if bounds.weight is None:
        raise InvalidInput(
            f"sample_weight needs {_NEEDED}, the largest weight that a record may have: declare it, do not compute it "
            "from the data."
        )
    return WeightRange(*bounds.weight)


SAMPLE_WEIGHT = Role(
    name=WEIGHT, argument="sample_weight", help="how many people a record stands for", declared=_declared, needed=False
)


def check_weights(bounds: Bounds, further: Mapping[Role, Any], *, adjusts: bool) -> None:
    """Refuse weights that are declared and not given, given and not declared, or beside missing outcomes."""
    if bounds.weight is None and SAMPLE_WEIGHT not in further:
        return
    _declared(bounds)
    if SAMPLE_WEIGHT not in further:
        raise InvalidInput(
            f"sample_weight is missing, and {_NEEDED} declares weights: give them (fit_table takes weight=), or "
            "declare bounds without them."
        )
    if adjusts:
        raise InvalidInput(
            "sample_weight does not go with missing_outcome='adjust': leave one of them out, or fill the outcomes."
        )


def check_weighed(records: Records) -> None:
    """Refuse records of an arm all of whose weights are zero, as an empty arm is refused."""

    def count(chunk: Chunk) -> IntArray:
        heavy = chunk.more[WEIGHT] > 0.0
        return np.array([heavy.sum(), (heavy & (chunk.t > 0.0)).sum()]).astype(np.int64)

    weighed, treated = (int(number) for number in records.sum(count))
    if treated in (0, weighed):
        raise InvalidInput(
            "All weights of one arm are zero: an effect needs people in both arms, so check the weights."
        )


class Weighing(NamedTuple):
    """Weights of single records, and what is known of the number that they are divided by."""

    weights: RecordWeights
    mean: float
    noise: float


def measure_weighted(gate: Gate, fit: Callable[[RecordWeights], tuple[Release, float]]) -> Release:
    """The average over the people whom records stand for; ``fit`` also gives the effect that its score counts from."""
    weighing = _mean_weight(gate)
    release, centre = fit(weighing.weights)
    apart, own = abs(release.estimate - centre), release.uncertainty
    # Only what the score adds to a public effect is divided by the mean weight, which has errors.
    sampling = sqrt(gate.most_rows * max(1.0 / weighing.mean - 1.0, 0.0) / gate.n)
    uncertainty = replace(
        own,
        sampling=hypot(own.sampling, apart * sampling),
        privacy=hypot(own.privacy, apart * weighing.noise / weighing.mean),
    )
    note = "Records count by their survey weights: the effect is that on the people whom they stand for."
    assert gate.bounds.weight is not None
    return replace(
        release,
        uncertainty=uncertainty,
        guarantee=replace(release.guarantee, proof=f"weights.md, {release.guarantee.proof}"),
        notes=(note, *release.notes),
        reference=release.reference | {"mean_weight": weighing.mean * gate.bounds.weight[1]},
    )


def centred(release: Release, _: Location, models: Outcome) -> tuple[Release, float]:
    """A release of `ATE`, and the effect that its score counts from."""
    return release, models.effect * release.bounds.outcome_width / 2.0


def _mean_weight(gate: Gate) -> Weighing:
    """Weights whose mean is about one."""
    (total,) = gate.ask(Query("mean weight", MEAN_WEIGHT, Interval(0.0, 1.0), lambda c: c.more[WEIGHT]))
    noise = float(total.sd) / gate.n
    mean = min(max(float(total.value) / gate.n, _CLEAR * noise, 1e-6), 1.0)
    return Weighing(RecordWeights(lambda c: c.more[WEIGHT] / mean, _LEAST, 1.0 / mean), mean, noise)
