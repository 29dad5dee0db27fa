"""What a record adds to its cell, as a formula that every engine can compute to the last bit.

Only additions, products, quotients, clips and rounding to whole numbers, each of which IEEE arithmetic fixes: NumPy,
DuckDB, polars and PostgreSQL agree. The same formula is evaluated on chunks and written in an engine's own words.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import SimpleNamespace
from typing import Protocol

import numpy as np

from discreet.data._arrays import Float, IntArray


class Rows(Protocol):
    """Encoded records: what a formula may use of a `Chunk`."""

    @property
    def y(self) -> Float: ...

    @property
    def t(self) -> Float: ...

    @property
    def x(self) -> Float: ...

    @property
    def e(self) -> Float | None: ...


class HasCells(Protocol):
    """A partition: the cell of each row of encoded covariates."""

    def cells(self, x: Float) -> IntArray: ...


@dataclass(frozen=True, slots=True)
class Formula:
    """One number of a record.

    Parameters
    ----------
    op
        "y" (outcome on [-1, 1]), "e" (known probability), "number", "plus", "minus", "times", "over", "clip", "rint",
        or "arm" (the first argument for control records, the second for treated ones).
    args
        Formulas that it is made of.
    numbers
        The number itself, or where it is clipped.
    """

    op: str
    args: tuple[Formula, ...] = ()
    numbers: tuple[float, ...] = ()

    def __add__(self, other: Formula) -> Formula:
        return _made("plus", self, other)

    def __sub__(self, other: Formula) -> Formula:
        return _made("minus", self, other)

    def __mul__(self, other: Formula) -> Formula:
        return _made("times", self, other)

    def __truediv__(self, other: Formula) -> Formula:
        if other.constant and math.frexp(other.constant)[0] in (0.5, -0.5) and math.isfinite(1.0 / other.constant):
            # By a power of two: the same bits, and most engines divide slowly.
            return self * number(1.0 / other.constant)
        return _made("over", self, other)

    def clip(self, low: float, high: float) -> Formula:
        """Held between two numbers; left out where it is known to be there already."""
        known = ends(self)
        if known is not None and low <= known[0] and known[1] <= high:
            return self
        return _folded(Formula("clip", (self,), (float(low), float(high))))

    def rint(self) -> Formula:
        """The nearest whole number, of two the even one."""
        return _folded(Formula("rint", (self,)))

    @property
    def constant(self) -> float | None:
        """Its value where no record plays a part."""
        return self.numbers[0] if self.op == "number" else None

    def __call__(self, chunk: Rows) -> Float:
        """Its value for each record of a chunk."""
        return np.asarray(np.broadcast_to(_value(self, chunk), len(chunk.t)))


Y = Formula("y")
E = Formula("e")


def number(value: float) -> Formula:
    """The same number for every record."""
    return Formula("number", (), (float(value),))


def by_arm(control: Formula, treated: Formula) -> Formula:
    """One formula for control records, another for treated ones."""
    return Formula("arm", (control, treated))


@dataclass(frozen=True, slots=True)
class ByCell:
    """A map of records (see `Query`) that says what it is: a cell, and numbers by formula.

    Parameters
    ----------
    partition
        Which cell a record is in; None where all are in one.
    arms
        Whether the arms of a cell are kept separate: its number is then twice the cell's, and one more where treated.
    numbers
        What stands beside the cell's number.
    alone
        Whether there is one number and no cell's number beside it.
    """

    partition: HasCells | None
    arms: bool
    numbers: tuple[Formula, ...] = ()
    alone: bool = False

    def __call__(self, chunk: Rows) -> Float:
        """One row per record."""
        values = [formula(chunk) for formula in self.numbers]
        if self.alone:
            return values[0]
        cell = np.zeros(len(chunk.t)) if self.partition is None else self.partition.cells(chunk.x).astype(np.float64)
        if self.arms:
            cell = 2 * cell + chunk.t
        return np.column_stack([cell, *values]) if values else cell


def _made(op: str, *args: Formula) -> Formula:
    return _folded(Formula(op, args))


def _folded(formula: Formula) -> Formula:
    """A formula of numbers alone is a number."""
    if all(arg.constant is not None for arg in formula.args):
        nobody = SimpleNamespace(t=np.zeros(1))
        return number(float(formula(nobody)[0]))
    return formula


def ends(formula: Formula, e: tuple[float, float] | None = None) -> tuple[float, float] | None:
    """The least and the largest value that it can have, if that is known; ``e`` are those of the probability.

    Rounding keeps order, so that sums, products and quotients of floats are extreme at the ends of what they are made
    of.
    """
    each = [ends(arg, e) for arg in formula.args]
    known = [pair for pair in each if pair is not None]
    if len(known) < len(each):
        return (formula.numbers[0], formula.numbers[1]) if formula.op == "clip" else None
    match formula.op:
        case "y":
            return -1.0, 1.0
        case "e":
            return e
        case "number":
            return formula.numbers[0], formula.numbers[0]
        case "clip":
            low, high = formula.numbers
            return max(low, min(known[0][0], high)), min(high, max(known[0][1], low))
        case "rint":
            return float(np.rint(known[0][0])), float(np.rint(known[0][1]))
        case "arm":
            return min(known[0][0], known[1][0]), max(known[0][1], known[1][1])
        case "times" if formula.args[0] == formula.args[1]:
            squares = [end * end for end in known[0]]
            return (0.0 if known[0][0] < 0.0 < known[0][1] else min(squares)), max(squares)
        case "over" if known[1][0] <= 0.0 <= known[1][1]:
            return None
    corners = [_SIGNS[formula.op](left, right) for left, right in product(*known)]
    # NaN has no order: ends that overflow are not known, so that a clip stays.
    return (min(corners), max(corners)) if all(map(math.isfinite, corners)) else None


def is_finite(formula: Formula, e: tuple[float, float] | None) -> bool:
    """Whether neither it nor anything that it is made of can overflow, as far as that is known."""
    known = ends(formula, e)
    return known is not None and all(map(math.isfinite, known)) and all(is_finite(arg, e) for arg in formula.args)


@lru_cache(maxsize=1024)
def vanishing(sign: str, constant: float) -> float:
    """The largest number that becomes zero, times or over a constant (or squared): 0.0 where zero alone does."""
    # Floats that are not negative have the order of their bits.
    if constant == 0.0:
        return 0.0
    small, large = 0, int(np.float64(1.0).view(np.int64))
    while large - small > 1:
        middle = (small + large) // 2
        value = float(np.int64(middle).view(np.float64))
        made = value * constant if sign == "*" else value / constant if sign == "/" else value * value
        small, large = (middle, large) if made == 0.0 else (small, middle)
    return float(np.int64(small).view(np.float64))


_SIGNS = {"plus": operator.add, "minus": operator.sub, "times": operator.mul, "over": operator.truediv}


def _value(formula: Formula, chunk: Rows) -> Float | float:
    args = [_value(arg, chunk) for arg in formula.args]
    match formula.op:
        case "y":
            return chunk.y
        case "e":
            assert chunk.e is not None, "a formula uses a probability that these records do not have"
            return chunk.e
        case "number":
            return formula.numbers[0]
        case "plus":
            return args[0] + args[1]
        case "minus":
            return args[0] - args[1]
        case "times":
            return args[0] * args[1]
        case "over":
            return args[0] / args[1]
        case "clip":
            low, high = formula.numbers
            return np.minimum(np.maximum(args[0], low), high)
        case "rint":
            return np.rint(args[0])
        case "arm":
            return np.where(chunk.t == 1, args[1], args[0])
    raise ValueError(f"no formula is called {formula.op!r}")
