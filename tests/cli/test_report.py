"""The command that writes a page about a release."""

import json

from tests.cli.helpers import ESTIMATE, refused, run


def test_a_page_is_written_from_a_release_file(here):
    run("ate", "study.parquet", *ESTIMATE, "--out", "release.json")
    result = run("report", "release.json", "--out", "page.html", "--title", "My <study>")
    assert result.exit_code == 0
    assert "My &lt;study&gt;" in (here / "page.html").read_text()


def test_files_that_are_no_release_are_refused(here):
    (here / "other.json").write_text(json.dumps({"format": "other"}))
    refused(run("report", "other.json", "--out", "page.html"), "is not a release of discreet")
    refused(run("report", "nothing.json", "--out", "page.html"), "There is no release file")
