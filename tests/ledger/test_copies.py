"""Backups, restored copies, and anchors: what was spent stays spent, and nothing goes on unseen."""

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from typer.testing import CliRunner

from discreet import Budget, Ledger
from discreet.cli import app
from discreet.exceptions import InvalidInput, LedgerCorrupt, LedgerRefused, LedgerUnavailable
from discreet.ledger import Cost
from discreet.ledger.governance import backups
from discreet.ledger.governance.anchors import CommandAnchor, anchor_at, compare
from discreet.ledger.governance.backups import back_up, restore
from discreet.ledger.hash_chain import Head, Sealed, follow


def spend(ledger, epsilon=0.5, **more):
    number = ledger.reserve("icu", Cost(epsilon=epsilon), **more)
    ledger.charge(number)
    ledger.settle(number, None)
    return number


@pytest.fixture
def used(url):
    """A ledger that was used, and its address."""
    with closing(Ledger(url)) as made:
        made.open("icu", epsilon=5, analysts={"ada": Budget(epsilon=2)}, strata=["north", "south"])
        spend(made, analyst="ada", stratum="north")
        yield made


@pytest.mark.parametrize("place", ["file", "database"])
def test_a_restored_copy_is_halted_and_knows_what_was_spent_after_it(used, url, tmp_path, place):
    anchor = anchor_at(f"file:{tmp_path}/log.jsonl" if place == "file" else f"sqlite:///{tmp_path}/anchor.db")
    head = back_up(url, tmp_path / "copy.db")
    assert head == used.head
    spend(used, 0.75, analyst="ada", stratum="south")
    anchor.append(used.sealed())
    target = f"sqlite:///{tmp_path}/restored.db"
    made, known = restore(tmp_path / "copy.db", target, anchor=anchor, curator="cora")
    assert known == 3
    with closing(Ledger(target)) as restored:
        account = restored.account("icu")
        assert (account.spent, account.strata) == (used.account("icu").spent, used.account("icu").strata)
        assert account.quotas["ada"] == used.account("icu").quotas["ada"]
        # Kept heads still verify, and rows still refuse to be changed.
        assert restored.verify(used.head) == made
        with pytest.raises(LedgerRefused, match="halted until two curators resume: restored from a copy"):
            restored.reserve("icu", Cost(epsilon=0.1), analyst="ada")
        number = restored.propose_deed("resume", curator="cora")
        with pytest.raises(LedgerRefused, match="two different curators"):
            restored.approve(number, curator="cora")
        restored.approve(number, curator="dan")
        restored.reserve("icu", Cost(epsilon=0.1), analyst="ada")
    with sqlite3.connect(tmp_path / "restored.db") as rows, pytest.raises(sqlite3.IntegrityError, match="only grows"):
        rows.execute("DELETE FROM ledger_log")
    rows.close()


def test_a_copy_goes_back_to_where_it_came_from(used, url, tmp_path):
    """Into PostgreSQL as well: all columns, defaults and triggers included."""
    back_up(url, tmp_path / "copy.db")
    if url.startswith("sqlite"):
        target = f"sqlite:///{tmp_path}/other.db"
    else:
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            # Whatever tests before this one left there as well.
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        target = url
    restore(tmp_path / "copy.db", target, curator="cora")
    with closing(Ledger(target)) as restored:
        assert restored.account("icu").spent.epsilon == 0.5
        assert "not known" in restored.halted
    with pytest.raises(InvalidInput, match="ledger at this address already"):
        restore(tmp_path / "copy.db", target, curator="cora")


def test_releases_that_no_copy_has_answer_nothing_and_stay_spent(quick, tmp_path):
    import discreet as dc
    from discreet.datasets import private_ci_rct

    trial = private_ci_rct(n=200, seed=1)
    quick.open("icu", epsilon=2)
    back_up(f"sqlite:///{tmp_path}/quick.db", tmp_path / "copy.db")
    means = dc.DifferenceInMeans(epsilon=0.5, bounds=trial.bounds)
    means.fit(trial.Y, trial.T, X=trial.X, ledger=quick, dataset="icu")
    anchor = anchor_at(f"file:{tmp_path}/log.jsonl")
    anchor.append(quick.sealed())
    target = f"sqlite:///{tmp_path}/restored.db"
    restore(tmp_path / "copy.db", target, anchor=anchor, curator="cora")
    with closing(Ledger(target)) as restored:
        assert restored.account("icu").spent.epsilon == 0.5
        assert restored.requests("icu")[0].release is None
        restored.verify()
        restored.approve(restored.propose_deed("resume", curator="cora"), curator="dan")
        again = dc.DifferenceInMeans(epsilon=0.5, bounds=trial.bounds)
        again.fit(trial.Y, trial.T, X=trial.X, ledger=restored, dataset="icu")
        assert restored.account("icu").spent.epsilon == 1.0


def test_a_backup_never_replaces_a_file_and_leaves_none_where_the_disk_is_full(quick, tmp_path, monkeypatch):
    quick.open("icu", epsilon=1)
    address, copy = f"sqlite:///{tmp_path}/quick.db", tmp_path / "copy.db"
    copy.touch()
    with pytest.raises(InvalidInput, match="exists already"):
        back_up(address, copy)
    copy.unlink()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(backups, "_copy", full)
        with pytest.raises(LedgerUnavailable, match="that the disk has room; no file was left"):
            back_up(address, copy)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quick.db"]
    with pytest.raises(LedgerUnavailable, match="could not be written"):
        back_up(address, tmp_path / "nowhere" / "copy.db")
    with pytest.raises(InvalidInput, match="no ledger at this address"):
        back_up(f"sqlite:///{tmp_path}/missing.db", copy)


def test_a_full_disk_under_an_anchor_is_told(quick, tmp_path, monkeypatch):
    quick.open("icu", epsilon=1)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("discreet.ledger.governance.anchors.os.fsync", full)
    with pytest.raises(LedgerUnavailable, match="has room"):
        anchor_at(f"file:{tmp_path}/log.jsonl").append(quick.sealed())


def test_a_rewritten_log_contradicts_its_anchor(quick, tmp_path):
    quick.open("icu", epsilon=1)
    spend(quick)
    with closing(Ledger(f"sqlite:///{tmp_path}/other.db")) as other:
        other.open("icu", epsilon=2)
        with pytest.raises(LedgerCorrupt, match="contradict each other"):
            compare(other.log(), quick.sealed())
    assert compare(quick.log(), quick.sealed()[:2]) == []


def test_a_line_that_was_cut_off_as_it_was_written_is_written_again(quick, tmp_path):
    quick.open("icu", epsilon=1)
    spend(quick)
    anchor, file = anchor_at(f"file:{tmp_path}/log.jsonl"), tmp_path / "log.jsonl"
    anchor.append(quick.sealed()[:2])
    file.write_text(file.read_text() + quick.log()[2].line[:20])
    assert anchor.head().seq == 2
    anchor.append(quick.sealed()[1:])
    assert [each.entry.seq for each in anchor.entries()] == [1, 2, 3, 4]
    # Again: nothing twice.
    anchor.append(quick.sealed())
    assert len(anchor.entries()) == 4


@pytest.mark.parametrize("address", ["file:", "command: ", "mailto:ada", "/tmp/log"])
def test_an_anchor_is_written_in_one_of_three_ways(address):
    with pytest.raises(InvalidInput, match="file:PATH, command:PROGRAM, or the address of a database"):
        anchor_at(address)


def test_a_command_that_fails_or_is_missing_is_told(quick):
    quick.open("icu", epsilon=1)
    for words in (["false"], ["/no/such/program"]):
        with pytest.raises(LedgerUnavailable, match="anchor of the ledger cannot be reached"):
            CommandAnchor(words).append(quick.sealed())


def test_a_command_gets_no_password_from_the_environment(quick, tmp_path, monkeypatch):
    quick.open("icu", epsilon=1)
    monkeypatch.setenv("DISCREET_OIDC_SECRET", "hush")
    monkeypatch.setenv("PGPASSWORD", "hush")
    CommandAnchor(["sh", "-c", f"env > {tmp_path}/seen"]).append(quick.sealed())
    seen = (tmp_path / "seen").read_text()
    assert "PATH=" in seen
    assert "hush" not in seen


def test_a_clock_that_is_ahead_of_the_databases_writes_no_line(used, monkeypatch):
    """All later lines would be behind it, so that nothing could be approved."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=365)

    number, head = used.propose("icu", epsilon=50, curator="cora"), used.head
    monkeypatch.setattr("discreet.ledger._journal.datetime", Ahead)
    with pytest.raises(LedgerRefused, match="ahead of the database's: nothing is written"):
        used.freeze("icu", curator="cora")
    monkeypatch.undo()
    assert used.head == head
    used.approve(number, curator="dan")


def test_commands_back_up_restore_and_verify(quick, tmp_path):
    def run(*words):
        return CliRunner().invoke(app, ["ledger", *map(str, words)])

    quick.open("icu", epsilon=2)
    address, anchor = f"sqlite:///{tmp_path}/quick.db", f"file:{tmp_path}/log.jsonl"
    anchor_at(anchor).append(quick.sealed())
    agrees = run("verify", "--ledger", address, "--against", anchor)
    assert "agree with the 1 that the anchor holds" in agrees.output
    assert "1 lines, verified" in run("backup", tmp_path / "copy.db", "--ledger", address).output
    spend(quick)
    anchor_at(anchor).append(quick.sealed())
    older = run("verify", "--ledger", f"sqlite:///{tmp_path}/copy.db", "--against", anchor)
    assert (older.exit_code, "is an older copy: it ends at line 1, and the anchor knows 3 more" in older.output) == (
        2,
        True,
    )
    target = f"sqlite:///{tmp_path}/new.db"
    words = ["restore", tmp_path / "copy.db", "--curator", "cora", "--ledger", target]
    assert "of which 3 came from the anchor" in run(*words, "--against", anchor).output
    number = json.loads(json.dumps(run("resume", "--curator", "cora", "--ledger", target).output)).split()[1].strip(".")
    assert run("approve", number, "--curator", "cora", "--ledger", target).exit_code == 2
    assert run("approve", number, "--curator", "dan", "--ledger", target).exit_code == 0
    with closing(Ledger(target)) as made:
        assert made.halted is None
        assert made.account("icu").spent.epsilon == 0.5


def forged(ledger, deeds, seal):
    """The lines of a ledger, and further ones that follow from them by their hashes, as an anchor would hold them."""
    lines = ledger.sealed()
    for action, actor, body in deeds:
        last = lines[-1].entry
        made = follow(
            Head(last.seq, last.hash), time=last.time, actor=actor, action=action, dataset="icu", body=body(last.seq)
        )
        lines.append(Sealed(made, seal))
    return lines


RAISE = (
    ("propose", "cora", lambda _: {"analyst": None, "epsilon": 999.0, "delta": None}),
    ("approve", "dan", lambda last: {"proposal": last}),
)


@pytest.mark.parametrize("seal", ["", "0" * 64, "\u00e9"])
def test_lines_that_the_ledger_did_not_write_are_not_taken_from_an_anchor(used, url, tmp_path, seal):
    """A chain without a key can be gone on with by anybody who can write to the anchor."""
    lines = forged(used, RAISE, seal)
    with pytest.raises(LedgerCorrupt, match="lines that this ledger did not write"):
        used.readmit(compare(used.log(), lines), "older", curator="cora")
    assert used.account("icu").cap.epsilon == 5
    anchor = anchor_at(f"file:{tmp_path}/log.jsonl")
    anchor.append(lines)
    back_up(url, tmp_path / "copy.db")
    with pytest.raises(LedgerCorrupt, match="lines that this ledger did not write"):
        restore(tmp_path / "copy.db", f"sqlite:///{tmp_path}/new.db", anchor=anchor, curator="cora")
    # Not even with the digest of another line.
    lines[-1] = Sealed(lines[-1].entry, used.sealed()[-1].seal)
    with pytest.raises(LedgerCorrupt, match="did not write"):
        used.check_wrote(lines)
    used.check_wrote(used.sealed())


def test_what_lines_of_an_anchor_loosened_waits_for_two_curators_again(used, url, tmp_path):
    used.freeze("icu", curator="cora")
    back_up(url, tmp_path / "copy.db")
    used.unfreeze("icu", curator="cora")
    used.approve(used.propose("icu", epsilon=50, curator="cora"), curator="dan")
    used.approve(used.propose("icu", epsilon=40, analyst="ada", curator="cora"), curator="dan")
    used.allow("icu", "bob", epsilon=3, curator="cora")
    used.open("new", epsilon=7, curator="cora")
    waits = used.propose("icu", epsilon=60, curator="cora")
    spend(used, 4.0, analyst="ada", stratum="north")
    head = used.head
    anchor = anchor_at(f"file:{tmp_path}/log.jsonl")
    anchor.append(used.sealed())
    target = f"sqlite:///{tmp_path}/new.db"
    restore(tmp_path / "copy.db", target, anchor=anchor, curator="cora")
    with closing(Ledger(target)) as restored:
        restored.verify(head)
        account = restored.account("icu")
        assert (account.cap.epsilon, account.quotas["ada"].cap.epsilon) == (5, 2)
        assert account.quotas["bob"].cap.epsilon < 1e-6
        # What was spent under the higher caps stays spent.
        assert account.spent == used.account("icu").spent
        assert account.frozen
        assert restored.account("new").frozen
        assert restored.proposals() == ()
        assert not restored.proposal(waits).open
        with pytest.raises(LedgerRefused, match="halted"):
            restored.reserve("icu", Cost(epsilon=0.1), analyst="ada")


def test_lines_of_an_anchor_that_only_tighten_are_kept_as_they_are(used, url, tmp_path):
    back_up(url, tmp_path / "copy.db")
    used.allow("icu", "ada", epsilon=1, curator="cora")
    spend(used, 0.25, analyst="ada", stratum="north")
    anchor = anchor_at(f"file:{tmp_path}/log.jsonl")
    anchor.append(used.sealed())
    target = f"sqlite:///{tmp_path}/new.db"
    restore(tmp_path / "copy.db", target, anchor=anchor, curator="cora")
    with closing(Ledger(target)) as restored:
        # But for the halt nothing was added.
        assert [entry.action for entry in restored.log(used.head.seq)] == ["halt"]
        assert restored.account("icu").quotas["ada"].cap.epsilon == 1
