"""The command that starts the curator's service."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli._console import command, guarded
from discreet.exceptions import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from discreet.serve.settings import Settings


Database = Annotated[
    str | None,
    typer.Option(
        help="sqlite:///file.db or postgresql://...; default: the environment's DISCREET_DATABASE, where other "
        "users of the machine do not see a password; else discreet.db here."
    ),
]
HERE = "sqlite:///discreet.db"

service = typer.Typer()


def add_serve(app: typer.Typer) -> None:
    """Add 'discreet serve' and its commands."""
    app.add_typer(service, name="serve")


@service.callback(invoke_without_command=True)
@guarded
def serve(
    context: typer.Context,
    database: Database = None,
    data: Annotated[Path, typer.Option(help="Directory below which files of records lie.")] = Path(),
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen at.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Server processes.")] = 1,
    https: Annotated[
        bool, typer.Option("--https", help="People come by https, through a proxy: cookies go no other way.")
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Two generated data sets, and tokens to try them.")] = False,
    curator: Annotated[
        str | None, typer.Option(help="Make a token for a curator of this short name, print it, and end.")
    ] = None,
) -> None:
    """Start the curator's service: analysts plan, ask and read, and never see a record."""
    if context.invoked_subcommand is not None:
        # What stands before a command's name is meant for it, too.
        context.obj = database
        return
    _check()
    from discreet.serve.service import Service
    from discreet.serve.settings import Settings

    if not demo:
        database = _named(database)
    if demo and (database is None or data == Path()):
        home = Path(tempfile.mkdtemp(prefix="discreet-demo-"))
        database = database or f"sqlite:///{home / 'discreet.db'}"
        data = home if data == Path() else data
    settings = Settings(database=database or HERE, https=https, data=str(data.resolve()))
    if curator is not None:
        typer.echo(_first_token(settings, curator))
        return
    # Whatever is wrong with the database is reported here, before server processes start.
    Service.of(settings).close()
    if demo:
        from discreet.serve import demo as demonstration

        typer.echo("Generating two data sets. They, their budgets and all releases are in " + settings.data)
        tokens = demonstration.prepare(settings)
        typer.echo(f"\nOpen http://{host}:{port}/ and sign in with a token:\n")
        for person, token in tokens.items():
            typer.echo(f"  {demonstration.PEOPLE[person][0]:16} {token}")
        typer.echo(f"\nPrograms send it as a header to http://{host}:{port}/api/v1/datasets:")
        typer.echo(f"  Authorization: Bearer {tokens['analyst']}\n")
    run(settings, host, port, workers)


@command(service, "migrate")
def migrate(context: typer.Context, database: Database = None) -> None:
    """Bring the tables of an older version up to date, and end; servers do the same when they start."""
    _check()
    from discreet.serve.settings import Settings
    from discreet.serve.storage.schema import opened

    engine, before, after = opened(Settings(database=_named(database or context.obj) or HERE).database)
    engine.dispose()
    if before == after:
        typer.echo(f"The tables are up to date: {', '.join(after)}.")
    else:
        typer.echo(f"The tables were at {', '.join(before) or 'nothing'}, and are at {', '.join(after)} now.")


def run(settings: Settings, host: str, port: int, workers: int) -> None:
    """Serve until interrupted."""
    import uvicorn

    settings.to_environment()
    uvicorn.run(
        "discreet.serve.app:from_environment",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        # Whom a proxy asks for is read by rules of our own.
        proxy_headers=False,
    )


def _first_token(settings: Settings, person: str) -> str:
    from discreet.serve.domain import users as people
    from discreet.serve.service import Service

    service = Service.of(settings)
    known = {each["id"]: each["role"] for each in people.everybody(service.engine)}
    if known.get(person, "curator") != "curator":
        raise InvalidInput("--curator names an analyst: choose another short name.")
    if person not in known:
        people.add_person(service.engine, service.clock, person=person, name=person, role="curator")
    return people.add_token(service.engine, service.clock, person=person, label="from the command line")


def _named(database: str | None) -> str | None:
    return database or os.environ.get("DISCREET_DATABASE")


def _check() -> None:
    try:
        import alembic  # noqa: F401
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "The service needs FastAPI, uvicorn and others: install them with pip install 'discreet[serve]'."
        ) from None
