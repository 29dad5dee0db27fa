"""What was paid for is kept: releases are written before they are shown, and somewhere else where that fails."""

import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    from discreet.releases.protocol import AnyRelease


@contextmanager
def keeping(release: "AnyRelease", out: Path | None) -> Iterator[None]:
    """Write a release that was paid for, and then show it and whatever follows from it.

    Where it cannot be written, or shown without having been written, it is kept elsewhere, and its place is told.
    """
    failed = False
    if out is not None:
        try:
            release.save(out)
        except OSError:
            failed = True
    try:
        yield
    except BaseException:
        # Whatever it was, a reader who has gone or a mistake of ours: it happened after the charge.
        if out is None or failed:
            typer.echo(f"discreet: the release was paid for and is kept in {_elsewhere(release, out)}", err=True)
        raise
    if failed:
        raise InvalidInput(
            f"{str(out)!r} cannot be written: the release was paid for and is kept in {_elsewhere(release, out)}; move "
            "it, and do not pay again."
        )
    if out is not None:
        typer.echo(f"Release: {out}")


def _elsewhere(release: "AnyRelease", out: Path | None) -> str:
    """Write a release to a new file in the first of a few folders that take it; to standard error if none does."""
    if out is not None:
        # It did not exist before, and holds a part at most.
        with suppress(OSError):
            out.unlink(missing_ok=True)
    name = "release" if out is None else out.stem
    for folder in (Path.cwd, Path.home, lambda: Path(tempfile.gettempdir())):
        with suppress(OSError, RuntimeError):
            handle, place = tempfile.mkstemp(prefix=f"{name}-", suffix=".json", dir=folder())
            os.close(handle)
            try:
                release.save(place)
            except OSError:
                Path(place).unlink(missing_ok=True)
                raise
            return place
    typer.echo(json.dumps(release.to_dict()), err=True)
    return "the line above: store it in a file"


def ready_streams() -> None:
    """Characters that a terminal or a pipe cannot take are replaced: no result is lost to one of them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def leave_pipe() -> None:
    """Whoever read the output has gone: nothing more is written to it, also when the interpreter ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
