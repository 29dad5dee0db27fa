"""``discreet bounds``: write a file to fill in, check one against a table, or have one suggested."""

import typer

from discreet.cli._console import command
from discreet.cli.bounds.check import check
from discreet.cli.bounds.suggest import suggest
from discreet.cli.bounds.template import init


def add_bounds(app: typer.Typer) -> None:
    """Add ``bounds`` and its commands."""
    group = typer.Typer(no_args_is_help=True, help="Declare the public facts about the records.")
    command(group, "init")(init)
    command(group, "check")(check)
    command(group, "suggest")(suggest)
    app.add_typer(group, name="bounds")
