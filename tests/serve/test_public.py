"""Releases behind a link for anybody, beside each other, and the pages that they rest on."""

import hashlib
import re
import tomllib
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from discreet.ledger.governance.search import LogFilter
from discreet.releases.average import Release
from discreet.serve.app import create_app
from discreet.serve.pages.documents import HOME
from tests.serve.test_pages import post
from tests.test_layers import ROOT


@pytest.fixture
def anybody(site):
    return TestClient(site.client.app, base_url="http://testserver")


def shown(site, name):
    """The link under which a curator shows a release."""
    client, csrf = site.sign_in("curator")
    assert post(client, csrf, f"/releases/{name}/public").status_code == 303
    return re.search(r'href="(/public/[^"]+)"', client.get(f"/releases/{name}").text)[1]


def test_anybody_reads_a_release_that_a_curator_shows_until_it_is_withdrawn(site, anybody):
    name = site.released(kind="ate", epsilon=1.3)
    link = shown(site, name)
    assert shown(site, name) == link
    page = anybody.get(link)
    assert page.status_code == 200
    assert "The analyst" not in page.text
    assert "Sign out" not in page.text
    assert "What is promised, and to whom" in page.text
    assert Release.from_dict(anybody.get(f"{link}/release.json").json()).guarantee.epsilon == 1.3
    assert anybody.get(f"{link}/release.png").content[:4] == b"\x89PNG"
    client, csrf = site.sign_in("second")
    assert post(client, csrf, f"/releases/{name}/withdraw").status_code == 303
    for path in (link, f"{link}/release.json", f"{link}/release.png"):
        assert anybody.get(path).status_code == 404
    assert shown(site, name) != link


def test_only_curators_show_releases_and_the_log_says_who_did(site, anybody):
    name = site.released(kind="ate", epsilon=1.31)
    client, csrf = site.sign_in("analyst")
    for action in ("public", "withdraw"):
        assert post(client, csrf, f"/releases/{name}/{action}").status_code == 403
        assert anybody.post(f"/releases/{name}/{action}", follow_redirects=False).headers["location"] == "/login"
    shown(site, name)
    shown(site, name)
    client, csrf = site.sign_in("second")
    for _ in range(2):
        post(client, csrf, f"/releases/{name}/withdraw")
    ours = [
        (entry.body["event"], entry.actor, entry.dataset)
        for what in ("release public", "release withdrawn")
        for entry in site.service.ledger.search(LogFilter(what=what), newest=False)
        if entry.body["release"] == name
    ]
    assert ours == [("release public", "curator", "clinic"), ("release withdrawn", "second", "clinic")]
    assert "second took a release of clinic back from the public." in client.get("/curator/log").text


def test_no_other_address_opens_without_signing_in(site, anybody):
    name = site.released(kind="ate", epsilon=1.32)
    link = shown(site, name)
    for path in (
        f"/releases/{name}",
        f"{link}/explore",
        f"{link}/../../datasets",
        "/public",
        "/compare",
        "/datasets",
        "/api/v1/datasets",
    ):
        assert anybody.get(path, follow_redirects=False).status_code in (303, 401), path
    assert anybody.get("/public/nothing").status_code == 404
    assert anybody.post(link, follow_redirects=False).status_code == 303
    assert "Nothing is shown" in anybody.get("/public/nothing").text


def test_releases_stand_beside_each_other_on_one_axis_where_they_measure_the_same(site):
    names = [site.released(kind="ate", epsilon=e) for e in (1.33, 2.34)]
    means = site.released(kind="difference-in-means", epsilon=2.0)
    both = site.get(f"/compare?release={names[0]}&release={names[1]}").text
    assert both.count('class="card forest"') == 1
    assert "They answer the same question" in both
    assert "1.33" in both
    assert "2.34" in both
    three = site.get("/compare?" + "&".join(f"release={name}" for name in (*names, means))).text
    assert "Not comparable as they are" in three
    for bad in ("", f"release={names[0]}", "&".join(f"release={names[0]}{k}" for k in range(9))):
        assert site.get(f"/compare?{bad}").status_code in (422, 404)
    assert site.get(f"/compare?release={names[0]}&release=nothing").status_code == 404
    assert site.get(f"/compare?release={names[0]}&release={names[1]}", "colleague").status_code == 404


def test_proofs_that_releases_name_are_pages_that_anybody_can_read(site, anybody):
    name = site.released(kind="ate", epsilon=1.3)
    links = set(re.findall(r'href="(/(?:proofs|evidence)/[^"]+)"', site.get(f"/releases/{name}").text))
    assert {"/proofs/ate", "/evidence/audit"} <= links
    for link in links:
        assert anybody.get(link).status_code == 200, link
    for kind in ("proofs", "evidence"):
        listed = re.findall(rf'href="(/{kind}/[^"]+)"', anybody.get(f"/{kind}").text)
        assert len(listed) == len([path for path in (HOME / kind).glob("*.md") if path.stem != "index"])
        for link in listed:
            text = anybody.get(link).text
            assert "style=" not in text, link
            assert "<script>" not in text
            for further in re.findall(r'href="(/(?:proofs|evidence)/[^"#]+)', text):
                assert anybody.get(further).status_code == 200, (link, further)
    for bad in ("/proofs/nothing", "/proofs/..%2findex", "/proofs/ATE", "/evidence/" + "x" * 80):
        assert anybody.get(bad, follow_redirects=False).status_code in (303, 404), bad


def test_a_crowd_at_a_public_page_is_asked_to_wait(site):
    crowd = TestClient(create_app(replace(site.settings, readers=1.0)), base_url="http://testserver")
    answers = [crowd.get("/public/nothing").status_code for _ in range(60)]
    assert set(answers) == {404, 429}
    assert answers[:12] == [404] * 12


def test_what_is_not_ours_is_there_byte_for_byte_with_its_licence():
    static = ROOT / "src" / "discreet" / "serve" / "static"
    table = (static / "README.md").read_text()
    lines = re.findall(r"^\| `([\w.]+)` .*?`([\w.]+LICENSE\.txt)` \| `(\w{64})` \|", table, re.MULTILINE)
    assert {name for name, _, _ in lines} == {path.name for path in static.glob("*.min.*")}
    for name, licence, digest in lines:
        assert hashlib.sha256((static / name).read_bytes()).hexdigest() == digest, name
        assert (static / licence).is_file()


def test_a_wheel_has_the_proofs_and_every_page_of_evidence():
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for kind in ("proofs", "evidence"):
        assert f"/docs/{kind}/*.md" in built["include"]
        assert built["sources"][f"docs/{kind}"] == f"discreet/serve/documents/{kind}"
        assert list((ROOT / "docs" / kind).glob("*.md"))
