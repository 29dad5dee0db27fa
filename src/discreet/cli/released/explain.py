"""Commands that put releases into plain words, and beside each other."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._console import Alpha, check_level, show_table


def explain(
    release: Annotated[Path, typer.Argument(help="Release file (JSON).")],
    alpha: Alpha = 0.05,
) -> None:
    """What a release says and promises, in plain words; this costs no privacy."""
    from discreet.releases import load
    from discreet.releases.explained import explain as explained

    check_level(alpha)
    typer.echo(explained(load(release), alpha))


def compare(
    releases: Annotated[list[Path], typer.Argument(help="Release files (JSON), two or more.")],
    alpha: Alpha = 0.05,
) -> None:
    """Releases side by side, and whether they can be compared at all; this costs no privacy."""
    from discreet.releases import load
    from discreet.releases.explained import compare as compared

    check_level(alpha)
    found = compared([load(path) for path in releases], [path.stem for path in releases], alpha)
    show_table("Releases", found.head, found.lines)
    for remark in found.remarks:
        typer.echo(remark)
