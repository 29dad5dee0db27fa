"""One column of records: what it is declared to hold, and how its values become bounded numbers."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.data._arrays import Codes, Float, Level, Values, as_numpy, text_array
from discreet.exceptions import InvalidInput

# Levels are matched a slice at a time, so that a long column of text never exists twice.
_SLICE = 65_536
# So many levels are compared with every number one by one; more are searched.
_FEW_LEVELS = 64
# From here on neighbouring integers share a float64.
_EXACT = 2**53
# The largest power of ten that float64 holds exactly.
_EXACT_POWER = 22
# Words for 1 and 0 where exactly these two can be meant; case does not matter.
TRUE_WORDS = ("true", "yes", "t", "y", "1", "1.0")
FALSE_WORDS = ("false", "no", "f", "n", "0", "0.0")


Missing: TypeAlias = Literal["indicator"]


@dataclass(frozen=True, slots=True)
class Range:
    """A numeric column and the interval that its values are clipped to.

    Parameters
    ----------
    low, high : float
        Ends of the interval, declared from outside knowledge.
    fill : float, optional
        What a missing value counts as. Without it, missing values are refused.
    missing : "indicator", optional
        Put a covariate beside this one, beside its fill: whether the value is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> age = dc.Range(18, 98, fill=58)
    >>> age.encode(np.array([18, 58, 98, 120, np.nan]))
    array([-1.,  0.,  1.,  1.,  0.])
    """

    low: float
    high: float
    fill: float | None = None
    missing: Missing | None = None

    def __post_init__(self) -> None:
        low, high = finite(self.low, "a range's low end"), finite(self.high, "a range's high end")
        if low == high:
            raise InvalidInput("A range needs low < high: a constant carries no information, so drop the column.")
        if low > high:
            raise InvalidInput("A range needs low < high, but its ends are reversed: swap them.")
        if not 0 < high / 2 - low / 2 < math.inf or math.isinf(high - low):
            raise InvalidInput("A range's width must be an ordinary floating-point number: change its unit.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.fill is not None:
            fill = finite(self.fill, "a range's fill")
            if not low <= fill <= high:
                raise InvalidInput("A range's fill must lie between low and high: choose one inside.")
            object.__setattr__(self, "fill", fill)
        _check_missing(self)

    @property
    def width(self) -> float:
        """The length of the interval."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """The centre of the interval."""
        return self.low / 2 + self.high / 2

    def encode(self, values: Values, name: str = "The column", out: Float | None = None) -> Float:
        """Clip to the interval, then map it onto [-1, 1]; in ``out`` if it is given.

        Missing values become ``fill``, infinite ones are refused.
        """
        half = self.high / 2 - self.low / 2
        if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.size and self._reaches(half):
            with np.errstate(over="ignore", invalid="ignore"):
                x = np.subtract(values, self.middle, out=out)
                x /= half
            # What lies beyond an end is mapped to or beyond that end: inside, there was nothing to clip or refuse.
            if x.min() >= -1.0 and x.max() <= 1.0:
                return x
        x = numbers(values, name, out)
        # Written so that NaN is outside.
        if x.size and not (self.low <= x.min() and x.max() <= self.high):
            self._force_inside(x, name)
        x -= self.middle
        x /= half
        # Rounding in the two lines above can step over the ends by one unit in the last place.
        if x.size and not (x.min() >= -1.0 and x.max() <= 1.0):
            np.clip(x, -1.0, 1.0, out=x)
        return x

    def written(self, number: float) -> float | str:
        """A number as people write it: itself."""
        return number

    def _reaches(self, half: float) -> bool:
        """Whether rounding leaves both ends of the interval at or beyond those of [-1, 1]."""
        return (self.high - self.middle) / half >= 1.0 and (self.low - self.middle) / half <= -1.0

    def _force_inside(self, x: Float, name: str) -> None:
        if not np.isfinite(x).all():
            missing = np.isnan(x)
            if np.isinf(x).any():
                raise InvalidInput(f"{name} has infinite values: replace them by numbers, or leave those records out.")
            if self.fill is None:
                raise InvalidInput(_missing(name))
            x[missing] = self.fill
        np.clip(x, self.low, self.high, out=x)


@dataclass(frozen=True, slots=True)
class Levels:
    """A categorical column and the complete list of its levels.

    Parameters
    ----------
    levels : sequence of str, or of int, float and bool
        At least two different ones, declared from outside knowledge. Numbers match by value: 1, 1.0 and True are one.
    other : level, optional
        The declared level that collects values outside the list. Without it, they are refused.
    fill : level, optional
        The declared level that a missing value counts as. Without it, missing values are refused.
    missing : "indicator", optional
        As for a range.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> ward = dc.Levels(("north", "south", "elsewhere"), other="elsewhere")
    >>> ward.encode(np.array(["south", "north", "attic"]))
    array([1., 0., 2.])
    """

    levels: tuple[Level, ...]
    other: Level | None = None
    fill: Level | None = None
    missing: Missing | None = None

    def __post_init__(self) -> None:
        given: object = self.levels
        if not isinstance(given, tuple | list):
            raise InvalidInput("levels must be a list of levels, not data: declare them, do not compute them.")
        levels = tuple(_level(level) for level in given)
        if len({isinstance(level, str) for level in levels}) > 1:
            raise InvalidInput("levels must be all text or all numbers: write them the way the column stores them.")
        if len(levels) < 2:
            raise InvalidInput(
                "levels must list at least two: a single level carries no information, so drop the column."
            )
        if len(set(levels)) < len(levels):
            raise InvalidInput("levels must differ from each other (1, 1.0 and True are one): remove the duplicates.")
        object.__setattr__(self, "levels", levels)
        for role in ("other", "fill"):
            value = getattr(self, role)
            if value is not None:
                if _level(value) not in levels:
                    raise InvalidInput(f"{role} must be one of the declared levels: add it to the list.")
                object.__setattr__(self, role, _level(value))
        _check_missing(self)

    @property
    def is_text(self) -> bool:
        """Whether the levels are strings rather than numbers."""
        return isinstance(self.levels[0], str)

    def codes(self, values: Values, name: str = "The column") -> Codes:
        """Positions in the list of levels, in the smallest integer type that holds them."""
        count = len(self.levels)
        codes = np.empty(len(values), dtype=np.min_scalar_type(-count))
        for start in range(0, len(codes), _SLICE):
            part = slice(start, start + _SLICE)
            codes[part] = self._match(values[part], name)
        return codes

    def encode(self, values: Values, name: str = "The column") -> Float:
        """Positions in the list of levels, as float64."""
        return self.codes(values, name).astype(np.float64)

    def _match(self, values: Values, name: str) -> Codes:
        codes: Codes
        if self.is_text:
            column = texts(values, name)
            found = pc.index_in(column, value_set=text_array(self.levels))
            codes, missing = np.array(as_numpy(found, -1)), as_numpy(pc.is_null(column))
        else:
            x = truths(values, name) if set(self.levels) <= {0, 1} else numbers(values, name)
            codes, missing = _places(x, np.array(self.levels, dtype=np.float64)), np.isnan(x)
        if missing.any():
            if self.fill is None:
                raise InvalidInput(_missing(name))
            codes[missing] = self.levels.index(self.fill)
        unknown = codes < 0
        if unknown.any():
            if self.other is None:
                raise InvalidInput(
                    f"{name} has values outside its declared levels: declare them, or declare which level is other=."
                )
            codes[unknown] = self.levels.index(self.other)
        return codes


def _check_missing(spec: Range | Levels) -> None:
    if spec.missing is not None and (spec.missing != "indicator" or spec.fill is None):
        raise InvalidInput(
            'missing must be "indicator", beside a fill: declare what a missing value counts as, or leave it out.'
        )


def numbers(values: Values, name: str, out: Float | None = None) -> Float:
    """A float64 copy, in ``out`` if it is given, with NaN for what is missing; text, dates and such are refused."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            _check_whole(values, name)
        return _copied(values, out)
    column = arrow(values, name)
    kind = column.type
    if not any(is_kind(kind) for is_kind in _NUMERIC):
        raise InvalidInput(f"{name} must hold numbers, but its type is {kind}: convert it, or declare its levels.")
    if pa.types.is_decimal(kind):
        return _copied(decimals(column, name), out)
    if kind in (pa.int64(), pa.uint64()):
        _check_whole(as_numpy(column), name)
    return _copied(as_numpy(column.cast(pa.float64(), safe=False), math.nan), out)


def truths(values: Values, name: str) -> Float:
    """Numbers, where yes and no, true and false may be written for 1 and 0."""
    column = arrow(values, name)
    if not any(is_kind(column.type) for is_kind in _TEXT) or pa.types.is_null(column.type):
        return numbers(values, name)
    words = pc.utf8_lower(pc.utf8_trim_whitespace(column.cast(pa.large_string())))
    found = as_numpy(pc.index_in(words, value_set=text_array([*FALSE_WORDS, *TRUE_WORDS])), -1)
    if not ((found >= 0) | as_numpy(pc.is_null(words))).all():
        raise InvalidInput(f"{name} must hold numbers, or yes and no, but has other text: declare its levels.")
    return np.where(found < 0, np.nan, (found >= len(FALSE_WORDS)) * 1.0)


def _places(x: Float, levels: Float) -> Codes:
    """Where each number is in a list of different ones; -1 where it is not in it."""
    if len(levels) <= _FEW_LEVELS:
        codes = np.full(len(x), -1, dtype=np.int8)
        for place, level in enumerate(levels):
            # One number equals one level at most.
            codes += (x == level) * np.int8(place + 1)
        return codes
    order = np.argsort(levels)
    nearest = order[np.minimum(np.searchsorted(levels, x, sorter=order), len(levels) - 1)]
    return np.where(levels[nearest] == x, nearest, -1)


def plain(values: Values) -> Values:
    """A column of whole or floating-point numbers, none of them missing, as a NumPy array; others as they are.

    The array refers to Arrow's memory. Slices of it are had for nothing, while those of Arrow's arrays are cast anew.
    """
    if isinstance(values, pa.ChunkedArray) and values.num_chunks == 1:
        values = values.chunk(0)
    if isinstance(values, pa.Array) and _is_plain(values.type) and not values.null_count:
        return as_numpy(values)
    return values


def _is_plain(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _copied(x: Any, out: Float | None) -> Float:
    # Arrow's own memory is read-only.
    if out is None:
        return np.array(x, dtype=np.float64)
    out[:] = x
    return out


def decimals(column: Any, name: str) -> Float:
    """Decimals as the nearest float64: every engine has to give the same one, and most have a cast of their own."""
    kind = column.type
    wide = column.cast(pa.decimal256(76, kind.scale)) if kind.scale >= 0 else column.cast(pa.decimal256(76, 0))
    scale = wide.type.scale
    parts = wide.chunks if isinstance(wide, pa.ChunkedArray) else [wide]
    out = np.empty(len(wide))
    start = 0
    for part in parts:
        words = np.frombuffer(part.buffers()[1], dtype=np.int64).reshape(-1, 4)[part.offset : part.offset + len(part)]
        low, rest = words[:, 0], words[:, 1:]
        small = (rest == (low >> 63)[:, None]).all(axis=1) & (np.abs(low) <= _EXACT) & (scale <= _EXACT_POWER)
        x = out[start : start + len(part)]
        # Both are exact in float64, so that the quotient is the nearest number to the decimal.
        np.divide(low, 10.0 ** min(scale, _EXACT_POWER), out=x)
        for i in np.flatnonzero(~small):
            value = part[int(i)].as_py()
            x[i] = np.nan if value is None else float(value)
        x[as_numpy(pc.is_null(part))] = np.nan
        start += len(part)
    if np.any(np.abs(out) > _EXACT):
        raise InvalidInput(too_large(name))
    return out


def _check_whole(values: Any, name: str) -> None:
    if len(values) and (int(values.max()) > _EXACT or int(values.min()) < -_EXACT):
        raise InvalidInput(too_large(name))


def too_large(name: str) -> str:
    """The refusal of numbers that float64 cannot hold."""
    return (
        f"{name} has whole numbers or decimals beyond 2**53, which float64 cannot distinguish: rescale the column, or "
        "store codes as text."
    )


def arrow(values: Values, name: str) -> Any:
    """The values as a PyArrow array with nulls for what is missing, dictionaries decoded."""
    if isinstance(values, np.ndarray):
        try:
            values = pa.array(values.astype(object) if values.dtype.kind == "T" else values, from_pandas=True)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            # Arrow's own sentence quotes the value that it stumbled over.
            raise one_kind(name) from None
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def one_kind(name: str) -> InvalidInput:
    """The refusal of a column that mixes numbers, text and other things."""
    return InvalidInput(f"{name} must hold one kind of value, numbers or text, in every record: convert it first.")


def is_data(value: object) -> bool:
    """Whether this is an array, a series or a frame, rather than something a person wrote down."""
    return any(hasattr(value, mark) for mark in ("__array__", "__dataframe__", "__arrow_c_stream__"))


def finite(value: object, what: str) -> float:
    """The value as a float, if it is a finite number."""
    if not isinstance(value, Real):
        raise InvalidInput(f"{what[0].upper()}{what[1:]} must be a number: write it down as one.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInput(f"{what[0].upper()}{what[1:]} must be finite: choose the largest value that makes sense.")
    return number


_NUMERIC = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_null,
)
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)


def texts(values: Values, name: str) -> Any:
    """The values as large strings; anything but text is refused."""
    column = arrow(values, name)
    kind = column.type
    if not any(is_kind(kind) for is_kind in _TEXT):
        raise InvalidInput(f"{name} must hold text like its declared levels, but its type is {kind}: convert either.")
    return column.cast(pa.large_string())


def _level(value: object) -> Level:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value
    if not isinstance(value, bool | int | float):
        raise InvalidInput("A level must be text, a number or a boolean: write it down as one.")
    if not abs(value) < _EXACT:
        raise InvalidInput("A numeric level must be smaller than 2**53 in size, and not NaN: write such codes as text.")
    return value


def _missing(name: str) -> str:
    return f"{name} has missing values: declare its fill in the bounds, or leave those records out."
