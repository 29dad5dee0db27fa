"""How releases of published methods become text and JSON: functions that their dataclasses share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from discreet.bounds import Bounds
from discreet.errors import InvalidInput, UnsupportedRelease
from discreet.guarantee import Guarantee

VERSION = 1
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
    return {"format": kind, "version": VERSION} | plain


def from_plain(cls: type[_Release], plain: Mapping[str, Any], kind: str) -> _Release:
    """Read a release back; its guarantee is checked against its events again."""
    rest = dict(plain)
    if rest.pop("format", None) != kind or rest.pop("version", None) != VERSION:
        raise UnsupportedRelease("this is not a release of discreet.papers; give a file that save wrote.")
    known = {part.name for part in fields(cls)}  # type: ignore[arg-type]
    if rest.keys() != known:
        raise InvalidInput(f"a release must have exactly the fields {', '.join(sorted(known))}; check the file.")
    made = {"guarantee": Guarantee.from_dict(rest["guarantee"]), "bounds": Bounds.from_dict(rest["bounds"])}
    return cls(**(rest | made | {"notes": tuple(rest["notes"])}))


def save(plain: Mapping[str, Any], path: str | Path) -> None:
    """Write a release file."""
    Path(path).write_bytes(f"{json.dumps(plain, indent=2, allow_nan=False)}\n".encode())


def load(path: str | Path) -> Any:
    """Read a release file."""
    try:
        return json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise InvalidInput(f"There is no release file {str(path)!r}: check the path.") from None
    except json.JSONDecodeError:
        raise UnsupportedRelease(f"{str(path)!r} is not complete JSON: give the file that save wrote.") from None
