"""Edges of encoding, units and samples that mutants showed to be unprotected."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from discreet.data.bounds import Bounds
from discreet.data.columns import Range, decimals
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Unit, _keys
from discreet.data.sampling import chosen
from discreet.exceptions import InvalidInput

TO_64_BITS = 2**64 - 1


def test_rounding_never_carries_the_end_of_a_range_beyond_one():
    ends = np.sort(np.random.default_rng(3).normal(size=(3_000, 2)) * 1e3, axis=1)
    for low, high in ends.tolist():
        encoded = Range(low, high).encode(pa.array([low, high]))
        assert -1.0 <= encoded.min() <= encoded.max() <= 1.0


def test_long_decimals_become_the_nearest_float():
    texts = ["0.1234567890123456789012345", "1234567890.1234567890123456789", "0.5000000000000000000000000"]
    column = pa.array([Decimal(text) for text in texts], pa.decimal128(38, 25))
    np.testing.assert_array_equal(decimals(column, "x"), [float(text) for text in texts])


@pytest.mark.parametrize(("column", "rows"), [("", 1), (3, 1), (None, 1), ("id", True), ("id", 2.0), ("id", 0)])
def test_a_unit_needs_a_column_and_a_whole_number_of_rows(column, rows):
    with pytest.raises(InvalidInput, match=r"unit must be|max_rows must be"):
        Unit(column, rows)


def test_there_is_a_number_to_choose_by_for_every_record():
    with pytest.raises(InvalidInput, match="sample_by"):
        ArrayRecords.of([0.0, 1.0], [0, 1], bounds=Bounds(outcome=(0, 1)), sample_by=[1, 2, 3])


def test_numbers_to_choose_by_may_be_as_large_as_float64_can_tell_apart():
    np.testing.assert_array_equal(_keys(np.array([2.0**53, -(2.0**53)]), slice(None), "id"), [2.0**53, -(2.0**53)])


def splitmix(key: int) -> int:
    """The published finaliser of SplitMix64, in whole numbers of any size."""
    mixed = (key + 0x9E3779B97F4A7C15) & TO_64_BITS
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & TO_64_BITS
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & TO_64_BITS
    return mixed ^ mixed >> 31


@pytest.mark.parametrize("part", [0.01, 0.5, 1.0])
def test_a_sample_is_chosen_by_a_published_hash(part):
    keys = np.arange(-500.0, 500.0)
    expected = [splitmix(int(key) & TO_64_BITS) < part * 2**64 for key in keys]
    np.testing.assert_array_equal(chosen(keys, part), expected)


def test_records_without_a_column_for_it_have_no_sample():
    bounds, y, t = Bounds(outcome=(0, 1)), [0.0, 1.0] * 6, [0, 1] * 6
    assert ArrayRecords.of(y, t, bounds=bounds).sample(0.5, 6.0) is None
    assert ArrayRecords.of(y, t, bounds=bounds, sample_by=range(12)).sample(0.5, 6.0) is not None
