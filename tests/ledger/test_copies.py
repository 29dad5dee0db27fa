"""Backups, restored copies, and anchors: what was spent stays spent, and nothing goes on unseen."""

import json
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from discreet import Budget, Ledger
from discreet.cli import app
from discreet.exceptions import InvalidInput, LedgerCorrupt, LedgerRefused, LedgerUnavailable
from discreet.ledger import Cost
from discreet.ledger.governance import backups
from discreet.ledger.governance.anchors import CommandAnchor, anchor_at, compare
from discreet.ledger.governance.backups import back_up, restore


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
    anchor.append(used.log())
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
            connection.execute("DROP TABLE ledger_log, ledger_release, ledger_secret, ledger_schema CASCADE")
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
    anchor.append(quick.log())
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
        anchor_at(f"file:{tmp_path}/log.jsonl").append(quick.log())


def test_a_rewritten_log_contradicts_its_anchor(quick, tmp_path):
    quick.open("icu", epsilon=1)
    spend(quick)
    with closing(Ledger(f"sqlite:///{tmp_path}/other.db")) as other:
        other.open("icu", epsilon=2)
        with pytest.raises(LedgerCorrupt, match="contradict each other"):
            compare(other.log(), quick.log())
    assert compare(quick.log(), quick.log()[:2]) == []


def test_a_line_that_was_cut_off_as_it_was_written_is_written_again(quick, tmp_path):
    quick.open("icu", epsilon=1)
    spend(quick)
    anchor, file = anchor_at(f"file:{tmp_path}/log.jsonl"), tmp_path / "log.jsonl"
    anchor.append(quick.log()[:2])
    file.write_text(file.read_text() + quick.log()[2].line[:20])
    assert anchor.head().seq == 2
    anchor.append(quick.log()[1:])
    assert [entry.seq for entry in anchor.entries()] == [1, 2, 3, 4]
    # Again: nothing twice.
    anchor.append(quick.log())
    assert len(anchor.entries()) == 4


@pytest.mark.parametrize("address", ["file:", "command: ", "mailto:ada", "/tmp/log"])
def test_an_anchor_is_written_in_one_of_three_ways(address):
    with pytest.raises(InvalidInput, match="file:PATH, command:PROGRAM, or the address of a database"):
        anchor_at(address)


def test_a_command_that_fails_or_is_missing_is_told(quick):
    quick.open("icu", epsilon=1)
    for words in (["false"], ["/no/such/program"]):
        with pytest.raises(LedgerUnavailable, match="anchor of the ledger cannot be reached"):
            CommandAnchor(words).append(quick.log())


def test_commands_back_up_restore_and_verify(quick, tmp_path):
    def run(*words):
        return CliRunner().invoke(app, ["ledger", *map(str, words)])

    quick.open("icu", epsilon=2)
    address, anchor = f"sqlite:///{tmp_path}/quick.db", f"file:{tmp_path}/log.jsonl"
    anchor_at(anchor).append(quick.log())
    agrees = run("verify", "--ledger", address, "--against", anchor)
    assert "agree with the 1 that the anchor holds" in agrees.output
    assert "1 lines, verified" in run("backup", tmp_path / "copy.db", "--ledger", address).output
    spend(quick)
    anchor_at(anchor).append(quick.log())
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
