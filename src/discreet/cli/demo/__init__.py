"""The command that demonstrates the library on generated studies."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._console import check_extra, command, console, progress
from discreet.papers import require_learners


def demo(
    out: Annotated[Path, typer.Option(help="Directory for what it makes.")] = Path("discreet-demo"),
) -> None:
    """Publish the effects of two generated studies in three ways, and write pages about them."""
    check_extra()
    require_learners("demo")
    with progress("getting ready") as show_progress:
        from discreet.cli.demo import tour

        found = tour.run(out, progress=show_progress)
    tour.show(found, console())


def add_demo(app: typer.Typer) -> None:
    """Add ``demo``."""
    command(app, "demo")(demo)
