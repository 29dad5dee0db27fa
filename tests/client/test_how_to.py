"""What the page about the client shows runs, over a network, against the demonstration's service."""

import re

import pytest

from discreet.serve import demo
from discreet.serve.settings import Settings
from evidence.service.site import Server
from tests.test_documentation import ROOT

PAGE = ROOT / "docs" / "how-to" / "ask-a-service.md"


@pytest.fixture
def server(tmp_path):
    settings = Settings(database=f"sqlite:///{tmp_path}/service.db", data=str(tmp_path), first_tick=0.1)
    made = Server(settings, demo.prepare(settings, n=3_000))
    yield made
    made.end()


def test_the_page_runs_against_the_demonstration(server, monkeypatch, capsys):
    monkeypatch.setenv("DISCREET_TOKEN", server.tokens["analyst"])
    source = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    source = source.replace("https://discreet.example.org", f"http://127.0.0.1:{server.port}")
    exec(compile(source, PAGE.name, "exec"), {"__name__": "documentation"})
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("clinic-stays days 3000 ('ate'")
    assert shown[-1] == "True"
    assert any("This would spend more than is left" in line for line in shown)
