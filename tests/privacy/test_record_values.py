"""Edges of encoding, units and samples that mutants showed to be unprotected."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from discreet.data import in_memory
from discreet.data.bounds import Bounds
from discreet.data.columns import Levels, Range, decimals
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import _MOST_ROWS, CHUNK_ROWS, Chunk, Names, Unit, _keys, add_up, hold
from discreet.data.sampling import chosen, nothing, part_numbers, sampled, together
from discreet.exceptions import InvalidInput

TO_64_BITS = 2**64 - 1


def test_rounding_never_carries_the_end_of_a_range_beyond_one():
    ends = np.sort(np.random.default_rng(3).normal(size=(3_000, 2)) * 1e3, axis=1)
    for low, high in ends.tolist():
        spec, values = Range(low, high), np.array([low, high, (low + high) / 2, low - 1.0])
        encoded = spec.encode(pa.array(values))
        steps = (np.clip(values, low, high) - spec.middle) / (high / 2 - low / 2)
        np.testing.assert_array_equal(encoded, np.clip(steps, -1.0, 1.0))


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
    for beyond in (2.0**53 + 2, -(2.0**53) - 2):
        with pytest.raises(InvalidInput, match="id has whole numbers"):
            _keys(np.array([beyond]), slice(None), "id")


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


def numbered(n, e=None, first=0.0):
    places = np.arange(first, first + n)
    known = None if e is None else np.full(n, e)
    return Chunk(places / n, places % 2, np.column_stack([places, -places]), known, places)


def test_rows_of_a_sample_are_put_together_to_full_chunks_in_their_order():
    half = CHUNK_ROWS // 2
    parts = [numbered(half, 0.25, first) for first in (0, half, 2 * half, 3 * half, 4 * half)]
    found = list(sampled(parts, 1.0))
    # Two halves are exactly full.
    assert [len(chunk.t) for chunk in found] == [CHUNK_ROWS, CHUNK_ROWS, half]
    np.testing.assert_array_equal(np.concatenate([chunk.x[:, 0] for chunk in found]), np.arange(5.0 * half))
    for chunk in found:
        np.testing.assert_array_equal(chunk.x[:, 1], -chunk.x[:, 0])
        np.testing.assert_array_equal(chunk.e, np.full(len(chunk.t), 0.25))
        assert chunk.x.dtype == np.float32
    assert list(sampled(parts, 0.0)) == []
    (small,) = sampled([numbered(10)], 1.0)
    assert small.e is None


@pytest.mark.parametrize("rows", [[3, 4], [CHUNK_ROWS], [CHUNK_ROWS, 1], [CHUNK_ROWS - 1, CHUNK_ROWS, 5]])
def test_kept_rows_are_together_in_as_few_chunks_as_they_need(rows):
    ends = np.cumsum([0, *rows])
    found = together([numbered(n, first=first) for n, first in zip(rows, ends, strict=False)])
    assert [len(chunk.t) for chunk in found[:-1]] == [CHUNK_ROWS] * (len(found) - 1)
    assert len(found) == -(-ends[-1] // CHUNK_ROWS)
    np.testing.assert_array_equal(np.concatenate([chunk.x[:, 0] for chunk in found]), np.arange(ends[-1]))
    np.testing.assert_array_equal(np.concatenate([chunk.t for chunk in found]), np.arange(ends[-1]) % 2)
    assert together([]) == ()


def test_no_units_are_in_no_part_and_a_key_may_be_negative():
    none = part_numbers(pa.array([], pa.int64()), "id", key=0, parts=2)
    assert (none.shape, none.dtype) == ((0,), np.dtype(np.int64))
    found = part_numbers(np.arange(200), "id", key=-3, parts=5)
    assert set(found) == set(range(5))
    assert found.dtype == np.int64


def test_parts_are_those_of_a_keyed_blake2b_of_the_units_names():
    import hashlib

    for key, unit in ((7, "12"), (-7, "ada")):
        digest = hashlib.blake2b(
            unit.encode(), digest_size=8, key=key.to_bytes(16, "little", signed=True), person=b"discreet split"
        ).digest()
        expected = int.from_bytes(digest, "little") % 1000
        assert part_numbers(np.array([unit], dtype=object), "id", key=key, parts=1000) == [expected]


def test_chunks_are_kept_up_to_the_most_numbers_and_give_the_same_sums_either_way(monkeypatch):
    bounds, rows = Bounds(outcome=(0, 1), covariates=[(0, 1)]), 20

    def made(most):
        monkeypatch.setattr(in_memory, "KEPT_NUMBERS", most)
        records = ArrayRecords.of(np.linspace(0, 1, rows), [0, 1] * 10, np.ones((rows, 1)), bounds=bounds)
        sums = records.sum(lambda chunk: np.rint([1e6 * chunk.y.sum(), chunk.t @ chunk.x[:, 0]]).astype(np.int64))
        return len(records.kept), sums.tolist()

    # A covariate, and three numbers for outcome, arm and probability.
    kept, anew = made(rows * 4), made(rows * 4 - 1)
    assert (kept[0], anew[0]) == (1, 0)
    assert kept[1] == anew[1]


def test_records_in_memory_know_what_was_said_of_them():
    bounds, unit = Bounds(outcome=(0, 1)), Unit("id", 2)
    facts = {"unit": unit, "public": ("the filter",), "sample_by": range(12)}
    records = ArrayRecords.of([0.0, 1.0] * 6, [0, 1] * 6, bounds=bounds, **facts)
    assert (records.n, records.unit, records.public, records.ordered) == (12, unit, ("the filter",), True)
    sample = records.sample(0.5, 6.0)
    assert (sample.n, sample.unit, sample.bounds) == (12, unit, bounds)


def test_python_objects_become_an_array_of_one_type_once_for_all_passes():
    bounds, names = Bounds(outcome=(0, 1), covariates=[(0, 1)]), Names("Y", "T", ("X",), "e")
    y = np.array([0.5, None], dtype=object)
    held = hold(y, np.array([0, 1]), [y], None, bounds=bounds, names=names)
    assert pa.types.is_float64(held.y.type)
    assert pa.types.is_float64(held.x[0].type)


def test_a_level_that_was_not_declared_is_refused_by_the_name_of_its_column():
    with pytest.raises(InvalidInput, match="column 'ward'"):
        Levels(("a", "b")).encode(np.array(["c"], dtype=object), "column 'ward'")


def test_rows_that_are_missing_from_a_pass_are_noticed_and_so_is_their_absence():
    def counted(chunk):
        return np.array([len(chunk.t)])

    assert add_up([numbered(5), numbered(6)], counted, None, n=11) == [11]
    for chunks, n in (([numbered(5)], 6), ([numbered(7)], 6), ([], 0), ([], 6)):
        with pytest.raises(InvalidInput, match="changed while they were being read"):
            add_up(chunks, counted, None, n=n)


def test_a_column_without_rows_is_encoded_as_one():
    for empty in (pa.array([], pa.float64()), np.empty(0)):
        assert Range(0, 1).encode(empty).shape == (0,)


def test_the_short_way_of_encoding_is_taken_exactly_where_both_ends_reach_one():
    ends = np.sort(np.random.default_rng(4).normal(size=(3_000, 2)) * 1e3, axis=1)
    low, high = ends.T
    half, middle = high / 2 - low / 2, np.array([Range(*pair).middle for pair in ends.tolist()])
    expected = ((high - middle) / half >= 1) & ((low - middle) / half <= -1)
    found = [Range(*pair)._reaches(pair[1] / 2 - pair[0] / 2) for pair in ends.tolist()]
    assert found == expected.tolist()
    assert 0 < sum(found) < len(found)


def test_an_empty_sample_is_asked_at_a_probability_that_is_allowed():
    bounds, seen = Bounds(outcome=(0, 1), propensity=(0.2, 0.3)), []

    def kernel(chunk):
        seen.append(chunk.e.tolist())
        return np.array([7, 8])

    np.testing.assert_array_equal(nothing(kernel, bounds), [0, 0])
    assert seen == [[0.2]]


def test_a_number_is_chosen_from_exactly_the_part_on_that_its_hash_says():
    for key in range(200):
        place = splitmix(key) / 2.0**64
        for part, expected in ((place * (1 - 2.0**-50), False), (place * (1 + 2.0**-50), True)):
            assert chosen(np.array([float(key)]), part).tolist() == [expected]


def test_an_outcome_of_two_labels_is_held_as_zero_and_one_and_refused_by_its_name():
    bounds, names = Bounds(outcome=["no", "yes"]), Names("the outcome", "T", (), "e")
    t = np.array([0, 1, 1])
    for values in (np.array(["yes", "no", "yes"]), pa.array(["yes", "no", "yes"])):
        held = hold(values, t, [], None, bounds=bounds, names=names)
        assert (held.y.tolist(), held.t.tolist(), held.x, held.e, held.k) == ([1, 0, 1], [0, 1, 1], (), None, None)
    for wrong in (np.array(["yes", "no", "maybe"]), np.array([1, 0, 1]), np.array(["yes", None, "no"], dtype=object)):
        with pytest.raises(InvalidInput, match=r"^the outcome must hold one of the two labels"):
            hold(wrong, t, [], None, bounds=bounds, names=names)


def test_a_unit_may_have_as_many_rows_as_are_said_to_be_the_most():
    assert Unit("id", 1).max_rows == 1
    assert Unit("id", _MOST_ROWS).max_rows == _MOST_ROWS == 1_000_000
    with pytest.raises(InvalidInput, match="max_rows must be a whole number from 1 to 1,000,000"):
        Unit("id", _MOST_ROWS + 1)


def test_numbers_to_choose_by_and_known_probabilities_are_held_beside_the_records():
    bounds, names = Bounds(outcome=(0, 1), propensity=(0.2, 0.8)), Names("Y", "T", (), "e", "id")
    e, k = np.array([0.5, 0.25], dtype=object), np.array([7, 9], dtype=object)
    held = hold(np.array([0.0, 1.0]), np.array([0, 1]), [], e, k, bounds=bounds, names=names)
    assert (held.e.tolist(), held.k.tolist()) == ([0.5, 0.25], [7, 9])
