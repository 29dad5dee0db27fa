"""A file that remembers every answer before it is given, so that no query is ever answered with fresh noise twice.

**The file is secret**: it holds a function that was fitted to records, without noise. One line of JSON for the
function, then one for each call, appended and forced to disk before the answers leave. A line that a crash has cut
short was never answered, and is dropped. Only one process at a time can hold a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from discreet.exceptions import InvalidInput, UnsupportedRelease

FORMAT = "discreet-secret-query-state"
VERSION = 1
SECRET = "SECRET: holds a function fitted to records without noise. Do not publish, share or copy it."


class Journal:
    """An open state file."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self.path = path

    @classmethod
    def create(cls, path: str | Path, head: Mapping[str, Any], lines: list[dict[str, Any]]) -> Journal:
        """A new file, readable by its owner only; one that exists is refused, because it may hold answers."""
        path = Path(path)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except FileExistsError:
            raise InvalidInput(f"{str(path)!r} exists already: load it to go on, or choose another name.") from None
        except OSError:
            raise InvalidInput(f"{str(path)!r} cannot be written: name a file in a directory that exists.") from None
        journal = cls(os.fdopen(handle, "r+b"), path)
        journal._lock()
        journal._write([{"format": FORMAT, "version": VERSION, "secret": SECRET} | dict(head), *lines])
        _force_directory(path.parent)
        return journal

    @classmethod
    def open(cls, path: str | Path) -> tuple[Journal, dict[str, Any], list[dict[str, Any]]]:
        """An existing file, what its first line says, and its calls; a line that was cut short is taken away."""
        path = Path(path)
        try:
            file = path.open("r+b")
        except OSError:
            raise InvalidInput(f"There is no state file {str(path)!r} that can be written: check the path.") from None
        journal = cls(file, path)
        journal._lock()
        try:
            whole, _, cut = file.read().rpartition(b"\n")
            first, *lines = [json.loads(line) for line in whole.splitlines()]
        except ValueError:
            journal.close()
            raise UnsupportedRelease(f"{str(path)!r} is no state file: give one that save wrote.") from None
        if not isinstance(first, dict) or first.get("format") != FORMAT or first.get("version") != VERSION:
            journal.close()
            raise UnsupportedRelease(f"{str(path)!r} is no state file of this version: give one that save wrote.")
        if cut:
            file.truncate(len(whole) + 1)
            _force(file)
        file.seek(0, os.SEEK_END)
        return journal, first, lines

    def append(self, line: Mapping[str, Any]) -> None:
        """Add a line, and return when it is on disk."""
        self._write([line])

    def close(self) -> None:
        """Let others open the file."""
        self._file.close()

    def __del__(self) -> None:
        # Everything is on disk already; what is left to do is to let go of the lock.
        self._file.close()

    def _write(self, lines: list[Mapping[str, Any]] | list[dict[str, Any]]) -> None:
        text = "".join(f"{json.dumps(line, allow_nan=False)}\n" for line in lines).encode()
        end = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(text)
            _force(self._file)
        except OSError:
            # Nothing was answered, so that nothing of it may be remembered.
            self._file.truncate(end)
            raise InvalidInput(
                f"{str(self.path)!r} cannot be written, so nothing was answered: free disk space."
            ) from None

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # pragma: no cover
            raise InvalidInput("state files need a system with file locks: leave state out.") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise InvalidInput(
                f"{str(self.path)!r} is held by another function: two that answer separately would halve the noise."
            ) from None


def _force(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _force_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
