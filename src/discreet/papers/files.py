"""Releases of published methods as JSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput, UnsupportedRelease


def write_plain(path: str | Path, plain: Mapping[str, Any]) -> None:
    """Write a release file; numbers that are not finite are refused."""
    Path(path).write_bytes(f"{json.dumps(plain, indent=2, allow_nan=False)}\n".encode())


def read_plain(path: str | Path) -> dict[str, Any]:
    """What a release file holds."""
    try:
        plain = json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise InvalidInput(f"There is no release file {str(path)!r}: check the path.") from None
    except json.JSONDecodeError:
        raise UnsupportedRelease(f"{str(path)!r} is not complete JSON: give the file that save wrote.") from None
    if not isinstance(plain, dict):
        raise UnsupportedRelease(f"{str(path)!r} is no release: give the file that save wrote.")
    return plain


def checked_fields(plain: Mapping[str, Any], known: set[str], kind: str, version: int) -> dict[str, Any]:
    """The fields of a release of this format and version, if they are exactly those that are known."""
    rest = dict(plain)
    if rest.pop("format", None) != kind or rest.pop("version", None) != version:
        raise UnsupportedRelease("this is not a release of discreet.papers; give a file that save wrote.")
    if rest.keys() != known:
        raise InvalidInput(f"a release must have exactly the fields {', '.join(sorted(known))}; check the file.")
    return rest
