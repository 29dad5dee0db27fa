"""The paper says what the pages say, and cites what its list has."""

import re

import pytest

from evidence import paper

TEXT = paper.PAPER.read_text()


def test_its_numbers_are_those_of_the_pages():
    assert paper.written(TEXT) == TEXT, "run python -m evidence.paper"
    assert re.search(r"\d", paper.PLACE.search(TEXT)[0].splitlines()[1])


def test_no_other_sentence_of_it_has_a_measured_number():
    rest = paper.PLACE.sub("", TEXT.partition("# Summary")[2])
    assert not re.search(r"\d", re.sub(r"@\w+", "", rest))


def test_it_cites_what_its_list_has_and_has_nothing_else():
    listed = set(re.findall(r"^@\w+\{(\w+),", (paper.PAPER.parent / "paper.bib").read_text(), re.MULTILINE))
    assert set(re.findall(r"@(\w+)", TEXT.partition("# Summary")[2])) == listed


def test_it_has_the_parts_that_the_journal_asks_for_and_is_short():
    assert {"# Summary", "# Statement of need", "# References"} <= set(TEXT.splitlines())
    assert 250 < len(TEXT.split()) < 1_000


def test_a_row_that_is_gone_is_an_error():
    with pytest.raises(SystemExit, match="has no row"):
        paper.cells("real-studies.md", "no such line")
