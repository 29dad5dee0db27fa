"""People whom an institution signs in, by a provider's process: roles come and go with its groups."""

import base64
import json
import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from joserfc import jwk, jwt

from discreet.exceptions import InvalidInput
from discreet.ledger.governance.search import LogFilter
from discreet.serve.app import create_app
from discreet.serve.domain import users as people
from discreet.serve.errors import Refusal
from discreet.serve.institution import sign_in
from discreet.serve.institution.provider import Provider, check_settings
from discreet.serve.settings import Settings
from discreet.serve.storage.schema import people as accounts
from discreet.serve.storage.schema import sign_ins, visits
from tests.serve.conftest import quick

HERE = "http://localhost"
CLIENT = "discreet-service"


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    """A provider in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("provider") / "log").open("w")
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    environment = os.environ | {"AUTHLIB_INSECURE_TRANSPORT": "1"}
    process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx2.get(f"{address}/.well-known/openid-configuration")
                break
            except httpx2.TransportError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def settings_for(site, provider, **more):
    """The service's settings, with the institution."""
    facts = {"oidc_issuer": provider, "oidc_client": CLIENT, "oidc_secret": "s3cret", "address": HERE}
    facts |= {"oidc_curators": ("data-protection",), "oidc_analysts": ("research", "students"), "work": False}
    return quick(site.settings.database, site.settings.data, **(facts | more))


@pytest.fixture
def service(site, provider):
    """The application with an institution, and with what it checks as often as it is asked."""
    app = create_app(settings_for(site, provider, oidc_check=0.0))
    app.state.service.forget_identities()
    return app


def known(provider, sub, **claims):
    """Let the provider know somebody."""
    httpx2.put(f"{provider}/users/{sub}", json=claims).raise_for_status()


def browser(app):
    """Somebody's browser, whose cookies are kept."""
    return TestClient(app, base_url=HERE, follow_redirects=False)


def sent_back(client, sub, target=None):
    """The address to which the provider sends somebody back who signed in there."""
    begun = client.get("/sign-in", params={"next": target} if target else {})
    assert begun.status_code == 303, begun.text
    agreed = httpx2.post(begun.headers["location"], data={"sub": sub})
    assert agreed.status_code == 302, agreed.text
    return agreed.headers["location"]


def signed_in(app, provider, sub, groups, **claims):
    """A browser in which somebody has signed in, and the answer."""
    known(provider, sub, groups=groups, **claims)
    client = browser(app)
    return client, client.get(sent_back(client, sub).removeprefix(HERE))


def later(monkeypatch):
    """Forget what is remembered for a moment."""
    monkeypatch.setattr("discreet.serve.middleware._REMEMBER", 0.0)


def test_somebody_of_a_group_gets_its_role_and_an_account_of_their_own(site, service, provider):
    facts = {"name": "Ada L.", "preferred_username": "ada.l"}
    client, answer = signed_in(service, provider, "s-1", ["staff", "research"], **facts)
    assert answer.status_code == 200
    assert 'http-equiv="refresh"' in answer.text
    assert client.get("/datasets").status_code == 200
    mine = client.get("/api/v1/me").json()
    assert mine == {"person": "ada-l", "name": "Ada L.", "role": "analyst", "scopes": ["read", "request"]}
    assert client.get("/curator").status_code == 403
    other, _ = signed_in(service, provider, "s-2", "data-protection", name="Grace")
    assert other.get("/api/v1/me").json()["role"] == "curator"
    # The second time it is the same account, under whatever name.
    again, _ = signed_in(service, provider, "s-1", ["research"], name="Ada M.", preferred_username="ada.m")
    assert (again.get("/api/v1/me").json()["person"], again.get("/api/v1/me").json()["name"]) == ("ada-l", "Ada M.")


def test_nobody_takes_over_an_account_by_its_name(site, service, provider):
    client, _ = signed_in(service, provider, "s-3", ["research"], preferred_username="curator")
    mine = client.get("/api/v1/me").json()
    assert mine["person"].startswith("curator-")
    assert mine["role"] == "analyst"


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], "gives you no role here"),
        (["staff"], "gives you no role here"),
        ("researchers", "gives you no role here"),
        ([["research"], 7, None], "gives you no role here"),
        ({"research": True}, "gives you no role here"),
        (["research", "data-protection"], "nobody can be both"),
    ],
)
def test_without_one_role_nobody_comes_in(site, service, provider, groups, words, caplog):
    client, answer = signed_in(service, provider, "s-4", groups)
    assert answer.status_code == 403
    assert words in answer.text
    assert client.get("/datasets").status_code == 303
    assert "no-role" not in answer.text


def test_a_session_has_the_forms_token_and_ends(site, service, provider):
    client, _ = signed_in(service, provider, "s-5", ["research"])
    assert client.post("/logout", data={"csrf": "wrong"}).status_code == 403
    csrf = client.get("/datasets").text.split('name="csrf" value="')[1].split('"')[0]
    stolen = client.cookies.get("discreet")
    assert client.post("/logout", data={"csrf": csrf}).status_code == 303
    client.cookies.set("discreet", stolen)
    assert client.get("/datasets").status_code == 303


def test_a_role_that_disappears_ends_session_and_tokens_at_the_next_check(site, service, provider, monkeypatch, caplog):
    later(monkeypatch)
    client, _ = signed_in(service, provider, "s-6", ["research"], preferred_username="leaving")
    token = people.add_token(site.service.engine, site.service.clock, person="leaving", label="program")
    headers = {"Authorization": f"Bearer {token}"}
    assert client.get("/datasets").status_code == 200
    assert browser(service).get("/api/v1/me", headers=headers).status_code == 200
    known(provider, "s-6", groups=["staff"])
    assert client.get("/datasets").status_code == 303
    assert "role has disappeared" in caplog.text
    assert browser(service).get("/api/v1/me", headers=headers).status_code == 401
    # Whoever comes back has a new session, and needs new tokens.
    client, _ = signed_in(service, provider, "s-6", ["research"])
    assert client.get("/api/v1/me").json()["person"] == "leaving"
    assert browser(service).get("/api/v1/me", headers=headers).status_code == 401


def test_a_role_that_disappears_takes_effect_at_the_next_sign_in(site, provider):
    app = create_app(settings_for(site, provider))
    signed_in(app, provider, "s-7", ["research"], preferred_username="former")
    token = people.add_token(site.service.engine, site.service.clock, person="former", label="program")
    _, answer = signed_in(app, provider, "s-7", [])
    assert answer.status_code == 403
    assert people.by_token(site.service.engine, site.service.clock, token) is None
    noted = [entry.body for entry in site.service.ledger.search(LogFilter(who="former"), newest=False)]
    assert [body["event"] for body in noted] == ["signed in", "refused"]
    assert noted[1]["what"] == "signing in without a role"


def test_another_role_ends_the_tokens_of_the_first(site, service, provider):
    signed_in(service, provider, "s-8", ["research"], preferred_username="rising")
    token = people.add_token(site.service.engine, site.service.clock, person="rising")
    client, _ = signed_in(service, provider, "s-8", ["data-protection"])
    assert client.get("/api/v1/me").json()["role"] == "curator"
    assert people.by_token(site.service.engine, site.service.clock, token) is None


def test_what_the_provider_revoked_ends_the_session(site, service, provider, monkeypatch):
    later(monkeypatch)
    client, _ = signed_in(service, provider, "s-9", ["research"])
    assert client.get("/datasets").status_code == 200
    httpx2.post(f"{provider}/users/s-9/revoke-tokens").raise_for_status()
    assert client.get("/datasets").status_code == 303


def test_tokens_of_programs_end_when_the_institution_has_not_confirmed_their_owner_for_long(site, service, provider):
    signed_in(service, provider, "s-10", ["research"], preferred_username="absent")
    token = people.add_token(site.service.engine, site.service.clock, person="absent")
    assert people.by_token(site.service.engine, site.service.clock, token) is not None
    with site.service.engine.begin() as connection:
        long_ago = site.service.clock.now() - people.CONFIRMED - 1
        connection.execute(sa.update(accounts).where(accounts.c.id == "absent").values(confirmed=long_ago))
    assert people.by_token(site.service.engine, site.service.clock, token) is None


def test_a_provider_that_is_away_ends_no_session_at_once(site, service, provider, monkeypatch):
    later(monkeypatch)
    client, _ = signed_in(service, provider, "s-11", ["research"])

    def away(*_, **__):
        raise httpx2.ConnectError("away")

    monkeypatch.setattr(service.state.service.provider, "_http", httpx2.Client(transport=httpx2.MockTransport(away)))
    assert client.get("/datasets").status_code == 200
    # Its last word holds for an hour.
    with site.service.engine.begin() as connection:
        connection.execute(sa.update(visits).values(confirmed=visits.c.confirmed - 3_700.0))
    assert client.get("/datasets").status_code == 303
    assert browser(create_app(settings_for(site, "http://127.0.0.1:9"))).get("/sign-in").status_code == 503


def test_a_replayed_state_is_refused(site, service, provider, caplog):
    known(provider, "s-12", groups=["research"])
    client = browser(service)
    back = sent_back(client, "s-12").removeprefix(HERE)
    cookie = client.cookies.get("discreet_sign_in", path="/sign-in/callback")
    assert client.get(back).status_code == 200
    client.cookies.set("discreet_sign_in", cookie, path="/sign-in/callback")
    again = client.get(back)
    assert again.status_code == 403
    assert "was used already" in again.text
    assert "a state that is unknown, used, expired" in caplog.text


def test_a_sign_in_belongs_to_the_browser_where_it_began(site, service, provider):
    """Nobody is led into the session of somebody else."""
    known(provider, "s-13", groups=["research"])
    mine, other = browser(service), browser(service)
    back = sent_back(mine, "s-13").removeprefix(HERE)
    assert other.get(back).status_code == 403
    other.get("/sign-in")
    assert other.get(back).status_code == 403
    assert other.get("/datasets").status_code == 303


def test_a_state_expires(site, service, provider):
    known(provider, "s-14", groups=["research"])
    client = browser(service)
    back = sent_back(client, "s-14").removeprefix(HERE)
    with site.service.engine.begin() as connection:
        connection.execute(sa.update(sign_ins).values(expires=site.service.clock.now() - 1.0))
    assert client.get(back).status_code == 403


@pytest.mark.parametrize(
    "query", ["", "state=a", "code=a", "state=a&code=b", "error=access_denied&state=a", "state=%00&code=%00"]
)
def test_whoever_was_not_signed_in_is_refused_in_one_sentence(site, service, query):
    client = browser(service)
    client.get("/sign-in")
    answer = client.get(f"/sign-in/callback?{query}")
    assert answer.status_code == 403
    assert "Traceback" not in answer.text


def test_the_way_to_the_provider_proves_what_comes_back(site, service, provider):
    query = parse_qs(urlsplit(browser(service).get("/sign-in").headers["location"]).query)
    assert query["redirect_uri"] == [f"{HERE}/sign-in/callback"]
    assert query["code_challenge_method"] == ["S256"]
    assert len(query["state"][0]) >= 43
    assert len(query["nonce"][0]) >= 43
    # By what was configured, whatever a request's header says.
    forged = browser(service).get("/sign-in", headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"})
    assert "evil" not in forged.headers["location"]


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "javascript:alert(1)"])
def test_signing_in_leads_nowhere_else(site, service, provider, target):
    known(provider, "s-15", groups=["research"])
    client = browser(service)
    answer = client.get(sent_back(client, "s-15", target).removeprefix(HERE))
    assert re.search(r'url=([^"]*)"', answer.text)[1] == "/"


def test_nothing_in_the_database_signs_anybody_in(site, service, provider):
    client, _ = signed_in(service, provider, "s-16", ["research"])
    secret = client.cookies.get("discreet")
    with site.service.engine.begin() as connection:
        rows = [dict(row) for row in connection.execute(sa.select(visits)).mappings()]
    assert secret not in str(rows)
    held = [sign_in._decrypted(secret, row["held"]) for row in rows if row["digest"] == sign_in._digest(secret)]
    assert held[0]["access_token"] not in str(rows)


# Identity tokens that a provider never made for this sign-in.

KEY, STRANGER = jwk.RSAKey.generate_key(2048, {"kid": "1"}), jwk.RSAKey.generate_key(2048, {"kid": "1"})
NOW = 1_800_000_000
ISSUER = "https://login.example.org"


def pretended(**more):
    """A provider whose keys are known."""
    facts = {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/a",
        "token_endpoint": f"{ISSUER}/t",
        "jwks_uri": f"{ISSUER}/k",
        "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
    } | more

    def answer(request):
        if request.url.path == "/k":
            return httpx2.Response(200, json=jwk.KeySet([KEY]).as_dict())
        return httpx2.Response(200, json=facts)

    settings = Settings(oidc_issuer=ISSUER, oidc_client=CLIENT, oidc_secret="s", address="https://here.example.org")
    return Provider(settings, httpx2.Client(transport=httpx2.MockTransport(answer)))


def token(key=KEY, header=None, **more):
    """An identity token; what is None is left out."""
    claims = {"iss": ISSUER, "aud": CLIENT, "sub": "7", "exp": NOW + 300, "iat": NOW, "nonce": "n"} | more
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(header or {"alg": "RS256", "kid": "1"}, kept, key, algorithms=["RS256", "HS256", "none"])


def test_a_right_identity_token_is_believed():
    assert pretended().claims(token(), NOW, "n")["sub"] == "7"
    assert pretended().claims(token(aud=[CLIENT], azp=CLIENT), NOW, "n")["sub"] == "7"


def unsigned():
    """A token that nobody signed."""
    _, body, _ = token().split(".")
    plain = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=").decode()
    return f"{plain}.{body}."


WRONG = {
    "expired": (lambda: token(exp=NOW - 120), "expired"),
    "without an end": (lambda: token(exp=None), "does not verify"),
    "from the future": (lambda: token(iat=NOW + 3_600), "does not verify"),
    "of another issuer": (lambda: token(iss="https://evil.example"), "does not verify"),
    "for another audience": (lambda: token(aud="another-service"), "does not verify"),
    "for others as well": (lambda: token(aud=[CLIENT, "another-service"]), "another audience"),
    "given to another party": (lambda: token(azp="another-service"), "another audience"),
    "of another sign-in": (lambda: token(nonce="other"), "another nonce"),
    "without a nonce": (lambda: token(nonce=None), "another nonce"),
    "without a subject": (lambda: token(sub=None), "does not verify"),
    "signed by a stranger": (lambda: token(STRANGER), "does not verify"),
    "signed by a shared secret": (
        lambda: token(jwk.OctKey.import_key(b"s" * 32), {"alg": "HS256", "kid": "1"}),
        "does not verify",
    ),
    "unsigned": (unsigned, "does not verify"),
    "changed": (lambda: token()[:-8] + "AAAAAAAA", "does not verify"),
    "no token": (lambda: "nonsense", "does not verify"),
    "nothing": (lambda: None, "no identity token"),
    "a number": (lambda: 7, "no identity token"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_identity_token_that_is_not_for_this_sign_in_is_refused_and_noted(wrong, caplog):
    make, noted = WRONG[wrong]
    with pytest.raises(Refusal, match="does not sign you in here"):
        pretended().claims(make(), NOW, "n")
    assert noted in caplog.text


def test_a_provider_that_describes_another_is_not_believed():
    clear = {"token_endpoint": "http://login.example.org/t"}
    for more in ({"issuer": "https://evil.example"}, {"jwks_uri": None}, clear):
        with pytest.raises(Refusal, match="cannot be asked"):
            pretended(**more).claims(token(), NOW, "n")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"oidc_client": ""}, "oidc_client"),
        ({"oidc_secret": ""}, "oidc_secret"),
        ({"address": ""}, "address"),
        ({"oidc_curators": (), "oidc_analysts": ()}, "oidc_curators or oidc_analysts"),
        ({"oidc_scopes": ("profile",)}, "openid"),
        ({"oidc_analysts": ("data-protection",)}, "in common"),
        ({"oidc_issuer": "http://login.example.org"}, "https"),
        ({"address": "http://discreet.example.org"}, "https"),
    ],
)
def test_a_half_of_what_is_needed_is_refused_when_the_service_starts(site, more, words):
    facts = settings_for(site, "https://login.example.org")

    with pytest.raises(InvalidInput, match=words):
        check_settings(replace(facts, **more))
