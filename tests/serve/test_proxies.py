"""Whom a proxy asks for is believed of configured proxies alone, and what somebody may send is counted by that."""

from functools import partial

import pytest
from fastapi.testclient import TestClient
from starlette.datastructures import Headers

from discreet.exceptions import InvalidInput
from discreet.serve.app import create_app
from discreet.serve.proxies import Proxies
from discreet.serve.rate_limits import Buckets, cost_of
from tests.serve.conftest import quick


@pytest.fixture(autouse=True)
def still(monkeypatch):
    """Buckets that do not fill while a test runs, however long that takes."""
    monkeypatch.setattr("discreet.serve.middleware.Buckets", partial(Buckets, clock=lambda: 0.0))


TRUSTED = ("10.0.0.2", "192.168.0.0/16", "fd00::/8")


def client(here, forwarded=None, trusted=TRUSTED):
    """For whom a request of this address with this header is made."""
    raw = {} if forwarded is None else {"x-forwarded-for": forwarded}
    return Proxies(trusted).client_of({"client": (here, 1)}, Headers(raw))


@pytest.mark.parametrize(
    ("here", "forwarded", "found"),
    [
        ("203.0.113.9", None, "203.0.113.9"),
        # Nobody else is believed, whatever they claim.
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("203.0.113.9", "10.0.0.2", "203.0.113.9"),
        ("10.0.0.3", "198.51.100.1", "10.0.0.3"),
        # A configured proxy is; of what its client wrote before, nothing.
        ("10.0.0.2", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.2", "1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.2", "1.1.1.1, 198.51.100.1, 192.168.4.4", "198.51.100.1"),
        ("192.168.9.9", "198.51.100.1:4711", "198.51.100.1"),
        ("fd00::1", "[2001:db8::7]:443", "2001:db8::7"),
        # One that names nobody leaves its own address.
        ("10.0.0.2", "", "10.0.0.2"),
        ("10.0.0.2", "unknown", "10.0.0.2"),
        ("10.0.0.2", "1.1.1.1, nonsense", "10.0.0.2"),
        ("10.0.0.2", "' OR 1=1", "10.0.0.2"),
        ("testclient", "198.51.100.1", "testclient"),
    ],
)
def test_a_forwarded_address_is_believed_of_configured_proxies_alone(here, forwarded, found):
    assert client(here, forwarded) == found


def test_a_proxy_that_adds_a_line_of_its_own_is_believed_before_the_line_that_its_client_sent():
    lines = [(b"x-forwarded-for", b"1.1.1.1"), (b"x-forwarded-for", b"198.51.100.1")]
    assert Proxies(TRUSTED).client_of({"client": ("10.0.0.2", 1)}, Headers(raw=lines)) == "198.51.100.1"


def test_without_configured_proxies_no_header_counts():
    assert client("127.0.0.1", "198.51.100.1", trusted=()) == "127.0.0.1"


def test_a_long_list_is_read_from_its_end_and_not_for_ever():
    assert client("10.0.0.2", ",".join(["1.1.1.1"] * 100_000 + ["198.51.100.1"])) == "198.51.100.1"
    assert client("10.0.0.2", ",".join(["10.0.0.2"] * 100_000)) == "10.0.0.2"


@pytest.mark.parametrize("wrong", ["proxy.example.org", "10.0.0.0/99", "everybody", ""])
def test_a_proxy_that_is_no_address_is_refused(wrong):
    with pytest.raises(InvalidInput, match="proxies must be addresses or networks"):
        Proxies((wrong,))


def test_somebody_who_makes_up_addresses_gets_no_further_than_without(site):
    app = create_app(quick(site.settings.database, site.settings.data, proxies=("10.0.0.2",), logins=3, work=False))
    liar = TestClient(app, client=("203.0.113.9", 1))
    found = [liar.post("/login", headers={"X-Forwarded-For": f"198.51.100.{k}"}).status_code for k in range(9)]
    assert found.count(429) == 6


def test_a_proxy_that_is_none_is_refused_when_the_service_starts(site):
    with pytest.raises(InvalidInput, match="proxies"):
        create_app(quick(site.settings.database, site.settings.data, proxies=("testclient",), work=False))


def test_behind_a_configured_proxy_each_address_has_its_own_count(site):
    app = create_app(quick(site.settings.database, site.settings.data, proxies=("10.0.0.2",), logins=2, work=False))
    proxy = TestClient(app, client=("10.0.0.2", 1))

    def tries(address, count):
        return [proxy.post("/login", headers={"X-Forwarded-For": address}).status_code for _ in range(count)]

    assert tries("198.51.100.1", 4).count(429) == 2
    assert tries("198.51.100.2", 1).count(429) == 0
    # What a client wrote before the proxy's own entry changes nothing.
    assert tries("9.9.9.9, 198.51.100.1", 1) == [429]


def test_what_costs_more_takes_more():
    buckets = Buckets(rate=1.0, size=100.0, clock=lambda: 0.0)
    assert [buckets.take("a", 40.0) for _ in range(3)] == [True, True, False]
    # No request is out of reach for good, and nobody pays for others.
    assert buckets.take("b", 1e9)
    assert not buckets.take("b")
    assert buckets.take("c")
    assert cost_of("/api/v1/curator/log/verification", "") > cost_of("/api/v1/datasets/clinic/plan", "") > 1.0
    assert cost_of("/api/v1/releases/x/effects", "40960") == pytest.approx(11.0)
    assert cost_of("/api/v1/me", "nonsense") == 1.0


def test_an_account_pays_for_what_it_asks(site):
    settings = quick(site.settings.database, site.settings.data, asks=100, work=False)
    client_ = TestClient(create_app(settings))
    asked = {"epsilon": 1.0, "delta": 1e-6}
    headers = site.headers("analyst")

    def burst(path, count, **json):
        return [client_.post(path, json=json, headers=headers).status_code for _ in range(count)].count(429)

    verified = [client_.get("/api/v1/curator/log/verification", headers=site.headers("curator")) for _ in range(2)]
    assert [answer.status_code for answer in verified] == [200, 429]
    assert verified[1].headers["retry-after"] == "1"
    assert burst("/api/v1/datasets/clinic/plan", 60, **asked) > 0
    assert client_.get("/api/v1/me", headers=site.headers("colleague")).status_code == 200
