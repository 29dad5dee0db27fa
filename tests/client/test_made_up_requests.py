"""Requests that nobody thought of, sent by what the client sends with, to a service that they may change."""

from discreet.exceptions import DiscreetError
from evidence.service.fuzz import fuzz
from tests.serve.test_fuzz import sender


def test_whatever_schemathesis_makes_up_is_answered_or_refused_by_the_client(site, connect):
    """The same made-up requests as in the interface's own test, sent by what the client sends with."""
    clients = {person: connect(person, patience=0.0)._transport for person in ("analyst", "curator")}
    plain, _ = sender(site)
    seen = set()

    def send(method, path, parameters, query, body, headers):
        status = plain(method, path, parameters, query, body, headers)
        if method == "GET" and "picture" not in path:
            filled = path.removeprefix("/api/v1")
            for name, value in parameters.items():
                filled = filled.replace("{" + name + "}", "".join(c for c in str(value) if c.isalnum()) or "-")
            try:
                clients["curator" if "/curator/" in path else "analyst"].get(filled)
                seen.add("answered")
            except DiscreetError as error:
                seen.add("refused" if str(error) else "refused without a word")
        return status

    known = {"dataset": ["clinic", "trial"], "person": ["analyst", "colleague"]}
    found = fuzz(site.client.app.openapi(), send, 200, known, start=7)
    assert seen == {"answered", "refused"}
    assert {key: count for key, count in found.items() if key[1] >= 500} == {}
