"""Counts and sums by cell and arm in an engine's own words, bit for bit what NumPy computes from encoded chunks.

Cells are found by comparing raw values with thresholds. Encoding a range is monotone in floating point as well, so that
a record's encoded value reaches an edge exactly if its raw value reaches the smallest number that is encoded so.
Dividing by a width is monotone too: where it steps at these very numbers, it takes the comparisons' place.
What cannot be used makes a record's cell NULL, and is then refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from discreet.data._arrays import Float
from discreet.data.backends.scan import Columns
from discreet.data.bounds import Levels, Range
from discreet.data.expressions import Formula, vanishing
from discreet.data.filters import Condition
from discreet.data.partition import Cut, Partition

T = TypeVar("T")


class Dialect(Protocol[T]):
    """What an engine has to say; T is its kind of expression. Numbers are float64, and casts and NULL are explicit."""

    @property
    def raises(self) -> bool:
        """Whether a product or a quotient that rounds to zero is an error, where IEEE arithmetic goes on."""
        ...

    def number(self, column: str) -> T:
        """A column as float64, NULL where it is missing."""
        ...

    def text(self, column: str) -> T:
        """A column as text, NULL where it is missing."""
        ...

    def usable(self, column: str) -> T | None:
        """Whether a numeric column's value fits into float64 (2**53); None where its type says so."""
        ...

    def constant(self, value: float | str) -> T:
        """A float64 number to the last bit, or a text."""
        ...

    def whole(self, value: int) -> T:
        """A small integer."""
        ...

    def arithmetic(self, sign: str, left: T, right: T) -> T:
        """+, -, * or / of two numbers."""
        ...

    def compare(self, sign: str, left: T, right: T) -> T:
        """<, <=, >= or = of two numbers, or = of two texts; not met where either is NULL.

        NaN is larger than every number and infinity, as DuckDB, PostgreSQL and polars have it.
        """
        ...

    def finite(self, value: T) -> T:
        """Whether a number is neither missing nor NaN nor infinite."""
        ...

    def missing(self, value: T, *, text: bool) -> T:
        """Whether a value is NULL, or a number is NaN."""
        ...

    def present(self, value: T) -> T:
        """Whether a number is neither NULL nor NaN."""
        ...

    def every(self, conditions: Sequence[T]) -> T:
        """Whether all conditions are met."""
        ...

    def some(self, conditions: Sequence[T]) -> T:
        """Whether any condition is met."""
        ...

    def choose(self, cases: Sequence[tuple[T, T]], otherwise: T | None = None) -> T:
        """The value of the first case whose condition is met; ``otherwise``, or NULL, where none is."""
        ...

    def clip(self, value: T, low: float, high: float) -> T:
        """A number that is not NaN held between two others; NULL may become anything."""
        ...

    def rint(self, value: T) -> T:
        """The nearest whole number, of two the even one; below 2**51."""
        ...

    def floor(self, value: T, plus: int) -> T | None:
        """The next whole number below, and a small one; NULL for NaN and infinity. None where comparing does."""
        ...

    @property
    def nothing(self) -> T:
        """NULL."""
        ...


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """Expressions of the rows of a table."""

    key: T
    """twice the cell, and one more where treated; NULL where the row cannot be used"""
    arm: T
    """0 or 1"""
    y: T
    """the outcome in its own unit, filled where it is missing; NULL where it cannot be used"""
    e: T | None
    """the known probability, where it is a column"""


def compile_rows(columns: Columns, partition: Partition | None, dialect: Dialect[T]) -> Named[T]:
    """Cell, arm, outcome and probability of every row."""
    bounds, checks = columns.bounds, []
    arm = _level(columns.treatment, bounds.arms, (0, 1), dialect)
    key = dialect.arithmetic("+", dialect.arithmetic("*", _cell(columns, partition, dialect), dialect.whole(2)), arm)
    e: T | None = None
    if isinstance(columns.propensity, str):
        given = dialect.number(columns.propensity)
        low, high = (dialect.constant(end) for end in bounds.propensity)
        inside = [dialect.finite(given), dialect.compare(">=", given, low), dialect.compare("<=", given, high)]
        checks += inside
        # NULL elsewhere: some engines refuse to divide by zero, in words that say nothing of probabilities.
        e = dialect.choose([(dialect.every(inside), given)])
    if (check := dialect.usable(columns.outcome)) is not None:
        checks.append(check)
    if checks:
        key = dialect.choose([(dialect.every(checks), key)])
    y = dialect.number(columns.outcome)
    outcomes = [(dialect.finite(y), y)]
    if bounds.outcome_fill is not None:
        outcomes.append((dialect.missing(y, text=False), dialect.constant(bounds.outcome_fill)))
    return Named(key, arm, dialect.choose(outcomes), e)


def compile_expression(formula: Formula, named: Named[T], dialect: Dialect[T], columns: Columns) -> T:
    """A formula of rows whose cell, arm, outcome and probability are ``named``."""
    args = [compile_expression(arg, named, dialect, columns) for arg in formula.args]
    match formula.op:
        case "y":
            return encoded(named.y, columns.bounds.outcome_range, dialect)
        case "e":
            return named.e if named.e is not None else dialect.constant(_given(columns))
        case "number":
            return dialect.constant(formula.numbers[0])
        case "clip":
            return dialect.clip(args[0], *formula.numbers)
        case "rint":
            return dialect.rint(args[0])
        case "arm":
            treated = dialect.compare("=", named.arm, dialect.whole(1))
            return dialect.choose([(treated, args[1])], args[0])
        case _:
            return _calculated(formula, args, dialect)


_SIGNS = {"plus": "+", "minus": "-", "times": "*", "over": "/"}


def _calculated(formula: Formula, args: Sequence[T], dialect: Dialect[T]) -> T:
    """+, -, * or / of two formulas, with the zeros of IEEE arithmetic where the engine would raise an error."""
    sign, (left, right) = _SIGNS[formula.op], args
    plain = dialect.arithmetic(sign, left, right)
    if not dialect.raises or sign in "+-":
        return plain
    first, second = (arg.constant for arg in formula.args)
    if second is not None:
        beside = formula.args[0].args[0].constant if formula.args[0].op == "plus" else None
        if beside and abs(beside) > 1e-9 < abs(second) < 1e9:
            # Next to such a constant, nothing but zero is nearer to zero than the constant's last digit.
            return plain
        return by_constant(sign, left, second, dialect)
    if sign == "*" and first is not None:
        return by_constant(sign, right, first, dialect)
    if formula.op == "times" and formula.args[0] == formula.args[1]:
        return _or_zero(left, vanishing("^", 2.0), plain, dialect)
    if sign == "*" and "rint" in (arg.op for arg in formula.args):
        # A whole number: the product is zero only if one of them is.
        return plain
    # Half of the smallest number rounds to zero. Both sides scaled, that is one half, and nothing gets lost before.
    if sign == "*":
        # What hardly any record meets comes first.
        tried, powers = [dialect.some([_within(each, 2.0**-537, dialect) for each in (left, right)])], (537, 537)
        tried += [_within(left, 1.0, dialect), _within(right, 1.0, dialect)]
    else:
        large = [dialect.compare(side, right, dialect.constant(end)) for side, end in ((">=", 1.0), ("<=", -1.0))]
        tried, powers = [_within(left, 2.0**-51, dialect), dialect.some(large)], (562, -512)
    one, other = (
        dialect.arithmetic("*", each, dialect.constant(2.0**by)) for each, by in zip(args, powers, strict=True)
    )
    found = _or_zero(dialect.arithmetic(sign, one, other), 0.5, plain, dialect)
    return dialect.choose([(dialect.every(tried), found)], plain)


def by_constant(sign: str, value: T, constant: float, dialect: Dialect[T]) -> T:
    """A number times or over a constant, with the zeros of IEEE arithmetic."""
    plain = dialect.arithmetic(sign, value, dialect.constant(constant))
    return _or_zero(value, vanishing(sign, constant), plain, dialect) if dialect.raises else plain


def _or_zero(value: T, last: float, otherwise: T, dialect: Dialect[T]) -> T:
    return dialect.choose([(_within(value, last, dialect), dialect.constant(0.0))], otherwise) if last else otherwise


def _within(value: T, size: float, dialect: Dialect[T]) -> T:
    return dialect.every(
        [dialect.compare(sign, value, dialect.constant(end)) for sign, end in ((">=", -size), ("<=", size))]
    )


def compile_filters(conditions: Sequence[Condition], dialect: Dialect[T]) -> list[T]:
    """What the rows that are meant have to meet, as far as an engine can say it: hashes are taken in sweeps."""
    made = []
    for condition in conditions:
        if condition.half is not None:
            continue
        value = dialect.text(condition.column) if condition.is_text else dialect.number(condition.column)
        if condition.values:
            equal = dialect.some([dialect.compare("=", value, dialect.constant(each)) for each in condition.values])
            made.append(equal if condition.is_text else dialect.every([equal, dialect.present(value)]))
            continue
        ends = [(">=", condition.low), ("<=", condition.high)]
        parts = [dialect.compare(sign, value, dialect.constant(end)) for sign, end in ends if end is not None]
        # Some engines take NaN for the largest number of all.
        made.append(dialect.every([*parts, dialect.present(value)]))
    return made


@lru_cache(maxsize=256)
def thresholds(cut: Cut, spec: Range) -> tuple[float, ...]:
    """Smallest raw numbers that belong to the second part, the third and so on."""
    if not cut.edges:
        return ()
    edges = spec.encode(np.array(cut.edges, dtype=np.float64))
    # Floats in the order of integers: bisect between the lowest and the highest number there is.
    low = np.full(len(edges), _ordered(-np.finfo(np.float64).max))
    high = np.full(len(edges), _ordered(np.finfo(np.float64).max))
    while np.any(low < high):
        # Halved one by one: the sum of two such integers may not fit.
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = spec.encode(_float(middle)) >= edges
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + 1, high))
    return tuple(_float(high).tolist())


class Steps(NamedTuple):
    """``floor((x - origin) / width) + first`` is the part of every x from ``low`` to less than ``high``."""

    low: float
    high: float
    origin: float
    width: float
    first: int


def equal_steps(cut: Cut, spec: Range) -> Steps | None:
    """How to divide instead of compare; None where that would be wrong for a single number, as edges are rounded.

    Differences, quotients and floors keep order, so that only the numbers around each threshold have to be tried.
    """
    edges, width = np.array(thresholds(cut, spec)), (spec.high - spec.low) / cut.count
    # Next to the high end the quotient may be rounded up.
    low, high = spec.low, spec.high - width / 2**40
    if not len(edges) or width == 0.0 or not low < edges[0] <= edges[-1] < high:
        return None
    tried = np.concatenate([edges, np.nextafter(edges, -np.inf), [low, high]])
    parts = np.searchsorted(edges, tried, side="right")
    for origin, first in [(low, 0), (spec.middle, cut.count // 2)]:
        if np.array_equal(np.floor((tried - origin) / width) + first, parts):
            return Steps(low, high, origin, width, first)
    return None


def _ordered(value: float) -> int:
    bits = int(np.array(value).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _float(ordered: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Float:
    size = np.abs(ordered).view(np.float64)
    return np.where(ordered < 0, -size, size)


def _cell(columns: Columns, partition: Partition | None, dialect: Dialect[T]) -> T:
    cell: T | None = None
    for cut in () if partition is None else partition.cuts:
        part = part_of(cut, columns, dialect)
        cell = (
            part
            if cell is None
            else dialect.arithmetic("+", dialect.arithmetic("*", cell, dialect.whole(cut.count)), part)
        )
    return dialect.whole(0) if cell is None else cell


def part_of(cut: Cut, columns: Columns, dialect: Dialect[T]) -> T:
    """Which part of a cut a row is in; NULL where that cannot be said."""
    spec, name = columns.bounds.columns[cut.column], columns.covariates[cut.column]
    if isinstance(spec, Levels):
        return _level(name, spec, cut.groups or (), dialect)
    x, edges = dialect.number(name), thresholds(cut, spec)
    otherwise = dialect.nothing
    if spec.fill is not None:
        part = int(cut.parts(spec.encode(np.array([spec.fill])), spec)[0])
        otherwise = dialect.choose([(dialect.missing(x, text=False), dialect.whole(part))])
    # Asked outright: engines that know the least and the largest number of a column drop comparisons that all numbers
    # meet, and let NaN pass with them.
    fits = [] if (check := dialect.usable(name)) is None else [check]
    if spec.fill is None and (found := stepped(x, cut, spec, fits, otherwise, dialect)) is not None:
        return found
    found = tree(x, edges, [dialect.whole(k) for k in range(cut.count)], dialect)
    return dialect.choose([(dialect.every([dialect.finite(x), *fits]), found)], otherwise)


def stepped(x: T, cut: Cut, spec: Range, fits: Sequence[T], otherwise: T, dialect: Dialect[T]) -> T | None:
    """Which part of a range a number is in, by division; None where only comparisons tell."""
    if (steps := equal_steps(cut, spec)) is None:
        return None
    apart = x if steps.origin == 0.0 else dialect.arithmetic("-", x, dialect.constant(steps.origin))
    # NaN is caught here as well, should a comparison have let it pass.
    part = dialect.floor(dialect.arithmetic("/", apart, dialect.constant(steps.width)), steps.first)
    if part is None:
        return None
    low, high = dialect.constant(steps.low), dialect.constant(steps.high)
    usable = [dialect.finite(x), *fits]
    return dialect.choose(
        [
            (dialect.every([dialect.compare(">=", x, low), dialect.compare("<", x, high), *fits]), part),
            (dialect.every([dialect.compare("<", x, low), *usable]), dialect.whole(0)),
            (dialect.every([dialect.compare(">=", x, high), *usable]), dialect.whole(cut.count - 1)),
        ],
        otherwise,
    )


def tree(x: T, edges: Sequence[float], leaves: Sequence[T], dialect: Dialect[T]) -> T:
    """The leaf between whose edges a number is, a leaf holding its lower edge."""
    if not edges:
        return leaves[0]
    half = len(edges) // 2
    below = dialect.compare("<", x, dialect.constant(edges[half]))
    first, rest = (
        tree(x, edges[:half], leaves[: half + 1], dialect),
        tree(x, edges[half + 1 :], leaves[half + 1 :], dialect),
    )
    return dialect.choose([(below, first)], rest)


def _level(name: str, spec: Levels, groups: Sequence[int], dialect: Dialect[T]) -> T:
    value = dialect.text(name) if spec.is_text else dialect.number(name)
    cases = [
        (dialect.compare("=", value, dialect.constant(level if isinstance(level, str) else float(level))), group)
        for level, group in zip(spec.levels, groups, strict=True)
    ]
    otherwise = dialect.nothing
    absent = dialect.missing(value, text=spec.is_text)
    if spec.other is not None:
        # What is missing is no other level, and neither is a number that float64 cannot tell from its neighbours.
        other, check = (
            dialect.whole(groups[spec.levels.index(spec.other)]),
            None if spec.is_text else dialect.usable(name),
        )
        otherwise = dialect.choose(
            [(absent, dialect.nothing)], other if check is None else dialect.choose([(check, other)])
        )
    if spec.fill is not None:
        otherwise = dialect.choose([(absent, dialect.whole(groups[spec.levels.index(spec.fill)]))], otherwise)
    return dialect.choose([(condition, dialect.whole(group)) for condition, group in cases], otherwise)


def encoded(y: T, spec: Range, dialect: Dialect[T]) -> T:
    """`Range.encode` step by step."""
    inside, half = dialect.clip(y, spec.low, spec.high), spec.high / 2 - spec.low / 2
    apart = inside if spec.middle == 0.0 else dialect.arithmetic("-", inside, dialect.constant(spec.middle))
    # A power of two: the same bits, and most engines divide slowly.
    sign, by = ("*", 1.0 / half) if math.frexp(half)[0] == 0.5 and math.isfinite(1.0 / half) else ("/", half)
    # No number is nearer to the middle than this without being it.
    scaled, last = dialect.arithmetic(sign, apart, dialect.constant(by)), vanishing(sign, by)
    if dialect.raises and abs(spec.middle) * 2.0**-54 <= last:
        # Clipping changes nothing that near to a middle of zero: the outcome as it is takes less time to compare.
        scaled = _or_zero(y if spec.middle == 0.0 and last < half else apart, last, scaled, dialect)
    # Rounding keeps order: if the ends stay inside, so does everything between them.
    if (spec.high - spec.middle) / half <= 1.0 and (spec.low - spec.middle) / half >= -1.0:
        return scaled
    return dialect.clip(scaled, -1.0, 1.0)


def _given(columns: Columns) -> float:
    assert isinstance(columns.propensity, float), "a formula uses a probability that these records do not have"
    return columns.propensity
