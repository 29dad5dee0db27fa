"""The command that starts the service."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.serve.domain import users as people
from discreet.serve.service import Service
from discreet.serve.settings import Settings


def run(*args):
    return CliRunner().invoke(app, ["serve", *args])


def test_a_first_curator_gets_a_token_from_the_command_line(tmp_path):
    database = f"sqlite:///{tmp_path}/service.db"
    answer = run("--database", database, "--curator", "ada")
    assert answer.exit_code == 0
    service = Service.of(Settings(database=database))
    identity = people.by_token(service.engine, service.clock, answer.output.strip())
    assert (identity.person, identity.curator) == ("ada", True)
    people.add_person(service.engine, service.clock, person="bob", name="Bob", role="analyst")
    refused = run("--database", database, "--curator", "bob")
    assert refused.exit_code == 2
    assert "analyst" in refused.output
    service.close()


def test_an_address_with_a_password_need_not_be_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_DATABASE", f"sqlite:///{tmp_path}/hidden.db")
    monkeypatch.chdir(tmp_path)
    assert run("--curator", "ada").exit_code == 0
    assert [path.name for path in tmp_path.glob("*.db")] == ["hidden.db"]


def test_a_demonstration_leaves_the_database_of_the_environment_alone(tmp_path, monkeypatch):
    """Its tokens are printed: they must not open a service that is meant seriously."""
    seen = []
    monkeypatch.setenv("DISCREET_DATABASE", f"sqlite:///{tmp_path}/serious.db")
    monkeypatch.setattr("discreet.serve.demo.prepare", lambda settings: seen.append(settings) or {"analyst": "t"})
    monkeypatch.setattr("discreet.cli.serve.run", lambda *_: None)
    assert run("--demo").exit_code == 0
    assert "serious" not in seen[0].database
    assert not (tmp_path / "serious.db").exists()


@pytest.mark.parametrize("url", ["mysql://somewhere/base", "sqlite:////no/such/place/service.db"])
def test_a_database_that_cannot_be_used_is_refused_in_one_sentence(url):
    answer = run("--database", url)
    assert answer.exit_code == 2
    assert answer.output.startswith("discreet: --database")
    assert answer.output.count("\n") == 1


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    answer = run()
    assert answer.exit_code == 2
    assert "discreet[serve]" in answer.output


def test_the_demonstration_prints_addresses_and_tokens_that_work(tmp_path):
    command = [sys.executable, "-u", "-m", "discreet", "serve", "--demo", "--port", str(_free_port())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)})
    try:
        lines = []
        while not any(line.startswith("  Authorization") for line in lines):
            lines.append(process.stdout.readline())
            assert lines[-1], lines
        text = "".join(lines)
        tokens = re.findall(r"(discreet_\w+_[\w-]+)", text)
        assert len(set(tokens)) == 4
        address = re.search(r"(http://\S+)/api/v1/datasets", text).group(1)
        request = urllib.request.Request(
            f"{address}/api/v1/datasets", headers={"Authorization": f"Bearer {tokens[-1]}"}
        )
        for _ in range(200):
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    assert b"clinic-stays" in answer.read()
                    break
            except OSError:
                time.sleep(0.1)
        else:
            raise AssertionError("the demonstration did not start")
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
