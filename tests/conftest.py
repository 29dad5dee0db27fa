"""Settings that all tests share."""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail: properties are about values, and never about time.
settings.register_profile("discreet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("discreet")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of Spark in one process, because each process would start a cluster."""
    from xdist.scheduler import LoadScopeScheduling

    class OneCluster(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if "test_spark" in nodeid else nodeid

    return OneCluster(config, log)


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


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on a cluster of two workers, each a process of its own."""
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("there is no Java: install Debian's package openjdk-17-jre-headless")
    import pyspark

    # Workers write into Spark's home: give them one that is not inside a package.
    home = tmp_path_factory.mktemp("spark")
    for item in Path(pyspark.__file__).parent.iterdir():
        (home / item.name).symlink_to(item)
    os.environ |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    # Three virtual machines on two cores: compile less, and collect garbage in one thread.
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local-cluster[2,1,512]")
            .config("spark.executor.memory", "512m")
            .config("spark.executor.extraJavaOptions", quick)
            .config("spark.driver.extraJavaOptions", quick)
            .config("spark.driver.memory", "512m")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(home / "warehouse"))
            .getOrCreate()
        )
    yield session
    session.stop()


@pytest.fixture
def voters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaders find the social pressure experiment beside the project, unless DISCREET_DATA says where else it is."""
    from discreet.datasets.voters import SOCIAL_PRESSURE_FILE

    data = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (data / SOCIAL_PRESSURE_FILE).exists():
        pytest.skip("the social pressure experiment is no part of this project; set DISCREET_DATA")
    monkeypatch.setenv("DISCREET_DATA", str(data))
