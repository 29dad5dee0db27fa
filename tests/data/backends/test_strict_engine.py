"""What is compiled for engines, run by one in Python that raises where a product rounds to zero.

PostgreSQL is such an engine; this one needs no server, and shows which row it is that goes wrong.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.data.backends.cells import equal_steps, part_of, stepped
from discreet.data.backends.group_by import (
    Named,
    by_constant,
    compile_expression,
    compile_filters,
    compile_rows,
    encoded,
)
from discreet.data.backends.scan import Columns
from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.expressions import E, Formula, Y, is_finite, number
from discreet.data.filters import Condition, conditions
from discreet.data.in_memory import ArrayRecords
from discreet.data.partition import Partition
from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput
from tests.data.backends.test_group_by import PLAIN, RANGES, VALUES, WITH_E, whole

Row = dict[str, Any]


class Expression:
    """A value of each row; None is NULL. What a row was last found to have is kept."""

    def __init__(self, of: Callable[[Row], Any]) -> None:
        self._of = of
        self._row: Row | None = None
        self._value: Any = None

    def __call__(self, row: Row) -> Any:
        if row is not self._row:
            self._row, self._value = row, self._of(row)
        return self._value


def lifted(of: Callable[..., Any], *args: Expression) -> Expression:
    """NULL where any argument is."""

    def value(row: Row) -> Any:
        found = [arg(row) for arg in args]
        return None if any(each is None for each in found) else of(*found)

    return Expression(value)


def calculated(sign: str, left: Any, right: Any) -> Any:
    """As PostgreSQL does: nothing rounds to zero or to infinity in silence."""
    made = {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}[sign](right)
    assert math.isfinite(made), "out of range: overflow"
    assert made != 0.0 or sign in "+-" or left == 0.0 or (sign == "*" and right == 0.0), "out of range: underflow"
    return made


def compared(sign: str, left: Any, right: Any) -> bool:
    """NaN is the largest number, and texts are only compared with texts."""
    assert isinstance(left, str) == isinstance(right, str)
    if not isinstance(left, str):
        left, right = ((math.isnan(each), 0.0 if math.isnan(each) else each) for each in (left, right))
    return bool({"<": left < right, "<=": left <= right, ">=": left >= right, "=": left == right}[sign])


@dataclass(frozen=True)
class Strict:
    """A dialect whose expressions are functions of a row."""

    raises: bool = True
    divides: bool = True
    wide: frozenset[str] = field(default_factory=frozenset)

    def number(self, column: str) -> Expression:
        return lifted(float, self._of(column))

    def text(self, column: str) -> Expression:
        return lifted(str, self._of(column))

    def usable(self, column: str) -> Expression | None:
        if column not in self.wide:
            return None
        return Expression(lambda row: row[column] is None or abs(row[column]) <= 2**53)

    def constant(self, value: float | str) -> Expression:
        assert isinstance(value, float | str)
        return Expression(lambda row: value)

    def whole(self, value: int) -> Expression:
        return Expression(lambda row: int(value))

    def arithmetic(self, sign: str, left: Expression, right: Expression) -> Expression:
        return lifted(lambda a, b: calculated(sign, a, b), left, right)

    def compare(self, sign: str, left: Expression, right: Expression) -> Expression:
        return lifted(lambda a, b: compared(sign, a, b), left, right)

    def finite(self, value: Expression) -> Expression:
        return Expression(lambda row: value(row) is not None and math.isfinite(value(row)))

    def missing(self, value: Expression, *, text: bool) -> Expression:
        return Expression(lambda row: value(row) is None or (not text and math.isnan(value(row))))

    def present(self, value: Expression) -> Expression:
        return Expression(lambda row: value(row) is not None and not math.isnan(value(row)))

    def every(self, conditions: Sequence[Expression]) -> Expression:
        return Expression(lambda row: all(each(row) is True for each in conditions))

    def some(self, conditions: Sequence[Expression]) -> Expression:
        return Expression(lambda row: any(each(row) is True for each in conditions))

    def choose(self, cases: Sequence[tuple[Expression, Expression]], otherwise: Expression | None = None) -> Expression:
        def value(row: Row) -> Any:
            for condition, each in cases:
                if condition(row) is True:
                    return each(row)
            return None if otherwise is None else otherwise(row)

        return Expression(value)

    def clip(self, value: Expression, low: float, high: float) -> Expression:
        return Expression(lambda row: low if value(row) is None else min(max(value(row), low), high))

    def rint(self, value: Expression) -> Expression:
        return lifted(lambda a: float(np.rint(a)), value)

    def floor(self, value: Expression, plus: int) -> Expression | None:
        return lifted(lambda a: math.floor(a) + plus if math.isfinite(a) else None, value) if self.divides else None

    @property
    def nothing(self) -> Expression:
        return Expression(lambda row: None)

    def _of(self, column: str) -> Expression:
        return Expression(lambda row: row[column])


def columns_of(bounds: Bounds, **more: Any) -> Columns:
    return Columns(**({"bounds": bounds, "outcome": "y", "treatment": "t", "covariates": bounds.names} | more))


def in_numpy(rows: list[Row], bounds: Bounds, formulas: list[Formula]) -> Any:
    seen: list[Chunk] = []

    def keep(chunk: Chunk) -> Any:
        seen.append(chunk)
        return np.zeros(1, dtype=np.int64)

    y, t, e = ([row[name] for row in rows] for name in ("y", "t", "e"))
    ArrayRecords.of(y, t, bounds=bounds, propensity=e).sum(keep)
    (chunk,) = seen
    return np.stack([formula(chunk) for formula in formulas])


def assert_as_in_numpy(outcomes: Any, bounds: Bounds, formulas: list[Formula], dialect: Strict) -> None:
    formulas = [each for each in formulas if is_finite(each, bounds.propensity)]
    assert formulas
    low, high = bounds.propensity
    spread = np.linspace(low, high, len(outcomes)).clip(low, high)
    rows = [{"y": float(y), "t": k % 2, "e": float(spread[k])} for k, y in enumerate(outcomes)]
    columns = columns_of(bounds, propensity="e")
    named = compile_rows(columns, None, dialect)
    made = [compile_expression(each, named, dialect, columns) for each in formulas]
    found = [[each(row) for row in rows] for each in made]
    np.testing.assert_array_equal(found, in_numpy(rows, bounds, formulas))
    assert [named.key(row) for row in rows] == [row["t"] for row in rows]


BESIDE = np.nextafter(1e-300, 1.0)
# Next to a constant there is room for numbers whose products vanish, if either is small enough.
NEAR = [
    (number(1.0) + Y) * number(1e-310),
    (number(1.0) + Y) / number(1e300) / number(1e20),
    (number(1e-300) + Y) * number(1e-8),
    (number(1e-300) + Y) / number(1e12),
    (number(1.0) + Y) * number(-3.0),
    (Y - number(1.0)) * number(1e-310),
    (Y * Y) * (Y * Y),
    (Y * number(8.0)).rint() * (Y * number(1e-310)),
    (Y * number(1e-310)) * (Y * number(8.0)).rint(),
    (Y * number(1e-310)) / (Y * number(8.0)).rint().clip(1.0, 8.0),
    Y * number(0.0),
    number(0.0) * Y,
    number(3e-200) * (number(1e-150) * Y),
    number(1.0) / (number(1.5) + Y),
    (Y * number(1e-100)) / (E + number(1e-300)) * (Y * number(1e-220)),
    E * Y * (Y * number(1e-160)),
    (Y * number(1e-300)) / (E * number(-1e200)),
    (Y * number(1e-250)) * (E * number(1e250)),
    (Y * number(1e-300)) / (E * number(1e-200)),
    (Y * number(1e-300)) / (E * number(-1e-200)),
    (Y * number(1e-20)) / (E * number(1e306)),
    # Over almost the largest number there is.
    (Y * number(2.0**-51.5)) / (E * number(1.79e308)),
    Y * (Y - number(0.0)),
    Y / (E * number(0.0) + number(8.0)),
]
OUTCOMES = [
    *VALUES,
    BESIDE,
    -BESIDE,
    -1e-300,
    1e-9,
    -1.0 + 2**-53,
    -1.0 + 2**-52,
    2.0**-537,
    2.0**-538,
    1e-162,
    2.0**-537.6,
    1.5e-323,
]


@pytest.mark.parametrize("outcome", RANGES, ids=str)
def test_no_product_or_quotient_that_rounds_to_zero_reaches_an_engine_that_raises(outcome: Any) -> None:
    bounds = Bounds(outcome=outcome, propensity=(0.1, 0.9))
    grown = [formula * number(2.0**900) for formula in NEAR]
    assert_as_in_numpy(OUTCOMES, bounds, [*whole(PLAIN + WITH_E + grown), *NEAR], Strict())


@dataclass(frozen=True)
class Counting(Strict):
    """A dialect that counts comparisons, which are most of what an engine does for a formula, and clips."""

    asked: list[str] = field(default_factory=list)
    signs: list[str] = field(default_factory=list)
    clips: list[tuple[float, float]] = field(default_factory=list)

    def clip(self, value: Expression, low: float, high: float) -> Expression:
        self.clips.append((low, high))
        return super().clip(value, low, high)

    def arithmetic(self, sign: str, left: Expression, right: Expression) -> Expression:
        self.signs.append(sign)
        return super().arithmetic(sign, left, right)

    def compare(self, sign: str, left: Expression, right: Expression) -> Expression:
        self.asked.append(sign)
        return super().compare(sign, left, right)


@pytest.mark.parametrize(
    ("formula", "comparisons"),
    [
        (E + E, 0),
        (E - number(0.5), 0),
        ((number(1.0) + E) * number(3.0), 0),
        ((number(1.0) + E) / number(3.0), 0),
        (E.rint() * E, 0),
        (E * E.rint(), 0),
        (E * number(0.3), 2),
        (number(0.3) * E, 2),
        (E / number(3.0), 2),
        (E * number(3.0), 0),
        (E * E, 2),
        (E / E.rint(), 6),
        (E * (E + number(0.5)), 10),
        ((number(1e-12) + E) * number(0.3), 2),
        ((number(1.0) + E) * number(1e-10), 2),
        ((number(1.0) + E) / number(1e10), 2),
    ],
    ids=str,
)
def test_comparisons_are_made_only_where_a_product_may_vanish(formula: Formula, comparisons: int) -> None:
    dialect, columns = Counting(), columns_of(Bounds(outcome=(0, 1)), propensity=0.5)
    half = dialect.constant(0.5)
    compile_expression(formula, Named(half, half, half, half), dialect, columns)
    assert len(dialect.asked) == comparisons


@pytest.mark.parametrize(
    ("outcome", "signs", "comparisons"),
    [
        ((-1.0, 1.0), ["*"], 0),
        ((-0.25, 0.25), ["*"], 0),
        ((0.0, 4.0), ["-", "*"], 0),
        ((-100.0, 100.0), ["/"], 2),
        ((1.0, 201.0), ["-", "/"], 0),
        ((-(2.0**-1073), 2.0**-1073), ["/"], 0),
    ],
    ids=str,
)
def test_an_outcome_is_encoded_with_as_little_as_gives_the_same_bits(
    outcome: Any, signs: list[str], comparisons: int
) -> None:
    dialect = Counting()
    encoded(dialect.number("y"), Range(*outcome), dialect)
    assert (dialect.signs, len(dialect.asked)) == (signs, comparisons)
    assert dialect.clips == [outcome]


def test_an_encoded_outcome_is_clipped_once_more_exactly_where_rounding_may_carry_an_end_beyond_one() -> None:
    clipped = []
    for low, high in np.sort(np.random.default_rng(5).normal(size=(300, 2)) * 1e3, axis=1).tolist():
        spec, half, dialect = Range(low, high), high / 2 - low / 2, Counting()
        encoded(dialect.number("y"), spec, dialect)
        beyond = (high - spec.middle) / half > 1.0 or (low - spec.middle) / half < -1.0
        assert dialect.clips == [(low, high), *[(-1.0, 1.0)] * beyond]
        clipped.append(beyond)
    assert 0 < sum(clipped) < len(clipped)


def test_an_engine_that_goes_on_is_told_the_plain_formulas() -> None:
    dialect, columns = Strict(raises=False), columns_of(Bounds(outcome=(-1, 1)))
    tiny = compile_expression(Y * number(1e-310), compile_rows(columns, None, dialect), dialect, columns)
    with pytest.raises(AssertionError, match="underflow"):
        tiny({"y": 1e-300, "t": 0})
    with pytest.raises(AssertionError, match="underflow"):
        by_constant("*", dialect.constant(1e-300), 1e-310, dialect)({})


def test_rounding_never_carries_an_encoded_outcome_beyond_one_or_away_from_numpy() -> None:
    ends = np.sort(np.random.default_rng(3).normal(size=(300, 2)) * 1e3, axis=1)
    for low, high in ends.tolist():
        around = [low, high, np.nextafter(low, high), np.nextafter(high, low), (low + high) / 2, low - 1, high + 1]
        assert_as_in_numpy(around * 2, Bounds(outcome=(low, high), propensity=(0.1, 0.9)), [Y], Strict())


WARD = Levels(("a", "b", "c"), other="c", fill="a")
CODE = Levels((1, 2, 5), other=5, fill=2)
CUTS: list[tuple[Any, Any]] = [
    (Range(0, 10), 10),
    (Range(0, 10), [0, 2.5, 2.75, 10]),
    (Range(0.1, 0.7), 7),
    (Range(-3, 5), 4),
    (Range(-3, 5), 1),
    (Range(0, 10, fill=2.75), 10),
    (Range(0, 10, fill=2.75), [0, 2.5, 2.75, 10]),
    (Range(-1e300, 1e300), 8),
    (Range(1, 1 + 2**-51), 2),
    (Levels((1, 2, 5)), "levels"),
    (Levels((1, 2, 5), other=2), [[5], [1, 2]]),
    (Levels((1, 2, 5), fill=2), "levels"),
    (CODE, [[5], [1, 2]]),
]
NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, 1.0, 1.5, 2.0, 2.5, 2.75, 5.0, 9.999, 10.0, 11.0, -4.0, 1e308, 0.4]
WHOLE = [None, 1, 2, 5, 7, 2**53, -(2**53), 2**53 + 1, -(2**53) - 1]


def numpys(spec: Range | Levels, cut: Any, value: Any, kind: Any) -> int | None:
    """The part of a value; None where it is refused."""
    try:
        return int(cut.parts(spec.encode(pa.array([value], kind)), spec)[0])
    except InvalidInput:
        return None


@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.parametrize(("spec", "by"), CUTS, ids=str)
def test_a_number_is_in_the_part_where_numpy_puts_it_and_in_none_where_it_is_refused(
    spec: Any, by: Any, divides: bool
) -> None:
    bounds = Bounds(outcome=(0, 1), covariates={"x": spec})
    (cut,), columns = Partition.of({"x": by}, bounds).cuts, columns_of(bounds)
    edges = [] if isinstance(spec, Levels) else [float(edge) for edge in cut.edges or ()]
    beside = [float(np.nextafter(edge, way)) for edge in edges for way in (-np.inf, np.inf)]
    for kind, values in ((pa.float64(), NUMBERS + edges + beside), (pa.int64(), WHOLE)):
        wide = frozenset({"x"} if kind == pa.int64() else ())
        found = part_of(cut, columns, Strict(divides=divides, wide=wide))
        parts = [found({"x": value}) for value in values]
        assert parts == [numpys(spec, cut, value, kind) for value in values]
        assert all(type(part) in (int, type(None)) for part in parts)


def test_two_parts_of_a_range_are_found_by_division_and_what_is_no_number_is_in_the_part_for_that() -> None:
    bounds = Bounds(outcome=(0, 1), covariates={"x": (0, 10)})
    (cut,), spec = Partition.of({"x": 2}, bounds).cuts, bounds.columns[0]
    assert isinstance(spec, Range)
    assert equal_steps(cut, spec) == (0.0, 10.0 - 5.0 / 2**40, 0.0, 5.0, 0)
    (beside,), own = Partition.of({0: 4}, Bounds(outcome=(0, 1), covariates=[(-3, 5)])).cuts, Range(-3, 5)
    assert equal_steps(beside, own) == (-3.0, 5.0 - 2.0 / 2**40, 1.0, 2.0, 2)
    dialect = Strict()
    found = stepped(dialect.number("x"), cut, spec, [], dialect.whole(7), dialect)
    assert found is not None
    assert [found({"x": value}) for value in (-1.0, 4.9, 5.0, 10.0, 11.0)] == [0, 0, 1, 1, 1]
    assert [found({"x": value}) for value in (None, math.nan, math.inf, -math.inf)] == [7, 7, 7, 7]


@pytest.mark.parametrize("spec", [WARD, Levels(("a", "b", "c")), Levels(("a", "b", "c"), fill="b")], ids=str)
def test_a_text_is_in_the_part_where_numpy_puts_it_and_in_none_where_it_is_refused(spec: Levels) -> None:
    bounds = Bounds(outcome=(0, 1), covariates={"x": spec})
    (cut,) = Partition.of({"x": [["c"], ["b", "a"]]}, bounds).cuts
    found, values = part_of(cut, columns_of(bounds), Strict()), ["a", "b", "c", "d", "A", "", None]
    assert [found({"x": value}) for value in values] == [numpys(spec, cut, value, pa.string()) for value in values]


def test_cells_of_several_cuts_are_numbered_as_in_numpy_with_the_arm_beside_them() -> None:
    bounds = Bounds(outcome=(0, 1), covariates={"x": (0, 3), "ward": WARD, "code": CODE}, treatment=("no", "yes"))
    partition = Partition.of({"x": 3, "ward": "levels", "code": "levels"}, bounds)
    named = compile_rows(columns_of(bounds), partition, Strict())
    for x, cell in ((0.5, 0), (1.5, 1), (2.5, 2)):
        for j, ward in enumerate("abc"):
            for k, code in enumerate((1, 2, 5)):
                for arm, t in enumerate(("no", "yes")):
                    row = {"x": x, "ward": ward, "code": code, "t": t, "y": 0.5}
                    assert named.key(row) == 2 * (9 * cell + 3 * j + k) + arm
                    assert named.arm(row) == arm
    for spoiled in ({"x": None}, {"t": None}, {"t": "maybe"}):
        assert named.key({"x": 0.5, "ward": "a", "code": 1, "t": "no", "y": 0.5} | spoiled) is None


def test_a_row_whose_probability_or_outcome_cannot_be_used_has_no_key() -> None:
    columns = columns_of(Bounds(outcome=(0, 1), propensity=(0.2, 0.7)), propensity="e")
    named = compile_rows(columns, None, Strict(wide=frozenset("y")))
    assert named.e is not None
    known: list[tuple[Any, bool]] = [(0.2, True), (0.7, True), (0.19, False), (0.71, False), (None, False)]
    for e, usable in [*known, (math.nan, False), (math.inf, False), (-math.inf, False)]:
        row = {"y": 1, "t": 1, "e": e}
        assert (named.key(row), named.e(row)) == ((1, e) if usable else (None, None))
    for y in (2**53, 2**53 + 1):
        assert (named.key({"y": y, "t": 1, "e": 0.5}) is None) == (y > 2**53)


@pytest.mark.parametrize("fill", [None, 0.25])
def test_an_outcome_is_itself_or_filled_or_nothing(fill: float | None) -> None:
    columns = columns_of(Bounds(outcome=(0, 1), outcome_fill=fill))
    y = compile_rows(columns, None, Strict()).y
    assert [y({"y": value}) for value in (0.5, None, math.nan)] == [0.5, fill, fill]
    assert [y({"y": value}) for value in (math.inf, -math.inf)] == [None, None]


def test_a_probability_by_design_is_a_number_and_one_that_is_missing_is_noticed() -> None:
    columns = columns_of(Bounds(outcome=(0, 1)), propensity=0.25)
    named = compile_rows(columns, None, Strict())
    assert compile_expression(E, named, Strict(), columns)({}) == 0.25
    without = columns_of(Bounds(outcome=(0, 1)))
    with pytest.raises(AssertionError, match="do not have"):
        compile_expression(E, compile_rows(without, None, Strict()), Strict(), without)


def test_an_arm_of_a_formula_is_that_of_the_row() -> None:
    bounds = Bounds(outcome=(0, 1))
    arms = Formula("arm", (number(2.0), number(3.0)))
    one: Any = Strict().constant(1.0)
    for arm in (0, 1):
        named = Named(Strict().whole(arm), Strict().whole(arm), one, None)
        assert compile_expression(arms, named, Strict(), columns_of(bounds))({}) == 2.0 + arm


FILTERS: dict[str, Any] = {
    "a range": {"x": (1, 2.5)},
    "an open range": {"x": (1, None)},
    "the other open range": {"x": (None, 2.5)},
    "values": {"x": [1, 2.75]},
}


@pytest.mark.parametrize("where", FILTERS.values(), ids=FILTERS)
def test_a_filter_keeps_the_numbers_that_it_keeps_in_numpy(where: Any) -> None:
    (condition,), (made,) = conditions(where), compile_filters(conditions(where), Strict())
    expected = condition.mask(pa.array(NUMBERS, pa.float64())).tolist()
    assert [made({"x": value}) is True for value in NUMBERS] == expected


def test_a_filter_keeps_the_texts_that_it_names_and_leaves_hashes_to_sweeps() -> None:
    from discreet.data.filters import Half

    asked = (Condition("id", half=Half(1, 0, False)), *conditions({"x": ["a", "b"], "y": (0, 1)}))
    texts, numbers_ = compile_filters(asked, Strict())
    assert [texts({"x": value}) is True for value in ("a", "b", "c", None)] == [True, True, False, False]
    assert [numbers_({"y": value}) for value in (0.5, 2.0)] == [True, False]


@pytest.mark.parametrize("fill", [None, "no"])
def test_an_outcome_of_two_labels_is_zero_or_one_and_nothing_where_it_is_neither(fill: str | None) -> None:
    columns = columns_of(Bounds(outcome=["no", "yes"], outcome_fill=fill))
    named = compile_rows(columns, None, Strict())
    values = ["no", "yes", "maybe", None]
    assert [named.y({"y": value, "t": 0}) for value in values] == [0.0, 1.0, None, None if fill is None else 0.0]
    coded = compile_expression(Y, named, Strict(), columns)
    assert [coded({"y": value, "t": 0}) for value in ("no", "yes")] == [-1.0, 1.0]
