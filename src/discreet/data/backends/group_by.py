"""Counts and sums by cell and arm as expressions of an engine, bit for bit what NumPy computes from encoded chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from discreet.data.backends.cells import cell_of, level_of
from discreet.data.backends.dialect import Dialect, T
from discreet.data.backends.scan import Columns
from discreet.data.bounds import Range
from discreet.data.expressions import Formula, vanishing
from discreet.data.filters import Condition
from discreet.data.partition import Partition


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """Expressions of the rows of a table."""

    key: T
    """twice the cell, and one more where treated; NULL where the row cannot be used"""
    arm: T
    """0 or 1"""
    y: T
    """the outcome in its own unit (0 or 1 if it is binary), filled where it is missing; NULL where it cannot be used"""
    e: T | None
    """the known probability, where it is a column"""


def compile_rows(columns: Columns, partition: Partition | None, dialect: Dialect[T]) -> Named[T]:
    """Cell, arm, outcome and probability of every row."""
    bounds, checks = columns.bounds, []
    arm = level_of(columns.treatment, bounds.arms, [dialect.whole(0), dialect.whole(1)], dialect)
    key = dialect.arithmetic("+", dialect.arithmetic("*", cell_of(columns, partition, dialect), dialect.whole(2)), arm)
    e: T | None = None
    if isinstance(columns.propensity, str):
        given = dialect.number(columns.propensity)
        low, high = (dialect.constant(end) for end in bounds.propensity)
        inside = [dialect.finite(given), dialect.compare(">=", given, low), dialect.compare("<=", given, high)]
        checks.extend(inside)
        # NULL elsewhere: some engines refuse to divide by zero, in words that say nothing of probabilities.
        e = dialect.choose([(dialect.every(inside), given)])
    if (check := dialect.usable(columns.outcome)) is not None:
        checks.append(check)
    if checks:
        key = dialect.choose([(dialect.every(checks), key)])
    return Named(key, arm, _outcome(columns, dialect), e)


def _outcome(columns: Columns, dialect: Dialect[T]) -> T:
    levels, spec = columns.bounds.outcome_levels, columns.bounds.outcome_range
    if levels is not None:
        return level_of(columns.outcome, levels, [dialect.constant(0.0), dialect.constant(1.0)], dialect)
    y = dialect.number(columns.outcome)
    outcomes = [(dialect.finite(y), y)]
    if spec.fill is not None:
        outcomes.append((dialect.missing(y, text=False), dialect.constant(spec.fill)))
    return dialect.choose(outcomes)


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
    """What the rows that are used have to meet, as far as an engine can say it: hashes are taken in sweeps."""
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


def encoded(y: T, spec: Range, dialect: Dialect[T]) -> T:
    """`Range.encode` step by step."""
    inside, half = dialect.clip(y, spec.low, spec.high), spec.high / 2 - spec.low / 2
    apart = inside if spec.middle == 0.0 else dialect.arithmetic("-", inside, dialect.constant(spec.middle))
    # A power of two: the same bits, and most engines divide slowly.
    sign, by = ("*", 1.0 / half) if math.frexp(half)[0] == 0.5 and math.isfinite(1.0 / half) else ("/", half)
    scaled = dialect.arithmetic(sign, apart, dialect.constant(by))
    if dialect.raises and spec.middle == 0.0:
        # Around any other middle floats are too far apart for a difference to vanish. Clipping changes nothing that
        # near to zero: the outcome as it is takes less time to compare.
        scaled = _or_zero(y, vanishing(sign, by), scaled, dialect)
    # Rounding keeps order: if the ends stay inside, so does everything between them.
    if (spec.high - spec.middle) / half <= 1.0 and (spec.low - spec.middle) / half >= -1.0:
        return scaled
    return dialect.clip(scaled, -1.0, 1.0)


def _given(columns: Columns) -> float:
    assert isinstance(columns.propensity, float), "a formula uses a probability that these records do not have"
    return columns.propensity
