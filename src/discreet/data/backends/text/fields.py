"""What each column of text is declared to hold, and SQL that makes a value of one field, whatever the others hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from discreet.data.backends.base import quoted
from discreet.data.backends.text.format import TextFormat
from discreet.data.bounds import Levels, Range
from discreet.data.columns import FALSE_WORDS, TRUE_WORDS
from discreet.data.declared.dates import DateRange

if TYPE_CHECKING:
    from discreet.data.backends.scan import Columns

Kind = Literal["number", "truth", "text", "date"]
# Whole numbers from here on share a float64 with their neighbours.
_EXACT = 2**53
# So many levels are looked for before codes of missing values.
_QUICK = 64


@dataclass(frozen=True, slots=True)
class Field:
    """A column of text and what it is declared to hold; declared levels are never missing values."""

    name: str
    kind: Kind
    levels: tuple[str | float, ...] = ()

    @classmethod
    def of(cls, name: str, spec: Range | Levels) -> Field:
        """The column of what is declared."""
        if isinstance(spec, DateRange):
            return cls(name, "date")
        if isinstance(spec, Range):
            return cls(name, "number")
        levels = tuple(level if isinstance(level, str) else float(level) for level in spec.levels)
        return cls(name, "text" if spec.is_text else "truth" if set(levels) <= {0.0, 1.0} else "number", levels)

    def sql(self, form: TextFormat) -> str:
        """The value, named like the column; an error for what is not of its kind."""
        column = quoted(self.name)
        missing = self.missing(form)
        if self.kind == "text":
            # Levels first, as to compare them is quick.
            levels = [_text(level) for level in self.levels if isinstance(level, str)][:_QUICK]
            known = f"WHEN {column} IN ({', '.join(levels)}) THEN {column} " if levels else ""
            return f"CASE {known}WHEN {missing} THEN NULL ELSE {column} END AS {column}"
        value = f"coalesce({self.value(form)}, CASE WHEN {missing} THEN NULL ELSE error('another kind') END)"
        if self.kind == "date":
            return f"{value} AS {column}"
        coded = self._numeric_codes(form)
        value = f"CASE WHEN {too_long(column)} THEN error('too long') ELSE {value} END"
        if coded:
            value = f"CASE WHEN {self.value(form)} IN ({', '.join(map(repr, coded))}) THEN NULL ELSE {value} END"
        return f"{value} AS {column}"

    def junk(self, form: TextFormat) -> str:
        """Whether a field is not of its kind."""
        column = quoted(self.name)
        if self.kind == "text":
            return "false"
        return f"({column} IS NOT NULL AND NOT {self.missing(form)} AND {self.value(form)} IS NULL)"

    def value(self, form: TextFormat) -> str:
        """The value, or NULL for what is not of its kind."""
        column = quoted(self.name)
        if self.kind == "date":
            # Other texts that DuckDB takes for dates, such as 'infinity', are none here.
            like = f"regexp_full_match(trim({column}), '[0-9]{{4}}[-/][0-9]{{1,2}}[-/][0-9]{{1,2}}.*')"
            return f"CASE WHEN {like} THEN TRY_CAST(trim({column}) AS TIMESTAMP) END"
        number = f"TRY_CAST({column} AS DOUBLE)"
        if form.decimal == ",":
            # A point could part thousands: it is refused rather than taken for either.
            number = f"CASE WHEN NOT contains({column}, '.') THEN TRY_CAST(replace({column}, ',', '.') AS DOUBLE) END"
        words = (TRUE_WORDS, FALSE_WORDS) if self.kind == "truth" else (("true",), ("false",))
        cases = " ".join(
            f"WHEN {_text(word)} THEN {number_}.0"
            for number_, group in zip((1, 0), words, strict=True)
            for word in group
        )
        return f"coalesce({number}, CASE lower(trim({column})) {cases} END)"

    def missing(self, form: TextFormat) -> str:
        """Whether a field is a missing value."""
        levels = {level.strip().lower() for level in self.levels if isinstance(level, str)}
        codes = ", ".join(map(_text, sorted(form.codes - levels)))
        return f"coalesce(lower(trim({quoted(self.name)})) IN ({codes}), true)"

    def _numeric_codes(self, form: TextFormat) -> list[float]:
        """Numbers that mean a missing value, however they are written, unless they are declared levels."""
        found = []
        for code in form.na:
            try:
                found.append(float(code.strip().replace(form.decimal, ".")))
            except ValueError:
                continue
        return [code for code in found if code not in self.levels and abs(code) < _EXACT]


def fields_of(columns: Columns) -> dict[str, Field]:
    """Fields of all columns that are read, in their order."""
    made = {name: Field.of(name, spec) for name, spec in columns.specs.items()}
    for condition in columns.where:
        name = condition.column
        kind: Kind = "text" if condition.is_text else "date" if condition.dates else "number"
        asked = condition.values if condition.half is None else ()
        known = made.setdefault(name, Field(name, kind))
        made[name] = Field(name, known.kind, (*known.levels, *asked))
    for name in columns.wanted:
        made.setdefault(name, Field(name, "number"))
    return {name: made[name] for name in columns.wanted}


def fields_for(specs: Mapping[str, Range | Levels]) -> dict[str, Field]:
    """Fields of columns by what is declared of each."""
    return {name: Field.of(name, spec) for name, spec in specs.items()}


def too_long(column: str) -> str:
    """SQL for whether a text is a whole number that float64 cannot hold."""
    # Sixteen characters are needed to write 2**53, and few numbers have so many without a point.
    return (
        f"(length({column}) > 15 AND regexp_full_match({column}, '\\s*[+-]?[0-9]+\\s*') "
        f"AND coalesce(abs(TRY_CAST({column} AS HUGEINT)) > {_EXACT}, true))"
    )


def _text(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"
