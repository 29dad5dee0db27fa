"""Nobody gets in without a token in force, and nobody gets further than it allows."""

import asyncio
import os
import re
import stat
import time

import pytest
import sqlalchemy as sa
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from discreet.exceptions import InvalidInput
from discreet.serve.app import ROUTERS, create_app
from discreet.serve.domain import users as people
from discreet.serve.middleware import AccessChecks
from discreet.serve.rate_limits import Buckets, Turns
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.storage.clock import Clock
from discreet.serve.storage.schema import connect, facts, tokens
from tests.serve.conftest import quick

OPEN = {"/health", "/ready", "/login", "/sign-in", "/sign-in/callback"}
# What anybody reads: here there is no such link, and no such page.
FOR_ANYBODY = {"/public/{link}", "/public/{link}/release.json", "/public/{link}/release.png"}
FOR_ANYBODY |= {"/proofs/{name}", "/evidence/{name}"}
LISTS_FOR_ANYBODY = {"/proofs", "/evidence"}


def routes(app):
    """All paths and methods, with something in place of their parameters."""
    # The description, static files, and one entry for each router: there is no other way in.
    assert len(app.routes) == 2 + len(ROUTERS)
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            for method in sorted(route.methods):
                yield route.path, method, re.sub(r"\{[^}]+\}", "1", route.path)


def test_no_route_answers_without_authentication(site):
    site.client.cookies.clear()
    seen = 0
    for path, method, filled in [*routes(site.client.app), ("/api/openapi.json", "GET", "/api/openapi.json")]:
        for headers in ({}, {"Authorization": "Bearer discreet_0_0"}, {"Cookie": "discreet=made-up"}):
            answer = site.client.request(method, filled, headers=headers, follow_redirects=False)
            if path in OPEN:
                # There is no institution to sign in by.
                assert answer.status_code in ((404,) if "/sign-in" in path else (200, 403)), path
                continue
            if path in FOR_ANYBODY | LISTS_FOR_ANYBODY:
                assert answer.status_code == (200 if path in LISTS_FOR_ANYBODY else 404), path
                continue
            seen += 1
            if filled.startswith("/api"):
                assert answer.status_code == 401, (method, path)
                assert set(answer.json()) == {"error", "text", "where"}
            else:
                assert answer.status_code == 303, (method, path)
                assert answer.headers["location"].startswith("/login")
    assert seen > 150
    assert site.client.get("/static/style.css").status_code == 200


def test_a_path_that_does_not_exist_is_closed_as_well(site):
    assert site.client.get("/api/v1/elsewhere").status_code == 401
    assert site.get("/api/v1/elsewhere").json()["error"] == "nothing-here"


@pytest.mark.parametrize(
    "token", ["", "discreet", "discreet_1_2", "discreet_%_x", "discreet_' OR 1=1 --_x", "x" * 5000, "dïscreet_1_2"]
)
def test_a_token_that_is_not_one_is_refused(site, token):
    answer = site.client.get("/api/v1/me", headers={"Authorization": f"Bearer {token}".encode()})
    assert answer.status_code == 401


def test_the_end_of_another_token_does_not_fit(site):
    mine, other = site.tokens["analyst"].split("_", 2), site.tokens["colleague"].split("_", 2)
    mixed = f"discreet_{mine[1]}_{other[2]}"
    assert site.client.get("/api/v1/me", headers={"Authorization": f"Bearer {mixed}"}).status_code == 401


def test_tokens_are_kept_as_digests_only(site):
    with site.service.engine.begin() as connection:
        rows = connection.execute(sa.select(tokens)).mappings().all()
    text = str(rows)
    for token in site.tokens.values():
        assert token.split("_", 2)[2] not in text
    assert all(len(row["digest"]) == 64 for row in rows)


def test_an_expired_token_stays_expired_when_the_clock_goes_back(site, tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/clock.db")
    time_ = [1_000_000.0]
    clock = Clock(engine, wall=lambda: time_[0])
    people.add_person(engine, clock, person="ada", name="A", role="analyst")
    token = people.add_token(engine, clock, person="ada", days=1.0)
    assert people.by_token(engine, clock, token).person == "ada"
    time_[0] += 90_000.0
    assert people.by_token(engine, clock, token) is None
    time_[0] -= 90_000.0
    assert people.by_token(engine, clock, token) is None
    # Another process reads the latest time from the database.
    assert people.by_token(engine, Clock(engine, wall=lambda: time_[0]), token) is None


def test_a_revoked_token_and_its_sessions_end_at_once(site):
    token = people.add_token(site.service.engine, site.service.clock, person="analyst", label="to be revoked")
    headers = {"Authorization": f"Bearer {token}"}
    assert site.client.get("/api/v1/me", headers=headers).status_code == 200
    client = TestClient(site.client.app)
    csrf = client.get("/login").text.split('name="csrf" value="')[1].split('"')[0]
    client.post("/login", data={"csrf": csrf, "token": token})
    assert client.get("/datasets", follow_redirects=False).status_code == 200
    assert site.client.delete(f"/api/v1/curator/tokens/{token.split('_')[1]}", headers=site.headers("curator")).json()
    assert site.client.get("/api/v1/me", headers=headers).status_code == 401
    assert client.get("/datasets", follow_redirects=False).status_code == 303


def test_scopes_limit_what_a_token_may_do(site):
    add, clock = people.add_token, site.service.clock
    reader = add(site.service.engine, clock, person="analyst", scopes=frozenset({"read"}))
    spender = add(site.service.engine, clock, person="analyst", scopes=frozenset({"request"}))
    asked = {"kind": "ate", "epsilon": 0.1, "delta": 1e-7}

    def answer(token, method, path, json=None):
        return site.client.request(method, path, json=json, headers={"Authorization": f"Bearer {token}"}).status_code

    assert answer(reader, "GET", "/api/v1/datasets") == 200
    assert answer(reader, "POST", "/api/v1/datasets/clinic/requests", asked) == 403
    assert answer(spender, "GET", "/api/v1/datasets") == 403
    with pytest.raises(InvalidInput, match="scopes"):
        add(site.service.engine, clock, person="analyst", scopes=frozenset({"curate"}))


def test_analysts_do_not_reach_what_is_for_curators(site):
    for path, method, filled in routes(site.client.app):
        if "/curator" in path:
            answer = site.client.request(method, filled, headers=site.headers("analyst"), follow_redirects=False)
            assert answer.status_code in (403, 422), (method, path)
            assert answer.status_code == 403 or method in ("POST", "PUT")


def test_a_session_cookie_is_not_for_scripts_or_other_sites(site):
    client = TestClient(site.client.app)
    csrf = client.get("/login").text.split('name="csrf" value="')[1].split('"')[0]
    answer = client.post("/login", data={"csrf": csrf, "token": site.tokens["analyst"]}, follow_redirects=False)
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith("discreet="))
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie


def test_cookies_are_secure_where_people_come_by_https(site, tmp_path):
    settings = quick(site.settings.database, site.settings.data, https=True, work=False)
    client = TestClient(create_app(settings), base_url="https://testserver")
    csrf = client.get("/login").text.split('name="csrf" value="')[1].split('"')[0]
    answer = client.post("/login", data={"csrf": csrf, "token": site.tokens["analyst"]}, follow_redirects=False)
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith("__Host-discreet="))
    assert "Secure" in cookie
    assert "Path=/" in cookie
    assert "max-age" in answer.headers["strict-transport-security"]


def test_every_form_needs_the_token_of_its_session(site):
    client, csrf = site.sign_in("curator")
    for path, method, filled in routes(site.client.app):
        if method in ("GET", "HEAD") or path == "/login":
            continue
        for data in ({}, {"csrf": "wrong"}, {"csrf": csrf + "x"}):
            answer = client.request(method, filled, data=data, follow_redirects=False)
            assert answer.status_code == 403, (method, path)
        answer = client.request(method, filled, headers={"X-CSRF-Token": "wrong"}, json={}, follow_redirects=False)
        assert answer.status_code == 403
    assert client.get("/datasets", follow_redirects=False).status_code == 200
    assert client.post("/logout", data={"csrf": csrf}, follow_redirects=False).status_code == 303
    assert client.get("/datasets", follow_redirects=False).status_code == 303


def test_requests_from_other_sites_are_refused(site):
    for where in ("cross-site", "same-site"):
        headers = site.headers("analyst") | {"Sec-Fetch-Site": where}
        assert site.client.post("/api/v1/datasets/clinic/plan", json={}, headers=headers).status_code == 403


def test_the_login_form_itself_cannot_be_forged(site):
    client = TestClient(site.client.app)
    answer = client.post("/login", data={"csrf": "x", "token": site.tokens["analyst"]}, follow_redirects=False)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil", "/x\r\nSet-Cookie: a=b", "javascript:alert(1)", ""]
)
def test_signing_in_leads_nowhere_else(site, target):
    client = TestClient(site.client.app)
    csrf = client.get("/login", params={"next": target}).text.split('name="csrf" value="')[1].split('"')[0]
    answer = client.post(
        "/login", data={"csrf": csrf, "token": site.tokens["analyst"], "next": target}, follow_redirects=False
    )
    assert answer.headers["location"] == "/"
    assert "a=b" not in str(answer.headers)


@pytest.mark.parametrize(
    "name",
    [
        "' OR '1'='1",
        "clinic'; DROP TABLE serve_people; --",
        'clinic" OR ""="',
        "%25",
        "..%2f..%2fetc%2fpasswd",
        "clinic%00",
    ],
)
def test_names_are_never_read_as_sql_or_paths(site, name):
    for path in (
        "/api/v1/datasets/{}",
        "/api/v1/requests/{}",
        "/api/v1/releases/{}",
        "/datasets/{}",
        "/releases/{}/release.json",
    ):
        assert site.get(path.format(name)).status_code == 404
    assert site.get("/api/v1/datasets").status_code == 200


@pytest.mark.parametrize(
    "path", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "//etc/passwd", "....//app.py", "..\\app.py"]
)
def test_static_files_do_not_lead_out_of_their_directory(site, path):
    answer = site.client.get(f"/static/{path}", follow_redirects=False)
    assert answer.status_code in (303, 404)
    assert "create_app" not in answer.text


def test_every_answer_has_security_headers(site):
    for answer in (
        site.client.get("/login"),
        site.client.get("/static/app.js"),
        site.get("/api/v1/me"),
        site.get("/nowhere"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
    assert site.get("/api/v1/me").headers["cache-control"] == "no-store"


def test_pages_hold_neither_scripts_nor_styles_of_their_own(site):
    for path in ("/datasets", "/datasets/clinic", "/datasets/clinic/plan", "/audit", "/interface", "/releases"):
        text = site.get(path).text
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|<style", text), path
        assert "http://" not in text.replace("http://www.w3.org/", "")
        assert "https://" not in text


def test_too_many_requests_are_refused(site):
    settings = quick(site.settings.database, site.settings.data, logins=3, spends=3, asks=5, work=False)
    client = TestClient(create_app(settings))
    headers = site.headers("analyst")
    found = [client.get("/api/v1/me", headers=headers).status_code for _ in range(12)]
    assert found[:5] == [200] * 5
    assert 429 in found
    found = [client.post("/api/v1/requests/none/stop", headers=headers).status_code for _ in range(6)]
    assert found.count(429) == 3
    assert [client.post("/login").status_code for _ in range(5)].count(429) == 2
    # Others are not kept waiting.
    assert client.get("/api/v1/me", headers=site.headers("colleague")).status_code == 200


def test_buckets_fill_again():
    now = [0.0]
    buckets = Buckets(rate=2.0, size=2.0, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(3)] == [True, True, False]
    now[0] = 0.5
    assert [buckets.take("a"), buckets.take("a"), buckets.take("b")] == [True, False, True]


def test_bodies_that_are_too_large_are_refused(site):
    rows = {"rows": [{"age": 1.0}] * 40_000}
    assert site.post("/api/v1/releases/none/effects", rows).json()["error"] == "too-large"

    def pieces():
        for _ in range(40):
            yield b"x" * 10_000

    answer = site.client.post("/api/v1/datasets/clinic/plan", content=pieces(), headers=site.headers("analyst"))
    assert answer.status_code == 413


def knock(site, path, body, headers=(), **settings):
    """Status of the answer to a request whose body comes in these parts, and how much of the body was read."""
    app = create_app(quick(site.settings.database, site.settings.data, work=False, **settings))
    raw = [(name.lower().encode(), value.encode()) for name, value in dict(headers).items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": raw, "query_string": b"", "http_version": "1.1"}
    scope |= {"scheme": "http", "server": ("testserver", 80), "client": ("testclient", 1), "root_path": ""}
    sent, reads = [], [0]

    async def receive():
        reads[0] += 1
        return await body(reads[0])

    async def send(message):
        sent.append(message)

    async def one():
        await app(scope, receive, send)

    asyncio.run(one())
    return sent[0]["status"], reads[0], dict(sent[0]["headers"])


async def endless(_):
    return {"type": "http.request", "body": b"x" * 1_000, "more_body": True}


async def never(_):
    await asyncio.sleep(60)


@pytest.mark.parametrize("path", ["/api/v1/datasets/clinic/plan", "/releases/x/upload", "/elsewhere", "/static/upload"])
def test_nothing_is_read_from_those_who_are_nobody(site, path):
    for headers in ({}, {"Authorization": "Bearer discreet_0_0"}):
        status, reads, answered = knock(site, path, endless, headers)
        assert (status in (303, 401, 405), reads) == (True, 0)
        if not path.startswith("/static"):
            assert answered[b"connection"] == b"close"


def test_nothing_is_read_of_more_requests_than_one_may_send(site):
    assert knock(site, "/login", endless, logins=0)[:2] == (429, 0)
    assert knock(site, "/releases/x/upload", endless, site.headers("analyst"), asks=0)[:2] == (429, 0)


@pytest.mark.parametrize("path", ["/login", "/api/v1/datasets/clinic/plan", "/api/v1/releases/x/effects"])
def test_a_body_has_to_arrive_in_time(site, path):
    started = time.perf_counter()
    status, _, answered = knock(site, path, never, site.headers("analyst"), body_seconds=0.2)
    assert (status, answered[b"connection"]) == (408, b"close")
    assert time.perf_counter() - started < 10


def test_only_the_address_for_files_takes_files(site):
    limits = {"body_limit": 5_000, "upload_limit": 50_000}
    for path, most in (
        ("/releases/x/upload", 50),
        ("/api/v1/releases/x/upload", 5),
        ("/curator/datasets/x/upload", 5),
        ("/upload", 5),
        ("/releases/x/y/upload", 5),
    ):
        status, reads, _ = knock(site, path, endless, site.headers("curator"), **limits)
        assert (status, reads) == (413, most + 1), path


def test_a_token_that_is_too_long_is_not_remembered(site):
    door = site.client.app.middleware_stack
    while not isinstance(door, AccessChecks):
        door = door.app
    before = len(door._known)
    for header in ({"Authorization": "Bearer " + "x" * 201}, {"Cookie": "discreet=" + "x" * 201}):
        assert site.client.get("/api/v1/me", headers=header).status_code == 401
    assert len(door._known) <= before
    assert site.client.get("/api/v1/me", headers={"Authorization": "Bearer " + "x" * 200}).status_code == 401
    assert len(door._known) > 0
    assert max(len(value) for _, value in door._known) <= 200


def test_malformed_json_is_refused_in_fixed_words(site):
    for body in (b"{", b"\xff\xfe", b"[" * 5000, b'{"epsilon": NaN}', b'{"epsilon": 1e999}', b""):
        answer = site.client.post(
            "/api/v1/datasets/clinic/plan",
            content=body,
            headers=site.headers("analyst") | {"content-type": "application/json"},
        )
        assert answer.status_code == 422, body
        assert answer.json()["error"] == "malformed"


def test_a_database_of_a_newer_version_is_refused(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/newer.db")
    with engine.begin() as connection:
        connection.execute(sa.update(facts).where(facts.c.name == "version").values(value="99"))
    with pytest.raises(InvalidInput, match="newer"):
        connect(f"sqlite:///{tmp_path}/newer.db")


def test_the_database_is_for_its_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        service = Service.of(quick(f"sqlite:///{tmp_path}/service.db", tmp_path))
        people.add_person(service.engine, service.clock, person="ada", name="A", role="analyst")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        service.close()
    finally:
        os.umask(before)
    assert {"service.db", "service.db-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize(
    "url", ["mysql://x/y", "file.db", "sqlite:////no/such/place/x.db", "postgresql://127.0.0.1:1/x"]
)
def test_a_database_that_cannot_be_opened_is_refused_in_one_sentence(url):
    with pytest.raises(InvalidInput, match="--database"):
        connect(Settings(database=url).database)


def test_unexpected_errors_say_nothing(site, monkeypatch, caplog):
    secret = "record 17 says 42"

    def broken(*_):
        raise RuntimeError(secret)

    monkeypatch.setattr("discreet.serve.domain.datasets.paged", broken)
    answer = site.get("/api/v1/datasets")
    assert answer.status_code == 500
    assert answer.json()["error"] == "unexpected"
    assert secret not in answer.text + caplog.text
    assert "RuntimeError" in caplog.text


def test_signing_in_takes_as_long_with_a_wrong_token(site):
    """Answers to forms leave on a grid, so that nothing shows what they took."""
    settings = quick(site.settings.database, site.settings.data, grid=0.08, work=False)
    client = TestClient(create_app(settings))
    for token in ("nonsense", site.tokens["analyst"]):
        csrf = client.get("/login").text.split('name="csrf" value="')[1].split('"')[0]
        started = time.perf_counter()
        client.post("/login", data={"csrf": csrf, "token": token}, follow_redirects=False)
        assert time.perf_counter() - started >= 0.08


def test_what_one_person_asks_for_at_once_does_not_keep_others_waiting():
    """Turns are by person: further requests of one wait until an earlier one has ended, and nobody else does."""
    turns, order = Turns(2), []

    async def ask(key, name, ends):
        async with turns.one(key):
            order.append(name)
            await ends.wait()

    async def run():
        ends = asyncio.Event()
        tasks = [asyncio.create_task(ask("analyst", k, ends)) for k in range(4)]
        tasks.append(asyncio.create_task(ask("colleague", "other", ends)))
        await asyncio.sleep(0.01)
        assert order == [0, 1, "other"]
        cut = asyncio.create_task(ask("analyst", "cut off", ends))
        await asyncio.sleep(0)
        cut.cancel()
        ends.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert order == [0, 1, "other", 2, 3]
    assert turns._of == {}
