"""From a request to its release: charged before a record is read, and never for free."""

import json
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget
from discreet.releases.average import Release
from discreet.serve import worker
from discreet.serve.domain import administration as curating
from discreet.serve.domain import budgets, jobs, releases
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import interactive_functions as functions
from discreet.serve.domain.users import Identity
from discreet.serve.errors import FAILURES, Refusal
from discreet.serve.service import Service
from discreet.serve.storage.clock import Clock
from discreet.serve.storage.schema import answers
from discreet.serve.storage.schema import jobs as table
from tests.serve.conftest import ROW, agree, populate, quick
from tests.serve.conftest import curator as curator_


def spent(site, dataset="clinic"):
    return site.service.ledger.account(dataset).spent.epsilon


def somebody(person="analyst"):
    return Identity(
        person=person, name="", role="analyst", scopes=frozenset({"read", "request"}), token="", expires=1e18
    )


def asked_for(service, epsilon, person="analyst"):
    """The job of a request, made without a server."""
    dataset = catalogue.find(service.engine, somebody(person), "clinic")
    asked = jobs.Asked(kind="difference-in-means", epsilon=epsilon, delta=1e-7)  # type: ignore[attr-defined]
    return jobs.submit(service, somebody(person), dataset, asked)["job"]


@pytest.fixture
def still(tmp_path):
    """A service that works on nothing by itself, and a clock that the test moves."""
    settings = quick(f"sqlite:///{tmp_path}/still.db", tmp_path, first_tick=300.0, work=False)
    populate(settings, tmp_path)
    made, ahead = Service.of(settings), [0.0]
    made.clock = Clock(made.engine, wall=lambda: time.time() + ahead[0])
    yield made, ahead
    made.close()


def state(site, job):
    with site.service.engine.begin() as connection:
        row = connection.execute(sa.select(table).where(table.c.id == job)).mappings().one()
    return row, site.service.ledger.request(int(row["reservation"])).state


def test_a_request_becomes_a_release_with_its_guarantee(site):
    before = spent(site)
    made = site.ask(kind="ate", epsilon=0.5)
    assert made.status_code == 202
    found = site.wait(made.json()["job"])
    assert (found["state"], found["charged"], found["progress"]) == ("done", True, 100)
    plain = site.get(f"/api/v1/releases/{found['release']}").json()["release"]
    release = Release.from_dict(plain)
    assert release.guarantee.status == "proved"
    assert release.guarantee.epsilon == 0.5
    assert release.n == 1500
    assert spent(site) == pytest.approx(before + 0.5)
    assert state(site, made.json()["job"])[1] == "settled"
    assert site.get(f"/api/v1/releases/{found['release']}/picture").content[:4] == b"\x89PNG"


def test_an_identical_request_is_answered_for_free(site):
    first = site.released(epsilon=0.51)
    before = spent(site)
    again = site.ask(epsilon=0.51).json()
    assert again == {"release": first, "job": None, "charged": False}
    assert spent(site) == before
    last = [line for line in site.get("/api/v1/curator/log", "curator").json() if line["action"] != "note"][-1]
    assert (last["action"], last["actor"]) == ("answer", "analyst")


def test_somebody_elses_unpublished_release_answers_nothing(site):
    """Getting it for free would tell that somebody else has asked the same."""
    first = site.released(epsilon=0.12)
    before = spent(site)
    made = site.ask(epsilon=0.12, person="colleague").json()
    assert made["release"] is None
    assert site.wait(made["job"], "colleague")["state"] == "done"
    assert spent(site) == pytest.approx(before + 0.12)
    assert site.get(f"/api/v1/releases/{first}", "colleague").status_code == 404


def test_a_published_release_can_be_seen_by_those_who_may_use_the_data_set(site):
    name = site.released(epsilon=0.13)
    assert site.get(f"/api/v1/releases/{name}", "colleague").status_code == 404
    assert site.post(f"/api/v1/releases/{name}/publish", person="colleague").status_code == 404
    assert site.post(f"/api/v1/releases/{name}/publish").json()["published"] is True
    assert site.get(f"/api/v1/releases/{name}", "colleague").status_code == 200
    other = site.released(dataset="trial", epsilon=0.13)
    site.post(f"/api/v1/releases/{other}/publish")
    assert site.get(f"/api/v1/releases/{other}", "colleague").status_code == 404


def test_analysts_see_neither_others_requests_nor_data_sets_that_are_closed_to_them(site):
    made = site.ask(epsilon=0.14).json()
    assert site.get(f"/api/v1/requests/{made['job']}", "colleague").status_code == 404
    assert site.post(f"/api/v1/requests/{made['job']}/stop", person="colleague").status_code == 404
    assert made["job"] not in site.get("/api/v1/requests", "colleague").text
    for path in ("/api/v1/datasets/trial", "/api/v1/datasets/trial/dummy", "/datasets/trial", "/datasets/trial/plan"):
        closed, missing = site.get(path, "colleague"), site.get(path.replace("trial", "missing"), "colleague")
        assert closed.status_code == missing.status_code == 404
        assert closed.text.replace("trial", "") == missing.text.replace("missing", "")
    assert site.ask("trial", "colleague", epsilon=0.1).status_code == 404
    budget = site.get("/api/v1/datasets/clinic", "colleague").json()["budget"]
    assert [each["name"] for each in budget["analysts"]] == ["colleague"]
    site.wait(made["job"])


def test_a_number_of_records_that_is_private_appears_nowhere(site):
    dataset = catalogue.by_id(site.service.engine, "trial")
    assert dataset.n == 1500
    texts = [
        site.get(path).text for path in ("/api/v1/datasets", "/api/v1/datasets/trial", "/datasets", "/datasets/trial")
    ]
    plan = site.post("/api/v1/datasets/trial/plan", {"epsilon": 1.0, "delta": 1e-6})
    assert plan.status_code == 422
    assert "1500" not in "".join(texts).replace("The clinic", "") or "1,500" not in site.get("/datasets/trial").text
    shown = site.get("/api/v1/datasets/trial").json()
    assert shown["records"] is None
    assert shown["neighbours"] == "add-remove"
    assert site.post("/api/v1/datasets/trial/plan", {"epsilon": 1.0, "delta": 1e-6, "n": 3000}).json()["n"] == 3000
    plain = site.get(f"/api/v1/releases/{site.released(dataset='trial', epsilon=2.0)}").json()["release"]
    assert plain["guarantee"]["neighbours"] == "add-remove"
    assert plain["n"] != 1500


def test_nothing_that_analysts_see_names_where_the_records_are(site):
    shown = "".join(site.get(path).text for path in ("/api/v1/datasets", "/datasets/clinic", "/datasets/clinic/plan"))
    assert "parquet" not in shown
    assert site.settings.data not in shown


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"epsilon": 0}, "cannot be read"),
        ({"epsilon": -1}, "cannot be read"),
        ({"epsilon": "many"}, "cannot be read"),
        ({"epsilon": 1, "delta": 1}, "cannot be read"),
        ({"epsilon": 1e-9}, "cannot be read"),
        ({"epsilon": 1, "delta": 1e-300}, "delta"),
        ({"epsilon": 1, "kind": "ate", "delta": None}, "delta"),
        ({"epsilon": 1, "kind": "everything"}, "cannot be read"),
        ({"epsilon": 1, "covariates": ["age", "height"]}, "public schema"),
        ({"epsilon": 1, "kind": "cate", "covariates": []}, "at least one"),
        ({"epsilon": 1, "kind": "uplift"}, "segments"),
        ({"epsilon": 1, "kind": "uplift", "by": {"height": 3}}, "covariate"),
        ({"epsilon": 1, "kind": "uplift", "by": {"age": [30, 20]}}, "edges"),
        ({"epsilon": 1, "kind": "uplift", "by": {"age": 64, "severity": 64}}, "coarsely"),
        ({"epsilon": 1, "by": {"age": 4}}, "by belongs"),
        ({"epsilon": 1, "unknown": 4}, "cannot be read"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_is_reserved(site, asked, words):
    before, requests = spent(site), len(site.service.ledger.requests())
    answer = site.ask(**asked)
    assert answer.status_code == 422
    assert words in answer.json()["text"]
    assert (spent(site), len(site.service.ledger.requests())) == (before, requests)


def test_more_than_is_left_is_refused_in_fixed_words(site):
    for person, epsilon in (("analyst", 99.0), ("colleague", 1.5)):
        answer = site.ask(person=person, epsilon=epsilon)
        assert (answer.status_code, answer.json()) == (409, Refusal("budget").plain())
    assert site.ask("missing", epsilon=0.1).json() == Refusal("no-dataset").plain()


def thaw(service):
    """Lift a freeze, as two curators do."""
    agree(service, curating.freeze(service, curator_(), "clinic", frozen=False))


def test_a_frozen_data_set_releases_nothing_until_it_is_thawed(site):
    stored = site.released(epsilon=0.15)
    switch = "/api/v1/curator/datasets/clinic/freeze"
    assert site.post(switch, {"frozen": True, "reason": "a question"}, "curator").json()["frozen"] is True
    assert site.ask(epsilon=0.16).json()["error"] == "frozen"
    assert site.get(f"/api/v1/releases/{stored}").status_code == 200
    thawing = site.post(switch, {"frozen": False}, "curator")
    assert thawing.json()["frozen"] is True
    site.agreed(thawing)
    assert site.wait(site.ask(epsilon=0.16).json()["job"])["state"] == "done"


def test_a_data_set_that_freezes_while_a_request_waits_charges_nothing(site, monkeypatch):
    before = spent(site)
    monkeypatch.setattr(jobs, "claim", lambda service: None)
    job = site.ask(epsilon=0.17).json()["job"]
    monkeypatch.undo()
    site.service.ledger.freeze("clinic", curator="curator")
    try:
        found = site.wait(job)
    finally:
        thaw(site.service)
    assert (found["state"], found["failure"], found["charged"]) == ("failed", "frozen", False)
    assert spent(site) == before


def test_a_lowered_cap_stops_a_request_that_waits(still):
    service, ahead = still
    job = asked_for(service, 40.0)
    curating.set_cap(service, curator_(), "clinic", Budget(epsilon=3.0, delta=1e-4))
    worker.work(service, jobs.claim(service))
    ahead[0] = 1e4
    found = jobs.find(service, somebody(), job)
    assert (found["state"], found["failure"], found["charged"]) == ("failed", "budget", False)
    assert service.ledger.account("clinic").spent.epsilon == 0.0


def test_a_waiting_request_can_be_stopped_and_gives_its_budget_back(site, monkeypatch):
    before = spent(site)
    monkeypatch.setattr(jobs, "claim", lambda service: None)
    job = site.ask(epsilon=0.18).json()["job"]
    assert spent(site) > before
    stopped = site.post(f"/api/v1/requests/{job}/stop").json()
    assert (stopped["state"], stopped["text"], stopped["charged"]) == ("stopped", FAILURES["stopped"], False)
    assert spent(site) == before
    assert site.post(f"/api/v1/requests/{job}/stop").json()["error"] == "finished"


def test_a_request_that_is_stopped_while_it_works_stays_charged(site, monkeypatch):
    before = spent(site)
    working, go_on = threading.Event(), threading.Event()

    def slowly(*args, **kwargs):
        working.set()
        go_on.wait(20)
        return original(*args, **kwargs)

    original = worker.sources.opened  # type: ignore[attr-defined]
    monkeypatch.setattr(worker.sources, "opened", slowly)  # type: ignore[attr-defined]
    job = site.ask(epsilon=0.19).json()["job"]
    assert working.wait(20)
    assert site.get(f"/api/v1/requests/{job}").json()["state"] == "running"
    assert site.post(f"/api/v1/requests/{job}/stop").json()["stopping"] is True
    go_on.set()
    found = site.wait(job)
    assert (found["state"], found["failure"], found["charged"]) == ("stopped", "stopped-charged", True)
    assert spent(site) == pytest.approx(before + 0.19)
    assert state(site, job)[1] == "failed"


@pytest.mark.parametrize("moment", ["while it ends", "after it ended", "after it failed"])
def test_stopping_a_request_does_not_tell_whether_it_had_ended(still, moment, monkeypatch):
    """The answer is the same as long as the schedule has not shown the end, or one could ask how long it took."""
    service, ahead = still
    job = asked_for(service, 0.3)
    row = jobs.claim(service)
    if moment == "after it failed":
        monkeypatch.setattr(
            "discreet.estimators.difference_in_means.DifferenceInMeans.fit_table", lambda *_, **__: 1 / 0
        )
    with monkeypatch.context() as patch:
        if moment == "while it ends":
            settle = budgets.settle
            patch.setattr(budgets, "settle", lambda *args: (settle(*args), jobs.stop(service, somebody(), job)))
        worker.work(service, row)
    if moment != "while it ends":
        assert jobs.stop(service, somebody(), job)["stopping"] is True
    seen = jobs.find(service, somebody(), job)
    assert (seen["state"], seen["stopping"]) == ("running", True)
    ahead[0] = 1e4
    found = jobs.find(service, somebody(), job)
    assert (found["state"], found["failure"], found["release"]) == ("stopped", "stopped-charged", None)
    assert releases.listed(service.engine, service.clock, somebody()) == []
    assert asked_for(service, 0.3) is not None


def test_a_failure_after_charging_is_charged_and_says_so_and_nothing_else(site, monkeypatch, caplog):
    before, secret = spent(site), "column days holds 40.25 in record 7"

    def broken(*_args, **_kwargs):
        raise InvalidInput(secret)

    monkeypatch.setattr("discreet.estimators.difference_in_means.DifferenceInMeans.fit_table", broken)
    job = site.ask(epsilon=0.21).json()["job"]
    found = site.wait(job)
    assert (found["state"], found["failure"], found["charged"]) == ("failed", "failed-charged", True)
    assert found["text"] == FAILURES["failed-charged"]
    assert spent(site) == pytest.approx(before + 0.21)
    assert secret not in json.dumps(found) + caplog.text


def test_a_source_that_changed_or_disappeared_is_told_before_anything_is_charged(tmp_path, site):
    file = Path(site.settings.data) / "trial.parquet"
    kept, before = file.read_bytes(), spent(site, "trial")
    table_ = pq.read_table(file)
    for change in (file.unlink, lambda: pq.write_table(table_.slice(1), file)):
        change()
        found = site.wait(site.ask("trial", epsilon=0.22).json()["job"])
        assert (found["failure"], found["charged"]) == ("source", False)
    assert spent(site, "trial") == before
    checked = site.post("/api/v1/curator/datasets/trial/recheck", person="curator")
    assert checked.json()["version"] == 2
    assert site.wait(site.ask("trial", epsilon=0.22).json()["job"])["state"] == "done"
    file.write_bytes(kept)
    site.post("/api/v1/curator/datasets/trial/recheck", person="curator")


def test_a_source_that_changes_while_it_is_read_releases_nothing(still):
    service, ahead = still
    job = asked_for(service, 0.3)
    original = worker.sources.opened  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:

        def touched(source, **facts):
            Path(source).touch()
            return original(source, **facts)

        patch.setattr(worker.sources, "opened", touched)  # type: ignore[attr-defined]
        worker.work(service, jobs.claim(service))
    ahead[0] = 1e4
    assert jobs.find(service, somebody(), job)["failure"] == "failed-charged"
    assert releases.listed(service.engine, service.clock, curator_()) == []


def test_that_a_job_has_ended_shows_at_points_of_the_schedule_only(site):
    now = site.service.clock.now()
    tick = site.service.settings.first_tick
    row = dict.fromkeys(column.name for column in table.c) | {
        "kind": "ate",
        "request": "{}",
        "state": "done",
        "started": now - tick,
        "release": "r",
        "progress": 99,
    }
    early = jobs.seen(site.service, row | {"visible": now + 60})
    assert (early["state"], early["release"]) == ("running", None)
    assert jobs.seen(site.service, row | {"visible": now - 1})["release"] == "r"
    failed = row | {"state": "failed", "failure": "failed-charged", "visible": now + 60}
    assert (jobs.seen(site.service, failed)["state"], jobs.seen(site.service, failed)["failure"]) == ("running", None)


def test_a_release_is_nowhere_to_be_seen_before_its_request_may_be_seen_to_have_ended(still):
    service, _ = still
    # A clock that stands still unless the test moves it: how long the work takes must not matter.
    start = service.clock.now() + 1.0
    now = [start]
    service.clock = Clock(service.engine, wall=lambda: now[0], steady=lambda: 0.0)
    job = asked_for(service, 0.3)
    worker.work(service, jobs.claim(service))
    mine, curator = (service.engine, service.clock, somebody()), curator_()
    (made,) = releases.listed(service.engine, service.clock, curator)
    assert releases.listed(*mine) == []
    for act in (releases.find, releases.publish):
        with pytest.raises(Refusal, match="no release"):
            act(*mine, made["id"])
    # An identical request is one like any other until then.
    assert asked_for(service, 0.3) not in (None, job)
    now[0] = start + 299.0
    assert releases.listed(*mine) == []
    assert jobs.find(service, somebody(), job)["state"] == "running"
    now[0] = start + 301.0
    assert [each["id"] for each in releases.listed(*mine)] == [made["id"]]
    assert jobs.find(service, somebody(), job)["release"] == made["id"]
    assert asked_for(service, 0.3) is None
    # The date says when it could be seen, not when it was computed.
    with service.engine.begin() as connection:
        row = connection.execute(sa.select(table).where(table.c.id == job)).mappings().one()
    assert made["created"] == row["visible"] == row["started"] + 300.0 == start + 300.0


def test_a_clock_that_is_set_back_holds_up_no_release(still):
    service, _ = still
    wall, steady = [time.time()], [0.0]
    service.clock = Clock(service.engine, wall=lambda: wall[0], steady=lambda: steady[0])
    service.clock.now()
    wall[0] -= 3_600.0
    job = asked_for(service, 0.3)
    worker.work(service, jobs.claim(service))
    assert jobs.find(service, somebody(), job)["state"] == "running"
    steady[0] += 301.0
    assert jobs.find(service, somebody(), job)["state"] == "done"
    assert jobs.until_seen(service, job) == 0.0


def test_a_server_begins_the_next_request_when_the_last_one_may_be_seen_to_have_ended(tmp_path):
    settings = quick(f"sqlite:///{tmp_path}/queue.db", tmp_path, first_tick=1.0)
    populate(settings, tmp_path)
    service = Service.of(settings)
    names = [asked_for(service, epsilon) for epsilon in (0.3, 0.4)]
    working = worker.Worker(service)
    working.start()
    try:
        for _ in range(200):
            with service.engine.begin() as connection:
                rows = [
                    connection.execute(sa.select(table).where(table.c.id == name)).mappings().one() for name in names
                ]
            if rows[1]["started"]:
                break
            time.sleep(0.05)
    finally:
        working.end()
        service.close()
    assert rows[1]["started"] >= rows[0]["visible"] > rows[0]["started"] + 0.99


def test_what_analysts_see_of_a_budget_does_not_tell_when_or_how_requests_ended(still):
    service, _ = still
    dataset = catalogue.by_id(service.engine, "clinic")

    def shown(identity):
        return budgets.bars(service, dataset, identity)

    def curators():
        return shown(curator_())["composed"]

    seen = []
    asked_for(service, 0.35)
    row = jobs.claim(service)
    charge = budgets.charge
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "charge", lambda *args: (charge(*args), seen.extend([shown(somebody()), curators()])))
        worker.work(service, row)
    assert service.ledger.account("clinic").requests == {"settled": 1}
    assert shown(somebody()) == seen[0]
    # Curators see what the release recorded: it is not the same to the last digit.
    assert curators() != seen[1]
    asked_for(service, 0.4)
    row = jobs.claim(service)
    budgets.charge(service, row["reservation"])
    before = shown(somebody("colleague"))
    budgets.abandon(service, row["reservation"])
    assert service.ledger.account("clinic").requests == {"failed": 1, "settled": 1}
    assert shown(somebody("colleague")) == before


@pytest.mark.parametrize(
    ("asked", "interval"),
    [
        ({"kind": "cate", "epsilon": 3.0}, True),
        ({"kind": "uplift", "epsilon": 2.0, "delta": None, "by": {"severity": 4, "sex": "levels"}}, True),
        ({"kind": "uplift", "epsilon": 2.0, "by": {"age": "auto"}}, True),
        ({"kind": "dp-cate", "epsilon": 2.0}, False),
    ],
)
def test_released_functions_answer_any_number_of_questions(site, asked, interval):
    name = site.released(**asked)
    before = spent(site)
    path = f"/api/v1/releases/{name}/effects"
    rows = [ROW | {"severity": float(severity)} for severity in range(0, 20, 2)]
    first = site.post(path, {"rows": rows}).json()["effects"]
    assert site.post(path, {"rows": rows}).json()["effects"] == first
    assert len(first) == len(rows)
    assert set(first[0]) == ({"effect", "low", "high"} if interval else {"effect"})
    assert all(-40 <= each["effect"] <= 40 for each in first)
    assert site.post(path, {"rows": rows}, "colleague").status_code == 404
    assert spent(site) == before
    page = site.get(f"/releases/{name}/explore")
    assert page.status_code == 200
    part = site.post(f"/releases/{name}/explore", data={"x-0": 50, "x-1": 5, "x-2": 0, "x-3": 1})
    assert part.status_code == 200


@pytest.mark.parametrize(
    "rows",
    [
        [{}],
        [ROW | {"height": 1}],
        [{name: value for name, value in ROW.items() if name != "sex"}],
        [ROW | {"age": "old"}],
        [ROW | {"sex": "x"}],
        [ROW | {"sex": 1}],
        [ROW, ROW | {"age": "old"}],
        [],
        "rows",
    ],
)
def test_people_who_do_not_fit_the_schema_are_refused(site, rows):
    name = site.released(kind="cate", epsilon=3.0)
    answer = site.post(f"/api/v1/releases/{name}/effects", {"rows": rows})
    assert answer.status_code == 422
    assert set(answer.json()) <= {"error", "text", "where"}


def test_an_average_effect_cannot_be_asked_about_people(site):
    name = site.released(epsilon=0.5)
    assert site.post(f"/api/v1/releases/{name}/effects", {"rows": [ROW]}).json()["error"] == "no-function"


def test_claimed_methods_need_a_data_set_that_admits_them(site):
    asked = {"kind": "dp-cate", "epsilon": 1.0, "calibration": "claimed"}
    assert site.ask("trial", **asked).json()["error"] == "claimed"


def test_the_iterative_function_remembers_every_answer_through_a_restart(site):
    name = site.released(kind="dp-cate", epsilon=1.01, calibration="claimed")
    path = f"/api/v1/releases/{name}/effects"
    assert site.get(f"/api/v1/releases/{name}").json()["release"]["effects"] == []
    first = site.post(path, {"rows": [ROW, ROW | {"age": 70}]}).json()["effects"]
    # Another server, and one that has been started anew, have nothing in memory.
    functions._held.clear()
    again = site.post(path, {"rows": [ROW | {"age": 70}, ROW]}).json()["effects"]
    assert again == first[::-1]
    functions._held.clear()
    more = site.post(path, {"rows": [ROW | {"age": 30}, ROW]}).json()["effects"]
    assert more[1] == first[0]
    plain = site.get(f"/api/v1/releases/{name}").json()["release"]
    assert plain["guarantee"]["status"] == "claimed"
    np.testing.assert_allclose(plain["effects"], [each["effect"] for each in [*first, more[0]]])


@pytest.mark.parametrize("how", ["frozen", "no-dataset"])
def test_the_iterative_function_says_nothing_new_of_a_data_set_that_is_frozen_or_closed(site, how):
    name = site.released(kind="dp-cate", epsilon=1.02, calibration="claimed")
    path, age = f"/api/v1/releases/{name}/effects", {"frozen": 64, "no-dataset": 65}[how]
    new = ROW | {"age": age}
    first = site.post(path, {"rows": [ROW]}).json()["effects"]
    if how == "frozen":
        site.service.ledger.freeze("clinic", curator="curator")
    else:
        catalogue.grant(site.service.engine, "clinic", "analyst", allowed=False)
    try:
        before = len(site.get(f"/api/v1/releases/{name}").json()["release"]["effects"])
        for rows in ([new], [ROW, new]):
            assert site.post(path, {"rows": rows}).json()["error"] == how
        assert site.post(path, {"rows": [ROW]}).json()["effects"] == first
        assert len(site.get(f"/api/v1/releases/{name}").json()["release"]["effects"]) == before
    finally:
        if how == "frozen":
            thaw(site.service)
        else:
            catalogue.grant(site.service.engine, "clinic", "analyst")
    assert site.post(path, {"rows": [new]}).status_code == 200


def test_an_answer_of_the_iterative_function_is_durable_before_it_is_given(site, monkeypatch):
    name = site.released(kind="dp-cate", epsilon=1.0, calibration="claimed")
    path = f"/api/v1/releases/{name}/effects"

    def broken(self, line):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(functions._Keeper, "append", broken)
        assert site.post(path, {"rows": [ROW | {"age": 81}]}).status_code == 500
    with site.service.engine.begin() as connection:
        count = connection.scalar(sa.select(sa.func.count()).where(answers.c.release == name))
    given = site.post(path, {"rows": [ROW | {"age": 81}]}).json()["effects"]
    functions._held.clear()
    assert site.post(path, {"rows": [ROW | {"age": 81}]}).json()["effects"] == given
    with site.service.engine.begin() as connection:
        assert connection.scalar(sa.select(sa.func.count()).where(answers.c.release == name)) == count + 1


def test_a_reservation_whose_server_fell_silent_is_given_back(site, monkeypatch):
    before = spent(site)

    def dies(*args):
        reserve(*args)
        raise OSError("the server is gone")

    reserve = budgets.reserve
    with monkeypatch.context() as patch:
        patch.setattr(budgets, "reserve", dies)
        assert site.ask(epsilon=0.31).status_code == 500
    assert spent(site) == pytest.approx(before + 0.31)
    assert 0.31 not in [job["request"]["epsilon"] for job in site.get("/api/v1/requests").json()["items"]]
    for _ in range(200):
        if spent(site) == before:
            break
        time.sleep(0.05)
    assert spent(site) == before


def test_jobs_survive_servers_that_fall_silent(tmp_path):
    """What was not charged is taken up again; what was charged has failed, and stays charged."""
    settings = quick(f"sqlite:///{tmp_path}/jobs.db", tmp_path, lease=0.2, work=False)
    populate(settings, tmp_path)
    first, second = Service.of(settings), Service.of(settings)
    analyst = somebody()
    dataset = catalogue.find(first.engine, analyst, "clinic")
    asked = [jobs.Asked(kind="difference-in-means", epsilon=epsilon, delta=1e-7) for epsilon in (0.3, 0.4)]  # type: ignore[attr-defined]
    names = [jobs.submit(first, analyst, dataset, each)["job"] for each in asked]
    claimed = [jobs.claim(first) for _ in names]
    assert [row["id"] for row in claimed] == names
    assert jobs.claim(second) is None
    budgets.charge(first, claimed[1]["reservation"])
    time.sleep(0.3)
    assert jobs.recover(second) == 2
    # That a server fell silent shows on the schedule as well.
    time.sleep(jobs.until_seen(second, names[1]))
    assert [jobs.find(second, analyst, name)["state"] for name in names] == ["queued", "failed"]
    assert jobs.find(second, analyst, names[1])["failure"] == "lost-charged"
    row = jobs.claim(second)
    assert row["id"] == names[0]
    # The first server comes back: the job is no longer its own, and nothing that it does counts.
    assert not jobs.renew(first, names[0], 50)
    with first.engine.begin() as connection:
        assert not jobs.end(first, connection, claimed[0], 0.0, state="done", release="forged")
    worker.work(second, row)
    time.sleep(jobs.until_seen(second, names[0]))
    assert jobs.find(second, analyst, names[0])["state"] == "done"
    assert len(releases.listed(second.engine, second.clock, analyst)) == 1
    account = second.ledger.account("clinic")
    assert account.spent.epsilon == pytest.approx(0.7)


def test_a_request_that_waits_ends_when_access_is_withdrawn(still):
    service, ahead = still
    job = asked_for(service, 0.3, "colleague")
    catalogue.grant(service.engine, "clinic", "colleague", allowed=False)
    worker.work(service, jobs.claim(service))
    ahead[0] = 1e4
    found = jobs.find(service, somebody("colleague"), job)
    assert (found["state"], found["failure"], found["charged"]) == ("failed", "access", False)
    assert service.ledger.account("clinic").requests == {"cancelled": 1}


def test_a_server_that_comes_back_in_time_keeps_its_job(still):
    """Another server saw that the lease had run out, and before it could act the first one renewed it."""
    service, ahead = still
    other = Service.of(service.settings)
    other.clock = service.clock
    asked_for(service, 0.3)
    row = jobs.claim(service)
    budgets.charge(service, row["reservation"])
    ahead[0] = 10.0
    with pytest.MonkeyPatch.context() as patch:
        taken_over = jobs._taken_over
        patch.setattr(jobs, "_taken_over", lambda *args: (jobs.renew(service, row["id"], 5), taken_over(*args))[1])
        assert jobs.recover(other) == 0
    assert service.ledger.account("clinic").requests == {"charged": 1}
    assert jobs.ours(service, row)
    other.close()


def test_a_server_that_lost_its_job_does_not_change_what_became_of_it(still):
    """Its charge is refused because the next server has charged: that must not fail the next server's work."""
    service, ahead = still
    other = Service.of(service.settings)
    other.clock = service.clock
    job = asked_for(service, 0.3)
    first = jobs.claim(service)
    ahead[0] = 10.0
    assert jobs.recover(other) == 1
    second = jobs.claim(other)
    assert second["id"] == first["id"] == job
    budgets.charge(other, second["reservation"])
    with pytest.MonkeyPatch.context() as patch:
        # The first server believes that the job is still its own, until it wants to charge.
        patch.setattr(worker._Heart, "listen", lambda self: None)
        worker.work(service, first)
    assert other.ledger.account("clinic").requests == {"charged": 1}
    assert jobs.ours(other, second)
    # The other way round: what the first has charged meanwhile is lost to the second, and said to be charged.
    worker.give_up(other, second, "stopped", "lost-charged")
    ahead[0] = 1e4
    assert jobs.find(service, somebody(), job)["failure"] == "lost-charged"
    assert other.ledger.account("clinic").requests == {"failed": 1}
    other.close()


def test_a_request_that_a_lost_server_has_charged_is_not_said_to_be_free(still):
    service, ahead = still
    job = asked_for(service, 0.3)
    row = jobs.claim(service)
    ahead[0] += 10 * service.settings.lease
    assert jobs.recover(service) == 1
    budgets.charge(service, row["reservation"])
    stopped = jobs.stop(service, somebody(), job)
    assert (stopped["state"], stopped["failure"], stopped["charged"]) == ("stopped", "stopped-charged", True)
    assert service.ledger.request(int(row["reservation"])).state == "failed"


def test_what_is_reserved_for_nobody_is_given_back_and_nothing_else(still, monkeypatch):
    service, ahead = still
    waits, stopped = asked_for(service, 0.3), asked_for(service, 0.4)
    cost = service.ledger.requests()[0].cost
    # Not the service's own: a fit elsewhere that is charged to the same ledger.
    foreign = service.ledger.reserve("clinic", cost, analyst="analyst", about={"method": "ATE"})

    def dies(*_):
        raise OSError("the server is gone")

    with monkeypatch.context() as patch:
        patch.setattr(budgets, "cancel", dies)
        with pytest.raises(OSError, match="gone"):
            jobs.stop(service, somebody(), stopped)

    def slowly(*args):
        # While the ledger keeps this request waiting, others think that its server is gone.
        ahead[0] += 10.0
        jobs.recover(service)
        return reserve(*args)

    reserve = budgets.reserve
    with monkeypatch.context() as patch:
        patch.setattr(budgets, "reserve", slowly)
        with pytest.raises(Refusal):
            asked_for(service, 0.5)
        patch.setattr(budgets, "cancel", dies)
        with pytest.raises(OSError, match="gone"):
            asked_for(service, 0.6)
    assert service.ledger.account("clinic").requests == {"cancelled": 1, "reserved": 4}
    assert jobs.give_back(service) == 2
    left = service.ledger.requests("clinic", state="reserved")
    assert [(request.id, request.about.get("job")) for request in left] == [(left[0].id, waits), (foreign, None)]
    assert jobs.give_back(service) == 0


def test_the_log_does_not_grow_with_what_is_asked_for_nothing(still, monkeypatch):
    service, ahead = still
    asked_for(service, 0.3)
    worker.work(service, jobs.claim(service))
    ahead[0] = 301.0
    assert asked_for(service, 0.3) is None
    lines = service.ledger.head.seq
    assert {asked_for(service, 0.3) for _ in range(5)} == {None}
    assert service.ledger.head.seq == lines
    monkeypatch.setattr(jobs, "MOST_IN_VAIN", 3)
    for _ in range(3):
        jobs.stop(service, somebody(), asked_for(service, 0.4))
    with pytest.raises(Refusal, match="Too many"):
        asked_for(service, 0.4)
    assert asked_for(service, 0.3) is None
    assert asked_for(service, 0.4, "colleague")
    ahead[0] += 86_401.0
    # Those that wait count as well, or all of them could be stopped at once.
    for epsilon in (0.41, 0.42, 0.43):
        assert asked_for(service, epsilon)
    with pytest.raises(Refusal, match="Too many"):
        asked_for(service, 0.44)
    assert asked_for(service, 0.3) is None


def test_how_requests_of_others_ended_is_for_curators(site):
    site.released(epsilon=0.12)
    shown = [site.get("/api/v1/datasets/clinic", who).json()["budget"]["requests"] for who in ("colleague", "curator")]
    assert shown[0] == {}
    assert shown[1]["settled"] >= 1


def test_a_figure_that_cannot_be_drawn_costs_no_release(site, monkeypatch):
    def broken(_):
        raise ValueError

    monkeypatch.setattr(releases, "drawn_figures", broken)
    assert site.released(epsilon=0.11)
