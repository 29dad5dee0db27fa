"""Records seen through a map of single records: one budget, the bounds that then hold, and no engine's own sums."""

from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from discreet.data.backends import TableSpec, open_table
from discreet.data.bounds import Bounds
from discreet.data.expressions import Y, number
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Chunk
from discreet.data.views.capped import Capped
from discreet.data.views.viewed import ViewedRecords
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Interval
from discreet.testing import frozen_noise

BOUNDS = Bounds(outcome=(0, 8))
FRAME = pd.DataFrame({"y": np.arange(40) % 8 + 0.5, "t": np.arange(40) % 2})
TREATED = Query("treated", 0.5, Interval(0.0, 1.0), lambda c: c.t)


@dataclass(frozen=True, slots=True)
class Flipped:
    """Arms exchanged, outcomes doubled in range."""

    keeps_arms: bool = False

    def bounds(self, declared: Bounds) -> Bounds:
        return replace(declared, outcome=(-8, 8))

    def __call__(self, chunk: Chunk) -> Chunk:
        return chunk._replace(t=1.0 - chunk.t, y=chunk.y / 2.0)


def records() -> ArrayRecords:
    return ArrayRecords.of(FRAME["y"], FRAME["t"], bounds=BOUNDS)


def test_a_gate_through_a_view_spends_from_the_same_budget_and_has_its_bounds() -> None:
    gate = Gate(records(), budget=Budget(epsilon=1.0))
    with frozen_noise():
        (plain,) = gate.ask(TREATED)
        seen = gate.viewed(Flipped())
        (flipped,) = GatePart(seen, 0.5).viewed(Flipped()).ask(replace(TREATED, share=1.0))
    assert (float(plain.value), float(flipped.value)) == (20.0, 20.0)
    assert gate.spent == pytest.approx(1.0)
    assert (seen.bounds.outcome, gate.bounds.outcome) == ((-8, 8), (0, 8))


def test_views_of_views_are_taken_one_after_the_other() -> None:
    seen: list[Any] = []

    def keep(chunk: Chunk) -> Any:
        seen.append(chunk)
        return np.ones(1, dtype=np.int64)

    twice = ViewedRecords(ViewedRecords(records(), Capped.of(BOUNDS, 4.0)), Flipped())
    twice.sum(keep)
    np.testing.assert_array_equal(seen[0].t, 1.0 - FRAME["t"])
    np.testing.assert_allclose(seen[0].y, (FRAME["y"].clip(0, 4) / 2 - 1) / 2)
    assert twice.bounds.outcome == (-8, 8)
    assert twice.n == 40


def test_an_engine_counts_only_what_a_view_leaves_as_it_is() -> None:
    with open_table(duckdb.from_df(FRAME), TableSpec(outcome="y", treatment="t", bounds=BOUNDS)) as table:
        capped, flipped = ViewedRecords(table, Capped.of(BOUNDS, 4.0)), ViewedRecords(table, Flipped())
        assert capped.group_sums(None, []) is not None
        assert capped.group_sums(None, [(Y * number(2.0**20)).rint()]) is None
        assert flipped.group_sums(None, []) is None
