"""What `discreet.data.backends.group_by` says, as Spark's columns: no SQL is ever put together from text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

WIDE = {"bigint", "decimal"}
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class SparkDialect:
    """Spark's words for a frame whose columns are called by their places; ``types`` has their names and types."""

    types: dict[str, str]
    raises: bool = False

    def column(self, name: str) -> Column:
        """A column as it is."""
        return F.col(place(list(self.types).index(name)))

    def number(self, column: str) -> Column:
        """A column as float64."""
        return self.column(column).cast("double")

    def text(self, column: str) -> Column:
        """A column as text."""
        return self.column(column).cast("string")

    def is_whole(self, column: str) -> bool:
        """Whether a column's type holds whole numbers or truth values only."""
        return self.types[column] in {"tinyint", "smallint", "int", "bigint", "boolean"}

    def integer(self, column: str) -> Column:
        """Such a column as integers."""
        return self.column(column).cast("bigint")

    def given(self, value: Column) -> Column:
        """Whether a value is not NULL."""
        return value.isNotNull()

    def held(self, value: Column, low: int, high: int) -> Column:
        """An integer held between two others."""
        return F.least(F.greatest(value, F.lit(low)), F.lit(high))

    def usable(self, column: str) -> Column | None:
        """Whether a value of a wide type fits into float64."""
        if self.types[column] not in WIDE:
            return None
        return self.column(column).isNull() | self.column(column).between(-_EXACT, _EXACT)

    def constant(self, value: float | str) -> Column:
        """A number or a text."""
        return F.lit(value if isinstance(value, str) else float(value))

    def whole(self, value: int) -> Column:
        """A small integer."""
        return F.lit(int(value))

    def arithmetic(self, sign: str, left: Column, right: Column) -> Column:
        """+, -, * or / of two numbers."""
        match sign:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        return left / right

    def compare(self, sign: str, left: Column, right: Column) -> Column:
        """A comparison."""
        match sign:
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">=":
                return left >= right
        return left == right

    def finite(self, value: Column) -> Column:
        """Whether a number is neither missing nor NaN, which Spark takes for the largest of all, nor infinite."""
        return F.coalesce(F.abs(value) < F.lit(float("inf")), F.lit(False))

    def missing(self, value: Column, *, text: bool) -> Column:
        """Whether a value is NULL, or a number is NaN."""
        return value.isNull() if text else value.isNull() | F.isnan(value)

    def present(self, value: Column) -> Column:
        """Whether a number is neither NULL nor NaN."""
        return ~self.missing(value, text=False)

    def every(self, conditions: Sequence[Column]) -> Column:
        """Whether all conditions are met."""
        return reduce(and_, conditions)

    def some(self, conditions: Sequence[Column]) -> Column:
        """Whether any condition is met."""
        return reduce(or_, conditions)

    def choose(self, cases: Sequence[tuple[Column, Column]], otherwise: Column | None = None) -> Column:
        """The value of the first case whose condition is met."""
        (condition, value), *rest = cases
        chosen = F.when(condition, value)
        for condition, value in rest:
            chosen = chosen.when(condition, value)
        return chosen if otherwise is None else chosen.otherwise(otherwise)

    def clip(self, value: Column, low: float, high: float) -> Column:
        """A number held between two others."""
        return F.least(F.greatest(value, self.constant(low)), self.constant(high))

    def rint(self, value: Column) -> Column:
        """The nearest whole number, of two the even one."""
        return F.rint(value)

    def floor(self, value: Column, plus: int) -> None:
        """This engine finds cells by comparing."""

    @property
    def nothing(self) -> Column:
        """NULL."""
        return F.lit(None)


def place(j: int) -> str:
    """What the j-th column is called: Spark has rules of its own for names, which this one obeys."""
    return f"c{j}"
