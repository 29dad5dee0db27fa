"""How a database of an older version becomes one of this: Alembic's steps, one file each in `migrations/versions`.

The ledger beside it keeps its own tables (`discreet.ledger._storage`), because it is used without the service, too.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import ResolutionError
from alembic.util import CommandError

from discreet.exceptions import InvalidInput

VERSION_TABLE = "serve_migrations"
# What the first version wrote down about itself, and what shows it that a database is not one of its own any more.
_FIRST, _KEPT_BY_ALEMBIC = "1", "2"
_NEWER = "the database was made by a newer version of the service: upgrade discreet."
# Any number will do, as long as nobody else locks by it.
_LOCK = 722041

_facts = sa.table("serve_facts", sa.column("name"), sa.column("value"))


def migrate(engine: sa.Engine) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Bring the tables of the service up to date, all or none; returns the steps at which they were, and are.

    Parameters
    ----------
    engine : Engine
        The database; servers that start at once wait for each other.
    """
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            # One server at a time makes or changes tables.
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        config = _config()
        config.attributes["connection"] = connection
        before, version = _heads(connection), _version(connection)
        if version not in (None, _FIRST, _KEPT_BY_ALEMBIC) or (version == _KEPT_BY_ALEMBIC and not before):
            raise InvalidInput(_NEWER)
        if version == _FIRST and not before:
            command.stamp(config, "baseline")
            before = _heads(connection)
        if set(before) == set(ScriptDirectory.from_config(config).get_heads()):
            return before, before
        try:
            command.upgrade(config, "heads")
        except (CommandError, ResolutionError):
            raise InvalidInput(_NEWER) from None
        _mark(connection)
        return before, _heads(connection)


def steps(engine: sa.Engine) -> tuple[set[str], set[str]]:
    """The steps at which the tables are, and those that belong to this version; nothing is changed."""
    with engine.connect() as connection:
        return set(_heads(connection)), set(ScriptDirectory.from_config(_config()).get_heads())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "discreet.serve.storage:migrations")
    return config


def _mark(connection: sa.Connection) -> None:
    """Let the first version, which knows nothing of Alembic, refuse these tables."""
    connection.execute(sa.update(_facts).where(_facts.c.name == "version").values(value=_KEPT_BY_ALEMBIC))


def _heads(connection: sa.Connection) -> tuple[str, ...]:
    """The steps at which a database is; none, where Alembic has not seen it."""
    return tuple(MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_heads())


def _version(connection: sa.Connection) -> str | None:
    """What a database says of itself; nothing, where it is new."""
    if not sa.inspect(connection).has_table(_facts.name):
        return None
    found: str | None = connection.scalar(sa.select(_facts.c.value).where(_facts.c.name == "version"))
    return found
