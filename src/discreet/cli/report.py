"""The command that writes a page about a release."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._console import check_target, command, writing


def report(
    release: Annotated[Path, typer.Argument(help="Release file (JSON).")],
    out: Annotated[Path, typer.Option(help="HTML file to write.")],
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Write a page about a release, for readers who have never heard of differential privacy."""
    from discreet.releases import load
    from discreet.releases.report import save_page

    check_target(out, "--out", replace=True)
    loaded = load(release)
    with writing(out):
        save_page(loaded, out, title=title)
    typer.echo(f"Page: {out}")


def add_report(app: typer.Typer) -> None:
    """Add ``report``."""
    command(app, "report")(report)
