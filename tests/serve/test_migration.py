"""Databases of older versions of the service become those of this version, and nothing that they know is lost.

`tests/golden/serve/version-1.sql` was written by the first version itself (`evidence/service/version_one.py`).
"""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from typer.testing import CliRunner

from discreet.cli import app
from discreet.exceptions import InvalidInput
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import jobs
from discreet.serve.domain import users as people
from discreet.serve.domain.administration import verified
from discreet.serve.domain.requests import asked_of
from discreet.serve.domain.users import Identity
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.storage.migration import VERSION_TABLE
from discreet.serve.storage.schema import connect, metadata
from tests.house import ROOT

VERSION_1 = (ROOT / "tests" / "golden" / "serve" / "version-1.sql").read_text(encoding="utf-8")


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request, tmp_path):
    """The address of a database as the first version left it, with data."""
    file = tmp_path / "service.db"
    with sqlite3.connect(file) as made:
        made.executescript(VERSION_1)
    made.close()
    if request.param == "sqlite":
        return f"sqlite:///{file}"
    url = request.getfixturevalue("postgres")
    source, target = sa.create_engine(f"sqlite:///{file}"), sa.create_engine(_driver(url))
    tables = sa.MetaData()
    tables.reflect(source)
    for table in tables.sorted_tables:
        for column in table.columns:
            column.type = column.type.as_generic()
    with source.connect() as old, target.begin() as new:
        for name in sa.inspect(new).get_table_names():
            new.execute(sa.text(f"DROP TABLE {name} CASCADE"))
        tables.create_all(new)
        for table in tables.sorted_tables:
            if rows := [dict(row) for row in old.execute(sa.select(table)).mappings()]:
                new.execute(sa.insert(table), rows)
    source.dispose()
    target.dispose()
    return url


def _driver(url):
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def _rows(url):
    """All rows of all tables, by table."""
    engine, tables = sa.create_engine(_driver(url)), sa.MetaData()
    tables.reflect(engine)
    with engine.connect() as connection:
        found = {
            name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
            for name, table in tables.tables.items()
        }
    engine.dispose()
    return found


def _identity(person, role):
    scopes = people.ALLOWED[role]
    return Identity(person=person, name=person, role=role, scopes=scopes, token="", expires=float("inf"))


def test_a_database_of_the_first_version_keeps_every_row_and_its_chain_verifies(old):
    before = _rows(old)
    head = f"{len(before['ledger_log'])}:{before['ledger_log'][-1]['hash']}"
    service = Service.of(Settings(database=old))
    assert verified(service, head)["intact"] is True
    service.close()
    after = _rows(old)
    for name, rows in before.items():
        kept = [{column: row[column] for column in rows[0]} for row in after[name]] if rows else []
        if name == "serve_facts":
            rows, kept = ([row for row in each if row["name"] != "version"] for each in (rows, kept))
        elif name == "ledger_log":
            kept = kept[: len(rows)]
        assert sorted(map(str, kept)) == sorted(map(str, rows)), name


def test_nothing_that_was_paid_for_before_a_migration_is_asked_for_again(old):
    paid = [row for row in _rows(old)["serve_jobs"] if row["state"] == "done"]
    service = Service.of(Settings(database=old))
    before = service.ledger.account("clinic")
    analyst = _identity("analyst", "analyst")
    dataset = catalogue.find(service.engine, analyst, "clinic")
    assert len(paid) == 2
    for row in paid:
        answer = jobs.submit(service, analyst, dataset, asked_of(json.loads(row["request"])))
        assert answer == {"release": row["release"], "job": None, "charged": False}
    after = service.ledger.account("clinic")
    assert (after.spent, after.requests) == (before.spent, before.requests)
    service.close()


def test_migrations_lead_to_the_tables_that_the_code_declares(old, tmp_path):
    for url in (old, f"sqlite:///{tmp_path}/new.db"):
        engine = connect(url)
        with engine.connect() as connection:
            ours = {"include_name": lambda name, kind, _: kind != "table" or name in metadata.tables}
            assert compare_metadata(MigrationContext.configure(connection, opts=ours), metadata) == []
        engine.dispose()


def test_servers_that_start_at_once_migrate_once(old):
    with ThreadPoolExecutor(4) as pool:
        for engine in pool.map(connect, [old] * 4):
            engine.dispose()
    heads = [row["version_num"] for row in _rows(old)[VERSION_TABLE]]
    assert len(heads) == len(set(heads)) > 0


def test_the_command_says_what_it_did(old):
    run = CliRunner().invoke(app, ["serve", "migrate", "--database", old])
    assert run.exit_code == 0, run.output
    again = CliRunner().invoke(app, ["serve", "--database", old, "migrate"])
    assert again.exit_code == 0
    assert again.output.startswith("The tables are up to date: ")


@pytest.mark.parametrize("change", ["INSERT INTO serve_migrations VALUES ('later')", "version"])
def test_a_database_of_a_newer_version_is_refused_in_one_sentence(tmp_path, change):
    url = f"sqlite:///{tmp_path}/service.db"
    connect(url).dispose()
    with sqlite3.connect(tmp_path / "service.db") as made:
        if change == "version":
            made.execute("DROP TABLE serve_migrations")
            made.execute("UPDATE serve_facts SET value = '9' WHERE name = 'version'")
        else:
            made.execute(change)
    made.close()
    with pytest.raises(InvalidInput, match="made by a newer version of the service: upgrade discreet"):
        connect(url)


def test_a_migration_that_fails_leaves_no_trace(tmp_path, monkeypatch):
    from discreet.serve.storage import migration

    def fail(*_):
        raise InvalidInput("the last statement failed.")

    monkeypatch.setattr(migration, "_mark", fail)
    with pytest.raises(InvalidInput, match="the last statement failed"):
        connect(f"sqlite:///{tmp_path}/service.db")
    with sqlite3.connect(tmp_path / "service.db") as made:
        assert made.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    made.close()
