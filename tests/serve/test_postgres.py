"""The same service on PostgreSQL, and two servers that share one database."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from discreet.datasets._demo import PUBLIC as BOUNDS
from discreet.exceptions import InvalidInput
from discreet.ledger import Ledger
from discreet.serve.app import create_app
from discreet.serve.domain import interactive_functions as functions
from discreet.serve.domain import jobs, sources
from discreet.serve.governance import whereabouts
from discreet.serve.service import Service
from discreet.serve.storage.clock import Clock
from discreet.serve.storage.schema import metadata
from tests.serve.conftest import ROW, Site, populate, quick
from tests.serve.test_requests import asked_for


@pytest.fixture
def database(postgres):
    """The database without any table of an earlier test."""
    engine = sa.create_engine(postgres.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        metadata.drop_all(connection)
        for name in sa.inspect(connection).get_table_names():
            connection.execute(sa.text(f"DROP TABLE {name} CASCADE"))
    engine.dispose()
    return postgres


def test_the_whole_journey_on_postgresql(database, tmp_path):
    settings = quick(database, tmp_path)
    tokens = populate(settings, tmp_path)
    app = create_app(settings)
    with TestClient(app) as client:
        site = Site(settings, client, app.state.service, tokens)
        name = site.released(kind="uplift", epsilon=2.0, by={"severity": 4})
        assert site.post(f"/api/v1/releases/{name}/effects", {"rows": [ROW]}).status_code == 200
        assert site.get(f"/releases/{name}").status_code == 200
        assert site.get("/api/v1/releases", "colleague").json()["items"] == []
        iterative = site.released(kind="dp-cate", epsilon=1.0, calibration="claimed")
        asked = {"rows": [ROW]}
        first = site.post(f"/api/v1/releases/{iterative}/effects", asked).json()
        assert site.post(f"/api/v1/releases/{iterative}/effects", asked).json() == first
        assert site.ask(epsilon=99.0).json()["error"] == "budget"
        assert site.get("/api/v1/curator/log/verification", "curator").json()["intact"] is True


def test_what_postgresql_cannot_store_is_refused_and_answers_outlive_a_power_cut(database, tmp_path, monkeypatch):
    settings = quick(f"{database}{'&' if '?' in database else '?'}options=-c%20synchronous_commit%3Doff", tmp_path)
    tokens, durable = populate(settings, tmp_path), []
    app = create_app(settings)

    def append(keeper, line):
        durable.append(keeper._connection.scalar(sa.text("SHOW synchronous_commit")))
        original(keeper, line)

    original = functions._Keeper.append
    monkeypatch.setattr(functions._Keeper, "append", append)
    with TestClient(app) as client:
        site = Site(settings, client, app.state.service, tokens)
        for path in ("/api/v1/datasets/clinic%00", "/api/v1/releases/%00", "/releases/%00/release.json"):
            assert site.get(path).status_code == 422
        csrf = client.get("/login").text.split('name="csrf" value="')[1].split('"')[0]
        assert client.post("/login", data={"csrf": csrf, "token": "discreet_\0_x"}).status_code == 422
        with site.service.engine.begin() as connection:
            assert connection.scalar(sa.text("SHOW synchronous_commit")) == "off"
        name = site.released(kind="dp-cate", epsilon=1.0, calibration="claimed")
        assert site.post(f"/api/v1/releases/{name}/effects", {"rows": [ROW]}).status_code == 200
    assert durable == ["on"]


@pytest.fixture
def records(postgres):
    """Another database of the same server, for records."""
    import psycopg

    made = sa.engine.make_url(postgres).set(database=f"discreet_records_{os.getpid()}")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {made.database}")
    yield made.render_as_string(hide_password=False)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {made.database} WITH (FORCE)")


def host_of(address):
    """The server of an address, as a configuration lists it."""
    url = sa.engine.make_url(address)
    return url.query.get("host", url.host)


def test_a_table_of_postgresql_is_registered_and_asked_where_it_is(database, records, tmp_path, monkeypatch):
    settings = quick(database, tmp_path, hosts=(host_of(records),))
    tokens = populate(settings, tmp_path)
    rows = pq.read_table(tmp_path / "clinic.parquet").to_pandas()
    engine = sa.create_engine(records.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA IF NOT EXISTS study"))
        connection.execute(sa.text('DROP TABLE IF EXISTS study."People"'))
        kinds = "days float8, treated int4, age float8, severity float8, sex text, ward text"
        connection.execute(sa.text(f'CREATE TABLE study."People" ({kinds})'))
        rows["treated"] = rows["treated"].astype(int)
        names = ", ".join(f":{name}" for name in ("days", "treated", "age", "severity", "sex", "ward"))
        connection.execute(sa.text(f'INSERT INTO study."People" VALUES ({names})'), rows.to_dict("records"))
    engine.dispose()
    app = create_app(settings)
    with TestClient(app) as client:
        site = Site(settings, client, app.state.service, tokens)
        new = {"id": "table", "title": "A table", "outcome": "days", "treatment": "treated"}
        new |= {"bounds": BOUNDS.to_dict(), "epsilon": 9.0, "delta": 1e-5, "admits_claimed": True}
        with monkeypatch.context() as patch:
            # Rows stay in the database: nothing holds them all.
            patch.delattr(sources, "table_of")
            for head in ("postgresql://", "postgresql+psycopg://"):
                address = records.replace("postgresql://", head, 1)
                facts = new | {"id": f"table-{len(head)}", "source": f"{address}#study.People"}
                # By either address they are the same records.
                site.agreed(site.post("/api/v1/curator/datasets", facts, "curator"), again=len(head) > 13)
                assert site.get(f"/api/v1/datasets/table-{len(head)}", "curator").json()["records"] == len(rows)
            path = f"/api/v1/curator/datasets/table-{len(head)}/analysts/analyst"
            site.agreed(site.put(path, {"epsilon": 9.0, "delta": 1e-5}))
            dataset = f"table-{len(head)}"
            assert site.released(dataset=dataset, kind="ate", epsilon=1.0)
            assert site.released(dataset=dataset, kind="uplift", epsilon=1.0, by={"severity": 4})
        assert site.released(dataset=dataset, kind="dp-cate", epsilon=1.0)
        for bad in ("#study.Nobody", "#study.People.x", "#"):
            answer = site.post("/api/v1/curator/datasets", new | {"source": records + bad}, "curator")
            assert answer.status_code == 422
            assert records not in answer.text


def test_views_are_looked_through_and_catalogues_and_the_own_database_refused(database, records, tmp_path):
    settings = quick(database, tmp_path, hosts=(host_of(records),), work=False)
    Service.of(settings).close()
    engine = sa.create_engine(records.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE people (days float8)",
            "CREATE VIEW seen AS SELECT days FROM people",
            "CREATE VIEW again AS SELECT days + 0 AS days FROM seen",
            "CREATE TABLE others (days float8)",
            "CREATE VIEW peeking AS SELECT usename FROM pg_user",
        ):
            connection.execute(sa.text(statement))
    engine.dispose()

    def at(table):
        return whereabouts.places(whereabouts.located(f"{records}#{table}", settings), lambda parts: "")

    assert whereabouts.in_common(at("again"), at("people"))
    assert whereabouts.in_common(at("seen"), at("again"))
    assert not whereabouts.in_common(at("others"), at("people"))
    for table in ("pg_authid", "pg_catalog.pg_user", "information_schema.tables", "peeking"):
        with pytest.raises(InvalidInput, match="catalogue"):
            at(table)
    with pytest.raises(InvalidInput, match="own database"):
        whereabouts.located(f"{database}#serve_tokens", settings)
    with pytest.raises(InvalidInput, match="may not read"):
        whereabouts.located(f"{records}#people", quick(database, tmp_path))


class Server:
    """A server process of its own."""

    def __init__(self, settings):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        code = (
            "from discreet.cli.serve import run\nfrom discreet.serve.settings import Settings\n"
            f"run(Settings.from_environment(), '127.0.0.1', {self.port}, 1)\n"
        )
        settings.to_environment()
        self.process = subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ))

    def call(self, path, token, body=None):
        """Status and JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def wait(self):
        for _ in range(300):
            try:
                if self.call("/health", "")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the server did not start")

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(20)


def test_two_servers_on_one_database_never_overspend_and_take_over_from_each_other(database, tmp_path):
    settings = quick(database, tmp_path, lease=1.0)
    tokens = populate(settings, tmp_path)
    ledger = Ledger(database)
    servers = [Server(settings) for _ in range(2)]
    try:
        for server in servers:
            server.wait()
        path = "/api/v1/datasets/clinic/requests"
        # The colleague may spend 1 in all: of twelve different requests, made at once at both servers, two fit.
        asked = [{"kind": "difference-in-means", "epsilon": 0.4 + k / 1000, "delta": 0} for k in range(12)]
        with ThreadPoolExecutor(12) as pool:
            answers = list(
                pool.map(lambda k: servers[k % 2].call(path, tokens["colleague"], asked[k]), range(len(asked)))
            )
        codes = sorted(code for code, _ in answers)
        assert codes == [202] * 2 + [409] * 10
        made = [body["job"] for code, body in answers if code == 202]
        for job in made:
            assert _ended(servers[0], job, tokens["colleague"])["state"] == "done"
        # What one server released the other one shows.
        seen = [
            {each["id"] for each in server.call("/api/v1/releases", tokens["colleague"])[1]["items"]}
            for server in servers
        ]
        assert seen[0] == seen[1]
        assert len(seen[0]) == 2
        # One server is killed in the middle of its work; the other one ends what is left.
        jobs = [servers[0].call(path, tokens["analyst"], one)[1]["job"] for one in _many()]
        servers[0].end(signal.SIGKILL)
        ended = [_ended(servers[1], job, tokens["analyst"]) for job in jobs]
        assert {each["state"] for each in ended} <= {"done", "failed"}
        assert {each["failure"] for each in ended} <= {None, "lost-charged"}
        assert sum(each["state"] == "done" for each in ended) >= len(jobs) - 1
        states = [request.state for request in ledger.requests("clinic", analyst="analyst")]
        assert states.count("settled") + states.count("failed") == len(jobs)
        ledger.verify()
    finally:
        for server in servers:
            server.end()
        ledger.close()


def _many():
    return [{"kind": "difference-in-means", "epsilon": 0.5 + k / 100, "delta": 1e-7} for k in range(5)]


def _ended(server, job, token):
    for _ in range(400):
        found = server.call(f"/api/v1/requests/{job}", token)[1]
        if found["state"] not in ("queued", "running"):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{re.escape(job)} did not end")


def test_workers_on_postgresql_take_turns_and_no_job_twice(database, tmp_path):
    settings = quick(database, tmp_path, work=False)
    populate(settings, tmp_path)
    services = [Service.of(settings) for _ in range(4)]
    for k in range(8):
        asked_for(services[0], 0.3 + k / 100)
    mine = asked_for(services[0], 0.2, "colleague")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda service: jobs.claim(service), services))
    taken = [row["id"] for row in found if row is not None]
    assert len(set(taken)) == len(taken) >= 1
    while mine not in taken:
        taken.append(jobs.claim(services[0])["id"])
    # One round of claims at once, and the colleague's comes right after it at the latest.
    assert taken.index(mine) <= 4
    # Machines agree on the time, whatever their own clocks say: it comes from the database's server.
    ahead = Clock(services[0].engine, steady=lambda: 100.0)
    assert abs(ahead.now() - services[1].clock.now()) < 5.0
    with services[0].engine.connect() as connection:
        server = connection.scalar(sa.text("SELECT extract(epoch FROM clock_timestamp())"))
    assert abs(services[0].clock.now() - float(server)) < 5.0
    for service in services:
        service.close()


def test_a_worker_of_its_own_machine_works_for_a_server_without_any(database, tmp_path):
    settings = quick(database, tmp_path, work=False, workers=0)
    tokens = populate(settings, tmp_path)
    environment = os.environ | {"DISCREET_DATABASE": database, "DISCREET_DATA": str(tmp_path)}
    environment |= {"DISCREET_FIRST_TICK": "0.05"}
    worker = subprocess.Popen([sys.executable, "-m", "discreet", "worker"], env=environment)
    app = create_app(settings)
    try:
        with TestClient(app) as client:
            site = Site(settings, client, app.state.service, tokens)
            assert site.released(kind="ate", epsilon=0.5)
            assert client.get("/ready").json()["workers"] is True
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
