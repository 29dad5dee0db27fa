"""Values and edges of the gate and its sensitivity sets that mutants showed to be unprotected."""

import numpy as np
import pytest

from discreet.data._arrays import IntArray
from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput
from discreet.privacy import gate as gate_module
from discreet.privacy.sensitivity.fixed_point import LARGEST, SMALLEST, size_of
from discreet.privacy.sensitivity.table import MOST_NUMBERS, Blocks
from tests.test_gate import RECORDS


def test_every_record_counts_as_one():
    def ones(chunk: Chunk) -> IntArray:
        return np.array([(gate_module.COUNTED(chunk) == 1.0).sum()], dtype=np.int64)

    assert RECORDS.sum(ones) == [RECORDS.n]


def test_the_ends_of_what_can_be_squared_are_allowed():
    assert (size_of("radius", SMALLEST), size_of("radius", LARGEST)) == (1e-150, 1e150)
    for value in (SMALLEST / 2, LARGEST * 2):
        with pytest.raises(InvalidInput, match="radius"):
            size_of("radius", value)


def test_a_record_may_have_as_many_numbers_as_are_said_to_be_exact():
    assert Blocks(1.0, 2, MOST_NUMBERS).width == 4096
    with pytest.raises(InvalidInput, match="width"):
        Blocks(1.0, 2, MOST_NUMBERS + 1)
