"""Settings that all tests share."""

import os
import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail: properties are about values, and never about time.
settings.register_profile("discreet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("discreet")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL database that belongs to this test process alone, empty at first."""
    server = os.environ.get("DISCREET_TEST_POSTGRES")
    if not server:
        no_server = "there is no PostgreSQL: run the tests by make test, or by tests/with-postgres.sh"
        pytest.skip(os.environ.get("DISCREET_NO_POSTGRES", no_server))
    import psycopg

    name = f"discreet_test_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield re.sub(r"^(\w+://[^/?]*)(/[^?]*)?", rf"\1/{name}", server)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
