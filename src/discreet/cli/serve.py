"""Commands that start the curator's service and its workers, and check what they are given."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._console import command, guarded
from discreet.exceptions import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from discreet.serve.settings import Settings

# Seconds that answers which have begun are waited for when the server ends.
_GRACE = 30

Database = Annotated[
    str | None,
    typer.Option(
        help="sqlite:///file.db or postgresql://...; default: the environment's DISCREET_DATABASE, where other "
        "users of the machine do not see a password; else discreet.db here."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        envvar="DISCREET_CONFIG", help="TOML file of options; DISCREET_ and an option's name in capitals override it."
    ),
]
Data = Annotated[Path | None, typer.Option(help="Directory below which files of records lie; default: here.")]

service = typer.Typer()


def add_serve(app: typer.Typer) -> None:
    """Add 'discreet serve' and its commands, and 'discreet worker'."""
    app.add_typer(service, name="serve")
    command(app, "worker")(worker)


@service.callback(invoke_without_command=True)
@guarded
def serve(
    context: typer.Context,
    config: Config = None,
    database: Database = None,
    data: Data = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at; default: this machine alone.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to listen at; default: 8000.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, max=64, help="Processes that fit; 0 if 'discreet worker' runs elsewhere. Default: 1."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=0, max=64, help="Server processes; default: as many as workers.")
    ] = None,
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
        context.obj = {"config": config, "database": database, "data": data}
        return
    _check()
    from discreet.serve.service import Service

    given: dict[str, Any] = {"host": host, "port": port, "workers": workers, "processes": processes}
    given["https"] = https or None
    if demo:
        # Its tokens are printed: nothing of a service that is meant seriously may be opened by them.
        home = Path(tempfile.mkdtemp(prefix="discreet-demo-")) if database is None or data is None else Path()
        database, data = database or f"sqlite:///{home / 'discreet.db'}", data or home
        settings = _settings(None, {}, database=database, data=data, access_log=False, **given)
    else:
        settings = _settings(config, os.environ, database=database, data=data, **given)
    if curator is not None:
        typer.echo(_first_token(settings, curator))
        return
    # Whatever is wrong with the database is reported here, before server processes start.
    Service.of(settings).close()
    if demo:
        from discreet.serve import demo as demonstration

        typer.echo("Generating two data sets. They, their budgets and all releases are in " + settings.data)
        address = f"http://{settings.host}:{settings.port}"
        tokens = demonstration.prepare(settings)
        typer.echo(f"\nOpen {address}/ and sign in with a token:\n")
        for person, token in tokens.items():
            typer.echo(f"  {demonstration.PEOPLE[person][0]:16} {token}")
        typer.echo(f"\nPrograms send it as a header to {address}/api/v1/datasets:")
        typer.echo(f"  Authorization: Bearer {tokens['analyst']}\n")
    run(settings)


@command(service, "check")
def check(context: typer.Context, config: Config = None, database: Database = None, data: Data = None) -> None:
    """Say in sentences what is wrong with configuration, database, directories and permissions; nothing is changed."""
    _check()
    from discreet.serve.operations.check import checked

    given = {**context.obj, **_only_given(config=config, database=database, data=data)}
    file = given.pop("config")
    found = list(checked(_settings(file, os.environ, **given), file, os.environ))
    for finding in found:
        typer.echo(f"{finding.mark:6} {finding.sentence}")
    if any(finding.mark == "wrong" for finding in found):
        raise typer.Exit(2)


@command(service, "migrate")
def migrate(context: typer.Context, config: Config = None, database: Database = None) -> None:
    """Bring the tables of an older version up to date, and end; servers do the same when they start."""
    _check()
    from discreet.serve.storage.schema import opened

    given = {**context.obj, **_only_given(config=config, database=database)}
    engine, before, after = opened(_settings(given.pop("config"), os.environ, **given).database)
    engine.dispose()
    if before == after:
        typer.echo(f"The tables are up to date: {', '.join(after)}.")
    else:
        typer.echo(f"The tables were at {', '.join(before) or 'nothing'}, and are at {', '.join(after)} now.")


def worker(config: Config = None, database: Database = None, data: Data = None) -> None:
    """Work on requests of a service, on this machine or another one; as many as you start share a database."""
    _check()
    from discreet.serve.operations import supervisor

    supervisor.run(_settings(config, os.environ, database=database, data=data))


def run(settings: Settings, host: str | None = None, port: int | None = None, processes: int | None = None) -> None:
    """Serve until interrupted; then workers end what was charged, and put the rest back into the queue."""
    import uvicorn

    from discreet.serve.operations import logs, metrics
    from discreet.serve.operations.beside import Workers

    # Fits are for processes of their own; Windows cannot limit these, so that there the server fits in a thread.
    alone = os.name == "nt"
    settings = replace(settings, work=alone, workers=0 if alone else settings.workers)
    workers = Workers(settings)
    logs.begin()
    if settings.metrics_token:
        metrics.share()
    settings.to_environment()
    workers.start()
    # What uvicorn caught it raises again when it has ended.
    signal.signal(signal.SIGTERM, lambda *_: workers.drain())
    try:
        uvicorn.run(
            "discreet.serve.app:from_environment",
            factory=True,
            host=host or settings.host,
            port=settings.port if port is None else port,
            workers=processes or settings.servers,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            # Whom a proxy asks for is read by rules of our own.
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE,
        )
    finally:
        workers.end()


def _settings(file: Path | None, environment: Mapping[str, str], **given: Any) -> Settings:
    from discreet.serve.operations.configuration import read

    settings = read(file, environment, **_only_given(**given))
    return replace(settings, data=str(Path(settings.data).resolve()))


def _only_given(**given: Any) -> dict[str, Any]:
    return {name: str(value) if name == "data" else value for name, value in given.items() if value is not None}


def _first_token(settings: Settings, person: str) -> str:
    from discreet.serve.domain import users as people
    from discreet.serve.governance import notes
    from discreet.serve.service import Service

    service = Service.of(settings)
    known = {each["id"]: each["role"] for each in people.everybody(service.engine)}
    if known.get(person, "curator") != "curator":
        raise InvalidInput("--curator names an analyst: choose another short name.")
    if person not in known:
        people.add_person(service.engine, service.clock, person=person, name=person, role="curator")
        notes.note(service, "person added", None, whom=person, role="curator", name=person)
    token = people.add_token(service.engine, service.clock, person=person, label="from the command line")
    notes.note(service, "token made", None, whom=person, token=people.public_id(token))
    return token


def _check() -> None:
    try:
        import alembic  # noqa: F401
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import prometheus_client  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "The service needs FastAPI, uvicorn and others: install them with pip install 'discreet[serve]'."
        ) from None
