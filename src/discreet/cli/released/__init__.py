"""Commands that read release files and spend nothing: combine, explain, compare."""

import typer

from discreet.cli._console import command
from discreet.cli.released.combine import combine
from discreet.cli.released.explain import compare, explain


def add_released(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "combine")(combine)
    command(app, "explain")(explain)
    command(app, "compare")(compare)
