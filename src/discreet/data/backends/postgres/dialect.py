"""PostgreSQL's SQL: names and texts are quoted by psycopg, and casts, NaN and NULL are explicit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

from discreet.data.backends.postgres.copy import driver
from discreet.data.backends.sql import Sql
from discreet.exceptions import InvalidInput

WIDE = {"int8", "numeric"}
NUMBERS = {"bool", "int2", "int4", "float4", "float8"} | WIDE
TEXT = {"text", "varchar", "bpchar", "name", "enum"}
_EXACT = 2**53
with localcontext(prec=2_000):
    # Numbers up to half of the smallest float8 are zero there; PostgreSQL raises an error instead.
    _VANISHES = f"{Decimal(2) ** -1075:f}"


@dataclass(frozen=True, slots=True)
class PostgresDialect(Sql):
    """What differs from DuckDB. NaN is the largest number of all, and equal to itself."""

    double: str = "float8"
    string: str = "text"
    big: str = "int8"
    raises: bool = True

    def number(self, column: str) -> str:
        """A column as float64; infinite where float64 cannot hold it."""
        quoted, kind = name(column), self.types[column]
        if kind != "numeric":
            return f"CAST({quoted}{'::int4' if kind == 'bool' else ''} AS float8)"
        cases = f"WHEN {quoted} > 1e308 AND {quoted} <> 'NaN' THEN 'Infinity' WHEN {quoted} < -1e308 THEN '-Infinity'"
        return f"CASE {cases} ELSE {_float8(quoted)} END"

    def text(self, column: str) -> str:
        """A column as text, compared letter by letter."""
        return f'(CAST({name(column)} AS text) COLLATE "C")'

    def is_whole(self, column: str) -> bool:
        """Whether a column's type holds whole numbers or truth values only."""
        return self.types[column] in {"bool", "int2", "int4", "int8"}

    def integer(self, column: str) -> str:
        """Such a column as integers."""
        return f"CAST({name(column)}{'::int4' if self.types[column] == 'bool' else ''} AS int8)"

    def usable(self, column: str) -> str | None:
        """Whether a value of a wide type fits into float64; NaN is missing."""
        if self.types[column] not in WIDE:
            return None
        fits = f"{name(column)} IS NULL OR {name(column)} BETWEEN -{_EXACT} AND {_EXACT}"
        return f"({fits} OR {name(column)} = 'NaN')" if self.types[column] == "numeric" else f"({fits})"

    def constant(self, value: float | str) -> str:
        """A literal."""
        return literal(value) if isinstance(value, str) else f"CAST('{value!r}' AS float8)"

    def finite(self, value: str) -> str:
        """Whether a number is neither missing nor NaN nor infinite."""
        return f"({value} > '-Infinity' AND {value} < 'Infinity')"

    def missing(self, value: str, *, text: bool) -> str:
        """Whether a value is NULL, or a number is NaN."""
        return f"({value} IS NULL)" if text else f"({value} IS NULL OR {value} = 'NaN')"

    def present(self, value: str) -> str:
        """Whether a number is neither NULL nor NaN."""
        return f"({value} <> 'NaN')"

    def floor(self, value: str, plus: int) -> None:
        """This engine finds cells by comparing."""


def query_of(relation: str | None, query: str | None) -> str:
    """What stands after FROM, for a table's name or a query."""
    if (relation is None) == (query is None):
        raise InvalidInput("a postgresql:// address needs relation= or query=, and not both: say what to read there.")
    if query is not None:
        text = query.strip().rstrip(";").strip() if isinstance(query, str) else ""
        if not text:
            raise InvalidInput("query must be the text of a SELECT: write it.")
        # On lines of its own, so that a comment at its end ends there. OFFSET 0 is a fence: without it the planner
        # would compute the query's columns again wherever they are used.
        return f"(SELECT * FROM (\n{text}\n) AS asked OFFSET 0) AS discreet_rows"
    parts = relation.split(".") if isinstance(relation, str) else []
    if not 1 <= len(parts) <= 2 or not all(parts):
        raise InvalidInput("relation must be a table's name, or schema.name: use query= for anything else.")
    return name(*parts)


def as_float(column: str, kind: str) -> str:
    """A number as a float8 that is never NULL: NaN for what is missing, and 1e300 for what float64 cannot hold."""
    quoted = name(column)
    if kind in WIDE:
        missing = f"{quoted} IS NULL" + (f" OR {quoted} = 'NaN'" if kind == "numeric" else "")
        fits = f"{quoted} BETWEEN -{_EXACT} AND {_EXACT}"
        made = _float8(quoted) if kind == "numeric" else f"{quoted}::float8"
        return f"CASE WHEN {missing} THEN 'NaN' WHEN {fits} THEN {made} ELSE 1e300 END"
    return f"coalesce({quoted}{'::int4' if kind == 'bool' else ''}::float8, 'NaN')"


def _float8(quoted: str) -> str:
    """A numeric that is not too large, rounded as IEEE arithmetic does: to zero where it is small enough."""
    return f"CASE WHEN abs({quoted}) <= {_VANISHES} THEN CAST(0 AS float8) ELSE CAST({quoted} AS float8) END"


def as_place(column: str, levels: Sequence[str]) -> str:
    """A text as the place of its level, from 1, as a float8: 0 for any other text, -1 for NULL."""
    quoted = name(column)
    found = f'array_position(ARRAY[{", ".join(map(literal, levels))}], CAST({quoted} AS text) COLLATE "C")'
    return f"coalesce({found}, CASE WHEN {quoted} IS NULL THEN -1 ELSE 0 END)::float8"


def name(*parts: str) -> str:
    """A name in SQL, quoted by psycopg."""
    driver()
    from psycopg import sql

    return sql.Identifier(*parts).as_string(None)


def literal(text: str) -> str:
    """A text in SQL, quoted by psycopg."""
    driver()
    from psycopg import sql

    return f"{sql.Literal(text).as_string(None)}::text"
