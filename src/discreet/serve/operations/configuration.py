"""Every option of the service: from the command line, the environment, a file, or its default, in this order.

The options are the fields of `discreet.serve.settings.Settings`, each under its own name in a TOML file, and as
``DISCREET_`` with its name in capitals in the environment. A field that is added there needs nothing here.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from discreet.exceptions import InvalidInput
from discreet.serve.settings import Settings

PREFIX = "DISCREET_"
# Variables of other parts of the library.
OTHERS = {"COMPILED", "CONFIG", "DEBUG", "LEDGER", "NO_POSTGRES", "SCREENSHOTS", "SERVE", "TEST_POSTGRES", "TOKEN"}
# For whoever holds a service in a program.
_NOT_OFFERED = {"work"}
_YES, _NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
_KINDS = {str: "text in quotes", bool: "true or false", int: "a whole number", float: "a number"}


def options() -> dict[str, Any]:
    """All options with their types."""
    hints = get_type_hints(Settings)
    return {each.name: hints[each.name] for each in fields(Settings) if each.name not in _NOT_OFFERED}


def read(file: Path | None, environment: Mapping[str, str], **given: Any) -> Settings:
    """The settings that a file, the environment and a command line come to; what is None was not given."""
    found = ({} if file is None else _from_file(file)) | _from_environment(environment)
    return Settings(**(found | {name: value for name, value in given.items() if value is not None}))


def stray(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like options and are none, with the nearest option."""
    known = {name.upper() for name in options()} | OTHERS
    names = [name.removeprefix(PREFIX) for name in environment if name.startswith(PREFIX)]
    return [
        f"{PREFIX}{name} is no option: did you mean {PREFIX}{nearest(name, known)}?"
        for name in sorted(names)
        if name not in known and not name.startswith("TEST_")
    ]


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like one that is not."""
    return str(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.0)[0])


def _from_file(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"--config {file} cannot be read: check its name, and that this user may read it.") from None
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Only where it is: a line may hold a password.
        place = f"line {error.lineno}" if hasattr(error, "lineno") else "a line"
        raise InvalidInput(f"--config {file} is not TOML at {place}: write name = value, text in quotes.") from None
    known = options()
    for name in plain:
        if name not in known:
            raise InvalidInput(f"--config {file}: {name!r} is no option: did you mean {nearest(name, known)!r}?")
    return {name: _checked(value, known[name], f"--config {file}: {name}") for name, value in plain.items()}


def _checked(value: Any, kind: Any, where: str) -> Any:
    """A value of a file, if it has the option's type."""
    for each in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        origin = get_origin(each) or each
        if origin is tuple and isinstance(value, list):
            return tuple(value)
        # true is no number, and 3 is one with a fraction.
        if type(value) is origin or (origin is float and type(value) is int):
            return value
    raise InvalidInput(f"{where} must be {_in_words(kind)}: change it.")


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _converted(environment[PREFIX + name.upper()], kind, PREFIX + name.upper())
        for name, kind in options().items()
        if PREFIX + name.upper() in environment
    }


def _converted(text: str, kind: Any, where: str) -> Any:
    """Text of the environment as the option's type."""
    if get_origin(kind) in (Union, UnionType):
        if not text:
            return None
        kind = next(each for each in get_args(kind) if each is not type(None))
    origin = get_origin(kind) or kind
    try:
        if origin is bool:
            if text.lower() not in _YES | _NO:
                raise ValueError
            return text.lower() in _YES
        if origin is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return json.loads(text) if origin is dict else origin(text)
    except ValueError:
        # What it holds may be a password.
        raise InvalidInput(f"{where} must be {_in_words(kind)}: change it.") from None


def _in_words(kind: Any) -> str:
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    first = next(each for each in members if each is not type(None))
    return _KINDS.get(first, "a list of texts" if get_origin(first) is tuple else "a table")
