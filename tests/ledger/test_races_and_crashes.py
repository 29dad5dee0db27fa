"""A little of what docs/evidence/ledger.md does at length: races, crashes and tampering."""

import sys

import pytest

from evidence.ledger import page
from evidence.ledger_crashes import crash
from evidence.ledger_races import race
from evidence.ledger_tampering import tamper


def test_exactly_one_of_many_contenders_gets_the_last_unit(url):
    found = race(url, rounds=4, processes=2, threads=16)
    assert (found.one_winner, found.refused, found.worst, found.verified) == (4, 4 * 31, 1.0, True)


@pytest.mark.skipif(sys.gettrace() is not None, reason="lines are counted by tracing, which a debugger has taken")
def test_whoever_is_killed_has_counted_as_spent_what_was_drawn(url, tmp_path):
    found = crash(url, tmp_path, lines=10, moments=3)
    assert (found.lines, found.moments) == (10, 3)
    assert found.verified >= 13
    assert found.drawn > 0
    assert found.drawn_uncounted == found.lost_lines == 0


def test_every_changed_removed_or_swapped_row_is_detected(url):
    found = tamper(url, requests=2)
    assert found.rows == 7
    assert found.detected == found.tried == 7 * 8 + 7 + 6
    assert found.refused_by_triggers == 14


def test_the_page_counts_what_is_not_as_it_should_be():
    kept = {"rounds": 9, "contenders": 256, "refused": 9, "worst": 1.0, "verified": True, "seconds": 1.0}
    counted = {"lines": 200, "moments": 9, "steps": 9, "drawn": 9, "drawn_uncounted": 0, "lost_lines": 0, "verified": 9}
    rows = {"rows": 1, "changed": 8, "removed": 1, "swapped": 0, "detected": 9, "refused_by_triggers": 2}
    good = {
        "races": {"SQLite": kept | {"one_winner": 9}},
        "crashes": {"SQLite": counted | {"states": {"charged": 1}}},
        "tampering": {"SQLite": rows},
        "timing": {"SQLite": {"charge": 1.0, "request": 2.0}},
    }
    bad = good | {"races": {"SQLite": kept | {"one_winner": 8}}, "tampering": {"SQLite": rows | {"detected": 8}}}
    for found, said in ((good, "3 of 3 as it should be"), (bad, "1 of 3 as it should be")):
        text = page({name: {"date": "2026-01-01", "seconds": 1, "found": part} for name, part in found.items()})
        assert said in text
        assert "| ε = 0.5, δ = 1e-06 | 4 |" in text
