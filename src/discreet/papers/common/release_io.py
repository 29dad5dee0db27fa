"""How releases of published methods become text and JSON: functions that their dataclasses share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from discreet.data.bounds import Bounds
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io

_Release = TypeVar("_Release")


def text(method: str, rows: Mapping[str, str], guarantee: Guarantee, notes: tuple[str, ...]) -> str:
    """A table in plain text, what is promised, and the notes."""
    width = max(map(len, rows))
    lines = [method, *(f"  {name:<{width}}  {value}" for name, value in rows.items())]
    lines += ["", "Privacy", *(f"  {line}" for line in str(guarantee).splitlines())]
    return "\n".join([*lines, "", "Notes", *(f"  - {note}" for note in notes)])


def to_plain(release: Any, kind: str) -> dict[str, Any]:
    """A release as plain JSON."""
    plain = {part.name: getattr(release, part.name) for part in fields(release)}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}
    plain |= {"guarantee": release.guarantee.to_dict(), "bounds": release.bounds.to_dict()}
    return io.head(kind) | plain


def from_plain(cls: type[_Release], plain: Mapping[str, Any], kind: str) -> _Release:
    """Read a release back; its guarantee is checked against its events again."""
    rest = io.fields_of(plain, kind, {part.name for part in fields(cls)})  # type: ignore[arg-type]
    with io.wrong_types_named():
        made = {"guarantee": Guarantee.from_dict(rest["guarantee"]), "bounds": Bounds.from_dict(rest["bounds"])}
        return cls(**(rest | made | {"notes": tuple(rest["notes"])}))
