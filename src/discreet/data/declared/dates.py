"""Dates and times: a declared range of them, and how they become numbers of days."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa

from discreet.data._arrays import Float, Values, as_numpy
from discreet.data.columns import Range, arrow, numbers
from discreet.exceptions import InvalidInput

_EPOCH = datetime(1970, 1, 1)
_DAY = timedelta(days=1)
# Arrow counts microseconds.
_MICROSECONDS = 86_400e6


@dataclass(frozen=True, slots=True)
class DateRange(Range):
    """A column of dates or times, and the range that they are clipped to: days since 1970-01-01, in UTC.

    Parameters
    ----------
    low, high : date, datetime, or text like "2020-01-31" or "2020-01-31 13:45"
        Ends of the range, declared from outside knowledge.
    fill : the same, optional
        What a missing date counts as. Without it, missing dates are refused.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import discreet as dc
    >>> admitted = dc.Bounds(outcome=(0, 1), covariates={"admitted": ("2020-01-01", "2020-12-31")}).columns[0]
    >>> admitted.encode(pa.array(["2019-05-01", "2020-07-01 12:00", "2020-12-31"])).round(3).tolist()
    [-1.0, 0.0, 1.0]
    """

    def __post_init__(self) -> None:
        for name in ("low", "high", "fill"):
            given: object = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, day(given))
        Range.__post_init__(self)

    def encode(self, values: Values, name: str = "The column", out: Float | None = None) -> Float:
        """Clip to the range, then map it onto [-1, 1]; numbers are days since 1970-01-01."""
        return Range.encode(self, days(values, name), name, out)

    def written(self, number: float) -> str:
        """A number of days as the date, or time, that it is."""
        return in_words(number)


def is_date(value: object) -> bool:
    """Whether somebody wrote down a date or a time."""
    if isinstance(value, str):
        try:
            day(value)
        except InvalidInput:
            return False
        return True
    return isinstance(value, date)


def day(value: object) -> float:
    """Days since 1970-01-01 of a date, a time, or a text that says one; numbers are days already."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidInput("A date must be written like 2020-01-31, or 2020-01-31 13:45: write it so.") from None
    if isinstance(value, datetime):
        plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return (plain - _EPOCH) / _DAY
    if isinstance(value, date):
        return float((value - _EPOCH.date()).days)
    raise InvalidInput("A date must be written like 2020-01-31, or 2020-01-31 13:45: write it so.")


def in_words(number: float) -> str:
    """The date, or time, of a number of days."""
    found = _EPOCH + number * _DAY
    return found.date().isoformat() if number == math.floor(number) else found.isoformat(sep=" ")


def days(values: Values, name: str) -> Float:
    """Days since 1970-01-01 as float64, NaN for what is missing; each value by itself."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return numbers(values, name)
    column = arrow(values, name)
    kind = column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (text or pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
            return numbers(column, name)
        raise InvalidInput(f"{name} must hold dates, but its type is {kind}: convert it, or declare what it holds.")
    try:
        # Text first becomes text of the usual kind: Arrow parses no other.
        column = column.cast(pa.string()) if text else column
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        micro = column.cast(pa.timestamp("us", tz=zone), safe=text)
    except pa.ArrowException:
        # Arrow's own sentence quotes the value that it stumbled over.
        raise InvalidInput(not_dates(name)) from None
    x: Float = as_numpy(micro.cast(pa.int64()).cast(pa.float64(), safe=False), math.nan) / _MICROSECONDS
    return x


def not_dates(name: str) -> str:
    """The refusal of text that is no date."""
    return f"{name} must hold dates like 2020-01-31 or 2020-01-31 13:45, as its bounds declare: convert it."
