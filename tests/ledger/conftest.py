"""Ledgers to test with, in both databases."""

from contextlib import closing

import pytest

from discreet import Ledger


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/budget.db"
    import psycopg

    address = request.getfixturevalue("postgres")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS ledger_log, ledger_release, ledger_secret, ledger_schema CASCADE")
    return address


@pytest.fixture
def ledger(url):
    """An empty ledger."""
    with closing(Ledger(url)) as made:
        yield made


@pytest.fixture
def quick(tmp_path):
    """An empty ledger in SQLite, for what does not depend on the database."""
    with closing(Ledger(f"sqlite:///{tmp_path}/quick.db")) as made:
        yield made
