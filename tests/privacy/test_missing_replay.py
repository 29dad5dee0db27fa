"""Missing outcomes: records lose theirs and find it again, and no sum moves further than its noise covers."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATE, Bounds, DifferenceInMeans
from discreet.audit._tape import Tape
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Further
from discreet.data.views.presence import PRESENT, WHETHER_PRESENT
from discreet.data.views.within import Observed, RecordsWithin
from discreet.postprocessing import reference_population as moments
from tests.privacy.test_replay import Data, farthest, ordinary

BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), (0, 1), [0, 1, 2]], propensity=(0.1, 0.9))
RELATIONS = ["replace-one", "add-remove"]


def lost(n: int, seed: int) -> Data:
    """A third of the outcomes are missing, more of them where the first covariate is small."""
    data = ordinary(n, seed)
    gone = np.random.default_rng(seed).random(n) < 1 / (1 + np.exp(0.8 + data.x[:, 0]))
    return Data(np.where(gone, np.nan, data.y), data.t, data.x, data.e)


KINDS: dict[str, Any] = {
    "ate": lambda relation: ATE(epsilon=20.0, delta=1e-6, bounds=BOUNDS, neighbours=relation, missing_outcome="adjust"),
    "known": lambda relation: ATE(
        epsilon=20.0, delta=1e-6, bounds=BOUNDS, neighbours=relation, missing_outcome="adjust", propensity=0.4, cap=5.0
    ),
    "means": lambda relation: DifferenceInMeans(
        epsilon=5.0, bounds=BOUNDS, neighbours=relation, missing_outcome="adjust"
    ),
}
# Missing, extreme, and far outside the bounds.
OUTCOMES = st.sampled_from([np.nan, -4.0, 10.0, 3.0, 1e300])
RECORD = st.tuples(
    OUTCOMES,
    st.sampled_from([0.0, 1.0]),
    st.tuples(st.sampled_from([-3.0, 0.0, 3.0]), st.sampled_from([0.0, 1.0]), st.sampled_from([0, 1, 2])).map(list),
    st.just(0.4),
)


@cache
def tape_of(kind: str, relation: str) -> Tape:
    def fit(data: Data) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moments, "REFERENCE", 500)
            return KINDS[kind](relation).fit(data.y, data.t, X=data.x)

    return Tape(fit, lost(500, 3))


@pytest.mark.parametrize(("kind", "relation"), [(kind, relation) for kind in KINDS for relation in RELATIONS])
@settings(max_examples=12, deadline=None)
@given(place=st.integers(0, 499), record=RECORD)
def test_no_record_that_loses_or_finds_its_outcome_moves_a_round_beyond_its_diameter(
    kind: str, relation: str, place: int, record: Any
) -> None:
    tape = tape_of(kind, relation)
    farthest(tape, [tape.table.neighbour(relation, place, record)])


@pytest.mark.parametrize("relation", RELATIONS)
def test_all_kinds_of_rounds_are_asked(relation: str) -> None:
    # Long rounds come in parts.
    names = {name.split(", part")[0] for name in tape_of("ate", relation).names}
    for wanted in ("missing outcomes", "observed: treatment moments", "observed: propensity refinement 1", "score"):
        assert any(name.startswith(wanted) for name in names), wanted


def test_a_record_is_observed_or_not_whoever_else_is() -> None:
    y = np.array([np.nan, 1.0, np.nan, 2.0, 3.0] * 3)
    t, further = np.arange(15) % 2.0, Further(PRESENT, WHETHER_PRESENT)
    bounds = Bounds(outcome=(0, 5), outcome_fill=0.0)

    def seen(y: Any) -> int:
        records = ArrayRecords.of(y, t, None, bounds=bounds).beside({further: y}, {PRESENT: "Y"})
        return int(RecordsWithin(records, Observed()).sum(lambda chunk: np.array([len(chunk.t)]))[0])

    assert seen(y) == 9
    assert seen(np.where(np.arange(15) == 0, 4.0, y)) == 10
    # With all of them, and with nobody missing.
    assert seen(np.nan_to_num(y)) == 15
