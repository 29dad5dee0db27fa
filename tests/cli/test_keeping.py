"""What was paid for is kept, whatever happens to files, pipes and terminals afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dc
from discreet.estimators import ate as ate_module
from discreet.releases.average import Release
from tests.cli.helpers import ESTIMATE, refused, run

ARGUMENTS = ["ate", "study.csv", *ESTIMATE]


def started(*arguments, **more):
    """The command in a process of its own."""
    source = Path(dc.__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": str(source), **more}
    return subprocess.Popen(
        [sys.executable, "-m", "discreet", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_spent(here, monkeypatch, option):
    monkeypatch.setattr(ate_module.ATE, "fit_table", lambda *_, **__: pytest.fail("the budget was spent"))
    refused(run("ate", "study.csv", *ESTIMATE, option, "nowhere/it.json"), "in a directory that exists")
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    refused(run("ate", "study.csv", *ESTIMATE, option, "it.json"), "you have no right to; name another file")


def test_a_release_that_cannot_be_written_is_kept_elsewhere_and_its_place_told(here, monkeypatch):
    save = Release.save

    def full(release, path):
        if str(path) == "release.json":
            Path(path).write_text("{")
            raise OSError("no space left on device")
        save(release, path)

    monkeypatch.setattr(Release, "save", full)
    result = run(*ARGUMENTS, "--out", "release.json")
    assert result.exit_code == 2
    assert "estimate" in result.stdout
    (kept,) = here.glob("release-*.json")
    assert f"kept in {kept}" in result.stderr
    assert not (here / "release.json").exists()
    assert dc.load(kept).guarantee.status == "proved"


@pytest.mark.parametrize("out", [[], ["--out", "release.json"]])
def test_a_page_that_cannot_be_written_costs_no_release(here, monkeypatch, out):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr("discreet.releases.report.save_page", full)
    result = run(*ARGUMENTS, "--report", "page.html", *out)
    assert result.exit_code == 2
    assert "'page.html' cannot be written" in result.stderr
    (kept,) = here.glob("release*.json")
    assert dc.load(kept).guarantee.epsilon == 5
    assert ("kept in" in result.stderr) == (not out)


def test_where_no_file_can_be_written_the_release_is_printed(here, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(Release, "save", full)
    result = run(*ARGUMENTS, "--out", "release.json")
    assert '"format": "discreet-release"' in result.stderr
    assert "the line above" in result.stderr
    assert not list(here.glob("release*"))


@pytest.mark.parametrize("out", [[], ["--out", "release.json"]])
def test_a_reader_who_has_gone_costs_no_release(here, out):
    running = started(*ARGUMENTS, *out)
    running.stdout.close()
    said = running.stderr.read().decode()
    # Rich ends such a command with 1, and ours with 0.
    assert running.wait() in (0, 1), said
    running.stderr.close()
    (kept,) = here.glob("release*.json")
    assert dc.load(kept).guarantee.epsilon == 5
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert ("kept in" in said) == (not out)


def test_a_terminal_without_colours_or_letters_shows_the_result(here):
    running = started(*ARGUMENTS, PYTHONIOENCODING="ascii", NO_COLOR="1", TERM="dumb")
    out, said = running.communicate()
    assert running.returncode == 0, said
    assert b"estimate" in out
    assert b"\x1b" not in out
