"""What deploy/ and the runbook say exists: commands, options, files, units."""

import ipaddress
import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch

import pytest
import typer
import yaml

from discreet.cli import app
from discreet.serve.operations import configuration
from discreet.serve.settings import Settings
from tests.house import ROOT

DEPLOY = ROOT / "deploy"
RUNBOOK = ROOT / "docs" / "how-to" / "operate-the-service.md"
UNITS = sorted((DEPLOY / "systemd").iterdir())


def parsed():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def commands_in(text):
    """Commands of discreet with their options, as sentences, units and shells have them."""
    yield from re.findall(r"(?:/opt/discreet/bin/)?\bdiscreet ((?:serve|worker|ledger)\b[^`\n\"']*)", text)


def known():
    root = typer.main.get_command(app)
    return root


def check_command(line):
    """Whether the command exists, and every option of it."""
    command, words = known(), line.split("#")[0].split()
    options = {name for each in command.params for name in each.opts}
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command = command.commands[words.pop(0)]
        options |= {name for each in command.params for name in each.opts}
    given = {word.rstrip(",.;)") for word in words if word.startswith("--")}
    assert given <= options, line
    return command


@pytest.mark.parametrize("path", [*UNITS, RUNBOOK, DEPLOY / "discreet.toml.example"], ids=lambda path: path.name)
def test_every_command_that_is_named_exists_with_its_options(path):
    for line in commands_in(path.read_text()):
        check_command(line)


def test_commands_that_do_not_exist_would_be_found():
    check_command("serve check --config x")
    with pytest.raises(AssertionError):
        check_command("serve check --no-such")


def test_the_runbook_names_commands_that_exist():
    names = set(re.findall(r"`discreet ((?:ledger|serve) [a-z]+)", RUNBOOK.read_text()))
    root = known()
    for name in names:
        group, command = name.split()
        assert command in root.commands[group].commands, name


def test_every_file_that_the_runbook_names_is_there():
    for name in re.findall(r"deploy/[\w./@-]*\w", RUNBOOK.read_text()):
        assert (ROOT / name).exists(), name


def test_every_metric_and_check_that_the_runbook_names_exists():
    text = RUNBOOK.read_text()
    source = (ROOT / "src" / "discreet" / "serve" / "operations" / "metrics.py").read_text()
    names = set(re.findall(r"`(discreet_[a-z_]+)", text))
    assert len(names) > 6
    for name in names:
        assert name.removesuffix("_total") in source, name


def test_the_example_is_a_configuration_and_explains_what_it_sets(tmp_path):
    file = DEPLOY / "discreet.toml.example"
    settings = configuration.read(file, {})
    assert settings.https
    assert set(tomllib.loads(file.read_text())) <= set(configuration.options())
    assert {name for name in tomllib.loads(file.read_text()) if getattr(settings, name) == getattr(Settings(), name)}


def test_the_compose_file_runs_the_service_without_root_and_without_writing():
    plain = parsed()
    for name in ("serve", "worker"):
        each = plain["services"][name]
        assert each["read_only"]
        assert each["user"].startswith("10001")
        assert each["cap_drop"] == ["ALL"]
        assert each["command"][0] == "discreet"
        check_command(" ".join(each["command"][1:]))
        for variable in each["environment"]:
            known_ = {f"DISCREET_{option.upper()}" for option in configuration.options()} | {"DISCREET_CONFIG"}
            assert not variable.startswith("DISCREET_") or variable in known_, variable
        # What was charged is ended before anything is killed.
        assert int(each["stop_grace_period"].removesuffix("m")) * 60 > Settings().fit_seconds
    # Nobody outside reaches the database, or the service but through the proxy.
    assert "ports" not in plain["services"]["serve"]
    assert plain["networks"]["inside"]["internal"]
    assert plain["services"]["database"]["networks"] == ["inside"]
    for secret in plain["secrets"].values():
        assert secret["file"].startswith("./secrets/")


def test_the_proxy_is_believed_and_the_provider_reached_where_there_is_one():
    plain = parsed()
    address = plain["services"]["proxy"]["networks"]["front"]["ipv4_address"]
    (front,) = plain["networks"]["front"]["ipam"]["config"]
    assert ipaddress.ip_address(address) in ipaddress.ip_network(front["subnet"])
    settings = configuration.read(DEPLOY / "discreet.toml.example", plain["services"]["serve"]["environment"])
    assert settings.proxies == (address,)
    assert configuration.read(DEPLOY / "discreet.toml.example", {}).proxies == ("127.0.0.1",)
    more = yaml.safe_load((DEPLOY / "compose.oidc.yaml").read_text())
    (way,) = set(more["services"]["serve"]["networks"]) - set(plain["services"]["serve"]["networks"])
    assert not (more["networks"][way] or {}).get("internal", False)


def test_the_example_has_the_settings_of_governance():
    plain = tomllib.loads((DEPLOY / "discreet.toml.example").read_text())
    assert {"curators", "anchor", "anchor_fails", "directories", "hosts"} <= set(plain)


def test_the_proxy_compresses_no_page():
    """Pages have a form's secret beside what somebody may have sent: compressed lengths would tell."""
    block = re.search(r"encode[^{\n]*\{(.*?)\n\t\}", (DEPLOY / "Caddyfile").read_text(), re.DOTALL)[1]
    types = re.findall(r"header Content-Type (\S+)", block)
    assert types
    assert not any(fnmatch("text/html; charset=utf-8", kind) for kind in types)


def test_units_wait_for_fits_and_run_without_root():
    services = [path for path in UNITS if path.suffix == ".service"]
    assert len(services) == 3
    for path in services:
        text = path.read_text()
        assert "User=discreet" in text
        assert "NoNewPrivileges=yes" in text
        if "backup" not in path.name:
            minutes = int(re.search(r"TimeoutStopSec=(\d+)min", text)[1])
            assert 60 * minutes > Settings().fit_seconds


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_the_units(path, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze: install Debian's package systemd")
    # The program need not be installed here.
    for unit in UNITS:
        (tmp_path / unit.name).write_text(
            re.sub(r"/opt/discreet/bin/discreet", shutil.which("true") or "/bin/true", unit.read_text())
        )
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / path.name)], capture_output=True, text=True, timeout=60
    )
    complaints = [line for line in done.stderr.splitlines() if path.name.split("@")[0] in line]
    assert complaints == []


def test_the_image_is_built_from_files_that_exist_and_runs_without_root():
    text = (DEPLOY / "Containerfile").read_text()
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for name in sources.split():
            assert (ROOT / name).exists(), name
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
    extras = re.search(r"/source\[([\w,]+)\]", text)[1].split(",")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) <= set(declared)
