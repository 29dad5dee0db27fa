"""Releases as JSON files: written, read, and checked for their format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.exceptions import InvalidInput, UnsupportedRelease


def write_plain(path: str | Path, plain: Mapping[str, Any]) -> None:
    """Write a release file; numbers that are not finite are refused."""
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    Path(path).write_bytes(f"{text}\n".encode())


def read_json(path: str | Path, writer: str = "save") -> Any:
    """What a release file holds; ``writer`` is the method that writes such files."""
    try:
        return json.loads(Path(path).read_bytes().decode())
    except FileNotFoundError:
        raise InvalidInput(f"There is no release file {str(path)!r}: check the path.") from None
    except OSError:
        raise InvalidInput(f"The release file {str(path)!r} cannot be read: check its permissions.") from None
    except (ValueError, RecursionError):
        # Broken UTF-8 and broken JSON are both ValueErrors.
        raise UnsupportedRelease(f"{str(path)!r} is not complete JSON: give the file that {writer} wrote.") from None


def read_plain(path: str | Path) -> dict[str, Any]:
    """The fields that a release file holds."""
    plain = read_json(path)
    if not isinstance(plain, dict):
        raise UnsupportedRelease(f"{str(path)!r} is no release: give the file that save wrote.")
    return plain


def checked_fields(plain: Mapping[str, Any], known: set[str], kind: str, version: int) -> dict[str, Any]:
    """The fields of a release of this format and version, if they are exactly those that are known."""
    rest = dict(plain)
    if rest.pop("format", None) != kind:
        raise UnsupportedRelease(f"this is not a release of the kind {kind!r}; give a file that its save wrote.")
    if rest.pop("version", None) != version:
        raise UnsupportedRelease(f"the release is not of version {version}; read it with the discreet that wrote it.")
    if rest.keys() != known:
        raise InvalidInput(f"a release must have exactly the fields {', '.join(sorted(known))}; check the file.")
    return rest
