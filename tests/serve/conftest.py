"""A service with two small data sets, two curators and two analysts."""

import time
from dataclasses import dataclass

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from discreet.datasets import draw
from discreet.datasets._demo import PUBLIC as BOUNDS
from discreet.datasets._demo import table
from discreet.privacy.budget import Budget
from discreet.serve.app import create_app
from discreet.serve.domain import administration as curating
from discreet.serve.domain import users as people
from discreet.serve.domain.datasets import NewDataset
from discreet.serve.domain.users import Identity
from discreet.serve.governance import approvals
from discreet.serve.service import Service
from discreet.serve.settings import Settings

N = 1_500
ROW = {"age": 50, "severity": 5, "sex": "f", "ward": "north"}


@dataclass
class Site:
    """A running service, and what tests need to talk to it."""

    settings: Settings
    client: TestClient
    service: Service
    tokens: dict

    def headers(self, person):
        return {"Authorization": f"Bearer {self.tokens[person]}"}

    def get(self, path, person="analyst", **kwargs):
        return self.client.get(path, headers=self.headers(person), **kwargs)

    def post(self, path, json=None, person="analyst", **kwargs):
        return self.client.post(path, json=json, headers=self.headers(person), **kwargs)

    def put(self, path, json, person="curator"):
        return self.client.put(path, json=json, headers=self.headers(person))

    def agreed(self, answer, **more):
        """What was proposed, when the second curator has approved it."""
        assert answer.status_code < 300, answer.text
        number = answer.json()["proposal"]
        approved = self.post(f"/api/v1/curator/approvals/{number}", person="second", params=more)
        assert approved.status_code == 200, approved.text
        return approved

    def ask(self, dataset="clinic", person="analyst", **asked):
        return self.post(
            f"/api/v1/datasets/{dataset}/requests", {"kind": "difference-in-means", "delta": 1e-7} | asked, person
        )

    def wait(self, job, person="analyst"):
        """The job when it has ended."""
        for _ in range(600):
            answer = self.get(f"/api/v1/requests/{job}", person)
            # On a busy machine so many questions may come too fast.
            if answer.status_code != 429 and answer.json()["state"] not in ("queued", "running"):
                return answer.json()
            time.sleep(0.05 if answer.status_code != 429 else 0.5)
        raise AssertionError("the job did not end")

    def approve_all(self):
        """Have the second curator approve whatever waits."""
        for proposal in self.get("/api/v1/curator/approvals", "second").json():
            done = self.post(f"/api/v1/curator/approvals/{proposal['id']}", person="second", params={"again": True})
            assert done.status_code == 200, done.text

    def released(self, person="analyst", **asked):
        """The release of a request."""
        made = self.ask(person=person, **asked).json()
        if made["release"]:
            return made["release"]
        found = self.wait(made["job"], person)
        assert found["state"] == "done", found
        return found["release"]

    def sign_in(self, person="analyst"):
        """A client with a session of its own, and the token that its forms carry."""
        client = TestClient(self.client.app, base_url="http://testserver")
        page = client.get("/login").text
        csrf = page.split('name="csrf" value="')[1].split('"')[0]
        answer = client.post("/login", data={"csrf": csrf, "token": self.tokens[person]}, follow_redirects=False)
        assert answer.status_code == 303
        text = client.get("/datasets").text
        return client, text.split('name="csrf" value="')[1].split('"')[0]


def curator(person="curator"):
    return Identity(
        person=person, name=person, role="curator", scopes=people.ALLOWED["curator"], token="", expires=float("inf")
    )


def agree(service, number, **more):
    """The second curator approves what the first has proposed."""
    assert number is not None
    approvals.approve(service, curator("second"), number, **more)


def populate(settings, folder):
    """Two data sets, of which the colleague may use one only; returns tokens."""
    service = Service.of(settings)
    names = {"curator": "curator", "second": "curator", "analyst": "analyst", "colleague": "analyst"}
    for person, role in names.items():
        people.add_person(service.engine, service.clock, person=person, name=f"The {person}", role=role)
    for name, design, outcome, more in (
        ("clinic", "clinic", "days", {"admits_claimed": True}),
        ("trial", "clinic-trial", "home", {"records_are_public": False, "propensity": 0.5}),
    ):
        study = draw(design, N, 1)
        pq.write_table(table(study.X, study.T, study.Y, outcome), folder / f"{name}.parquet")
        facts = {"id": name, "title": f"The {name}", "source": f"{name}.parquet", "outcome": outcome}
        facts |= {"treatment": "treated", "bounds": BOUNDS.to_dict(), "epsilon": 60.0, "delta": 1e-4}
        agree(service, curating.register(service, curator(), NewDataset(**facts, **more)))
        agree(service, curating.allow(service, curator(), name, "analyst", Budget(epsilon=50.0, delta=1e-4)))
    agree(service, curating.allow(service, curator(), "clinic", "colleague", Budget(epsilon=1.0, delta=1e-5)))
    tokens = {person: people.add_token(service.engine, service.clock, person=person) for person in names}
    service.close()
    return tokens


def quick(database, folder, **more):
    """Settings for tests: nothing waits long, and nobody has to slow down."""
    facts = {"grid": 0.005, "first_tick": 0.02, "lease": 2.0, "logins": 1e5, "spends": 1e6, "asks": 1e6, "readers": 1e6}
    return Settings(database=database, data=str(folder), **(facts | more))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    settings = quick(f"sqlite:///{folder}/service.db", folder)
    tokens = populate(settings, folder)
    app = create_app(settings)
    with TestClient(app) as client:
        yield Site(settings, client, app.state.service, tokens)
