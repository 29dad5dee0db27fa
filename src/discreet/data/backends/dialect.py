"""What every engine can express, each in its own way: text of SQL, or columns of polars and Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Dialect(Protocol[T]):
    """How an engine writes expressions; T is its kind of them. Numbers are float64, and casts and NULL are explicit."""

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
