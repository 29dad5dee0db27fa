"""`discreet bounds check` lists every mistake at once; `discreet bounds suggest` is paid for and writes a file."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Bounds, Ledger, SuggestedBounds, load
from discreet.cli.bounds.check import mistakes
from discreet.cli.bounds.suggest import candidates_in
from discreet.exceptions import InvalidInput
from tests.cli.helpers import refused, run

GOOD = """
outcome = {low = 0, high = 30}
propensity = {low = 0.05, high = 0.95}
[covariates.age]
low = 18
high = 95
[covariates.ward]
levels = ["north", "south"]
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A table and a place to write in."""
    monkeypatch.chdir(tmp_path)
    rows = {
        "days": [k % 11 * 1.0 for k in range(3_000)],
        "drug": [k % 2 for k in range(3_000)],
        "age": [20 + k % 60 for k in range(3_000)],
        "ward": ["north" if k % 3 else "south" for k in range(3_000)],
    }
    pq.write_table(pa.table(rows), tmp_path / "study.parquet")
    return tmp_path


def check(*more):
    return run("bounds", "check", "study.parquet", "--bounds", "bounds.toml", *more)


def test_a_file_that_fits_is_said_to_fit(study):
    (study / "bounds.toml").write_text(GOOD)
    result = check("--outcome", "days", "--treatment", "drug", "--where", "age=18:65")
    assert result.exit_code == 0, result.output
    assert "every part is filled in" in result.output


def test_all_mistakes_are_listed_at_once(study):
    text = (
        GOOD.replace("high = 30", "hihg = 30")
        .replace("low = 0.05", "low = 2")
        .replace('levels = ["north", "south"]', "low = 0\nhigh = 1")
        + "[covariates.weight]\nlow = 1\nhigh = 2\n[covariates.days]\nlow = 0\nhigh = 1\n"
        + "[covariates.empty]\n# low = 0\n[more]\n"
    )
    (study / "bounds.toml").write_text(text)
    result = check("--outcome", "days", "--treatment", "drugs", "--covariates", "age,ward,weight,days,empty,height")
    assert result.exit_code == 2
    for words in (
        "more: there is no such part",
        "outcome has an unknown key 'hihg'",
        "propensity: ",
        "--treatment: the table has no column 'drugs'",
        "covariate 'ward': its column holds text",
        "covariate 'weight': the table has no such column",
        "covariate 'days' is the outcome: delete its part",
        "covariate 'empty': the table has no such column",
        "covariate 'empty' is not filled in: give low and high, or levels, or delete its part",
        "--covariates: 'height' has no part",
    ):
        assert words in result.output, words
    assert "10 mistakes" in result.output


def test_a_file_that_is_not_filled_in_is_led_to_a_suggestion(study):
    assert run("bounds", "init", "study.parquet", "--outcome", "days", "--treatment", "drug").exit_code == 0
    result = check("--outcome", "days")
    assert "outcome: it is not filled in" in result.output
    assert "discreet bounds suggest" in result.output
    assert "covariate 'age' is not filled in" in result.output


def test_types_contradict_outcome_and_treatment_too():
    columns = {"days": "varchar", "drug": "varchar"}
    given = {"--outcome": "days", "--treatment": "drug"}
    found = list(mistakes({"outcome": {"low": 0, "high": 1}}, columns, given, None))
    assert [each.partition(":")[0] for each in found] == ["outcome", "treatment"]
    # A CSV file does not say what its columns hold.
    assert not list(mistakes({"outcome": {"low": 0, "high": 1}}, dict.fromkeys(columns), given, None))
    assert any("need names" in each for each in mistakes({"covariates": []}, columns, {}, None))


def test_files_that_are_none_are_refused(study):
    refused(check(), "no bounds file")
    (study / "bounds.toml").write_text("outcome =")
    refused(check(), "not valid TOML")
    (study / "bounds.toml").write_bytes(b"\xff\xfe")
    refused(check(), "not UTF-8")
    (study / "bounds.toml").write_text(GOOD)
    assert "--where" in check("--where", "weight=1").output


def test_init_writes_parts_for_the_covariates_that_are_named(study):
    assert run("bounds", "init", "study.parquet", "--covariates", "ward,age", "--out", "some.toml").exit_code == 0
    text = (study / "some.toml").read_text()
    assert text.index("[covariates.ward]\n# levels") < text.index("[covariates.age]\n# low")
    assert "covariates.days" not in text
    assert "fill = 0" in text
    refused(run("bounds", "init", "study.parquet", "--covariates", "agee", "--out", "x.toml"), "no column 'agee'")
    refused(
        run("bounds", "init", "study.parquet", "--outcome", "age", "--covariates", "age", "--out", "x.toml"),
        "which is the outcome or the treatment",
    )


def suggest(*more):
    given = ("--outcome", "days", "--covariates", "age", "--category", "ward=north,south", "--epsilon", "2")
    return run("bounds", "suggest", "study.parquet", *given, *more)


def test_a_suggestion_is_charged_shown_and_written(study):
    ledger = Ledger("sqlite:///budget.db")
    ledger.open("icu", epsilon=3, delta=1e-5)
    ledger.close()
    paid = ("--ledger", "sqlite:///budget.db", "--dataset", "icu")
    result = suggest("--release", "suggested.json", "--report", "suggested.html", *paid)
    assert result.exit_code == 0, result.output
    release = load("suggested.json")
    assert isinstance(release, SuggestedBounds)
    assert Bounds.load("bounds.toml") == release.bounds
    assert release.guarantee.status == "proved"
    assert "north" in result.output
    assert "<h1>" in (study / "suggested.html").read_text()
    assert check("--outcome", "days", "--treatment", "drug").exit_code == 0
    refused(suggest(*paid), "exists already")
    refused(suggest("--out", "again.toml", "--where", "age=20:50", *paid), "epsilon")
    assert not (study / "again.toml").exists()


def test_what_a_suggestion_does_not_take_is_refused(study):
    refused(suggest("--table", "t"), "for PostgreSQL")
    refused(suggest("--dataset", "icu"), "belong to a ledger")
    with pytest.raises(InvalidInput, match="ward=north,south with two candidates"):
        candidates_in(["ward"])
    assert candidates_in(["grade=1,2", "ward=a,b"]) == {"grade": [1.0, 2.0], "ward": ["a", "b"]}
