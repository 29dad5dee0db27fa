"""Which records of a table are used: a filter that is declared, not a query, so that it means the same everywhere.

A condition is a value, a list of values, or a pair (low, high) of numbers or dates, both ends included, None for an
open one. Numbers are compared as float64, text to the letter. What is missing (NULL, NaN) meets no condition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from discreet.data._arrays import Values, as_numpy, text_array
from discreet.data.columns import numbers, texts
from discreet.data.declared.dates import day, days, is_date
from discreet.data.sampling import part_numbers
from discreet.exceptions import InvalidInput

_EXACT = 2**53
_HOW = "a value, a list of values, or a pair (low, high) of numbers or dates"


@dataclass(frozen=True, slots=True)
class Half:
    """One half of the units by a keyed hash of their names, which are text or whole numbers."""

    key: int
    which: int
    text: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """What one column must hold: one of ``values``, or a number (or days) from ``low`` to ``high``; or its half."""

    column: str
    values: tuple[str, ...] | tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    half: Half | None = None
    dates: bool = False

    @property
    def is_text(self) -> bool:
        """Whether the column must hold text."""
        if self.half is not None:
            return self.half.text
        return bool(self.values) and isinstance(self.values[0], str)

    def mask(self, column: Values) -> npt.NDArray[np.bool_]:
        """Which rows meet it."""
        name = f"column {self.column!r} of where"
        if self.half is not None:
            found = part_numbers(column, f"column {self.column!r}", key=self.half.key, parts=2)
            return np.asarray(found == self.half.which)
        if self.is_text:
            found = pc.is_in(texts(column, name), value_set=text_array(self.values))
            return np.asarray(as_numpy(found))
        x = days(column, name) if self.dates else numbers(column, name)
        if self.values:
            return np.isin(x, np.array(self.values))
        met = ~np.isnan(x)
        # Comparisons with NaN are false anyway; an open end must not let it pass.
        if self.low is not None:
            met &= x >= self.low
        if self.high is not None:
            met &= x <= self.high
        return met


Where = tuple[Condition, ...]


def conditions(where: Mapping[str, Any] | None) -> Where:
    """Check a declared filter.

    Parameters
    ----------
    where : mapping, optional
        From columns to a value, a list of values, or a pair (low, high) of numbers or of dates.

    Privacy
    -------
    The filter is public, and so is the number of records that meet it under replace-one: a record is then replaced by
    another one that meets it. Under add-remove, whether a record meets it is protected as well.
    """
    if where is None:
        return ()
    if not isinstance(where, Mapping):
        raise InvalidInput(f"where must be a dictionary from columns to {_HOW}: SQL is not taken.")
    return tuple(_condition(name, wanted) for name, wanted in where.items())


def in_words(words: Sequence[str]) -> dict[str, Any]:
    """A filter as the command line takes it: "year=2020", "ward=a,b", "age=18:65" and "age=18:", each once."""
    where: dict[str, Any] = {}
    for word in words:
        name, equals, how = word.partition("=")
        if not equals or not name or not how or name in where:
            raise InvalidInput(f"--where takes year=2020, ward=a,b, age=18:65 or age=18:, each once, and not {word!r}.")
        ends = how.split(":")
        if len(ends) == 2 and any(all(not end or fits(end) for end in ends) for fits in (_is_number, is_date)):
            where[name] = tuple(_value(end) if end else None for end in ends)
            continue
        values = [_value(value) for value in how.split(",")]
        # One word among numbers makes all of them text.
        where[name] = values if all(isinstance(value, float) for value in values) else how.split(",")
    conditions(where)
    return where


def _is_number(word: str) -> bool:
    return isinstance(_value(word), float)


def _value(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _condition(name: object, wanted: Any) -> Condition:
    if not isinstance(name, str) or not name:
        raise InvalidInput("where must name its columns by text: write the name of a column.")
    if isinstance(wanted, tuple):
        if len(wanted) != 2 or all(end is None for end in wanted):
            raise InvalidInput(f"where[{name!r}] is no pair (low, high): give two numbers, or None for an open end.")
        dates = all(end is None or is_date(end) for end in wanted)
        low, high = _dates(wanted) if dates else (None if end is None else _number(name, end) for end in wanted)
        if low is not None and high is not None and low > high:
            raise InvalidInput(f"where[{name!r}] has its ends reversed, so that no record meets it: swap them.")
        return Condition(name, (), low, high, dates=dates)
    given = wanted if isinstance(wanted, list) else [wanted]
    if given and all(isinstance(value, str) for value in given):
        return Condition(name, tuple(given))
    if not given or any(isinstance(value, str) for value in given):
        raise InvalidInput(f"where[{name!r}] takes {_HOW}, all numbers or all text: write it that way.")
    return Condition(name, tuple(_number(name, value) for value in given))


def _dates(ends: tuple[Any, Any]) -> tuple[float | None, float | None]:
    """Ends of a range of dates as numbers of days; a day at its end is meant as a whole."""
    low, high = (None if end is None else day(end) for end in ends)
    return low, high if high is None or high != math.floor(high) else math.nextafter(high + 1.0, high)


def _number(name: str, value: Any) -> float:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, Real) or not abs(float(value)) <= _EXACT:
        raise InvalidInput(f"where[{name!r}] takes {_HOW}, and numbers of at most 2**53: write it that way.")
    return float(value)
