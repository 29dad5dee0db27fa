"""What the client sends, to whom, and how often."""

import subprocess
import sys

import httpx2
import pytest

import discreet as dc
from discreet.client import Client
from discreet.exceptions import InvalidInput, LedgerRefused, LedgerUnavailable, MissingExtra, SourceFailed


def made(answer, patience=5.0, token="discreet_1_2"):
    """A client of a service that answers so."""
    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return Client("https://discreet.example.org", token=token, patience=patience, http=http)


@pytest.mark.parametrize(
    "address",
    [
        "http://discreet.example.org",
        "http://localhost.example.org",
        "ftp://localhost",
        "discreet.example.org",
        "https://",
        "https://ada:secret@discreet.example.org",
        "https://discreet.example.org?x=1",
        "",
        None,
    ],
)
def test_a_token_goes_to_no_address_where_others_read_it(address):
    with pytest.raises(InvalidInput, match="address") as refused:
        Client(address, token="discreet_1_2")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("token", ["", "   ", "a b", "line\nbreak", "dïscreet", 7])
def test_what_is_no_token_is_refused_before_anything_is_sent(token, monkeypatch):
    monkeypatch.delenv("DISCREET_TOKEN", raising=False)
    with pytest.raises(InvalidInput, match="token"):
        Client("https://discreet.example.org", token=token)


def test_the_token_of_the_environment_will_do(monkeypatch):
    monkeypatch.setenv("DISCREET_TOKEN", "discreet_3_4")
    seen = []

    def answer(request):
        seen.append(request.headers["authorization"])
        return httpx2.Response(200, json={"person": "ada", "name": "A", "role": "analyst", "scopes": []})

    assert made(answer, token=None).me()["person"] == "ada"
    assert seen == ["Bearer discreet_3_4"]


def test_a_redirection_is_not_followed():
    """It would take the token elsewhere."""
    hosts = []

    def answer(request):
        hosts.append(request.url.host)
        return httpx2.Response(302, headers={"location": "https://evil.example"})

    with pytest.raises(InvalidInput, match="does not answer as a service"):
        made(answer).me()
    assert hosts == ["discreet.example.org"]


def test_a_request_is_sent_again_under_the_same_key_until_it_is_answered():
    keys, bodies = [], []

    def answer(request):
        keys.append(request.headers["idempotency-key"])
        bodies.append(request.content)
        if len(keys) == 1:
            raise httpx2.ReadTimeout("the answer was lost")
        if len(keys) == 2:
            return httpx2.Response(503, text="a proxy's page")
        if len(keys) == 3:
            return httpx2.Response(429, json={"error": "too-many", "text": "Wait.", "where": []})
        if len(keys) == 4:
            return httpx2.Response(409, json={"error": "under-way", "text": "Wait.", "where": []})
        return httpx2.Response(202, json={"job": "1", "release": None, "charged": True})

    job = made(answer, patience=30.0).ask("clinic", "ate", epsilon=1.0, delta=1e-6)
    assert job.id == "1"
    assert len(keys) == 5
    assert len(set(keys)) == len(set(bodies)) == 1
    assert len(keys[0]) == 32


def test_two_requests_have_keys_of_their_own():
    keys = []

    def answer(request):
        keys.append(request.headers["idempotency-key"])
        return httpx2.Response(202, json={"job": "1", "release": None, "charged": True})

    client = made(answer)
    for _ in range(2):
        client.ask("clinic", "ate", epsilon=1.0, delta=1e-6)
    client.ask("clinic", "ate", epsilon=1.0, delta=1e-6, key="mine")
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_what_is_refused_for_good_is_sent_once():
    calls = []

    def answer(request):
        calls.append(request)
        return httpx2.Response(409, json={"error": "frozen", "text": "It is frozen.", "where": []})

    with pytest.raises(LedgerRefused, match=r"It is frozen\."):
        made(answer).ask("clinic", "ate", epsilon=1.0)
    assert len(calls) == 1


def test_a_service_that_is_away_is_reported_after_the_patience():
    def answer(request):
        raise httpx2.ConnectError("no route")

    with pytest.raises(LedgerUnavailable, match="cannot be reached: check the address and the network"):
        made(answer, patience=0.3).me()


def test_fields_that_a_refusal_is_about_are_named():
    def answer(request):
        return httpx2.Response(422, json={"error": "malformed", "text": "It cannot be read.", "where": ["epsilon"]})

    with pytest.raises(InvalidInput, match=r"It cannot be read\. It is about epsilon"):
        made(answer).plan("clinic", epsilon=0)


def test_a_job_that_was_charged_for_nothing_says_so():
    job = {
        "state": "failed",
        "progress": 100,
        "failure": "failed-charged",
        "text": "It stays charged.",
        "release": None,
    }

    with pytest.raises(SourceFailed, match="stays charged"):
        made(lambda _: httpx2.Response(200, json=job)).job("1").wait(progress=False)


def test_waiting_may_be_given_up():
    job = {"state": "running", "progress": 10, "failure": None, "text": "", "release": None}
    with pytest.raises(TimeoutError, match="has not ended yet"):
        made(lambda _: httpx2.Response(200, json=job)).job("1").wait(timeout=0.3, progress=True)


def test_names_are_no_paths():
    paths = []

    def answer(request):
        paths.append(request.url.raw_path)
        return httpx2.Response(404, json={"error": "no-dataset", "text": "None.", "where": []})

    with pytest.raises(InvalidInput):
        made(answer).dataset("../curator/people?x=#")
    assert paths == [b"/api/v1/datasets/..%2Fcurator%2Fpeople%3Fx%3D%23"]


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtra, match=r"discreet\[client\]"):
        Client("https://discreet.example.org", token="discreet_1_2")


def test_the_client_is_reached_from_the_library_and_loads_nothing_before():
    script = "import sys, discreet as dc; before = 'httpx2' in sys.modules; dc.client.Client; "
    script += "print(before, 'fastapi' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "False"]
    assert dc.client.Client is Client
