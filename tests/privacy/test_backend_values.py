"""Edges of sweeps and SQL that mutants showed to be unprotected."""

import numpy as np
import pytest

from discreet.data.backends.scan import Tally, in_order
from discreet.data.backends.sql import literal
from discreet.data.bounds import Bounds


@pytest.mark.parametrize(("one", "other", "sums"), [([1], [2], [3]), (None, [2], [2]), ([1], None, [1])])
def test_tallies_of_two_parts_add_up(one, other, sums):
    def made(rows: int, found: list[int] | None) -> Tally:
        return Tally(rows, rows - 1, 2**64 - rows, None if found is None else np.array(found, dtype=np.int64))

    both = made(3, one) + made(5, other)
    assert (both.rows, both.treated, both.checksum) == (8, 6, 2**64 - 8)
    np.testing.assert_array_equal(both.sums, sums)


def test_a_quotation_mark_in_a_text_is_doubled():
    assert literal("O'Hara") == "'O''Hara'"


def test_columns_are_taken_in_the_order_that_was_given():
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1), (0, 1)])
    assert in_order(["age", "dose"], bounds) == ("age", "dose")
