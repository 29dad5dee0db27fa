"""Fields of forms for what kinds of requests declare in the registry, and how their text is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from discreet.estimators.registry import Option
from discreet.exceptions import InvalidInput
from discreet.serve.domain.requests import OFFERED

# Options with fields of their own in the templates: a cut for each covariate.
BY = "by"


@dataclass(slots=True, kw_only=True)
class Field:
    """An option as a form shows it; several kinds may have it."""

    name: str
    label: str
    help: str
    widget: str
    choices: tuple[str, ...] = ()
    default: str = ""
    needed: bool = False
    kinds: list[str] = field(default_factory=list)


def fields_for(kinds: Mapping[str, str], *, claimed: bool) -> list[Field]:
    """Fields of these kinds, each once; what is claimed and not proved is offered where the data set admits it."""
    found: dict[tuple[str, str], Field] = {}
    for kind in kinds:
        for option in OFFERED[kind].asks:
            made = _field(option)
            if option.name == BY or (not claimed and _claims(kind, made)):
                continue
            found.setdefault((made.name, made.help), made).kinds.append(kind)
    return list(found.values())


def read(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a form says about the options of a kind, without empty fields."""
    out: dict[str, Any] = {}
    for option in OFFERED[kind].asks if kind in OFFERED else ():
        text = str(given.get(f"o-{option.name}") or "").strip()
        if text and option.name != BY:
            out[option.name] = _value(option, text)
    return out


def _field(option: Option) -> Field:
    choices = _choices(option.type)
    widget = "choice" if choices else "json" if _holds(option.type, dict) else "text"
    default = "" if option.default is None else str(option.default)
    label = option.label or option.name.replace("_", " ")
    return Field(
        name=option.name,
        label=label,
        help=option.help,
        widget=widget,
        choices=choices,
        default=default,
        needed=option.needed,
    )


def _claims(kind: str, made: Field) -> bool:
    """Whether one of the choices of a field would be claimed and not proved."""
    return any(OFFERED[kind].claims({made.name: choice}) for choice in made.choices)


def _value(option: Option, text: str) -> Any:
    label = option.label or option.name
    if _holds(option.type, dict):
        try:
            return json.loads(text)
        except ValueError:
            raise InvalidInput(
                f"{option.name}: {label} is not JSON: paste the whole of the file, from its first brace to its last."
            ) from None
    if _holds(option.type, list):
        try:
            return [float(part) for part in text.split(",")]
        except ValueError:
            raise InvalidInput(f"{option.name}: {label} takes numbers, such as 30, 90, 365: check them.") from None
    return text


def _parts(kind: Any) -> tuple[Any, ...]:
    """The alternatives that a type is made of."""
    inner = get_args(kind)
    return inner if inner and get_origin(kind) not in (Literal, dict, list) else (kind,)


def _choices(kind: Any) -> tuple[str, ...]:
    """What can be chosen, where nothing else is possible."""
    parts = [part for part in _parts(kind) if part is not NoneType]
    return tuple(map(str, get_args(parts[0]))) if len(parts) == 1 and get_origin(parts[0]) is Literal else ()


def _holds(kind: Any, what: type) -> bool:
    return any(part is what or get_origin(part) is what for part in _parts(kind))
