"""Requests that nobody thought of are refused, and never break anything."""

import json
from urllib.parse import quote

from schemathesis.core import NotSet

from evidence.service.fuzz import fuzz

CASES = 300


def sender(site):
    """How the fuzzer's requests reach a service, as analyst or curator; answers outside the description are noted."""
    description = site.client.app.openapi()
    undocumented = set()

    def send(method, path, parameters, query, body, more):
        person = "curator" if "/curator/" in path else "analyst"
        filled = path
        for name, value in parameters.items():
            filled = filled.replace("{" + name + "}", quote(str(value), safe="") or "-")
        content = None if isinstance(body, NotSet) or body is None else json.dumps(body, default=repr).encode()
        headers = more | site.headers(person) | {"content-type": "application/json"}
        params = {name: str(value) for name, value in query.items()}
        answer = site.client.request(method, filled, params=params, content=content, headers=headers)
        documented = description["paths"][path][method.lower()]["responses"]
        if str(answer.status_code) not in documented and answer.status_code not in (304, 401, 404, 405, 409):
            undocumented.add((method, path, answer.status_code))
        return answer.status_code

    return send, undocumented


def test_no_request_makes_the_service_fail(site):
    name = site.released(kind="uplift", epsilon=2.0, by={"severity": 4})
    known = {"dataset": ["clinic", "trial"], "release": [name], "person": ["analyst", "colleague"]}
    send, undocumented = sender(site)
    found = fuzz(site.client.app.openapi(), send, CASES, known)
    assert sum(found.values()) >= CASES
    assert {key: count for key, count in found.items() if key[1] >= 500} == {}
    assert undocumented == set()
    reached = {label for label, _ in found}
    assert len(reached) == sum(len(methods) for methods in site.client.app.openapi()["paths"].values())
    assert any(status < 300 for _, status in found)
    assert site.get("/api/v1/curator/log/verification", "curator").json()["intact"] is True
