"""The programming interface keeps its conventions: typed answers, pages, keys, ETags, one shape of refusals."""

import json
import threading
import time

import pytest
import sqlalchemy as sa
from pydantic import BaseModel

from discreet.releases import io
from discreet.serve.domain import jobs as queue
from discreet.serve.domain.requests import OFFERED, asked_of
from discreet.serve.domain.users import by_token
from discreet.serve.errors import TEXTS, Refusal
from discreet.serve.storage import idempotency
from discreet.serve.storage.paging import MOST, written
from discreet.serve.storage.schema import jobs, keys
from tests.serve.conftest import ROW

LISTS = ("/datasets", "/requests", "/releases")


def operations(site):
    """All operations of the description."""
    for path, methods in site.client.app.openapi()["paths"].items():
        for method, facts in methods.items():
            yield f"{method.upper()} {path}", facts


def resolved(site, schema):
    """A schema, or what it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return site.client.app.openapi()["components"]["schemas"][name] if name else schema


def test_every_answer_and_every_refusal_is_typed(site):
    untyped = []
    for name, facts in operations(site):
        if "/curator/" in name:
            continue
        for status, answer in facts["responses"].items():
            content = answer.get("content", {}).get("application/json", {"schema": {}})
            if status == "304" or "image/png" in answer.get("content", {}):
                continue
            if not {"properties", "additionalProperties", "oneOf"} & set(resolved(site, content["schema"])):
                untyped.append((name, status))
            if int(status) >= 400:
                assert content["schema"]["$ref"].endswith("/Problem"), (name, status)
    assert untyped == []


def test_every_operation_declares_the_bearer_scheme(site):
    schemes = site.client.app.openapi()["components"]["securitySchemes"]
    assert [scheme["scheme"] for scheme in schemes.values()] == ["bearer"]
    (name,) = schemes
    assert [label for label, facts in operations(site) if {name: []} not in facts.get("security", [])] == []


def test_every_kind_has_a_schema_with_its_own_options(site):
    (body,) = [
        facts["requestBody"] for name, facts in operations(site) if name == "POST /api/v1/datasets/{dataset}/requests"
    ]
    schema = body["content"]["application/json"]["schema"]
    assert set(schema["discriminator"]["mapping"]) == set(OFFERED)
    for kind, reference in schema["discriminator"]["mapping"].items():
        found = resolved(site, {"$ref": reference})
        assert {option.name for option in OFFERED[kind].asks} <= set(found["properties"])
        assert found["additionalProperties"] is False


def test_all_lists_come_in_pages_of_one_convention(site):
    for name, facts in operations(site):
        if not name.startswith("GET") or "/curator/" in name:
            continue
        schema = resolved(
            site, facts["responses"]["200"].get("content", {}).get("application/json", {}).get("schema", {})
        )
        assert schema.get("type") != "array", name
        if "items" in schema.get("properties", {}):
            assert {"limit", "after"} <= {each["name"] for each in facts["parameters"]}, name


def test_pages_hold_every_item_once_and_in_order(site):
    for k in range(7):
        site.ask(epsilon=0.01 + k / 1_000)
    whole = site.get("/api/v1/requests", params={"limit": MOST}).json()
    assert whole["next"] is None
    walked, after = [], None
    for _ in range(20):
        page = site.get("/api/v1/requests", params={"limit": 3} | ({"after": after} if after else {})).json()
        walked += [each["id"] for each in page["items"]]
        after = page["next"]
        if after is None:
            break
        # What comes in between is newer than all that is still to be shown.
        site.ask(epsilon=0.02 + len(walked) / 10_000)
    assert walked == [each["id"] for each in whole["items"]]
    assert len(walked) >= 7


NO_PLACES = ["", "x", "bm90IGpzb24", "é" * 100]
NO_PLACES += [
    written(list(each)) for each in (["a"], [1.0], [1, 2, 3], [1.0, "a\0"], [None, 1], [1e300, "a"], [[[]], {}])
]


@pytest.mark.parametrize("after", NO_PLACES)
def test_a_place_that_no_page_named_is_refused(site, after):
    for path in LISTS:
        answer = site.get(f"/api/v1{path}", params={"after": after})
        assert answer.status_code == 422, path
        assert "after" in answer.json()["text"]


@pytest.mark.parametrize("limit", [0, -1, MOST + 1, "many", 10**30])
def test_a_page_holds_from_one_to_two_hundred(site, limit):
    answer = site.get("/api/v1/requests", params={"limit": limit})
    assert (answer.status_code, answer.json()["where"]) == (422, ["limit"])


def test_a_cursor_shows_nothing_of_others(site):
    """A place of another's list leads to one's own rows alone."""
    for epsilon in (0.0411, 0.0413):
        site.released(epsilon=epsilon)
    place = site.get("/api/v1/requests", "curator", params={"limit": 1}).json()["next"]
    found = site.get("/api/v1/requests", "colleague", params={"after": place}).json()["items"]
    assert all(each["person"] == "colleague" for each in found)


def ask(site, key, person="analyst", dataset="clinic", **asked):
    """A request under a key."""
    body = {"kind": "difference-in-means", "delta": 1e-7} | asked
    headers = site.headers(person) | {"Idempotency-Key": key}
    return site.client.post(f"/api/v1/datasets/{dataset}/requests", json=body, headers=headers)


def spent(site):
    """What has been asked of the ledger in all."""
    return len(list(site.service.ledger.requests()))


def test_a_repeated_request_gets_the_first_answer_and_spends_once(site):
    before = spent(site)
    first, again = ask(site, "one", epsilon=0.051), ask(site, "one", epsilon=0.051)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert [each.headers["idempotency-replayed"] for each in (first, again)] == ["false", "true"]
    site.wait(first.json()["job"])
    # Even now that a stored release would answer it: the first answer is the answer.
    assert ask(site, "one", epsilon=0.051).json() == first.json()
    assert spent(site) == before + 1


def test_the_same_key_with_another_body_is_refused(site):
    ask(site, "two", epsilon=0.052)
    before = spent(site)
    for more in ({"epsilon": 0.053}, {"epsilon": 0.052, "dataset": "trial"}, {"epsilon": 0.052, "kind": "ate"}):
        answer = ask(site, "two", **more)
        assert (answer.status_code, answer.json()["error"]) == (422, "other-request")
    assert spent(site) == before
    # A key is one person's own.
    assert ask(site, "two", "colleague", epsilon=0.054).status_code == 202


def test_a_refused_request_leaves_its_key_free(site):
    assert ask(site, "three", epsilon=99.0).json()["error"] == "budget"
    assert ask(site, "three", epsilon=0.055).status_code == 202


def test_forty_repeats_at_once_spend_once(site):
    before, found = spent(site), []

    def send():
        found.append(ask(site, "forty", epsilon=0.056))

    threads = [threading.Thread(target=send) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in found} <= {202, 409}
    assert len({answer.json()["job"] for answer in found if answer.status_code == 202}) == 1
    assert spent(site) == before + 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "tab\there"])
def test_a_key_that_is_none_is_refused(site, key):
    answer = ask(site, key, epsilon=0.057)
    assert (answer.status_code, answer.json()["where"]) == (422, ["Idempotency-Key"])


class Crash(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("where", ["before", "reserved", "queued"])
def test_a_server_that_ends_at_any_point_spends_once(site, where, monkeypatch):
    """Whoever repeats the request learns what became of it, or it is done now; what is orphaned is given back."""
    service, identity = site.service, by_token(site.service.engine, site.service.clock, site.tokens["analyst"])
    dataset = queue_dataset(site)
    asked = asked_of(
        {"kind": "difference-in-means", "epsilon": {"before": 0.061, "reserved": 0.062, "queued": 0.063}[where]}
    )
    request, key = [dataset.id, asked.plain()], f"crash-{where}"

    def submit(name):
        if where == "before":
            raise Crash
        answer = queue.submit(service, identity, dataset, asked, name)
        if where == "reserved":
            with service.engine.begin() as connection:
                connection.execute(sa.update(jobs).where(jobs.c.id == name).values(state="new"))
        assert answer["charged"]
        raise Crash

    with pytest.raises(Crash):
        idempotency.once(service, identity, key, request, submit)

    def again(name):
        return queue.submit(service, identity, dataset, asked, name)

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            answer, _ = idempotency.once(service, identity, key, request, again)
            break
        except Refusal:
            time.sleep(0.1)
            queue.recover(service)
    found = site.wait(answer["job"])
    assert found["state"] == "done"
    queue.give_back(service)
    held = [each for each in service.ledger.requests() if each.about.get("job") == answer["job"]]
    assert sorted(each.state for each in held)[-1:] == ["settled"]
    assert [each.state for each in held].count("settled") == 1
    assert {each.state for each in held} <= {"settled", "cancelled"}


def queue_dataset(site):
    """The first data set."""
    from discreet.serve.domain import datasets as catalogue

    return catalogue.by_id(site.service.engine, "clinic")


def test_a_release_has_an_etag_and_is_not_sent_twice(site):
    name = site.released(epsilon=0.071)
    for path in (f"/api/v1/releases/{name}", f"/api/v1/releases/{name}/picture"):
        first = site.get(path)
        assert first.headers["cache-control"] == "private, no-cache"
        tag = first.headers["etag"]
        for match in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = site.client.get(path, headers=site.headers("analyst") | {"If-None-Match": match})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        other = site.client.get(path, headers=site.headers("analyst") | {"If-None-Match": '"other"'})
        assert other.content == first.content
        # Whoever may not see it learns nothing by knowing its tag.
        assert site.client.get(path, headers=site.headers("colleague") | {"If-None-Match": tag}).status_code == 404
    before = site.get(f"/api/v1/releases/{name}").headers["etag"]
    site.post(f"/api/v1/releases/{name}/publish")
    assert site.get(f"/api/v1/releases/{name}").headers["etag"] != before


def test_an_answered_release_is_what_its_file_is(site):
    name = site.released(epsilon=0.5, kind="cate", delta=1e-6)
    plain = site.get(f"/api/v1/releases/{name}").json()["release"]
    assert io.read(plain).to_dict() == plain
    assert plain == json.loads(site.get(f"/releases/{name}/release.json").text)


def test_all_refusals_have_one_shape(site):
    shape = {"error", "text", "where"}
    found = [
        site.client.get("/api/v1/me"),
        site.get("/api/v1/elsewhere"),
        site.get("/api/v1/datasets/none"),
        site.get("/api/v1/curator/people"),
        site.client.delete("/api/v1/me", headers=site.headers("analyst")),
        site.post("/api/v1/datasets/clinic/plan", {"epsilon": "many"}),
        site.post("/api/v1/datasets/clinic/plan", {"width": 1.0, "epsilon": 1.0}),
        site.ask(epsilon=99.0),
        site.client.post("/api/v1/datasets/clinic/plan", content=b"{", headers=site.headers("analyst")),
        site.get("/api/v1/requests", params={"after": "x"}),
    ]
    assert [answer.status_code for answer in found] == [401, 404, 404, 403, 405, 422, 422, 409, 422, 422]
    for answer in found:
        assert set(answer.json()) == shape
        assert answer.json()["error"] in TEXTS


def test_releases_are_combined_for_free_and_only_as_one_may(site):
    names = [site.released(kind="ate", delta=1e-6, epsilon=epsilon) for epsilon in (1.0, 1.1)]
    before = spent(site)
    asked = {"releases": names, "model": "fixed"}
    made = site.post("/api/v1/combinations", asked)
    assert made.status_code == 200
    combined = io.read(made.json())
    assert 1.1 < combined.guarantee.epsilon < 2.1
    refused = site.post("/api/v1/combinations", asked | {"people": "disjoint"})
    assert (refused.status_code, "same records" in refused.json()["text"]) == (422, True)
    assert site.post("/api/v1/combinations", asked, "colleague").json()["error"] == "no-release"
    segments = site.released(kind="uplift", epsilon=0.5, by={"severity": 2})
    assert site.post("/api/v1/combinations", {"releases": [names[0], segments], "model": "fixed"}).status_code == 422
    assert spent(site) == before + 1


def test_effects_are_answered_as_they_are_described(site):
    name = site.released(kind="uplift", epsilon=0.6, by={"severity": 2})
    answer = site.post(f"/api/v1/releases/{name}/effects", {"rows": [ROW]}).json()
    from discreet.serve.api.answers import Effects

    assert issubclass(Effects, BaseModel)
    assert Effects.model_validate(answer).effects[0].low is not None


def test_keys_are_kept_without_what_was_asked(site):
    ask(site, "digest", epsilon=0.0581)
    with site.service.engine.begin() as connection:
        row = connection.execute(sa.select(keys).where(keys.c.key == "digest")).mappings().one()
    assert "0.0581" not in str(dict(row))
