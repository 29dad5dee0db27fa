"""What is right and what is wrong with a service that is set up or about to be, in sentences; nothing is changed."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import sqlalchemy as sa

from discreet.exceptions import DiscreetError
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.operations import configuration, fleet
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.storage.migration import steps
from discreet.serve.storage.schema import engine_of, facts

_HERE = {"127.0.0.1", "::1", "localhost"}
# Characters of a token that cannot be guessed.
_LONG = 24


class Finding(NamedTuple):
    """One sentence: all is well, mind this, or change this first."""

    mark: Literal["ok", "note", "wrong"]
    sentence: str


def checked(settings: Settings, file: Path | None, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Everything that can be checked without changing anything.

    Parameters
    ----------
    settings : Settings
        The configuration, read.
    file : Path or None
        Where it was read from.
    environment : mapping
        What overrides it.
    """
    yield from _configuration(settings, file, environment)
    yield from _directories(settings)
    yield from _database(settings)


def _configuration(settings: Settings, file: Path | None, environment: Mapping[str, str]) -> Iterator[Finding]:
    if file is None:
        yield Finding("note", "There is no configuration file: --config or DISCREET_CONFIG names one, for all options.")
    else:
        if _holds_secret(file) and file.stat().st_mode & stat.S_IROTH:
            yield Finding("wrong", f"config: everybody can read {file}, which holds a secret: chmod 640 {file}.")
        else:
            yield Finding("ok", f"config: {file} was read, and every key in it is an option.")
    for sentence in configuration.stray(environment):
        yield Finding("wrong", sentence)
    if settings.host not in _HERE and not settings.https:
        yield Finding("wrong", f"host is {settings.host} and https is off: put a proxy with a certificate before it.")
    if settings.metrics_token and len(settings.metrics_token) < _LONG:
        yield Finding("wrong", f"metrics_token is short: use {_LONG} random characters or more.")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        yield Finding("note", "This is the root user: run the service as a user of its own, who owns nothing else.")


def _holds_secret(file: Path) -> bool:
    """Whether a file of options holds a token, or an address with a password."""
    plain = tomllib.loads(file.read_text(encoding="utf-8"))
    named = any(name.endswith(("token", "secret", "password")) and value for name, value in plain.items())
    texts = [value.partition("://")[2].rpartition("@")[0] for value in plain.values() if isinstance(value, str)]
    return named or any(":" in text for text in texts)


def _directories(settings: Settings) -> Iterator[Finding]:
    data = Path(settings.data)
    if not data.is_dir():
        yield Finding("wrong", f"data: {data} is no directory: make it, or name another one.")
    elif not os.access(data, os.R_OK | os.X_OK):
        yield Finding("wrong", f"data: this user may not read {data}: change its owner or its mode.")
    elif data.stat().st_mode & (stat.S_IWOTH | stat.S_IROTH):
        yield Finding("note", f"data: other users of this machine may read or write {data}: chmod o-rwx {data}.")
    else:
        yield Finding("ok", f"data: {data} can be read, and by nobody else but its group.")


def _database(settings: Settings) -> Iterator[Finding]:
    engine = engine_of(settings.database)
    name = engine.url.render_as_string(hide_password=True)
    try:
        if engine.dialect.name == "sqlite":
            file = Path(str(engine.url.database)).absolute()
            if not file.exists():
                yield from _new_file(file)
                return
            yield from _file(file, settings)
        try:
            there, ours = steps(engine)
        except sa.exc.DBAPIError:
            yield Finding("wrong", f"database: {name} does not answer: check address, password and server.")
            return
        if not sa.inspect(engine).has_table(facts.name):
            yield Finding("note", f"database: {name} answers, and the first start will make its tables.")
        elif there - ours:
            yield Finding("wrong", "database: its tables are newer than this version: upgrade discreet.")
        elif there != ours:
            yield Finding("note", "database: its tables are older: make a backup, then run 'discreet serve migrate'.")
        else:
            yield Finding("ok", f"database: {name} answers, and its tables are up to date.")
            yield from _contents(settings, engine)
    finally:
        engine.dispose()


def _new_file(file: Path) -> Iterator[Finding]:
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK | os.X_OK):
        yield Finding("wrong", f"database: {file} cannot be made: make {file.parent}, for this user to write to.")
    else:
        yield Finding("note", f"database: {file} does not exist yet: the first start makes it.")


def _file(file: Path, settings: Settings) -> Iterator[Finding]:
    mode = file.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding("wrong", f"database: others may open {file}, which is secret: chmod 600 {file}.")
    if not os.access(file, os.R_OK | os.W_OK) or not os.access(file.parent, os.W_OK):
        yield Finding("wrong", f"database: this user may not write to {file} and beside it: change their owner.")
    if settings.workers > 1:
        yield Finding("note", "database: several workers share a SQLite file: on more than one machine use PostgreSQL.")


def _contents(settings: Settings, engine: sa.Engine) -> Iterator[Finding]:
    """What is in a database of this version; it is read, and the ledger opened."""
    service = Service.of(settings)
    free, there = fleet.free_megabytes(service), fleet.present(service)
    if free is not None and free < settings.least_free:
        yield Finding("wrong", f"disk: {free} MB are free, less than least_free: make room, or no work is begun.")
    try:
        yield Finding(
            "ok", f"ledger: its log has {service.ledger.head.seq} lines ('discreet ledger verify' reads all)."
        )
    except DiscreetError as error:
        yield Finding("wrong", f"ledger: {error}")
    finally:
        service.close()
    curators = [person for person in people.everybody(engine) if person["role"] == "curator"]
    if len(curators) < 2:
        yield Finding(
            "note", f"Curators with an account: {len(curators)}; much takes two: discreet serve --curator NAME."
        )
    for dataset in catalogue.everything(engine):
        if not catalogue.unchanged(dataset):
            yield Finding("wrong", f"data set {dataset.id}: its source changed or is out of reach: see a curator.")
    if settings.workers == 0 and not there:
        yield Finding("note", "workers is 0 and none is there: requests wait until 'discreet worker' runs somewhere.")
