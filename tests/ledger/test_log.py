"""The log shows whether anybody has changed it."""

import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Ledger, LedgerCorrupt
from discreet.ledger import Cost, Head, verify_lines
from discreet.ledger.hash_chain import START, canonical, follow, verify_entries

FIELDS = ("time", "actor", "action", "dataset", "body", "previous", "hash")


class Published:
    """The least that a release is."""

    guarantee = None

    def __init__(self, value):
        self.value = value

    def to_dict(self):
        return {"value": self.value}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A ledger file with a few requests of every fate."""
    path = tmp_path_factory.mktemp("ledger") / "budget.db"
    with closing(Ledger(f"sqlite:///{path}")) as ledger:
        ledger.open("icu", epsilon=9)
        for number in range(5):
            request = ledger.reserve("icu", Cost(epsilon=1))
            if number == 3:
                ledger.cancel(request)
                continue
            ledger.charge(request)
            ledger.fail(request) if number == 4 else ledger.settle(request, Published(number))
        ledger.freeze("icu", curator="cy")
    return path


def tampered(filled, tmp_path_factory, *statements):
    """A copy of the file, changed by somebody who knows how to drop triggers."""
    path = tmp_path_factory.mktemp("copy") / "budget.db"
    path.write_bytes(filled.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement, values in statements:
            connection.execute(statement, values)
        connection.commit()
    return f"sqlite:///{path}"


def refused(url):
    """Whether a changed ledger is refused, by verification and by every use."""
    with closing(Ledger(url)) as ledger:
        with pytest.raises(LedgerCorrupt):
            ledger.verify()
        with pytest.raises(LedgerCorrupt):
            ledger.unfreeze("icu", curator="cy")
    return True


@settings(max_examples=50)
@given(st.data())
def test_a_change_to_any_field_of_any_row_is_detected(filled, tmp_path_factory, data):
    with closing(sqlite3.connect(filled)) as connection:
        rows = connection.execute(f"SELECT seq, {', '.join(FIELDS)} FROM ledger_log ORDER BY seq").fetchall()
    row = data.draw(st.sampled_from(rows))
    which = data.draw(st.integers(0, len(FIELDS) - 1))
    old = row[1 + which]
    place = data.draw(st.integers(0, max(0, len(old) - 1)))
    # SQLite's text ends at NUL, and lone surrogates are no text.
    letters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    new = data.draw(
        st.one_of(
            letters.map(lambda letter: old[:place] + letter + old[place + 1 :]),
            letters.map(lambda letter: old[:place] + letter + old[place:]),
            st.just(old[:place] + old[place + 1 :]),
            st.sampled_from(rows).map(lambda other: other[1 + which]),
        ).filter(lambda text: text != old)
    )
    statement = f"UPDATE OR IGNORE ledger_log SET {FIELDS[which]} = ? WHERE seq = ?"
    url = tampered(filled, tmp_path_factory, (statement, (new, row[0])))
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        now = connection.execute(f"SELECT {FIELDS[which]} FROM ledger_log WHERE seq = ?", (row[0],)).fetchone()
    # Two equal hashes are refused by the table itself.
    assert now == (old,) or refused(url)


@pytest.mark.parametrize("seq", range(1, 15))
def test_a_row_that_is_missing_is_detected_unless_it_is_the_last(filled, tmp_path_factory, seq):
    url = tampered(filled, tmp_path_factory, ("DELETE FROM ledger_log WHERE seq = ?", (seq,)))
    assert refused(url)


def test_rows_that_were_swapped_or_added_are_detected(filled, tmp_path_factory):
    swap = [("UPDATE ledger_log SET seq = ? WHERE seq = ?", pair) for pair in ((99, 5), (5, 6), (6, 99))]
    assert refused(tampered(filled, tmp_path_factory, *swap))
    copy = f"INSERT INTO ledger_log (seq, {', '.join(FIELDS)}) SELECT 0, {', '.join(FIELDS[:-1])}, 'x' FROM ledger_log"
    added = tampered(filled, tmp_path_factory, (f"{copy} WHERE seq = 3", ()))
    with closing(Ledger(added)) as ledger, pytest.raises(LedgerCorrupt):
        ledger.verify()


def test_a_release_that_was_changed_removed_or_put_in_is_detected(filled, tmp_path_factory):
    for statement in (
        "UPDATE ledger_release SET text = '{\"value\":8}' WHERE request = 2",
        "DELETE FROM ledger_release WHERE request = 2",
        "INSERT INTO ledger_release SELECT 11, digest, text FROM ledger_release WHERE request = 2",
        "INSERT INTO ledger_release SELECT 999, digest, text FROM ledger_release WHERE request = 2",
    ):
        with closing(Ledger(tampered(filled, tmp_path_factory, (statement, ())))) as ledger:
            with pytest.raises(LedgerCorrupt, match="the release of request"):
                ledger.verify()
            if "INSERT" not in statement:
                with pytest.raises(LedgerCorrupt, match="the release of request 2"):
                    ledger.release(2)


def test_a_tail_that_was_cut_off_is_detected_with_a_head_that_was_kept_elsewhere_and_only_then(
    filled, tmp_path_factory
):
    with closing(Ledger(f"sqlite:///{filled}")) as ledger:
        kept = Head.parse(str(ledger.head))
        assert ledger.verify(kept) == kept
    shorter = tampered(
        filled, tmp_path_factory, ("DELETE FROM ledger_log WHERE seq = (SELECT max(seq) FROM ledger_log)", ())
    )
    with closing(Ledger(shorter)) as ledger:
        assert ledger.verify().seq == kept.seq - 1
        with pytest.raises(LedgerCorrupt, match="does not contain the head that was kept"):
            ledger.verify(kept)


def test_a_tail_that_is_cut_off_is_detected_by_whoever_has_read_it(filled, tmp_path_factory):
    url = tampered(filled, tmp_path_factory)
    with closing(Ledger(url)) as ledger:
        whole = ledger.head
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("DELETE FROM ledger_log WHERE seq = ?", (whole.seq,))
            connection.commit()
        with pytest.raises(LedgerCorrupt, match="does not contain the head that was kept"):
            ledger.verify()
    with closing(Ledger(url)) as other:
        assert other.verify().seq == whole.seq - 1


def test_a_rewritten_history_with_fresh_hashes_is_detected_with_a_head(filled):
    with closing(Ledger(f"sqlite:///{filled}")) as ledger:
        entries, kept = ledger.log(), ledger.head
    head, forged = START, []
    for entry in entries:
        body = dict(entry.body) | ({"epsilon": 99.0} if entry.action == "open" else {})
        new = follow(head, time=entry.time, actor=entry.actor, action=entry.action, dataset=entry.dataset, body=body)
        head = Head(new.seq, new.hash)
        forged.append(new)
    assert verify_entries(forged) == head
    with pytest.raises(LedgerCorrupt, match="does not contain the head"):
        verify_entries(forged, kept)


def test_an_exported_log_verifies_by_itself_and_any_edit_shows(filled, tmp_path):
    out = tmp_path / "log.jsonl"
    with closing(Ledger(f"sqlite:///{filled}")) as ledger:
        head = ledger.export(out)
        assert head == ledger.head
    lines = out.read_text().splitlines(keepends=True)
    assert verify_lines(lines, head) == head
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, head.seq + 1))
    edits = [
        lines[:3] + lines[4:],
        [lines[1], lines[0], *lines[2:]],
        [lines[0].replace('"epsilon":9.0', '"epsilon":90.0'), *lines[1:]],
        [lines[0].replace(",", ", ", 1), *lines[1:]],
        ["[]\n", *lines],
        ["{\n", *lines],
        [json.dumps(json.loads(lines[0]) | {"more": 1}) + "\n", *lines[1:]],
    ]
    for edited in edits:
        with pytest.raises(LedgerCorrupt):
            verify_lines(edited)


@pytest.mark.parametrize("words", ["", "7", "7:abc", "x:" + "0" * 64, "7:" + "G" * 64])
def test_a_head_that_was_not_copied_as_printed_is_refused(words):
    with pytest.raises(LedgerCorrupt, match="NUMBER:HASH"):
        Head.parse(words)


def test_a_line_that_is_not_known_yet_is_refused(filled):
    with closing(Ledger(f"sqlite:///{filled}")) as ledger:
        ledger.verify()
        new = follow(ledger.head, time="", actor="a", action="refund", dataset="icu", body={})
        with pytest.raises(LedgerCorrupt, match="does not know"):
            ledger._book.enter(new, written=True)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_canonical_json_is_read_back_to_itself(value):
    assert canonical(json.loads(canonical(value))) == canonical(value)
