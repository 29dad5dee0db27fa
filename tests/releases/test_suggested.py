"""The release of suggested bounds: its file, its page and what it refuses to read."""

import json
from pathlib import Path

import pytest

import discreet as dc
from discreet import InvalidInput, SuggestedBounds
from discreet.releases.report import kind_of

HOME = Path(__file__).parent.parent / "golden" / "releases"


@pytest.fixture
def release():
    return dc.load(HOME / "discreet-suggested-bounds.v1.json")


def test_a_file_is_read_as_it_was_written(release, tmp_path):
    release.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (HOME / "discreet-suggested-bounds.v1.json").read_bytes()
    assert dc.load(tmp_path / "again.json") == release


def test_a_page_shows_the_bounds_file_and_the_guarantee(release):
    page = dc.render_page(release, title="Stays")
    assert "<title>Stays</title>" in page
    assert "[covariates.ward]" in page
    assert "docs/proofs/bounds.md" in page
    facts = kind_of(release).facts(release)
    assert facts["table"][1][0][0] == "days"
    assert kind_of(release).figures(release, 3) == []


def test_words_say_what_was_done(release):
    assert "each record was in one cell of each histogram" in release.methods()
    assert release.display().lines[0][0] == "days"
    assert str(release) == release.summary()
    assert release.records == "10,000"


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"outcome": "age"},
        {"columns": [{"kind": "range", "name": "days", "low": 1.0, "high": None, "centre": 2.0}]},
        {"columns": [{"kind": "nothing"}]},
        {"more": 1},
    ],
)
def test_broken_files_are_refused(release, change):
    with pytest.raises(InvalidInput):
        SuggestedBounds.from_dict(json.loads(json.dumps(release.to_dict())) | change)


def test_names_of_columns_cannot_break_the_file(release):
    from dataclasses import replace

    first, *rest = release.columns
    strange = replace(first, name='da"ys\n[outcome]')
    renamed = replace(
        release, outcome=strange.name, columns=(strange, *(replace(each, name=f"{each.name}\n#") for each in rest))
    )
    assert dc.Bounds.from_toml(renamed.to_toml()) == renamed.bounds
