"""One malicious curator tries everything that takes two: refused, or waiting for another, and in the log."""

import json
import re
import shutil
import sqlite3
import time
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from discreet.datasets._demo import PUBLIC as BOUNDS
from discreet.exceptions import InvalidInput, LedgerRefused
from discreet.ledger import Cost
from discreet.ledger.governance.search import LogFilter
from discreet.privacy.budget import Budget
from discreet.serve.app import create_app
from discreet.serve.domain import administration as curating
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import users as people
from discreet.serve.domain.datasets import NewDataset
from discreet.serve.errors import Refusal
from discreet.serve.governance import approvals, log_view, whereabouts
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from tests.serve.conftest import agree, curator, quick

CURATING = "/api/v1/curator"


def new(name, source="clinic.parquet", **more):
    """What a curator sends to register records."""
    facts = {"id": name, "title": f"The {name}", "source": source, "outcome": "days", "treatment": "treated"}
    return facts | {"bounds": BOUNDS.to_dict(), "epsilon": 5.0, "delta": 1e-5} | more


def lines(site, **wanted):
    """Lines of the log, as a curator reads them."""
    found = [json.loads(entry.line) for entry in site.service.ledger.log()]
    return [line for line in found if all(line[name] == value for name, value in wanted.items())]


def notes(site, event):
    return [line for line in lines(site, action="note") if line["body"]["event"] == event]


def alone(site, answer):
    """A deed that waits for another curator, whom the one who proposed it cannot replace."""
    assert answer.status_code in (200, 201, 202), answer.text
    number = answer.json()["proposal"]
    assert number is not None
    assert lines(site, seq=number)[0]["action"] == "propose"
    refused = site.post(f"{CURATING}/approvals/{number}?again=true", person="curator")
    assert (refused.status_code, refused.json()["error"]) == (409, "twice")
    tried = notes(site, "refused")[-1]
    assert (tried["actor"], tried["body"]["proposal"]) == ("curator", number)
    return number


def done(site, number):
    """A colleague takes a proposal out of the way."""
    assert site.client.delete(f"{CURATING}/approvals/{number}", headers=site.headers("second")).status_code == 200
    assert lines(site, action="reject")[-1]["body"]["proposal"] == number


def test_one_curator_registers_nothing(site):
    number = alone(site, site.post(f"{CURATING}/datasets", new("alone"), "curator"))
    assert site.get("/api/v1/datasets/alone", "curator").status_code == 404
    assert "alone" not in site.service.ledger.datasets()
    done(site, number)
    # What was rejected cannot be approved any more, by anybody.
    assert site.post(f"{CURATING}/approvals/{number}", person="second").status_code == 404


def test_one_curator_neither_sets_nor_raises_a_cap(site):
    raised = alone(site, site.put(f"{CURATING}/datasets/clinic/cap", {"epsilon": 900.0, "delta": 1e-4}))
    assert site.service.ledger.account("clinic").cap.epsilon == 60.0
    more = alone(site, site.put(f"{CURATING}/datasets/clinic/analysts/colleague", {"epsilon": 9.0, "delta": 1e-5}))
    assert site.service.ledger.account("clinic").quotas["colleague"].cap.epsilon == 1.0
    first = alone(site, site.put(f"{CURATING}/datasets/trial/analysts/colleague", {"epsilon": 0.1, "delta": 1e-7}))
    assert "colleague" not in site.service.ledger.account("trial").quotas
    assert site.get("/api/v1/datasets/trial", "colleague").status_code == 404
    for number in (raised, more, first):
        done(site, number)


def test_one_curator_gives_no_access_back_that_was_taken(site):
    path = f"{CURATING}/datasets/clinic/analysts/colleague"
    assert site.client.delete(path, headers=site.headers("curator")).status_code == 200
    taken = notes(site, "access taken")[-1]
    assert (taken["actor"], taken["dataset"], taken["body"]["whom"]) == ("curator", "clinic", "colleague")
    number = alone(site, site.put(path, {"epsilon": 1.0, "delta": 1e-5}))
    assert site.get("/api/v1/datasets/clinic", "colleague").status_code == 404
    site.post(f"{CURATING}/approvals/{number}", person="second")
    assert site.get("/api/v1/datasets/clinic", "colleague").status_code == 200


@pytest.mark.parametrize("way", ["same file", "copy", "link", "pattern", "other database name"])
def test_one_curator_registers_no_records_a_second_time(site, way, tmp_path):
    """By location or by content: the approver is told, and has to say that it is known."""
    home = Path(site.settings.data)
    name = "again-" + re.sub(r"\W", "-", way)
    if way == "copy":
        shutil.copy(home / "clinic.parquet", home / "renamed.parquet")
    elif way == "link":
        (home / "linked.parquet").unlink(missing_ok=True)
        (home / "linked.parquet").hardlink_to(home / "clinic.parquet")
    source = {"copy": "renamed.parquet", "link": "linked.parquet", "pattern": "clin*.parquet"}.get(
        way, "clinic.parquet"
    )
    number = alone(site, site.post(f"{CURATING}/datasets", new(name, source), "curator"))
    # Another test makes a copy of the same records, perhaps before this one.
    assert set(lines(site, seq=number)[0]["body"]["facts"]["again"]) - {"exchanged"} == {"clinic"}
    refused = site.post(f"{CURATING}/approvals/{number}", person="second")
    assert (refused.status_code, refused.json()["error"]) == (409, "again")
    assert name not in site.service.ledger.datasets()
    done(site, number)


@pytest.mark.parametrize("name", ["trial", "main.trial", "v", "TRIAL"])
def test_a_table_of_sqlite_is_registered_again_by_none_of_its_names(house, tmp_path, name):
    with sqlite3.connect(tmp_path / "ward.db") as base:
        _records().to_pandas().to_sql("trial", base, index=False)
        base.execute("CREATE VIEW v AS SELECT * FROM trial")
    base.close()
    service = house()
    agree(service, curating.register(service, curator(), NewDataset(**new("ward", "sqlite:///ward.db#trial"))))
    number = curating.register(service, curator(), NewDataset(**new("again", f"sqlite:///ward.db#{name}")))
    assert service.ledger.proposal(number).facts["again"] == ["ward"]
    # As an earlier version wrote it down.
    assert whereabouts.in_common(["file:1:2#trial"], ["file:1:2"])


def test_two_proposals_of_the_same_records_do_not_pass_unseen(site):
    """Neither says that the records are registered, because neither is when they are proposed."""
    home = Path(site.settings.data)
    table = pq.read_table(home / "clinic.parquet").slice(3)
    pq.write_table(table, home / "fresh.parquet")
    one = site.post(f"{CURATING}/datasets", new("fresh-one", "fresh.parquet"), "curator")
    other = site.post(f"{CURATING}/datasets", new("fresh-two", "fresh.parquet"), "curator").json()["proposal"]
    site.agreed(one)
    refused = site.post(f"{CURATING}/approvals/{other}?again=true", person="second")
    assert (refused.status_code, refused.json()["error"]) == (409, "again-since")
    assert notes(site, "refused")[-1]["body"]["what"] == "registering records a second time"
    done(site, other)


def test_one_curator_does_not_exchange_records_for_registered_ones(site):
    """A file that was registered is replaced by a copy of another data set's, and checked again."""
    home = Path(site.settings.data)
    pq.write_table(pq.read_table(home / "clinic.parquet").slice(7), home / "exchanged.parquet")
    site.agreed(site.post(f"{CURATING}/datasets", new("exchanged", "exchanged.parquet"), "curator"))
    shutil.copy(home / "clinic.parquet", home / "exchanged.parquet")
    assert site.post(f"{CURATING}/datasets/exchanged/recheck", person="curator").status_code == 200
    assert site.service.ledger.account("exchanged").frozen
    assert "clinic" in lines(site, action="freeze", dataset="exchanged")[-1]["body"]["reason"]


def test_one_curator_lifts_no_freeze(site):
    path = f"{CURATING}/datasets/trial/freeze"
    assert site.post(path, {"frozen": True, "reason": "under review"}, "second").json()["frozen"] is True
    number = alone(site, site.post(path, {"frozen": False}, "curator"))
    assert site.service.ledger.account("trial").frozen
    site.post(f"{CURATING}/approvals/{number}", person="second")
    assert not site.service.ledger.account("trial").frozen


def test_one_curator_makes_no_token_of_an_analyst_who_may_spend(site):
    """Whoever makes a token can keep a copy: with it, a curator would spend as the analyst."""
    answer = site.post(f"{CURATING}/people/analyst/tokens", {}, "curator")
    stolen = {"Authorization": f"Bearer {answer.json()['token']}"}
    number = alone(site, answer)
    assert site.client.get("/api/v1/me", headers=stolen).status_code == 401
    made = notes(site, "token made")[-1]
    assert (made["actor"], made["body"]["whom"], made["body"]["waits"]) == ("curator", "analyst", number)
    site.post(f"{CURATING}/approvals/{number}", person="second")
    assert site.client.get("/api/v1/me", headers=stolen).json()["person"] == "analyst"


def test_one_curator_ends_with_no_token_of_an_analyst_by_taking_access_first(site):
    """A token that was made while the analyst could use nothing would work once access is given back."""
    path = f"{CURATING}/datasets/clinic/analysts/colleague"
    assert site.client.delete(path, headers=site.headers("curator")).status_code == 200
    answer = site.post(f"{CURATING}/people/colleague/tokens", {}, "curator")
    copy = {"Authorization": f"Bearer {answer.json()['token']}"}
    number = alone(site, answer)
    site.agreed(site.put(path, {"epsilon": 1.0, "delta": 1e-5}))
    assert site.client.get("/api/v1/datasets/clinic", headers=copy).status_code == 401
    (waits,) = [each for each in approvals.waiting(site.service) if each["id"] == number]
    assert waits["text"] == "put a token for colleague in force, of which curator may have a copy"
    done(site, number)
    assert site.client.get("/api/v1/datasets/clinic", headers=copy).status_code == 401


@pytest.mark.parametrize("way", ["with the account", "before the first grant"])
def test_one_curator_ends_with_no_token_of_an_analyst_who_is_given_access_later(house, way):
    service = house()
    agree(service, curating.register(service, curator(), NewDataset(**new("clinic"))))
    if way == "with the account":
        token, number = curating.admit(service, curator(), "bob", "Bob")
    else:
        people.add_person(service.engine, service.clock, person="bob", name="Bob", role="analyst")
        token, number = curating.make_token(service, curator(), "bob")
    agree(service, curating.allow(service, curator(), "clinic", "bob", Budget(epsilon=1.0, delta=1e-6)))
    assert people.by_token(service.engine, service.clock, token) is None
    agree(service, number)
    assert people.by_token(service.engine, service.clock, token).person == "bob"


def test_one_curator_grants_nothing_to_an_account_of_their_own(site):
    made = site.post(f"{CURATING}/people", {"person": "puppet", "name": "Me"}, "curator")
    assert made.status_code == 201
    number = alone(site, site.put(f"{CURATING}/datasets/clinic/analysts/puppet", {"epsilon": 1.0, "delta": 1e-6}))
    assert not catalogue.may_use(site.service.engine, "clinic", "puppet")
    assert notes(site, "person added")[-1]["body"]["whom"] == "puppet"
    done(site, number)
    # Nor do curators use data sets themselves.
    for person in ("curator", "second"):
        answer = site.put(f"{CURATING}/datasets/clinic/analysts/{person}", {"epsilon": 1.0, "delta": 1e-6})
        assert answer.status_code == 422
    assert site.ask(person="curator", epsilon=0.1).status_code == 403


def test_one_curator_revokes_no_other(site):
    victim = people.tokens_of(site.service.engine, "second")[0]["id"]
    answer = site.client.delete(f"{CURATING}/tokens/{victim}", headers=site.headers("curator"))
    assert answer.json()["revoked"] is None
    number = alone(site, answer)
    assert site.get("/api/v1/me", "second").status_code == 200
    assert any(line["body"]["what"] == "revoking another curator alone" for line in notes(site, "refused"))
    done(site, number)
    # Their own tokens, and those of analysts, they end alone.
    own = people.add_token(site.service.engine, site.service.clock, person="curator")
    ended = site.client.delete(f"{CURATING}/tokens/{own.split('_')[1]}", headers=site.headers("curator"))
    assert ended.json()["proposal"] is None
    assert notes(site, "token revoked")[-1]["body"]["whom"] == "curator"


def test_one_curator_makes_no_curator(site):
    page = site.post(f"{CURATING}/people", {"person": "crony", "name": "C", "role": "curator"}, "curator")
    assert page.status_code == 422
    assert site.post(f"{CURATING}/people/second/tokens", {}, "curator").json()["error"] == "other-curator"


def test_what_was_proposed_is_what_is_carried_out(site):
    """Somebody who can write to the service's tables, and not to the log, exchanges a proposal that waits."""
    home = Path(site.settings.data)
    pq.write_table(pq.read_table(home / "clinic.parquet").slice(11), home / "honest.parquet")
    number = site.post(f"{CURATING}/datasets", new("honest", "honest.parquet"), "curator").json()["proposal"]
    with site.service.engine.begin() as connection:
        text = (
            "UPDATE serve_proposals SET payload = replace(payload, 'honest.parquet', 'clinic.parquet') WHERE id = :id"
        )
        connection.execute(sa.text(text), {"id": number})
    refused = site.post(f"{CURATING}/approvals/{number}", person="second")
    assert (refused.status_code, refused.json()["error"]) == (409, "changed-proposal")
    assert "honest" not in site.service.ledger.datasets()
    done(site, number)


def test_a_source_that_changes_between_proposal_and_approval_is_not_registered(site):
    home = Path(site.settings.data)
    table = pq.read_table(home / "clinic.parquet").slice(13)
    pq.write_table(table, home / "moves.parquet")
    number = site.post(f"{CURATING}/datasets", new("moves", "moves.parquet"), "curator").json()["proposal"]
    pq.write_table(table.slice(1), home / "moves.parquet")
    refused = site.post(f"{CURATING}/approvals/{number}", person="second")
    assert (refused.status_code, "has changed" in refused.json()["text"]) == (422, True)
    done(site, number)


def test_no_line_of_the_log_opens_a_data_set_or_sets_a_cap_by_one_curator(site):
    """Whatever the service does: the ledger itself knows no such line."""
    ledger = site.service.ledger
    for deed in (
        lambda: ledger.open("behind", epsilon=1.0, curator="curator"),
        lambda: ledger.allow("trial", "puppet", epsilon=1.0, curator="curator"),
        lambda: ledger.unfreeze("clinic", curator="curator"),
    ):
        with pytest.raises(LedgerRefused, match="takes two curators here"):
            deed()


def test_a_password_in_a_source_is_in_no_line_of_the_log(site):
    shown = curating._shown("postgresql://ada:hush@host/base#study.people", site.settings.data)
    assert shown == "postgresql://ada@host/base#study.people"


def test_a_deed_that_cannot_be_carried_out_keeps_no_other_from_it(house, caplog):
    service = house()
    bad = curating.make_token(service, curator(), "analyst")[1]
    token, good = curating.make_token(service, curator(), "analyst")
    for number in (bad, good):
        service.ledger.approve(number, curator="second")
    with service.engine.begin() as connection:
        connection.execute(sa.text("UPDATE serve_proposals SET payload = '{}' WHERE id = :id"), {"id": bad})
    assert approvals.finish(service) == 1
    assert people.by_token(service.engine, service.clock, token) is not None
    assert f"proposal {bad}: Refusal" in caplog.text


# Expiry, clocks, houses with one curator.


@pytest.fixture
def house(tmp_path):
    """A service with people and a file of records, and nothing registered."""
    pq.write_table(_records(), tmp_path / "clinic.parquet")

    def made(**settings):
        service = Service.of(quick(f"sqlite:///{tmp_path}/service.db", tmp_path, work=False, **settings))
        known = {person["id"] for person in people.everybody(service.engine)}
        for person, role in (("curator", "curator"), ("second", "curator"), ("analyst", "analyst")):
            if person not in known:
                people.add_person(service.engine, service.clock, person=person, name=person, role=role)
        opened.append(service)
        return service

    opened = []
    yield made
    for service in opened:
        service.close()


def _records():
    from discreet.datasets import draw
    from discreet.datasets._demo import table

    study = draw("clinic", 200, 1)
    return table(study.X, study.T, study.Y, "days")


def test_a_proposal_expires(house, monkeypatch):
    service = house()
    number = service.ledger.propose_deed("token", curator="curator", days=1e-9, payload=None)
    time.sleep(1.1)
    with pytest.raises(LedgerRefused, match="expired"):
        service.ledger.approve(number, curator="second")
    assert approvals.waiting(service) == []


def test_a_clock_that_is_set_back_revives_no_proposal(house, monkeypatch):
    service = house()
    number = curating.register(service, curator(), NewDataset(**new("clinic")))
    monkeypatch.setattr("discreet.ledger._journal.datetime", _Clock("2020-01-01T00:00:00+00:00"))
    with pytest.raises(Refusal, match="clock of this machine is behind the last line of the log") as refused:
        approvals.approve(service, curator("second"), number)
    assert refused.value.code == "not-now"
    monkeypatch.undo()
    agree(service, number)
    service.ledger.verify()


class _Clock:
    """A clock that shows one time."""

    def __init__(self, time_):
        self._time = datetime.fromisoformat(time_)

    def now(self, zone):
        return self._time.astimezone(zone)


def test_a_house_with_one_curator_says_so_in_its_log_and_decides_at_once(house):
    service = house(curators=1)
    assert curating.register(service, curator(), NewDataset(**new("clinic"))) is None
    assert curating.allow(service, curator(), "clinic", "analyst", Budget(epsilon=1.0, delta=1e-6)) is None
    assert curating.set_cap(service, curator(), "clinic", Budget(epsilon=6.0, delta=1e-5)) is None
    assert service.ledger.account("clinic").cap.epsilon == 6.0
    assert catalogue.may_use(service.engine, "clinic", "analyst")
    first = service.ledger.log()[0]
    assert (first.actor, first.action, first.body["curators"]) == ("operator", "govern", 1)
    # When there is a second one, two are needed from then on; the way back is the operator's, and shows.
    stricter = house(curators=2)
    assert curating.set_cap(stricter, curator(), "clinic", Budget(epsilon=7.0, delta=1e-5)) is not None
    rules = [entry.body["curators"] for entry in stricter.ledger.log() if entry.action == "govern"]
    assert rules == [1, 2]


def test_what_was_approved_before_a_server_stopped_is_carried_out_by_the_next(house, monkeypatch):
    service = house()
    number = curating.register(service, curator(), NewDataset(**new("clinic")))
    with monkeypatch.context() as patch:
        patch.setattr(approvals, "finish", lambda service: 0)
        approvals.approve(service, curator("second"), number)
    assert catalogue.by_id(service.engine, "clinic") is None
    assert approvals.finish(service) == 1
    assert catalogue.by_id(service.engine, "clinic").n == 200
    assert approvals.finish(service) == 0


def test_settings_of_governance_are_checked(tmp_path):
    for bad, words in (({"curators": 0}, "curators"), ({"anchor_fails": "ignore"}, "anchor_fails")):
        with pytest.raises(InvalidInput, match=words):
            Settings(**bad)


# The log.


def test_people_tokens_signs_in_reads_and_downloads_are_in_the_log(site):
    name = site.released(epsilon=0.31)
    client, _ = site.sign_in()
    for _ in range(3):
        assert client.get(f"/releases/{name}").status_code == 200
        assert client.get(f"/releases/{name}/release.json").status_code == 200
        assert client.get(f"/releases/{name}/release.png").status_code == 200
    read = [line for line in notes(site, "release read") if line["body"]["release"] == name]
    loaded = [line for line in notes(site, "release downloaded") if line["body"]["release"] == name]
    assert [(line["actor"], line["dataset"]) for line in read] == [("analyst", "clinic")]
    assert sorted(line["body"]["form"] for line in loaded) == ["JSON", "PNG"]
    assert {line["body"].get("by") for line in notes(site, "signed in") if line["actor"] == "analyst"} == {
        None,
        "a program",
    }
    assert all(line["time"].endswith("+00:00") for line in lines(site))
    site.service.ledger.verify()


def test_the_log_page_filters_pages_explains_and_exports(site):
    site.released(epsilon=0.32)
    page = site.get("/curator/log?who=analyst&what=reserve&dataset=clinic", "curator").text
    assert "analyst asked for a release (difference-in-means) of clinic" in page
    assert "second" not in page.partition("<tbody>")[2]
    assert "No line matches" in site.get("/curator/log?since=2020-01-01&until=2020-01-02", "curator").text
    assert site.get("/curator/log?since=yesterday", "curator").status_code == 422
    for _ in range(log_view.PAGE):
        site.service.ledger.note("release read", actor="analyst", dataset="clinic", release="x")
    first = site.get("/curator/log", "curator").text
    assert "Older" in first
    assert "Newer" in site.get("/curator/log?page=2", "curator").text
    table = site.get("/curator/log.csv?who=analyst&what=reserve", "curator")
    head, *rows = table.text.splitlines()
    assert head == ",".join(log_view.COLUMNS)
    assert len(rows) == len([e for e in site.service.ledger.log() if e.action == "reserve" and e.actor == "analyst"])
    assert ",difference-in-means,0.32,1e-07," in table.text


def test_formulas_in_the_log_are_harmless_in_a_table(site):
    site.post(f"{CURATING}/datasets/trial/freeze", {"frozen": True, "reason": "=HYPERLINK(1)"}, "curator")
    site.service.ledger.note("=1+1", actor="curator")
    text = log_view.exported(site.service, LogFilter())
    assert not re.search(r"(^|,)[=+@]", text, re.MULTILINE)
    agree(site.service, curating.freeze(site.service, curator(), "trial", frozen=False))


def test_tokens_show_when_they_were_last_used(site):
    made = people.add_token(site.service.engine, site.service.clock, person="colleague", label="watched")
    known = {each["label"]: each for each in people.tokens_of(site.service.engine, "colleague")}
    assert known["watched"]["used"] is None
    site.client.get("/api/v1/me", headers={"Authorization": f"Bearer {made}"})
    known = {each["label"]: each for each in people.tokens_of(site.service.engine, "colleague")}
    assert known["watched"]["used"] == pytest.approx(site.service.clock.now(), abs=60)
    assert "last used" in site.get("/curator/people", "curator").text


# Sources.


def test_the_services_own_database_is_no_source_by_any_name(site, tmp_path):
    home = Path(site.settings.data)
    (home / "disguise.db").symlink_to(home / "service.db")
    (home / "twin.db").unlink(missing_ok=True)
    (home / "twin.db").hardlink_to(home / "service.db")
    for source in (
        "sqlite:///service.db#ledger_secret",
        "sqlite:///disguise.db#serve_tokens",
        "sqlite:///twin.db#serve_people",
        "service.db",
    ):
        answer = site.post(f"{CURATING}/datasets", new("own", source), "curator")
        assert answer.status_code == 422
        assert "own database" in answer.json()["text"], source
    answer = site.post(f"{CURATING}/datasets", new("own", "sqlite:///service.db#sqlite_master"), "curator")
    assert "catalogue" in answer.json()["text"]


@pytest.mark.parametrize(
    ("source", "hosts", "words"),
    [
        ("postgresql://inside/base#people", (), "may not read"),
        ("postgresql://inside/base#people", ("elsewhere",), "may not read"),
        ("postgresql://inside:1/base#people", ("inside:5432",), "may not read"),
        ("postgresql://inside/other#people", ("inside/base",), "may not read"),
        ("postgresql://inside,outside/base#people", ("inside",), "leave the rest out"),
        ("postgresql://inside/base?host=outside#people", ("inside",), "leave the rest out"),
        ("postgresql://inside/base?options=-csearch_path%3Dpg_catalog#people", ("inside",), "leave the rest out"),
        ("postgresql://127.0.0.1:1/base#people", ("127.0.0.1:1",), "cannot be read"),
    ],
)
def test_only_servers_of_the_configuration_are_read(site, source, hosts, words):
    from dataclasses import replace

    with pytest.raises(InvalidInput, match=words):
        whereabouts.located(source, replace(site.settings, hosts=hosts))


def test_further_directories_are_those_of_the_configuration(site, tmp_path):
    from dataclasses import replace

    file = tmp_path / "elsewhere.parquet"
    shutil.copy(Path(site.settings.data) / "clinic.parquet", file)
    with pytest.raises(InvalidInput, match="leaves"):
        whereabouts.located(str(file), site.settings)
    assert whereabouts.located(str(file), replace(site.settings, directories=(str(tmp_path),))) == str(file)


# One measure of budget.


def test_analysts_see_what_others_leave_and_never_whose(site):
    site.released(epsilon=0.33)
    seen = site.get("/api/v1/datasets/clinic", "colleague").json()["budget"]
    assert seen["whole"]["left"] < 1.0
    assert [each["name"] for each in seen["analysts"]] == ["colleague"]
    assert "analyst" not in re.findall(r"[a-z]+", json.dumps(seen | {"analysts": []}))
    assert seen["requests"] == {}


def test_what_if_agrees_with_what_happens(site):
    asked = {"kind": "difference-in-means", "epsilon": 0.41, "delta": 1e-7}
    before = site.post("/api/v1/datasets/clinic/what-if", asked).json()
    assert before["admitted"] is True
    page = site.get("/datasets/clinic/plan?kind=difference-in-means&epsilon=0.41&delta=1e-7").text
    assert "This request would leave" in page
    site.released(**asked)
    bars = site.get("/api/v1/datasets/clinic").json()["budget"]
    after = {"yours": bars["analysts"][0]["left_epsilon"], "all": bars["whole"]["left_epsilon"]}
    assert after == pytest.approx(before["would_leave"])
    too_much = site.post("/api/v1/datasets/clinic/what-if", asked | {"epsilon": 99.0}).json()
    assert (too_much["admitted"], too_much["would_leave"]) == (False, {"yours": None, "all": None})


# The anchor.


def test_an_older_copy_is_halted_and_what_the_anchor_knew_stays_spent(house, tmp_path):
    anchor = f"file:{tmp_path}/anchor/log.jsonl"
    (tmp_path / "anchor").mkdir()
    service = house(anchor=anchor)
    agree(service, curating.register(service, curator(), NewDataset(**new("clinic"))))
    service.ledger.charge(service.ledger.reserve("clinic", Cost(epsilon=1.0)))
    assert service.anchoring.follow(service.ledger)
    with sqlite3.connect(tmp_path / "service.db") as now, sqlite3.connect(tmp_path / "copy.db") as copy:
        now.backup(copy)
    now.close()
    copy.close()
    for _ in range(2):
        service.ledger.charge(service.ledger.reserve("clinic", Cost(epsilon=1.0)))
    assert service.anchoring.follow(service.ledger)
    spent, head = service.ledger.account("clinic").spent, service.ledger.head
    service.close()
    for tail in ("", "-wal", "-shm"):
        (tmp_path / f"service.db{tail}").unlink(missing_ok=True)
    (tmp_path / "copy.db").rename(tmp_path / "service.db")
    restored = house(anchor=anchor)
    assert restored.ledger.account("clinic").spent == spent
    assert "older copy" in restored.ledger.halted
    # Heads that were kept still verify.
    restored.ledger.verify(head)
    with pytest.raises(LedgerRefused, match="halted until two curators"):
        restored.ledger.reserve("clinic", Cost(epsilon=0.1))
    number = curating.resume(restored, curator())
    with pytest.raises(Refusal):
        approvals.approve(restored, curator(), number)
    assert restored.ledger.halted is not None
    agree(restored, number)
    assert restored.ledger.halted is None
    restored.ledger.reserve("clinic", Cost(epsilon=0.1))


def test_a_log_that_contradicts_its_anchor_charges_nothing(house, tmp_path):
    service = house(anchor=f"file:{tmp_path}/log.jsonl")
    agree(service, curating.register(service, curator(), NewDataset(**new("clinic"))))
    assert service.anchoring.follow(service.ledger)
    service.close()
    for tail in ("", "-wal", "-shm"):
        (tmp_path / f"service.db{tail}").unlink(missing_ok=True)
    # A new history under the old anchor.
    other = house()
    agree(other, curating.register(other, curator(), NewDataset(**new("clinic", title="Another"))))
    other.close()
    again = house(anchor=f"file:{tmp_path}/log.jsonl")
    assert not again.anchoring.follow(again.ledger)
    assert "contradict" in again.anchoring.problem or "rewritten" in again.anchoring.problem


@pytest.mark.parametrize(("fails", "goes_on"), [("freeze", False), ("warn", True)])
def test_an_anchor_that_cannot_be_reached_freezes_or_warns(site, tmp_path, fails, goes_on):
    settings = quick(
        site.settings.database, site.settings.data, work=False, anchor="file:/no/such/place/log", anchor_fails=fails
    )
    with TestClient(create_app(settings)) as client:
        # Another request in either case: what was asked already is answered from the store.
        asked = {"kind": "difference-in-means", "epsilon": 0.35 if goes_on else 0.36, "delta": 1e-7}
        answer = client.post("/api/v1/datasets/trial/requests", json=asked, headers=site.headers("analyst"))
        assert (answer.status_code == 202) == goes_on
        if not goes_on:
            assert answer.json()["error"] == "anchor"
        page = client.get("/curator", headers=site.headers("curator")).text
        # Where a line has to be written first, as at a token's first use of a day, the refusal is all there is.
        assert ("The log is not followed." in page and "check that it exists" in page) or (
            "the place that follows the log cannot be reached" in page
        )


def test_a_command_gets_new_lines_and_one_that_fails_is_told(house, tmp_path):
    service = house(anchor=f"command:tee -a {tmp_path}/mail.txt")
    agree(service, curating.register(service, curator(), NewDataset(**new("clinic"))))
    assert service.anchoring.follow(service.ledger)
    text = (tmp_path / "mail.txt").read_text()
    assert text.startswith("Head of the ledger: ")
    assert f"Head of the ledger: {service.ledger.head}" in text
    assert service.ledger.log()[-1].line in text
    broken = house(anchor="command:false")
    assert broken.anchoring.problem is not None
