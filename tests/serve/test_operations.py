"""What whoever runs the service needs around it: options, checks, logs, metrics."""

import json
import logging
import os
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from discreet.cli import app as commands
from discreet.exceptions import InvalidInput, LedgerUnavailable
from discreet.serve.app import create_app
from discreet.serve.operations import configuration, logs, metrics
from discreet.serve.operations.check import checked
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from tests.serve.conftest import Site, populate, quick

TOKEN = "a-token-for-monitoring-alone"


def written(folder, text, mode=0o600):
    file = folder / "discreet.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_every_option_can_be_written_in_a_file_and_overridden_by_the_environment(tmp_path):
    plain = {name: getattr(Settings(), name) for name in configuration.options()}
    assert set(plain) == {each.name for each in fields(Settings)} - {"work"}
    other = {
        bool: lambda value: not value,
        str: lambda value: {"sqlite:///discreet.db": "sqlite:///other.db", "freeze": "warn"}.get(value, "other"),
        int: lambda value: value + 1 if value != 2 else 1,
        float: lambda value: value + 0.5,
        tuple: lambda value: ("one", "two"),
        dict: lambda value: {"one": "two"},
    }
    changed = {name: other[type(value)](value) for name, value in plain.items() if type(value) in other}
    lines = [f"{name} = {_toml(value)}" for name, value in changed.items()]
    read = configuration.read(written(tmp_path, "\n".join(lines)), {})
    assert {name: getattr(read, name) for name in changed} == changed
    environment = {f"DISCREET_{name.upper()}": _text(plain[name]) for name in changed}
    read = configuration.read(tmp_path / "discreet.toml", environment)
    assert {name: getattr(read, name) for name in changed} == {name: plain[name] for name in changed}
    # What is given on the command line comes first, and what is left out there does not count.
    assert configuration.read(tmp_path / "discreet.toml", environment, port=1, host=None).port == 1


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {json.dumps(each)}" for key, each in value.items()) + "}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _text(value):
    return ",".join(value) if isinstance(value, tuple) else json.dumps(value) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('databse = "sqlite:///x.db"', "'databse' is no option: did you mean 'database'?"),
        ("wrokers = 2", "'wrokers' is no option: did you mean 'workers'?"),
        ('port = "8000"', "port must be a whole number"),
        ("port = true", "port must be a whole number"),
        ("port = 8000.5", "port must be a whole number"),
        ('https = "yes"', "https must be true or false"),
        ("database = 3", "database must be text in quotes"),
        ("port = 99999", "port must be between 0 and 65,535"),
        ("lease = nan", "lease must be between"),
        ("workers = 1000", "workers must be between 0 and 64"),
        ('database = "mysql://x"', "--database must begin with"),
        ("port = ", "is not TOML"),
        ("work = true", "'work' is no option"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused_in_one_sentence(tmp_path, text, words):
    with pytest.raises(InvalidInput, match=re.escape(words)) as refused:
        configuration.read(written(tmp_path, text), {})
    assert str(refused.value).count("\n") == 0
    answer = CliRunner().invoke(commands, ["serve", "--config", str(tmp_path / "discreet.toml")])
    assert (answer.exit_code, answer.output.count("\n")) == (2, 1)
    assert words in answer.output


def test_values_of_the_environment_are_checked_and_not_repeated():
    for name, value in {"PORT": "hush", "HTTPS": "hush", "LEASE": "hush"}.items():
        with pytest.raises(InvalidInput, match=f"DISCREET_{name} must be") as refused:
            configuration.read(None, {f"DISCREET_{name}": value})
        assert "hush" not in str(refused.value)


def test_a_file_that_is_not_toml_is_not_quoted(tmp_path):
    with pytest.raises(InvalidInput) as refused:
        configuration.read(written(tmp_path, 'database = "postgresql://anna:hush@host/base'), {})
    assert "hush" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for file in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            configuration.read(file, {})


def test_variables_that_are_no_options_are_found():
    environment = {"DISCREET_DATABSE": "x", "DISCREET_COMPILED": "1", "DISCREET_PORT": "1", "HOME": "/"}
    assert configuration.stray(environment) == ["DISCREET_DATABSE is no option: did you mean DISCREET_DATABASE?"]


def test_a_database_of_postgresql_without_its_driver_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    answer = CliRunner().invoke(commands, ["serve", "--database", "postgresql://anna:hush@host/base"])
    assert answer.exit_code == 2
    assert "pip install 'discreet[serve,postgresql]'" in answer.output
    assert "hush" not in answer.output


def findings(settings, file=None, environment=None):
    return [(each.mark, each.sentence) for each in checked(settings, file, environment or {})]


def marks(found, word):
    return [mark for mark, sentence in found if word in sentence]


def test_a_service_that_is_set_up_well_is_said_to_be(tmp_path):
    settings = quick(f"sqlite:///{tmp_path}/service.db", tmp_path)
    populate(settings, tmp_path)
    tmp_path.chmod(0o750)
    file = written(tmp_path, "workers = 1")
    found = findings(settings, file)
    assert not [sentence for mark, sentence in found if mark == "wrong"]
    for word in ("every key", "data: ", "up to date", "ledger: "):
        assert marks(found, word) == ["ok"]
    answer = CliRunner().invoke(commands, ["serve", "--database", settings.database, "check", "--data", str(tmp_path)])
    assert answer.exit_code == 0, answer.output


def test_what_is_wrong_is_said_in_sentences_and_nothing_is_changed(tmp_path):
    database = tmp_path / "service.db"
    settings = quick(f"sqlite:///{database}", tmp_path / "missing", host="0.0.0.0", metrics_token="short")
    found = findings(settings, environment={"DISCREET_DATABSE": "x"})
    for word in ("no directory", "https", "metrics_token", "DISCREET_DATABSE"):
        assert marks(found, word) == ["wrong"], word
    assert marks(found, "does not exist yet") == ["note"]
    assert not database.exists()
    assert not list(tmp_path.iterdir())
    good = quick(f"sqlite:///{database}", tmp_path, least_free=10_000_000)
    populate(good, tmp_path)
    database.chmod(0o644)
    (tmp_path / "clinic.parquet").unlink()
    found = findings(good)
    for word in ("is secret", "data set clinic", "MB are free"):
        assert marks(found, word) == ["wrong"], word
    assert all(sentence.endswith((".", "?")) and "\n" not in sentence for _, sentence in found)
    file = written(tmp_path, f'metrics_token = "{TOKEN}"', 0o644)
    assert marks(findings(good, file), "everybody can read") == ["wrong"]
    bad = CliRunner().invoke(commands, ["serve", "check", "--database", f"sqlite:///{database}"])
    assert bad.exit_code == 2
    assert findings(quick(f"sqlite:///{tmp_path}/no/x.db", tmp_path))[-1][0] == "wrong"
    assert marks(findings(quick("postgresql://anna:hush@127.0.0.1:1/base", tmp_path)), "does not answer") == ["wrong"]
    assert "hush" not in str(findings(quick("postgresql://anna:hush@127.0.0.1:1/base", tmp_path)))


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("observed")
    settings = quick(f"sqlite:///{folder}/service.db", folder, metrics_token=TOKEN)
    tokens = populate(settings, folder)
    made = create_app(settings)
    with TestClient(made) as client:
        yield Site(settings, client, made.state.service, tokens)


def test_every_answer_has_an_id_and_a_line_without_data(observed, caplog):
    with caplog.at_level(logging.INFO, "discreet.serve"):
        answer = observed.post(
            "/api/v1/datasets/clinic/requests?secret=4711", {"kind": "difference-in-means", "epsilon": 0.3}
        )
        observed.get("/nowhere/hush")
    lines = [record for record in caplog.records if record.getMessage() == "answer"]
    facts = lines[0].facts
    assert (facts["method"], facts["status"], facts["by"]) == ("POST", 202, "analyst")
    assert (facts["route"], facts["dataset"]) == ("/api/v1/datasets/{dataset}/requests", "clinic")
    written_ = " ".join(logs.JsonLines().format(record) for record in caplog.records)
    assert not re.search(r"4711|hush|\b0\.3\b|discreet_", written_)
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
    job = answer.json()["job"]
    with caplog.at_level(logging.INFO, "discreet.serve"):
        observed.wait(job)
    assert lines[-1].facts["route"] == "(none)"


def test_a_line_of_the_log_is_json_with_the_ids_and_never_what_an_exception_says():
    about, of_job = logs.request_id.set("abc"), logs.job_id.set("def")
    try:
        try:
            json.loads("record 17 says 42")
        except ValueError as error:
            line = logs.JsonLines().format(
                logging.LogRecord("uvicorn.error", 40, "", 1, "failed", (), (type(error), error, None))
            )
            own = logs.kind_and_place(error)
            foreign = logging.LogRecord("duckdb", 30, "", 1, f"{error} record 17", (), None)
    finally:
        logs.request_id.reset(about)
        logs.job_id.reset(of_job)
    plain = json.loads(line)
    assert (plain["request"], plain["job"], plain["error"]) == ("abc", "def", "JSONDecodeError")
    assert (plain["level"], plain["event"]) == ("error", "failed")
    assert "17" not in json.dumps([plain["event"], own, logs.JsonLines().format(foreign).split('"event"')[1]])
    assert own["error"] == "JSONDecodeError"


def test_metrics_are_for_whoever_has_their_token(observed):
    for headers in ({}, observed.headers("curator"), {"Authorization": "Bearer wrong"}, {"Authorization": ""}):
        assert observed.client.get("/metrics", headers=headers).status_code == 404
    observed.released(epsilon=0.31)
    text = observed.client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    found = dict(re.findall(r"^([a-z_]+(?:\{.*\})?) ([\d.e+-]+)$", text, re.M))
    assert float(found['discreet_requests{state="done"}']) >= 1
    assert float(found['discreet_requests{state="queued"}']) == 0
    assert float(found["discreet_ledger_lines"]) == observed.service.ledger.head.seq
    assert float(found["discreet_disk_free_bytes"]) > 0
    route = 'route="/api/v1/datasets/{dataset}/requests"'
    assert any(name.startswith("discreet_answers_total{") and route in name for name in found)
    # Names of people, data sets and releases are in no label.
    assert not re.search(r'="(analyst|colleague|curator)"|clinic|0\.31', text)


def test_without_a_token_in_the_configuration_nobody_reads_metrics(site):
    assert site.client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404
    assert site.client.get("/metrics").status_code == 404


def test_processes_of_one_service_count_together(tmp_path):
    environment = {}
    metrics.share(environment)
    (folder,) = environment.values()
    assert Path(folder).is_dir()
    code = (
        "import os\nfrom discreet.serve.operations import metrics\n"
        "metrics.answers.labels('GET', '/health', '200').inc()\n"
        "from prometheus_client import CollectorRegistry, generate_latest\n"
        "from prometheus_client.multiprocess import MultiProcessCollector\n"
        "r = CollectorRegistry(); MultiProcessCollector(r); print(generate_latest(r).decode())\n"
    )
    import subprocess

    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
        )
    assert 'discreet_answers_total{method="GET",route="/health",status="200"} 2.0' in done.stdout


def test_readiness_says_what_is_missing(tmp_path):
    settings = quick(f"sqlite:///{tmp_path}/service.db", tmp_path, work=False)
    populate(settings, tmp_path)
    made = create_app(settings)
    with TestClient(made) as client:
        readiness = made.state.readiness
        assert client.get("/health").json() == {"status": "ok"}
        answer = client.get("/ready")
        assert (answer.status_code, answer.json()["ready"], answer.json()["workers"]) == (200, True, False)
        for missing, change in {
            "data": lambda patch: patch.setattr(Path, "is_dir", lambda _: False),
            "disk": lambda patch: patch.setattr("discreet.serve.operations.fleet.free_megabytes", lambda _: 1),
            "ledger": lambda patch: patch.setattr("discreet.ledger.ledger.Ledger.head", property(_down)),
        }.items():
            with pytest.MonkeyPatch.context() as patch:
                change(patch)
                readiness._at = -10.0
                answer = client.get("/ready")
            assert (answer.status_code, answer.json()["ready"], answer.json()[missing]) == (503, False, False)
        readiness._at = -10.0
        assert client.get("/ready").status_code == 200


def _down(_):
    raise LedgerUnavailable("down")


def test_a_ledger_that_does_not_answer_is_a_503_and_not_a_mistake_of_the_analyst(observed, monkeypatch):
    monkeypatch.setattr(Service, "ledger", property(_down), raising=False)
    answer = observed.ask(epsilon=0.4)
    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
