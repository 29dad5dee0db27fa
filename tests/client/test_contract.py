"""The client and the interface keep one contract: what one answers or refuses, the other does."""

from dataclasses import dataclass
from typing import Any

import pytest

from discreet.client.transport import EXCEPTIONS, FAILURES
from discreet.exceptions import DiscreetError, InvalidInput
from discreet.releases import io
from discreet.serve.errors import FAILURES as JOB_FAILURES
from discreet.serve.errors import TEXTS
from tests.serve.conftest import ROW


@dataclass
class Refused:
    """Why something was refused."""

    kind: type[DiscreetError]
    text: str


@dataclass
class Plain:
    """The interface, asked by plain HTTP."""

    site: Any

    def call(self, method, path, person="analyst", json=None, key=None):
        headers = self.site.headers(person) | ({"Idempotency-Key": key} if key else {})
        answer = self.site.client.request(method, f"/api/v1{path}", json=json, headers=headers)
        plain = answer.json()
        if answer.is_success:
            return plain
        return Refused(EXCEPTIONS.get(plain["error"], InvalidInput), plain["text"])

    def datasets(self, person="analyst"):
        return [each["id"] for each in self.call("GET", "/datasets", person)["items"]]

    def dataset(self, name, person="analyst"):
        found = self.call("GET", f"/datasets/{name}", person)
        return found if isinstance(found, Refused) else (found["records"], found["neighbours"], found["kinds"])

    def plan(self, dataset, kind, **asked):
        found = self.call("POST", f"/datasets/{dataset}/plan", json={"kind": kind} | asked)
        return found if isinstance(found, Refused) else (found["width"], found["epsilon"], found["noise_sd"])

    def ask(self, dataset, kind, person="analyst", key=None, **asked):
        found = self.call("POST", f"/datasets/{dataset}/requests", person, {"kind": kind} | asked, key)
        return found if isinstance(found, Refused) else (found["job"], found["release"])

    def released(self, job, release, person="analyst"):
        return self.release(release or self.site.wait(job, person)["release"], person)

    def release(self, name, person="analyst"):
        found = self.call("GET", f"/releases/{name}", person)
        return found if isinstance(found, Refused) else io.read(found["release"]).to_dict()

    def effects(self, name, rows):
        found = self.call("POST", f"/releases/{name}/effects", json={"rows": rows})
        return found if isinstance(found, Refused) else found["effects"]

    def stop(self, job):
        return self.call("POST", f"/requests/{job}/stop")


@dataclass
class ByClient:
    """The same, asked by the client."""

    connect: Any

    def made(self, person, act):
        try:
            return act(self.connect(person, patience=0.0))
        except DiscreetError as error:
            return Refused(type(error), str(error))

    def datasets(self, person="analyst"):
        return self.made(person, lambda client: [each.id for each in client.datasets()])

    def dataset(self, name, person="analyst"):
        def act(client):
            found = client.dataset(name)
            return found.records, found.neighbours, list(found.kinds)

        return self.made(person, act)

    def plan(self, dataset, kind, **asked):
        def act(client):
            found = client.plan(dataset, kind, **asked)
            return found.width, found.epsilon, found.noise_sd

        return self.made("analyst", act)

    def ask(self, dataset, kind, person="analyst", key=None, **asked):
        def act(client):
            found = client.ask(dataset, kind, key=key, **asked)
            return found.id, found.release

        return self.made(person, act)

    def released(self, job, release, person="analyst"):
        def act(client):
            return (client.release(release) if release else client.job(job).wait(timeout=60)).to_dict()

        return self.made(person, act)

    def release(self, name, person="analyst"):
        return self.made(person, lambda client: client.release(name).to_dict())

    def effects(self, name, rows):
        return self.made("analyst", lambda client: client.effects(name, rows))

    def stop(self, job):
        return self.made("analyst", lambda client: client.job(job).stop())


@pytest.fixture(params=["plain", "client"])
def face(request, site, connect):
    return Plain(site) if request.param == "plain" else ByClient(connect)


@pytest.fixture
def both(site, connect):
    return Plain(site), ByClient(connect)


def test_every_code_of_the_service_has_an_exception_of_the_library():
    assert set(EXCEPTIONS) <= set(TEXTS)
    assert set(FAILURES) == set(JOB_FAILURES)
    # Whatever is not listed is about the request as it was sent, or about the token that came with it.
    rest = {code: TEXTS[code][0] for code in set(TEXTS) - set(EXCEPTIONS)}
    assert set(rest.values()) <= {401, 403, 404, 405, 409, 413, 422}


def test_one_sees_what_one_may_use(face):
    assert face.datasets() == ["clinic", "trial"]
    assert face.datasets("colleague") == ["clinic"]
    records, neighbours, kinds = face.dataset("clinic")
    assert (records, neighbours, "ate" in kinds) == (1500, "replace-one", True)
    assert face.dataset("trial", "colleague") == Refused(InvalidInput, TEXTS["no-dataset"][1])
    assert face.dataset("none") == Refused(InvalidInput, TEXTS["no-dataset"][1])


def test_plans_are_the_same_numbers(both):
    for asked in ({"epsilon": 1.0, "delta": 1e-6}, {"width": 4.0, "delta": 1e-6}):
        one, other = (face.plan("clinic", "ate", **asked) for face in both)
        assert one == other
        assert not isinstance(one, Refused)


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("ate", {"epsilon": 0}),
        ("ate", {"epsilon": 1.0, "delta": None}),
        ("nothing", {"epsilon": 1.0}),
        ("ate", {"epsilon": 1.0, "by": {"age": 4}}),
        ("uplift", {"epsilon": 1.0}),
        ("late", {"epsilon": 1.0, "delta": 1e-6}),
        ("ate", {"epsilon": 1.0, "delta": 1e-6, "covariates": ["height"]}),
        ("ate", {"epsilon": 99.0, "delta": 1e-6}),
        ("dp-cate", {"epsilon": 0.2, "delta": 1e-6, "calibration": "nonsense"}),
    ],
)
def test_refusals_are_the_same_words_and_the_library_exceptions(both, kind, asked):
    one, other = (face.ask("clinic", kind, **asked) for face in both)
    assert isinstance(one, Refused)
    assert (one.kind, one.text) == (other.kind, other.text.partition(" It is about")[0])


def test_a_release_is_asked_waited_for_and_read(face):
    epsilon = 0.111 if isinstance(face, Plain) else 0.112
    job, release = face.ask("clinic", "difference-in-means", epsilon=epsilon, delta=1e-7)
    plain = face.released(job, release)
    assert plain["guarantee"]["epsilon"] == pytest.approx(epsilon)
    # Asked again, a stored release answers, whoever reads it.
    again, stored = face.ask("clinic", "difference-in-means", epsilon=epsilon, delta=1e-7)
    assert again is None
    assert face.release(stored) == plain
    assert face.release(stored, "colleague") == Refused(InvalidInput, TEXTS["no-release"][1])


def test_a_key_spends_once_and_belongs_to_one_request(both):
    for k, face in enumerate(both):
        asked = {"kind": "difference-in-means", "epsilon": 0.121 + k / 1_000, "key": f"contract-{k}"}
        first = face.ask("clinic", **asked)
        # Sent again by either.
        assert [each.ask("clinic", **asked) for each in both] == [first, first]
        refused = both[1 - k].ask("clinic", **(asked | {"epsilon": 0.13}))
        assert (refused.kind, "another request" in refused.text) == (InvalidInput, True)


def test_effects_are_the_same(both, site):
    name = site.released(kind="uplift", epsilon=0.7, by={"severity": 4})
    one, other = (face.effects(name, [ROW, ROW | {"severity": 9}]) for face in both)
    assert one == other
    assert len(one) == 2
    refused = [face.effects(name, [{"age": 3}]) for face in both]
    assert refused[0] == refused[1]
    assert isinstance(refused[0], Refused)


def test_a_request_that_has_ended_cannot_be_stopped(face, site):
    job = site.ask(epsilon=0.141 if isinstance(face, Plain) else 0.142).json()["job"]
    site.wait(job)
    assert face.stop(job) == Refused(InvalidInput, TEXTS["finished"][1])
