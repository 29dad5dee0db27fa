"""What a declared column accepts, and how its values become bounded numbers."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data import _arrays, columns
from discreet.data._arrays import ScratchBuffer
from discreet.data.columns import Levels, Range, numbers, plain
from discreet.exceptions import InvalidInput

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
ranges = st.tuples(finite, finite).filter(lambda pair: pair[1] / 2 - pair[0] / 2 > 0).map(lambda pair: Range(*pair))
SEX = Levels(("f", "m"))


@given(ranges, st.lists(finite, min_size=1))
def test_an_encoded_range_never_leaves_minus_one_to_one(spec: Range, values: list[float]) -> None:
    encoded = spec.encode(np.array(values))
    assert encoded.dtype == np.float64
    assert np.all(np.abs(encoded) <= 1)


def test_a_range_maps_its_ends_and_middle_and_clips_what_lies_outside() -> None:
    encoded = Range(10, 30).encode(np.array([10, 20, 30, -1000, 1000]))
    np.testing.assert_array_equal(encoded, [-1, 0, 1, -1, 1])


@pytest.mark.parametrize("values", [[0.5, 1.0], [0.5, 7.0], [0.5, math.nan]], ids=["inside", "outside", "missing"])
def test_a_range_is_encoded_where_it_is_wanted(values: list[float]) -> None:
    spec, out = Range(0, 1, fill=0.25), np.full(2, 9.0)
    assert spec.encode(np.array(values), out=out) is out
    np.testing.assert_array_equal(out, spec.encode(np.array(values)))


def test_encoding_leaves_the_callers_array_alone() -> None:
    values = np.array([5.0, np.nan])
    Range(0, 1, fill=0.5).encode(values)
    np.testing.assert_array_equal(values, [5.0, np.nan])


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 4], dtype=np.int8),
        np.array([0, 4], dtype=np.uint64),
        np.array([0, 4], dtype=np.float32),
        np.array([0, 4.0], dtype=object),
        np.array([Decimal("0"), Decimal("4")], dtype=object),
        pa.array([0, 4]),
        pa.array([Decimal("0"), Decimal("4")]),
        pa.chunked_array([[0.0], [4.0]]),
        pa.array([0, 4]).dictionary_encode(),
    ],
    ids=lambda values: str(getattr(values, "dtype", None) or values.type),
)
def test_a_range_takes_every_kind_of_number(values: object) -> None:
    np.testing.assert_array_equal(Range(0, 4).encode(values), [-1, 1])


def test_a_range_takes_booleans_as_zero_and_one() -> None:
    np.testing.assert_array_equal(Range(0, 1).encode(np.array([False, True])), [-1, 1])
    np.testing.assert_array_equal(Range(0, 1).encode(pa.array([False, True])), [-1, 1])


@pytest.mark.parametrize(
    "values",
    [
        np.array(["1", "2"]),
        np.array(["1", "2"], dtype=object),
        np.array([1j, 2]),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array([1, "2"], dtype=object),
        pa.array(["1", "2"]),
        pa.array([b"1", b"2"]),
    ],
    ids=["text", "object text", "complex", "dates", "mixed", "arrow text", "arrow bytes"],
)
def test_a_range_refuses_what_is_not_a_number(values: object) -> None:
    with pytest.raises(InvalidInput, match=r"column 'age' of X must hold (numbers|one kind)"):
        Range(0, 4).encode(values, "column 'age' of X")


MISSING = [
    np.array([1.0, np.nan]),
    np.array([1.0, None], dtype=object),
    pa.array([1, None]),
    pa.chunked_array([[1.0], [None]]),
]


@pytest.mark.parametrize("values", MISSING, ids=["nan", "None", "null", "chunked null"])
def test_missing_numbers_are_refused_unless_a_fill_is_declared(values: object) -> None:
    with pytest.raises(InvalidInput, match="Y has missing values: declare its fill"):
        Range(0, 2).encode(values, "Y")
    np.testing.assert_array_equal(Range(0, 2, fill=2).encode(values), [0, 1])


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_numbers_are_refused_even_with_a_fill(value: float) -> None:
    with pytest.raises(InvalidInput, match="Y has infinite values"):
        Range(0, 2, fill=1).encode(np.array([1.0, value]), "Y")


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        ((1, 1), "constant carries no information"),
        ((2, 1), "reversed"),
        ((math.nan, 1), "low end must be finite"),
        ((0, math.inf), "high end must be finite"),
        ((0, 10**400), "high end must be finite"),
        (("0", 1), "low end must be a number"),
        ((0, None), "high end must be a number"),
        ((-1.7e308, 1.7e308), "width must be an ordinary"),
        ((0, 5e-324), "width must be an ordinary"),
        ((0, 1, 2), "fill must lie between"),
        ((0, 1, math.nan), "fill must be finite"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(ends: tuple[float, ...], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Range(*ends)


@pytest.mark.parametrize(
    "values",
    [
        np.array(["f", "m"]),
        np.array(["f", "m"], dtype=object),
        np.array(["f", "m"], dtype=np.dtypes.StringDType()),
        pa.array(["f", "m"]),
        pa.array(["f", "m"], pa.string_view()),
        pa.array(["f", "m"]).dictionary_encode(),
        pa.chunked_array([["f"], ["m"]]).dictionary_encode(),
        pa.Array.from_pandas(pd.Series(["f", "m"], dtype="category")),
        pl.Series(["f", "m"], dtype=pl.Enum(["m", "f"])).to_arrow(),
    ],
    ids=["U", "object", "StringDType", "arrow", "view", "dictionary", "chunked", "pandas category", "polars enum"],
)
def test_text_levels_match_every_way_to_store_text(values: object) -> None:
    np.testing.assert_array_equal(SEX.encode(values), [0.0, 1.0])


@given(st.lists(st.integers(-50, 50), min_size=2, unique=True), st.data())
def test_numeric_levels_match_by_value(levels: list[int], data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.sampled_from(levels), min_size=1))
    expected = [levels.index(value) for value in drawn]
    spec = Levels(tuple(levels))
    for values in (np.array(drawn), np.array(drawn, dtype=np.float32), pa.array(drawn).dictionary_encode()):
        np.testing.assert_array_equal(spec.encode(values), expected)


@pytest.mark.parametrize("count", [64, 65, 300])
def test_few_levels_and_many_are_found_alike(count: int) -> None:
    levels = np.random.default_rng(count).permutation(count).astype(float) - count // 2
    spec = Levels(tuple(float(level) for level in levels), other=float(levels[3]), fill=float(levels[-1]))
    values = np.concatenate([levels[::-1], [0.5, np.inf, -np.inf, 1e9, np.nan]])
    expected = [*range(count - 1, -1, -1), 3, 3, 3, 3, count - 1]
    np.testing.assert_array_equal(spec.codes(values), expected)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64()], ids=str)
def test_plain_numbers_are_referred_to_and_others_stay_as_they_are(kind: pa.DataType) -> None:
    whole, missing = pa.array([1, 2, 3], kind), pa.array([1, None, 3], kind)
    for column in (whole, whole[1:], pa.chunked_array([whole])):
        array = plain(column)
        assert isinstance(array, np.ndarray)
        assert not array.flags.writeable
        np.testing.assert_array_equal(Range(0, 4).encode(array), Range(0, 4).encode(column))
    several, truths = pa.chunked_array([whole, whole]), pa.array([True, False])
    for column in (missing, several, truths, pa.array(["1"]), np.array([1.0])):
        assert plain(column) is column


def test_booleans_zero_and_one_are_the_same_levels() -> None:
    for spec in (Levels((0, 1)), Levels((False, True)), Levels((0.0, 1.0))):
        for values in (np.array([True, False]), np.array([1, 0]), np.array([1.0, 0.0]), pa.array([True, False])):
            np.testing.assert_array_equal(spec.encode(values), [1, 0])


@pytest.mark.parametrize(("count", "dtype"), [(2, np.int8), (128, np.int8), (129, np.int16), (40_000, np.int32)])
def test_codes_are_stored_in_the_smallest_type_that_fits(count: int, dtype: type) -> None:
    codes = Levels(tuple(range(count))).codes(np.array([count - 1, 0]))
    assert codes.dtype == dtype
    np.testing.assert_array_equal(codes, [count - 1, 0])


def test_codes_of_a_column_longer_than_one_slice_are_all_there() -> None:
    values = np.arange(150_000) % 3
    np.testing.assert_array_equal(Levels((0, 1, 2)).codes(values), values)


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        (Levels(("f", "m")), np.array(["f", "secret"])),
        (Levels(("f", "m")), pa.array(["f", ""])),
        (Levels((1, 2, 5)), np.array([1, 3])),
        (Levels((1, 2)), np.array([1, np.inf])),
    ],
)
def test_unknown_levels_are_refused_without_being_printed_unless_other_is_declared(
    spec: Levels, values: object
) -> None:
    with pytest.raises(InvalidInput, match="values outside its declared levels") as refusal:
        spec.encode(values)
    assert "secret" not in str(refusal.value)
    np.testing.assert_array_equal(Levels(spec.levels, other=spec.levels[1]).encode(values), [0, 1])


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        (SEX, np.array(["f", None], dtype=object)),
        (SEX, np.array(["f", np.nan], dtype=object)),
        (SEX, pa.array(["f", None]).dictionary_encode()),
        (SEX, pa.chunked_array([["f"], [None]])),
        (Levels((1, 2)), np.array([1, np.nan])),
        (Levels((1, 2)), pa.array([1, None])),
    ],
)
def test_missing_levels_are_refused_unless_a_fill_is_declared(spec: Levels, values: object) -> None:
    with pytest.raises(InvalidInput, match="has missing values"):
        Levels(spec.levels, other=spec.levels[0]).encode(values)
    np.testing.assert_array_equal(Levels(spec.levels, fill=spec.levels[1]).encode(values), [0, 1])


def test_a_column_without_a_single_value_can_be_filled() -> None:
    nothing = np.array([None, None], dtype=object)
    np.testing.assert_array_equal(Levels(("f", "m"), fill="m").encode(nothing), [1, 1])
    np.testing.assert_array_equal(Range(0, 1, fill=1).encode(nothing), [1, 1])


def test_levels_of_the_other_kind_are_refused_by_type() -> None:
    with pytest.raises(InvalidInput, match="must hold text like its declared levels, but its type is int64"):
        SEX.encode(np.array([1, 2]))
    with pytest.raises(InvalidInput, match="must hold numbers, but its type is string"):
        Levels((1, 2)).encode(np.array(["1", "2"]))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((("f",),), "at least two"),
        (((),), "at least two"),
        ((("f", "f"),), "must differ"),
        (((1, True),), "must differ"),
        ((("f", 1),), "all text or all numbers"),
        (((0, math.nan),), "not NaN"),
        (((0, 2**53),), r"smaller than 2\*\*53"),
        ((("f", None),), "must be text, a number or a boolean"),
        (("fm",), "list of levels"),
        ((np.array([1, 2]),), "not data"),
        ((pd.Series(["f", "m"]),), "not data"),
        ((("f", "m"), "x"), "other must be one of the declared levels"),
        ((("f", "m"), None, "x"), "fill must be one of the declared levels"),
    ],
)
def test_levels_that_make_no_sense_are_refused(arguments: tuple[object, ...], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Levels(*arguments)  # type: ignore[arg-type]


def test_levels_written_as_numpy_scalars_become_plain_values() -> None:
    spec = Levels([np.int64(1), np.float64(2.5)], other=np.int64(1))  # type: ignore[arg-type]
    assert [type(level) for level in (*spec.levels, spec.other)] == [int, float, int]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 0)], ids=str)
def test_whole_numbers_up_to_those_that_float64_tells_apart_are_taken(kind: pa.DataType) -> None:
    for value, taken in ((2**53, True), (2**53 + 2, False)):
        column = pa.array([value, None], pa.int64()).cast(kind)
        if taken:
            np.testing.assert_array_equal(numbers(column, "x"), [2.0**53, np.nan])
            continue
        with pytest.raises(InvalidInput, match=r"x has whole numbers or decimals beyond 2\*\*53"):
            numbers(column, "x")
        with pytest.raises(InvalidInput, match=r"x has whole numbers or decimals beyond 2\*\*53"):
            numbers(column.slice(0, 1).cast(pa.int64()).to_numpy(), "x")
    if kind != pa.uint64():
        np.testing.assert_array_equal(numbers(pa.array([-(2**53)], pa.int64()).cast(kind), "x"), [-(2.0**53)])
        with pytest.raises(InvalidInput, match="beyond"):
            numbers(pa.array([-(2**53) - 2], pa.int64()).cast(kind), "x")


def test_no_values_at_all_are_no_numbers_and_no_refusal() -> None:
    assert numbers(pa.array([], pa.int64()), "x").shape == (0,)
    assert numbers(np.array([], dtype=np.int64), "x").shape == (0,)


# (2**64 + 5) / 10**20: only the second word of its whole number shows how large that is.
SECOND_WORD = "0.18446744073709551621"
DECIMALS = [
    "0.1",
    "-0.1",
    SECOND_WORD,
    "123456789012345678.5",
    "9007199254740.993",
    "-9007199254740.9935",
    "1e-25",
    "7",
]


@pytest.mark.parametrize("scale", [1, 3, 10, 20, 22, 23, 25])
@pytest.mark.parametrize("chunked", [False, True])
def test_decimals_of_every_scale_become_the_nearest_float64_wherever_they_stand(scale: int, chunked: bool) -> None:
    step = Decimal(1).scaleb(-scale)
    with localcontext() as context:
        context.prec = 76
        rounded = [Decimal(text).quantize(step) for text in DECIMALS if abs(Decimal(text)) < 2**53]
    column = pa.array([None, *rounded, None, *rounded[::-1]], pa.decimal256(76, scale))
    parts = [column.slice(1, 4), column.slice(5, 3), column.slice(8)]
    values = [*map(float, rounded), np.nan, *map(float, rounded[::-1])]
    found = numbers(pa.chunked_array(parts) if chunked else column.slice(1), "x")
    np.testing.assert_array_equal(found, values)


def test_decimals_may_count_in_hundreds_of_thousands() -> None:
    column = pa.array([Decimal("1e5"), Decimal("7e5"), None], pa.decimal128(5, -5))
    np.testing.assert_array_equal(numbers(column, "x"), [100_000.0, 700_000.0, np.nan])


@pytest.mark.parametrize("levels", [(3, 1, 2), tuple(range(100, 0, -1))])
@pytest.mark.parametrize("slice_", [1, 4, 65_536])
def test_how_levels_are_searched_and_in_which_slices_changes_no_code(
    levels: tuple[int, ...], slice_: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.array([*levels, *levels[::-1], 0, 101, 2.5])
    expected = [levels.index(int(value)) if value in levels else 0 for value in values]
    monkeypatch.setattr(columns, "_SLICE", slice_)
    for few in (0, len(levels)):
        monkeypatch.setattr(columns, "_FEW_LEVELS", few)
        np.testing.assert_array_equal(Levels(levels, other=levels[0]).codes(values), expected)


@pytest.mark.parametrize("ends", [(0, 10), (-1, 1), (0.1, 0.7), (-1e300, 1e300), (1, 1 + 2**-50)])
def test_arrays_of_floats_are_encoded_as_any_other_column_is(ends: tuple[float, float]) -> None:
    low, high = map(float, ends)
    beside = [np.nextafter(end, way) for end in (low, high) for way in (-np.inf, np.inf)]
    values = np.array([low, high, low / 2 + high / 2, *beside, -1.7e308, 1.7e308])
    spec, other = Range(low, high, fill=high), pa.array(values)
    for some in (slice(None), slice(0, 3), slice(0, 1)):
        found = spec.encode(values[some].copy())
        np.testing.assert_array_equal(found, spec.encode(other[some]))
        steps = (np.clip(values[some], low, high) - spec.middle) / (high / 2 - low / 2)
        np.testing.assert_array_equal(found, np.clip(steps, -1, 1))
    np.testing.assert_array_equal(spec.encode(np.array([np.nan])), [1.0])


def test_scratch_memory_is_used_again_unless_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = ScratchBuffer()
    first = scratch(3, 4)
    assert (first.shape, first.T.flags.c_contiguous) == ((3, 4), True)
    assert np.shares_memory(scratch(2, 6), first)
    assert np.shares_memory(scratch(1, 2), first)
    monkeypatch.setattr(_arrays, "_MOST_NUMBERS", 20)
    exactly, beyond = scratch(4, 5), scratch(3, 7)
    assert np.shares_memory(scratch(4, 5), exactly)
    assert (beyond.shape, beyond.T.flags.c_contiguous) == ((3, 7), True)
    assert not np.shares_memory(scratch(3, 7), beyond)


def test_a_decimal_of_all_words_is_refused_whatever_its_last_word_is() -> None:
    whole = 2**192 + 2**128 + 2**64 + 5
    with localcontext() as context:
        context.prec = 76
        column = pa.array([Decimal(whole).scaleb(-22)], pa.decimal256(76, 22))
    with pytest.raises(InvalidInput, match="beyond"):
        numbers(column, "x")


def test_decimals_of_more_places_than_a_power_of_ten_is_exact_for_become_the_nearest_float64() -> None:
    # A float divided by 10.0**23, which is rounded itself, would miss half of these.
    for scale in (22, 23):
        column = pa.array([Decimal(whole).scaleb(-scale) for whole in range(1, 60)], pa.decimal128(38, scale))
        np.testing.assert_array_equal(numbers(column, "x"), [float(f"{whole}e-{scale}") for whole in range(1, 60)])


def test_a_range_knows_how_wide_it_is_and_may_be_filled_with_its_ends() -> None:
    spec = Range(10, 30)
    assert (spec.width, spec.middle) == (20.0, 20.0)
    for fill, encoded in ((10, -1.0), (30, 1.0)):
        np.testing.assert_array_equal(Range(10, 30, fill=fill).encode(np.array([np.nan])), [encoded])


def test_floats_inside_their_range_are_neither_copied_first_nor_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise AssertionError("the long way")

    inside, ends = np.array([2.0, 5.0, 9.0]), np.array([0.0, 5.0, 10.0])
    monkeypatch.setattr(Range, "_force_inside", refuses)
    for values in (inside, ends):
        # What is no array of floats is turned into one, and not looked at again.
        np.testing.assert_array_equal(Range(0, 10).encode(pa.array(values)), (values - 5) / 5)
    monkeypatch.setattr(columns, "numbers", refuses)
    for values in (inside, ends):
        np.testing.assert_array_equal(Range(0, 10).encode(values), (values - 5) / 5)
    for value in (-1.0, 11.0, math.nan):
        with pytest.raises(AssertionError, match="the long way"):
            Range(0, 10).encode(np.array([5.0, value]))
