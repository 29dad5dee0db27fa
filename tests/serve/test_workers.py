"""Who works on requests, in which order, within which limits, and what becomes of them when it ends."""

import json
import logging
import os
import shutil
import signal
import sys
import threading
import time

import pytest
import sqlalchemy as sa

from discreet.serve import worker
from discreet.serve.domain import budgets, jobs
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain.requests import Asked
from discreet.serve.errors import FAILURES
from discreet.serve.operations import fleet
from discreet.serve.operations.beside import Workers
from discreet.serve.operations.supervisor import FitProcess
from discreet.serve.service import Service
from discreet.serve.storage.clock import Clock
from discreet.serve.storage.schema import jobs as table
from discreet.serve.storage.schema import workers
from evidence.service.restarts import at_random_points
from tests.serve.conftest import populate, quick
from tests.serve.test_requests import asked_for, somebody, still

__all__ = ["still"]

# What the process that fits does in place of drawing figures, which comes after the charge.
HANGS = "import time; time.sleep(600)"
GROWS = "import time; held = bytearray(900_000_000); time.sleep(600)"
DIES = "import os; os.kill(os.getpid(), 9)"


def claimed(service):
    """Requests in the order in which they are claimed, by person."""
    order = []
    while (row := jobs.claim(service)) is not None:
        order.append(row)
    return order


def rows(service):
    with service.engine.begin() as connection:
        return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


def test_one_person_with_many_requests_does_not_keep_others_waiting(still):
    service, _ = still
    for k in range(6):
        asked_for(service, 0.3 + k / 100)
    mine = asked_for(service, 0.2, "colleague")
    order = claimed(service)
    assert [row["person"] for row in order].index("colleague") == 1
    assert order[1]["id"] == mine
    # Those of one person keep their order.
    assert [row["created"] for row in order if row["person"] == "analyst"] == sorted(
        row["created"] for row in order if row["person"] == "analyst"
    )


def test_people_take_turns_whoever_asked_first(still):
    service, _ = still
    for person in ("analyst", "colleague"):
        for k in range(3):
            asked_for(service, 0.2 + k / 100, person)
    assert [row["person"] for row in claimed(service)] == ["analyst", "colleague"] * 3


def test_small_requests_of_a_person_come_before_large_ones(still):
    service, _ = still
    large = asked_for(service, 0.3)
    dataset = catalogue.find(service.engine, somebody(), "clinic")
    asked = Asked(kind="ate", epsilon=0.3, delta=1e-7, covariates=["age"])
    small = jobs.submit(service, somebody(), dataset, asked)["job"]
    assert [row["id"] for row in claimed(service)] == [small, large]


def test_the_order_of_the_queue_does_not_follow_a_private_number_of_records(still):
    service, _ = still
    trial = catalogue.by_id(service.engine, "trial")
    asked = Asked(kind="difference-in-means", epsilon=0.3)
    job = jobs.submit(service, somebody(), trial, asked)["job"]
    (row,) = [row for row in rows(service) if row["id"] == job]
    assert row["size"] == 10_000 * (2 + len(trial.bounds.names))


def test_a_worker_leaves_to_newer_ones_what_it_cannot_do(still, caplog):
    service, _ = still
    newer, old = asked_for(service, 0.3), asked_for(service, 0.4)
    with service.engine.begin() as connection:
        connection.execute(sa.update(table).where(table.c.id == newer).values(needs=jobs.WORK + 1))
    assert [row["id"] for row in claimed(service)] == [old]
    assert jobs.beyond(service) == 1
    with caplog.at_level(logging.WARNING, "discreet.serve"):
        fleet.Member(service).report()
    assert "newer worker" in caplog.text
    assert (jobs.find(service, somebody(), newer)["state"], jobs.claim(service)) == ("queued", None)
    # The same for a kind of request that this version does not have.
    with service.engine.begin() as connection:
        connection.execute(sa.update(table).where(table.c.id == newer).values(needs=1, kind="of tomorrow"))
    assert jobs.claim(service) is None
    assert jobs.beyond(service) == 1


def test_a_request_that_was_not_charged_when_its_worker_had_to_end_goes_back_into_the_queue(still):
    service, ahead = still
    job, draining = asked_for(service, 0.3), threading.Event()
    draining.set()
    worker.work(service, jobs.claim(service), draining)
    assert jobs.find(service, somebody(), job)["state"] == "queued"
    assert service.ledger.account("clinic").requests == {"reserved": 1}
    worker.work(service, jobs.claim(service))
    ahead[0] = 1e4
    assert jobs.find(service, somebody(), job)["state"] == "done"


def test_a_request_that_was_charged_when_its_worker_had_to_end_is_ended_first(still, monkeypatch):
    service, ahead = still
    job, draining = asked_for(service, 0.3), threading.Event()
    charge = budgets.charge
    monkeypatch.setattr(budgets, "charge", lambda *args: (charge(*args), draining.set()))
    worker.work(service, jobs.claim(service), draining)
    ahead[0] = 1e4
    assert jobs.find(service, somebody(), job)["state"] == "done"


def test_a_worker_that_ends_charges_nothing_more_and_waits_for_what_it_has_begun(still, monkeypatch):
    service, _ = still
    for epsilon in (0.3, 0.4):
        asked_for(service, epsilon)
    begun, go_on = threading.Event(), threading.Event()

    def slowly(*args):
        charge(*args)
        begun.set()
        go_on.wait(30)

    charge = budgets.charge
    monkeypatch.setattr(budgets, "charge", slowly)
    working = worker.Worker(service)
    working.start()
    assert begun.wait(30)
    ending = threading.Thread(target=working.end)
    ending.start()
    time.sleep(0.2)
    assert ending.is_alive()
    go_on.set()
    ending.join(30)
    assert service.ledger.account("clinic").requests == {"settled": 1, "reserved": 1}
    assert sorted(row["state"] for row in rows(service)) == ["done", "queued"]


def patched(body):
    """The command of a process that fits and does something else after the charge."""
    code = (
        "from discreet.serve import worker\nfrom discreet.serve.operations import fitting\n"
        f"def instead(made):\n    {body}\n"
        "worker._figures = instead\nfitting.main()\n"
    )
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(("body", "reason"), [(HANGS, "time"), (GROWS, "memory"), (DIES, "the process ended")])
def test_a_fit_beyond_its_limits_is_ended_and_stays_charged(tmp_path, body, reason, caplog):
    settings = quick(f"sqlite:///{tmp_path}/l.db", tmp_path, work=False, lease=60.0, fit_memory=800, fit_seconds=15.0)
    populate(settings, tmp_path)
    service = Service.of(settings)
    job = asked_for(service, 0.3)
    fits = FitProcess(settings, patched(body))
    fits.start()
    try:
        fits.run(service, jobs.claim(service), over := threading.Event())
        over.set()
    finally:
        fits.end()
    time.sleep(jobs.until_seen(service, job))
    found = jobs.find(service, somebody(), job)
    assert (found["state"], found["failure"], found["charged"]) == ("failed", "limits-charged", True)
    assert found["text"] == FAILURES["limits-charged"]
    assert service.ledger.account("clinic").requests == {"failed": 1}
    assert reason in [record.facts["reason"] for record in caplog.records if "reason" in getattr(record, "facts", {})]
    service.close()


def test_a_process_of_its_own_works_on_one_request_after_the_other(tmp_path):
    settings = quick(f"sqlite:///{tmp_path}/p.db", tmp_path, work=False)
    populate(settings, tmp_path)
    service = Service.of(settings)
    names = [asked_for(service, epsilon) for epsilon in (0.3, 0.4)]
    fits = FitProcess(settings)
    fits.start()
    first = fits._process.pid
    for _ in names:
        fits.run(service, jobs.claim(service), threading.Event())
    assert fits._process.pid == first
    fits.end()
    time.sleep(max(jobs.until_seen(service, name) for name in names))
    assert {jobs.find(service, somebody(), name)["state"] for name in names} == {"done"}
    service.close()


def test_signals_do_not_reach_what_fits(tmp_path):
    """A terminal and a service manager send signals to all processes at once; only the worker decides."""
    settings = quick(f"sqlite:///{tmp_path}/s.db", tmp_path, work=False)
    populate(settings, tmp_path)
    service = Service.of(settings)
    job = asked_for(service, 0.3)
    fits = FitProcess(settings)
    fits.start()
    for each in (signal.SIGTERM, signal.SIGINT):
        os.kill(fits._process.pid, each)
    fits.run(service, jobs.claim(service), threading.Event())
    fits.end()
    assert [row["state"] for row in rows(service)] == ["done"]
    assert job == rows(service)[0]["id"]
    service.close()


def test_a_restart_at_random_moments_loses_no_budget():
    """More moments, and two workers, are in docs/evidence/service.md."""
    found = at_random_points(2, 1, n=2_000, seed=5)
    assert found.lost == found.charged_twice == 0
    assert found.ended == {"done": found.requests}
    assert found.budget_adds_up
    assert found.intact


def test_workers_beside_a_server_are_started_again_and_end_with_it(tmp_path, monkeypatch):
    settings = quick(f"sqlite:///{tmp_path}/b.db", tmp_path, work=False)
    populate(settings, tmp_path)
    monkeypatch.setattr("discreet.serve.operations.beside._FIRST", 0.1)
    service, beside = Service.of(settings), Workers(settings)
    beside.start()
    try:
        _until(lambda: fleet.present(service))
        (first,) = fleet.present(service)
        beside._processes[0].kill()
        _until(lambda: any(each["id"] != first["id"] for each in fleet.present(service)))
    finally:
        beside.end()
    assert [process.returncode for process in beside._processes] == [0]
    # Who leaves takes its line back; who was killed did not.
    assert [each["id"] for each in fleet.present(service)] == [first["id"]]
    service.close()


def _until(met):
    for _ in range(1_200):
        if met():
            return
        time.sleep(0.1)
    raise AssertionError("what was waited for did not come")


def test_no_work_is_begun_while_the_disk_is_almost_full(still, monkeypatch, caplog):
    service, _ = still
    asked_for(service, 0.3)
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5_000_000))
    working = worker.Worker(service)
    with caplog.at_level(logging.WARNING, "discreet.serve"):
        working.start()
        time.sleep(1.0)
        working.end()
    assert "almost full" in caplog.text
    assert service.ledger.account("clinic").requests == {"reserved": 1}


def test_a_full_disk_is_told_as_such_and_charges_nothing(site):
    service = site.service
    with service.engine.connect() as connection:
        limit = connection.exec_driver_sql("PRAGMA page_count").scalar()
    spent = service.ledger.account("clinic").spent.epsilon

    @sa.event.listens_for(service.engine, "begin")
    def full(connection):
        connection.exec_driver_sql(f"PRAGMA max_page_count={limit}")

    try:
        long = {"kind": "difference-in-means", "epsilon": 0.3, "covariates": ["age"] * 200}
        answers = [site.post("/api/v1/datasets/clinic/requests", long | {"epsilon": 0.3 + k / 1e4}) for k in range(60)]
    finally:
        sa.event.remove(service.engine, "begin", full)
        with service.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count=1073741823")
    refused = [answer for answer in answers if answer.status_code == 503]
    assert refused
    assert refused[0].json()["error"] == "unavailable"
    assert "disk" not in refused[0].text
    made = [answer.json()["job"] for answer in answers if answer.status_code == 202]
    _until(lambda: service.ledger.account("clinic").requests.get("reserved", 0) == 0)
    assert service.ledger.account("clinic").spent.epsilon <= spent + 0.31 * len(made)


def test_a_worker_that_starts_after_the_clock_was_set_back_keeps_its_job(still):
    """Its lease counts on from what others have seen: nobody takes over what it has just begun."""
    service, _ = still
    wall, steady = [time.time()], [0.0]
    service.clock = Clock(service.engine, wall=lambda: wall[0], steady=lambda: steady[0])
    service.clock.remember(at_once=True)
    steady[0] += 50.0
    wall[0] += 50.0 - 3_600.0
    # While the system's clock is behind, the time is written down every second.
    service.clock.remember()
    other = Service.of(service.settings)
    other.clock = Clock(other.engine, wall=lambda: wall[0], steady=lambda: steady[0])
    assert other.clock.now() >= service.clock.now() - 1.5
    asked_for(service, 0.3)
    row = jobs.claim(other)
    assert jobs.recover(service) == 0
    assert jobs.ours(other, row)
    other.close()


def test_workers_say_that_they_are_there_and_are_forgotten(still):
    service, ahead = still
    with fleet.Member(service):
        _until(lambda: fleet.present(service))
        (mine,) = fleet.present(service)
        assert (mine["id"], mine["work"]) == (service.name, jobs.WORK)
    assert fleet.present(service) == []
    fleet.Member(service).report()
    ahead[0] += 60.0
    assert fleet.present(service) == []
    ahead[0] += 90_000.0
    service.name = "another"
    fleet.Member(service).report()
    with service.engine.begin() as connection:
        assert [row.id for row in connection.execute(sa.select(workers))] == ["another"]
    assert json.dumps(fleet.present(service))
