"""Bounds files to fill in: they hold the names of columns, and nothing that stands in a record."""

import gzip
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.cli.bounds.template import _part, template
from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput, MissingBounds
from tests.cli.helpers import refused, run

SECRET = 31_337


@pytest.fixture
def parquet(tmp_path):
    table = pa.table(
        {
            "age": [SECRET, 2],
            "dose": [float(SECRET), 1.0],
            "ward": ["secret ward", "b"],
            "smoker": [True, False],
            "cat": pa.array(["secret level", "x"]).dictionary_encode(),
            "born": pa.array([SECRET, 1], pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "study.parquet")
    return tmp_path / "study.parquet"


def test_parquet_columns_are_listed_with_the_keys_that_their_type_asks_for(parquet):
    text = template(parquet)
    assert "[covariates.age]\n# low" in text
    assert "[covariates.dose]\n# low" in text
    assert "[covariates.ward]\n# levels" in text
    assert "[covariates.cat]\n# levels" in text
    assert "[covariates.smoker]\n# levels = [false, true]" in text
    assert "[covariates.born]\n# either" in text


def test_no_value_of_a_record_is_copied(parquet, tmp_path):
    csv = tmp_path / "study.csv"
    csv.write_text(f"age,ward\n{SECRET},secret ward\n")
    for text in (template(parquet), template(csv)):
        assert str(SECRET) not in text
        assert "secret" not in text


def test_two_files_with_other_records_give_the_same_text(tmp_path):
    (tmp_path / "a.csv").write_text("age,ward\n1,x\n")
    (tmp_path / "b.csv").write_text("age,ward\nold,2024-01-01\n,\n")
    assert template(tmp_path / "a.csv") == template(tmp_path / "b.csv")


def test_csv_columns_are_left_open_because_their_types_would_have_to_be_guessed(tmp_path):
    csv = tmp_path / "study.csv"
    csv.write_text('age,"ward, new"\n1,2\n')
    assert '[covariates."ward, new"]\n# either\n# low' in template(csv)


def test_compressed_files_and_patterns_are_read(tmp_path):
    for part in ("one", "two"):
        (tmp_path / f"{part}.csv.gz").write_bytes(gzip.compress(b"age\n1\n"))
    assert "[covariates.age]" in template(tmp_path / "one.csv.gz")
    assert "[covariates.age]" in template(tmp_path / "*.csv.gz")


def test_columns_that_are_no_covariates_are_left_out(parquet):
    text = template(parquet, leave_out=("age", "ward"))
    assert "covariates.age" not in text
    with pytest.raises(InvalidInput, match="has no column 'agee'"):
        template(parquet, leave_out=("agee",))


def test_what_is_not_filled_in_is_refused_by_name(parquet):
    with pytest.raises(MissingBounds, match="outcome"):
        Bounds.from_toml("")
    text = template(parquet).replace("# outcome", "outcome")
    with pytest.raises(InvalidInput, match="covariate 'age' is not filled in: give low"):
        Bounds.from_toml(text)


def test_what_is_filled_in_is_read(tmp_path):
    (tmp_path / "study.csv").write_text("age\n1\n")
    text = template(tmp_path / "study.csv").replace("# outcome", "outcome")
    bounds = Bounds.from_toml(text.replace("# low", "low").replace("# high", "high"))
    assert bounds.names == ("age",)


def test_a_binary_outcome_is_filled_in_as_the_template_says(tmp_path):
    (tmp_path / "study.csv").write_text("age\n1\n")
    text = template(tmp_path / "study.csv", leave_out=("age",))
    assert '{levels = ["no", "yes"]}' in text
    filled = text.replace("# outcome = {low = 0, high = 100}", 'outcome = {levels = ["no", "yes"]}')
    assert Bounds.from_toml(filled) == Bounds(outcome=["no", "yes"])


@given(st.text(min_size=1))
def test_any_column_name_makes_valid_toml(name):
    assert tomllib.loads(_part(name, None)) == {"covariates": {name: {}}}


@pytest.mark.parametrize("line", ["57,female,1.5", "female,1e3,north", "female,nan,north"])
def test_a_first_line_that_may_be_a_record_is_not_copied(tmp_path, line):
    csv = tmp_path / "study.csv"
    csv.write_text(f"{line}\n1,2,3\n")
    with pytest.raises(InvalidInput, match="does not seem to start with the names") as refusal:
        template(csv)
    said = str(refusal.value).replace(str(csv), "")
    assert not any(value in said for value in line.split(","))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("study.doc", b"", "not a CSV or Parquet file by its name"),
        ("study.parquet", b"31337", "not readable as Parquet"),
        ("missing.csv", None, "There is no file"),
    ],
)
def test_files_that_cannot_be_read_are_refused_without_quoting_them(tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=sentence) as refusal:
        template(tmp_path / name)
    assert "31337" not in str(refusal.value).replace(str(tmp_path), "")


def test_a_bounds_file_is_written_once(here):
    result = run("bounds", "init", "study.csv", "--out", "new.toml", "--outcome", "days", "--treatment", "drug")
    assert result.exit_code == 0
    text = (here / "new.toml").read_text()
    assert "[covariates.age]" in text
    assert "days" not in text
    (here / "new.toml").write_text("mine")
    refused(run("bounds", "init", "study.csv", "--out", "new.toml"), "exists already")
    assert (here / "new.toml").read_text() == "mine"
