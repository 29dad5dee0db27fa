"""Every kind of request that the registry declares can be asked for, and names no column of its own."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

import discreet as dc
from discreet.estimators.registry import REGISTRY
from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget
from discreet.releases import io
from discreet.serve.app import create_app
from discreet.serve.domain import administration as curating
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain.datasets import NewDataset
from discreet.serve.domain.requests import OFFERED, asked_of, key_of, kinds_for
from discreet.serve.service import Service
from tests.serve.conftest import Site, agree, curator, populate, quick

N = 2_000
BOUNDS = dc.Bounds(outcome=(0, 10), covariates={"age": (0, 1)}, weight=None)
POLICY = dc.Policy.declare(bounds=BOUNDS, by={"age": 2}, treated=[False, True])
COLUMNS = {"instrument": "offer", "before": "earlier", "event": "died"}
OPTIONS = {
    "policy-value": {"policy": POLICY.to_dict()},
    "survival": {"horizon": 8.0, "measure": "risk", "times": [2.0, 4.0]},
    "uplift": {"by": {"age": 2}},
    "cate": {"correction": "DR"},
    "ate": {"cap": 9.0},
}


def rows(seed=1):
    """Records that every estimator can be fitted to."""
    rng = np.random.default_rng(seed)
    age, offer = rng.uniform(0, 1, N), rng.integers(0, 2, N)
    treated = ((rng.random(N) > 0.6) | ((rng.random(N) > 0.4) & (offer == 1))).astype(int)
    earlier = np.clip(4.0 + age + rng.normal(0, 1, N), 0, 10)
    days = np.clip(earlier + treated + rng.normal(0, 1, N), 0, 10)
    facts = {"age": age, "treated": treated, "days": days, "earlier": earlier, "offer": offer}
    return pa.table(facts | {"died": rng.integers(0, 2, N), "heft": rng.uniform(0.1, 3, N)})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    settings = quick(f"sqlite:///{folder}/service.db", folder)
    tokens = populate(settings, folder)
    pq.write_table(rows(), folder / "offers.parquet")
    service = Service.of(settings)
    facts = {"title": "Offers", "source": "offers.parquet", "outcome": "days", "treatment": "treated"}
    facts |= {"bounds": BOUNDS.to_dict(), "epsilon": 900.0, "delta": 1e-4}
    agree(service, curating.register(service, curator(), NewDataset(id="offers", columns=COLUMNS, **facts)))
    agree(service, curating.allow(service, curator(), "offers", "analyst", Budget(epsilon=900.0, delta=1e-4)))
    service.close()
    app = create_app(settings)
    with TestClient(app) as client:
        yield Site(settings, client, app.state.service, tokens)


@pytest.mark.parametrize("kind", OFFERED)
def test_every_kind_can_be_asked_for_and_gives_its_own_release(site, kind):
    asked = {"kind": kind, "epsilon": 2.0, "delta": 1e-6} | OPTIONS.get(kind, {})
    name = site.released(dataset="offers", **asked)
    made = io.read(site.get(f"/api/v1/releases/{name}").json()["release"])
    entry = OFFERED[kind]
    if entry.load().__name__ != "DPCATEFunction":
        assert isinstance(made, entry.load().release_types)
    assert made.guarantee.epsilon <= 2.0 * (1 + 1e-12)


def test_every_estimator_that_is_not_a_papers_is_offered():
    assert {entry.name for entry in REGISTRY.values() if not entry.name.startswith("papers.")} <= set(OFFERED)


@pytest.mark.parametrize("kind", ["late", "difference-in-differences", "survival"])
def test_a_data_set_without_the_column_is_refused_before_anything_is_reserved(site, kind):
    answer = site.ask(kind=kind, epsilon=1.0, **OPTIONS.get(kind, {}))
    assert answer.status_code == 422
    assert OFFERED[kind].columns[0].name in answer.json()["text"]
    assert kind not in kinds_for(catalogue.by_id(site.service.engine, "clinic"))


def test_a_request_cannot_name_a_column(site):
    for name, column in (("instrument", "age"), ("columns", {"instrument": "age"}), ("outcome", "age")):
        answer = site.ask(dataset="offers", kind="late", epsilon=1.0, **{name: column})
        assert answer.status_code == 422
        assert name in answer.json()["where"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"instrument": "days"}, "instrument|days"),
        ({"instrument": "nothing"}, "nothing"),
        ({"lottery": "offer"}, "instrument"),
        ({"event": "age"}, "event|age"),
        ({"weight": "heft"}, "weight"),
    ],
)
def test_a_column_is_checked_when_a_data_set_is_registered(site, columns, words):
    facts = {"title": "Offers", "source": "offers.parquet", "outcome": "days", "treatment": "treated"}
    facts |= {"bounds": BOUNDS.to_dict(), "epsilon": 1.0, "delta": 1e-5}
    with pytest.raises(InvalidInput, match=words):
        curating.register(site.service, curator(), NewDataset(id="other", columns=columns, **facts))


def test_requests_of_the_first_version_keep_their_keys(site):
    """Stored releases answer them for ever: what was written down is not written otherwise."""
    dataset = catalogue.by_id(site.service.engine, "clinic")
    for plain in (
        {"kind": "ate", "epsilon": 1.0, "delta": 1e-6},
        {"kind": "cate", "epsilon": 1.0, "delta": 1e-6, "covariates": ["age"]},
        {"kind": "uplift", "epsilon": 1.0, "by": {"age": 4, "sex": "levels"}},
        {"kind": "dp-cate", "epsilon": 1.0, "delta": 1e-6, "calibration": "proved"},
    ):
        assert asked_of(plain).plain() == plain
    same = [{"kind": "cate", "epsilon": 1.0, "delta": 1e-6} | more for more in ({}, {"correction": "R"})]
    assert len({key_of(dataset, asked_of(each)) for each in same}) == 1
