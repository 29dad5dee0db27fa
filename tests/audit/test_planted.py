"""Negative controls: eight planted bugs, each caught by the instrument that the test names; and nothing without one."""

import pytest

from evidence.planted import PLANTED, audited, result_of


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught_by_its_instrument(name):
    result = audited(name)
    assert result.instrument == PLANTED[name].instrument
    assert result.violated, result.summary()


def test_there_are_eight_of_them():
    assert len(PLANTED) == 8


def test_where_nothing_is_planted_the_same_replay_finds_nothing():
    result = result_of("replay")
    assert not result.violated, result.summary()
    assert result.found == ()
