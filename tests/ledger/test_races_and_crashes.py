"""A little of what docs/evidence/ledger.md does at length: races, crashes and tampering."""

import sys

import pytest

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
