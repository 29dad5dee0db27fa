"""The command line: files in, a readable table, a release and a page out.

Each module adds its commands. Libraries are imported inside the commands, so that help appears at once.
"""

from typing import Annotated

import typer

from discreet.cli.audit import add_audit
from discreet.cli.bounds import add_bounds
from discreet.cli.demo import add_demo
from discreet.cli.estimate import add_estimators
from discreet.cli.ledger import add_ledger
from discreet.cli.paper import add_paper
from discreet.cli.plan import add_plans
from discreet.cli.query import add_query
from discreet.cli.released import add_released
from discreet.cli.report import add_report
from discreet.cli.reproduce import add_reproduce
from discreet.cli.serve import add_serve

app = typer.Typer(
    name="discreet",
    help="Treatment effects from sensitive records, published under differential privacy.",
    no_args_is_help=True,
    add_completion=True,
    # Typer's own tracebacks print local variables, and those are records.
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from discreet import __version__

        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Treatment effects from sensitive records, published under differential privacy."""


# In the order in which help names them; groups come last.
add_estimators(app)
add_query(app)
add_paper(app)
add_released(app)
add_audit(app)
add_serve(app)
add_report(app)
add_demo(app)
add_plans(app)
add_reproduce(app)
add_bounds(app)
add_ledger(app)
