"""What an anchor may do to a service: stop it and say so; never loosen anything, nor keep it from starting."""

import sqlite3
from contextlib import closing

import pytest

from discreet.exceptions import InvalidInput, LedgerUnavailable
from discreet.ledger.governance.anchors import anchor_at
from discreet.ledger.hash_chain import Head, Sealed, follow
from discreet.serve.domain import users as people
from discreet.serve.service import Service
from tests.serve.conftest import quick


@pytest.fixture
def started(tmp_path):
    """Starts a service with an anchor in a file."""
    opened = []

    def made(anchor="log.jsonl", **more):
        address = f"file:{tmp_path}/{anchor}"
        opened.append(
            Service.of(quick(f"sqlite:///{tmp_path}/service.db", tmp_path, work=False, anchor=address, **more))
        )
        return opened[-1]

    yield made
    for service in opened:
        service.close()


def go_back(folder, action):
    """Copy the database, do something, and put the copy back."""
    with closing(sqlite3.connect(folder / "service.db")) as now, closing(sqlite3.connect(folder / "copy.db")) as copy:
        now.backup(copy)
    action()
    for tail in ("", "-wal", "-shm"):
        (folder / f"service.db{tail}").unlink(missing_ok=True)
    (folder / "copy.db").rename(folder / "service.db")


def test_forged_lines_of_an_anchor_raise_no_cap(started, tmp_path):
    service = started()
    service.ledger.govern(1, curator="operator")
    service.ledger.open("icu", epsilon=1.0, curator="ada")
    assert service.anchoring.follow(service.ledger)
    head, now = service.ledger.head, service.ledger.log()[-1].time
    service.close()
    lines = []
    for action, actor, body in (
        ("propose", "ada", {"analyst": None, "epsilon": 999.0, "delta": None}),
        ("approve", "grace", {"proposal": head.seq + 1}),
    ):
        entry = follow(head, time=now, actor=actor, action=action, dataset="icu", body=body)
        lines.append(Sealed(entry, ""))
        head = Head(entry.seq, entry.hash)
    anchor_at(f"file:{tmp_path}/log.jsonl").append(lines)
    again = started()
    assert again.ledger.account("icu").cap.epsilon == 1.0
    assert "did not write" in again.anchoring.problem
    assert not again.anchoring.follow(again.ledger)
    assert not again.anchoring.follow(again.ledger)


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "{}",
        "[" * 100_000 + "}",
        '{"action":"no such","actor":"a","body":{},"dataset":"d","hash":"h","previous":"p","seq":"x","time":"t"}',
        '{"action":"open","actor":"a","body":[],"dataset":"d","hash":"h","previous":"p","seq":1,"time":"t"}',
    ],
)
def test_no_line_of_an_anchor_keeps_a_server_from_starting(started, tmp_path, line):
    service = started()
    service.close()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write(line + "\n")
    again = started()
    assert again.anchoring.problem is not None
    assert not again.anchoring.follow(again.ledger)


def test_a_line_of_the_right_seal_that_does_not_fit_keeps_no_server_from_starting(started, tmp_path):
    service = started()
    last = service.ledger.log()[-1]
    entry = follow(Head(last.seq, last.hash), time=last.time, actor="ada", action="freeze", dataset="nowhere", body={})
    from discreet.ledger._journal import _line_seal

    line = Sealed(entry, _line_seal(service.ledger._secret(), entry))
    service.close()
    anchor_at(f"file:{tmp_path}/log.jsonl").append([line])
    again = started()
    assert "no data set" in again.anchoring.problem
    assert not again.anchoring.follow(again.ledger)


def test_nothing_is_written_before_the_log_was_compared_with_its_anchor(started, tmp_path):
    """A line at the end of an older copy would contradict the anchor for good."""
    service = started()
    service.ledger.note("first", actor="ada")
    assert service.anchoring.follow(service.ledger)

    def later():
        service.ledger.note("second", actor="ada")
        assert service.anchoring.follow(service.ledger)
        service.close()

    go_back(tmp_path, later)
    (tmp_path / "log.jsonl").rename(tmp_path / "away.jsonl")
    (tmp_path / "log.jsonl").mkdir()
    again = started(curators=1)
    before = again.ledger.head
    with pytest.raises(LedgerUnavailable, match="nothing is written before the log was compared"):
        again.ledger.note("third", actor="ada")
    assert not again.anchoring.follow(again.ledger)
    assert again.ledger.head == before
    (tmp_path / "log.jsonl").rmdir()
    (tmp_path / "away.jsonl").rename(tmp_path / "log.jsonl")
    assert again.anchoring.follow(again.ledger)
    assert again.anchoring.problem is None
    assert "older copy" in again.ledger.halted
    # What the service writes first of all was written now.
    assert again.ledger.curators == 1
    again.ledger.note("third", actor="ada")
    again.ledger.verify()


def test_an_older_copy_lets_nobody_in_whose_token_was_revoked_since(started, tmp_path):
    service = started()
    people.add_person(service.engine, service.clock, person="ada", name="Ada", role="curator")
    token = people.add_token(service.engine, service.clock, person="ada")
    identity = people.by_token(service.engine, service.clock, token)
    session, _ = people.open_session(service.engine, service.clock, identity)
    assert service.anchoring.follow(service.ledger)

    def later():
        people.revoke(service.engine, service.clock, people.public_id(token))
        service.ledger.note("token revoked", actor="ada")
        assert service.anchoring.follow(service.ledger)
        service.close()

    go_back(tmp_path, later)
    again = started()
    assert "older copy" in again.ledger.halted
    assert people.by_token(again.engine, again.clock, token) is None
    assert people.by_session(again.engine, again.clock, session) is None


def test_nobody_is_called_what_the_log_calls_whoever_runs_the_service(started):
    service = started()
    with pytest.raises(InvalidInput, match="what the log calls whoever runs the service"):
        people.add_person(service.engine, service.clock, person="operator", name="Mallory", role="analyst")
