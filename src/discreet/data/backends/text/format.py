"""How fields of text are read: missing values, separator, decimal comma and encoding, by rules that a person declares.

Nothing is guessed from values: how one record is read must not depend on the others. The separator may be found in the
header, which holds names.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import pyarrow as pa

from discreet.exceptions import InvalidInput

# As R, SAS, Stata, SPSS, pandas and spreadsheets write what is missing; case and spaces around it do not matter.
MISSING = frozenset(
    ["", "na", "n/a", "#n/a", "#na", "nan", "-nan", "null", "#null!", "none", "<na>", "nat", ".", "._"]
    + [f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
)
SEPARATORS = (",", ";", "\t", "|")
Decimal = Literal[".", ","]
TEXT_OPTIONS = ("na", "delimiter", "decimal", "encoding")
# Bytes: more than the names in the first line of any table take.
_LONGEST_HEADER = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """How a text file writes its values.

    Parameters
    ----------
    na
        Further texts that mean a missing value, beside `MISSING`.
    delimiter
        What separates fields; None for the one of `SEPARATORS` that parts the header into the wanted names.
    decimal
        What separates whole numbers from their fractions.
    encoding
        How characters are stored, as Python calls it; None for UTF-8, or UTF-16 where a file begins with its mark.
    """

    na: tuple[str, ...] = ()
    delimiter: str | None = None
    decimal: Decimal = "."
    encoding: str | None = None
    codes: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", MISSING | {code.strip().lower() for code in self.na})

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> TextFormat:
        """What was asked for, once it was checked."""
        given = {name: options[name] for name in TEXT_OPTIONS if options.get(name) is not None}
        if "na" in given:
            given["na"] = _codes(given["na"])
        delimiter = given.get("delimiter")
        if delimiter is not None:
            delimiter = given["delimiter"] = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
            if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
                raise InvalidInput("delimiter must be one character, such as ';' or 'tab': write the one of the file.")
        if given.get("decimal", ".") not in get_args(Decimal):
            raise InvalidInput("decimal must be '.' or ',': say how the file writes fractions.")
        if "encoding" in given:
            given["encoding"] = _encoding(given["encoding"])
        made = cls(**given)
        if made.delimiter == made.decimal == ",":
            raise InvalidInput("delimiter and decimal are both a comma: say delimiter=';', or leave one of them out.")
        return made

    def of_files(self, files: Collection[str], wanted: Collection[str] | None = None) -> TextFormat:
        """The same with a separator and an encoding, where the first file's header says them."""
        file = next(iter(files))
        encoding = self.encoding or _marked(file)
        delimiter = self.delimiter or _separator(header(file, encoding), wanted)
        return TextFormat(na=self.na, delimiter=delimiter, decimal=self.decimal, encoding=encoding)


def _codes(given: object) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str | int | float) else given
    if not isinstance(listed, list | tuple) or not all(
        isinstance(code, str | int | float) and not isinstance(code, bool) for code in listed
    ):
        raise InvalidInput("na must list the texts or numbers that mean a missing value: write na=['-99', 'unknown'].")
    return tuple(str(code) for code in listed)


def _encoding(given: object) -> str:
    try:
        found = codecs.lookup(str(given)).name
        "".encode(found)
    except (LookupError, TypeError, ValueError):
        raise InvalidInput(
            "encoding must be one that Python knows, such as latin-1 or cp1252: check its name."
        ) from None
    return found


def _marked(file: str) -> str:
    """The encoding that a mark at the beginning of a file names; UTF-8 where there is none."""
    with pa.input_stream(file) as stream:
        first = stream.read(2)
    return "utf-16" if first in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8"


def header(file: str, encoding: str | None) -> str:
    """The first line of a file; empty where it cannot be read."""
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding in (None, "utf-8") else encoding)(errors="replace")
    text = ""
    try:
        with pa.input_stream(file) as stream:
            while len(text) < _LONGEST_HEADER and (part := stream.read(4096)):
                text += decoder.decode(part)
                line = _line(text)
                if line is not None:
                    return line
    except (OSError, pa.ArrowException):
        return ""
    return text


def _line(text: str) -> str | None:
    """What stands before the first end of line that is not inside quotes."""
    inside = False
    for place, character in enumerate(text):
        if character == '"':
            inside = not inside
        elif character in "\r\n" and not inside:
            return text[:place]
    return None


def names(line: str, separator: str) -> list[str]:
    """The names in a header."""
    return next(csv.reader([line], delimiter=separator), [])


def _separator(line: str, wanted: Collection[str] | None) -> str:
    """The separator that parts the header into the wanted names; where none are, the one that finds most."""
    parts = {separator: names(line, separator) for separator in SEPARATORS}
    if wanted is None:
        return max(SEPARATORS, key=lambda separator: len(parts[separator]))
    fitting = (separator for separator in SEPARATORS if set(wanted) <= set(parts[separator]))
    return next(fitting, SEPARATORS[0])
